"""The functions of benchmarks/samplers.py: synthetic ones in several dimensions, and recorded searches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from recorded_searches import NAMES, Recorded

from moew.samplers import Ball
from moew.types import FloatArray

DIMS = (2, 4, 8, 16, 30)
NOISE = 0.1  # of synthetic functions, relative to their spread over the ball


@dataclass(frozen=True)
class Function:
    """What is maximised over a ball: a function of alphas (n, d) with values (n,)."""

    name: str
    n_dims: int
    radius: float
    noise: float  # standard deviation of a score around it
    value: Callable[[FloatArray], FloatArray]
    highest: float | None  # where it is known


@cache
def _directions(d: int) -> FloatArray:
    """Orthonormal rows (d, d)."""
    return np.asarray(np.linalg.qr(np.random.default_rng(d).standard_normal((d, d)))[0])


def hill(alphas: FloatArray) -> FloatArray:
    """A smooth hill at half the radius, ten times as wide in the last direction as in the first."""
    d = alphas.shape[1]
    rows, scales = _directions(d), np.geomspace(1, 0.1, d)
    away = (alphas @ rows.T - 0.5 / np.sqrt(d)) * scales
    return np.asarray(np.exp(-2 * (away**2).sum(axis=1)))


def worst(alphas: FloatArray) -> FloatArray:
    """The least of d + 1 linear functions, as the worst class's score: a ridge with kinks."""
    d = alphas.shape[1]
    slopes = np.vstack([_directions(d), -_directions(d).sum(axis=0) / np.sqrt(d)])
    return np.asarray((slopes @ alphas.T - slopes @ _centre(d)[:, None]).min(axis=0))


def _centre(d: int) -> FloatArray:
    return np.asarray(0.6 * _directions(d).T @ np.ones(d) / np.sqrt(d))


def ripples(alphas: FloatArray) -> FloatArray:
    """Two directions matter: a slope along the first, ripples along the second."""
    rows = _directions(alphas.shape[1])
    first, second = alphas @ rows[0], alphas @ rows[-1]
    return np.asarray(
        -((first - 0.6) ** 2) + 0.15 * np.cos(4 * np.pi * (second - 0.3)) - 0.3 * (second - 0.3) ** 2
    )


@cache
def functions() -> dict[str, Function]:
    """All functions by name."""
    made = {}
    for shape, highest in ((hill, 1.0), (worst, 0.0), (ripples, 0.15)):
        for d in DIMS:
            some = shape(Ball(d, 1.0).sample(np.random.default_rng(0), 2000))
            name = f"{shape.__name__} d={d}"
            made[name] = Function(name, d, 1.0, NOISE * float(some.std()), shape, highest)
    for name in NAMES:
        this = Recorded.of(name)
        made[name] = Function(name, this.n_dims, this.radius, this.noise, this, None)
    return made
