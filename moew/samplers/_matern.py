"""The Matérn kernel of smoothness 3/2 with a width for each dimension, and its fit.

k(a, b) = amplitude² · (1 + √3 r) · exp(−√3 r), r² = Σ_j (a_j − b_j)² / width_j². Its functions have one
derivative, an RBF kernel's have all: scores of trained models have kinks, where decisions change.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import Bounds as Limits
from scipy.optimize import minimize

from moew.samplers._gaussian_process import _factorize, _with_noise, squared_distances
from moew.types import FloatArray

_ROOT = math.sqrt(3.0)
_FEW = 250  # observations that hyper-parameters are fitted on; one evaluation takes n³ operations


@dataclass(frozen=True)
class Matern:
    """The kernel and its hyper-parameters: widths (d,), `noise` a variance."""

    amplitude: float
    width: FloatArray
    noise: float

    def __call__(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Covariances (n, m) of g at the points a (n, d) and b (m, d), without noise."""
        return self.with_slopes(a, b)[0]

    def with_slopes(self, a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Covariances (n, m) and slopes (n, m), with which ∂k(a_i, b_j)/∂a_i = slope_ij (b_j − a_i) / width²."""
        r = np.sqrt(squared_distances(a / self.width, b / self.width))
        r *= _ROOT
        decay = self.amplitude**2 * np.exp(-r)
        r += 1.0
        r *= decay
        decay *= 3.0
        return r, decay


def fit_matern(
    points: FloatArray,
    targets: FloatArray,
    *,
    size: float,
    noise: tuple[float, float],
    prior_width: float,
    prior_spread: float,
) -> Matern:
    """The kernel of highest posterior density, for points (n, d) in a domain of this size and targets (n,).

    The logarithm of each width is normal around log(prior_width · size) with standard deviation
    `prior_spread`; all else is flat within bounds.
    """
    few = np.unique(np.linspace(0, len(points) - 1, min(len(points), _FEW)).round().astype(int))
    X, y = points[few] / size, targets[few]
    n, d = X.shape
    apart = (X[:, None, :] - X[None, :, :]) ** 2  # (n, n, d)
    flat = np.ascontiguousarray(apart.reshape(n * n, d))
    centre = math.log(prior_width)

    def loss(logs: FloatArray) -> tuple[float, FloatArray]:
        amplitude2, noise_, inverse_w2 = math.exp(2 * logs[0]), math.exp(logs[1]), np.exp(-2 * logs[2:])
        r = np.sqrt(np.maximum(flat @ inverse_w2, 0.0)).reshape(n, n)
        decay = np.exp(-_ROOT * r)
        covariance = amplitude2 * (1 + _ROOT * r) * decay
        factor = _factorize(_with_noise(covariance, noise_))
        solved, _ = lapack.dpotrs(factor, y, lower=1)
        value = -0.5 * (y @ solved) - np.log(factor.diagonal()).sum()
        inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        outer = np.outer(solved, solved) - inverse  # ∂value/∂K = outer / 2
        gradient = np.empty(d + 2)
        gradient[0] = np.vdot(outer, covariance)
        gradient[1] = 0.5 * noise_ * outer.trace()
        pull = (outer * decay).reshape(n * n)
        gradient[2:] = 1.5 * amplitude2 * (pull @ flat) * inverse_w2
        away = logs[2:] - centre
        value -= 0.5 * float(away @ away) / prior_spread**2
        gradient[2:] -= away / prior_spread**2
        return -value, -gradient

    low = np.array([math.log(0.05), math.log(noise[0]), *([math.log(0.02)] * d)])
    high = np.array([math.log(20.0), math.log(noise[1]), *([math.log(50.0)] * d)])
    found = []
    for start_noise in (0.01, 0.2):
        start = np.array([0.0, math.log(start_noise), *([centre] * d)])
        found.append(
            minimize(
                loss,
                np.clip(start, low, high),
                jac=True,
                method="L-BFGS-B",
                bounds=Limits(low, high),
                options={"maxfun": 40, "ftol": 1e-5},
            )
        )
    best = np.clip(min(found, key=lambda one: float(one.fun)).x, low, high)
    return Matern(math.exp(best[0]), size * np.exp(best[2:]), math.exp(best[1]))
