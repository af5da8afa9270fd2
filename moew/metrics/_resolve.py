"""From what the user wrote to a metric."""

from __future__ import annotations

import math
from difflib import get_close_matches
from functools import partial
from inspect import Parameter, signature
from typing import Any

from sklearn.metrics import get_scorer, get_scorer_names

from moew.exceptions import InvalidInputError
from moew.metrics._classes import accuracy, fpr_gap, worst_class_error
from moew.metrics._fast import FAST_FORMS
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

_SHARES = ("accuracy", "balanced_accuracy", "top_k_accuracy", "f1", "precision", "recall", "jaccard",
           "roc_auc", "average_precision")  # fmt: skip
_SMALLER = ("_error", "_loss", "_deviance")  # how functions of sklearn.metrics end that are to be small
_RESPONSES = {  # functions of sklearn.metrics that take something else than decisions
    "score": ("average_precision_score", "dcg_score", "hinge_loss", "label_ranking_average_precision_score",
              "label_ranking_loss", "coverage_error", "ndcg_score", "roc_auc_score", "top_k_accuracy_score"),
    "proba": ("brier_score_loss", "d2_brier_score", "d2_log_loss_score", "log_loss"),
}  # fmt: skip
_TAKEN = {"score": "scores", "proba": "probabilities"}
_MODEL_NAMES = ("estimator", "est", "model", "clf", "reg")


def resolve_metric(metric: Any) -> AnyMetric:
    """A metric stays what it is; a string is the name of a scikit-learn scorer; a scorer, or a function
    of (estimator, X, y), is replayed on recorded predictions; any other function goes to `make_metric`.
    """
    if isinstance(metric, Metric | ScorerMetric):
        return metric
    if isinstance(metric, str):
        return ScorerMetric(_scorer_named(metric), metric, FAST_FORMS.get(metric), _bounds_of(metric))
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
    _check_bare(metric)
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


def _bounds_of(scorer_name: str) -> tuple[float, float] | None:
    """The lowest and the highest value a scikit-learn scorer can give, where its name tells."""
    if scorer_name.startswith("neg_"):
        return (-math.inf, 0.0)
    if scorer_name.startswith(("r2", "d2_", "explained_variance")):
        return (-math.inf, 1.0)
    if scorer_name == "matthews_corrcoef":
        return (-1.0, 1.0)
    return (0.0, 1.0) if scorer_name.startswith(_SHARES) else None


def _check_bare(function: Any) -> None:
    """Raise for a function of sklearn.metrics that would be maximised though smaller is better, or be
    given decisions though it takes scores: either would let a bad model win without a word."""
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__name__", "")
    if not str(getattr(function, "__module__", "")).startswith("sklearn.metrics"):
        return
    settings = ["greater_is_better=False"] if name.endswith(_SMALLER) else []
    response = next((r for r, names in _RESPONSES.items() if name in names), None)
    if response is not None:
        settings.append(f"response={response!r}")
    if not settings:
        return
    why = [
        *(["is better when smaller, but a bare function is maximised"] if name.endswith(_SMALLER) else []),
        *([f"takes {_TAKEN[response]}, but a bare function gets decisions"] if response is not None else []),
    ]
    named = [n for n in get_scorer_names() if getattr(get_scorer(n), "_score_func", None) is function]
    or_name = f", or the scorer's name: metric={min(named, key=len)!r}" if named else ""
    raise InvalidInputError(
        f"{name} {' and '.join(why)}; pass metric=make_metric({name}, {', '.join(settings)}){or_name}."
    )


def _takes_a_model(function: Any) -> bool:
    """Whether a callable is a scorer: its first argument is a model, or its second is X."""
    try:
        parameters = list(signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    names = [p.name for p in parameters if p.kind is not Parameter.KEYWORD_ONLY]
    return bool(names) and (names[0] in _MODEL_NAMES or names[1:2] == ["X"])
