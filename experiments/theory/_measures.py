"""Metrics Ψ(φ₁, …, φ_K) of the two families of Theorem 1, higher is better, and the best known of them.

Family 1: Ψ is concave and strictly decreasing in every loss. Family 2: Ψ is the ratio of a concave and a
convex function, and Ψ′ − Ψ(θ*)·Ψ″ is strictly decreasing in every loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from moew.exceptions import InvalidInputError
from moew.types import FloatArray

OfLosses = Callable[[FloatArray], Any]
"""A function of the losses (K,): its value, or its gradient (K,)."""

_STEP = 1e-6  # of numerical differences
_LEAST_RECALL = 1e-12  # below, the slopes of geometric and harmonic means are those of this recall


@dataclass(frozen=True)
class ConcaveMeasure:
    """A metric of family 1: concave and strictly decreasing in the losses (K,).

    Parameters
    ----------
    function
        Ψ, from losses (K,) to a number.
    gradient
        Its gradient (K,), such as `jax.grad(function)`; None: numerical differences.
    name
        For messages.

    Examples
    --------
    >>> worst_of_two = ConcaveMeasure(lambda losses: -np.logaddexp(*(50 * losses)) / 50)
    >>> worst_of_two.slope(np.array([0.3, 0.1])).round(3).tolist()  # only the larger loss counts
    [-1.0, -0.0]
    """

    function: OfLosses
    gradient: OfLosses | None = None
    name: str = "Ψ"

    def __call__(self, losses: FloatArray) -> float:
        """The value for losses (K,)."""
        return float(self.function(losses))

    def slope(self, losses: FloatArray) -> FloatArray:
        """The gradient (K,) at losses (K,)."""
        return _slope(self.function, self.gradient, losses, self.name)


@dataclass(frozen=True)
class RatioMeasure:
    """A metric of family 2: Ψ′ / Ψ″, with Ψ′ ≥ 0 concave and Ψ″ > 0 convex in the losses (K,).

    Where Ψ″ is 0, the metric has no value, and the losses are not counted as achievable.

    Examples
    --------
    Precision as in the paper, with 20 % positives; the losses are false alarms and missed positives.

    >>> precision = RatioMeasure(lambda z: 0.2 - z[1], lambda z: 0.2 + z[0] - z[1])
    >>> round(precision(np.array([0.05, 0.1])), 3)
    0.667
    """

    numerator: OfLosses
    denominator: OfLosses
    numerator_gradient: OfLosses | None = None
    denominator_gradient: OfLosses | None = None
    name: str = "Ψ"

    def __call__(self, losses: FloatArray) -> float:
        """The value for losses (K,); NaN where the denominator is not above 0."""
        below = float(self.denominator(losses))
        return float(self.numerator(losses)) / below if below > _LEAST_RECALL else float("nan")

    def at(self, t: float) -> ConcaveMeasure:
        """Ψ′ − t·Ψ″, of family 1, whose optimum is that of the ratio where t is the ratio's best value."""

        def gradient(losses: FloatArray) -> FloatArray:
            above = _slope(self.numerator, self.numerator_gradient, losses, self.name)
            below = _slope(self.denominator, self.denominator_gradient, losses, self.name)
            return above - t * below

        return ConcaveMeasure(
            lambda losses: float(self.numerator(losses)) - t * float(self.denominator(losses)),
            gradient,
            self.name,
        )


Measure = ConcaveMeasure | RatioMeasure


def expected_cost(costs: Any) -> ConcaveMeasure:
    """−Σ costs_k·φ_k for costs (K,) above 0: the best weights are the costs themselves."""
    given = np.asarray(costs, dtype=np.float64)
    if given.ndim != 1 or not np.isfinite(given).all() or not (given > 0).all():
        raise InvalidInputError(
            f"costs must be a positive number for each loss, got {costs!r}.", argument="costs"
        )
    return ConcaveMeasure(lambda losses: -float(given @ losses), lambda _: -given, "expected cost")


def g_mean() -> ConcaveMeasure:
    """The geometric mean of the recalls 1 − φ_k, of class errors φ_k.

    Examples
    --------
    >>> round(g_mean()(np.array([0.1, 0.6])), 3)
    0.6
    """

    def function(errors: FloatArray) -> float:
        return float(np.exp(np.log(_recalls(errors)).mean()))

    def gradient(errors: FloatArray) -> FloatArray:
        return np.asarray(-function(errors) / (len(errors) * _recalls(errors)))

    return ConcaveMeasure(function, gradient, "G-mean")


