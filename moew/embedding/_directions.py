"""Directions that a metric's errors often follow: the label, the metric's columns, and where a row lies."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from scipy.linalg import eigh
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.utils.validation import check_is_fitted

from moew._util.numbers import level
from moew._util.state import State, has_state, pack_array, unpack_array
from moew._util.threads import one_blas_thread
from moew.data import TabularEncoder, is_missing, label_levels, label_positions, number_labels
from moew.data._columns import Column, are_numbers, encode, in_order, plain
from moew.data._rows import columns_from, without_columns
from moew.embedding._base import BaseEmbedding
from moew.exceptions import InPython, InvalidInputError
from moew.types import Columns, FloatArray, IntArray, Labels, Rows, Task

_CLIP = 4.0  # standard deviations: a row further out must not dominate the weights
_MOST_LEVELS = 10  # of a column of the metric: each level is a dimension
_MOST_ROWS = 20_000  # that the linear functions are fitted on: more take time and add little
_SKEWED = 1.0  # skewness from which positive numbers are taken by their logarithm
_BLOCK_ROWS = 1024
_HUGE = 1e300  # constant targets have no finite deviation, which JSON could not hold
_SPECK = 1e-10  # what varies by less than this share of its largest value is constant up to rounding


@has_state
class DirectionsEmbedding(BaseEmbedding):
    """Embeds by the label, the metric's columns, a linear discriminant and principal components.

    The dimensions are, in this order:

    - the label: +1 and −1 for two classes, √(C/2)·(1[y = c] − 1/C) for each c of C > 2 classes. In
      regression the standardised target; its logarithm if all targets are positive and skewed.
    - the columns of the metric, such as `group` or `cost`. One of two values is +1 or −1, one of up to ten
      values has a centred dimension for each, numbers are standardised (by log(1 + v) if none is negative
      and they are skewed). With two classes, each dimension is followed by its product with the label.
      Columns of more than ten texts, and of whole numbers that are different in every row, as identifiers
      are, are left out. A missing or unknown value gives zeros.
    - the discriminant. Two classes: the score s of a linear discriminant analysis, and s times the label.
      More classes: the log-probability that it gives to the row's own class. Regression: the prediction s of
      a ridge regression, and ``log(|y − s| + 0.1·std(y))``.
    - the first `n_components` principal components of X, fewer if X has no more.

    All but the label and categories are standardised over the training rows and clipped at ±4. Dimensions
    that are constant on the training rows are left out. Of more than 20,000 training rows, that many, evenly
    spaced, are taken to learn discriminant and components. Without X (None), and with sparse X, there are
    only label and columns.

    Attributes
    ----------
    label_dims_ : tuple of int, the dimensions of the label itself

    Examples
    --------
    >>> X, y, group = [[0.0], [1.0], [2.0], [5.0]], [0, 0, 1, 1], ["a", "b", "a", "b"]
    >>> embedding = DirectionsEmbedding().fit(X, y, task="classification", columns={"group": group})
    >>> embedding.transform(X, y, columns={"group": group})[:, :3]  # label, group, label times group
    array([[-1., -1.,  1.],
           [-1.,  1., -1.],
           [ 1., -1., -1.],
           [ 1.,  1.,  1.]])
    """

    takes_columns = True
    standardize = False  # each dimension has its scale already

    task_: Task
    levels_: list[Any]  # the classes; none in regression
    target_: _Scale | None
    columns_: list[_RowColumn]
    encoder_: TabularEncoder | None
    linear_: _Linear  # the discriminant, then the components
    n_discriminant_: int
    floor_: float  # added to errors before their logarithm is taken
    scales_: list[_Scale]

    def __init__(self, n_components: int = 2) -> None:
        self.n_components = n_components

    def fit(self, X: Rows, y: Labels, *, task: Task, columns: Columns | None = None) -> Self:
        """Learn from the n training rows; `columns` are those of the metric, name → (n,)."""
        self._check_task(task)
        self._learn(X, y, task, columns)
        raw = self._raw(X, y, columns)
        varies = np.ptp(raw, axis=0) > _SPECK * np.abs(raw).max(axis=0)
        varies[list(self.label_dims_)] = True  # there is always a dimension, if only of zeros
        self.kept_ = np.flatnonzero(varies)
        return self._learn_scale(raw[:, self.kept_], y, task)

    def transform(self, X: Rows, y: Labels, columns: Columns | None = None) -> FloatArray:
        """Z (n, d) of any rows; columns that are not passed are taken from X if it is a data frame."""
        check_is_fitted(self)
        return self._scaled(self._embed(X, y, columns), len(y))

    def _learn(self, X: Rows, y: Labels, task: Task, columns: Columns | None = None) -> None:
        if not isinstance(self.n_components, int | np.integer) or self.n_components < 0:
            raise InvalidInputError(
                f"n_components must be a whole number of 0 or more, got {self.n_components!r}.",
                argument="n_components",
            )
        self.task_, self.levels_, self.target_ = task, [], None
        if task == "classification":
            self.levels_ = label_levels(y)
        else:
            targets = number_labels(y)
            self.target_ = _Scale.of(targets, "log" if targets.min() > 0 else "")
        self.label_dims_ = tuple(range(len(self.levels_) if len(self.levels_) > 2 else 1))
        self._learn_columns(columns_from(columns, None, ()), len(y))
        self._learn_features(X, y)

    def _learn_columns(self, columns: Columns, n_rows: int) -> None:
        _check_lengths(columns, n_rows)
        described = [_described(name, values) for name, values in columns.items()]
        self.columns_ = [column for column in described if column is not None]

    def _learn_features(self, X: Rows, y: Labels) -> None:
        self.encoder_, self.linear_ = None, _Linear(np.empty((0, 0)), np.empty(0))
        self.n_discriminant_, self.floor_, self.scales_ = 0, 0.0, []
        if X is None or hasattr(X, "tocsr"):
            return
        self.encoder_ = TabularEncoder().fit(X)
        encoded = self._encoded(X, len(y))
        positions = self._positions(y)
        with one_blas_thread():
            few = _some_rows(positions)
            if self.task_ == "classification":
                discriminant = _discriminant(encoded[few], positions[few], len(self.levels_))
            else:
                targets = number_labels(y)
                discriminant = _ridge(encoded[few], targets[few])
                self.floor_ = 0.1 * min(_centre_and_spread(targets)[1], _HUGE)
            components = _principal_components(encoded[few], int(self.n_components))
        self.n_discriminant_ = len(discriminant.intercept)
        self.linear_ = discriminant.above(components)
        self.scales_ = [_Scale.of(values) for values in self._far(encoded, positions, y)]

    def _embed(self, X: Rows, y: Labels, columns: Columns | None = None) -> FloatArray:
        return self._raw(X, y, columns)[:, self.kept_]

    def _raw(self, X: Rows, y: Labels, columns: Columns | None) -> FloatArray:
        """All dimensions (n, m), also those that were constant on the training rows."""
        positions = self._positions(y)
        label = self._label(y, positions)
        parts = [*label, *self._of_columns(X, len(y), columns, label[0])]
        if self.encoder_ is not None:
            encoded = self._encoded(X, len(y))
            far = [
                scale(values)
                for scale, values in zip(self.scales_, self._far(encoded, positions, y), strict=True)
            ]
            if len(self.levels_) == 2 and self.n_discriminant_:
                far.insert(1, far[0] * label[0])
            parts += far
        return np.column_stack(parts)

    @property
    def dimension_names(self) -> list[str]:
        """What each dimension is about, such as "class 1" or "cost × class 1"."""
        check_is_fitted(self)
        n_classes = len(self.levels_)
        shown = self.levels_ if n_classes > 2 else self.levels_[-1:]
        names = [f"class {level(value)}" for value in shown] or ["target"]
        by_class = f" × {names[0]}" if n_classes == 2 else ""
        for column in self.columns_:
            of_column = column.dimension_names()
            names += of_column
            names += [f"{name}{by_class}" for name in of_column] if by_class else []
        if self.encoder_ is not None:
            if self.n_discriminant_ and self.task_ == "regression":
                names += ["linear prediction", "distance from the linear prediction"]
            elif self.n_discriminant_ and n_classes > 2:
                names += ["how typical of its class"]
            elif self.n_discriminant_:
                names += ["linear score", f"linear score{by_class}"]
            n_components = len(self.linear_.intercept) - self.n_discriminant_
            names += [f"principal component {k + 1}" for k in range(n_components)]
        return [names[k] for k in self.kept_]

    def _positions(self, y: Labels) -> IntArray:
        """The class of each row (n,) as its index; zeros in regression."""
        if self.task_ == "regression":
            return np.zeros(len(y), dtype=np.intp)
        return label_positions(y, self.levels_)

    def _label(self, y: Labels, positions: IntArray) -> list[FloatArray]:
        if self.target_ is not None:
            return [self.target_(number_labels(y))]
        n_classes = len(self.levels_)
        if n_classes == 1:
            return [np.zeros(len(positions))]
        if n_classes == 2:
            return [2.0 * positions - 1.0]
        return [_centred(positions == c, n_classes) for c in range(n_classes)]

    def _of_columns(
        self, X: Rows, n_rows: int, columns: Columns | None, sign: FloatArray
    ) -> list[FloatArray]:
        given = columns_from(columns, X, [column.name for column in self.columns_])
        if missing := [column.name for column in self.columns_ if column.name not in given]:
            raise InvalidInputError(
                f"the weights depend on {', '.join(map(repr, missing))} of each row, as in training, and "
                "these rows do not have it",
                InPython(": pass metadata={name: values}, or a data frame X with a column of that name"),
                ".",
                argument="metadata",
            )
        _check_lengths({column.name: given[column.name] for column in self.columns_}, n_rows)
        parts: list[FloatArray] = []
        for column in self.columns_:
            dims = column.dims(given[column.name])
            parts += dims
            if len(self.levels_) == 2:
                parts += [dim * sign for dim in dims]
        return parts

    def _encoded(self, X: Rows, n_rows: int) -> FloatArray:
        """X as numbers (n, D), without columns that only the metric has."""
        if self.encoder_ is None:
            raise InvalidInputError("the embedding was fitted without X.", argument="X")
        features = without_columns(X, self.encoder_.names_, [column.name for column in self.columns_])
        encoded = self.encoder_.transform(features)
        if len(encoded) != n_rows:
            raise InvalidInputError(
                f"X has {len(encoded)} rows and y has {n_rows}; they must be the same.", argument="y"
            )
        return encoded

    def _far(self, encoded: FloatArray, positions: IntArray, y: Labels) -> list[FloatArray]:
        """How far each row is, not standardised: by the discriminant, and along the components."""
        values = self.linear_(encoded)
        discriminant, components = values[: self.n_discriminant_], list(values[self.n_discriminant_ :])
        if len(discriminant) == 0:
            return components
        if self.task_ == "regression":
            with np.errstate(over="ignore"):
                error = np.abs(number_labels(y) - discriminant[0])
            return [discriminant[0], np.log(error + self.floor_), *components]
        if len(self.levels_) > 2:
            return [_own_log_probability(discriminant, positions), *components]
        return [discriminant[0], *components]

    def _fitted_content(self) -> State:
        return {
            "task": self.task_,
            "levels": self.levels_,
            "target": None if self.target_ is None else self.target_.state(),
            "row_columns": [column.state() for column in self.columns_],
            "encoder": None if self.encoder_ is None else self.encoder_.state(),
            "coef": pack_array(self.linear_.coef),
            "intercept": pack_array(self.linear_.intercept),
            "n_discriminant": self.n_discriminant_,
            "scales": [scale.state() for scale in self.scales_],
            "floor": self.floor_,
            "kept": self.kept_.tolist(),
            "n_label": len(self.label_dims_),
        }

    def _restore(self, content: State, objects: Mapping[str, Any]) -> None:
        target, encoder = content["target"], content["encoder"]
        self.task_, self.levels_ = content["task"], content["levels"]
        self.target_ = None if target is None else _Scale.from_state(target)
        self.columns_ = [_RowColumn.from_state(column) for column in content["row_columns"]]
        self.encoder_ = None if encoder is None else TabularEncoder.from_state(encoder)
        self.linear_ = _Linear(unpack_array(content["coef"]), unpack_array(content["intercept"]))
        self.n_discriminant_ = content["n_discriminant"]
        self.scales_ = [_Scale.from_state(scale) for scale in content["scales"]]
        self.floor_ = content["floor"]
        self.kept_ = np.array(content["kept"], dtype=np.intp)
        self.label_dims_ = tuple(range(content["n_label"]))


@dataclass(frozen=True)
class _Scale:
    """Standardises numbers (n,) by the training rows, perhaps after a logarithm, and clips them at ±4."""

    offset: float
    spread: float  # infinite for constant numbers, which become zeros
    log: Literal["", "log", "log1p"] = ""

    @classmethod
    def of(cls, values: FloatArray, log: Literal["", "log", "log1p"] = "") -> Self:
        """Learn from the training rows; `log` is the logarithm to take if the numbers are skewed."""
        seen = values[np.isfinite(values)]
        plain_scale = cls(*_centre_and_spread(seen))
        if not log or not np.isfinite(plain_scale.spread):
            return plain_scale
        if np.mean(((seen - plain_scale.offset) / plain_scale.spread) ** 3) <= _SKEWED:
            return plain_scale
        return cls(*_centre_and_spread(_logarithm(seen, log)), log)

    def __call__(self, values: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            z = (_logarithm(values, self.log) - self.offset) / self.spread
        return np.asarray(np.clip(np.nan_to_num(z, nan=0.0), -_CLIP, _CLIP))

    def state(self) -> State:
        # Packed, because JSON has no infinity.
        return {"scale": pack_array(np.array([self.offset, self.spread])), "log": self.log}

    @classmethod
    def from_state(cls, state: State) -> Self:
        offset, spread = unpack_array(state["scale"]).tolist()
        return cls(offset, spread, state["log"])


@dataclass(frozen=True)
class _RowColumn:
    """How a column of the metric becomes dimensions: by its levels, or by its scale if it has none."""

    name: str
    numeric: bool
    levels: tuple[Any, ...] = ()
    scale: _Scale | None = None

    def dims(self, values: Any) -> list[FloatArray]:
        """The dimensions, each (n,), of a column's values (n,)."""
        known = _numbers(self.name, values) if self.numeric else values
        if self.scale is not None:
            return [self.scale(known)]
        hot = encode(Column("categorical", self.levels), self.name, known)
        if len(hot) == 2:
            return [hot[1] - hot[0]]
        there = np.sum(hot, axis=0)  # 0 for a missing or unknown value, whose dimensions are zero
        return [_centred(of_level, len(hot)) * there for of_level in hot]

    def dimension_names(self) -> list[str]:
        """The column's name, or one for each level."""
        if self.scale is not None:
            return [self.name]
        levels = self.levels[1:] if len(self.levels) == 2 else self.levels
        return [f"{self.name} = {level(value)}" for value in levels]

    def state(self) -> State:
        return {
            "name": self.name,
            "numeric": self.numeric,
            "levels": list(self.levels),
            "scale": None if self.scale is None else self.scale.state(),
        }

    @classmethod
    def from_state(cls, state: State) -> Self:
        scale = None if state["scale"] is None else _Scale.from_state(state["scale"])
        return cls(state["name"], state["numeric"], tuple(state["levels"]), scale)


