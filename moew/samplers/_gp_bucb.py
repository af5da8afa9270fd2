"""Algorithm 2 of the paper: the next batch by Gaussian process upper confidence bounds (GP-BUCB)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from scipy.linalg import blas
from scipy.special import ndtri

from moew._util.checks import FRACTION, Wanted, check_parameters, one_of
from moew._util.numbers import is_number
from moew._util.threads import one_blas_thread
from moew.exceptions import InvalidInputError
from moew.samplers._gaussian_process import Bounds, Kernel, Posterior, fit_kernel, squared_distances
from moew.samplers._samplers import check_known
from moew.types import Domain, FloatArray, Outlook, Rng

# Bounds of what is fitted: the amplitude in units of the targets' spread, the width in units of domain.size,
# the noise variance in units of the targets' variance. Widths above 20 look like planes and parabolas, and
# only make the covariance singular; an amplitude below a tenth would treat all alphas as equal.
_AMPLITUDE: Bounds = (0.1, 100.0)
_WIDTH: Bounds = (0.05, 20.0)
_MOST_NOISE = 2.0
# Used where all scores are equal; with less noise and more width, g is certain everywhere after a few points.
_FLAT_NOISE, _FLAT_WIDTH = 0.01, 0.3
_MOST_PERCENT = 99.9999
# Beyond these, squares overflow or vanish, and g stays the same: given widths far above and below every
# distance, and noise that drowns the targets, in units of their deviation. No unit is less than _LEAST.
_WIDTHS: Bounds = (1e-100, 1e100)
_DROWNED, _LEAST = 1e6, 5e-324

# The pool is cut into _N_STARTS random groups; the best point of each is a start, so they are spread out.
# Measured at 25 to 200 observations in 2 to 20 dimensions, also with kernels narrow enough for many local
# maxima: on average the maximum is 0.0003 (in units of the targets' spread) below that of 300 long ascents.
_N_POOL, _N_STARTS, _N_LEADERS, _N_STEPS = 1024, 32, 4, 40
_N_BEST, _N_ASIDE = 16, 64
_LEAST_GAIN = 1e-4  # in units of the targets, whose spread is one
_ALMOST_ZERO = 1e-50  # a divisor in place of 0 that does not overflow
_APART = 1e-3  # least distance between any two points, in units of the domain's size

Bound = Callable[[FloatArray], tuple[FloatArray, FloatArray]]  # points (m, d) → values (m,), gradients (m, d)

_PERCENT = Wanted("is in percent, from 0 to 100", lambda value: is_number(value) and 0 <= value <= 100)
_KERNEL_WIDTH = Wanted(
    "must be 'domain', 'fit' or a positive number",
    lambda value: value > 0 if is_number(value) else one_of("domain", "fit").fits(value),
)
_NOISE = Wanted(
    "is a variance and must be 'fit', 'repeats' or a number of at least 0",
    lambda value: value >= 0 if is_number(value) else one_of("fit", "repeats").fits(value),
)


@dataclass(frozen=True)
class GpBucb:
    """Proposes alphas by GP-BUCB (Algorithm 2), with the paper's p and q in percent.

    The hyper-parameters are fitted once in each call, on real observations only.

    Parameters
    ----------
    p, q
        A larger p explores more, a larger q spreads a batch wider. 68.3 is one standard deviation, 100 would
        be infinitely many: both are capped at 99.9999 (4.9 standard deviations). The intervals are those of
        g itself, without the noise of an observation, as in the authors' scripts.
    width
        Of the RBF kernel. "domain": the domain's size, the paper's R. "fit": by marginal likelihood, as in
        the authors' scripts, within 0.05 and 20 times the domain's size. A number: that width. "fit" is the
        default because it needs no well-chosen radius; otherwise the two differ by less than their error
        margins (`benchmarks/candidates.py --widths`).
    noise
        Variance of the metric between trainings. "fit": by marginal likelihood. "repeats": pooled over
        alphas that were scored more than once (in the paper, the α = 0 models). A number: that variance, in
        the metric's own units squared.
    noise_floor
        The least noise variance, as a share of the targets' variance (of their mean square if raw).
    targets
        "standardize": mean 0 and variance 1. "raw": as they are, with a prior mean of 0, as in the authors'
        scripts.
    """

    p: float = 68.3
    q: float = 68.3
    width: Literal["domain", "fit"] | float = "fit"
    noise: Literal["fit", "repeats"] | float = "fit"
    targets: Literal["standardize", "raw"] = "standardize"
    noise_floor: float = 1e-6

    def __post_init__(self) -> None:
        check_parameters(self, p=_PERCENT, q=_PERCENT, targets=one_of("standardize", "raw"))
        check_parameters(self, width=_KERNEL_WIDTH, noise=_NOISE, noise_floor=FRACTION)

    def check_domain(self, domain: Domain) -> None:
        """Any domain can be searched."""

    @one_blas_thread()
    def propose(
        self, alphas: FloatArray, scores: FloatArray, *, pending: FloatArray, k: int, domain: Domain, rng: Rng
    ) -> FloatArray:
        """The next `k` alphas (k, d), given observed alphas (n, d), their scores (n,), pending (m, d).

        A failed candidate (NaN or infinite score) counts as the worst score seen. With fewer than two
        finite scores the alphas are random.
        """
        alphas, scores, pending, k = check_known(alphas, scores, pending, k, domain)
        if np.isfinite(scores).sum() < 2:
            return domain.sample(rng, k)
        # Algorithm 2: "S ← set of α and validation metrics in prior batches"; g ← GPR(S)
        g = self.model(alphas, scores, domain)
        up, down = _deviations(self.p), -_deviations(self.q)
        argmax = Argmax(g, up, alphas, _without_failures(scores), domain, rng, n_more=len(pending) + k)
        # Candidates of this batch that are already being trained.
        for alpha in pending:
            argmax.add(alpha, down)
        batch = np.empty((k, domain.n_dims))
        for j in range(k):  # for j = 1, 2, …, K
            batch[j] = argmax.find()  # α_j ← argmax_{α ∈ B} Q_(50 + p/2)%[g(α)]
            argmax.add(batch[j], down)  # S ← S ∪ {(α_j, Q_(50 − q/2)%[g(α_j)])}; g ← GPR(S)
        return batch

    @one_blas_thread()
    def outlook(self, alphas: FloatArray, scores: FloatArray, *, domain: Domain, rng: Rng) -> Outlook | None:
        """How far the upper bound Q_(50 + p/2)%[g(α)] is above the best score anywhere in the domain, and the
        widest p % interval of g; None with fewer than two finite scores.

        With p = 0 there is no interval, and its width is infinite, so that it never counts as narrow.
        """
        alphas, scores, _, _ = check_known(alphas, scores, alphas[:0], 1, domain)
        if np.isfinite(scores).sum() < 2:
            return None
        g, up = self.model(alphas, scores, domain), _deviations(self.p)
        targets, unit = self._targets(scores)
        known = alphas, _without_failures(scores), domain, rng
        highest = Argmax(g, up, *known, n_more=0).highest()
        # Without a mean, the bound is the standard deviation.
        widest = Argmax(replace(g, whitened=np.zeros_like(g.whitened)), 1.0, *known, n_more=0).highest()
        width = 2 * up * widest * unit if up > 0 else np.inf
        return Outlook(float((highest - targets.max()) * unit), float(width))

    @one_blas_thread()
    def posterior_mean(self, alphas: FloatArray, scores: FloatArray, domain: Domain) -> FloatArray:
        """The mean of g at the observed alphas (n, d), in units of its targets; NaN where the score (n,) is
        not finite. With fewer than two finite scores there is no g, and these are returned."""
        finite = np.isfinite(scores)
        if finite.sum() < 2:
            return np.where(finite, scores, np.nan)
        return np.where(finite, self.model(alphas, scores, domain).predict(alphas)[0], np.nan)

    @one_blas_thread()
    def model(self, alphas: FloatArray, scores: FloatArray, domain: Domain) -> Posterior:
        """g fitted to alphas (n, d) and scores (n,), at least two of them finite; in units of its targets."""
        targets, scale = self._targets(scores)
        width = domain.size if isinstance(self.width, str) else float(self.width)
        width = min(max(width, _WIDTHS[0]), _WIDTHS[1])
        if not np.ptp(targets) > 0 and self.targets != "raw":
            # All scores are equal: nothing to fit, so the batch spreads over the domain.
            width = _FLAT_WIDTH * domain.size if self.width == "fit" else width
            return Posterior.given(Kernel(1.0, width, max(self.noise_floor, _FLAT_NOISE)), alphas, targets)
        width_bounds = (width, width)
        if self.width == "fit":
            width_bounds = (_WIDTH[0] * domain.size, _WIDTH[1] * domain.size)
        if self.noise == "fit":
            noise_bounds = (self.noise_floor, _MOST_NOISE)
        else:
            deviation = repeat_deviation(alphas, scores) if self.noise == "repeats" else self.noise**0.5
            noise = max(min(deviation / scale, _DROWNED) ** 2, self.noise_floor)
            noise_bounds = (noise, noise)
        kernel = fit_kernel(alphas, targets, amplitude=_AMPLITUDE, width=width_bounds, noise=noise_bounds)
        return Posterior.given(kernel, alphas, targets)

    def _targets(self, scores: FloatArray) -> tuple[FloatArray, float]:
        """The targets (n,) that g is fitted to, and the size of their unit in units of the metric."""
        filled = _without_failures(scores)
        # Divided by the largest first, so that no square can overflow or underflow.
        largest = float(np.abs(filled).max()) or 1.0
        targets = filled / largest
        if self.targets != "raw":
            targets = targets - targets.mean()
            if np.abs(targets).max() < 1e-13:
                targets = np.zeros_like(targets)
        spread = float(np.sqrt((targets**2).mean())) or 1.0
        return targets / spread, spread * largest or _LEAST  # the product of small numbers can be 0


def _without_failures(scores: FloatArray) -> FloatArray:
    """Scores (n,) with NaN and infinite ones replaced by the worst finite one."""
    finite = np.isfinite(scores)
    return np.where(finite, scores, scores[finite].min())


def repeat_deviation(alphas: FloatArray, scores: FloatArray) -> float:
    """Standard deviation of the scores (n,) of equal alphas (n, d), pooled over those seen more than once."""
    finite = np.isfinite(scores)
    _, group, counts = np.unique(alphas[finite], axis=0, return_inverse=True, return_counts=True)
    group = group.reshape(-1)
    freedom = counts.sum() - len(counts)
    if freedom == 0:
        raise InvalidInputError(
            "noise='repeats' needs an alpha that was scored at least twice, and there is none: "
            "ask for repeats of the α = 0 model, or use noise='fit' or a number.",
            argument="noise",
        )
    largest = float(np.abs(scores[finite]).max()) or 1.0
    values = scores[finite] / largest
    means = np.bincount(group, values) / counts
    return float(np.sqrt(((values - means[group]) ** 2).sum() / freedom)) * largest


def _deviations(percent: float) -> float:
    """Half the width, in standard deviations, of the central interval that holds `percent` of a normal."""
    return float(ndtri(0.5 + min(percent, _MOST_PERCENT) / 200))


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
        rng: Rng,
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
        top = tops[values.argmax()]
        if self._best_new(top[None], values[:1]) is not None:
            return np.asarray(top)
        # The maximum is a known point (g considers it noisy, or q is small): try points close to it.
        aside = self._rng.standard_normal((_N_ASIDE, self._domain.n_dims))
        aside *= _APART * self._domain.size / np.linalg.norm(aside, axis=1, keepdims=True)
        aside *= np.geomspace(1.01, 100, _N_ASIDE)[:, None]
        near = self._domain.project(top + aside)
        bounds = np.append(values, self.g.upper_bound(near, self._z)[0])
        found = self._best_new(np.vstack([tops, near]), bounds)
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
        bound = partial(self.g.upper_bound, z=self._z)
        return climb(bound, self._pool.points[best], self._domain, _N_STEPS)

    def _best_new(self, points: FloatArray, values: FloatArray) -> FloatArray | None:
        """The point (d,) of highest value among those of points (m, d) away from the known ones, or None."""
        for point in points[np.argsort(-values)]:
            if np.linalg.norm(self.g.points - point, axis=1).min() > _APART * self._domain.size:
                return np.asarray(point)
        return None


def _draw_pool(alphas: FloatArray, scores: FloatArray, domain: Domain, rng: Rng) -> FloatArray:
    """Points (_N_POOL, d): three quarters uniform, the rest around the best alphas at several distances."""
    best = np.argsort(-scores)[:_N_BEST]
    anywhere = domain.sample(rng, 3 * _N_POOL // 4)
    steps = rng.standard_normal((_N_POOL // 4, domain.n_dims)) / np.sqrt(domain.n_dims)
    steps *= domain.size * rng.choice([0.03, 0.1, 0.3], size=(len(steps), 1))
    near = domain.project(alphas[rng.choice(best, size=len(steps))] + steps)
    return rng.permutation(np.vstack([anywhere, near]))
