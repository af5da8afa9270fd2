"""Format numbers for people, the same on the terminal, in results and in the report; tell what is one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real

import numpy as np

DASH = "–"  # in place of a missing number


def number(value: float | None, digits: int = 4) -> str:
    """A score with `digits` significant digits."""
    return DASH if _is_none(value) else f"{value:.{digits}g}".replace("-", "−")


def signed(value: float | None, digits: int = 3) -> str:
    """A difference, with its sign."""
    return DASH if _is_none(value) else f"{value:+.{digits}g}".replace("-", "−")


def alike(values: Sequence[float | None], digits: int = 4) -> list[str]:
    """Numbers with the same number of decimals each, so that they are easy to compare."""
    known = [value for value in values if value is not None and not _is_none(value)]
    largest = max(map(abs, known), default=0.0)
    decimals = digits - 1 - math.floor(math.log10(largest)) if largest > 0 else 0
    if all(float(value).is_integer() for value in known):
        decimals = 0
    if not 0 <= decimals <= digits + 2:  # very large or very small ones
        return [number(value, digits) for value in values]
    return [DASH if _is_none(value) else f"{value:,.{decimals}f}".replace("-", "−") for value in values]


def percent(share: float | None) -> str:
    """A share in percent."""
    return DASH if share is None or _is_none(share) else f"{100 * share:.3g} %".replace("-", "−")


def count(n: int, thing: str) -> str:
    """A number and its noun: 1 row, 2 rows."""
    return f"{n:,} {thing}" + ("" if n == 1 else "es" if thing.endswith("ss") else "s")


def _is_none(value: float | None) -> bool:
    return value is None or math.isnan(value)


def is_number(value: object) -> bool:
    """Whether an argument is a finite real number: no truth value, no text, no array."""
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:  # a whole number beyond 1e308
        return False


def is_whole(value: object) -> bool:
    """Whether an argument is a whole number: no truth value, and no float, be it 2.0."""
    return isinstance(value, Integral) and not isinstance(value, bool)
