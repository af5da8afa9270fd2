"""Turn what the user passed as metrics, and as bounds of them, into metrics and constraints."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from inspect import signature
from typing import Any

from sklearn.metrics import get_scorer, get_scorer_names, make_scorer

from moew._util.numbers import number, reads_as_number
from moew.exceptions import Argument, InPython, InvalidInputError
from moew.metrics._fast import FAST_FORMS
from moew.metrics._metric import BY_POSITION, FunctionMetric, inner_function, make_metric, parameters_of
from moew.metrics._own import METRICS, accuracy, r_squared
from moew.metrics._scorer import ScorerMetric
from moew.types import Task

_SMALLER = ("_error", "_loss", "_deviance")  # endings of functions of sklearn.metrics to minimise
_TAKEN = {"score": "scores", "proba": "probabilities"}
_ARGUMENTS = {  # names of a function's second argument that say what it takes
    **dict.fromkeys(("score", "scores", "y_score", "y_scores"), "score"),
    **dict.fromkeys(("proba", "probas", "y_proba", "y_prob", "probability", "probabilities"), "proba"),
}
_FUNCTIONS = {  # of sklearn.metrics, whose second argument does not say it, at least in 1.7
    "hinge_loss": "score",
    "log_loss": "proba",
    "d2_log_loss_score": "proba",
}
_MODEL_NAMES = ("estimator", "est", "model", "clf", "reg")

Metric = FunctionMetric | ScorerMetric


def resolve_metric(metric: Any) -> Metric:
    """The metric for what the user passed.

    A metric is returned as it is; a string is one of METRICS, such as "precision_at_recall=0.95", or the name
    of a scikit-learn scorer; a scorer, or a function of (estimator, X, y), is evaluated on recorded
    predictions; any other function goes to `make_metric`.
    """
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str):
        return named_metric(metric)
    if not callable(metric) or isinstance(metric, type):
        raise InvalidInputError(
            Argument("metric"),
            " must be a function (y_true, decision, …), a scikit-learn scorer or its name, or one of "
            f"moew.metrics, got {metric!r}.",
        )
    if isinstance(metric, partial) and metric.func is FunctionMetric:
        raise InvalidInputError(
            "make_metric(…) without a function is a decorator; give it the function too.", argument="metric"
        )
    if _takes_a_model(metric):
        name = getattr(metric, "__name__", None) or repr(metric)
        # So that the same scorer gives the same bits by its name and as an object.
        return ScorerMetric(metric, name, known=_name_of(metric))
    if any(metric is factory.make for factory in METRICS.values()):
        raise InvalidInputError(
            f"{metric.__name__} makes a metric: pass {metric.__name__}(…), not itself.", argument="metric"
        )
    _check_bare(metric)
    return make_metric(metric)


def is_vectorised(metric: Metric) -> bool:
    """Whether the metric is known to compute in NumPy: one of moew's, or a scorer with a fast form."""
    if isinstance(metric, ScorerMetric):
        return metric.known in FAST_FORMS
    return metric.takes_many or (isinstance(metric, FunctionMetric) and metric.registry_name != "")


def _name_of(scorer: Any) -> str:
    """The name of the scikit-learn scorer that this one is equal to; empty if there is none, or if it has
    requests of metadata routing, which named ones have not."""
    function = getattr(scorer, "_score_func", None)
    if function is None or getattr(scorer, "_metadata_request", None) is not None:
        return ""
    alike = (name for name in get_scorer_names() if get_scorer(name)._score_func is function)
    return next((name for name in alike if _parts_of(get_scorer(name)) == _parts_of(scorer)), "")


def _parts_of(scorer: Any) -> tuple[Any, ...]:
    """What a scorer of scikit-learn's is made of, with the defaults of its function."""
    defaults = {p.name: p.default for p in signature(scorer._score_func).parameters.values()}
    return type(scorer), scorer._sign, {**defaults, **scorer._kwargs}, scorer._response_method


def named_metric(text: str, pos_label: Any = None) -> Metric:
    """The metric with this name: one of METRICS, with numbers after "=" if it takes them, or a scorer.

    `pos_label` is the positive class, for metrics that have one.
    """
    name, _, numbers = text.partition("=")
    if text not in get_scorer_names():  # for "accuracy", which is both, the scorer
        if name in METRICS:
            return _ours(name, numbers, pos_label)
        known = {**METRICS, **dict.fromkeys(get_scorer_names())}
        near = get_close_matches(name, known, n=4, cutoff=0.5) or ["accuracy", "roc_auc", "f1_macro", "r2"]
        raise InvalidInputError(
            Argument("metric", text),
            f" is no metric of moew's and no scorer of scikit-learn's; perhaps {', '.join(near)}? All are "
            "listed by `moew metrics`",
            InPython(", or by moew.metrics.METRICS and sklearn.metrics.get_scorer_names()"),
            ".",
        )
    scorer = get_scorer(text)
    if pos_label is None:
        return ScorerMetric(scorer, text, text, registry_name=text)
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
    factory = METRICS[name]
    if numbers and not factory.example:
        raise InvalidInputError(Argument("metric", name), f" takes no number, got {name}={numbers}.")
    given: dict[str, Any] = {}
    if pos_label is not None:
        _check_takes_label(name, factory.make)
        given["pos_label"] = pos_label
    parts = numbers.split(",") if numbers else []
    if not all(map(reads_as_number, parts)):
        raise InvalidInputError(
            Argument("metric", f"{name}={factory.example}"), f" needs numbers, got {numbers!r}."
        )
    values = tuple(map(float, parts))
    if name == "worst_band_relative_error" and values:
        return factory.make(values, **given)
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


