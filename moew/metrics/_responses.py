"""Predictions of a fitted model: decisions, scores or probabilities."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from moew._util.estimators import is_regression as is_regression
from moew.data._rows import n_rows
from moew.exceptions import Argument, InvalidInputError
from moew.models._votes import class_scores
from moew.types import Array, BoolArray, FloatArray, Response, Rows


def respond(model: Any, X: Rows, response: Response, pos_label: Any = None) -> Array:
    """The model's predictions on the rows of X, of the kind `response`.

    "decision": what `predict` returns, (n,). "score" and "proba": those of the positive class (n,) for two
    classes, (n, C) for more. The score of a regressor is its prediction.
    """
    if response == "decision":
        return _per_row(model.predict(X), X, "predict")
    if is_regression(model):
        if response == "proba":
            raise InvalidInputError(
                f"the metric takes probabilities, but {type(model).__name__} is a regressor; use ",
                Argument("response", "decision"),
                " to get its predictions.",
                argument="response",
            )
        return _per_row(model.predict(X), X, "predict")
    classes = model_classes(model)
    if len(classes) == 2:
        if response == "score":
            return positive_score(model, X, pos_label)
        return _positive_probability(model, X, pos_label, classes)
    if pos_label is not None:
        raise InvalidInputError(
            Argument("pos_label", _plain(pos_label)),
            f" needs two classes, the model has {len(classes)}.",
            argument="pos_label",
        )
    if response == "score" and hasattr(model, "decision_function"):
        return _per_row(model.decision_function(X), X, "decision_function")
    return _probabilities(model, X)


def positive_score(model: Any, X: Rows, pos_label: Any = None) -> FloatArray:
    """The model's score (n,) of the class `pos_label` (default: the second class); higher means more likely.

    It is the decision function if the model has one (whose threshold is 0), else the probability (whose
    threshold is 0.5). Only for classifiers of two classes.
    """
    if is_regression(model):
        raise InvalidInputError(
            f"a score of the positive class needs a classifier, got {type(model).__name__}.",
            argument="estimator",
        )
    classes = model_classes(model)
    if len(classes) != 2:
        raise InvalidInputError(
            f"a score of the positive class needs two classes, {type(model).__name__} has {len(classes)}: "
            f"{classes.tolist()[:10]!r}.",
            argument="estimator",
        )
    if not hasattr(model, "decision_function"):
        return _positive_probability(model, X, pos_label, classes)
    score = _per_row(model.decision_function(X), X, "decision_function")
    position = _position(pos_label, classes)
    if score.ndim == 2 and score.shape[1] == 2:
        return score[:, position]
    return score.reshape(len(score)) if position == 1 else -score.reshape(len(score))


def decision_basis(model: Any, X: Rows, pos_label: Any = None) -> tuple[FloatArray | None, float]:
    """What the model's own `predict` decides by, and the threshold above which it decides for a class.

    It is the decision function if the model has one (threshold 0), else the probabilities (threshold 0.5):
    (n,) for two classes, of `pos_label` (default: the second), (n, C) for more, where the highest decides.
    None for regressors and for models that have labels only.
    """
    if is_regression(model):
        return None, 0.0
    if hasattr(model, "decision_function"):
        classes = model_classes(model)
        decision = _per_row(model.decision_function(X), X, "decision_function")
        scores = class_scores(decision, len(classes))
        if scores is not None:
            is_of_first = scores.ndim == 1 and _position(pos_label, classes) == 0
            return (-scores if is_of_first else scores), 0.0
    if hasattr(model, "predict_proba"):
        classes = model_classes(model)
        shares = _probabilities(model, X)
        return (shares[:, _position(pos_label, classes)] if len(classes) == 2 else shares), 0.5
    return None, 0.0


def own_decisions(scores: FloatArray, threshold: float, classes: Array, pos_label: Any = None) -> Array:
    """Class labels (n,) that a model decides for itself by the scores and threshold of `decision_basis`."""
    if scores.ndim == 2:
        return np.asarray(np.asarray(classes)[scores.argmax(axis=1)])
    # On the threshold models decide for the first class, whichever class the score is of.
    of_first = _position(pos_label, classes) == 0
    return decided_labels(scores >= threshold if of_first else scores > threshold, classes, pos_label)


def predicts_by_its_scores(model: Any) -> bool:
    """Whether `predict` is known to be `own_decisions` of `decision_basis`: in scikit-learn's linear models
    and in LightGBM with a loss of its own."""
    from sklearn.linear_model import LogisticRegression

    predict = getattr(type(model), "predict", None)
    lightgbm = sys.modules.get("lightgbm")
    if lightgbm is not None and predict is lightgbm.LGBMClassifier.predict:
        return not callable(model.objective)
    return predict is LogisticRegression.predict


def decided_labels(positive: BoolArray, classes: Array, pos_label: Any = None) -> Array:
    """Class labels (n,) from the decisions (n,) of a decision rule, for two classes."""
    position = _position(pos_label, classes)
    return np.asarray(classes)[np.where(positive, position, 1 - position)]


def model_name(model: Any) -> str:
    """The name of the model's class, and of the class of a pipeline's last step, which predicts."""
    steps = getattr(model, "steps", None)
    last = f" of {type(steps[-1][1]).__name__}" if isinstance(steps, list) and steps else ""
    return type(model).__name__ + last


def model_classes(model: Any) -> Array:
    """The classes (C,) of a fitted classifier."""
    if not hasattr(model, "classes_"):
        raise InvalidInputError(
            f"{type(model).__name__} has no classes_, so which column or sign is which class is unknown.",
            argument="estimator",
        )
    return np.asarray(model.classes_)


def _positive_probability(model: Any, X: Rows, pos_label: Any, classes: Array) -> FloatArray:
    return _probabilities(model, X)[:, _position(pos_label, classes)]


def _probabilities(model: Any, X: Rows) -> Array:
    if not hasattr(model, "predict_proba"):
        if hasattr(model, "decision_function"):
            raise InvalidInputError(
                f"the metric or the decision takes probabilities, but {model_name(model)} cannot give them "
                "(no predict_proba); it has a decision_function, which a metric with ",
                Argument("response", "score"),
                " and the rule FixedThreshold (",
                Argument("decision", "score=0"),
                ") take, or calibrate it (CalibratedClassifierCV).",
                argument="estimator",
            )
        raise InvalidInputError(
            f"the metric or the decision takes scores or probabilities, but {model_name(model)} cannot "
            "give what is asked (no decision_function, no predict_proba); use a model that can, or a metric "
            "of decisions.",
            argument="estimator",
        )
    return _per_row(model.predict_proba(X), X, "predict_proba")


def _position(pos_label: Any, classes: Array) -> int:
    """The index of the positive class among two: the second, unless `pos_label` is given."""
    if pos_label is None:
        return 1
    where = np.flatnonzero(np.asarray(classes) == pos_label)
    if len(where) != 1:
        raise InvalidInputError(
            Argument("pos_label", _plain(pos_label)),
            f" is not one of the classes {classes.tolist()!r}.",
            argument="pos_label",
        )
    return int(where[0])


def _plain(label: Any) -> Any:
    """A label as a Python value, whose repr in messages has no NumPy type."""
    return label.item() if isinstance(label, np.generic) else label


def _per_row(answer: Any, X: Rows, method: str) -> Array:
    array = np.asarray(answer)
    n = n_rows(X)
    if not array.ndim or len(array) != n:
        raise InvalidInputError(
            f"{method} gave an answer of shape {array.shape} for {n} rows.", argument="estimator"
        )
    return array
