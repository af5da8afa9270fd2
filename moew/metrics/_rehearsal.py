"""Metrics tried on made-up predictions, before anything is trained."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer_names

from moew.data import LabelledRows, n_rows, read_only
from moew.exceptions import Argument, InvalidInputError, UndefinedMetricError
from moew.metrics._metric import one_number
from moew.metrics._predictions import METHODS
from moew.types import Array, Features, Labels

if TYPE_CHECKING:
    from moew.metrics._resolve import Metric


def rehearse(
    metric: Metric,
    estimator: Any,
    rows: LabelledRows,
    training_labels: Labels,
    *,
    classes: Array | None,
    pos_label: Any,
    decided: Array | None,
    rng: np.random.Generator,
) -> None:
    """Call the metric with a made-up model, and raise an error that every model would meet on these rows.

    `decided` (n,) are decisions of a decision rule. If a function or a scorer of the user's fails on made-up
    predictions, that is ignored, unless it returns something other than a number: the real ones may suit it.
    """
    registered = getattr(metric, "registry_name", "")
    is_scorer = metric.response is None
    if classes is None and getattr(metric, "needs_classes", False):
        raise InvalidInputError(
            Argument("metric", registered or metric.name),
            " evaluates classes, but numbers are predicted here. Take a metric of numbers, such as ",
            Argument("metric", "r_squared"),
            ", or a classifier as ",
            Argument("estimator"),
            ".",
        )
    methods = [name for name in METHODS if not is_scorer or hasattr(estimator, name)]
    model = _made_up_model(estimator, methods, training_labels, classes, rng)
    shown = replace(rows, X=read_only(rows.X))
    tried: list[Array | None] = [None]  # decisions: None for the model's own
    if metric.response == "decision":
        # Some metrics need decisions for a rare class, so constant decisions are tried, too.
        constant = [np.full(len(rows), label) for label in np.unique(training_labels)[[-1, 0]]]
        tried = [*([] if decided is None else [decided]), None, *constant]
    for labels in tried:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about made-up predictions
                made = metric.respond(model, shown, pos_label=pos_label, decided=labels)
                metric.value(made, rows, pos_label=pos_label)
            return
        except (InvalidInputError, UndefinedMetricError) as error:
            if is_scorer and not registered and error.argument not in ("pos_label", "metric"):
                return
            refused = error
        except Exception as error:
            if registered:
                raise _cannot_evaluate(registered, training_labels, classes, error) from error
            _check_returns_number(metric, read_only(rows.y), rng.choice(training_labels, len(rows)))
            return
    raise refused


def _check_returns_number(metric: Any, y: Labels, predicted: Array) -> None:
    """Raise if a scorer's own function does not return a number for made-up predictions (n,)."""
    try:
        result = metric.scorer._score_func(y, predicted, **metric.scorer._kwargs)
    except Exception:
        return  # it has none, or it needs other predictions than these, or columns
    one_number(result, metric.name)


def _cannot_evaluate(
    metric_name: str, labels: Labels, classes: Array | None, error: Exception
) -> InvalidInputError:
    """The error for a metric that fails on these labels; it names related scorers (f1_macro for f1)."""
    different = np.unique(labels)
    task = "regression" if classes is None else "classification"
    related = [name for name in get_scorer_names() if name.startswith(f"{metric_name}_")]
    related = [name for name in related if not name.endswith("_samples")]
    no_numbers = isinstance(error, ValueError) and "convert string to float" in str(error)
    why = ": it needs labels that are numbers." if no_numbers else f": {error}"
    why = f"; related ones are {', '.join(related)}." if related else why
    return InvalidInputError(
        Argument("metric", metric_name),
        f" cannot evaluate a {task} with {len(different)} different labels, such as "
        f"{different[:3].tolist()}{why}",
    )


def _made_up_model(
    estimator: Any, methods: list[str], labels: Labels, classes: Array | None, rng: np.random.Generator
) -> Any:
    """A model with these prediction methods that predicts training labels (n,) at random."""
    n_classes = 0 if classes is None else len(classes)

    def predict(X: Features) -> Array:
        if classes is None:  # near the mean: some metrics refuse negative numbers
            return np.asarray(np.mean(labels) * rng.uniform(0.99, 1.01, n_rows(X)))
        return rng.choice(labels, n_rows(X))

    def predict_proba(X: Features) -> Array:
        shares = rng.uniform(0.1, 1, (n_rows(X), n_classes))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def decision_function(X: Features) -> Array:
        return rng.normal(size=n_rows(X) if n_classes == 2 else (n_rows(X), n_classes))

    steps = getattr(estimator, "steps", None)
    last = steps[-1][1] if isinstance(steps, list) and steps else estimator
    kind = RegressorMixin if classes is None else ClassifierMixin
    made: Any = type(type(last).__name__, (kind, BaseEstimator), {})()  # messages show the type's name
    if classes is not None:
        made.classes_ = classes
    for method in (predict, predict_proba, decision_function):
        if method.__name__ in methods:
            setattr(made, method.__name__, method)
    return made
