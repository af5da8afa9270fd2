"""The winner and the unweighted model on rows that no choice was made on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from moew._util.seeds import generator
from moew.search._honesty import gain_error
from moew.search._prepare import Given, task_of, tested_part
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
    search: Any,
    X: Rows,
    y: Labels,
    sample_weight: Any = None,
    metadata: Mapping[str, Any] | None = None,
) -> Tested:
    """Score the models of a fitted search on test rows."""
    check_is_fitted(search)
    evaluator, task = search.evaluator_, task_of(search.estimator)
    part = tested_part(Given(X, y, sample_weight, metadata), evaluator, task)
    evaluator.check_columns(part, "metadata_test")
    try:
        winner = evaluator.observe_on(search.best_estimator_, search.decision_, part)
        value = evaluator.value(winner, part)
        if search.unweighted_estimator_ is None:
            return Tested(len(part), moew=value, reason="there is no unweighted model")
        plain = evaluator.observe_on(search.unweighted_estimator_, search.unweighted_decision_, part)
        unweighted = evaluator.value(plain, part)
    except Exception as problem:  # what the search found is worth more than these scores
        return Tested(len(part), reason=f"the metric failed on the test rows: {problem}")
    error = gain_error(winner, plain, part, evaluator, task, generator(0, "test rows"))
    return Tested(len(part), unweighted, value, error)
