"""Rows of any table as numbers: what embeddings, baselines and networks see of X and y.

Numeric columns are scaled, columns of yes and no (booleans, 0/1, −1/1, two texts) become 0/1, categories
one-hot. A missing number becomes the column's mean and raises a flag column; a missing or unknown category
is all zeros.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Self

import numpy as np

from moew.exceptions import InvalidInputError
from moew.numeric_rows import Column, Kind, encode_numbers, is_numeric_array
from moew.protocols import BoolArray, FloatArray, IntArray, Labels, Rows, Task
from moew.state import State

_MOST_LEVELS = 1000  # one-hot columns grow as rows times levels: beyond this they fill the memory


@dataclass(frozen=True)
class Block:
    """Which encoded columns, start to stop, stand for one original column, and how to compare them."""

    kind: Kind
    start: int
    stop: int


class TabularEncoder:
    """X of any kind → float64 (n, D). `scale=False` leaves numbers as they are."""

    def __init__(self, scale: bool = True) -> None:
        self.scale = scale

    def fit(self, X: Rows) -> Self:
        self.names_ = column_names(X)
        self.columns_ = [
            _learn(name, values, self.scale, is_category)
            for (name, values), is_category in zip(_columns(X), _marked_as_categories(X), strict=True)
        ]
        if not self.columns_:
            raise InvalidInputError("X has no columns; at least one feature is needed.")
        self.blocks_ = _blocks(self.columns_)
        return self

    def transform(self, X: Rows, dtype: type[np.floating[Any]] = np.float64) -> FloatArray:
        """X as numbers (n, D), computed with float64 and kept as `dtype`."""
        check_same_columns(X, self.names_, len(self.columns_), "the rows to encode")
        columns = _columns(X)
        encoded = _aligned(len(columns[0][1]), self.blocks_[-1].stop, np.dtype(dtype))
        if is_numeric_array(X) and all(column.kind != "categorical" for column in self.columns_):
            if (infinite := encode_numbers(self.columns_, np.asarray(X), encoded)) is not None:
                raise _infinite(columns[infinite][0])
            return encoded
        parts = (
            part
            for column, (name, values) in zip(self.columns_, columns, strict=True)
            for part in _encode(column, name, values)
        )
        for j, part in enumerate(parts):  # one at a time: all of them would take the memory once more
            encoded[:, j] = part
        return encoded

    def state(self) -> State:
        return {
            "scale": bool(self.scale),
            "names": self.names_,
            "columns": [{**asdict(c), "levels": list(c.levels)} for c in self.columns_],
        }

    @classmethod
    def from_state(cls, state: State) -> Self:
        columns = [Column(**{**c, "levels": tuple(c["levels"])}) for c in state["columns"]]
        return cls.from_columns(state["scale"], state["names"], columns)

    @classmethod
    def from_columns(cls, scale: bool, names: list[str] | None, columns: list[Column]) -> Self:
        """A fitted encoder, from how each column is encoded."""
        self = cls(scale=scale)
        self.names_, self.columns_, self.blocks_ = names, columns, _blocks(columns)
        return self


class TargetEncoder:
    """y → float64 (n, C): a number (scaled), one 0/1 column for two classes, one-hot for more."""

    def __init__(self, scale: bool = True) -> None:
        self.scale = scale

    def fit(self, y: Labels, task: Task) -> Self:
        if task == "regression":
            self.column_ = _learn_numeric("y", number_labels(y), self.scale)
        else:
            levels = tuple(label_levels(y))
            self.column_ = Column("binary" if len(levels) <= 2 else "categorical", levels)
        self.block_ = _blocks([self.column_])[0]
        return self

    def transform(self, y: Labels) -> FloatArray:
        if self.column_.kind == "numeric":
            coded = _encode(self.column_, "y", number_labels(y))
        else:
            positions = label_positions(y, list(self.column_.levels))
            coded = _one_hot(self.column_, positions)
        return np.column_stack(coded).astype(np.float64, copy=False)

    def state(self) -> State:
        column = {**asdict(self.column_), "levels": list(self.column_.levels)}
        return {"scale": bool(self.scale), "column": column}

    @classmethod
    def from_state(cls, state: State) -> Self:
        column = Column(**{**state["column"], "levels": tuple(state["column"]["levels"])})
        return cls.from_column(state["scale"], column)

    @classmethod
    def from_column(cls, scale: bool, column: Column) -> Self:
        """A fitted encoder, from how y is encoded."""
        self = cls(scale=scale)
        self.column_, self.block_ = column, _blocks([column])[0]
        return self


def label_levels(y: Labels) -> list[Any]:
    """The different labels in y, sorted, as values that JSON can hold."""
    return sorted(set(_distinct_labels(y)[0]), key=lambda v: (type(v).__name__, v))


def label_positions(y: Labels, levels: list[Any]) -> IntArray:
    """Where each label of y (n,) stands in `levels`; an error on a label that is not there."""
    distinct, inverse = _distinct_labels(y)
    place = {level: position for position, level in enumerate(levels)}
    if unseen := set(distinct) - set(place):
        raise InvalidInputError(
            f"labels {sorted(unseen, key=str)!r} were not in the training rows, which have {levels!r}."
        )
    return np.array([place[label] for label in distinct], dtype=np.intp)[inverse]


def number_labels(y: Labels) -> FloatArray:
    """The targets of a regression as float64 (n,); an error where one is not a finite number."""
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"the targets of a regression must be numbers: {error}.") from error
    _check_one_dimension(values)
    if not np.isfinite(values).all():
        raise InvalidInputError("the targets hold missing or infinite values; drop those rows first.")
    return values


def _distinct_labels(y: Labels) -> tuple[list[Any], IntArray]:
    """The different labels, as values that JSON can hold, and which of them each row (n,) has."""
    values = np.asarray(y)
    _check_one_dimension(values)
    if _is_missing(values).any():
        raise InvalidInputError("the labels hold missing values; drop those rows first.")
    if values.dtype.kind != "O":
        found, inverse = np.unique(values, return_inverse=True)
        return [_plain(value) for value in found.tolist()], inverse
    labels = [_plain(value) for value in values.tolist()]  # of types that may have no order
    distinct = list(dict.fromkeys(labels))
    place = {label: position for position, label in enumerate(distinct)}
    return distinct, np.array([place[label] for label in labels], dtype=np.intp)


def _check_one_dimension(values: np.ndarray[Any, Any]) -> None:
    if values.ndim != 1 or len(values) == 0:
        raise InvalidInputError(f"y must be one label for each row, got shape {values.shape}.")


def column_names(X: Rows) -> list[str] | None:
    """The column names of a data frame, None for an array."""
    return [str(name) for name in X.columns] if hasattr(X, "columns") else None


def check_same_columns(X: Rows, names: list[str] | None, n_columns: int, what: str) -> None:
    """Raise unless X has the columns (names, or number) seen in training, in the same order."""
    _refuse_sparse(X)
    got = column_names(X)
    if names is not None and got is not None and got != names:
        missing, extra = [n for n in names if n not in got], [n for n in got if n not in names]
        detail = f"missing: {missing}, extra: {extra}" if missing or extra else "they are in another order"
        raise InvalidInputError(f"{what} must have the columns of the training rows ({detail}).")
    shape = np.shape(X)
    if got is None and len(shape) != 2:
        raise InvalidInputError(f"X must have two dimensions (rows, columns), got shape {shape}.")
    width = len(got) if got is not None else shape[1]
    if width != n_columns:
        raise InvalidInputError(f"{what} have {width} columns, the training rows have {n_columns}.")


def _refuse_sparse(X: Rows) -> None:
    if hasattr(X, "tocsr"):
        raise InvalidInputError(
            "sparse X cannot be encoded here; pass a dense array (X.toarray()), or choose an embedding "
            "and a baseline that do not look at X, such as embedding='label'."
        )


def _columns(X: Rows) -> list[tuple[str, np.ndarray[Any, Any]]]:
    """Name and values of every column; categories come as objects with None for missing."""
    _refuse_sparse(X)
    if hasattr(X, "columns"):
        names = column_names(X) or []
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise InvalidInputError(f"X has more than one column named {repeated}; give each its own name.")
        return [(f"column {name!r}", _frame_column(X[name])) for name in X.columns]
    values = np.asarray(X)
    if values.dtype.kind in "mM":
        raise InvalidInputError(
            f"X holds dates ({values.dtype}); turn them into numbers first, such as days."
        )
    if values.ndim != 2:
        raise InvalidInputError(f"X must have two dimensions (rows, columns), got shape {values.shape}.")
    return [(f"column {j}", values[:, j]) for j in range(values.shape[1])]


def _marked_as_categories(X: Rows) -> list[bool]:
    """For each column, whether its data frame calls it one of categories, whatever their values are."""
    if hasattr(X, "columns"):
        return [str(X[name].dtype) == "category" for name in X.columns]
    return [False] * int(np.shape(X)[1])


def _frame_column(series: Any) -> np.ndarray[Any, Any]:
    """A data frame's column as a plain array; nullable and string dtypes become object or float."""
    dtype = str(series.dtype)
    if dtype.startswith(("datetime", "timedelta", "period", "Date", "Duration")):
        raise InvalidInputError(
            f"column {series.name!r} holds dates ({dtype}); turn it into numbers first, such as days."
        )
    values = np.asarray(series)
    if values.dtype.kind in "biuf":
        return values
    return np.asarray(series, dtype=object)


