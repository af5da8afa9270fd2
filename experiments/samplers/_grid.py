"""Exhaustive search on a grid, which the paper names for a low-dimensional space."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from experiments.samplers._spread import farthest_first
from moew._util.checks import at_least, check_parameters
from moew.exceptions import Argument, InvalidInputError
from moew.samplers import check_known
from moew.types import Domain, FloatArray

_MOST_DIMS = 8  # two values an axis are 256 points
_MOST_EXAMINED = 2_000_000
_SLACK = 1e-9


@dataclass(frozen=True)
class GridSampler:
    """Tries each point of a grid once, whatever the scores are, in an order that is spread at every length.

    Parameters
    ----------
    n_points
        The grid is the finest that has at most so many points. None: `MetricSearch` takes the number
        of candidates that it has for the sampler, `WeightStudy` begins with the coarsest grid, which has two
        values an axis. When all points have been tried, a grid of up to twice as many follows.

    Notes
    -----
    The points are those with equal distances along all axes that lie in the domain, as wide as it allows:
    the outermost are on its edge. Each next one is the farthest from all that were tried. More than 8
    dimensions are refused. A stored study cannot be continued with another `n_points`.
    """

    n_points: int | None = None

    def __post_init__(self) -> None:
        if self.n_points is not None:
            check_parameters(self, n_points=at_least(2))

    def check_domain(self, domain: Domain) -> None:
        """Raise where a grid makes no sense: many dimensions, or fewer points than two values an axis."""
        d = domain.n_dims
        if d > _MOST_DIMS:
            raise InvalidInputError(
                f"a grid of {d} dimensions has {2**d} points with only two values an axis; the most are "
                f"{_MOST_DIMS} dimensions. Take an embedding of fewer, or ",
                Argument("sampler", "gp_bucb"),
                ".",
                argument="sampler",
            )
        if self.n_points is not None and self.n_points < 2**d:
            raise InvalidInputError(
                f"a grid of {d} dimensions needs {2**d} candidates for two values an axis, and there are "
                f"{self.n_points} for it. Take an embedding of fewer dimensions, a larger ",
                Argument("n_candidates"),
                ", or ",
                Argument("sampler", "gp_bucb"),
                ".",
                argument="sampler",
            )

    def for_budget(self, domain: Domain, n_candidates: int) -> GridSampler:
        """The grid for so many candidates, unless `n_points` was given."""
        sampler = self if self.n_points is not None else replace(self, n_points=max(2, n_candidates))
        sampler.check_domain(domain)
        return sampler

    def points(self, domain: Domain) -> FloatArray:
        """The points (n, d) of the grid, in the order of their coordinates."""
        self.check_domain(domain)
        return _grid(domain, self.n_points or 2**domain.n_dims)

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
        """The next `k` points of the grid (k, d) that are neither known nor pending."""
        alphas, _, pending, k = check_known(alphas, scores, pending, k, domain)
        self.check_domain(domain)
        tried, n_before = np.concatenate([alphas, pending]), len(alphas) + len(pending)
        n_points = self.n_points or 2**domain.n_dims
        while len(tried) < n_before + k:
            grid = _grid(domain, n_points)
            found = farthest_first(grid, tried, n_before + k - len(tried), domain.size)
            tried = np.concatenate([tried, grid[found]])
            n_points *= 2
        return tried[n_before:]


def _grid(domain: Domain, n_points: int) -> FloatArray:
    """The grid (n, d) with the most points up to `n_points`, as wide as the domain allows."""
    grids = [_widest(domain, n_points, shift) for shift in (0.0, 0.5)]
    return max(grids, key=len)


def _widest(domain: Domain, n_points: int, shift: float) -> FloatArray:
    """As many whole shells of the lattice Z^d + shift around 0 as have at most `n_points` points, with the
    outermost on the domain's edge."""
    d = domain.n_dims
    # How far the domain reaches along each axis: a box may be wider than the ball beside it.
    reach = np.diagonal(domain.project(3 * domain.size * np.eye(d)))
    for cells in itertools.count(1):
        values = np.arange(-cells, cells + 1) if shift == 0 else np.arange(-cells, cells) + shift
        if len(values) ** d > _MOST_EXAMINED:
            raise InvalidInputError(
                f"a grid of {d} dimensions cannot have as many as {n_points} points; take fewer.",
                argument="n_points",
            )
        lattice = np.stack([axis.ravel() for axis in np.meshgrid(*[values] * d, indexing="ij")], axis=1)
        # The factor by which the domain would have to grow to reach a point.
        growth = 1 - domain.edge_distance(lattice * reach)
        complete = growth <= np.abs(values).max() + 1 - _SLACK  # farther shells have points outside this cube
        if complete.sum() > n_points:
            break
    shells, counts = np.unique(np.round(growth[complete], 9), return_counts=True)
    kept = shells[np.cumsum(counts) <= n_points]
    if not kept.any():  # at most the point 0
        return np.zeros((len(kept), d))
    inside = growth <= kept.max() + _SLACK
    return domain.project(lattice[inside] * reach / growth[inside].max()) + 0.0  # -0.0 becomes 0.0
