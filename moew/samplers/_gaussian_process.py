"""Exact Gaussian process regression with an RBF kernel, zero mean and Gaussian noise.

k(a, b) = amplitude² · exp(−|a − b|² / (2 · width²)), observed with a noise variance on top.
Hyper-parameters are fitted by marginal likelihood; an observation can be added without a new factorisation.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.optimize import Bounds as Limits
from scipy.optimize import minimize

from moew.exceptions import InvalidInputError
from moew.types import FloatArray

Bounds = tuple[float, float]  # lowest and highest value; equal ones fix the hyper-parameter

# Hyper-parameters are first fitted on at most this many observations, evenly thinned, and then improved on
# all of them with a few evaluations: one evaluation takes n³ operations.
_FEW = 300
_POLISH_EVALUATIONS = 8
_LEAST_VARIANCE = 1e-14  # as a share of the prior's: rounding can make a variance negative


@dataclass(frozen=True)
class Kernel:
    """The RBF kernel and its hyper-parameters; `noise` is a variance."""

    amplitude: float
    width: float
    noise: float

    def __call__(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Covariances (n, m) of g at the points a (n, d) and b (m, d), without noise."""
        return self.from_distances(squared_distances(a, b))

    def from_distances(self, distances: FloatArray) -> FloatArray:
        """Covariances of g for squared distances of any shape."""
        return np.asarray(self.amplitude**2 * np.exp(distances * (-0.5 / self.width**2)))


def squared_distances(a: FloatArray, b: FloatArray) -> FloatArray:
    """|a_i − b_j|² (n, m) of points (n, d) and (m, d)."""
    cross = a @ b.T
    cross *= -2.0
    cross += (a * a).sum(axis=1)[:, None]
    cross += (b * b).sum(axis=1)
    return np.maximum(cross, 0.0, out=cross)


def _factorize(covariance: FloatArray) -> FloatArray:
    """The lower Cholesky factor, with the least jitter (times ten each try) that lets it succeed."""
    scale = float(covariance.diagonal().mean())
    for jitter in (0.0, *10.0 ** np.arange(-14, -3)):
        jittered = covariance + jitter * scale * np.eye(len(covariance)) if jitter else covariance
        factor, failed = lapack.dpotrf(jittered, lower=1)
        if not failed:
            return factor  # type: ignore[no-any-return]
    raise InvalidInputError(
        "the covariance of the observations cannot be factorized; "
        "check that alphas and scores are finite and raise noise_floor.",
        argument="noise_floor",
    )


def log_marginal_likelihood(
    distances: FloatArray, targets: FloatArray, kernel: Kernel
) -> tuple[float, FloatArray]:
    """log p(targets) and its gradient (3,) by log amplitude, log width and log noise, for squared distances
    (n, n) between the observed points and their values `targets` (n,)."""
    covariance = kernel.from_distances(distances)
    factor = _factorize(_with_noise(covariance, kernel.noise))
    solved, _ = lapack.dpotrs(factor, targets, lower=1)  # K⁻¹ y
    value = -0.5 * (targets @ solved + len(targets) * np.log(2 * np.pi)) - np.log(factor.diagonal()).sum()
    # dpotri fills only the lower triangle of K⁻¹ (zeros above), so each trace below counts it twice.
    inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    trace = inverse.diagonal().sum()
    spread = covariance * distances  # ∂K/∂log width · width²
    by_signal = solved @ covariance @ solved - (
        2 * np.vdot(inverse.T, covariance) - kernel.amplitude**2 * trace
    )
    by_spread = solved @ spread @ solved - 2 * np.vdot(inverse.T, spread)
    by_noise = solved @ solved - trace
    gradient = [by_signal, 0.5 * by_spread / kernel.width**2, 0.5 * kernel.noise * by_noise]
    return float(value), np.array(gradient)


def fit_kernel(
    points: FloatArray, targets: FloatArray, *, amplitude: Bounds, width: Bounds, noise: Bounds
) -> Kernel:
    """The kernel of highest marginal likelihood within the bounds, for points (n, d) and targets (n,): by
    L-BFGS-B in the logarithms, from the best points of a grid."""
    few = np.unique(np.linspace(0, len(points) - 1, min(len(points), _FEW)).round().astype(int))
    starts = _starts(amplitude, width, noise)
    log_bounds = np.log([amplitude, width, noise])
    distances = squared_distances(points, points)
    best = _maximize(distances[np.ix_(few, few)], targets[few], starts, log_bounds, max_evaluations=60)
    if len(few) < len(points):
        best = _maximize(distances, targets, best[None], log_bounds, max_evaluations=_POLISH_EVALUATIONS)
    return Kernel(*np.exp(best).tolist())