def _is_missing(values: np.ndarray[Any, Any]) -> BoolArray:
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind == "O":
        # None, NaN and pandas' NA alike: none of them equals itself, or none says so.
        return np.array([v is None or type(v).__name__ == "NAType" or v != v for v in values], dtype=bool)
    return np.zeros(len(values), dtype=bool)


def _learn(name: str, values: np.ndarray[Any, Any], scale: bool, is_category: bool) -> Column:
    missing = _is_missing(values)
    seen = values[~missing]
    numeric = values.dtype.kind in "biuf" and not is_category
    if values.dtype.kind == "O" and len(seen) and not is_category:
        numeric = are_numbers(seen)
    if numeric:
        numbers = np.where(missing, np.nan, values).astype(np.float64)
        if np.isinf(numbers).any():
            raise InvalidInputError("X holds infinite values; replace them by numbers or by missing.")
        # Any other two numbers are a scale on which new rows may lie elsewhere.
        if not _is_yes_no(numbers[~missing]):
            return _learn_numeric(name, numbers, scale)
    different = np.unique(seen) if seen.dtype.kind in "biuf" else seen
    levels = tuple(sorted({_plain(v) for v in different}, key=lambda v: (type(v).__name__, v)))
    if len(levels) > _MOST_LEVELS:
        raise InvalidInputError(
            f"{name} has {len(levels)} different values, more than the {_MOST_LEVELS} that can be encoded as "
            "categories; drop it, group its values, or encode it as numbers."
        )
    if len(levels) == 2:
        return Column("binary", levels, flag_missing=bool(missing.any()))
    return Column("categorical", levels)


