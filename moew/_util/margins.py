"""Error margins of means over repeats."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student_t

ONE_SIDED = 1.645  # standard errors to the bound of a one-sided 95 % interval of many values
TWO_SIDED = 1.96  # standard errors on each side of a 95 % interval of many values


def is_beyond_chance(difference: float, error: float) -> bool:
    """Whether a difference is beyond chance, which means the same everywhere: its 95 % interval lies above
    zero. `error` is its standard error; what has none is not."""
    return difference > TWO_SIDED * error


def margin(values: NDArray[np.floating[Any]]) -> float:
    """Half the width of the 95 % interval of the mean of `values` (n,), by Student's t."""
    n = len(values)
    if n > 1 and np.ptp(values) == 0:
        return 0.0  # exactly, without the rounding error of the mean
    return float(student_t.ppf(0.975, n - 1) * np.std(values, ddof=1) / math.sqrt(n))