def _starts(amplitude: Bounds, width: Bounds, noise: Bounds) -> FloatArray:
    """Logarithms (s, 3) to start from: a grid over the free hyper-parameters, widths from mid-bounds."""
    middle = np.sqrt(width[0] * width[1])
    wished = ([1.0], [0.5 * middle, middle, 3 * middle], [0.01, 0.3])
    inside = [np.unique(np.clip(w, *b)) for w, b in zip(wished, (amplitude, width, noise), strict=True)]
    return np.log(list(product(*inside)))


def _maximize(
    distances: FloatArray, targets: FloatArray, starts: FloatArray, bounds: FloatArray, max_evaluations: int
) -> FloatArray:
    """The logarithms (3,) of highest likelihood: L-BFGS-B from the two best starts."""

    def loss(logs: NDArray[np.float64]) -> tuple[float, FloatArray]:
        value, gradient = log_marginal_likelihood(distances, targets, Kernel(*np.exp(logs).tolist()))
        return -value, -gradient

    first = sorted(starts, key=lambda start: loss(start)[0])[:2] if len(starts) > 1 else list(starts)
    limits = Limits(*bounds.T)
    options: Any = {"maxfun": max_evaluations, "ftol": 1e-7}
    found = [
        minimize(loss, start, jac=True, method="L-BFGS-B", bounds=limits, options=options) for start in first
    ]
    best = min(found, key=lambda result: float(result.fun))
    return np.asarray(np.clip(best.x, *bounds.T))


@dataclass(frozen=True)
class Posterior:
    """The process g given its observations: points (n, d), and with K = L Lᵀ, L⁻¹ (n, n) and L⁻¹ y (n,)."""

    kernel: Kernel
    points: FloatArray
    inverse_factor: FloatArray
    whitened: FloatArray

    @classmethod
    def given(cls, kernel: Kernel, points: FloatArray, targets: FloatArray) -> Posterior:
        """The posterior from observed points (n, d) and their values (n,)."""
        factor = _factorize(_with_noise(kernel(points, points), kernel.noise))
        inverse_factor = np.ascontiguousarray(lapack.dtrtri(factor, lower=1)[0])
        return cls(kernel, points, inverse_factor, inverse_factor @ targets)

    def predict(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean (m,) and standard deviation (m,) of g, without observation noise, at points (m, d)."""
        half = self.kernel(points, self.points) @ self.inverse_factor.T  # (m, n): (L⁻¹ k)ᵀ
        return half @ self.whitened, np.sqrt(self._variance(half))

    def upper_bound(self, points: FloatArray, z: float) -> tuple[FloatArray, FloatArray]:
        """mean + z · sd (m,) at points (m, d), and its gradient (m, d)."""
        covariance = self.kernel(points, self.points)
        half = covariance @ self.inverse_factor.T
        sd = np.sqrt(self._variance(half))
        # ∂/∂a (kᵀ K⁻¹ y) and ∂/∂a (kᵀ K⁻¹ k) share ∂k_i/∂a = k_i (x_i − a) / width².
        pull = covariance * ((self.whitened - (z / sd)[:, None] * half) @ self.inverse_factor)
        gradient = (pull @ self.points - pull.sum(axis=1)[:, None] * points) / self.kernel.width**2
        return half @ self.whitened + z * sd, gradient

    def extended(self, point: FloatArray, z: float) -> Posterior:
        """The posterior with one more, pretended observation: mean + z · sd at `point` (d,)."""
        n = len(self.points)
        half = self.inverse_factor @ self.kernel(point[None], self.points)[0]
        variance = float(self._variance(half[None])[0])
        pivot = np.sqrt(variance + self.kernel.noise)
        inverse_factor = np.zeros((n + 1, n + 1))
        inverse_factor[:n, :n] = self.inverse_factor
        inverse_factor[n, :n] = -(half @ self.inverse_factor) / pivot
        inverse_factor[n, n] = 1 / pivot
        # (value − mean) / pivot, where value − mean = z · sd
        whitened = np.append(self.whitened, z * np.sqrt(variance) / pivot)
        return Posterior(self.kernel, np.vstack([self.points, point]), inverse_factor, whitened)

    def _variance(self, half: FloatArray) -> FloatArray:
        prior = self.kernel.amplitude**2
        explained = np.einsum("mn,mn->m", half, half)
        return np.asarray(np.maximum(prior - explained, _LEAST_VARIANCE * prior))


def _with_noise(covariance: FloatArray, noise: float) -> FloatArray:
    noisy = covariance.copy()
    noisy.flat[:: len(noisy) + 1] += noise
    return noisy
