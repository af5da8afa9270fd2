"""The search over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from moew.types import FloatArray, IntArray


@dataclass(frozen=True)
class Trace:
    """Every candidate that has a value, in the order of the numbers."""

    numbers: IntArray  # (n,)
    values: FloatArray  # (n,), the metric on the validation rows
    best_so_far: FloatArray  # (n,)
    failed: IntArray  # numbers of candidates without a value


def trace(search: Any) -> Trace:
    """The candidates of a fitted search and the best score after each."""
    check_is_fitted(search)
    told = search.result_.candidates
    values = np.array([candidate.value for candidate in told], dtype=np.float64)
    numbers = np.array([candidate.candidate.number for candidate in told])
    finite = np.isfinite(values)
    running = np.maximum if search.result_.greater_is_better else np.minimum
    return Trace(numbers[finite], values[finite], running.accumulate(values[finite]), numbers[~finite])
