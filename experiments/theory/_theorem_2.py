"""Theorem 2 of the paper: how far the candidate chosen on N validation rows can be from the best alpha.

The metric is M = Ψ(φ₁, …, φ_K), φ_k the mean of a loss ℓ_k; α is in the unit ball of d dimensions. If α̂ is
the best point of an ε-cover on the validation rows, then with probability 1 − δ

    M(θ̂(α*)) − M(θ̂(α̂)) ≤ σ·L_Ψ·√(K/N)·(√(4·d·ln(N/σ²) + 8·ln(2K/δ)) + 3·L_φ)    for N ≥ 9·σ²·K.

    theorem = Theorem2(n_dims=2, n_metrics=1, sigma=0.5, lipschitz_metric=1.0, lipschitz_model=0.3)
    theorem.bound(10_000), theorem.rows_for(0.05)

A ball of radius R is the unit ball in α/R, with L_φ multiplied by R.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from moew.exceptions import InvalidInputError
from moew.types import FloatArray

_MOST_ROWS = 10**18


def cover_size(epsilon: float, n_dims: int, *, simplified: bool = False) -> float:
    """Number of points that suffice for an ε-cover of the unit ball: (1 + 2/ε)^d.

    simplified: (3/ε)^d, which the proof uses; never less where ε ≤ 1, and invalid above.
    """
    _check_number("epsilon", epsilon, above=0.0)
    _check_count("n_dims", n_dims)
    if simplified and epsilon > 1:
        raise InvalidInputError(
            f"(3/ε)^d holds for ε of at most 1, got epsilon={epsilon!r}.", argument="epsilon"
        )
    base = 3 / epsilon if simplified else 1 + 2 / epsilon
    exponent = n_dims * math.log(base)
    return base**n_dims if exponent < 700 else math.inf  # e^700 is 1e304, close to the largest double


def steepest_slope(alphas: FloatArray, values: FloatArray, least_distance: float) -> float:
    """An estimate of a Lipschitz constant: the steepest slope between two of the alphas (n, d) with values
    (n,).

    Pairs nearer than `least_distance` are left out: values are known up to chance, which a short distance
    would magnify. The true constant may be larger, where no two alphas show it. NaN without a pair.

    Examples
    --------
    >>> steepest_slope(np.array([[0.0], [1.0], [3.0]]), np.array([0.5, 0.75, 0.25]), 0.1)
    0.25
    """
    finite = np.isfinite(values)
    points, known = np.asarray(alphas, dtype=np.float64)[finite], np.asarray(values, dtype=np.float64)[finite]
    distances = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=-1))
    far = distances >= max(least_distance, 1e-300)
    slopes = np.abs(known[:, None] - known[None])[far] / distances[far]
    return float(slopes.max()) if slopes.size else math.nan


@dataclass(frozen=True)
class Theorem2:
    """The bound of Theorem 2, for given constants.

    Parameters
    ----------
    n_dims
        d, dimensions of α.
    n_metrics
        K, the number of means φ_k in the metric.
    sigma
        σ, with which every ℓ_k is sub-Gaussian; (b − a)/2 for a loss between a and b, so 0.5 for 0 or 1.
    lipschitz_metric
        L_Ψ, the Lipschitz constant of Ψ in its K arguments, by the Euclidean norm.
    lipschitz_model
        L_φ, the Lipschitz constant of every φ_k(θ̂(α)) in α: how fast a mean loss changes with α.
    delta
        δ, the probability with which the bound may fail.

    Examples
    --------
    >>> accuracy = Theorem2(n_dims=2, n_metrics=1, sigma=0.5, lipschitz_metric=1.0, lipschitz_model=0.3)
    >>> [round(accuracy.bound(rows), 3) for rows in (1_000, 100_000)]  # the gap to the best candidate
    [0.169, 0.02]
    >>> fewer = Theorem2(n_dims=1, n_metrics=1, sigma=0.5, lipschitz_metric=1.0, lipschitz_model=0.3)
    >>> round(fewer.rows_for(0.1) / accuracy.rows_for(0.1), 1)  # half the dimensions need fewer rows
    0.7
    """

    n_dims: int
    n_metrics: int
    sigma: float
    lipschitz_metric: float
    lipschitz_model: float
    delta: float = 0.05

    def __post_init__(self) -> None:
        _check_count("n_dims", self.n_dims)
        _check_count("n_metrics", self.n_metrics)
        _check_number("sigma", self.sigma, above=0.0)
        _check_number("lipschitz_metric", self.lipschitz_metric, above=0.0)
        _check_number("lipschitz_model", self.lipschitz_model, least=0.0)
        _check_number("delta", self.delta, above=0.0, below=1.0)

    @property
    def least_rows(self) -> int:
        """The smallest N for which the theorem holds: 9·σ²·K, rounded up, and at least 1."""
        return max(1, math.ceil(9 * self.sigma**2 * self.n_metrics))

    def epsilon(self, n_rows: int) -> float:
        """The ε of the cover that the proof uses for N validation rows: 3·σ/√N, at most 1."""
        return 3 * self.sigma / math.sqrt(self._checked(n_rows))

    def deviation(self, n_rows: int) -> float:
        """L_Ψ·√K·Δ, a bound on ``|validation − test|`` for all points of the cover at once."""
        inside = self.n_dims * math.log(self._checked(n_rows) / self.sigma**2) + 2 * self._log_metrics
        return self._scale * math.sqrt(inside / n_rows)

    def bound(self, n_rows: int) -> float:
        """The theorem's bound on how much worse the chosen α is than the best one of the whole ball."""
        inside = 4 * self.n_dims * math.log(self._checked(n_rows) / self.sigma**2) + 8 * self._log_metrics
        return self._scale * (math.sqrt(inside) + 3 * self.lipschitz_model) / math.sqrt(n_rows)

    def rows_for(self, gap: float) -> int:
        """The least number of validation rows with which the bound is at most `gap`, in the metric's units.

        The bound decreases in N from 9·σ²·K on, so the answer is found by bisection.
        """
        _check_number("gap", gap, above=0.0)
        low = high = self.least_rows
        while self.bound(high) > gap:
            low, high = high + 1, 2 * high
            if high > _MOST_ROWS:
                raise InvalidInputError(
                    f"gap={gap!r} needs more than 10^18 validation rows; ask for a wider one.", argument="gap"
                )
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.bound(middle) <= gap else (middle + 1, high)
        return high

    @property
    def _scale(self) -> float:
        return self.sigma * self.lipschitz_metric * math.sqrt(self.n_metrics)

    @property
    def _log_metrics(self) -> float:
        return math.log(2 * self.n_metrics / self.delta)

    def _checked(self, n_rows: int) -> int:
        _check_count("n_rows", n_rows)
        if n_rows < self.least_rows:
            raise InvalidInputError(
                f"the theorem needs N ≥ 9·σ²·K = {9 * self.sigma**2 * self.n_metrics:g} validation rows, "
                f"got n_rows={n_rows}.",
                argument="n_rows",
            )
        return n_rows


def _check_count(name: str, value: Any) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise InvalidInputError(f"{name} must be a whole number of 1 or more, got {value!r}.", argument=name)


def _check_number(
    name: str, value: Any, *, above: float = -math.inf, least: float = -math.inf, below: float = math.inf
) -> None:
    number = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if number and value > above and value >= least and value < below:
        return
    parts = [(f"above {above:g}", above > -math.inf), (f"of at least {least:g}", least > -math.inf)]
    parts.append((f"below {below:g}", below < math.inf))
    allowed = " and ".join(words for words, said in parts if said)
    raise InvalidInputError(f"{name} must be a number {allowed}, got {value!r}.", argument=name)
