"""Encode columns and labels as numbers: one column at a time, arrays of numbers in blocks of rows, labels.

An array that holds only numbers is encoded in blocks of rows, which gives the same bits faster than column by
column. Blocks are small on purpose: arrays of several megabytes that are allocated and freed between small
long-lived ones fragment the heap, and memory use would grow with every batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import numpy as np

from moew.exceptions import InvalidInputError
from moew.types import BoolArray, FloatArray, IntArray, Labels, Rows

Kind = Literal["numeric", "binary", "categorical"]
_BLOCK_BYTES = 2**20


@dataclass(frozen=True)
class Column:
    """How one column is encoded: (value − offset) / scale, value == levels[1], or one-hot of levels."""

    kind: Kind
    levels: tuple[Any, ...] = ()
    offset: float = 0.0
    scale: float = 1.0
    fill: float = 0.0  # replaces a missing number
    flag_missing: bool = False


def is_numeric_array(X: Rows) -> bool:
    """Whether X is a NumPy array of numbers, so that its columns need not be checked one by one."""
    return isinstance(X, np.ndarray) and X.dtype.kind in "biuf"


def row_blocks(X: np.ndarray[Any, Any]) -> Iterator[slice]:
    """Slices of the rows of X (n, D) in order, each about a megabyte of float64; one slice if X is empty."""
    n, D = X.shape
    size = max(1, _BLOCK_BYTES // (8 * max(1, D)))
    return (slice(start, start + size) for start in range(0, max(1, n), size))


def encode_numbers(columns: list[Column], X: np.ndarray[Any, Any], encoded: FloatArray) -> int | None:
    """Encode numbers X (n, D) into `encoded` (n, D'); no column may be categorical.

    Returns None, or the index of the first column that holds an infinite number.
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
    """The second level of a binary column; NaN, which equals nothing, if the levels are texts."""
    level = column.levels[1]
    return float(level) if isinstance(level, bool | int | float) else float("nan")


MOST_LEVELS = 1000  # one-hot columns take rows × levels numbers: more levels would fill the memory


def is_missing(values: np.ndarray[Any, Any]) -> BoolArray:
    """Whether each of the values (n,) is missing: NaN, None or pandas' NA."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind == "O":
        # NaN does not equal itself; None and pandas' NA have to be named.
        return np.array([v is None or type(v).__name__ == "NAType" or v != v for v in values], dtype=bool)
    return np.zeros(len(values), dtype=bool)


def are_numbers(seen: np.ndarray[Any, Any], is_category: bool) -> bool:
    """Whether a column is numeric, from its values that are not missing; no if its dtype is categorical.

    An object column is numeric if every value is a number; decimals, as databases give them, are numbers.
    """
    if seen.dtype.kind == "O" and len(seen) and not is_category:
        return all(isinstance(v, float | int | np.number | Decimal) for v in seen)
    return seen.dtype.kind in "biuf" and not is_category


def refuse_infinite(name: str, numbers: FloatArray) -> None:
    """Raise if a number of the column is infinite."""
    if np.isinf(numbers).any():
        raise infinite(name)


def infinite(name: str) -> InvalidInputError:
    """The error for a column with infinite values."""
    return InvalidInputError(
        f"{name} holds infinite values; replace them by numbers or by missing.", argument="X"
    )


def in_order(levels: Iterable[Any]) -> tuple[Any, ...]:
    """Sort levels by type and then by value, since values of different types may not be comparable."""
    return tuple(sorted(levels, key=lambda v: (type(v).__name__, v)))


def column_of_levels(levels: tuple[Any, ...], flag_missing: bool) -> Column:
    """A binary column for two levels, else a categorical one, which needs no flag for missing values."""
    if len(levels) == 2:
        return Column("binary", levels, flag_missing=flag_missing)
    return Column("categorical", levels)


def centre_and_spread(name: str, values: FloatArray) -> tuple[float, float]:
    """Mean and standard deviation of values (n,), with 1 in place of a deviation of zero."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean, spread = float(values.mean()), float(values.std())
    return mean, divisor(name, spread, float(np.abs(values).max()))


def divisor(name: str, spread: float, top: float) -> float:
    """The standard deviation to divide by, for values of absolute value up to `top`.

    It is 1 for a constant column, whose computed deviation is only rounding error.
    """
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
    try:
        numbers = np.where(missing, fill, values).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{name} was numeric in the training rows, but now: {error}.", argument="X"
        ) from error
    refuse_infinite(name, numbers)
    return numbers


def plain(value: Any) -> Any:
    """A value that JSON can hold: NumPy scalars become Python ones, other types strings."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, bool | int | float | str) else str(value)


def label_levels(y: Labels) -> list[Any]:
    """The distinct labels in y, sorted, as values that JSON can hold."""
    return list(in_order(set(_distinct_labels(y)[0])))


def label_column(levels: tuple[Any, ...]) -> Column:
    """How labels are encoded: one 0/1 column for two classes, one-hot for more."""
    return Column("binary" if len(levels) <= 2 else "categorical", levels)


def label_positions(y: Labels, levels: list[Any]) -> IntArray:
    """The index (n,) of each label of y in `levels`; raises on a label that is not there."""
    distinct, inverse = _distinct_labels(y)
    place = {level: position for position, level in enumerate(levels)}
    if unseen := set(distinct) - set(place):
        raise InvalidInputError(
            f"labels {sorted(unseen, key=str)!r} were not in the training rows, which have {levels!r}.",
            argument="y",
        )
    return np.array([place[label] for label in distinct], dtype=np.intp)[inverse]


def number_labels(y: Labels) -> FloatArray:
    """The targets of a regression as float64 (n,); raises if one is not a finite number."""
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"the targets of a regression must be numbers: {error}.", argument="y"
        ) from error
    _check_one_dimension(values)
    if not np.isfinite(values).all():
        raise InvalidInputError(
            "the targets hold missing or infinite values; drop those rows first.", argument="y"
        )
    return values


def _distinct_labels(y: Labels) -> tuple[list[Any], IntArray]:
    """The distinct labels, as values that JSON can hold, and each row's index (n,) among them."""
    values = np.asarray(y)
    _check_one_dimension(values)
    if is_missing(values).any():
        raise InvalidInputError("the labels hold missing values; drop those rows first.", argument="y")
    if values.dtype.kind != "O":
        found, inverse = np.unique(values, return_inverse=True)
        return [plain(value) for value in found.tolist()], inverse
    labels = [plain(value) for value in values.tolist()]  # np.unique may be unable to sort mixed types
    distinct = list(dict.fromkeys(labels))
    place = {label: position for position, label in enumerate(distinct)}
    return distinct, np.array([place[label] for label in labels], dtype=np.intp)


def _check_one_dimension(values: np.ndarray[Any, Any]) -> None:
    if values.ndim != 1 or len(values) == 0:
        raise InvalidInputError(f"y must be one label for each row, got shape {values.shape}.", argument="y")
