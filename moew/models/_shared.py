"""Shared by estimators that train many weightings at once: their base, order of mini-batches, memory size."""

from __future__ import annotations

import gc
import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    assert_all_finite,
    check_array,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from moew._util.seeds import draw_seed
from moew.data import TabularEncoder, centre_and_spread
from moew.exceptions import InvalidInputError, MissingLibraryError, TrainingDivergedError
from moew.types import Features, FloatArray, IntArray, Labels

_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
BATCH_SEED = 0  # not the candidate's: all candidates see the same mini-batches, as in the paper's programs


def jax_is_missing(what: str, argument: str | None = None) -> MissingLibraryError:
    """The error where `what` needs JAX and it is not installed."""
    return MissingLibraryError(
        f"{what} need JAX, which is not installed: pip install 'moew[networks]'.", argument=argument
    )


class ManyEstimator(BaseEstimator):
    """Base of the estimators that train one model for each of many example weightings, on encoded rows."""

    _attribute: ClassVar[str]  # where a fitted estimator has what training gave
    _rate: ClassVar[str]  # what to lower where training diverges

    scale: bool
    random_state: Any
    encoder_: TabularEncoder
    n_features_in_: int

    def fit(self, X: Features, y: Labels, sample_weight: Any = None) -> Self:
        """Train one model on X (n, columns) and y (n,), with `sample_weight` (n,) where given."""
        plan = self._prepare(X, y)
        given = 1.0 if sample_weight is None else sample_weight
        weights = _check_sample_weight(given, y, dtype=np.float64)[None]
        for problem in self._weight_problems(weights).values():
            raise problem
        (trained,) = self._train(plan, weights, [draw_seed(self.random_state)], alone=True)
        if not self._is_finite(trained):
            raise self._diverged()
        setattr(self, self._attribute, trained)
        return self

    def fit_many(
        self, X: Features, y: Labels, weights: FloatArray, seeds: Sequence[int | None]
    ) -> Iterator[tuple[int, Any]]:
        """Train one model for each of the K weightings (K, n); yield (k, fitted copy) in order.

        The initial parameters come from seeds[k] (None: from the estimator's own `random_state`), and all
        models have the same mini-batches (and dropout masks). So model k depends on weights[k] and seeds[k]
        only, whatever is trained with it, and is the one that `fit` gives with `random_state=seeds[k]`:
        networks bit for bit, PyTorch modules up to rounding. Where weights cannot be used or training
        diverges, the exception comes in place of the copy. PyTorch modules and optimisers that cannot be
        trained at once are trained one after the other, with a warning that says why.
        """
        template = clone(self)
        plan = template._prepare(X, y)
        matrix = np.asarray(weights, dtype=np.float64)
        if matrix.shape != (len(seeds), len(y)):
            raise InvalidInputError(
                f"weights must have shape (K, n), a row for each of the {len(seeds)} seeds and a column for "
                f"each of the {len(y)} training rows; got {matrix.shape}."
            )
        return self._train_many(template, plan, matrix, seeds)

    def _train_many(
        self, template: Self, plan: Any, weights: FloatArray, seeds: Sequence[int | None]
    ) -> Iterator[tuple[int, Any]]:
        problems = self._weight_problems(weights)
        good = [k for k in range(len(seeds)) if k not in problems]
        drawn = [draw_seed(self.random_state if seeds[k] is None else seeds[k]) for k in good]
        usable = weights[good] if problems else weights  # not copied without need
        trained = template._train(plan, usable, drawn) if good else iter(())
        try:
            for k, seed in enumerate(seeds):
                if k in problems:
                    yield k, problems[k]
                    continue
                one = next(trained)
                yield k, template._copy_with(one, seed) if self._is_finite(one) else self._diverged()
        finally:
            # JAX uses NumPy arrays without a copy, and releases one it no longer needs only at its next call
            # or at a garbage collection. The rows of the next batch are encoded before that, so both would be
            # in memory.
            del plan, trained
            gc.collect(0)

    def _prepare(self, X: Features, y: Labels) -> Any:
        """Check all that can be checked before training, and fit the encoders; what `_train` needs."""
        self._check_settings()
        rows, labels = _check_rows_and_labels(self, X, y)
        targets = self._learn_targets(labels)
        self.encoder_ = TabularEncoder(scale=self.scale).fit(rows)
        return self._plan(rows, targets)

    def _copy_with(self, trained: Any, seed: int | None) -> Self:
        """A fitted copy of this template, whose encoders are already fitted."""
        copy = clone(self)
        fitted = {name: value for name, value in vars(self).items() if name.endswith("_")}
        vars(copy).update(fitted, **{self._attribute: trained})
        return copy if seed is None else copy.set_params(random_state=seed)  # type: ignore[no-any-return]

    def _weight_problems(self, weights: FloatArray) -> dict[int, InvalidInputError]:
        """What is wrong with the rows of weights (K, n) that cannot be used for training, by row."""
        wrong = {k: _what_is_wrong(row) for k, row in enumerate(weights)}
        return {k: InvalidInputError(said, argument="sample_weight") for k, said in wrong.items() if said}

    def _diverged(self) -> TrainingDivergedError:
        return TrainingDivergedError(
            f"training ended with parameters that are not finite; lower {self._rate}, or set scale=True."
        )

    @abstractmethod
    def _check_settings(self) -> None: ...

    @abstractmethod
    def _learn_targets(self, y: Labels) -> Any:
        """Labels (n,) as numbers (n,) to train on."""

    @abstractmethod
    def _plan(self, rows: Features, targets: Any) -> Any:
        """What `_train` needs to train on these rows and targets (n,)."""

    @abstractmethod
    def _train(
        self, plan: Any, weights: FloatArray, seeds: Sequence[int], alone: bool = False
    ) -> Iterator[Any]:
        """What training gives for each of the weights (K, n), in order; `alone`: for `fit`."""

    @staticmethod
    @abstractmethod
    def _is_finite(trained: Any, /) -> bool: ...

    @abstractmethod
    def _outputs(self, X: Features) -> FloatArray:
        """Linear outputs (n, C)."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class ManyClassifier(ClassifierMixin, ManyEstimator):
    """What classifiers of the networks and of PyTorch have in common."""

    def decision_function(self, X: Features) -> FloatArray:
        """Outputs: (n,) for two classes, positive for the second one; (n, C) for more."""
        out = self._outputs(X)
        if len(self.classes_) > 2:
            return out
        return out[:, 0] if out.shape[1] == 1 else np.asarray(out[:, 1] - out[:, 0])

    def predict(self, X: Features) -> Any:
        """The class (n,) with the largest output."""
        out = self.decision_function(X)
        chosen = (out > 0).astype(int) if out.ndim == 1 else out.argmax(axis=1)
        return self.classes_[chosen]

    def _learn_targets(self, y: Labels) -> IntArray:
        """Class numbers (n,)."""
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InvalidInputError(
                f"y holds one class only, {self.classes_.tolist()!r}; a classifier needs at least two.",
                argument="y",
            )
        return codes.astype(np.int64)


def probabilities(out: FloatArray) -> FloatArray:
    """Sigmoid or softmax (n, C) of a decision function, (n,) for two classes, (n, C) for more."""
    if out.ndim == 1:
        return np.column_stack([expit(-out), expit(out)])
    return np.asarray(softmax(out, axis=1))


class ManyRegressor(RegressorMixin, ManyEstimator):
    """What regressors of the networks and of PyTorch have in common."""

    def predict(self, X: Features) -> FloatArray:
        """Predictions (n,) in the units of y."""
        return self._outputs(X)[:, 0] * self.target_scale_ + self.target_offset_

    def _learn_targets(self, y: Labels) -> FloatArray:
        """Targets (n,), standardised where `scale` is set."""
        values = np.asarray(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"))
        self.target_offset_, self.target_scale_ = centre_and_spread("y", values) if self.scale else (0.0, 1.0)
        return (values - self.target_offset_) / self.target_scale_


def check_rows(estimator: Any, X: Features, *, reset: bool) -> Features:
    """Check X against the columns that `estimator` knows (with `reset`: note them); data frames stay so."""
    if hasattr(X, "columns"):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return X
    return validate_data(estimator, X, reset=reset, dtype="numeric", ensure_all_finite="allow-nan")


def _check_rows_and_labels(estimator: Any, X: Features, y: Labels) -> tuple[Features, Labels]:
    """X and y (n,) for training, checked: same length, at least one row."""
    rows = check_rows(estimator, X, reset=True)
    if y is None:
        raise InvalidInputError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None.", argument="y"
        )
    labels = column_or_1d(y, warn=True)
    check_consistent_length(rows, labels)
    if len(labels) < 1:
        raise InvalidInputError("X has no rows; at least one is needed to train.", argument="X")
    return rows, labels


def _what_is_wrong(weights: FloatArray) -> str | None:
    if not np.isfinite(weights).all():
        return "sample weights must be finite numbers; some are NaN or infinite."
    if (weights < 0).any():
        return f"sample weights must not be negative; the least is {weights.min():g}."
    return None if weights.any() else "all sample weights are zero; at least one must be positive."


def batch_rows(n: int, batch_size: int | None, steps: int, seed: int) -> NDArray[np.int32] | None:
    """The rows (steps, batch_size) of every mini-batch, or None where each step takes all n rows: they are
    shuffled, cut without replacement, and shuffled again when fewer than `batch_size` are left."""
    if batch_size is None or batch_size >= n:
        return None
    rng = np.random.default_rng([seed, n, batch_size])
    per_epoch = n // batch_size
    epochs = -(-steps // per_epoch)
    rows = np.empty((epochs, per_epoch * batch_size), dtype=np.int32)
    order = np.arange(n, dtype=np.int32)
    for epoch in rows:
        rng.shuffle(order)
        epoch[:] = order[: epoch.size]
    return rows.reshape(-1, batch_size)[:steps]


def machine_bytes() -> float:
    """Bytes of memory of this machine, or of the container of this process; infinite where unknown."""
    try:
        physical = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):  # not available on this system
        physical = float("inf")
    try:
        return min(physical, float(_CGROUP_LIMIT.read_text()))
    except (OSError, ValueError):  # no container, or "max"
        return physical
