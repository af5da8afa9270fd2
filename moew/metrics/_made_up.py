"""A model that predicts at random, to try a metric out before anything is trained."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from moew.data._rows import n_rows
from moew.types import Array, Labels, Rows


def made_up_model(estimator: Any, labels: Labels, classes: Array | None, rng: np.random.Generator) -> Any:
    """A model that has the estimator's prediction methods and predicts at random.

    `labels` (n,) are the training labels, `classes` (C,) the classes, None in regression.
    """

    n_classes = 0 if classes is None else len(classes)

    def predict(X: Rows) -> Array:
        if classes is None:  # near the mean: some metrics refuse negative numbers
            return np.asarray(np.mean(labels) * rng.uniform(0.99, 1.01, n_rows(X)))
        return rng.choice(labels, n_rows(X))

    def predict_proba(X: Rows) -> Array:
        shares = rng.uniform(0.1, 1, (n_rows(X), n_classes))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def decision_function(X: Rows) -> Array:
        return rng.normal(size=n_rows(X) if n_classes == 2 else (n_rows(X), n_classes))

    steps = getattr(estimator, "steps", None)
    last = steps[-1][1] if isinstance(steps, list) and steps else estimator
    kind = RegressorMixin if classes is None else ClassifierMixin
    made: Any = type(type(last).__name__, (kind, BaseEstimator), {})()  # messages show the type's name
    if classes is not None:
        made.classes_ = classes
    for method in (predict, predict_proba, decision_function):
        if hasattr(estimator, method.__name__):
            setattr(made, method.__name__, method)
    return made
