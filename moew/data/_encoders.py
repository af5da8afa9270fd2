"""Encoders of tables and labels as numbers, fitted on all rows at once or chunk by chunk.

How the rows are cut into chunks changes means and deviations only by rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self, get_args

import numpy as np

from moew._util.numbers import level
from moew._util.state import State
from moew.data._columns import (
    MOST_LEVELS,
    Column,
    Kind,
    are_numbers,
    column_of_levels,
    divisor,
    encode,
    encode_numbers,
    in_order,
    infinite,
    is_missing,
    is_numeric_array,
    label_column,
    label_levels,
    label_positions,
    number_labels,
    one_hot,
    plain,
    refuse_infinite,
    too_large,
)
from moew.data._table import check_same_columns, column_names, columns_of, marked_as_categories
from moew.exceptions import InvalidInputError, StateError
from moew.types import FloatArray, Labels, Rows, Task


class Moments:
    """Running count, mean and sum of squared deviations, updated chunk by chunk (Chan et al.)."""

    def __init__(self) -> None:
        self.count = 0
        self.mean: Any = 0.0
        self.squares: Any = 0.0
        self.top: Any = 0.0  # the largest absolute value

    def add(self, values: FloatArray) -> None:
        """Add values (n,) or (n, d); each of the d dimensions has its own mean and deviation."""
        if not len(values):
            return
        with np.errstate(over="ignore", invalid="ignore"):  # too large values are reported at the end
            mean = values.mean(axis=0)
            if not np.isfinite(mean).all():  # the sum of huge numbers is infinite
                top = np.abs(values).max(axis=0)
                mean = (values / top).mean(axis=0) * top
            squares = ((values - mean) ** 2).sum(axis=0)
            total = self.count + len(values)
            gap = mean - self.mean
            self.squares = self.squares + squares + gap**2 * (self.count * (len(values) / total))
            self.mean = self.mean + gap * (len(values) / total)
        self.count = total
        self.top = np.maximum(self.top, np.abs(values).max(axis=0))

    @property
    def variance(self) -> Any:
        """The mean squared deviation."""
        return self.squares / self.count


class _ColumnSummary:
    """Summary of one column over all chunks: its kind, levels, moments and whether values are missing."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.numeric: bool | None = None  # None: only missing values so far
        self.empty = Column("categorical")  # how a column with only missing values is encoded
        self.levels: set[Any] = set()  # for numbers only while the column may still be binary
        self.two_values = True
        self.moments = Moments()
        self.flag_missing = False

    def add(self, values: np.ndarray[Any, Any], is_category: bool) -> None:
        missing = is_missing(values)
        seen = values[~missing]
        self.flag_missing |= bool(missing.any())
        if not len(seen):
            if are_numbers(seen, is_category):
                self.empty = Column("numeric", flag_missing=True)
            return
        numeric = are_numbers(seen, is_category)
        if self.numeric not in (None, numeric):
            raise InvalidInputError(
                f"{self.name} holds numbers in some chunks and categories in others; make it the same in "
                "all.",
                argument="X",
            )
        self.numeric = numeric
        if numeric:
            self._add_numbers(seen.astype(np.float64))
        else:
            different = np.unique(seen) if seen.dtype.kind in "biuf" else seen
            self.levels |= {plain(value) for value in different}
            self._check_levels()

    def _add_numbers(self, numbers: FloatArray) -> None:
        refuse_infinite(self.name, numbers)
        self.moments.add(numbers)
        # Only 0/1 and −1/1 count as binary: with any other two numbers, new rows may have values in between.
        ends = {float(numbers.min()), float(numbers.max())}
        self.two_values &= ends <= {-1.0, 0.0, 1.0} and bool(np.isin(numbers, list(ends)).all())
        self.levels |= ends if self.two_values else set()

    def _check_levels(self) -> None:
        if len(self.levels) > MOST_LEVELS:
            raise InvalidInputError(
                f"{self.name} has {len(self.levels)} different values, more than the {MOST_LEVELS} that can "
                "be encoded as categories; drop it, group its values, or encode it as numbers.",
                argument="X",
            )

    def column(self, scale: bool) -> Column:
        if self.numeric is None:
            return self.empty
        is_binary = self.two_values and self.levels in ({0.0, 1.0}, {-1.0, 1.0})
        if self.numeric and not is_binary:
            return _numeric_column(self.name, self.moments, self.flag_missing, scale)
        return column_of_levels(in_order(self.levels), self.flag_missing)


