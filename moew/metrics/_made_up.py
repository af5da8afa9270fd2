"""A model that answers at random, to rehearse a metric before anything is trained."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from moew.types import Array, Labels, Rows


def made_up_model(estimator: Any, labels: Labels, classes: Array | None, rng: np.random.Generator) -> Any:
    """A model with those of the estimator's methods that predict, for training labels (n,) and classes (C,).

    `classes` is None in regression.
    """

    n_classes = 0 if classes is None else len(classes)

    def predict(X: Rows) -> Array:
        if classes is None:  # near the mean: some metrics take no number below zero
            return np.asarray(np.mean(labels) * rng.uniform(0.99, 1.01, _n_rows(X)))
        return rng.choice(labels, _n_rows(X))

    def predict_proba(X: Rows) -> Array:
        shares = rng.uniform(0.1, 1, (_n_rows(X), n_classes))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def decision_function(X: Rows) -> Array:
        return rng.normal(size=_n_rows(X) if n_classes == 2 else (_n_rows(X), n_classes))

    steps = getattr(estimator, "steps", None)
    last = steps[-1][1] if isinstance(steps, list) and steps else estimator
    kind = RegressorMixin if classes is None else ClassifierMixin
    made: Any = type(type(last).__name__, (kind, BaseEstimator), {})()  # messages name the model by its type
    if classes is not None:
        made.classes_ = classes
    for method in (predict, predict_proba, decision_function):
        if hasattr(estimator, method.__name__):
            setattr(made, method.__name__, method)
    return made


def _n_rows(X: Rows) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
