"""Theorem 1: the weights of the losses with which weighted training gives the best model for the metric.

Family 1 is the min-max problem of the proof, min over β of max over θ of F(θ, β) = −Σ β_k φ_k(θ) − Ψ*(β).
For given losses φ the minimum over β is at β = −∇Ψ(φ), and for given β the maximum over θ is weighted
training. So the two take turns: β is taken where Ψ is best among all mixtures of the models so far, and the
model that is best for β joins them. With β = −∇Ψ(φ) the two sides of the min-max differ by β·(φ − φ(β)),
which bounds how much better any model could be, and is 0 at the end.

Family 2 is reduced to family 1 by its value t: the best model for Ψ′/Ψ″ is the best for Ψ′ − t·Ψ″ where t is
its own value (Dinkelbach's iteration).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from experiments.theory._measures import ConcaveMeasure, Measure, RatioMeasure
from moew.exceptions import Argument, InvalidInputError
from moew.types import FloatArray, IntArray

Oracle = Callable[[FloatArray], Any]
"""Weights β (K,) of the losses → the losses (K,) of a model that minimises Σ β_k φ_k."""

_MOST_STEPS = 20_000  # of the search for the best mixture
_MOST_RATIOS = 100  # values t of a ratio; they converge faster than linearly
_HALVINGS = 60
_LEAST_SHARE = 1e-9  # of the largest weight: Theorem 1 has no weights of 0, and training needs all rows
_ROUNDING = 1e-7


@dataclass(frozen=True, eq=False)  # == of arrays is an array
class OptimalWeights:
    """The weights of the losses that Theorem 1 promises, and what they achieve.

    Where the losses are not strictly convex in the model, as with counts of errors, the best of all models
    may be a mixture: one that draws, for each row, which of several models decides. All members of the
    mixture are equally good for the weights.

    Attributes
    ----------
    weights : (K,), β with mean one
    losses : (K,), of the best mixture
    value : Ψ of them, the best that any mixture of the models achieves
    gap : how much better than `value` any model could be; for a ratio, in units of Ψ′ − t·Ψ″. NaN if the
        search for models ended at `max_models`. With an oracle that trains, it holds for models whose
        training minimises these losses exactly
    achieved : (N, K), the losses of all models that were considered
    shares : (N,), how often the best mixture takes each
    best : the number of the best single model
    best_value : its Ψ
    """

    weights: FloatArray
    losses: FloatArray
    value: float
    gap: float
    achieved: FloatArray
    shares: FloatArray
    best: int
    best_value: float

    @property
    def members(self) -> IntArray:
        """The numbers of the models in the best mixture, the largest share first."""
        there = np.flatnonzero(self.shares > _ROUNDING)
        return np.asarray(there[np.argsort(-self.shares[there], kind="stable")])


@dataclass
class _Models:
    """The losses of the models so far, and how to get another one."""

    achieved: FloatArray  # (N, K)
    oracle: Oracle | None = None
    most: int = 0
    tolerance: float = 1e-9
    scale: float = field(init=False)
    cut: bool = field(init=False, default=False)  # whether another model would have been wanted

    def __post_init__(self) -> None:
        self.scale = max(float(np.abs(self.achieved).max()), 1e-300)

    def add_best_for(self, weights: FloatArray) -> bool:
        """Let the model that is best for these weights join; False if it is known or there may be no more."""
        if self.oracle is None:
            return False
        self.cut = len(self.achieved) >= self.most
        if self.cut:
            return False
        new = _checked_losses(self.oracle(positive_weights(weights)), self.achieved.shape[1])
        if (np.abs(self.achieved - new).max(axis=1) <= self.tolerance * self.scale).any():
            return False
        self.achieved = np.vstack([self.achieved, new])
        return True


def optimal_weights(
    measure: Measure,
    achievable: Any,
    *,
    start: Any = None,
    max_models: int = 50,
    tolerance: float = 1e-9,
) -> OptimalWeights:
    """The weights β (K,) of the losses with which weighted training is best for the metric.

    Parameters
    ----------
    measure : ConcaveMeasure or RatioMeasure
    achievable : (N, K), the losses of all models; or a function from weights (K,) to the losses (K,) of the
        model that is best for them, which is called at most `max_models` times
    start : (K,), weights of the first model, for a function
    max_models : how often a function is called at most
    tolerance : of the gap, and of the value of a ratio

    Examples
    --------
    Three classifiers with their errors on two classes. The F-measure with 10 % positives takes the second.
    The weights say how much the error rates count; a row of a class counts by its weight over the class's
    share.

    >>> from experiments.theory import f_measure
    >>> found = optimal_weights(f_measure(0.1), [[0.01, 0.7], [0.05, 0.4], [0.3, 0.1]])
    >>> found.best, round(found.value, 3), found.weights.round(2).tolist()
    (1, 0.585, [1.58, 0.42])
    >>> (found.weights / [0.9, 0.1]).round(2).tolist()  # a row of the second class counts 2.4 times as much
    [1.75, 4.23]
    """
    if not isinstance(measure, ConcaveMeasure | RatioMeasure):
        raise InvalidInputError(
            Argument("measure"),
            f" must be a ConcaveMeasure or a RatioMeasure, as Theorem 1 has them, got {measure!r}.",
            argument="measure",
        )
    models = _models(achievable, start, max_models, tolerance)
    values = np.array([measure(losses) for losses in models.achieved])
    if not np.isfinite(values).any():
        raise InvalidInputError(f"{measure.name} has no value for any of the losses.", argument="achievable")
    shares: FloatArray = np.zeros(len(values))
    shares[int(np.nanargmax(values))] = 1.0
    concave = measure
    if isinstance(measure, RatioMeasure):
        concave, shares = _best_ratio(measure, models, shares, tolerance)
    else:
        shares = _min_max(measure, models, shares, tolerance)
    assert isinstance(concave, ConcaveMeasure)
    losses = shares @ models.achieved
    slope = concave.slope(losses)
    _check_decreasing(slope, losses, measure.name)
    _check_concave(concave, slope, losses, models.achieved)
    values = np.array([measure(losses) for losses in models.achieved])
    best = int(np.nanargmax(values))
    gap = math.nan if models.cut else max(0.0, float(((models.achieved - losses) @ slope).max()))
    weights = positive_weights(-slope)
    return OptimalWeights(
        weights, losses, measure(losses), gap, models.achieved, shares, best, float(values[best])
    )


def positive_weights(weights: FloatArray) -> FloatArray:
    """The weights (K,) with mean one, those of 0 a little above it."""
    least = max(float(weights.max()), 1e-300) * _LEAST_SHARE
    kept = np.maximum(weights, least)
    return np.asarray(kept / kept.mean())


def _best_ratio(
    measure: RatioMeasure, models: _Models, shares: FloatArray, tolerance: float
) -> tuple[ConcaveMeasure, FloatArray]:
    """Ψ′ − t·Ψ″ at the best value t of the ratio, and the mixture (N,) that has it."""
    t = measure(shares @ models.achieved)
    for _ in range(_MOST_RATIOS):
        # The next mixture may select nothing, where the ratio has no value: at the best t it is as good.
        found = _min_max(measure.at(t), models, shares, tolerance)
        shares = _longer(shares, len(found))
        value = measure(found @ models.achieved)
        if not value > t + tolerance * abs(t):
            break
        t, shares = value, found
    return measure.at(t), shares


def _min_max(measure: ConcaveMeasure, models: _Models, shares: FloatArray, tolerance: float) -> FloatArray:
    """The mixture (N,) of the models whose losses are best for the measure; models join as they are
    needed."""
    while True:
        shares = _best_mixture(measure, models.achieved, _longer(shares, len(models.achieved)), tolerance)
        losses = shares @ models.achieved
        slope = measure.slope(losses)
        _check_decreasing(slope, losses, measure.name)
        if not models.add_best_for(-slope):
            return _longer(shares, len(models.achieved))
        if (models.achieved[-1] - losses) @ slope <= tolerance * np.abs(slope).max() * models.scale:
            return _longer(shares, len(models.achieved))


def _best_mixture(
    measure: ConcaveMeasure, achieved: FloatArray, shares: FloatArray, tolerance: float
) -> FloatArray:
    """The shares (N,) of the losses (N, K) whose mean is best for the measure.

    Frank-Wolfe steps in pairs: each moves share from the worst member, by the gradient, to the best model.
    """
    shares = shares.copy()
    scale = max(float(np.abs(achieved).max()), 1e-300)
    for _ in range(_MOST_STEPS):
        losses = shares @ achieved
        slope = measure.slope(losses)
        rises = achieved @ slope
        best = int(rises.argmax())
        worst = int(np.where(shares > 0, rises, np.inf).argmin())
        if rises[best] - losses @ slope <= tolerance * np.abs(slope).max() * scale:
            break
        direction = achieved[best] - achieved[worst]
        step = _longest_rise(measure, losses, direction, float(shares[worst]))
        if step <= 0:
            break
        shares[best] += step
        shares[worst] = 0.0 if step == shares[worst] else shares[worst] - step
    return np.asarray(shares / shares.sum())


def _longest_rise(
    measure: ConcaveMeasure, losses: FloatArray, direction: FloatArray, longest: float
) -> float:
    """The step along the direction, at most `longest`, at which the concave measure is highest."""
    if measure.slope(losses + longest * direction) @ direction >= 0:
        return longest
    low, high = 0.0, longest
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if measure.slope(losses + middle * direction) @ direction > 0:
            low = middle
        else:
            high = middle
    return low


def _longer(shares: FloatArray, n: int) -> FloatArray:
    """The shares (n,), with 0 for models that joined."""
    return np.concatenate([shares, np.zeros(n - len(shares))])


def _models(achievable: Any, start: Any, most: int, tolerance: float) -> _Models:
    if not callable(achievable):
        given = np.asarray(achievable, dtype=np.float64)
        if given.ndim != 2 or not given.size or not np.isfinite(given).all():
            raise InvalidInputError(
                "achievable must hold finite losses (N, K), a row for each model, got an array of shape "
                f"{given.shape}.",
                argument="achievable",
            )
        return _Models(given, tolerance=tolerance)
    if start is None:
        raise InvalidInputError(
            "a function that trains models needs ",
            Argument("start"),
            ", the weights (K,) of the losses for the first one.",
            argument="start",
        )
    first = np.asarray(start, dtype=np.float64)
    if first.ndim != 1 or not np.isfinite(first).all() or not (first > 0).all():
        raise InvalidInputError(
            f"start must be a positive weight for each loss, got {start!r}.", argument="start"
        )
    losses = _checked_losses(achievable(positive_weights(first)), len(first))
    return _Models(losses[None], achievable, most, tolerance)


def _checked_losses(losses: Any, n: int) -> FloatArray:
    found = np.asarray(losses, dtype=np.float64)
    if found.shape != (n,) or not np.isfinite(found).all():
        raise InvalidInputError(
            f"achievable must return {n} finite losses for {n} weights, got {losses!r}.",
            argument="achievable",
        )
    return found


def _check_decreasing(slope: FloatArray, losses: FloatArray, name: str) -> None:
    if (slope > _ROUNDING * np.abs(slope).max()).any() or not slope.any():
        raise InvalidInputError(
            f"Theorem 1 needs a metric that decreases in every loss, but at the losses {losses.tolist()} "
            f"the gradient of {name} is {slope.tolist()}.",
            argument="measure",
        )


def _check_concave(
    measure: ConcaveMeasure, slope: FloatArray, losses: FloatArray, achieved: FloatArray
) -> None:
    """Raise if some model is better than a concave function with this gradient allows."""
    here = measure(losses)
    allowed = here + (achieved - losses) @ slope
    found = np.array([measure(one) for one in achieved])
    above = found - allowed > _ROUNDING * max(1.0, abs(here), float(np.abs(slope).max()))
    if above.any():
        place = int(np.argmax(above))
        raise InvalidInputError(
            "Theorem 1 needs a concave metric, or the ratio of a concave and a convex function, but "
            f"{measure.name} is {found[place]:g} at the losses {achieved[place].tolist()}, where its tangent "
            f"at {losses.tolist()} is {allowed[place]:g}.",
            argument="measure",
        )
