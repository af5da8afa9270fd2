"""Fast NumPy versions of the most used scorers, since an honest score needs many thousand calls.

Each takes labels (n,), the recorded predictions and weights (n,) or None, and returns the scorer's value
without its warnings (in double precision where scikit-learn would compute in single). Where it may not agree
with scikit-learn (more classes than it handles, unusual labels, missing numbers) it stops by `_check`. The
scorer itself is called then, so that errors are scikit-learn's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from moew.metrics._own import accuracies, codes_of, r_squared_of
from moew.metrics._predictions import Predictions
from moew.types import Array, BoolArray, FloatArray

FastForm = Callable[[Array, Predictions, FloatArray | None], Any]


class _MayDifferError(Exception):
    """scikit-learn may give another value, or raise an error."""


def _check(agrees: object) -> None:
    if not agrees:
        raise _MayDifferError


def fast_value(name: str, y: Any, outputs: Predictions, sample_weight: Any) -> float | None:
    """The value of the scorer of this name by its fast form, or None if the scorer has to be called."""
    if not (isinstance(y, np.ndarray) and y.ndim == 1 and 0 < len(y) == len(outputs)):
        return None
    try:
        weight = None if sample_weight is None else _usable_weights(sample_weight, y)
        return float(FAST_FORMS[name](y, outputs, weight))
    except _MayDifferError:
        return None


def _usable_weights(sample_weight: Any, y: Array) -> FloatArray:
    weight: Array = np.asarray(sample_weight)
    _check(weight.dtype.kind in "iuf" and weight.shape == y.shape)
    weight = weight.astype(np.float64, copy=False)
    _check(weight.min() >= 0 and 0 < weight.sum() < np.inf)  # also false for NaN
    return weight


def _accuracy(y: Array, outputs: Predictions, weight: FloatArray | None) -> Any:
    return accuracies(y, _predicted_labels(y, outputs)[None], sample_weight=weight)[0]


def _balanced_accuracy(y: Array, outputs: Predictions, weight: FloatArray | None) -> Any:
    right = y == _predicted_labels(y, outputs)
    _, codes = codes_of(y)
    n_rows = np.bincount(codes, weights=weight)
    of_right = None if weight is None else weight[right]
    n_right = np.bincount(codes[right], weights=of_right, minlength=len(n_rows))
    present = n_rows > 0
    return (n_right[present] / n_rows[present]).mean()


def _of_counts(ratio: Callable[[float, float, float], tuple[float, float]]) -> FastForm:
    """The form of a ratio of true positives, positives and predicted positives."""

    def value(y: Array, outputs: Predictions, weight: FloatArray | None) -> Any:
        above, below = ratio(*_positive_counts(y, outputs, weight))
        return above / below if below else 0.0  # scikit-learn's value for 0 / 0

    return value


def _of_errors(mean: Callable[[FloatArray, FloatArray | None], Any]) -> FastForm:
    """The form of what is small for small errors ŷ − y, negated."""

    def value(y: Array, outputs: Predictions, weight: FloatArray | None) -> Any:
        predicted = _predicted_numbers(y, outputs)
        return -mean(predicted.astype(np.float64, copy=False) - y.astype(np.float64, copy=False), weight)

    return value


def _roc_auc(y: Array, outputs: Predictions, weight: FloatArray | None) -> Any:
    """The probability that a positive has a higher score than a negative; equal scores count half."""
    positive, score = _is_class(y, outputs, 1), _class_score(outputs, 1)
    _check(_rising(outputs.classes))
    if positive.all() or not positive.any():
        return np.nan
    negatives, positives = np.sort(score[~positive]), score[positive]
    if weight is None:
        positives = np.sort(positives)  # faster to search for in this order
    below, not_above = (np.searchsorted(negatives, positives, side=side) for side in ("left", "right"))
    if weight is None:
        return (below.sum() + not_above.sum()) / (2 * len(negatives) * len(positives))
    of_positives, of_negatives = weight[positive], weight[~positive][np.argsort(score[~positive])]
    mass = np.concatenate([[0.0], np.cumsum(of_negatives)])  # of the k lowest negatives, by k
    _check(mass[-1] > 0 and of_positives.any())
    return of_positives @ (mass[below] + mass[not_above]) / (2 * mass[-1] * of_positives.sum())


def _average_precision(y: Array, outputs: Predictions, weight: FloatArray | None) -> Any:
    """The mean, over the positives, of the precision at the positive's score."""
    place = _place_of_one(outputs)
    positive, score = _is_class(y, outputs, place), _class_score(outputs, place)
    if not positive.any():
        return 0.0
    if weight is None:
        ranked, positives = np.sort(score), np.sort(score[positive])
        found = len(positives) - np.searchsorted(positives, positives)  # positives at or above
        return (found / (len(ranked) - np.searchsorted(ranked, positives))).mean()
    order = np.argsort(-score)
    negated, heavy = -score[order], weight[order]
    own = np.where(positive[order], heavy, 0.0)
    last = np.searchsorted(negated, negated, side="right") - 1  # equal scores are taken together
    counted = own > 0
    _check(counted.any())
    precision = np.cumsum(own)[last[counted]] / np.cumsum(heavy)[last[counted]]
    return own[counted] @ precision / own.sum()