@dataclass(frozen=True)
class _Linear:
    """K linear functions of encoded rows: `coef` (K, D) and `intercept` (K,)."""

    coef: FloatArray
    intercept: FloatArray

    def above(self, other: _Linear) -> _Linear:
        """These functions, then those of `other`."""
        return _Linear(np.vstack([self.coef, other.coef]), np.concatenate([self.intercept, other.intercept]))

    def __call__(self, encoded: FloatArray) -> FloatArray:
        """The values (K, n) of rows (n, D)."""
        values = np.empty((len(self.coef), len(encoded)))
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(encoded), _BLOCK_ROWS):
                block = np.ascontiguousarray(encoded[start : start + _BLOCK_ROWS].T)
                total = np.repeat(self.intercept[:, None], block.shape[1], axis=1)
                # Summed column by column: the last digits of a matrix product depend on how many rows it
                # has, and a row's weight must not depend on the rows that come with it.
                for of_column, column in zip(self.coef.T, block, strict=True):
                    total += of_column[:, None] * column
                values[:, start : start + _BLOCK_ROWS] = total
        return values


def _centred(hot: Any, n_levels: int) -> FloatArray:
    return np.asarray(np.sqrt(n_levels / 2) * (np.asarray(hot, dtype=np.float64) - 1 / n_levels))


