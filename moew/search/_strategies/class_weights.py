"""A weight for each class, beginning with balanced weights, their square root and the label shift; and what
that is in regression: weights that are a power of the target."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_expit

from moew.data import LabelledRows
from moew.embedding import DirectionsEmbedding
from moew.search._loop import Search
from moew.search._prepare import Prepared
from moew.search._strategies._strategy import Share, Strategy, ball_search
from moew.search._strategies.unweighted import Unweighted
from moew.types import FloatArray
from moew.weighting import ExampleWeighting, PowersOfTarget, UniformBaseWeights

_RADIUS = 4.0  # two classes' weights up to a ratio of e⁴ = 55; powers of the target up to ±4
_NOTHING = 0.1  # so small an alpha is all but the unweighted model: weights differ by some percent
_SMOOTHING = 0.5  # rows that are added to each class of the validation rows, as in LabelShift


class ClassWeights(Strategy):
    """A search in as many dimensions as classes less one; equal weights are the unweighted model."""

    name = "class weights"
    share = 0.2
    task = "classification"
    begins_with = Unweighted.name

    def searches(self, prepared: Prepared, share: Share, alone: bool = False) -> list[Search]:
        training = prepared.data.training
        weighting = ExampleWeighting(DirectionsEmbedding(), UniformBaseWeights())
        weighting.fit(None, training.y, task=prepared.data.task, sample_weight=training.sample_weight)
        search = ball_search(prepared, self, weighting, share, radius=_RADIUS, alone=alone)
        search.study.suggest(search.study.alpha_zero_repeats, first_class_weights(prepared, weighting))
        return [search]


class PowersOfTheTarget(Strategy):
    """A search on a line, for regressors; the power 0 is the unweighted model."""

    name = "powers of the target"
    share = 0.2
    task = "regression"
    begins_with = Unweighted.name

    def searches(self, prepared: Prepared, share: Share, alone: bool = False) -> list[Search]:
        training = prepared.data.training
        weighting = PowersOfTarget(training.y, training.sample_weight)
        return [ball_search(prepared, self, weighting, share, radius=_RADIUS, alone=alone)]


def first_class_weights(prepared: Prepared, weighting: ExampleWeighting) -> FloatArray:
    """The alphas (k, d) that a search of class weights begins with: balanced weights, their square root, and
    the label shift where validation rows were given; without those that are all but another or no weights."""
    classes, data = prepared.evaluator.classes, prepared.data
    assert classes is not None
    trained = _shares(data.training, classes)
    found: list[FloatArray] = []
    if not (trained > 0).all():  # a class whose training rows have no weight cannot be balanced
        return np.empty((0, weighting.n_dims))
    wanted = [1 / trained, 1 / np.sqrt(trained)]
    if data.given_validation and np.isin(data.given.y, classes).all():
        wanted.append(_shares(data.given, classes, _SMOOTHING) / trained)
    for weights in wanted:
        alpha = _alpha(weighting, classes, weights)
        if alpha is not None and all(np.abs(alpha - other).max() >= _NOTHING for other in found):
            found.append(alpha)
    return np.concatenate([np.empty((0, weighting.n_dims)), *found])


def _shares(rows: LabelledRows, classes: Any, more: float = 0.0) -> FloatArray:
    """The share (C,) of each class of the rows, by the user's weights, with so many rows more of each."""
    own = rows.own_weights / rows.own_weights.mean()
    counts = np.array([own[rows.y == label].sum() for label in classes]) + more
    return np.asarray(counts / counts.sum())


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
