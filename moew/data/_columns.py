"""How columns and labels become numbers: one column, arrays of numbers, labels.

An array of nothing but numbers is not taken column by column: the same operations on whole blocks of rows
give the same bits sooner. A block is small on purpose. Arrays of some megabytes that come and go would lie in
the heap between small ones that stay, and the holes they leave would grow with every batch.
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


MOST_LEVELS = 1000  # one-hot columns grow as rows times levels: beyond this they fill the memory


def is_missing(values: np.ndarray[Any, Any]) -> BoolArray:
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind == "O":
        # None, NaN and pandas' NA alike: none of them equals itself, or none says so.
        return np.array([v is None or type(v).__name__ == "NAType" or v != v for v in values], dtype=bool)
    return np.zeros(len(values), dtype=bool)


def are_numbers(seen: np.ndarray[Any, Any], is_category: bool) -> bool:
    """Whether a column's values that are not missing are numbers, unless its data frame calls it categories.

    Objects are where all of them are; a database's decimals are some.
    """
    if seen.dtype.kind == "O" and len(seen) and not is_category:
        return all(isinstance(v, float | int | np.number | Decimal) for v in seen)
    return seen.dtype.kind in "biuf" and not is_category


def refuse_infinite(name: str, numbers: FloatArray) -> None:
    if np.isinf(numbers).any():
        raise infinite(name)


def infinite(name: str) -> InvalidInputError:
    return InvalidInputError(
        f"{name} holds infinite values; replace them by numbers or by missing.", argument="X"
    )


def in_order(levels: Iterable[Any]) -> tuple[Any, ...]:
    """Sorted, also where types that have no order among each other are mixed."""
    return tuple(sorted(levels, key=lambda v: (type(v).__name__, v)))


def column_of_levels(levels: tuple[Any, ...], flag_missing: bool) -> Column:
    """Yes and no, or categories, of which a missing one needs no flag."""
    if len(levels) == 2:
        return Column("binary", levels, flag_missing=flag_missing)
    return Column("categorical", levels)


def centre_and_spread(name: str, values: FloatArray) -> tuple[float, float]:
    """Mean and standard deviation of values (n,) in any units; 1 in place of a deviation of zero."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean, spread = float(values.mean()), float(values.std())
    return mean, divisor(name, spread, float(np.abs(values).max()))


def divisor(name: str, spread: float, top: float) -> float:
    """The standard deviation to divide by, of values up to `top`.

    A constant column has none; rounding leaves a speck that must not be blown up.
    """
    if not np.isfinite(spread):
        raise too_large(name, top)
    return spread if spread > 1e-12 * top else 1.0


def too_large(name: str, top: float) -> InvalidInputError:
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
        return np.array([place.get(plain(v), -1) for v in different], dtype=np.intp)[inverse]
    return np.array([place.get(plain(v), -1) for v in values], dtype=np.intp)


def one_hot(column: Column, positions: IntArray) -> list[FloatArray]:
    """One 0/1 column for each level (for the second of two levels); position −1 is none of them."""
    first = 1 if column.kind == "binary" else 0
    coded = [(positions == j).astype(np.float64) for j in range(first, len(column.levels))]
    return coded or [np.zeros(len(positions))]  # one class, or nothing but missing values


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
    """A NumPy scalar as the Python value that JSON can hold."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, bool | int | float | str) else str(value)


def label_levels(y: Labels) -> list[Any]:
    """The different labels in y, sorted, as values that JSON can hold."""
    return list(in_order(set(_distinct_labels(y)[0])))


def label_column(levels: tuple[Any, ...]) -> Column:
    """How labels are encoded: one 0/1 column for two of them, one-hot for more."""
    return Column("binary" if len(levels) <= 2 else "categorical", levels)


def label_positions(y: Labels, levels: list[Any]) -> IntArray:
    """Where each label of y (n,) stands in `levels`; an error on a label that is not there."""
    distinct, inverse = _distinct_labels(y)
    place = {level: position for position, level in enumerate(levels)}
    if unseen := set(distinct) - set(place):
        raise InvalidInputError(
            f"labels {sorted(unseen, key=str)!r} were not in the training rows, which have {levels!r}.",
            argument="y",
        )
    return np.array([place[label] for label in distinct], dtype=np.intp)[inverse]


def number_labels(y: Labels) -> FloatArray:
    """The targets of a regression as float64 (n,); an error where one is not a finite number."""
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
    """The different labels, as values that JSON can hold, and which of them each row (n,) has."""
    values = np.asarray(y)
    _check_one_dimension(values)
    if is_missing(values).any():
        raise InvalidInputError("the labels hold missing values; drop those rows first.", argument="y")
    if values.dtype.kind != "O":
        found, inverse = np.unique(values, return_inverse=True)
        return [plain(value) for value in found.tolist()], inverse
    labels = [plain(value) for value in values.tolist()]  # of types that may have no order
    distinct = list(dict.fromkeys(labels))
    place = {label: position for position, label in enumerate(distinct)}
    return distinct, np.array([place[label] for label in labels], dtype=np.intp)


def _check_one_dimension(values: np.ndarray[Any, Any]) -> None:
    if values.ndim != 1 or len(values) == 0:
        raise InvalidInputError(f"y must be one label for each row, got shape {values.shape}.", argument="y")
