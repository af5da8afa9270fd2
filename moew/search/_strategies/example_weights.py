"""Example weights c·π·σ(zᵀα), eq. 3: the paper's method; and random weights, which it compares them with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from moew.samplers import Ball, BallAndBox, Box, resolve_sampler
from moew.search._loop import Search, n_in_share
from moew.search._prepare import Prepared, fit_weighting
from moew.search._strategies._strategy import Share, Strategy, search_of
from moew.types import SamplerOfPoints
from moew.weighting import RandomWeighting


@dataclass(frozen=True)
class WeightSettings:
    """The settings of `ExampleWeights`, as `SearchSettings` has them, too."""

    embedding: Any = "directions"
    base_weights: Any = "label_shift"
    sampler: Any = "gp_bucb"
    radius: float | None = None
    batch_size: int = 10
    final: Literal["ensemble", "smoothed", "best"] = "ensemble"
    alpha_zero_repeats: int = 1
    stop_when: float | None = None


@dataclass(frozen=True)
class ExampleWeights(WeightSettings, Strategy):
    """The search for α, with hyper-parameters where there is a search space; it may choose among the
    candidates of all strategies, and average several of them.

    Parameters
    ----------
    embedding : "directions", "autoencoder", "label", "discriminative", columns, transformer, function or \
Embedding
        z(x, y), the low-dimensional coordinates that the weights depend on. "directions" are the label, the
        metric's columns, a linear discriminant and principal components. Columns are a list such as
        ["age", "cost"], or "columns=age,cost", of columns of X or of `columns`.
    base_weights : "label_shift", "covariate_shift", "uniform", function or BaseWeights
        π, the weights at α = 0. If no validation rows are given there is no shift to estimate, and π = 1.
    sampler : "gp_bucb", "random" or Sampler
        Where the next candidates come from.
    radius : float or None, default None
        Radius R of the ball that α is searched in; None is the default, 4, which a benchmark chose.
    batch_size : int, default 10
        K, the number of candidates that are proposed and trained at a time.
    final : "ensemble", "smoothed" or "best", default "ensemble"
        What becomes of the candidates: up to five models whose predictions are averaged (Caruana's greedy
        selection); the single candidate with the best posterior mean of the sampler's Gaussian process, which
        looks at its neighbours, too (the paper's source has it for small validation sets); or the single
        best, as in the paper.
    alpha_zero_repeats : int, default 1
        How many α = 0 models are trained first; from two or more the search learns the metric's noise.
    stop_when : float or None, default None
        A gain in the metric's units, such as 0.002: the search for example weights stops after a batch if the
        upper confidence bound over the ball is less than this above the best value so far, or if the
        prediction interval is narrower than this everywhere. The first `batch_size` candidates, which are
        random, do not stop it. Simpler strategies still get their share.
        `result_.stopped` says why, and how many trainings were saved. Needs a sampler with a model, as
        "gp_bucb" is. None trains all candidates.
    """

    name = "example weights"
    simple = False

    def searches(self, prepared: Prepared, share: Share, alone: bool = False) -> list[Search]:
        settings, space, weighting = prepared.settings, prepared.space, fit_weighting(prepared)
        ball = Ball(weighting.n_dims, settings.ball_radius)
        changes: dict[str, Any] = {"domain": ball}
        if space is not None:
            changes = {"domain": BallAndBox(ball, Box(space.n_dims, space.half_width)), "space": space}
        sampler = resolve_sampler(settings.sampler)
        if isinstance(sampler, SamplerOfPoints):  # it is told how many candidates it has
            sampler = sampler.for_budget(changes["domain"], n_in_share(share, settings.n_candidates))
            changes["n_initial"] = 0
        search = search_of(prepared, self, weighting, share, optional=False, **changes, sampler=sampler)
        return [replace(search, stop_when=settings.stop_when)]


class RandomWeights(Strategy):
    """As many models with random weights as a search has candidates: what trying many brings by itself."""

    name = "random weights"
    can_be_tuned = False

    def searches(self, prepared: Prepared, share: Share, alone: bool = False) -> list[Search]:
        rows = prepared.data.training
        weighting = RandomWeighting(len(rows), rows.sample_weight, prepared.seed)
        return [search_of(prepared, self, weighting, share, optional=False)]
