"""What is learned of X and of y, to write any rows of theirs as numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from moew._util.state import State
from moew.data._column import encode, infinite, one_hot
from moew.data._labels import label_positions, number_labels
from moew.data._numeric import Column, Kind, encode_numbers, is_numeric_array
from moew.data._summaries import LabelSummary, TableSummary
from moew.data._table import check_same_columns, columns_of
from moew.types import FloatArray, Labels, Rows, Task


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
        """Learn from all rows at once."""
        return self.learn(TableSummary().add(X))

    def learn(self, table: TableSummary) -> Self:
        """Learn from the summary of rows that came in chunks."""
        self.names_, self.columns_ = table.names, table.learned(self.scale)
        self.blocks_ = _blocks(self.columns_)
        return self

    def transform(self, X: Rows, dtype: type[np.floating[Any]] = np.float64) -> FloatArray:
        """X as numbers (n, D), computed with float64 and kept as `dtype`."""
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
        for j, part in enumerate(parts):  # one at a time: all of them would take the memory once more
            encoded[:, j] = part
        return encoded

    def state(self) -> State:
        return {
            "scale": bool(self.scale),
            "names": self.names_,
            "columns": [_state_of(column) for column in self.columns_],
        }

    @classmethod
    def from_state(cls, state: State) -> Self:
        self = cls(scale=state["scale"])
        self.names_, self.columns_ = state["names"], [_column_of(column) for column in state["columns"]]
        self.blocks_ = _blocks(self.columns_)
        return self


class TargetEncoder:
    """y → float64 (n, C): a number (scaled), one 0/1 column for two classes, one-hot for more."""

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
        if self.column_.kind == "numeric":
            coded = encode(self.column_, "y", number_labels(y))
        else:
            positions = label_positions(y, list(self.column_.levels))
            coded = one_hot(self.column_, positions)
        return np.column_stack(coded).astype(np.float64, copy=False)

    def state(self) -> State:
        return {"scale": bool(self.scale), "column": _state_of(self.column_)}

    @classmethod
    def from_state(cls, state: State) -> Self:
        self = cls(scale=state["scale"])
        self.column_ = _column_of(state["column"])
        self.block_ = _blocks([self.column_])[0]
        return self


def _state_of(column: Column) -> State:
    return {**asdict(column), "levels": list(column.levels)}


def _column_of(state: State) -> Column:
    return Column(**{**state, "levels": tuple(state["levels"])})


def _aligned(n_rows: int, n_columns: int, dtype: np.dtype[Any]) -> FloatArray:
    """An array that starts at a multiple of 64 bytes: JAX takes such a one on a CPU as it is, uncopied."""
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
