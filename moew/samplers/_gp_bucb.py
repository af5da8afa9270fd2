"""Algorithm 2 of the paper: the next batch by Gaussian process upper confidence bounds (GP-BUCB)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import ndtri

from moew._util.numbers import is_number
from moew._util.threads import one_blas_thread
from moew.exceptions import InvalidInputError
from moew.samplers._ascent import Argmax
from moew.samplers._checks import check_known
from moew.samplers._gaussian_process import Bounds, Kernel, Posterior, fit_kernel
from moew.types import Domain, FloatArray, Outlook

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


@dataclass(frozen=True)
class GpBucb:
    """Proposes alphas by GP-BUCB (Algorithm 2), with the paper's p and q in percent.

    Parameters
    ----------
    p, q
        A larger p explores more, a larger q spreads a batch wider. 68.3 is one standard deviation, 100 would
        be infinitely many: both are capped at 99.9999 (4.9 standard deviations). The intervals are those of
        g itself, without the noise of an observation, as in the authors' scripts.
    width
        Of the RBF kernel. "domain": the domain's size, the paper's R. "fit": by marginal likelihood, as in
        the authors' scripts, within 0.05 and 20 times the domain's size. A number: that width. On four
        kinds of functions (`benchmarks/candidates.py --widths`, 8 seeds) the means differ by less than
        their error margins; "fit" was higher in 23 of 32 runs in 10 dimensions, in 28 of 64 in 2 and 4, in
        16 of 32 in 20. It is the default because it needs no well-chosen radius.
    noise
        Variance of the metric between trainings. "fit": by marginal likelihood. "repeats": pooled over
        alphas that were scored more than once (in the paper, the α = 0 models). A number: that variance, in
        the metric's own units squared.
    noise_floor
        The least noise variance, as a share of the targets' variance (of their mean square if raw).
    targets
        "standardize": mean 0 and variance 1. "center": mean 0 in the metric's own units; because the
        amplitude is always fitted and its bounds follow the spread, this gives the same picks. "raw": as
        they are, with a prior mean of 0, as in the authors' scripts.

    Notes
    -----
    The hyper-parameters are fitted once in each call, on real observations only.
    """

    p: float = 68.3
    q: float = 68.3
    width: Literal["domain", "fit"] | float = "fit"
    noise: Literal["fit", "repeats"] | float = "fit"
    targets: Literal["standardize", "center", "raw"] = "standardize"
    noise_floor: float = 1e-6

    def __post_init__(self) -> None:
        for name, percent in (("p", self.p), ("q", self.q)):
            if not (is_number(percent) and 0 <= percent <= 100):
                raise InvalidInputError(
                    f"{name} is in percent, from 0 to 100; got {percent!r}.", argument=name
                )
        if not isinstance(self.targets, str) or self.targets not in ("standardize", "center", "raw"):
            raise InvalidInputError(
                f"targets must be 'standardize', 'center' or 'raw', got {self.targets!r}.", argument="targets"
            )
        if isinstance(self.width, str):
            if self.width not in ("domain", "fit"):
                raise InvalidInputError(
                    f"width must be 'domain', 'fit' or a number, got {self.width!r}.", argument="width"
                )
        elif not (is_number(self.width) and self.width > 0):
            raise InvalidInputError(f"width must be a positive number, got {self.width!r}.", argument="width")
        if isinstance(self.noise, str):
            if self.noise not in ("fit", "repeats"):
                raise InvalidInputError(
                    f"noise must be 'fit', 'repeats' or a number, got {self.noise!r}.", argument="noise"
                )
        elif not (is_number(self.noise) and self.noise >= 0):
            raise InvalidInputError(
                f"noise is a variance and must be a number of at least 0, got {self.noise!r}.",
                argument="noise",
            )
        if not (is_number(self.noise_floor) and 0 < self.noise_floor <= 1):
            raise InvalidInputError(
                f"noise_floor must be a share above 0 and at most 1, got {self.noise_floor!r}.",
                argument="noise_floor",
            )

    def check_domain(self, domain: Domain) -> None:
        """Any domain can be searched."""

    @one_blas_thread()
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
    def outlook(
        self, alphas: FloatArray, scores: FloatArray, *, domain: Domain, rng: np.random.Generator
    ) -> Outlook | None:
        """How far the upper bound Q_(50 + p/2)%[g(α)] is above the best score anywhere in the domain, and the
        widest p % interval of g; None with fewer than two finite scores.

        With p = 0 there is no interval, and its width is infinite, so that it never counts as narrow.
        """
        alphas, scores, _, _ = check_known(alphas, scores, alphas[:0], 1, domain)
        if np.isfinite(scores).sum() < 2:
            return None
        g, (targets, unit), up = (
            self.model(alphas, scores, domain),
            self._targets(scores),
            _deviations(self.p),
        )
        known = alphas, _without_failures(scores), domain, rng
        highest = Argmax(g, up, *known, n_more=0).highest()
        # Without a mean, the bound is the standard deviation.
        widest = Argmax(replace(g, whitened=np.zeros_like(g.whitened)), 1.0, *known, n_more=0).highest()
        width = 2 * up * widest * unit if up > 0 else np.inf
        return Outlook(float((highest - targets.max()) * unit), float(width))

    @one_blas_thread()
    def model(self, alphas: FloatArray, scores: FloatArray, domain: Domain) -> Posterior:
        """g fitted to alphas (n, d) and scores (n,), at least two of them finite; in units of its targets."""
        targets, scale = self._targets(scores)
        if not np.ptp(targets) > 0 and self.targets != "raw":
            # All scores are equal: nothing to fit, so the batch spreads over the domain.
            width = _FLAT_WIDTH * domain.size if self.width == "fit" else self._given_width(domain)
            return Posterior.given(Kernel(1.0, width, max(self.noise_floor, _FLAT_NOISE)), alphas, targets)
        if self.width == "fit":
            width_bounds = (_WIDTH[0] * domain.size, _WIDTH[1] * domain.size)
        else:
            width_bounds = (self._given_width(domain),) * 2
        if self.noise == "fit":
            noise_bounds = (self.noise_floor, _MOST_NOISE)
        else:
            deviation = repeat_deviation(alphas, scores) if self.noise == "repeats" else self.noise**0.5
            noise = max(min(deviation / scale, _DROWNED) ** 2, self.noise_floor)
            noise_bounds = (noise, noise)
        kernel = fit_kernel(alphas, targets, amplitude=_AMPLITUDE, width=width_bounds, noise=noise_bounds)
        return Posterior.given(kernel, alphas, targets)

    def _given_width(self, domain: Domain) -> float:
        """The width where it is not fitted, so that its square is a number."""
        width = domain.size if isinstance(self.width, str) else float(self.width)
        return min(max(width, _WIDTHS[0]), _WIDTHS[1])

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
