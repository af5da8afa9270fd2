"""Maximise an upper bound over a convex domain: draw a pool of points, then ascend from the best of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import blas

from moew.samplers._gaussian_process import Posterior, squared_distances
from moew.types import Domain, FloatArray

# The pool is cut into _N_STARTS random groups; the best point of each is a start, so they are spread out.
# Measured at 25 to 200 observations in 2 to 20 dimensions, also with kernels narrow enough for many local
# maxima: on average the maximum is 0.0003 (in units of the targets' spread) below that of 300 long ascents.
_N_POOL = 1024
_N_STARTS = 32
_N_LEADERS = 4
_N_STEPS = 40
_LEAST_GAIN = 1e-4  # in units of the targets, whose spread is one
_N_BEST = 16
_N_ASIDE = 64
_ALMOST_ZERO = 1e-50  # a divisor in place of 0 that does not overflow
_APART = 1e-3  # least distance between any two points, in units of the domain's size

Bound = Callable[[FloatArray], tuple[FloatArray, FloatArray]]  # points (m, d) → values (m,), gradients (m, d)


class Pool:
    """A posterior at fixed points (m, d); a new observation costs one row, not a new solve."""

    def __init__(self, points: FloatArray, posterior: Posterior, n_more: int) -> None:
        self.points = points
        n = len(posterior.points)
        # Covariances with every observation; room for `n_more` rows to come.
        self._covariance = np.empty((n + n_more, len(points)))
        self._covariance[:n] = posterior.kernel(posterior.points, points)
        # L⁻¹ K(X, pool): half the work of a full product, because L⁻¹ is triangular.
        half = blas.dtrmm(1.0, posterior.inverse_factor.T, self._covariance[:n].T, side=1)
        self.mean = half @ posterior.whitened
        self._variance = posterior.kernel.amplitude**2 - np.einsum("mn,mn->m", half, half)

    def follow(self, posterior: Posterior) -> None:
        """Update mean and variance with the newest observation of `posterior`."""
        n = len(posterior.points)
        self._covariance[n - 1] = posterior.kernel(posterior.points[-1:], self.points)[0]
        row = posterior.inverse_factor[-1] @ self._covariance[:n]
        self.mean += row * posterior.whitened[-1]
        self._variance -= row * row

    def upper_bound(self, z: float) -> FloatArray:
        """The upper bound mean + z · sd (m,) of the points."""
        return np.asarray(self.mean + z * np.sqrt(np.maximum(self._variance, 0.0)))


def climb(bound: Bound, starts: FloatArray, domain: Domain, n_steps: int) -> tuple[FloatArray, FloatArray]:
    """Ascend from all starts (m, d) together; return local maxima (l, d) and their values (l,).

    Projected gradient ascent with Barzilai-Borwein step lengths; a step that does not increase the bound is
    cut to a quarter. Only the domain's `project` is used. After each step the lower half of the points is
    dropped, until _N_LEADERS are left.
    """
    points = domain.project(starts)
    values, gradients = bound(points)
    norms = np.sqrt(_dots(gradients, gradients))
    lengths: FloatArray = 0.2 * domain.size / np.maximum(norms, _ALMOST_ZERO)
    for step in range(n_steps):
        if step and len(values) > _N_LEADERS:
            leaders = np.argsort(-values)[: max(_N_LEADERS, len(values) // 2)]
            points, values, gradients, lengths = (a[leaders] for a in (points, values, gradients, lengths))
        trials = domain.project(points + lengths[:, None] * gradients)
        moves = trials - points
        # Stop when no point is expected to pass the highest: near a maximum, the product is twice the gain.
        if (values + _dots(gradients, moves)).max() <= values.max() + _LEAST_GAIN:
            break
        trial_values, trial_gradients = bound(trials)
        rises = trial_values > values
        curvature = _dots(gradients - trial_gradients, moves)
        newton = np.where(
            curvature > 0, _dots(moves, moves) / np.maximum(curvature, _ALMOST_ZERO), 4 * lengths
        )
        lengths = np.where(rises, np.minimum(newton, 100 * lengths), 0.25 * lengths)
        np.copyto(points, trials, where=rises[:, None])
        np.copyto(gradients, trial_gradients, where=rises[:, None])
        np.copyto(values, trial_values, where=rises)
    return points, values


def _dots(a: FloatArray, b: FloatArray) -> FloatArray:
    """a_i · b_i (m,) of vectors (m, d)."""
    return np.asarray(np.einsum("md,md->m", a, b))


class Argmax:
    """Finds the alpha with the highest mean + z · sd of g, away from all known points.

    `alphas` (n, d) and their `scores` (n,) are g's observations; the pool is denser around the best ones.
    """

    def __init__(
        self,
        g: Posterior,
        z: float,
        alphas: FloatArray,
        scores: FloatArray,
        domain: Domain,
        rng: np.random.Generator,
        n_more: int,
    ) -> None:
        self.g, self._z, self._domain, self._rng = g, z, domain, rng
        self._pool = Pool(_draw_pool(alphas, scores, domain, rng), g, n_more)

    def add(self, alpha: FloatArray, z: float) -> None:
        """Add a pretended observation to g: mean + z · sd at `alpha` (d,)."""
        self.g = self.g.extended(alpha, z)
        self._pool.follow(self.g)

    def highest(self) -> float:
        """The highest bound in the domain, also at known points."""
        return float(self._climbed()[1].max())

    def find(self) -> FloatArray:
        """The alpha (d,) with the highest bound that is away from all known points."""
        tops, values = self._climbed()
        top: FloatArray = tops[values.argmax()]
        if self._is_new(top):
            return top
        # The maximum is a known point (g considers it noisy, or q is small): try points close to it.
        aside = self._rng.standard_normal((_N_ASIDE, self._domain.n_dims))
        aside *= _APART * self._domain.size / np.linalg.norm(aside, axis=1, keepdims=True)
        aside *= np.geomspace(1.01, 100, _N_ASIDE)[:, None]
        near = self._domain.project(top + aside)
        found = self._best_new(np.vstack([tops, near]), np.append(values, self._bound(near)[0]))
        if found is None:
            found = self._best_new(self._pool.points, self._pool.upper_bound(self._z))
        if found is None:  # the domain is nearly full: take the point farthest from the known ones
            spare = self._domain.sample(self._rng, len(self._pool.points))
            found = spare[squared_distances(spare, self.g.points).min(axis=1).argmax()]
        return np.asarray(found)

    def _climbed(self) -> tuple[FloatArray, FloatArray]:
        """Local maxima (l, d) of the bound and their values (l,)."""
        in_groups = self._pool.upper_bound(self._z).reshape(-1, _N_STARTS)
        best = in_groups.argmax(axis=0) * _N_STARTS + np.arange(_N_STARTS)
        return climb(self._bound, self._pool.points[best], self._domain, _N_STEPS)

    def _bound(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.g.upper_bound(points, self._z)

    def _is_new(self, point: FloatArray) -> bool:
        away = np.linalg.norm(self.g.points - point, axis=1).min()
        return bool(away > _APART * self._domain.size)

    def _best_new(self, points: FloatArray, values: FloatArray) -> FloatArray | None:
        """The point (d,) of highest value among those of points (m, d) away from the known ones, or None."""
        return next((points[i] for i in np.argsort(-values) if self._is_new(points[i])), None)


def _draw_pool(
    alphas: FloatArray, scores: FloatArray, domain: Domain, rng: np.random.Generator
) -> FloatArray:
    """Points (_N_POOL, d): three quarters uniform, the rest around the best alphas at several distances."""
    best = np.argsort(-scores)[:_N_BEST]
    anywhere = domain.sample(rng, 3 * _N_POOL // 4)
    steps = rng.standard_normal((_N_POOL // 4, domain.n_dims)) / np.sqrt(domain.n_dims)
    steps *= domain.size * rng.choice([0.03, 0.1, 0.3], size=(len(steps), 1))
    near = domain.project(alphas[rng.choice(best, size=len(steps))] + steps)
    return rng.permutation(np.vstack([anywhere, near]))