def _centre_and_spread(values: FloatArray) -> tuple[float, float]:
    """Mean and standard deviation of finite values (n,); the deviation of constant ones is infinite."""
    top = float(np.abs(values).max(initial=0.0))
    if top == 0:
        return 0.0, np.inf
    share = values / top  # so that no sum overflows
    mean, spread = float(share.mean()), float(share.std())
    return mean * top, spread * top if spread > _SPECK and spread * top > 0 else np.inf


def _logarithm(values: FloatArray, log: str) -> FloatArray:
    """The logarithm of numbers that were positive in training; others become the lowest there is."""
    if log == "log":
        return np.log(np.maximum(values, np.finfo(np.float64).tiny))
    return np.log1p(np.maximum(values, 0.0)) if log == "log1p" else values


def _described(name: str, values: Any) -> _RowColumn | None:
    """How the training rows' column becomes dimensions; None if it is left out."""
    seen = values[~is_missing(values)]
    if are_numbers(seen, is_category=False):
        numbers = _numbers(name, seen)
        numbers = numbers[np.isfinite(numbers)]
        distinct = np.unique(numbers)
        if len(distinct) <= _MOST_LEVELS:
            return _RowColumn(name, True, tuple(distinct.tolist())) if len(distinct) > 1 else None
        if len(distinct) == len(numbers) and seen.dtype.kind in "iu":
            return None  # an identifier of the row
        scale = _Scale.of(numbers, "log1p" if numbers.min() >= 0 else "")
        return _RowColumn(name, True, scale=scale) if np.isfinite(scale.spread) else None
    levels = in_order({plain(value) for value in seen})
    return _RowColumn(name, False, levels) if 2 <= len(levels) <= _MOST_LEVELS else None


