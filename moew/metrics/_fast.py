"""Fast NumPy versions of the most used scorers, since an honest score needs many thousand calls.

Each takes labels (n,), the recorded predictions and weights (n,) or None, and returns the scorer's value
without its warnings (in double precision where scikit-learn would compute in single). It returns None where
it may not agree with scikit-learn: more classes than it handles, unusual labels, missing numbers. The scorer
itself is called then, so that errors are scikit-learn's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from moew.metrics._classes import _Accuracy
from moew.metrics._labels import codes_of
from moew.metrics._predictions import Predictions
from moew.metrics._regression import _RSquared
from moew.types import Array, BoolArray, FloatArray

FastForm = Callable[[Array, Predictions, FloatArray | None], float | None]


def fast_value(form: FastForm, y: Any, outputs: Predictions, sample_weight: Any) -> float | None:
    """The value by a fast form, or None if the scorer has to be called."""
    if not (isinstance(y, np.ndarray) and y.ndim == 1 and 0 < len(y) == len(outputs)):
        return None
    if sample_weight is None:
        return form(y, outputs, None)
    weight: Array = np.asarray(sample_weight)
    if weight.dtype.kind not in "iuf" or weight.shape != y.shape:
        return None
    weight = weight.astype(np.float64, copy=False)
    usable = weight.min() >= 0 and 0 < weight.sum() < np.inf  # also false for NaN
    return form(y, outputs, weight) if usable else None


def _accuracy(y: Array, outputs: Predictions, weight: FloatArray | None) -> float | None:
    predicted = _predicted_labels(y, outputs)
    return None if predicted is None else _Accuracy()(y, predicted, sample_weight=weight)


def _balanced_accuracy(y: Array, outputs: Predictions, weight: FloatArray | None) -> float | None:
    predicted = _predicted_labels(y, outputs)
    if predicted is None:
        return None
    right = y == predicted
    _, codes = codes_of(y)
    n_rows = np.bincount(codes, weights=weight)
    n_right = np.bincount(
        codes[right], weights=None if weight is None else weight[right], minlength=len(n_rows)
    )
    present = n_rows > 0
    return float((n_right[present] / n_rows[present]).mean())


def _precision(y: Array, outputs: Predictions, weight: FloatArray | None) -> float | None:
    counts = _positive_counts(y, outputs, weight)
    return None if counts is None else _ratio(counts[0], counts[2])


def _recall(y: Array, outputs: Predictions, weight: FloatArray | None) -> float | None:
    counts = _positive_counts(y, outputs, weight)
    return None if counts is None else _ratio(counts[0], counts[1])


def _f1(y: Array, outputs: Predictions, weight: FloatArray | None) -> float | None:
    counts = _positive_counts(y, outputs, weight)
    return None if counts is None else _ratio(2 * counts[0], counts[1] + counts[2])


def _roc_auc(y: Array, outputs: Predictions, weight: FloatArray | None) -> float | None:
    """The probability that a positive has a higher score than a negative; equal scores count half."""
    positive = _is_class(y, outputs, 1)
    score = _class_score(outputs, 1)
    if positive is None or score is None or not _rising(outputs.classes):
        return None
    if positive.all() or not positive.any():
        return float("nan")
    if weight is None:
        negatives, positives = np.sort(score[~positive]), np.sort(score[positive])
        below = np.searchsorted(negatives, positives, side="left").sum()
        not_above = np.searchsorted(negatives, positives, side="right").sum()
        return float((below + not_above) / (2 * len(negatives) * len(positives)))
    of_positives, of_negatives = weight[positive], weight[~positive]
    order = np.argsort(score[~positive])
    negatives = score[~positive][order]
    mass = np.concatenate([[0.0], np.cumsum(of_negatives[order])])  # of the k lowest negatives, by k
    if not (mass[-1] > 0 and of_positives.any()):
        return None
    below = mass[np.searchsorted(negatives, score[positive], side="left")]
    not_above = mass[np.searchsorted(negatives, score[positive], side="right")]
    return float(of_positives @ (below + not_above) / (2 * mass[-1] * of_positives.sum()))


def _average_precision(y: Array, outputs: Predictions, weight: FloatArray | None) -> float | None:
    """The mean, over the positives, of the precision at the positive's score."""
    place = _place_of_one(outputs)
    if place is None:
        return None
    positive, score = _is_class(y, outputs, place), _class_score(outputs, place)
    if positive is None or score is None:
        return None
    if not positive.any():
        return 0.0
    if weight is None:
        ranked, positives = np.sort(score), np.sort(score[positive])
        found = len(positives) - np.searchsorted(positives, positives)  # positives at or above
        return float((found / (len(ranked) - np.searchsorted(ranked, positives))).mean())
    order = np.argsort(-score)
    negated, heavy = -score[order], weight[order]
    own = np.where(positive[order], heavy, 0.0)
    last = np.searchsorted(negated, negated, side="right") - 1  # equal scores are taken together
    counted = own > 0
    if not counted.any():
        return None
    precision = np.cumsum(own)[last[counted]] / np.cumsum(heavy)[last[counted]]
    return float(own[counted] @ precision / own.sum())


