"""Fitted models on labelled rows: the winner and the unweighted model on test rows, or any on any rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moew._util.margins import TWO_SIDED
from moew._util.seeds import generator
from moew.data import LabelledRows, UserRows
from moew.exceptions import UndefinedMetricError
from moew.search import FinalModel, FittedSearch
from moew.search._evaluate import Evaluator
from moew.search._honest_score import gain_error_on, value_error_on
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


@dataclass(frozen=True)
class ModelScore:
    """A model's metric on labelled rows, and its gain over another model, positive if it is better.

    Errors are standard errors over the choice of rows, for fixed models. NaN where `reason` says why, and
    where there is no other model.
    """

    value: float = math.nan
    error: float = math.nan
    gain: float = math.nan
    gain_error: float = math.nan
    bounds: tuple[float, float] | None = None  # of the metric
    reason: str = ""

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the value, within the metric's bounds."""
        low, high = self.bounds or (-math.inf, math.inf)
        half = TWO_SIDED * self.error
        if math.isnan(half):
            return math.nan, math.nan
        return max(self.value - half, low), min(self.value + half, high)

    @property
    def gain_interval(self) -> tuple[float, float]:
        """The 95 % interval of the gain: both models on the same rows."""
        half = TWO_SIDED * self.gain_error
        return self.gain - half, self.gain + half


def score_models(
    models: Mapping[str, FinalModel], beside: str, evaluator: Evaluator, rows: LabelledRows
) -> dict[str, ModelScore]:
    """Score fitted models on the same rows, each beside the one that is named `beside`, if it is there.

    Errors come from random halves of the rows, the same for each model, which leave groups whole.
    """
    scores: dict[str, ModelScore] = {}
    known = {}
    metric = evaluator.metric
    sign = 1.0 if metric.greater_is_better else -1.0
    for name in sorted(models, key=lambda name: name != beside):
        try:
            known[name] = evaluator.predictions_on(models[name], rows)
            value = evaluator.value_as_decided(known[name], rows)
            if math.isnan(value):
                raise UndefinedMetricError("its value is no number.")
        except Exception as problem:  # the others' scores are worth having
            known.pop(name, None)
            scores[name] = ModelScore(reason=str(problem) or type(problem).__name__)
            continue
        error = value_error_on(known[name], rows, evaluator, generator(0, "test rows"))
        gain, gain_error = math.nan, math.nan
        if beside in known and name != beside:
            gain = sign * (value - scores[beside].value)
            rng = generator(0, "test rows")
            gain_error = gain_error_on(known[name], known[beside], rows, evaluator, rng)
        scores[name] = ModelScore(value, error, gain, gain_error, metric.bounds)
    return {name: scores[name] for name in models}
