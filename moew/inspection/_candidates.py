"""The candidates of a search: over time, by all metrics, and over alpha."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from moew.exceptions import InvalidInputError
from moew.samplers import GpBucb
from moew.search import FittedSearch, ParetoFront
from moew.types import FloatArray, IntArray


@dataclass(frozen=True)
class Trace:
    """Every candidate that has a value, in the order of the numbers."""

    numbers: IntArray  # (n,)
    values: FloatArray  # (n,), the metric on the validation rows
    best_so_far: FloatArray  # (n,)
    failed: IntArray  # numbers of candidates without a value


def trace(fitted: FittedSearch) -> Trace:
    """The candidates of a finished search and the best score after each."""
    trials = fitted.result.trials
    values = np.array([trial.value for trial in trials], dtype=np.float64)
    numbers = np.array([trial.number for trial in trials])
    finite = np.isfinite(values)
    running = np.maximum if fitted.result.greater_is_better else np.minimum
    return Trace(numbers[finite], values[finite], running.accumulate(values[finite]), numbers[~finite])


def pareto_front(fitted: FittedSearch) -> ParetoFront:
    """All models that a finished search tried, by all its metrics, and which of them are on the front."""
    if fitted.result.pareto is None:
        raise InvalidInputError(
            "the search has one metric; a front needs several: metric=[…, …].", argument="metric"
        )
    return fitted.result.pareto


@dataclass(frozen=True)
class Landscape:
    """One or two dimensions of alpha; where there are more, the others and hyper-parameters are the winner's.

    Towards the edge of the ball the winner's other dimensions are shrunk, so that every point lies in it.
    """

    dims: tuple[int, ...]
    n_dims: int
    radius: float
    sides: FloatArray  # (g,), the grid along each dimension
    mean: FloatArray  # (g,) or (g, g) [second, first]: the GP's mean in the metric's units
    deviation: FloatArray  # the same shape: its standard deviation
    alphas: FloatArray  # (n, 1 or 2), of candidates with a value
    values: FloatArray  # (n,)
    numbers: IntArray  # (n,)
    winner: int  # place of the winner among them
    names: tuple[str, ...]  # what the dimensions are about, or α1 and α2 where the embedding has no names


def landscape(fitted: FittedSearch, dims: Sequence[int] | None = None, points: int = 41) -> Landscape:
    """Fit a GP to all candidates of a fitted search and look at it from the winner.

    It is not the GP that the search went by: width and noise are fitted and scores are standardised, whatever
    the search's sampler does, and candidates that failed are left out.

    dims: one or two dimensions of alpha, from 0; None is the two along which the GP's mean is steepest, by
        its mean squared slope at the candidates.
    points: of the grid along each dimension.
    """
    result, domain = fitted.result, fitted.study.domain
    trials = [trial for trial in result.trials if np.isfinite(trial.value)]
    if len(trials) < 2:
        raise InvalidInputError(
            "a landscape needs at least two candidates with a value; search for longer.", argument="search"
        )
    alphas = np.stack([trial.alpha for trial in trials])
    candidates = np.stack([trial.point for trial in trials])
    values = np.array([trial.value for trial in trials])
    numbers = np.array([trial.number for trial in trials])
    n_dims = alphas.shape[1]
    sign = 1.0 if result.greater_is_better else -1.0
    posterior = GpBucb().model(candidates, sign * values, domain)
    chosen = _chosen(dims, n_dims, posterior.upper_bound(candidates, 0.0)[1][:, :n_dims])
    winner = int(np.flatnonzero(numbers == result.best_number)[0])
    sides = np.linspace(-domain.size, domain.size, points)
    grid = np.stack(np.meshgrid(*[sides] * len(chosen)), axis=-1).reshape(-1, len(chosen))
    # Points beyond the ball show its edge, so that a picture can be cut to a round one.
    grid *= np.minimum(1.0, domain.size / np.maximum(np.linalg.norm(grid, axis=1), 1e-300))[:, None]
    through = np.tile(candidates[winner], (len(grid), 1))
    through[:, :n_dims] = _through(alphas[winner], chosen, grid, domain.size)
    found, uncertain = posterior.predict(through)
    spread = float(values.std()) or 1.0  # its targets have mean 0 and variance 1
    names = getattr(getattr(fitted.weighting, "embedding", None), "dimension_names", None)
    if names is None or len(names) != n_dims:
        names = [f"α{dim + 1}" for dim in range(n_dims)]
    return Landscape(
        chosen,
        n_dims,
        domain.size,
        sides,
        (values.mean() + sign * spread * found).reshape((points,) * len(chosen)),
        (spread * uncertain).reshape((points,) * len(chosen)),
        alphas[:, list(chosen)],
        values,
        numbers,
        winner,
        tuple(str(names[dim]) for dim in chosen),
    )


def _chosen(dims: Sequence[int] | None, n_dims: int, slopes: FloatArray) -> tuple[int, ...]:
    """The dimensions to show, from the slopes (n, d) of the GP's mean at the candidates."""
    if dims is None:
        steepest = np.argsort(-(slopes**2).mean(axis=0), kind="stable")[:2]
        return tuple(sorted(int(dim) for dim in steepest))
    wanted = tuple(int(dim) for dim in dims)
    if not 1 <= len(wanted) <= 2 or len(set(wanted)) < len(wanted) or not set(wanted) <= set(range(n_dims)):
        raise InvalidInputError(
            f"dims must be one or two different dimensions of alpha from 0 to {n_dims - 1}, got {dims!r}.",
            argument="dims",
        )
    return wanted


def _through(winner: FloatArray, dims: tuple[int, ...], grid: FloatArray, radius: float) -> FloatArray:
    """Alphas (m, d) in the ball: `grid` (m, 1 or 2) in `dims`, and the winner's in the others."""
    points = np.tile(winner, (len(grid), 1))
    points[:, list(dims)] = 0.0
    others = np.linalg.norm(points, axis=1)
    room = np.sqrt(np.maximum(radius**2 - (grid**2).sum(axis=1), 0.0))
    points *= np.minimum(1.0, room / np.maximum(others, 1e-300))[:, None]
    points[:, list(dims)] = grid
    return points
