"""The search over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moew.search import FittedSearch
from moew.types import FloatArray, IntArray


@dataclass(frozen=True)
class Trace:
    """Every candidate that has a value, in the order of the numbers."""

    numbers: IntArray  # (n,)
    values: FloatArray  # (n,), the metric on the validation rows
    best_so_far: FloatArray  # (n,)
    failed: IntArray  # numbers of candidates without a value


def trace(fitted: FittedSearch) -> Trace:
    """The candidates of a finished search and the best score after each."""
    trials = fitted.result.trials
    values = np.array([trial.value for trial in trials], dtype=np.float64)
    numbers = np.array([trial.number for trial in trials])
    finite = np.isfinite(values)
    running = np.maximum if fitted.result.greater_is_better else np.minimum
    return Trace(numbers[finite], values[finite], running.accumulate(values[finite]), numbers[~finite])
