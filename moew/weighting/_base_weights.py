"""Base weights π: uniform, the user's function, or p_V / p_T of labels, of features or of both together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from moew._util.checks import Wanted, check_parameters, check_takes_rows, warn
from moew._util.numbers import is_number
from moew._util.seeds import draw_seed
from moew._util.state import (
    Loads,
    State,
    Stateful,
    find_object,
    has_state,
    name_object,
    pack_attributes,
    unpack_array,
    unpack_attributes,
)
from moew.data import TabularEncoder, TargetEncoder, label_levels, label_positions, number_labels, read_only
from moew.exceptions import Argument, InvalidInputError
from moew.types import BaseWeights, Features, FloatArray, Labels, Task
from moew.weighting._density_ratio import fit_density_ratio, spline_features, spline_knots

_LIMIT = Wanted(
    "must be above 1 (weights stay in 1/limit … limit)", lambda limit: is_number(limit) and limit > 1
)
_TABLE_SIZE = 257
_MOST_SPLINE_COLUMNS = 64  # with more, no splines: they would fill the memory
_MOST_PAIRED_COLUMNS = 16
_MOST_PRODUCTS = 300  # of features and classes; with more there are none


class BaseWeightsEstimator(Stateful, BaseEstimator):
    """Base class of moew's base weights: `fit` learns them, `weights` gives π for any rows."""

    state_home = "moew.weighting"
    _needs: ClassVar[tuple[str, ...]] = ()  # arguments of `fit` that may not be None
    _settings: ClassVar[Loads] = {}  # those that a state holds
    _learned: ClassVar[Loads] = {}  # what `fit` learns

    def fit(
        self, X: Features, y: Labels, X_val: Features = None, y_val: Labels = None, *, task: Task
    ) -> Self:
        """Learn from the training and the validation rows."""
        for what, values in (("X_val", X_val), ("y_val", y_val)):
            if what in self._needs and values is None:
                raise InvalidInputError(
                    f"{type(self).__name__} compares training and validation rows, but no {what} was given: "
                    "pass the validation set, or use ",
                    Argument("base_weights", "uniform"),
                    ".",
                    argument="base_weights",
                )
        self._learn(X, y, X_val, y_val, task)
        return self

    def _learn(self, X: Features, y: Labels, X_val: Features, y_val: Labels, task: Task) -> None:
        """Where there is nothing to learn: raise early if there are no weights."""
        self.weights(X, y)

    @abstractmethod
    def weights(self, X: Features, y: Labels) -> FloatArray:
        """π (n,) for any rows."""

    def fit_weights(
        self, X: Features, y: Labels, X_val: Features, y_val: Labels, *, task: Task
    ) -> FloatArray:
        """Fit, and return π (n,) of the training rows."""
        return self.fit(X, y, X_val, y_val, task=task).weights(X, y)

    def _content(self) -> State:
        if self._learned:
            check_is_fitted(self)
        settings = {name: load(getattr(self, name)) for name, load in self._settings.items()}
        return settings | pack_attributes(self, self._learned)

    @classmethod
    def from_state(cls, state: State, objects: Mapping[str, Any]) -> Self:
        self = cls(**{name: state[name] for name in cls._settings})
        unpack_attributes(self, state, cls._learned)
        return self


@has_state
class UniformBaseWeights(BaseWeightsEstimator):
    """π = 1 for every row."""

    def weights(self, X: Features, y: Labels) -> FloatArray:
        """π (n,) = 1."""
        return np.ones(len(y))


@has_state
class FunctionBaseWeights(BaseWeightsEstimator):
    """π = `function(X, y)`, a positive number for each row. A saved state holds only the function's name."""

    def __init__(self, function: Callable[[Features, Labels], Any]) -> None:
        self.function = function

    def weights(self, X: Features, y: Labels) -> FloatArray:
        """π (n,), as the function returns it."""
        return checked_base_weights(
            self.function(read_only(X), read_only(y)), len(y), name_object(self.function)
        )

    def _content(self) -> State:
        return {"function": name_object(self.function)}

    @classmethod
    def from_state(cls, state: State, objects: Mapping[str, Any]) -> Self:
        return cls(find_object(state["function"], objects))


def checked_base_weights(raw: Any, n_rows: int, name: str) -> FloatArray:
    """π (n_rows,) as float64; raises unless all are positive and finite."""
    try:
        pi = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"the base weights {name} must give numbers: {error}.", argument="base_weights"
        ) from error
    if pi.shape != (n_rows,):
        wrong = f"one number for each of the {n_rows} rows, got shape {pi.shape}."
    elif not (counts := np.isfinite(pi) & (pi > 0)).all():
        wrong = (
            f"positive, finite weights, got {pi[~counts][0]}; "
            "leave out rows that should not count instead of giving them zero."
        )
    else:
        return pi
    raise InvalidInputError(f"the base weights {name} must give {wrong}", argument="base_weights")


