"""Directions that a metric's errors often follow: the label, the metric's columns, and where a row lies."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.linalg import eigh
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.utils.validation import check_is_fitted

from moew._util.checks import at_least, refusing
from moew._util.numbers import level
from moew._util.state import Loads, State, each, has_state, or_none, pack_array, packed, unpack_array
from moew._util.threads import one_blas_thread
from moew.data import (
    Column,
    TabularEncoder,
    are_numbers,
    columns_from,
    encode,
    in_order,
    is_missing,
    label_levels,
    label_positions,
    number_labels,
    plain,
    without_columns,
)
from moew.embedding._base import BaseEmbedding, check_lengths, needed_columns, of_as_many
from moew.types import Columns, Features, FloatArray, IntArray, Labels, Task

_CLIP = 4.0  # standard deviations: a row further out must not dominate the weights
_MOST_LEVELS = 10  # of a column of the metric: each level is a dimension
_MOST_ROWS = 20_000  # that the linear functions are fitted on: more take time and add little
_SKEWED = 1.0  # skewness from which positive numbers are taken by their logarithm
_BLOCK_ROWS = 1024
_HUGE = 1e300  # constant targets have no finite deviation, which JSON could not hold
_SPECK = 1e-10  # what varies by less than this share of its largest value is constant up to rounding

_Linear = tuple[FloatArray, FloatArray]  # K linear functions of encoded rows: coefs (K, D), intercepts (K,)


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
        return {name: packed(value) for name, value in vars(self).items()}

    @classmethod
    def from_state(cls, state: State) -> Self:
        scale = None if state["scale"] is None else _Scale.from_state(state["scale"])
        return cls(state["name"], state["numeric"], tuple(state["levels"]), scale)


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
    _learned: ClassVar[Loads] = {
        "task_": str,
        "levels_": list,  # the classes; none in regression
        "target_": or_none(_Scale.from_state),
        "row_columns_": each(_RowColumn.from_state),
        "encoder_": or_none(TabularEncoder.from_state),
        "coef_": unpack_array,  # of the discriminant, then of the components
        "intercept_": unpack_array,
        "n_discriminant_": int,
        "scales_": each(_Scale.from_state),
        "floor_": float,  # added to errors before their logarithm is taken
        "kept_": list,  # the dimensions that varied on the training rows
        "n_label_": int,
    }

    n_label_: int
    kept_: Any  # places

    def __init__(self, n_components: int = 2) -> None:
        self.n_components = n_components

    def _learn_scale(self, raw: FloatArray, y: Labels, task: Task) -> Self:
        """Leave out what is constant on the training rows."""
        varies = np.ptp(raw, axis=0) > _SPECK * np.abs(raw).max(axis=0)
        varies[: self.n_label_] = True  # there is always a dimension, if only of zeros
        self.kept_ = np.flatnonzero(varies).tolist()
        return super()._learn_scale(raw[:, self.kept_], y, task)

    def _learn(self, X: Features, y: Labels, task: Task, columns: Columns | None = None) -> None:
        at_least(0).check("n_components", self.n_components)
        self.kept_ = slice(None)  # all, until it is known which ones vary
        self.task_, self.levels_, self.target_ = task, [], None
        if task == "classification":
            self.levels_ = label_levels(y)
        else:
            targets = number_labels(y)
            self.target_ = _Scale.of(targets, "log" if targets.min() > 0 else "")
        self.n_label_ = len(self.levels_) if len(self.levels_) > 2 else 1
        given = check_lengths(columns_from(columns, None, ()), len(y))
        described = [_described(name, values) for name, values in given.items()]
        self.row_columns_ = [column for column in described if column is not None]
        self._learn_features(X, y)

    def _learn_features(self, X: Features, y: Labels) -> None:
        self.encoder_, (self.coef_, self.intercept_) = None, _no_functions(0)
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
        self.n_discriminant_ = len(discriminant[1])
        self.coef_ = np.vstack([discriminant[0], components[0]])
        self.intercept_ = np.concatenate([discriminant[1], components[1]])
        self.scales_ = [_Scale.of(values) for values in self._far(encoded, positions, y)]

    def _embed(self, X: Features, y: Labels, columns: Columns | None = None) -> FloatArray:
        positions = self._positions(y)
        label = self._label(y, positions)
        parts = [*label, *self._of_columns(X, len(y), columns, label[0])]
        if self.encoder_ is not None:
            raw = self._far(self._encoded(X, len(y)), positions, y)
            far = [scale(values) for scale, values in zip(self.scales_, raw, strict=True)]
            if len(self.levels_) == 2 and self.n_discriminant_:
                far.insert(1, far[0] * label[0])
            parts += far
        return np.column_stack(parts)[:, self.kept_]

    @property
    def wanted_columns(self) -> tuple[str, ...]:
        """The names of the columns that a fitted embedding needs, of X or beside it."""
        return tuple(column.name for column in getattr(self, "row_columns_", ()))

    @property
    def dimension_names(self) -> list[str]:
        """What each dimension is about, such as "class 1" or "cost × class 1"."""
        check_is_fitted(self)
        n_classes = len(self.levels_)
        shown = self.levels_ if n_classes > 2 else self.levels_[-1:]
        names = [f"class {level(value)}" for value in shown] or ["target"]
        by_class = f" × {names[0]}" if n_classes == 2 else ""
        for column in self.row_columns_:
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
            n_components = len(self.intercept_) - self.n_discriminant_
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
        self, X: Features, n_rows: int, columns: Columns | None, sign: FloatArray
    ) -> list[FloatArray]:
        given = needed_columns(self.wanted_columns, columns, X, n_rows)
        parts: list[FloatArray] = []
        for column in self.row_columns_:
            dims = column.dims(given[column.name])
            parts += dims
            if len(self.levels_) == 2:
                parts += [dim * sign for dim in dims]
        return parts

    def _encoded(self, X: Features, n_rows: int) -> FloatArray:
        """X as numbers (n, D), without columns that only the metric has."""
        assert self.encoder_ is not None
        features = without_columns(X, self.encoder_.names_, self.wanted_columns)
        return of_as_many(self.encoder_.transform(features), n_rows)

    def _far(self, encoded: FloatArray, positions: IntArray, y: Labels) -> list[FloatArray]:
        """How far each row is, not standardised: by the discriminant, and along the components."""
        values = _linear_values(self.coef_, self.intercept_, encoded)
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


def _no_functions(n_columns: int) -> _Linear:
    return np.empty((0, n_columns)), np.empty(0)


def _linear_values(coef: FloatArray, intercept: FloatArray, encoded: FloatArray) -> FloatArray:
    """The values (K, n) of K linear functions on rows (n, D)."""
    values = np.empty((len(coef), len(encoded)))
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(encoded), _BLOCK_ROWS):
            block = np.ascontiguousarray(encoded[start : start + _BLOCK_ROWS].T)
            total = np.repeat(intercept[:, None], block.shape[1], axis=1)
            # Summed column by column: the last digits of a matrix product depend on how many rows it
            # has, and a row's weight must not depend on the rows that come with it.
            for of_column, column in zip(coef.T, block, strict=True):
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
    held = f"the column {name!r} held numbers in the training rows, but now"
    with refusing(lambda error: f"{held}: {error}.", "columns"):
        return np.asarray(np.where(is_missing(values), np.nan, values), dtype=np.float64)


def _some_rows(codes: IntArray) -> IntArray:
    """The numbers of about `_MOST_ROWS` rows, evenly spaced in each class, so that no class is lost."""
    if len(codes) <= _MOST_ROWS:
        return np.arange(len(codes))
    some = []
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        most = min(len(rows), max(2, round(_MOST_ROWS / len(codes) * len(rows))))
        some.append(rows[np.arange(most) * len(rows) // most])
    return np.sort(np.concatenate(some))


def _discriminant(encoded: FloatArray, codes: IntArray, n_classes: int) -> _Linear:
    """The score of the second of two classes, or a score for each class, from rows (n, D)."""
    if not 1 < n_classes < len(codes):
        return _no_functions(encoded.shape[1])
    analysis = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class of one row has no covariance, and needs none
        analysis.fit(encoded, codes)
    return np.asarray(analysis.coef_), np.asarray(analysis.intercept_)


def _ridge(encoded: FloatArray, targets: FloatArray) -> _Linear:
    """A ridge regression of the targets (n,) on standardised rows (n, D), as a function of the rows."""
    centre, spread = encoded.mean(axis=0), encoded.std(axis=0)
    varies = spread > _SPECK * np.abs(encoded).max(axis=0, initial=0.0)
    mean, deviation = _centre_and_spread(targets)
    if not varies.any() or np.isinf(deviation):
        return _no_functions(encoded.shape[1])
    spread = np.where(varies, spread, np.inf)
    ridge = Ridge().fit((encoded - centre) / spread, targets / deviation - mean / deviation)
    coef = deviation * ridge.coef_ / spread
    return coef[None, :], np.array([mean + deviation * ridge.intercept_ - centre @ coef])


def _principal_components(encoded: FloatArray, n_components: int) -> _Linear:
    """The first principal components of rows (n, D), centred; each one's largest loading is positive."""
    n, D = encoded.shape
    centre = encoded.mean(axis=0)
    rows = encoded - centre
    n_components = min(n_components, n, D)
    if n_components == 0:
        return _no_functions(D)
    # Singular vectors by the smaller of the two Gram matrices, of which only the first are computed.
    gram = rows.T @ rows if n >= D else rows @ rows.T
    size = len(gram)
    strength, vectors = eigh(gram, subset_by_index=[size - n_components, size - 1])
    strength, vectors = strength[::-1], vectors[:, ::-1]
    there = strength > _SPECK * max(float(np.trace(gram)), float(np.finfo(np.float64).tiny))
    directions = vectors[:, there].T if n >= D else (vectors[:, there] / np.sqrt(strength[there])).T @ rows
    largest = np.abs(directions).argmax(axis=1)
    coef = directions * np.sign(directions[np.arange(len(directions)), largest])[:, None]
    return coef, -(coef @ centre)


def _own_log_probability(scores: FloatArray, positions: IntArray) -> FloatArray:
    """The log-probability (n,) of each row's own class, from −10 to 0, by scores (C, n)."""
    with np.errstate(invalid="ignore"):
        below = scores - scores.max(axis=0)
        total = np.zeros(len(positions))
        for of_class in below:  # in order: NumPy's own sum depends on the number of rows
            total += np.exp(of_class)
        own = below[positions, np.arange(len(positions))] - np.log(total)
    return np.asarray(np.clip(np.nan_to_num(own, nan=0.0), -10.0, 0.0))
