"""Which metrics have one of the forms of Theorem 1, as functions of the classes' errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    f1_score,
    fbeta_score,
    jaccard_score,
    precision_score,
)

from moew.metrics._classes import _Accuracy, _MeanOfClasses
from moew.metrics._metric import FunctionMetric
from moew.metrics._scorer import ScorerMetric
from moew.theory import (
    ConcaveMeasure,
    RatioMeasure,
    expected_cost,
    f_measure,
    g_mean,
    jaccard,
    precision,
    q_mean,
)
from moew.types import FloatArray, Metric

Measure = ConcaveMeasure | RatioMeasure

_OF_TWO_CLASSES: dict[Any, Callable[..., RatioMeasure]] = {
    f1_score: f_measure,
    fbeta_score: f_measure,
    precision_score: precision,
    jaccard_score: jaccard,
}
_KNOWN = {"average", "beta", "pos_label", "zero_division"}  # arguments that are understood


def measure_of(metric: Metric, positive: Any) -> tuple[Callable[[FloatArray], Measure], Any] | None:
    """The metric as a function of class errors, where it has a form of Theorem 1; else None.

    Returns a function from the classes' shares of the rows (C,), those of two classes in the order negative,
    positive, to the measure; and the positive class, None where all classes count alike. `positive` is the
    class that is positive unless the metric names another. Known are accuracy, balanced accuracy, G-mean,
    Q-mean, and for two classes the F-measure, precision and the Jaccard index; as moew's own metrics,
    scikit-learn's scorers, or its bare functions.
    """
    function, settings = _function(metric)
    if isinstance(function, _Accuracy) or (function is accuracy_score and not settings):
        return expected_cost, None
    if function is balanced_accuracy_score and not settings:
        return lambda shares: expected_cost(0 * shares + 1 / len(shares)), None
    if isinstance(function, _MeanOfClasses):
        mean = {"G-mean": g_mean, "Q-mean": q_mean}[function.name]
        return lambda _: mean(), None
    make = _OF_TWO_CLASSES.get(function) if callable(function) and _can_hash(function) else None
    if make is None or set(settings) - _KNOWN or settings.get("average", "binary") != "binary":
        return None
    more = {"beta": settings["beta"]} if function is fbeta_score and "beta" in settings else {}
    named = settings.get("pos_label", 1 if isinstance(metric, ScorerMetric) else positive)
    return lambda shares: make(float(shares[1]), **more), named


def _function(metric: Metric) -> tuple[Any, dict[str, Any]]:
    """The function of labels and decisions that a metric calls, maximised, and its settings."""
    if isinstance(metric, FunctionMetric) and metric.response == "decision" and metric.greater_is_better:
        return metric.function, {}
    if isinstance(metric, ScorerMetric):
        scorer = metric.scorer
        of_labels = getattr(scorer, "_response_method", None) == "predict"
        if of_labels and getattr(scorer, "_sign", 0) > 0:
            return scorer._score_func, dict(scorer._kwargs)  # type: ignore[attr-defined]
    return None, {}


def _can_hash(function: Any) -> bool:
    return getattr(function, "__hash__", None) is not None