@has_state
class LabelShift(BaseWeightsEstimator):
    """π(y) = p_V(y) / p_T(y), estimated from the labels only.

    Classification: class frequencies, `smoothing` counts added to each. Regression: a density ratio from
    the odds of a cross-fitted logistic regression on a cubic spline of y (knots at quantiles), corrected
    for the numbers of rows and clipped to 1/limit … limit; it is stored as a table over y, interpolated
    linearly in its logarithm and constant beyond the ends. `limit` and `n_folds` are for regression.
    """

    _needs: ClassVar[tuple[str, ...]] = ("y_val",)
    _settings: ClassVar[Loads] = {"limit": float, "n_folds": int, "smoothing": float}
    _learned: ClassVar[Loads] = {"task_": str, "levels_": list, "table_": unpack_array}

    def __init__(self, limit: float = 10.0, n_folds: int = 5, smoothing: float = 0.5) -> None:
        self.limit = limit
        self.n_folds = n_folds
        self.smoothing = smoothing

    def _learn(self, X: Features, y: Labels, X_val: Features, y_val: Labels, task: Task) -> None:
        check_parameters(self, limit=_LIMIT)
        self.task_ = task
        if task == "classification":
            self.levels_ = label_levels(y)
            self.table_ = _class_ratios(y, y_val, self.levels_, self.smoothing)
        else:
            y, y_val = number_labels(y), number_labels(y_val)
            self.levels_, self.table_ = _log_ratio_table(y, y_val, self.limit, self.n_folds)

    def weights(self, X: Features, y: Labels) -> FloatArray:
        """π (n,) for any labels."""
        check_is_fitted(self)
        if self.task_ == "classification":
            return np.asarray(self.table_[label_positions(y, self.levels_)])
        return np.exp(np.interp(number_labels(y), self.levels_, self.table_))


def _class_ratios(y: Labels, y_val: Labels, levels: list[Any], smoothing: float) -> FloatArray:
    """p_V / p_T (C,) of the classes in `levels`."""
    if unseen := [level for level in label_levels(y_val) if level not in levels]:
        raise InvalidInputError(
            f"the validation labels {unseen[:10]!r} are not among the training labels {levels[:10]!r}, so "
            "p_V(y)/p_T(y) has no value. If the validation labels are of another kind (such as grades "
            "against yes/no), use ",
            Argument("base_weights", "uniform"),
            " or ",
            Argument("base_weights", "covariate_shift"),
            "; else drop those validation rows.",
            argument="base_weights",
        )
    in_training, in_validation = (
        np.bincount(label_positions(labels, levels), minlength=len(levels)) for labels in (y, y_val)
    )
    if absent := [level for level, count in zip(levels, in_validation, strict=True) if count == 0]:
        warn(
            f"the training classes {absent!r} do not occur in the validation set: their base weight is "
            "that of half a validation row, close to zero. Use ",
            Argument("base_weights", "uniform"),
            " if the validation set is only small.",
            argument="base_weights",
            stacklevel=4,
        )
    smooth_training, smooth_validation = in_training + smoothing, in_validation + smoothing
    return np.asarray(
        (smooth_validation / smooth_validation.sum()) / (smooth_training / smooth_training.sum())
    )


def _log_ratio_table(
    y: FloatArray, y_val: FloatArray, limit: float, n_folds: int
) -> tuple[list[float], FloatArray]:
    """Targets in increasing order, and log p_V/p_T at each of them."""
    pooled = np.r_[y, y_val]
    knots = spline_knots(pooled)
    # Half the entries are evenly spaced and half at quantiles, so that a long tail stays smooth.
    shares = np.linspace(0, 1, _TABLE_SIZE)
    grid = np.unique(np.r_[np.quantile(pooled, shares), np.linspace(pooled.min(), pooled.max(), _TABLE_SIZE)])
    if len(knots) < 2:
        return grid.tolist(), np.zeros(len(grid))
    ratio = fit_density_ratio(spline_features(y, knots), spline_features(y_val, knots), n_folds, seed=0)
    log_ratio = ratio.intercept + spline_features(grid, knots) @ ratio.coef
    return grid.tolist(), np.clip(log_ratio, -np.log(limit), np.log(limit))


