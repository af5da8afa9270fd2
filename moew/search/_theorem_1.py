"""Class weights by Theorem 1 as candidates of a search, where the metric has one of its forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_expit

from moew.exceptions import InvalidInputError
from moew.metrics import Predictions, measure_of
from moew.search._evaluate import tunable_scores
from moew.search._prepare import Prepared
from moew.theory import optimal_class_weights
from moew.types import FloatArray
from moew.weighting import ExampleWeighting

_NOTHING = 0.1  # so small an alpha is all but the unweighted model: weights differ by some percent


def theorem_class_weights(
    prepared: Prepared, weighting: Any
) -> Callable[[Predictions], FloatArray | None] | None:
    """How to get alphas (1, d) of a search of class weights from the unweighted model's predictions on the
    judged rows; None if the metric has no form of Theorem 1, or something else than scores decides."""
    evaluator, rows, classes = prepared.evaluator, prepared.data.validation, prepared.evaluator.classes
    known = None if evaluator.rule is not None or evaluator.always_tuned else _measure(prepared)
    if known is None or classes is None or not isinstance(weighting, ExampleWeighting):
        return None
    measure, positive = known

    def alphas(predictions: Predictions) -> FloatArray | None:
        if predictions.scores is None:
            return None
        scores, _, _ = tunable_scores(predictions.scores, predictions.own_threshold)
        y, order = rows.y, classes
        if scores.ndim == 1:  # of two classes: the positive class of the scores and of the metric as number 1
            second = evaluator.pos_label if positive is None else positive
            order = np.array([*classes[classes != second], second])
            scores = scores if second == evaluator.pos_label else -scores
            y = (y == second).astype(int)
        try:
            counted = np.ones(len(y)) if rows.sample_weight is None else rows.sample_weight
            there, codes = np.unique(y, return_inverse=True)
            if len(there) != len(classes):  # a class does not occur, or is none that can be predicted
                return None
            shares = np.bincount(codes, counted) / counted.sum()
            trained = _training_shares(prepared, order)
            if not (trained > 0).all():  # a class whose training rows have no weight
                return None
            found = optimal_class_weights(measure(shares), y, scores, sample_weight=rows.sample_weight)
            return _alpha(weighting, order, found.weights / trained)
        except InvalidInputError:  # no finite scores, or a class without weight: there is nothing to suggest
            return None

    return alphas


def _measure(prepared: Prepared) -> Any:
    known = measure_of(prepared.evaluator.metric, prepared.evaluator.pos_label)
    classes = prepared.evaluator.classes
    if known is None or classes is None:
        return None
    positive = known[1]
    fits = positive is None or (len(classes) == 2 and positive in classes.tolist())
    return known if fits else None


def _training_shares(prepared: Prepared, classes: Any) -> FloatArray:
    """The share (C,) of each class of the training rows, by the user's weights."""
    training = prepared.data.training
    own = training.own_weights
    return np.asarray([own[training.y == label].sum() / own.sum() for label in classes])


def _alpha(weighting: ExampleWeighting, classes: Any, weights: FloatArray) -> FloatArray | None:
    """The alpha (1, d) whose weights σ(zᵀα) of the classes (C,) have the ratios of `weights` (C,)."""
    log_ratio = np.log(np.maximum(weights / weights.max(), 1e-12))
    with np.errstate(divide="ignore"):
        log_rest = np.log1p(-np.exp(log_ratio))

    def products(top: float) -> FloatArray:
        """zᵀα (C,) = logit(σ(top)·ratio) of the classes, if that of the heaviest is `top`."""
        return np.asarray(log_ratio + log_expit(top) - np.logaddexp(log_rest, log_ratio + log_expit(-top)))

    # They add up to 0 over the classes, which says what the heaviest has.
    top = brentq(lambda top: products(top).sum(), -1.0, 30.0 * len(weights))
    Z = weighting.embedding.transform(None, classes)
    alpha = np.linalg.lstsq(Z, products(top), rcond=None)[0]
    return None if np.abs(alpha).max() < _NOTHING else np.asarray(alpha[None])
