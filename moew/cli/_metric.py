"""`--metric`: a metric of moew's, a scikit-learn scorer, a function of the user's, or a program."""

from __future__ import annotations

from difflib import get_close_matches
from inspect import signature
from typing import Any

import numpy as np

from moew.cli._command_metric import PREDICTIONS, command_metric
from moew.cli._objects import find_object, is_reference
from moew.exceptions import InvalidInputError

# The metrics of moew, and what may stand after "=", as an example, where they take numbers.
OURS = {
    "accuracy": "",
    "fpr_gap": "",
    "mean_of_selected": "",
    "precision_at_recall": "0.95",
    "r_squared": "",
    "value_per_harm": "",
    "worst_band_relative_error": "17,25,42",
    "worst_class_error": "",
}


def metric_from(settings: dict[str, Any], columns: list[str], pos_label: Any) -> Any:
    """The metric that `--metric` or `--metric-command` names; `columns` are those of `--metric-column`."""
    name, program = settings["metric"], settings["metric_command"]
    if (name is None) == (program is None):
        raise InvalidInputError(
            "say what the model is judged by: --metric NAME (`moew metrics` lists them), --metric "
            'module:function, or --metric-command "./score {predictions}"; one of them.'
        )
    from moew.metrics import make_metric

    response = settings["response"]
    own = {
        "response": response or "decision",
        "greater_is_better": not settings["lower_is_better"],
        "pos_label": pos_label,
    }
    if program is not None:
        function = command_metric(
            program, response or "decision", columns, settings["metric_timeout"], settings["folder"]
        )
        name = f"number of `{' '.join(program.replace(PREDICTIONS, '').split())}`"
        return make_metric(function, name=name, slow=True, **own)
    if is_reference(name):
        return _users(find_object(name, "--metric", settings["folder"]), name, own, settings)
    _check_fixed(name, settings)
    base, _, value = name.partition("=")
    if base in OURS:
        return _ours(base, value, pos_label)
    return _scorer(name, pos_label)


def _users(found: Any, name: str, own: dict[str, Any], settings: dict[str, Any]) -> Any:
    from moew.metrics import Metric, ScorerMetric, make_metric, resolve_metric

    metric = resolve_metric(found)
    if isinstance(found, Metric | ScorerMetric) or isinstance(metric, ScorerMetric):
        _check_fixed(name, settings)
        if own["pos_label"] is not None:
            raise InvalidInputError(f"--metric {name} knows its positive label itself; leave out --positive.")
        return found
    return make_metric(found, **own)


def _check_fixed(name: str, settings: dict[str, Any]) -> None:
    if settings["lower_is_better"] is not None or settings["response"] is not None:
        raise InvalidInputError(
            f"--metric {name} knows its direction and what it looks at; --lower-is-better, "
            "--higher-is-better and --response are for functions of yours and --metric-command."
        )


def _ours(base: str, value: str, pos_label: Any) -> Any:
    from moew import metrics

    factory = getattr(metrics, base)
    if value and not OURS[base]:
        raise InvalidInputError(f"--metric {base} takes no number, got {base}={value}.")
    given: dict[str, Any] = {}
    if pos_label is not None:
        if "pos_label" not in signature(factory).parameters:
            raise InvalidInputError(f"--metric {base} has no positive label; leave out --positive.")
        given["pos_label"] = pos_label
    try:
        numbers = [float(part) for part in value.split(",")] if value else []
    except ValueError:
        raise InvalidInputError(f"--metric {base}={OURS[base]} needs numbers, got {value!r}.") from None
    if base == "worst_band_relative_error" and numbers:
        return factory(tuple(numbers), **given)
    return factory(*numbers, **given)


def _scorer(name: str, pos_label: Any) -> Any:
    from sklearn.metrics import get_scorer, get_scorer_names, make_scorer

    from moew.metrics import ScorerMetric

    if name not in (known := get_scorer_names()):
        near = get_close_matches(name.partition("=")[0], {**OURS, **dict.fromkeys(known)}, n=3, cutoff=0.5)
        hint = f"; perhaps {', '.join(near)}?" if near else "."
        raise InvalidInputError(f"there is no metric {name!r}{hint} `moew metrics` lists all.")
    if pos_label is None:
        return name
    scorer = get_scorer(name)
    function = scorer._score_func
    if "pos_label" not in signature(function).parameters:
        raise InvalidInputError(f"--metric {name} has no positive label; leave out --positive.")
    of_label = make_scorer(
        function,
        response_method=scorer._response_method,
        greater_is_better=scorer._sign > 0,
        **{**scorer._kwargs, "pos_label": pos_label},
    )
    return ScorerMetric(of_label, f"{name} of {pos_label}")


def positive_label(text: str | None, y: Any) -> Any:
    """The label that `--positive` names, as the training rows have it."""
    if text is None:
        return None
    labels = np.unique(y).tolist()
    for label in labels:
        if str(label) == text or (isinstance(label, float) and label == _number(text)):
            return label
    raise InvalidInputError(f"--positive {text!r} is not one of the labels {labels[:10]}.")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
