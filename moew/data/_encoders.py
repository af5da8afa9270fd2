"""Tables and labels as numbers: how a column is encoded, and learned.

An array that holds only numbers is encoded in blocks of rows, which gives the same bits faster than column by
column. Blocks are small on purpose: arrays of several megabytes that are allocated and freed between small
long-lived ones fragment the heap, and memory use would grow with every batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self, get_args

import numpy as np

from moew._util.checks import refusing
from moew._util.numbers import level
from moew._util.state import State
from moew.data._columns import (
    Column,
    Kind,
    are_numbers,
    check_same_columns,
    column_names,
    columns_of,
    in_order,
    is_missing,
    is_numeric_array,
    label_levels,
    label_positions,
    marked_as_categories,
    number_labels,
    plain,
)
from moew.exceptions import InvalidInputError, StateError
from moew.types import BoolArray, Features, FloatArray, IntArray, Labels, Task

_BLOCK_BYTES = 2**20
MOST_LEVELS = 1000  # one-hot columns take rows × levels numbers: more levels would fill the memory


def row_blocks(X: np.ndarray[Any, Any]) -> Iterator[slice]:
    """Slices of the rows of X (n, D) in order, each about a megabyte of float64; one slice if X is empty."""
    n, D = X.shape
    size = max(1, _BLOCK_BYTES // (8 * max(1, D)))
    return (slice(start, start + size) for start in range(0, max(1, n), size))


def _encode_plain_numbers(
    columns: list[Column], names: Sequence[str], X: np.ndarray[Any, Any], encoded: FloatArray, at: IntArray
) -> None:
    """Encode numeric columns X (n, D) that have no flag into the columns `at` (D,) of `encoded`."""
    offset, scale, fill = np.array([(c.offset, c.scale, c.fill) for c in columns]).T
    with np.errstate(over="ignore"):
        fill = fill.astype(X.dtype if X.dtype.kind == "f" else fill.dtype)  # rounded as the numbers are
    for rows in row_blocks(X):
        numbers = X[rows].astype(np.float64)
        np.copyto(numbers, fill, where=np.isnan(numbers))
        for j in np.flatnonzero(np.isinf(numbers).any(axis=0)).tolist():
            refuse_infinite(names[j], numbers[:, j])
        numbers -= offset
        numbers /= scale
        encoded[rows, at] = numbers


def refuse_infinite(name: str, numbers: FloatArray) -> None:
    """Raise if a number of the column is infinite."""
    if np.isinf(numbers).any():
        raise InvalidInputError(
            f"{name} holds infinite values; replace them by numbers or by missing.", argument="X"
        )


def centre_and_spread(name: str, values: FloatArray) -> tuple[float, float]:
    """Mean and standard deviation of values (n,), with 1 in place of a deviation of zero."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean, spread = float(values.mean()), float(values.std())
    return mean, divisor(name, spread, float(np.abs(values).max()))


def divisor(name: str, spread: float, top: float) -> float:
    """The standard deviation to divide by, for values of absolute value up to `top`; 1 for a constant column,
    whose computed deviation is only rounding error."""
    if not np.isfinite(spread):
        raise too_large(name, top)
    return spread if spread > 1e-12 * top else 1.0


def too_large(name: str, top: float) -> InvalidInputError:
    """The error for a column whose values overflow when they are scaled."""
    return InvalidInputError(
        f"{name} holds values of up to {top:g}, too large to scale; divide them first.", argument="X"
    )


def encode(column: Column, name: str, values: np.ndarray[Any, Any]) -> list[FloatArray]:
    """The encoded columns (each (n,)) of one original column."""
    missing = is_missing(values)
    if column.kind == "numeric":
        coded = [(_numbers(name, values, missing, column.fill) - column.offset) / column.scale]
    else:
        coded = one_hot(column, np.where(missing, -1, _places(column, values)))
    return [*coded, missing.astype(np.float64)] if column.flag_missing else coded


def _places(column: Column, values: np.ndarray[Any, Any]) -> IntArray:
    """The index (n,) of each value among the column's levels, −1 if it is none of them."""
    place = {level: position for position, level in enumerate(column.levels)}
    numeric = values.dtype.kind in "biuf"
    if numeric and len(place) == 2 and set(place) <= {-1, 0, 1}:  # faster than sorting for two levels
        places = np.full(len(values), -1, dtype=np.intp)
        for level, position in place.items():
            places[values == level] = position
        return places
    if numeric:  # each different number is looked up once
        different, inverse = np.unique(values, return_inverse=True)
        return np.array([place.get(plain(v), -1) for v in different], dtype=np.intp)[inverse]
    return np.array([place.get(plain(v), -1) for v in values], dtype=np.intp)