def are_numbers(values: np.ndarray[Any, Any]) -> bool:
    """Whether an array of objects holds numbers alone; a database's decimals are some."""
    return all(isinstance(v, float | int | np.number | Decimal) for v in values)


def _learn_numeric(name: str, values: FloatArray, scale: bool) -> Column:
    finite = values[np.isfinite(values)]
    flag = bool(np.isnan(values).any())
    if not len(finite):
        return Column("numeric", flag_missing=flag)
    if not scale:
        top = np.abs(finite).max() or 1.0  # the sum of huge numbers would be infinite
        return Column("numeric", fill=float((finite / top).mean() * top), flag_missing=flag)
    offset, spread = centre_and_spread(name, finite)
    return Column("numeric", (), offset, spread, offset, flag)


def centre_and_spread(name: str, values: FloatArray) -> tuple[float, float]:
    """Mean and standard deviation of values (n,) in any units; 1 in place of a deviation of zero."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean, spread = float(values.mean()), float(values.std())
    if not np.isfinite(spread):
        raise InvalidInputError(
            f"{name} holds values of up to {np.abs(values).max():g}, too large to scale; divide them first."
        )
    # A constant column has no spread to divide by; rounding leaves a speck that must not be blown up.
    return mean, spread if spread > 1e-12 * np.abs(values).max() else 1.0


def _encode(column: Column, name: str, values: np.ndarray[Any, Any]) -> list[FloatArray]:
    """The encoded columns (each (n,)) of one original column."""
    missing = _is_missing(values)
    if column.kind == "numeric":
        coded = [(_numbers(name, values, missing, column.fill) - column.offset) / column.scale]
    else:
        coded = _one_hot(column, np.where(missing, -1, _places(column, values)))
    return [*coded, missing.astype(np.float64)] if column.flag_missing else coded


def _aligned(n_rows: int, n_columns: int, dtype: np.dtype[Any]) -> FloatArray:
    """An array that starts at a multiple of 64 bytes: JAX takes such a one on a CPU as it is, uncopied."""
    size = n_rows * n_columns * dtype.itemsize
    memory = np.empty(size + 64, dtype=np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(n_rows, n_columns)


def _is_yes_no(numbers: FloatArray) -> bool:
    """Whether numbers (n,) are 0 and 1, both of them, or −1 and 1."""
    low, high = (numbers.min(), numbers.max()) if len(numbers) else (0.0, 0.0)
    return bool(low in (0.0, -1.0) and high == 1.0 and ((numbers == low) | (numbers == high)).all())


def _places(column: Column, values: np.ndarray[Any, Any]) -> IntArray:
    """Where each of the values (n,) stands in the column's levels, −1 for none of them."""
    place = {level: position for position, level in enumerate(column.levels)}
    numeric = values.dtype.kind in "biuf"
    if numeric and len(place) == 2 and set(place) <= {-1, 0, 1}:  # yes and no need not be sorted
        places = np.full(len(values), -1, dtype=np.intp)
        for level, position in place.items():
            places[values == level] = position
        return places
    if numeric:  # each different number is looked up once
        different, inverse = np.unique(values, return_inverse=True)
        return np.array([place.get(_plain(v), -1) for v in different], dtype=np.intp)[inverse]
    return np.array([place.get(_plain(v), -1) for v in values], dtype=np.intp)


