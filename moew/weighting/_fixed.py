"""Weights that are not learned, for comparison with learned weights: fixed ones, and the paper's random
ones."""

from __future__ import annotations

import numpy as np

from moew.types import FloatArray

# Of the paper's random weights, drawn uniformly for each row. The text names no range: this is the scripts'.
_RANDOM_RANGE = (0.1, 1.9)


class FixedWeighting:
    """The same weights (n,) for every α, times the user's own weights (n,)."""

    n_dims = 1

    def __init__(self, weights: FloatArray, own: FloatArray | None = None) -> None:
        self.weights = weights if own is None else weights * own

    def training_weights(self, alphas: FloatArray) -> FloatArray:
        """The weights (K, n) for alphas (K, 1)."""
        return np.tile(self.weights, (len(alphas), 1))


class RandomWeighting(FixedWeighting):
    """The paper's random weights of n rows; α and `seed` together seed the random numbers."""

    def __init__(self, n: int, own: FloatArray | None, seed: int) -> None:
        super().__init__(np.ones(n), own)
        self.seed = seed

    def training_weights(self, alphas: FloatArray) -> FloatArray:
        """Random weights (K, n) for alphas (K, 1), times the user's own weights."""
        bits = np.ascontiguousarray(alphas).view(np.uint32)
        rngs = [np.random.default_rng([self.seed, *row.tolist()]) for row in bits]
        drawn = np.stack([rng.uniform(*_RANDOM_RANGE, len(self.weights)) for rng in rngs])
        return np.asarray(drawn * self.weights)