def one_hot(column: Column, positions: IntArray) -> list[FloatArray]:
    """One 0/1 column for each level, or one for the second of two levels; position −1 gives zeros."""
    first = 1 if column.kind == "binary" else 0
    coded = [(positions == j).astype(np.float64) for j in range(first, len(column.levels))]
    return coded or [np.zeros(len(positions))]  # one class, or only missing values


def _numbers(name: str, values: np.ndarray[Any, Any], missing: BoolArray, fill: float) -> FloatArray:
    with refusing(lambda error: f"{name} was numeric in the training rows, but now: {error}.", "X"):
        numbers = np.where(missing, fill, values).astype(np.float64)
    refuse_infinite(name, numbers)
    return numbers


def _learned_column(name: str, values: np.ndarray[Any, Any], is_category: bool, scale: bool) -> Column:
    """How a column of X with these values (n,) is encoded."""
    missing = is_missing(values)
    seen, flag_missing = values[~missing], bool(missing.any())
    numeric = are_numbers(seen, is_category)
    if not len(seen):
        return Column("numeric", flag_missing=True) if numeric else Column("categorical")
    if numeric:
        numbers = seen.astype(np.float64)
        refuse_infinite(name, numbers)
        # Only 0/1 and −1/1 count as binary: with any other two numbers, new rows may have values in between.
        ends = {float(numbers.min()), float(numbers.max())}
        if ends not in ({0.0, 1.0}, {-1.0, 1.0}) or not np.isin(numbers, list(ends)).all():
            return _numeric_column(name, numbers, flag_missing, scale)
        levels: set[Any] = ends
    else:
        levels = {plain(value) for value in (np.unique(seen) if seen.dtype.kind in "biuf" else seen)}
        if len(levels) > MOST_LEVELS:
            raise InvalidInputError(
                f"{name} has {len(levels)} different values, more than the {MOST_LEVELS} that can be encoded "
                "as categories; drop it, group its values, or encode it as numbers.",
                argument="X",
            )
    if len(levels) == 2:
        return Column("binary", in_order(levels), flag_missing=flag_missing)
    return Column("categorical", in_order(levels))  # which needs no flag for missing values


def _numeric_column(name: str, numbers: FloatArray, flag_missing: bool, scale: bool) -> Column:
    top = float(np.abs(numbers).max())
    with np.errstate(over="ignore", invalid="ignore"):  # too large values are reported below
        mean = float(numbers.mean())
        if not np.isfinite(mean):  # the sum of huge numbers is infinite
            mean = float((numbers / top).mean() * top)
        spread = float(np.sqrt(((numbers - mean) ** 2).sum() / len(numbers)))
    if scale:
        return Column("numeric", (), mean, divisor(name, spread, top), mean, flag_missing)
    if not np.isfinite(mean):
        raise too_large(name, top)
    return Column("numeric", fill=mean, flag_missing=flag_missing)


@dataclass(frozen=True)
class Block:
    """The range start to stop of the encoded columns of one original column, and its kind."""

    kind: Kind
    start: int
    stop: int


