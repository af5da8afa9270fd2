"""Checks of the arguments that every sampler takes."""

from __future__ import annotations

import operator

import numpy as np

from moew.exceptions import InvalidInputError
from moew.types import Domain, FloatArray


def check_known(
    alphas: FloatArray, scores: FloatArray, pending: FloatArray, k: int, domain: Domain
) -> tuple[FloatArray, FloatArray, FloatArray, int]:
    """Alphas (n, d), scores (n,) and pending (m, d) as float64 arrays, and k as int; raise if not valid."""
    try:
        k = operator.index(k)
    except TypeError:
        raise InvalidInputError(f"k must be a whole number, got {k!r}.", argument="k") from None
    if k < 1:
        raise InvalidInputError(f"k must be at least 1, got {k}.", argument="k")
    alphas = _points(alphas, "alphas", domain)
    pending = _points(pending, "pending", domain)
    scores = np.asarray(scores, dtype=np.float64)
    if scores.shape != (len(alphas),):
        raise InvalidInputError(
            f"scores must have one number for each of the {len(alphas)} alphas, got shape {scores.shape}."
        )
    return alphas, scores, pending, k


def _points(points: FloatArray, name: str, domain: Domain) -> FloatArray:
    points = np.asarray(points, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != domain.n_dims:
        raise InvalidInputError(
            f"{name} must have shape (n, {domain.n_dims}), one row a candidate, got {points.shape}; "
            f"pass np.empty((0, {domain.n_dims})) if there are none."
        )
    if not np.isfinite(points).all():
        raise InvalidInputError(
            f"{name} must be finite; row {int(np.argmin(np.isfinite(points).all(axis=1)))} is not."
        )
    return points
