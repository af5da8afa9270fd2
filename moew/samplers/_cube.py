"""The map between the cube of uniform numbers and a domain, which makes uniform points of uniform numbers."""

from __future__ import annotations

import numpy as np
from scipy.special import gammainc, gammaincinv, ndtr, ndtri

from moew.samplers._domains import Ball, BallAndBox, Box
from moew.types import Domain, FloatArray

_TAIL = 1e-15  # nearer to 0 or 1 the normal quantiles would be infinite
_EDGE = 1e-6  # so much of the volume counts as outside the edge, which would need infinitely long vectors
_ALMOST_ZERO = 1e-300


def from_cube(shares: FloatArray, domain: Domain) -> FloatArray:
    """The points (n, d) of the domain at shares (n, d) from 0 to 1; uniform if those are."""
    if isinstance(domain, Ball):
        return _ball(shares, domain)
    if isinstance(domain, Box):
        return domain.project(domain.half_width * (2 * shares - 1))
    if isinstance(domain, BallAndBox):
        d = domain.ball.n_dims
        return np.hstack([_ball(shares[:, :d], domain.ball), from_cube(shares[:, d:], domain.box)])
    raise TypeError(f"no map from a cube to {domain!r}.")


def to_cube(points: FloatArray, domain: Domain) -> FloatArray:
    """The shares (n, d) of points (n, d): the inverse of `from_cube`, up to rounding."""
    if isinstance(domain, Ball):
        return _shares_of_ball(points, domain)
    if isinstance(domain, Box):
        return np.clip((points / domain.half_width + 1) / 2, 0.0, 1.0)
    if isinstance(domain, BallAndBox):
        d = domain.ball.n_dims
        return np.hstack([_shares_of_ball(points[:, :d], domain.ball), to_cube(points[:, d:], domain.box)])
    raise TypeError(f"no map from {domain!r} to a cube.")


def _ball(shares: FloatArray, ball: Ball) -> FloatArray:
    """α = R·g/‖g‖·F(‖g‖)^(1/d) with g = Φ⁻¹(u), where F is the distribution of the χ with d degrees of
    freedom: directions of normal vectors are uniform, and F of their lengths is."""
    normal = ndtri(np.clip(shares, _TAIL, 1 - _TAIL))
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    inside = gammainc(ball.n_dims / 2, length**2 / 2) ** (1 / ball.n_dims)
    return ball.project(ball.radius * inside * normal / np.maximum(length, _ALMOST_ZERO))


def _shares_of_ball(points: FloatArray, ball: Ball) -> FloatArray:
    length = np.linalg.norm(points, axis=1, keepdims=True)
    inside = np.minimum((length / ball.radius) ** ball.n_dims, 1 - _EDGE)
    normal = np.sqrt(2 * gammaincinv(ball.n_dims / 2, inside)) * points / np.maximum(length, _ALMOST_ZERO)
    return np.asarray(ndtr(normal))