def h_mean() -> ConcaveMeasure:
    """The harmonic mean of the recalls 1 − φ_k, of class errors φ_k."""

    def function(errors: FloatArray) -> float:
        return float(1 / np.mean(1 / _recalls(errors)))

    def gradient(errors: FloatArray) -> FloatArray:
        return np.asarray(-((function(errors) / _recalls(errors)) ** 2) / len(errors))

    return ConcaveMeasure(function, gradient, "H-mean")


def q_mean() -> ConcaveMeasure:
    """1 − √(mean of φ_k²), of class errors φ_k."""

    def function(errors: FloatArray) -> float:
        return 1 - float(np.sqrt(np.mean(errors**2)))

    def gradient(errors: FloatArray) -> FloatArray:
        root = max(float(np.sqrt(np.mean(errors**2))), _LEAST_RECALL)
        return np.asarray(-errors / (len(errors) * root))

    return ConcaveMeasure(function, gradient, "Q-mean")


def f_measure(share: float, beta: float = 1.0) -> RatioMeasure:
    """The F-measure of the second of two classes, which has this share of the rows; of class errors (2,).

    `beta` is how many times as much recall counts as precision.
    """
    b = float(beta) ** 2
    return _ratio_of_errors(share, (1 + b) * _TRUE, (1 + b) * _TRUE + b * _MISSED + _FALSE_ALARM, "F-measure")


def precision(share: float) -> RatioMeasure:
    """The precision of the second of two classes, which has this share of the rows; of class errors (2,)."""
    return _ratio_of_errors(share, _TRUE, _TRUE + _FALSE_ALARM, "precision")


def jaccard(share: float) -> RatioMeasure:
    """TP / (TP + FP + FN) of the second of two classes, which has this share of the rows; of class errors
    (2,)."""
    return _ratio_of_errors(share, _TRUE, _TRUE + _MISSED + _FALSE_ALARM, "Jaccard index")


# Shares of all rows as (constant, factor of the first class's error, factor of the second's), each times the
# share of the class that it is about.
_TRUE = np.array([1.0, 0.0, -1.0])
_MISSED = np.array([0.0, 0.0, 1.0])
_FALSE_ALARM = np.array([0.0, 1.0, 0.0])


def _ratio_of_errors(share: float, above: FloatArray, below: FloatArray, name: str) -> RatioMeasure:
    """The ratio of two linear functions of the errors of two classes."""
    if not 0 < share < 1:
        raise InvalidInputError(
            f"share must be the positive class's share of the rows, between 0 and 1, got {share!r}.",
            argument="share",
        )
    of_rows = np.array([share, 1 - share, share])
    (a, *up), (b, *down) = (above * of_rows).tolist(), (below * of_rows).tolist()
    up_slope, down_slope = np.array(up), np.array(down)
    return RatioMeasure(
        lambda errors: a + float(up_slope @ errors),
        lambda errors: b + float(down_slope @ errors),
        lambda _: up_slope,
        lambda _: down_slope,
        name,
    )


def _recalls(errors: FloatArray) -> FloatArray:
    return np.maximum(1 - errors, _LEAST_RECALL)


def _slope(function: OfLosses, gradient: OfLosses | None, losses: FloatArray, name: str) -> FloatArray:
    """The gradient (K,), by central differences, or one-sided ones at the edge of where Ψ is defined."""
    if gradient is not None:
        found = np.asarray(gradient(losses), dtype=np.float64)
    else:
        with np.errstate(all="ignore"):
            found = np.array([_difference(function, losses, k) for k in range(len(losses))])
    if found.shape != losses.shape or not np.isfinite(found).all():
        raise InvalidInputError(
            f"the gradient of {name} at the losses {losses.tolist()} must be {len(losses)} finite numbers, "
            f"got {found.tolist()}; bound the losses away from where it has none, or give a gradient.",
            argument="gradient",
        )
    return found


def _difference(function: OfLosses, losses: FloatArray, k: int) -> float:
    up, down = losses.copy(), losses.copy()
    up[k] += _STEP
    down[k] -= _STEP
    above, here, below = (float(function(at)) for at in (up, losses, down))
    for difference in ((above - below) / (2 * _STEP), (above - here) / _STEP, (here - below) / _STEP):
        if np.isfinite(difference):
            return difference
    return float("nan")