def _one_hot(column: Column, positions: IntArray) -> list[FloatArray]:
    """One 0/1 column for each level (for the second of two levels); position −1 is none of them."""
    first = 1 if column.kind == "binary" else 0
    coded = [(positions == j).astype(np.float64) for j in range(first, len(column.levels))]
    return coded or [np.zeros(len(positions))]  # one class, or nothing but missing values


def _numbers(name: str, values: np.ndarray[Any, Any], missing: BoolArray, fill: float) -> FloatArray:
    try:
        numbers = np.where(missing, fill, values).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} was numeric in the training rows, but now: {error}.") from error
    if np.isinf(numbers).any():
        raise _infinite(name)
    return numbers


def _infinite(name: str) -> InvalidInputError:
    return InvalidInputError(f"{name} holds infinite values; replace them by numbers or by missing.")


def _plain(value: Any) -> Any:
    """A NumPy scalar as the Python value that JSON can hold."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, bool | int | float | str) else str(value)


def _blocks(columns: list[Column]) -> list[Block]:
    blocks: list[Block] = []
    for column in columns:
        start = blocks[-1].stop if blocks else 0
        width = max(1, len(column.levels)) if column.kind == "categorical" else 1
        blocks.append(Block(column.kind, start, start + width))
        if column.flag_missing:
            blocks.append(Block("binary", start + width, start + width + 1))
    return blocks
