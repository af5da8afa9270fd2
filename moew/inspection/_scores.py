"""Fitted models on labelled rows: their metric, and which decisions change from one to the other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from moew._util.margins import TWO_SIDED
from moew._util.numbers import level
from moew._util.seeds import generator
from moew.data import LabelledRows, Rows
from moew.exceptions import MoewError, UndefinedMetricError
from moew.inspection._trained import held_rows
from moew.search import (
    EvaluationDecisions,
    Evaluator,
    FinalModel,
    FittedSearch,
    checked_test_rows,
    gain_error_on,
)
from moew.types import Array, IntArray

_SAME = 1e-9  # predictions with a smaller relative difference count as the same


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
    models: Mapping[str, FinalModel],
    beside: str,
    evaluator: Evaluator,
    rows: LabelledRows,
    with_errors: bool = True,
) -> dict[str, ModelScore]:
    """Score fitted models on the same rows, each beside the one that is named `beside`, if it is there.

    Errors come from random halves of the rows, the same for each model, which leave groups whole; those of
    the models' own values, besides those of their gains, with `with_errors`.
    """
    scores: dict[str, ModelScore] = {}
    known = {}
    metric = evaluator.metric
    sign = 1.0 if metric.greater_is_better else -1.0
    for name in sorted(models, key=lambda name: name != beside):
        try:
            seen = evaluator.predictions_on(models[name], rows)
            value = evaluator.value_as_decided(seen, rows)
            if math.isnan(value):
                raise UndefinedMetricError("its value is no number.")
        except Exception as problem:  # the others' scores are worth having
            scores[name] = ModelScore(reason=str(problem) or type(problem).__name__)
            continue
        known[name] = seen
        error = gain = gain_error = math.nan
        if with_errors:
            error = gain_error_on(seen, None, rows, evaluator, generator(0, "test rows"))
        if beside in known and name != beside:
            gain = sign * (value - scores[beside].value)
            gain_error = gain_error_on(seen, known[beside], rows, evaluator, generator(0, "test rows"))
        scores[name] = ModelScore(value, error, gain, gain_error, metric.bounds)
    return {name: scores[name] for name in models}


@dataclass(frozen=True)
class Tested:
    """The metric of both models; NaN where `reason` says why."""

    n_rows: int
    unweighted: float = math.nan
    moew: float = math.nan
    gain_error: float = math.nan  # standard error of their difference on such rows, both models fixed
    reason: str = ""


def on_test_rows(fitted: FittedSearch, test: Rows) -> Tested:
    """Score the models of a finished search on test rows; their groups are not cut apart for the error."""
    evaluator = fitted.evaluator
    rows = checked_test_rows(test, evaluator, fitted.task)
    evaluator.check_columns(rows, "test")
    models = {"unweighted": fitted.unweighted, "moew": fitted.winner}
    there = {name: model for name, model in models.items() if model is not None}
    found = score_models(there, "unweighted", evaluator, rows, with_errors=False)
    reason = "" if "unweighted" in found else "there is no unweighted model"
    if problem := next((one.reason for one in found.values() if one.reason), ""):
        reason = f"the metric failed on the test rows: {problem}"
    plain, moew = found.get("unweighted", ModelScore()), found["moew"]
    return Tested(len(rows), plain.value, moew.value, moew.gain_error, reason)


@dataclass(frozen=True)
class ChangedDecisions:
    """How many decisions change, and from which class to which.

    In regression a row's prediction changes; it becomes right where it is nearer to the target, and wrong
    where it is further away, and there are no classes.
    """

    seen_on: Literal["test", "evaluation", "validation"]  # rows
    n_rows: int
    n_changed: int
    n_right: int  # of these, wrong before and right now
    n_wrong: int  # of these, right before and wrong now
    classes: tuple[str, ...] = ()
    counts: IntArray | None = None  # (C, C): rows decided as the first class before, as the second now
    right: IntArray | None = None  # (C, C): those of them that became right
    wrong: IntArray | None = None  # (C, C): those of them that became wrong


def changed_decisions(
    fitted: FittedSearch, training: Rows, validation: Rows | None = None, test: Rows | None = None
) -> ChangedDecisions | None:
    """The changes on the test rows if they are given, else on the evaluation rows as the search recorded
    them, else on validation rows; None where there is no unweighted model or there are no such rows."""
    if fitted.unweighted is None:
        return None
    try:
        if test is not None and test.X is not None:
            given = Rows(test.X, test.y, None, test.columns)
            rows = checked_test_rows(given, fitted.evaluator, fitted.task)
            return _changes("test", _both(fitted, rows), fitted)
        if fitted.evaluation_decisions is not None:
            return _changes("evaluation", fitted.evaluation_decisions, fitted)
        held = held_rows(fitted, training, validation)
        return None if held is None else _changes("validation", _both(fitted, held), fitted)
    except MoewError:  # such as a column that the rule needs and that was not passed
        return None


def _both(fitted: FittedSearch, rows: Any) -> EvaluationDecisions:
    assert fitted.unweighted is not None
    before, after = (model.decide(rows.X, rows.columns) for model in (fitted.unweighted, fitted.winner))
    return EvaluationDecisions(rows.y, before, after)


def _changes(
    seen_on: Literal["test", "evaluation", "validation"], found: EvaluationDecisions, fitted: FittedSearch
) -> ChangedDecisions:
    parts = found.y, found.before, found.after
    if fitted.task == "regression":
        y, before, after = (np.asarray(part, dtype=np.float64) for part in parts)
        changed = ~np.isclose(before, after, rtol=_SAME, atol=0)
        right = changed & (np.abs(after - y) < np.abs(before - y))
        wrong = changed & (np.abs(after - y) > np.abs(before - y))
    else:
        y, before, after = (np.asarray(part) for part in parts)
        changed = before != after
        right, wrong = changed & (after == y), changed & (before == y)
    totals = len(y), int(changed.sum()), int(right.sum()), int(wrong.sum())
    if fitted.task == "regression":
        return ChangedDecisions(seen_on, *totals)
    classes: Array = np.unique(np.concatenate([np.asarray(fitted.evaluator.classes), before, after]))
    k = len(classes)
    pairs = np.searchsorted(classes, before) * k + np.searchsorted(classes, after)
    counts = [np.bincount(pairs[rows], minlength=k * k).reshape(k, k) for rows in (slice(None), right, wrong)]
    return ChangedDecisions(seen_on, *totals, tuple(map(level, classes.tolist())), *counts)
