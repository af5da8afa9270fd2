"""Searches that were tried beside the library's samplers, for benchmarks/samplers.py.

`Modelled` has another model than GP-BUCB and other ways to ask it. The model: a Matérn kernel (5/2)
with a width for each dimension, which are those of highest posterior density; their prior grows with √d, as
distances in a ball of d dimensions do. The strategies: the upper confidence bound of Algorithm 2 with one
percentage or with several by turns, and noisy expected improvement, both anywhere or for a share of the batch
within a trust region around the best alpha. Points may be asked again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import Bounds, minimize
from scipy.special import log_ndtr, ndtr, ndtri

from moew.samplers._gaussian_process import Posterior, _factorize, _with_noise, squared_distances
from moew.samplers._gp_bucb import _draw_pool, climb
from moew.types import Domain, FloatArray

_ROOT = math.sqrt(5.0)
_LOG_ROOT_2_PI = 0.5 * math.log(2 * math.pi)
_NOISE = (1e-6, 2.0)
_AMPLITUDE = (0.05, 20.0)
_WIDTH = (0.02, 50.0)  # in units of the domain's size


@dataclass(frozen=True)
class Matern:
    """The kernel: widths (d,), `noise` a variance."""

    amplitude: float
    width: FloatArray
    noise: float

    def __call__(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Covariances (n, m) of points a (n, d) and b (m, d)."""
        return self.with_slopes(a, b)[0]

    def with_slopes(self, a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Covariances (n, m) and slopes (n, m): ∂k(a_i, b_j)/∂a_i = slope_ij (b_j − a_i) / width²."""
        return _matern(self.amplitude**2, squared_distances(a / self.width, b / self.width))


def _matern(variance: float, squared: FloatArray) -> tuple[FloatArray, FloatArray]:
    r = _ROOT * np.sqrt(squared)
    decay = variance * np.exp(-r)
    return decay * (1 + r + 5 / 3 * squared), 5 / 3 * decay * (1 + r)


def fit_matern(X: FloatArray, y: FloatArray, size: float, prior_width: float, spread: float) -> Matern:
    """The kernel of highest posterior density; the logarithm of each width is normal around that of
    `prior_width` · size, with standard deviation `spread`."""
    n, d = X.shape
    flat = ((X[:, None] - X[None]) ** 2).reshape(n * n, d) / size**2
    centre = math.log(prior_width)

    def loss(logs: FloatArray) -> tuple[float, FloatArray]:
        noise, inverse = math.exp(logs[1]), np.exp(-2 * logs[2:])
        covariance, slopes = _matern(math.exp(2 * logs[0]), np.maximum(flat @ inverse, 0).reshape(n, n))
        factor = _factorize(_with_noise(covariance, noise))
        solved, _ = lapack.dpotrs(factor, y, lower=1)
        value = -0.5 * (y @ solved) - np.log(factor.diagonal()).sum()
        half, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
        outer = np.outer(solved, solved) - (np.tril(half) + np.tril(half, -1).T)
        away = logs[2:] - centre
        of_widths = 0.5 * ((outer * slopes).reshape(-1) @ flat) * inverse - away / spread**2
        gradient = np.array([np.vdot(outer, covariance), 0.5 * noise * outer.trace(), *of_widths])
        return -(value - 0.5 * float(away @ away) / spread**2), -gradient

    limits = np.log([_AMPLITUDE, _NOISE, *[_WIDTH] * d]).T
    found = [
        minimize(
            loss,
            np.clip([0.0, math.log(noise), *[centre] * d], *limits),
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(*limits),
            options={"maxfun": 40, "ftol": 1e-5},
        )
        for noise in (0.01, 0.2)
    ]
    best = np.clip(min(found, key=lambda one: float(one.fun)).x, *limits)
    return Matern(math.exp(best[0]), size * np.exp(best[2:]), math.exp(best[1]))


@dataclass(frozen=True)
class TrustRegion:
    """The part of a domain within a radius of a point; its `project` is near the nearest point."""

    domain: Domain
    centre: FloatArray
    size: float

    @property
    def n_dims(self) -> int:
        return self.domain.n_dims

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        steps = rng.standard_normal((n, self.n_dims))
        lengths = self.size * rng.random((n, 1)) ** (1 / self.n_dims)
        return self.project(self.centre + steps * lengths / np.linalg.norm(steps, axis=1, keepdims=True))

    def project(self, points: FloatArray) -> FloatArray:
        for _ in range(3):
            steps = points - self.centre
            norms = np.maximum(np.linalg.norm(steps, axis=1, keepdims=True), 1e-12)
            points = self.domain.project(self.centre + steps * np.minimum(1, self.size / norms))
        return points


Bound = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True)
class Modelled:
    """percents: of the upper bound, by turns; None is noisy expected improvement. q: as in GP-BUCB.
    near: the share of a batch within the trust region, whose radius is `region` times the domain's size."""

    percents: tuple[float, ...] | None = (68.3,)
    q: float = 68.3
    near: float = 0.0
    region: float = 0.3
    prior_width: float = 0.5
    spread: float = 1.0

    def check_domain(self, domain: Domain) -> None:
        """Any domain can be searched."""

    def propose(
        self,
        alphas: FloatArray,
        scores: FloatArray,
        *,
        pending: FloatArray,
        k: int,
        domain: Domain,
        rng: np.random.Generator,
    ) -> FloatArray:
        y = (scores - scores.mean()) / (scores.std() or 1.0)
        prior = self.prior_width * math.sqrt(domain.n_dims)
        g = Posterior.given(fit_matern(alphas, y, domain.size, prior, self.spread), alphas, y)  # type: ignore[arg-type]
        means = g.predict(alphas)[0]
        around = TrustRegion(domain, alphas[means.argmax()], self.region * domain.size)
        batch = np.empty((k, domain.n_dims))
        for j in range(k):
            where: Domain = domain
            pool = _draw_pool(alphas, scores, domain, rng)
            if self.near and (j * self.near) % 1 + self.near >= 1 - 1e-9:
                where, pool = around, around.sample(rng, len(pool))  # type: ignore[assignment]
            bound = self._bound(g, j, float(means.max()))
            starts = pool[np.argsort(-bound(pool)[0])[:24]]
            tops, values = climb(bound, starts, where, 40)
            batch[j] = tops[values.argmax()]
            g = g.extended(batch[j], -_deviations(self.q))
        return batch

    def _bound(self, g: Posterior, j: int, best: float) -> Bound:
        if self.percents is None:
            return lambda points: _log_expected_improvement(g, points, best)
        z = _deviations(self.percents[j % len(self.percents)])

        def upper(points: FloatArray) -> tuple[FloatArray, FloatArray]:
            mean, sd, of_mean, of_sd = _with_gradients(g, points)
            return mean + z * sd, of_mean + z * of_sd

        return upper


def _deviations(percent: float) -> float:
    return float(ndtri(0.5 + percent / 200))


def _with_gradients(
    g: Posterior, points: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Mean and standard deviation (m,) at points (m, d), and their gradients (m, d)."""
    covariance, slopes = g.kernel.with_slopes(points, g.points)  # type: ignore[attr-defined]
    half = covariance @ g.inverse_factor.T
    sd = np.sqrt(np.maximum(g.kernel.amplitude**2 - np.einsum("mn,mn->m", half, half), 1e-10))

    def gradient(pull: FloatArray) -> FloatArray:
        return np.asarray((pull @ g.points - pull.sum(axis=1)[:, None] * points) / g.kernel.width**2)

    of_mean = gradient(slopes * (g.whitened @ g.inverse_factor))
    of_sd = gradient(-slopes * ((half / sd[:, None]) @ g.inverse_factor))
    return half @ g.whitened, sd, of_mean, of_sd


def _log_expected_improvement(g: Posterior, points: FloatArray, best: float) -> tuple[FloatArray, FloatArray]:
    """log E[max(g − best, 0)] (m,) and its gradient (m, d); far below the best by its asymptote."""
    mean, sd, of_mean, of_sd = _with_gradients(g, points)
    z = (mean - best) / sd
    near, far = np.maximum(z, -5), np.minimum(z, -5)
    log_density = -0.5 * z**2 - _LOG_ROOT_2_PI
    exact = np.log(near * ndtr(near) + np.exp(-0.5 * near**2 - _LOG_ROOT_2_PI))
    value = np.where(z < -5, -0.5 * far**2 - _LOG_ROOT_2_PI - 2 * np.log(-far), exact) + np.log(sd)
    by_mean, by_sd = (np.exp(np.minimum(part - value, 50.0)) for part in (log_ndtr(z), log_density))
    return value, by_mean[:, None] * of_mean + by_sd[:, None] * of_sd