def _neg_log_loss(y: Array, outputs: Predictions, weight: FloatArray | None) -> float | None:
    proba, classes = outputs.arrays.get("predict_proba"), outputs.classes
    if proba is None or classes is None or proba.dtype not in (np.float64, np.float32):
        return None
    if proba.shape != (len(y), len(classes)) or len(classes) < 2:
        return None
    if (kind := _kind(classes)) is None or _kind(y) != kind or not _rising(classes):
        return None
    codes = np.searchsorted(classes, y)
    unknown = (classes.take(codes, mode="clip") != y).any()
    if unknown or not np.bincount(codes, minlength=len(classes)).all():
        return None  # scikit-learn raises if a class is missing from y
    if not (proba.min() >= 0 and proba.max() <= 1):
        return None
    if len(classes) == 2:  # scikit-learn uses only the second column
        given = np.where(codes == 1, proba[:, 1], 1 - proba[:, 1])
    else:
        given = proba[np.arange(len(y)), codes]
    eps = np.finfo(proba.dtype).eps
    return float(np.average(np.log(np.clip(given, eps, 1 - eps)), weights=weight))


def _r2(y: Array, outputs: Predictions, weight: FloatArray | None) -> float | None:
    predicted = _predicted_numbers(y, outputs)
    if predicted is None or (len(y) > 1 and y.min() == y.max()):
        return None  # for constant y the value depends on how the mean is rounded
    return _RSquared()(y, predicted, sample_weight=weight)


def _neg_mean_squared_error(y: Array, outputs: Predictions, weight: FloatArray | None) -> float | None:
    error = _errors(y, outputs)
    return None if error is None else -float(np.average(error**2, weights=weight))


def _neg_root_mean_squared_error(y: Array, outputs: Predictions, weight: FloatArray | None) -> float | None:
    error = _errors(y, outputs)
    return None if error is None else -float(np.sqrt(np.average(error**2, weights=weight)))


def _neg_mean_absolute_error(y: Array, outputs: Predictions, weight: FloatArray | None) -> float | None:
    error = _errors(y, outputs)
    return None if error is None else -float(np.average(np.abs(error), weights=weight))


def _neg_median_absolute_error(y: Array, outputs: Predictions, weight: FloatArray | None) -> float | None:
    error = _errors(y, outputs)
    return None if error is None or weight is not None else -float(np.median(np.abs(error)))