def _numbers(name: str, values: Any) -> FloatArray:
    """The values (n,) as float64, NaN for missing ones."""
    try:
        return np.asarray(np.where(is_missing(values), np.nan, values), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"the column {name!r} held numbers in the training rows, but now: {error}.", argument="metadata"
        ) from error


def _check_lengths(columns: Columns, n_rows: int) -> None:
    for name, values in columns.items():
        if len(values) != n_rows:
            raise InvalidInputError(
                f"the column {name!r} has {len(values)} values for {n_rows} rows; they must be the same.",
                argument="metadata",
            )


def _evenly(rows: IntArray, most: int) -> IntArray:
    """At most `most` of the rows, evenly spaced."""
    return rows if len(rows) <= most else rows[np.arange(most) * len(rows) // most]


def _some_rows(codes: IntArray) -> IntArray:
    """The numbers of about `_MOST_ROWS` rows, evenly spaced in each class, so that no class is lost."""
    if len(codes) <= _MOST_ROWS:
        return np.arange(len(codes))
    share = _MOST_ROWS / len(codes)
    of_class = [np.flatnonzero(codes == code) for code in np.unique(codes)]
    return np.sort(np.concatenate([_evenly(rows, max(2, round(share * len(rows)))) for rows in of_class]))


def _discriminant(encoded: FloatArray, codes: IntArray, n_classes: int) -> _Linear:
    """The score of the second of two classes, or a score for each class, from rows (n, D)."""
    if not 1 < n_classes < len(codes):
        return _Linear(np.empty((0, encoded.shape[1])), np.empty(0))
    analysis = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class of one row has no covariance, and needs none
        analysis.fit(encoded, codes)
    return _Linear(np.asarray(analysis.coef_), np.asarray(analysis.intercept_))


def _ridge(encoded: FloatArray, targets: FloatArray) -> _Linear:
    """A ridge regression of the targets (n,) on standardised rows (n, D), as a function of the rows."""
    centre, spread = encoded.mean(axis=0), encoded.std(axis=0)
    varies = spread > _SPECK * np.abs(encoded).max(axis=0, initial=0.0)
    mean, deviation = _centre_and_spread(targets)
    if not varies.any() or np.isinf(deviation):
        return _Linear(np.empty((0, encoded.shape[1])), np.empty(0))
    spread = np.where(varies, spread, np.inf)
    ridge = Ridge().fit((encoded - centre) / spread, targets / deviation - mean / deviation)
    coef = deviation * ridge.coef_ / spread
    return _Linear(coef[None, :], np.array([mean + deviation * ridge.intercept_ - centre @ coef]))


def _principal_components(encoded: FloatArray, n_components: int) -> _Linear:
    """The first principal components of rows (n, D), centred; each one's largest loading is positive."""
    n, D = encoded.shape
    centre = encoded.mean(axis=0)
    rows = encoded - centre
    n_components = min(n_components, n, D)
    if n_components == 0:
        return _Linear(np.empty((0, D)), np.empty(0))
    # Singular vectors by the smaller of the two Gram matrices, of which only the first are computed.
    gram = rows.T @ rows if n >= D else rows @ rows.T
    size = len(gram)
    strength, vectors = eigh(gram, subset_by_index=[size - n_components, size - 1])
    strength, vectors = strength[::-1], vectors[:, ::-1]
    there = strength > _SPECK * max(float(np.trace(gram)), float(np.finfo(np.float64).tiny))
    directions = vectors[:, there].T if n >= D else (vectors[:, there] / np.sqrt(strength[there])).T @ rows
    largest = np.abs(directions).argmax(axis=1)
    coef = directions * np.sign(directions[np.arange(len(directions)), largest])[:, None]
    return _Linear(coef, -(coef @ centre))


def _own_log_probability(scores: FloatArray, positions: IntArray) -> FloatArray:
    """The log-probability (n,) of each row's own class, from −10 to 0, by scores (C, n)."""
    with np.errstate(invalid="ignore"):
        below = scores - scores.max(axis=0)
        total = np.zeros(len(positions))
        for of_class in below:  # in order: NumPy's own sum depends on the number of rows
            total += np.exp(of_class)
        own = below[positions, np.arange(len(positions))] - np.log(total)
    return np.asarray(np.clip(np.nan_to_num(own, nan=0.0), -10.0, 0.0))
