"""The domains of alpha: a ball (as in the paper), a box or both, with the methods that samplers need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moew._util.numbers import is_number, is_whole
from moew.exceptions import InvalidInputError
from moew.types import FloatArray, Rng

_SIZES = (1e-100, 1e100)  # beyond these, squares of coordinates are 0 or infinite


def _check(n_dims: int, size: float, what: str) -> None:
    if not (is_whole(n_dims) and n_dims >= 1):
        raise InvalidInputError(
            f"the domain needs at least one dimension, as a whole number, got n_dims={n_dims!r}.",
            argument="n_dims",
        )
    if not (is_number(size) and _SIZES[0] <= size <= _SIZES[1]):
        raise InvalidInputError(
            f"{what} must be a positive number between {_SIZES[0]:g} and {_SIZES[1]:g}, got {size!r}.",
            argument=what,
        )


@dataclass(frozen=True)
class Ball:
    """The ball of the given radius around 0 in `n_dims` dimensions.

    Examples
    --------
    >>> ball = Ball(n_dims=2, radius=3.0)
    >>> ball.project(np.array([[6.0, 8.0], [1.0, 1.0]])).round(1).tolist()  # only what lies outside moves
    [[1.8, 2.4], [1.0, 1.0]]
    """

    n_dims: int
    radius: float

    def __post_init__(self) -> None:
        _check(self.n_dims, self.radius, "radius")

    @property
    def size(self) -> float:
        """The radius R, which the paper takes as kernel width."""
        return self.radius

    def sample(self, rng: Rng, n: int) -> FloatArray:
        """`n` points (n, n_dims), uniform in the ball."""
        direction = rng.standard_normal((n, self.n_dims))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        return direction * self.radius * rng.random((n, 1)) ** (1 / self.n_dims)

    def project(self, points: FloatArray) -> FloatArray:
        """The nearest points of the ball to `points` (n, n_dims)."""
        norm = np.linalg.norm(points, axis=-1, keepdims=True)
        return np.asarray(points * (self.radius / np.maximum(norm, self.radius)))  # a factor of 1 inside

    def edge_distance(self, points: FloatArray) -> FloatArray:
        """Distance (n,) to the edge as a share of the radius: 0 on the edge, 1 at the centre."""
        return np.asarray(1 - np.linalg.norm(points, axis=-1) / self.radius)


@dataclass(frozen=True)
class Box:
    """The cube [−half_width, half_width]^n_dims."""

    n_dims: int
    half_width: float

    def __post_init__(self) -> None:
        _check(self.n_dims, self.half_width, "half_width")

    @property
    def size(self) -> float:
        """The half width, which is taken as kernel width."""
        return self.half_width

    def sample(self, rng: Rng, n: int) -> FloatArray:
        """`n` points (n, n_dims), uniform in the box."""
        return rng.uniform(-self.half_width, self.half_width, (n, self.n_dims))

    def project(self, points: FloatArray) -> FloatArray:
        """The nearest points of the box to `points` (n, n_dims)."""
        return np.clip(points, -self.half_width, self.half_width)

    def edge_distance(self, points: FloatArray) -> FloatArray:
        """Distance (n,) to the nearest face as a share of the half width."""
        return np.asarray(1 - np.abs(points).max(axis=-1) / self.half_width)


@dataclass(frozen=True)
class BallAndBox:
    """Points whose first coordinates lie in a ball, those of α, and whose others lie in a box.

    Examples
    --------
    >>> domain = BallAndBox(Ball(n_dims=2, radius=3.0), Box(n_dims=1, half_width=1.0))
    >>> domain.project(np.array([[6.0, 8.0, 5.0]])).round(1).tolist()
    [[1.8, 2.4, 1.0]]
    """

    ball: Ball
    box: Box

    @property
    def n_dims(self) -> int:
        """The coordinates of both."""
        return self.ball.n_dims + self.box.n_dims

    @property
    def size(self) -> float:
        """The larger of the radius and the half width."""
        return max(self.ball.radius, self.box.half_width)

    def sample(self, rng: Rng, n: int) -> FloatArray:
        """`n` points (n, n_dims), uniform in both."""
        return np.hstack([self.ball.sample(rng, n), self.box.sample(rng, n)])

    def project(self, points: FloatArray) -> FloatArray:
        """The nearest points of the domain to `points` (n, n_dims)."""
        d = self.ball.n_dims
        parts = [self.ball.project(points[..., :d]), self.box.project(points[..., d:])]
        return np.concatenate(parts, axis=-1)

    def edge_distance(self, points: FloatArray) -> FloatArray:
        """Distance (n,) to the nearer of the two edges, each as a share of its own size."""
        d = self.ball.n_dims
        return np.minimum(self.ball.edge_distance(points[..., :d]), self.box.edge_distance(points[..., d:]))
