"""Turn what the user passed as `metric` into a metric."""

from __future__ import annotations

import math
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from inspect import Parameter, signature
from typing import Any, NamedTuple

from sklearn.metrics import get_scorer, get_scorer_names, make_scorer

from moew.exceptions import Argument, InPython, InvalidInputError
from moew.metrics._fast import FAST_FORMS
from moew.metrics._metric import FunctionMetric, make_metric
from moew.metrics._scorer import ScorerMetric
from moew.types import Metric


class MetricFactory(NamedTuple):
    """A function that makes a metric, and an example of the numbers that can follow its name and "="."""

    make: Callable[..., FunctionMetric]
    example: str = ""


_SHARES = ("accuracy", "balanced_accuracy", "top_k_accuracy", "f1", "precision", "recall", "jaccard",
           "roc_auc", "average_precision")  # fmt: skip
_SMALLER = ("_error", "_loss", "_deviance")  # endings of functions of sklearn.metrics to minimise
_RESPONSES = {  # functions of sklearn.metrics that do not take decisions
    "score": ("average_precision_score", "dcg_score", "hinge_loss", "label_ranking_average_precision_score",
              "label_ranking_loss", "coverage_error", "ndcg_score", "roc_auc_score", "top_k_accuracy_score"),
    "proba": ("brier_score_loss", "d2_brier_score", "d2_log_loss_score", "log_loss"),
}  # fmt: skip
_TAKEN = {"score": "scores", "proba": "probabilities"}
_ARGUMENTS = {  # names of a function's second argument that say what it takes
    "score": ("score", "scores", "y_score", "y_scores"),
    "proba": ("proba", "probas", "y_proba", "y_prob", "probability", "probabilities"),
}
_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_MODEL_NAMES = ("estimator", "est", "model", "clf", "reg")


def resolve_metric(metric: Any) -> Metric:
    """The metric for what the user passed.

    A metric is returned as it is; a string is one of METRICS, such as "precision_at_recall=0.95", or the name
    of a scikit-learn scorer; a scorer, or a function of (estimator, X, y), is evaluated on recorded
    predictions; any other function goes to `make_metric`.
    """
    if isinstance(metric, Metric) and not isinstance(metric, type):
        return metric
    if isinstance(metric, str):
        return named_metric(metric)
    if not callable(metric) or isinstance(metric, type):
        raise InvalidInputError(
            Argument("metric"),
            " must be a function (y_true, decision, …), a scikit-learn scorer or its name, or one of "
            f"moew.metrics, got {metric!r}.",
            argument="metric",
        )
    if isinstance(metric, partial) and metric.func is make_metric:
        raise InvalidInputError(
            "make_metric(…) without a function is a decorator; give it the function too.", argument="metric"
        )
    if _takes_a_model(metric):
        return ScorerMetric(metric, getattr(metric, "__name__", None) or repr(metric))
    if any(metric is factory.make for factory in _metrics().values()):
        raise InvalidInputError(
            f"{metric.__name__} makes a metric: pass {metric.__name__}(…), not itself.", argument="metric"
        )
    _check_bare(metric)
    return make_metric(metric)


def _metrics() -> dict[str, MetricFactory]:
    from moew.metrics import METRICS  # imported late: the registry imports this module

    return METRICS


def named_metric(text: str, pos_label: Any = None) -> Metric:
    """The metric with this name: one of METRICS, with numbers after "=" if it takes them, or a scorer.

    `pos_label` is the positive class, for metrics that have one.
    """
    name, _, numbers = text.partition("=")
    if text not in get_scorer_names():  # for "accuracy", which is both, the scorer
        if name in _metrics():
            return _ours(name, numbers, pos_label)
        known = {**_metrics(), **dict.fromkeys(get_scorer_names())}
        near = get_close_matches(name, known, n=4, cutoff=0.5) or ["accuracy", "roc_auc", "f1_macro", "r2"]
        raise InvalidInputError(
            Argument("metric", text),
            f" is no metric of moew's and no scorer of scikit-learn's; perhaps {', '.join(near)}? All are "
            "listed by `moew metrics`",
            InPython(", or by moew.metrics.METRICS and sklearn.metrics.get_scorer_names()"),
            ".",
            argument="metric",
        )
    scorer = get_scorer(text)
    if pos_label is None:
        return ScorerMetric(scorer, text, FAST_FORMS.get(text), _bounds_of(text), text)
    function = scorer._score_func
    _check_takes_label(text, function)
    of_label = make_scorer(
        function,
        response_method=scorer._response_method,
        greater_is_better=scorer._sign > 0,
        **{**scorer._kwargs, "pos_label": pos_label},
    )
    return ScorerMetric(of_label, f"{text} of {pos_label}", registry_name=text)


