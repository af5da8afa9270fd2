"""Standardise columns within each repeat."""

from __future__ import annotations

import numpy as np

from moew.types import FloatArray

_CONSTANT = 1e-5  # a smaller deviation is rounding error


def standardized(values: FloatArray) -> FloatArray:
    """Values (R, n, d) with mean 0 and deviation 1 over the rows; a constant column becomes 0."""
    return like(values, values)


def like(values: FloatArray, others: FloatArray) -> FloatArray:
    """Scale `others` (R, m, d) with the means and deviations of `values` (R, n, d)."""
    centre, spread = (of(values, axis=1, keepdims=True, dtype=np.float64) for of in (np.mean, np.std))
    scaled = (others - centre) / np.where(spread > _CONSTANT, spread, np.inf)
    return np.asarray(scaled, np.float32)