def _neg_log_loss(y: Array, outputs: Predictions, weight: FloatArray | None) -> Any:
    proba, classes = _known(outputs.arrays.get("predict_proba")), _known(outputs.classes)
    _check(proba.dtype in (np.float64, np.float32) and proba.shape == (len(y), len(classes)))
    _check(len(classes) >= 2 and _kind(y) == _kind(classes) and _rising(classes))
    codes = np.searchsorted(classes, y)
    _check((classes.take(codes, mode="clip") == y).all())
    _check(np.bincount(codes, minlength=len(classes)).all())  # else scikit-learn raises
    _check(proba.min() >= 0 and proba.max() <= 1)
    if len(classes) == 2:  # scikit-learn uses only the second column
        given = np.where(codes == 1, proba[:, 1], 1 - proba[:, 1])
    else:
        given = proba[np.arange(len(y)), codes]
    eps = np.finfo(proba.dtype).eps
    return np.average(np.log(np.clip(given, eps, 1 - eps)), weights=weight)


def _r2(y: Array, outputs: Predictions, weight: FloatArray | None) -> Any:
    predicted = _predicted_numbers(y, outputs)
    _check(len(y) == 1 or y.min() != y.max())  # else the value depends on how the mean is rounded
    return r_squared_of(y, predicted, sample_weight=weight)


FAST_FORMS: dict[str, FastForm] = {  # by the scorer's name
    "accuracy": _accuracy,
    "average_precision": _average_precision,
    "balanced_accuracy": _balanced_accuracy,
    "f1": _of_counts(lambda found, actual, named: (2 * found, actual + named)),
    "neg_log_loss": _neg_log_loss,
    "neg_mean_absolute_error": _of_errors(lambda e, weight: np.average(np.abs(e), weights=weight)),
    "neg_mean_squared_error": _of_errors(lambda e, weight: np.average(e**2, weights=weight)),
    "neg_root_mean_squared_error": _of_errors(lambda e, weight: np.sqrt(np.average(e**2, weights=weight))),
    "precision": _of_counts(lambda found, _, named: (found, named)),
    "r2": _r2,
    "recall": _of_counts(lambda found, actual, _: (found, actual)),
    "roc_auc": _roc_auc,
}


def _known(array: Array | None) -> Array:
    if array is None:
        raise _MayDifferError
    return array


def _kind(labels: Array) -> str:
    """The kind of the labels: "numbers" (whole ones) or "text"."""
    kind = labels.dtype.kind
    if kind == "f":
        _check(((labels == np.rint(labels)) & (np.abs(labels) < 2**53)).all())
    elif kind == "O":
        _check(set(map(type, labels.tolist())) == {str})
    else:
        _check(kind in "biuU")
    return "numbers" if kind in "biuf" else "text"


def _predicted_labels(y: Array, outputs: Predictions) -> Array:
    predicted = _known(outputs.arrays.get("predict"))
    _check(predicted.ndim == 1 and _kind(predicted) == _kind(y))
    return predicted


def _rising(classes: Array | None) -> bool:
    return classes is not None and bool((classes[:-1] < classes[1:]).all())


def _place_of_one(outputs: Predictions) -> int:
    """The index of the label 1, which scikit-learn takes as positive, among two numeric classes."""
    classes = _known(outputs.classes)
    _check(len(classes) == 2 and classes.dtype.kind in "biuf")
    places = np.flatnonzero(classes == 1)
    _check(len(places) == 1)
    return int(places[0])


def _is_class(labels: Array, outputs: Predictions, place: int) -> BoolArray:
    """Whether each label (n,), which must be one of two classes, is the class at index `place`."""
    classes = _known(outputs.classes)
    _check(outputs.estimator_type == "classifier" and len(classes) == 2 and _kind(labels) == _kind(classes))
    same: BoolArray = labels == classes[place]
    _check((same | (labels == classes[1 - place])).all())
    return same


def _class_score(outputs: Predictions, place: int) -> FloatArray:
    """The score (n,) of the class at index `place` of two, from the predictions that the scorer asked for."""
    score = outputs.arrays.get("decision_function")
    if score is not None:
        score = score if place == 1 else -score
    else:
        proba = _known(outputs.arrays.get("predict_proba"))
        _check(proba.ndim == 2 and proba.shape[1] == 2)
        score = proba[:, place]
    _check(score.ndim == 1 and score.dtype.kind == "f" and np.isfinite(score).all())
    return score


def _positive_counts(y: Array, outputs: Predictions, weight: FloatArray | None) -> tuple[float, float, float]:
    """Number (or weight) of true positives, positives and predicted positives; the label 1 is positive."""
    place, predicted = _place_of_one(outputs), _known(outputs.arrays.get("predict"))
    _check(predicted.shape == y.shape)
    positive, decided = _is_class(y, outputs, place), _is_class(predicted, outputs, place)
    rows = (positive & decided, positive, decided)
    found, actual, named = (float(np.count_nonzero(r) if weight is None else weight[r].sum()) for r in rows)
    return found, actual, named


def _predicted_numbers(y: Array, outputs: Predictions) -> Array:
    predicted = _known(outputs.arrays.get("predict"))
    _check(predicted.shape == y.shape)
    _check(all(a.dtype.kind in "if" and np.isfinite(a).all() for a in (y, predicted)))
    return predicted