@has_state
class CovariateShift(BaseWeightsEstimator):
    """π(x) = p_V(x) / p_T(x), from the odds of a classifier between validation and training rows.

    The classifier is a calibrated logistic regression on the encoded columns, cubic splines of the
    numeric ones (up to 64) and products of pairs (up to 16 columns), so it has no interactions of three
    columns. The odds are corrected for the numbers of rows, clipped to 1/limit … limit and divided by
    their mean over the training rows.

    `training_weights_` (n,) are the weights of the training rows, each from a classifier that did not
    see it; `weights` of any rows are from the average of the folds' classifiers.
    """

    _needs: ClassVar[tuple[str, ...]] = ("X_val",)
    _settings: ClassVar[Loads] = {"limit": float, "n_folds": int}
    _learned: ClassVar[Loads] = {
        "encoder_": TabularEncoder.from_state,
        "knots_": list,
        "intercept_": float,
        "coef_": unpack_array,
        "mean_": float,
    }

    def __init__(self, limit: float = 10.0, n_folds: int = 5, random_state: Any = None) -> None:
        self.limit = limit
        self.n_folds = n_folds
        self.random_state = random_state

    def _learn(self, X: Features, y: Labels, X_val: Features, y_val: Labels, task: Task) -> None:
        check_parameters(self, limit=_LIMIT)
        self._learn_features(X, y, task)
        training, validation = self._features(X, y), self._features(X_val, y_val)
        seed = draw_seed(check_random_state(self.random_state))
        ratio = fit_density_ratio(training, validation, self.n_folds, seed)
        self.intercept_, self.coef_ = ratio.intercept, ratio.coef
        clipped = self._clipped(ratio.training_log_ratio)
        self.mean_ = float(clipped.mean())
        self.training_weights_ = clipped / self.mean_

    def fit_weights(
        self, X: Features, y: Labels, X_val: Features, y_val: Labels, *, task: Task
    ) -> FloatArray:
        """Fit, and return `training_weights_` (n,): each row's from a classifier that did not see it."""
        return self.fit(X, y, X_val, y_val, task=task).training_weights_

    def weights(self, X: Features, y: Labels) -> FloatArray:
        """π (n,) for any rows."""
        check_is_fitted(self)
        log_ratio = self.intercept_ + self._features(X, y) @ self.coef_
        return self._clipped(log_ratio) / self.mean_

    def _clipped(self, log_ratio: FloatArray) -> FloatArray:
        edge = np.log(self.limit)
        return np.exp(np.clip(log_ratio, -edge, edge))

    def _learn_features(self, X: Features, y: Labels, task: Task) -> None:
        self.encoder_ = TabularEncoder().fit(X)
        encoded, numeric = self.encoder_.transform(X), self._numeric()
        many = len(numeric) > _MOST_SPLINE_COLUMNS
        self.knots_ = [[] if many else spline_knots(encoded[:, j]) for j in numeric]

    def _numeric(self) -> list[int]:
        return [block.start for block in self.encoder_.blocks_ if block.kind == "numeric"]

    def _features(self, X: Features, y: Labels) -> FloatArray:
        """The classifier's features (n, F) of the rows."""
        encoded = self.encoder_.transform(X)
        bounded = np.clip(encoded, -4, 4)  # an outlier must not dominate
        columns = zip(self._numeric(), self.knots_, strict=True)
        splines = [spline_features(encoded[:, j], knots) for j, knots in columns]
        pairs = []
        if encoded.shape[1] <= _MOST_PAIRED_COLUMNS:
            pairs = [bounded[:, [i]] * bounded[:, [j]] for i, j in combinations(range(encoded.shape[1]), 2)]
        return np.hstack([bounded, *splines, *pairs])


@has_state
class JointShift(CovariateShift):
    """π(x, y) = p_V(x, y) / p_T(x, y), from the odds of a classifier between validation and training rows.

    As CovariateShift, and the classifier sees the label, too: its classes, or cubic splines of a numeric
    target, and the products of the label with the encoded columns (up to 300), so that a relation between a
    feature and the label may differ.
    """

    _needs = ("X_val", "y_val")
    _learned: ClassVar[Loads] = {
        **CovariateShift._learned,
        "label_encoder_": TargetEncoder.from_state,
        "label_knots_": list,
    }

    def _learn_features(self, X: Features, y: Labels, task: Task) -> None:
        super()._learn_features(X, y, task)
        self.label_encoder_ = TargetEncoder().fit(y, task)
        numeric = self.label_encoder_.column_.kind == "numeric"
        self.label_knots_ = spline_knots(self.label_encoder_.transform(y)[:, 0]) if numeric else []

    def _features(self, X: Features, y: Labels) -> FloatArray:
        of_X, encoded = super()._features(X, y), np.clip(self.encoder_.transform(X), -4, 4)
        label = self.label_encoder_.transform(y)
        bounded, splines = np.clip(label, -4, 4), spline_features(label[:, 0], self.label_knots_)
        products = []
        if encoded.shape[1] * label.shape[1] <= _MOST_PRODUCTS:
            products = [encoded * bounded[:, [j]] for j in range(label.shape[1])]
        return np.hstack([of_X, bounded, splines, *products])


def resolve_base_weights(thing: Any) -> BaseWeights:
    """Base weights to fit, from a name, an object or a function of (X, y).

    An object of moew is copied, so that fitting does not change what the user passed.
    """
    from moew.weighting import BASE_WEIGHTS

    if isinstance(thing, str) and thing in BASE_WEIGHTS:
        return BASE_WEIGHTS[thing]()
    if isinstance(thing, BaseWeightsEstimator):
        copy: BaseWeightsEstimator = clone(thing)
        return copy
    if not isinstance(thing, str | type):  # a class has the methods too, but cannot be fitted
        if isinstance(thing, BaseWeights):
            return thing
        if callable(thing):
            check_takes_rows(thing, "base_weights")
            return FunctionBaseWeights(thing)
    raise InvalidInputError(
        Argument("base_weights"),
        f" must be one of {sorted(BASE_WEIGHTS)}, an object such as LabelShift(), or a function of (X, y) "
        f"that gives a positive weight for each row; got {thing!r}.",
    )