def _argument_names(function: Any) -> list[str]:
    """The names of the arguments by position; none if they cannot be seen."""
    return [p.name for p in parameters_of(function) or [] if p.kind in BY_POSITION]


def _check_bare(function: Any) -> None:
    """Raise for a function that would get decisions although it takes scores, or one of sklearn.metrics that
    would be maximised although smaller is better: either would silently let a bad model win."""
    second = next(iter(_argument_names(function)[1:]), "")
    function = inner_function(function)
    name = getattr(function, "__name__", "")
    is_theirs = str(getattr(function, "__module__", "")).startswith("sklearn.metrics")
    taken = _FUNCTIONS[name] if is_theirs and name in _FUNCTIONS else _ARGUMENTS.get(second)
    why, wanted = [], []
    if is_theirs and name.endswith(_SMALLER):
        why.append("is better when smaller, but a bare function is maximised")
        wanted.append(Argument("greater_is_better", False))
    if taken is not None:
        what = _TAKEN[taken] if is_theirs else repr(second)
        why.append(f"takes {what}, but a bare function gets decisions")
        wanted.append(Argument("response", taken))
    if not why:
        return
    scorers = [n for n in get_scorer_names() if getattr(get_scorer(n), "_score_func", None) is function]
    named = (", or the scorer's name: ", Argument("metric", min(scorers, key=len))) if scorers else ()
    raise InvalidInputError(
        f"{name} {' and '.join(why)}; pass ",
        InPython(f"make_metric({name}, "),
        *[part for setting in wanted for part in (", ", setting)][1:],
        InPython(")"),
        *(named if is_theirs else (", or call the argument 'decision'",)),
        ".",
        argument="metric",
    )


def _takes_a_model(function: Any) -> bool:
    """Whether a callable is a scorer: its first argument is a model, or its second is X."""
    names = _argument_names(function)
    return bool(names) and (names[0] in _MODEL_NAMES or names[1:2] == ["X"])


_BOUND = re.compile(r"\s*(.+?)\s*(<=|>=)\s*([^<>=\s]+)\s*")


@dataclass(frozen=True)
class Constraint:
    """A bound that the metric called `name` must keep."""

    name: str
    at_most: bool  # else at least
    bound: float

    def excess(self, value: float) -> float:
        """How far a value is beyond the bound, in the metric's units; negative where it keeps it."""
        return value - self.bound if self.at_most else self.bound - value

    def __str__(self) -> str:
        return f"{self.name} {'<=' if self.at_most else '>='} {number(self.bound)}"


def resolve_metrics(given: Any, task: Task) -> dict[str, Metric]:
    """The metrics by name, the one to optimise first, for what the user passed as `metric`.

    A list names each by the text that the user gave, by its name in METRICS, or by the metric's own name; a
    dict has its own names. Anything else is one metric, None the accuracy of a classifier or the R² of a
    regressor.
    """
    if given is None:
        default = accuracy() if task == "classification" else r_squared()
        return {default.name: default}
    if isinstance(given, Mapping):
        named = [(name, resolve_metric(metric)) for name, metric in given.items()]
    else:
        named = [_named(metric) for metric in (given if isinstance(given, list | tuple) else [given])]
        names = [name for name, _ in named]  # such as precision_at_recall, twice with other numbers
        named = [(metric.name if names.count(name) > 1 else name, metric) for name, metric in named]
    if not named:
        raise InvalidInputError(Argument("metric"), " is empty: give one metric at least.")
    names = [name for name, _ in named]
    if wrong := [name for name in names if not isinstance(name, str) or not name.strip()]:
        raise InvalidInputError(f"the name of a metric must be a text, got {wrong[0]!r}.", argument="metric")
    if twice := [name for name in names if names.count(name) > 1]:
        raise InvalidInputError(
            f"two metrics are called {twice[0]!r}; name them in a dict: {{'first': …, 'second': …}}.",
            argument="metric",
        )
    return dict(named)


def _named(metric: Any) -> tuple[str, Metric]:
    resolved = resolve_metric(metric)
    return metric if isinstance(metric, str) else _short_name(resolved), resolved


def _short_name(metric: Metric) -> str:
    return getattr(metric, "registry_name", "") or metric.name


def resolve_constraints(given: Any, metrics: Mapping[str, Metric]) -> tuple[Constraint, ...]:
    """The bounds for what the user passed as `constraint`: None, a text such as "fpr_gap <= 0.05", or several
    in a list. A metric is named as in `metrics`, or by its own name."""
    if given is None:
        return ()
    texts = given if isinstance(given, list | tuple) else [given]
    return tuple(_constraint(text, metrics) for text in texts)


def _constraint(text: Any, metrics: Mapping[str, Metric]) -> Constraint:
    found = _BOUND.fullmatch(text) if isinstance(text, str) else None
    if found is None or not reads_as_number(found[3]) or not math.isfinite(float(found[3])):
        raise InvalidInputError(
            Argument("constraints"),
            f" must be a text such as 'fpr_gap <= 0.05' or 'recall >= 0.9', or a list of them, got {text!r}.",
        )
    name = found[1]
    if name not in metrics:
        of_that_name = [key for key, one in metrics.items() if name in (one.name, _short_name(one))]
        if len(of_that_name) != 1:
            raise InvalidInputError(
                Argument("constraints"),
                f" bounds {name!r}, but the metrics are {', '.join(map(repr, metrics))}; name it in ",
                Argument("metric=[…, …]"),
                ".",
            )
        name = of_that_name[0]
    return Constraint(name, found[2] == "<=", float(found[3]))


def sum_of_excess(excess: Iterable[float]) -> float:
    """The sum of what is beyond its bound; infinite where a value is undefined."""
    return sum(math.inf if math.isnan(over) else max(over, 0.0) for over in excess)
