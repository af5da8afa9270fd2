"""How a column is encoded, and the encoding of arrays of numbers in blocks of rows.

An array of nothing but numbers need not be taken column by column: the same operations on whole blocks of
rows give the same bits sooner. A block is small on purpose. Arrays of some megabytes that come and go would
lie in the heap between small ones that stay, and the holes they leave would grow with every batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from moew.types import FloatArray, Rows

Kind = Literal["numeric", "binary", "categorical"]
_BLOCK_BYTES = 2**20


@dataclass(frozen=True)
class Column:
    """How one column is encoded: (value − offset) / scale, value == levels[1], or one-hot of levels."""

    kind: Kind
    levels: tuple[Any, ...] = ()
    offset: float = 0.0
    scale: float = 1.0
    fill: float = 0.0  # stands for a missing number
    flag_missing: bool = False


def is_numeric_array(X: Rows) -> bool:
    """Whether X is a NumPy array of numbers, which needs no look at single columns."""
    return isinstance(X, np.ndarray) and X.dtype.kind in "biuf"


def row_blocks(X: np.ndarray[Any, Any]) -> Iterator[slice]:
    """The rows of X (n, D) in order, in blocks of about a megabyte of float64; one block if X is empty."""
    n, D = X.shape
    size = max(1, _BLOCK_BYTES // (8 * max(1, D)))
    return (slice(start, start + size) for start in range(0, max(1, n), size))


def encode_numbers(columns: list[Column], X: np.ndarray[Any, Any], encoded: FloatArray) -> int | None:
    """Encode numbers X (n, D) into `encoded` (n, D'), no column being categorical.

    Returns None, or the first column in which an infinite number was found.
    """
    is_numeric = np.array([column.kind == "numeric" for column in columns])
    numeric, binary = np.flatnonzero(is_numeric), np.flatnonzero(~is_numeric)
    flagged = np.flatnonzero([column.flag_missing for column in columns])
    places = np.cumsum([0, *(1 + column.flag_missing for column in columns[:-1])])
    offset, scale, fill = np.array([(c.offset, c.scale, c.fill) for c in columns]).T[:, numeric]
    yes = np.array([_number_of_yes(columns[j]) for j in binary.tolist()])
    can_miss = X.dtype.kind == "f"
    if can_miss:
        with np.errstate(over="ignore"):
            fill = fill.astype(X.dtype)  # rounded as the column's other numbers are
    for rows in row_blocks(X):
        block, target = X[rows], encoded[rows]
        numbers = block.astype(np.float64) if not len(binary) else block[:, numeric].astype(np.float64)
        if can_miss:
            np.copyto(numbers, fill, where=np.isnan(numbers))
            if (infinite := np.isinf(numbers).any(axis=0)).any():
                return int(numeric[infinite.argmax()])
        numbers -= offset
        numbers /= scale
        if len(numeric) == encoded.shape[1]:
            target[:] = numbers
            continue
        target[:, places[numeric]] = numbers
        target[:, places[binary]] = block[:, binary] == yes
        target[:, places[flagged] + 1] = np.isnan(block[:, flagged]) if can_miss else 0.0
    return None


def _number_of_yes(column: Column) -> float:
    """The second level of a column of yes and no; NaN, which equals nothing, where the levels are texts."""
    level = column.levels[1]
    return float(level) if isinstance(level, bool | int | float) else float("nan")
