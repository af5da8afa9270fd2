"""The winner and the unweighted model on rows that no choice was made on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moew._util.seeds import generator
from moew.data import UserRows
from moew.search import FittedSearch
from moew.search._honest_score import gain_error_on
from moew.search._prepare import checked_test_rows
from moew.types import Labels, Rows


@dataclass(frozen=True)
class Tested:
    """The metric of both models; NaN where `reason` says why."""

    n_rows: int
    unweighted: float = math.nan
    moew: float = math.nan
    gain_error: float = math.nan  # standard error of their difference on such rows, both models fixed
    reason: str = ""


def on_test_rows(
    fitted: FittedSearch,
    X: Rows,
    y: Labels,
    sample_weight: Any = None,
    metadata: Mapping[str, Any] | None = None,
    groups: Any = None,
) -> Tested:
    """Score the models of a finished search on test rows; `groups` (n,) are not cut apart for the error."""
    evaluator, task = fitted.evaluator, fitted.task
    rows = checked_test_rows(UserRows(X, y, sample_weight, metadata, groups), evaluator, task)
    evaluator.check_columns(rows, "metadata_test")
    try:
        winner = evaluator.predictions_on(fitted.winner, rows)
        value = evaluator.value_as_decided(winner, rows)
        if fitted.unweighted is None:
            return Tested(len(rows), moew=value, reason="there is no unweighted model")
        plain = evaluator.predictions_on(fitted.unweighted, rows)
        unweighted = evaluator.value_as_decided(plain, rows)
    except Exception as problem:  # what the search found is worth more than these scores
        return Tested(len(rows), reason=f"the metric failed on the test rows: {problem}")
    error = gain_error_on(winner, plain, rows, evaluator, generator(0, "test rows"))
    return Tested(len(rows), unweighted, value, error)
