"""The metric as a function of the threshold, with the one that is handed out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from moew.data import LabelledRows, UserRows, read_only
from moew.exceptions import InvalidInputError
from moew.metrics import Predictions, decided_labels, decision_basis
from moew.search import FittedSearch
from moew.search._evaluate import LABEL_ARRAYS, rule_score
from moew.search._prepare import checked_test_rows
from moew.types import FloatArray, Labels, Rows

POINTS = 41
_SLOW_POINTS = 11


@dataclass(frozen=True)
class ThresholdCurve:
    """The metric at thresholds of the score, from few selected rows to many."""

    thresholds: FloatArray  # (m,), ascending
    values: FloatArray  # (m,), the metric; NaN where it is undefined
    selected: FloatArray  # (m,), the share of rows above the threshold
    chosen: float  # the threshold of what is handed out
    value: float  # the metric there, on these rows
    share: float  # of rows above it
    rows: str  # in words: which
    n_rows: int
    of: str  # "probability" or "score"


def threshold_curve(
    fitted: FittedSearch,
    X: Rows = None,
    y: Labels = None,
    sample_weight: Any = None,
    metadata: Mapping[str, Any] | None = None,
    *,
    rows: str = "rows given",
    points: int = POINTS,
) -> ThresholdCurve:
    """The metric over the threshold: two classes, a metric of decisions, one threshold for all rows.

    On rows X, y that the model was not trained on; `rows` is what to call them. Without them on the judged
    rows, from the predictions of models that were not trained on them.
    """
    evaluator, rule = fitted.evaluator, fitted.winner.rule
    classes = evaluator.classes
    if classes is None or len(classes) != 2:
        raise _none("it is for two classes")
    judged = fitted.judged_predictions
    if X is None:
        if judged is None:
            raise _none("predictions of the judged rows are not saved; give rows X and y")
        given, known, rows = judged.rows, judged.predictions, "judged rows"
        scores, own = known.scores, known.own_threshold
    else:
        given = checked_test_rows(UserRows(X, y, sample_weight, metadata), evaluator, fitted.task)
        known = evaluator.predictions_on(fitted.winner, given)
        scores, own = _scores(fitted, given)
    if not set(known.arrays) <= LABEL_ARRAYS:
        raise _none(f"the metric {evaluator.metric.name!r} looks at scores, not at decisions")
    if scores is None or scores.ndim != 1:
        raise _none("what is handed out does not decide by a score")
    chosen = own if rule is None else getattr(rule, "threshold_", None)
    if chosen is None:
        raise _none("there is no single threshold")
    points = min(points, _SLOW_POINTS) if evaluator.metric.slow else points
    quantiles = np.quantile(scores, np.linspace(0.0, 1.0, points + 2)[1:-1])
    thresholds = np.unique(quantiles)
    values = [_value(fitted, known, given, scores, float(t)) for t in thresholds]
    return ThresholdCurve(
        thresholds,
        np.array(values),
        np.array([np.mean(scores > t) for t in thresholds]),
        float(chosen),
        _value(fitted, known, given, scores, float(chosen)),
        float(np.mean(scores > chosen)),
        rows,
        len(given),
        _kind(fitted, own),
    )


def _none(why: str) -> InvalidInputError:
    return InvalidInputError(f"there is no curve over the threshold: {why}.", argument="search")


def _scores(fitted: FittedSearch, rows: LabelledRows) -> tuple[FloatArray | None, float]:
    winner = fitted.winner
    if winner.rule is None:
        return decision_basis(winner.model, read_only(rows.X), winner.pos_label)
    if not hasattr(winner.rule, "of"):
        return None, 0.0
    return rule_score(winner.model, winner.rule, rows.X, winner.pos_label), 0.0


def _kind(fitted: FittedSearch, own: float) -> str:
    rule, model = fitted.winner.rule, fitted.winner.model
    by_probability = own > 0 if rule is None else getattr(rule, "of", "") == "probability"
    return "score" if hasattr(model, "decision_function") and not by_probability else "probability"


def _value(
    fitted: FittedSearch, known: Predictions, rows: LabelledRows, scores: FloatArray, threshold: float
) -> float:
    evaluator = fitted.evaluator
    decided = decided_labels(scores > threshold, np.asarray(evaluator.classes), evaluator.pos_label)
    return evaluator.value_of(next(iter(evaluator.metrics)), known, rows, decided)
