"""What needs no search: the model as it is, its decisions tuned for the metric, and a constant."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from moew.embedding import LabelEmbedding
from moew.search._choices import Chooser
from moew.search._loop import Search
from moew.search._prepare import Prepared
from moew.search._strategies._strategy import (
    Candidates,
    Choose,
    Share,
    Strategy,
    ball_search,
    with_tuned_decisions,
)
from moew.types import FloatArray
from moew.weighting import ExampleWeighting, UniformBaseWeights


class Unweighted(Strategy):
    """One training with the user's own weights; in a fit only where α = 0 is not the unweighted model."""

    name = "unweighted"
    called = "the unweighted model"
    can_be_tuned = False  # a strategy of its own, behind the constant prediction

    def searches(self, prepared: Prepared, share: Share, alone: bool = False) -> list[Search]:
        return [ball_search(prepared, self, OwnWeights(prepared))]

    def fixed(self, prepared: Prepared) -> tuple[FloatArray, str] | None:
        return np.ones((1, len(prepared.data.training))), ""

    def chooser(self, chooser: Chooser, candidates: Candidates) -> Choose | None:
        own = candidates.get(self.name, ())
        return partial(chooser.single, own[0]) if own else None


class TunedDecisions(Strategy):
    """The same model, with its decisions tuned for the metric; no training of its own."""

    name = "tuned decisions"
    can_be_tuned = False

    def chooser(self, chooser: Chooser, candidates: Candidates) -> Choose | None:
        own = candidates.get(Unweighted.name, ())
        return with_tuned_decisions(chooser, partial(chooser.single, own[0])) if own else None


class ConstantPrediction(Strategy):
    """No training: the best class, or the best quantile of a target, for every row."""

    name = "constant prediction"
    called = "a constant"
    can_be_tuned = False

    def chooser(self, chooser: Chooser, candidates: Candidates) -> Choose:
        return chooser.constant


@dataclass(frozen=True)
class OwnWeights:
    """The user's own weights for every candidate, whatever α (K, n_dims) is."""

    prepared: Prepared
    n_dims: int = 1

    def training_weights(self, alphas: FloatArray) -> FloatArray:
        """The user's weights (K, n)."""
        return np.tile(self.prepared.data.training.own_weights, (len(alphas), 1))

    def weight_function(self, alpha: FloatArray) -> Any:
        """Weights of one for any rows."""
        return unweighted_function(self.prepared)


def unweighted_function(prepared: Prepared) -> Any:
    """A weight function that gives any rows the weight one."""
    training = prepared.data.training
    weighting = ExampleWeighting(LabelEmbedding(), UniformBaseWeights())
    weighting.fit(None, training.y, task=prepared.data.task, sample_weight=training.sample_weight)
    return weighting.weight_function(np.zeros(weighting.n_dims))
