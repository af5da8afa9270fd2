"""From what the user wrote to a metric."""

from __future__ import annotations

from difflib import get_close_matches
from functools import partial
from inspect import Parameter, signature
from typing import Any

from sklearn.metrics import get_scorer, get_scorer_names

from moew.exceptions import InvalidInputError
from moew.metrics._classes import accuracy, fpr_gap, worst_class_error
from moew.metrics._metric import Metric, make_metric
from moew.metrics._ranking import precision_at_recall
from moew.metrics._regression import r_squared, worst_band_relative_error
from moew.metrics._scorer import ScorerMetric
from moew.metrics._selected import mean_of_selected, value_per_harm

AnyMetric = Metric | ScorerMetric

_FACTORIES = (
    accuracy,
    fpr_gap,
    mean_of_selected,
    precision_at_recall,
    r_squared,
    value_per_harm,
    worst_band_relative_error,
    worst_class_error,
)

_MODEL_NAMES = ("estimator", "est", "model", "clf", "reg")


def resolve_metric(metric: Any) -> AnyMetric:
    """A metric stays what it is; a string is the name of a scikit-learn scorer; a scorer, or a function
    of (estimator, X, y), is replayed on recorded predictions; any other function goes to `make_metric`.
    """
    if isinstance(metric, Metric | ScorerMetric):
        return metric
    if isinstance(metric, str):
        return ScorerMetric(_scorer_named(metric), metric)
    if not callable(metric) or isinstance(metric, type):
        raise InvalidInputError(
            "metric must be a function (y_true, decision, …), a scikit-learn scorer or its name, or one of "
            f"moew.metrics, got {metric!r}."
        )
    if isinstance(metric, partial) and metric.func is make_metric:
        raise InvalidInputError("make_metric(…) without a function is a decorator; give it the function too.")
    if _takes_a_model(metric):
        return ScorerMetric(metric, getattr(metric, "__name__", None) or repr(metric))
    if any(metric is factory for factory in _FACTORIES):
        raise InvalidInputError(f"{metric.__name__} makes a metric: pass {metric.__name__}(…), not itself.")
    return make_metric(metric)


def _scorer_named(name: str) -> Any:
    try:
        return get_scorer(name)
    except (KeyError, ValueError) as error:
        known = get_scorer_names()
        shown = get_close_matches(name, known, n=4, cutoff=0.5) or ["accuracy", "roc_auc", "f1_macro", "r2"]
        raise InvalidInputError(
            f"metric={name!r} is not the name of a scikit-learn scorer; perhaps {', '.join(shown)}? All are "
            "listed by sklearn.metrics.get_scorer_names(). The paper's metrics are functions of moew.metrics."
        ) from error


def _takes_a_model(function: Any) -> bool:
    """Whether a callable is a scorer: its first argument is a model, or its second is X."""
    try:
        parameters = list(signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    names = [p.name for p in parameters if p.kind is not Parameter.KEYWORD_ONLY]
    return bool(names) and (names[0] in _MODEL_NAMES or names[1:2] == ["X"])
