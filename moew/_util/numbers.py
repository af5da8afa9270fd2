"""Format numbers for people, the same on the terminal, in results and in the report; tell what is one.

Numbers are written out with commas (1,370), and as powers of ten only where they are really large or small.
Where a number has an error, its digits end where those of the error do: two significant digits of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Integral, Real

import numpy as np

DASH = "–"  # in place of a missing number
_LARGE, _SMALL = 1e12, 1e-4  # from here on, and below, numbers are powers of ten
_ERROR_DIGITS = 2
_MOST_DECIMALS = 9


def number(value: float | None, digits: int = 4, *, error: float | None = None) -> str:
    """A score with `digits` significant digits, or as many as its `error` leaves it.

    Digits before the point are only rounded away by an error: without one, 123,456.7 is 123,457.
    """
    if value is None or math.isnan(value):
        return DASH
    if value != 0 and not _SMALL <= abs(value) < _LARGE:
        return f"{value:.{digits}g}".replace("-", "−")
    decimals = _decimals_of_error(error)
    if decimals is not None:
        return _written(value, decimals)
    decimals = max(digits - 1 - _power(value), 0) if value else 0
    text = _written(value, decimals)
    return text.rstrip("0").rstrip(".") if decimals else text


def signed(value: float | None, digits: int = 3, *, error: float | None = None) -> str:
    """A difference, with its sign."""
    text = number(value, digits, error=error)
    is_above = value is not None and not math.isnan(value) and not text.startswith("−")
    return f"+{text}" if is_above else text


def alike(
    values: Sequence[float | None], digits: int = 4, *, errors: Iterable[float | None] = ()
) -> list[str]:
    """Numbers with the same number of decimals each, so that they are easy to compare.

    `errors` are those of some of the numbers; the smallest above zero says how many decimals there are.
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    largest = max(map(abs, known), default=0.0)
    if not _SMALL <= largest < _LARGE:
        return [number(value, digits) for value in values]
    decimals = max(digits - 1 - _power(largest), 0)
    if all(float(value).is_integer() for value in known):
        decimals = 0
    known_errors = [error for error in errors if error is not None and _is_error(error)]
    by_error = _decimals_of_error(min(known_errors, default=None))
    if by_error is not None:  # one tiny error must not give all numbers many digits
        decimals = min(by_error, decimals + _ERROR_DIGITS)
    return [
        _written(value, decimals) if value is not None and math.isfinite(value) else number(value)
        for value in values
    ]


def with_margin(value: float | None, margin: float | None, *, sign: bool = False) -> str:
    """A number and half its 95 % interval with the same decimals: 0.853 ± 0.031; + for gains by `sign`."""
    shown = signed(value, error=margin) if sign else number(value, error=margin)
    if value is None or math.isnan(value) or not _is_error(margin):
        return shown if margin is None or margin != 0 else f"{shown} ± 0"
    return f"{shown} ± {number(margin, _ERROR_DIGITS, error=margin)}"


def ends(low: float, high: float) -> tuple[str, str]:
    """The ends of an interval of a difference, with their signs; only zero is written as zero."""
    half = (high - low) / 2
    texts = [signed(end, error=half) for end in (low, high)]
    shown = [
        signed(end, _ERROR_DIGITS) if end and not any(digit in text for digit in "123456789") else text
        for end, text in zip((low, high), texts, strict=True)
    ]
    return shown[0], shown[1]


def percent(share: float | None) -> str:
    """A share in percent."""
    return DASH if share is None or math.isnan(share) else f"{number(100 * share, 3)} %"


def count(n: int, thing: str) -> str:
    """A number and its noun: 1 row, 2 rows."""
    return f"{n:,} {thing}" + ("" if n == 1 else "es" if thing.endswith("ss") else "s")


def level(value: object) -> str:
    """A value of a category as text: 1 also where it is the float 1.0."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _written(value: float, decimals: int) -> str:
    """The value with so many decimals, or rounded to tens, hundreds, … where they are negative."""
    rounded = round(float(value), decimals) + 0.0  # no −0
    return f"{rounded:,.{max(decimals, 0)}f}".replace("-", "−")


def _power(value: float) -> int:
    """The power of ten of the first digit of a number that is not zero."""
    return math.floor(math.log10(abs(value)))


def _decimals_of_error(error: float | None) -> int | None:
    """How many decimals a number with this error has; None where there is no error to go by."""
    if error is None or not _is_error(error):
        return None
    power = _power(error)
    if round(error, _ERROR_DIGITS - 1 - power) >= 10.0 ** (power + 1):  # 0.0996 is written as 0.10
        power += 1
    return min(_ERROR_DIGITS - 1 - power, _MOST_DECIMALS)


def _is_error(error: float | None) -> bool:
    return error is not None and math.isfinite(error) and error > 0


def reads_as_number(text: str) -> bool:
    """Whether a text can be read as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_number(value: object) -> bool:
    """Whether an argument is a finite real number: no truth value, no text, no array."""
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:  # a whole number beyond 1e308
        return False


def is_whole(value: object, least: int | None = None) -> bool:
    """Whether an argument is a whole number, of `least` or more: no truth value, and no float, be it 2.0."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        return False
    return least is None or int(value) >= least
