"""The rows of the paper's Figure 1, where training and test data differ.

The boundary is the diagonal. The paper states neither its label noise nor its model; what is chosen here, and
why, is in docs/figure-1.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_FloatArray = NDArray[np.floating[Any]]
_ABOVE, _BELOW = 0.52, 0.34  # P(y = 1 | x) above the diagonal, and its factor of x₁² below


def figure_1_probability(X: _FloatArray) -> _FloatArray:
    """P(y = 1 | x) (n,) of rows X (n, 2)."""
    return np.where(X.sum(axis=1) > 1, _ABOVE, _BELOW * X[:, 0] ** 2)


def draw_figure_1(
    rng: np.random.Generator, n: int, a: float, b: float
) -> tuple[_FloatArray, NDArray[np.bool_]]:
    """n labelled rows (X (n, 2), y (n,)) with features from Beta(a, b)².

    The figure has Beta(2, 1)² for training, and Beta(1, 2)² for validation and test.
    """
    X = rng.beta(a, b, (n, 2))
    return X, rng.random(n) < figure_1_probability(X)
