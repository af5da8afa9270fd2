"""One column: how its values become numbers, learned and applied."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np

from moew.data._numeric import Column
from moew.exceptions import InvalidInputError
from moew.types import BoolArray, FloatArray, IntArray

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
    return InvalidInputError(f"{name} holds infinite values; replace them by numbers or by missing.")


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
    return InvalidInputError(f"{name} holds values of up to {top:g}, too large to scale; divide them first.")


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
        raise InvalidInputError(f"{name} was numeric in the training rows, but now: {error}.") from error
    refuse_infinite(name, numbers)
    return numbers


def plain(value: Any) -> Any:
    """A NumPy scalar as the Python value that JSON can hold."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, bool | int | float | str) else str(value)
