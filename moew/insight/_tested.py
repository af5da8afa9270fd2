"""The winner and the unweighted model on rows that no choice was made on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from moew.evaluation import column_names
from moew.honesty import gain_error
from moew.protocols import Labels, Rows
from moew.seeds import generator
from moew.setup import Given, part_of, task_of


@dataclass(frozen=True)
class Tested:
    """The metric of both models; NaN for the unweighted one where it could not be trained."""

    n_rows: int
    unweighted: float
    moew: float
    gain_error: float  # standard error of their difference on such rows, both models fixed


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
    names = column_names(evaluator.metric, evaluator.rule)
    part = part_of(Given(X, y, sample_weight, metadata), task, "test", names)
    weighted = part.sample_weight is not None
    evaluator.metric.check_columns(part.columns, len(part), "metadata_test", weighted=weighted)
    winner = evaluator.observe_on(search.best_estimator_, search.decision_, part)
    value = evaluator.value(winner, part)
    if search.unweighted_estimator_ is None:
        return Tested(len(part), math.nan, value, math.nan)
    plain = evaluator.observe_on(search.unweighted_estimator_, search.unweighted_decision_, part)
    rng = generator(0, "test rows")
    error = gain_error(winner, plain, part, evaluator, task, rng)
    return Tested(len(part), evaluator.value(plain, part), value, error)