class TableSummary:
    """Summary of the columns of X, updated chunk by chunk."""

    def __init__(self) -> None:
        self.names: list[str] | None = None
        self.columns: list[_ColumnSummary] = []

    def add(self, X: Rows) -> Self:
        """Add a chunk of rows (n, D)."""
        columns = columns_of(X)
        if not self.columns:
            self.names = column_names(X)
            self.columns = [_ColumnSummary(name) for name, _ in columns]
        check_same_columns(X, self.names, len(self.columns), "the chunks")
        for summary, (_, values), is_category in zip(
            self.columns, columns, marked_as_categories(X), strict=True
        ):
            summary.add(values, is_category)
        return self

    def learned(self, scale: bool) -> list[Column]:
        """How each column is encoded."""
        if not self.columns:
            raise InvalidInputError("X has no columns; at least one feature is needed.", argument="X")
        return [column.column(scale) for column in self.columns]


class LabelSummary:
    """Summary of the labels, updated chunk by chunk."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.count = 0
        self.levels: set[Any] = set()
        self.moments = Moments()

    def add(self, y: Labels) -> Self:
        """Add a chunk of labels (n,)."""
        self.count += len(y)
        if self.task == "regression":
            self.moments.add(number_labels(y))
        else:
            self.levels |= set(label_levels(y))
        return self

    def learned(self, scale: bool) -> Column:
        """How the labels are encoded."""
        if self.task == "regression":
            return _numeric_column("y", self.moments, False, scale)
        return label_column(in_order(self.levels))


def _numeric_column(name: str, moments: Moments, flag_missing: bool, scale: bool) -> Column:
    mean, spread, top = float(moments.mean), float(np.sqrt(moments.variance)), float(moments.top)
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

    def fit(self, X: Rows) -> Self:
        """Learn from all rows at once."""
        return self.learn(TableSummary().add(X))

    def learn(self, table: TableSummary) -> Self:
        """Learn from the summary of rows that came in chunks."""
        self.names_, self.columns_ = table.names, table.learned(self.scale)
        self.blocks_ = _blocks(self.columns_)
        return self

    def transform(self, X: Rows, dtype: type[np.floating[Any]] = np.float64) -> FloatArray:
        """X as numbers (n, D), computed in float64 and stored as `dtype`."""
        check_same_columns(X, self.names_, len(self.columns_), "the rows to encode")
        columns = columns_of(X)
        encoded = _aligned(len(columns[0][1]), self.blocks_[-1].stop, np.dtype(dtype))
        if is_numeric_array(X) and all(column.kind != "categorical" for column in self.columns_):
            if (wrong := encode_numbers(self.columns_, np.asarray(X), encoded)) is not None:
                raise infinite(columns[wrong][0])
            return encoded
        parts = (
            part
            for column, (name, values) in zip(self.columns_, columns, strict=True)
            for part in encode(column, name, values)
        )
        for j, part in enumerate(parts):  # one at a time, to save a second copy of all columns
            encoded[:, j] = part
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
        """Learn from all labels at once."""
        return self.learn(LabelSummary(task).add(y))

    def learn(self, labels: LabelSummary) -> Self:
        """Learn from the summary of labels that came in chunks."""
        self.column_ = labels.learned(self.scale)
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


def _blocks(columns: list[Column]) -> list[Block]:
    blocks: list[Block] = []
    for column in columns:
        start = blocks[-1].stop if blocks else 0
        width = max(1, len(column.levels)) if column.kind == "categorical" else 1
        blocks.append(Block(column.kind, start, start + width))
        if column.flag_missing:
            blocks.append(Block("binary", start + width, start + width + 1))
    return blocks