FAST_FORMS: dict[str, FastForm] = {
    "accuracy": _accuracy,
    "average_precision": _average_precision,
    "balanced_accuracy": _balanced_accuracy,
    "f1": _f1,
    "neg_log_loss": _neg_log_loss,
    "neg_mean_absolute_error": _neg_mean_absolute_error,
    "neg_mean_squared_error": _neg_mean_squared_error,
    "neg_median_absolute_error": _neg_median_absolute_error,
    "neg_root_mean_squared_error": _neg_root_mean_squared_error,
    "precision": _precision,
    "r2": _r2,
    "recall": _recall,
    "roc_auc": _roc_auc,
}


def _kind(labels: Array) -> str | None:
    """The kind of the labels: "numbers" (whole ones), "text", or None if they may be neither."""
    kind = labels.dtype.kind
    if kind in "biu":
        return "numbers"
    if kind == "f":
        whole = (labels == np.rint(labels)) & (np.abs(labels) < 2**53)
        return "numbers" if whole.all() else None
    if kind == "O":
        return "text" if set(map(type, labels.tolist())) == {str} else None
    return "text" if kind == "U" else None


def _predicted_labels(y: Array, outputs: Predictions) -> Array | None:
    predicted = outputs.arrays.get("predict")
    if predicted is None or predicted.ndim != 1:
        return None
    kind = _kind(y)
    return predicted if kind is not None and _kind(predicted) == kind else None


def _rising(classes: Array | None) -> bool:
    return classes is not None and bool((classes[:-1] < classes[1:]).all())


def _place_of_one(outputs: Predictions) -> int | None:
    """The index of the label 1, which scikit-learn takes as positive, among two numeric classes."""
    classes = outputs.classes
    if classes is None or len(classes) != 2 or classes.dtype.kind not in "biuf":
        return None
    places = np.flatnonzero(classes == 1)
    return int(places[0]) if len(places) == 1 else None


def _is_class(labels: Array, outputs: Predictions, place: int) -> BoolArray | None:
    """Whether each label (n,) is the class at index `place` of two; None if some label is neither class."""
    classes = outputs.classes
    if outputs.estimator_type != "classifier" or classes is None or len(classes) != 2:
        return None
    if (kind := _kind(classes)) is None or _kind(labels) != kind:
        return None
    same: BoolArray = labels == classes[place]
    return same if (same | (labels == classes[1 - place])).all() else None


def _class_score(outputs: Predictions, place: int) -> FloatArray | None:
    """The score (n,) of the class at index `place` of two, from the predictions that the scorer asked for."""
    score = outputs.arrays.get("decision_function")
    if score is not None:
        score = score if place == 1 else -score
    else:
        proba = outputs.arrays.get("predict_proba")
        if proba is None or proba.ndim != 2 or proba.shape[1] != 2:
            return None
        score = proba[:, place]
    return score if score.ndim == 1 and score.dtype.kind == "f" and np.isfinite(score).all() else None


def _positive_counts(
    y: Array, outputs: Predictions, weight: FloatArray | None
) -> tuple[float, float, float] | None:
    """Number (or weight) of true positives, positives and predicted positives; the label 1 is positive."""
    place, predicted = _place_of_one(outputs), outputs.arrays.get("predict")
    if place is None or predicted is None or predicted.shape != y.shape:
        return None
    positive, decided = _is_class(y, outputs, place), _is_class(predicted, outputs, place)
    if positive is None or decided is None:
        return None
    rows = (positive & decided, positive, decided)
    found, actual, named = (float(np.count_nonzero(r) if weight is None else weight[r].sum()) for r in rows)
    return found, actual, named


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0  # scikit-learn's value for 0 / 0


def _predicted_numbers(y: Array, outputs: Predictions) -> Array | None:
    predicted = outputs.arrays.get("predict")
    if predicted is None or predicted.shape != y.shape:
        return None
    if any(a.dtype.kind not in "if" or not np.isfinite(a).all() for a in (y, predicted)):
        return None
    return predicted


def _errors(y: Array, outputs: Predictions) -> FloatArray | None:
    predicted = _predicted_numbers(y, outputs)
    if predicted is None:
        return None
    return predicted.astype(np.float64, copy=False) - y.astype(np.float64, copy=False)
