"""Exhaustive search over an ε-cover of the domain, which Theorem 2 of the paper is about."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace

import numpy as np

from experiments.samplers._spread import farthest_first
from moew._util.checks import POSITIVE, at_least, check_parameters
from moew.exceptions import Argument, InPython, InvalidInputError, MoewWarning
from moew.samplers import check_known
from moew.types import Domain, FloatArray

_SLACK = 1 + 1e-9  # so that rounding does not lose a point that is needed
_ROOM = 20  # lattice points examined, at most, for each point that `limit` allows


@dataclass(frozen=True)
class CoverSampler:
    """Tries each point of an ε-cover once, whatever the scores are, in an order that is spread at every
    length: each next point is the farthest from all that were tried.

    Parameters
    ----------
    epsilon
        Every point of the domain is within this distance of a point of the cover, as a share of the domain's
        size (the ball's radius). When all points have been tried, it is halved.
    limit
        A cover with more points is an error. Their number grows like (1/ε)^d, so use few dimensions. Where
        only the cover of the halved ε has more, random points follow.

    Notes
    -----
    The points are those of the lattice A*_d (hexagons in 2 dimensions, body-centred cubes in 3), the
    sparsest known lattice cover in up to 5 dimensions; points outside are moved to the nearest point of the
    domain. `MetricSearch` tries α = 0 and then the cover, without a random first batch, and warns
    before training if it has fewer candidates than the cover has points.
    """

    epsilon: float = 0.5
    limit: int = 100_000

    def __post_init__(self) -> None:
        check_parameters(self, epsilon=POSITIVE, limit=at_least(1))

    def check_domain(self, domain: Domain) -> None:
        """Raise where the cover of the domain would have more than `limit` points."""
        self.points(domain)

    def for_budget(self, domain: Domain, n_candidates: int) -> CoverSampler:
        """The same sampler; warns if so many candidates do not try every point of the cover, or if a finer
        cover, for those that are left, would have more than `limit` points."""
        n_points, d = len(self.points(domain)), domain.n_dims
        if n_points > n_candidates:
            warning = MoewWarning(
                f"the cover of {d} dimensions with epsilon={self.epsilon:g} has {n_points} points, and the "
                f"search has {n_candidates} candidates for it, which allow epsilon="
                f"{self._allowed(domain, n_candidates):.2g}: the points tried are spread over the domain, "
                "and not every point of it is within epsilon of one. For the whole cover, take a larger ",
                Argument("n_candidates"),
                InPython(", a larger epsilon"),
                " or an embedding of fewer dimensions.",
                argument="sampler",
            )
            warnings.warn(warning, stacklevel=2)
        elif n_points < n_candidates and self._points(domain, self.epsilon / 2) is None:
            warning = MoewWarning(
                f"the cover of {d} dimensions with epsilon={self.epsilon:g} has {n_points} points, one with "
                f"half of it more than limit={self.limit}: the other {n_candidates - n_points} candidates "
                "are random.",
                argument="sampler",
            )
            warnings.warn(warning, stacklevel=2)
        return self

    def points(self, domain: Domain) -> FloatArray:
        """The points (n, d) of the cover, nearest to 0 first."""
        cover = self._points(domain, self.epsilon)
        if cover is None:
            raise self._too_many(domain.n_dims, self.epsilon)
        return cover

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
        """The next `k` points of the cover (k, d) that are neither known nor pending."""
        alphas, _, pending, k = check_known(alphas, scores, pending, k, domain)
        tried, n_before = np.concatenate([alphas, pending]), len(alphas) + len(pending)
        cover, epsilon = self.points(domain), self.epsilon
        while True:
            found = farthest_first(cover, tried, n_before + k - len(tried), domain.size)
            tried = np.concatenate([tried, cover[found]])
            if len(tried) == n_before + k:
                return tried[n_before:]
            epsilon /= 2
            finer = self._points(domain, epsilon)
            if finer is None:
                return np.concatenate([tried[n_before:], domain.sample(rng, n_before + k - len(tried))])
            cover = finer

    def _allowed(self, domain: Domain, n_candidates: int) -> float:
        """The least ε, up to a hundredth of it, whose cover has at most so many points."""
        smaller = replace(self, limit=n_candidates)
        low, high = self.epsilon, self.epsilon
        while smaller._points(domain, high) is None:
            low, high = high, 2 * high
        while high > 1.01 * low:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if smaller._points(domain, middle) is None else (low, middle)
        return high

    def _points(self, domain: Domain, epsilon: float) -> FloatArray | None:
        """The cover (n, d), nearest to 0 first; None if it has more than `limit` points."""
        d, distance = domain.n_dims, epsilon * domain.size
        # Balls of radius ε · size must cover a ball of radius `size`, which takes at least (1/ε)^d of them.
        if d * math.log(1 / epsilon) > math.log(self.limit):
            return None
        # The farthest point from 0: a ball's lies in every direction, a box's along (1, …, 1).
        reach = float(np.linalg.norm(domain.project(np.full((1, d), 2.0 * domain.size))))
        if reach <= distance * _SLACK:
            return np.zeros((1, d))
        lattice = _lattice(d, distance, reach + distance, _ROOM * self.limit)
        if lattice is None:
            return None
        inside = domain.project(lattice)
        # Projection onto a convex set never increases distances, so the result is still a cover.
        needed = np.linalg.norm(lattice - inside, axis=1) <= distance * _SLACK
        cover = np.unique(inside[needed] + 0.0, axis=0)
        if len(cover) > self.limit:
            return None
        # Rounded, so that points at the same distance from 0 stay in the order of their coordinates.
        shell = np.round(np.linalg.norm(cover, axis=1) / distance, 6)
        return np.asarray(cover[np.argsort(shell, kind="stable")])

    def _too_many(self, d: int, epsilon: float) -> InvalidInputError:
        return InvalidInputError(
            f"a cover of {d} dimensions with epsilon={epsilon:g} has more than limit={self.limit} points; "
            "take a larger epsilon, an embedding of fewer dimensions, or ",
            Argument("sampler", "gp_bucb"),
            ".",
            argument="sampler",
        )


def _lattice(d: int, covering_radius: float, reach: float, most: int) -> FloatArray | None:
    """All points (n, d) of A*_d, scaled to `covering_radius`, within `reach` of 0; None if more than `most`.

    A*_d is Z^(d+1) projected along (1, …, 1). With a triangular basis the coordinates are found one after
    another, and partial sums that are already too long are dropped.
    """
    gram = np.eye(d) - 1 / (d + 1)
    basis = np.linalg.cholesky(gram) * (covering_radius / math.sqrt(d * (d + 2) / (12 * (d + 1))))
    numbers = np.empty((1, 0))  # coefficients of the last basis vectors; each row is a partial sum
    for j in reversed(range(d)):
        later = numbers @ basis[j + 1 :, j:]  # coordinates j and higher of the partial sums
        room = np.sqrt(np.maximum((reach * _SLACK) ** 2 - (later[:, 1:] ** 2).sum(axis=1), 0.0))
        low = np.ceil((-room - later[:, 0]) / basis[j, j])
        counts = np.maximum(np.floor((room - later[:, 0]) / basis[j, j]) - low + 1, 0).astype(np.int64)
        if counts.sum() > most:
            return None
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        first = np.repeat(low, counts) + within
        numbers = np.column_stack([first, np.repeat(numbers, counts, axis=0)])
    return np.asarray(numbers @ basis)