def _ours(name: str, numbers: str, pos_label: Any) -> FunctionMetric:
    factory = _metrics()[name]
    if numbers and not factory.example:
        raise InvalidInputError(
            Argument("metric", name), f" takes no number, got {name}={numbers}.", argument="metric"
        )
    given: dict[str, Any] = {}
    if pos_label is not None:
        _check_takes_label(name, factory.make)
        given["pos_label"] = pos_label
    try:
        values = [float(part) for part in numbers.split(",")] if numbers else []
    except ValueError:
        raise InvalidInputError(
            Argument("metric", f"{name}={factory.example}"),
            f" needs numbers, got {numbers!r}.",
            argument="metric",
        ) from None
    if name == "worst_band_relative_error" and values:
        return factory.make(tuple(values), **given)
    return factory.make(*values, **given)


def _check_takes_label(name: str, function: Any) -> None:
    if "pos_label" not in signature(function).parameters:
        raise InvalidInputError(
            Argument("metric", name),
            " has no positive label; leave out ",
            Argument("pos_label"),
            ".",
            argument="pos_label",
        )


def _bounds_of(scorer_name: str) -> tuple[float, float] | None:
    """The lowest and the highest value of a scikit-learn scorer, as far as its name tells."""
    if scorer_name.startswith("neg_"):
        return (-math.inf, 0.0)
    if scorer_name.startswith(("r2", "d2_", "explained_variance")):
        return (-math.inf, 1.0)
    if scorer_name == "matthews_corrcoef":
        return (-1.0, 1.0)
    return (0.0, 1.0) if scorer_name.startswith(_SHARES) else None


def _argument_names(function: Any) -> list[str]:
    """The names of the arguments by position; none if they cannot be seen."""
    try:
        return [p.name for p in signature(function).parameters.values() if p.kind in _BY_POSITION]
    except (TypeError, ValueError):
        return []


def _check_bare(function: Any) -> None:
    """Raise for a function that would get decisions although it takes scores, or one of sklearn.metrics that
    would be maximised although smaller is better: either would silently let a bad model win."""
    second = next(iter(_argument_names(function)[1:]), None)
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__name__", "")
    taken = next((response for response, names in _ARGUMENTS.items() if second in names), None)
    if taken is not None and not str(getattr(function, "__module__", "")).startswith("sklearn.metrics"):
        raise InvalidInputError(
            f"{name} takes {second!r}, but a bare function gets decisions; pass ",
            InPython(f"make_metric({name}, "),
            Argument("response", taken),
            InPython(")"),
            ", or call the argument 'decision'.",
            argument="metric",
        )
    if not str(getattr(function, "__module__", "")).startswith("sklearn.metrics"):
        return
    settings = [Argument("greater_is_better", False)] if name.endswith(_SMALLER) else []
    response = next((r for r, names in _RESPONSES.items() if name in names), None)
    if response is not None:
        settings.append(Argument("response", response))
    if not settings:
        return
    why = [
        *(["is better when smaller, but a bare function is maximised"] if name.endswith(_SMALLER) else []),
        *([f"takes {_TAKEN[response]}, but a bare function gets decisions"] if response is not None else []),
    ]
    named = [n for n in get_scorer_names() if getattr(get_scorer(n), "_score_func", None) is function]
    or_name = (", or the scorer's name: ", Argument("metric", min(named, key=len))) if named else ()
    wanted = [part for setting in settings for part in (", ", setting)][1:]
    raise InvalidInputError(
        f"{name} {' and '.join(why)}; pass ",
        InPython(f"make_metric({name}, "),
        *wanted,
        InPython(")"),
        *or_name,
        ".",
        argument="metric",
    )


def _takes_a_model(function: Any) -> bool:
    """Whether a callable is a scorer: its first argument is a model, or its second is X."""
    names = _argument_names(function)
    return bool(names) and (names[0] in _MODEL_NAMES or names[1:2] == ["X"])