class TabularEncoder:
    """Encodes a table X as float64 (n, D). `scale=False` leaves numbers as they are."""

    def __init__(self, scale: bool = True) -> None:
        self.scale = scale

    def fit(self, X: Features) -> Self:
        """Learn how each column is encoded."""
        columns, are_categories = columns_of(X), marked_as_categories(X)
        if not columns:
            raise InvalidInputError("X has no columns; at least one feature is needed.", argument="X")
        self.names_ = column_names(X)
        self.columns_ = [
            _learned_column(name, values, is_category, self.scale)
            for (name, values), is_category in zip(columns, are_categories, strict=True)
        ]
        self.blocks_ = _blocks(self.columns_)
        return self

    def transform(self, X: Features, dtype: type[np.floating[Any]] = np.float64) -> FloatArray:
        """X as numbers (n, D), computed in float64 and stored as `dtype`."""
        check_same_columns(X, self.names_, len(self.columns_), "the rows to encode")
        columns = columns_of(X)
        encoded = _aligned(len(columns[0][1]), self.blocks_[-1].stop, np.dtype(dtype))
        starts = np.cumsum([0, *(_width(column) for column in self.columns_[:-1])])
        plain = [c.kind == "numeric" and not c.flag_missing and is_numeric_array(X) for c in self.columns_]
        if (at := np.flatnonzero(plain)).size:
            chosen, names = [self.columns_[j] for j in at], [columns[j][0] for j in at]
            numbers = np.asarray(X) if all(plain) else np.asarray(X)[:, at]
            _encode_plain_numbers(chosen, names, numbers, encoded, starts[at])
        for j in np.flatnonzero(~np.array(plain)):  # one at a time, to save a second copy of all columns
            for place, part in enumerate(encode(self.columns_[j], *columns[j]), starts[j]):
                encoded[:, place] = part
        return encoded

    def dimension_names(self, columns: Sequence[str] | None = None) -> list[str]:
        """What each encoded column is called: "age", "colour = red", "age missing".

        `columns` are the names of the columns of X; None: those of the data frame it was fitted with, or
        their places.
        """
        named = columns or self.names_ or [f"column {j}" for j in range(len(self.columns_))]
        return [
            part
            for name, column in zip(named, self.columns_, strict=True)
            for part in _dimension_names(column, f"{name} = ", str(name))
        ]

    def state(self) -> State:
        """The fitted encoder as a JSON-able dict."""
        return {
            "scale": bool(self.scale),
            "names": self.names_,
            "columns": [_state_of(column) for column in self.columns_],
        }

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The encoder that `state()` described."""
        self = cls(scale=state["scale"])
        self.names_, self.columns_ = state["names"], [_column_of(column) for column in state["columns"]]
        self.blocks_ = _blocks(self.columns_)
        return self


class TargetEncoder:
    """Encodes labels as float64 (n, C): a scaled number, one 0/1 column for two classes, one-hot for more."""

    def __init__(self, scale: bool = True) -> None:
        self.scale = scale

    def fit(self, y: Labels, task: Task) -> Self:
        """Learn how the labels are encoded."""
        if task == "regression":
            self.column_ = _numeric_column("y", number_labels(y), False, self.scale)
        else:
            levels = in_order(set(label_levels(y)))
            self.column_ = Column("binary" if len(levels) <= 2 else "categorical", levels)
        self.block_ = _blocks([self.column_])[0]
        return self

    def transform(self, y: Labels) -> FloatArray:
        """The labels as numbers (n, C)."""
        if self.column_.kind == "numeric":
            coded = encode(self.column_, "y", number_labels(y))
        else:
            positions = label_positions(y, list(self.column_.levels))
            coded = one_hot(self.column_, positions)
        return np.column_stack(coded).astype(np.float64, copy=False)

    def dimension_names(self) -> list[str]:
        """What each column is called: "target", or "class red"."""
        return _dimension_names(self.column_, "class ", "target")

    def state(self) -> State:
        """The fitted encoder as a JSON-able dict."""
        return {"scale": bool(self.scale), "column": _state_of(self.column_)}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The encoder that `state()` described."""
        self = cls(scale=state["scale"])
        self.column_ = _column_of(state["column"], least=1)  # labels of one class
        self.block_ = _blocks([self.column_])[0]
        return self


def _dimension_names(column: Column, before_level: str, number: str) -> list[str]:
    """The names of a column's dimensions: a number's own, or one for each level."""
    if column.kind == "numeric" or not column.levels:
        named = [number]
    else:
        levels = column.levels[-1:] if column.kind == "binary" else column.levels
        named = [f"{before_level}{level(value)}" for value in levels]
    return [*named, f"{number} missing"] if column.flag_missing else named


def _state_of(column: Column) -> State:
    return {**asdict(column), "levels": list(column.levels)}


def _column_of(state: State, least: int = 2) -> Column:
    """The column that a state describes; a binary one has two levels, or the `least` number of them."""
    column = Column(**{**state, "levels": tuple(state["levels"])})
    if column.kind not in get_args(Kind):
        raise StateError(f"a column must be one of {', '.join(get_args(Kind))}, not {column.kind!r}.")
    if column.kind == "binary" and not least <= len(column.levels) <= 2:
        raise StateError(f"a column of two values has the values {list(column.levels)!r}.")
    return column


def _aligned(n_rows: int, n_columns: int, dtype: np.dtype[Any]) -> FloatArray:
    """An array whose memory starts at a multiple of 64 bytes, which JAX on a CPU uses without a copy."""
    size = n_rows * n_columns * dtype.itemsize
    memory = np.empty(size + 64, dtype=np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(n_rows, n_columns)


def _width(column: Column) -> int:
    """How many columns one becomes."""
    return (max(1, len(column.levels)) if column.kind == "categorical" else 1) + column.flag_missing


def _blocks(columns: list[Column]) -> list[Block]:
    blocks: list[Block] = []
    for column in columns:
        start = blocks[-1].stop if blocks else 0
        stop = start + _width(column) - column.flag_missing
        blocks.append(Block(column.kind, start, stop))
        if column.flag_missing:
            blocks.append(Block("binary", stop, stop + 1))
    return blocks
