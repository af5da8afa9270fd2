"""The factor c of eq. 3, which makes the mean weight one over the rows that a loss is averaged over.

Over the training rows and over a fold's training rows, each row counts by the user's own weight u:
c = Σu / Σ(u·π·σ), so that learned weights redistribute the total weight without changing it, and α = 0
with π = 1 gives exactly u. Over a mini-batch, as in the authors' scripts, the weighted loss is a weighted
mean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from moew.types import FloatArray


def mean_over_rows(weights: FloatArray, own: FloatArray | None) -> FloatArray:
    """The mean (K,) of weights (K, n) over all training rows, each counted by the user's own weight (n,):
    1/c."""
    if own is None:
        return np.asarray(weights.mean(axis=1))
    return np.asarray((weights * own).sum(axis=1) / own.sum())


def over_fold(weights: FloatArray, own: FloatArray | None) -> FloatArray:
    """Weights (K, m) of a fold's training rows, normalised over these rows.

    `weights` already include the user's own weights (m,) of these rows as a factor.
    """
    mean = 1.0 if own is None else own.mean()
    # Rows cut out of a matrix lie column by column. The sum of a row that lies apart has other last digits
    # than that of one that is all there is, and a candidate's weights must be the same in every batch.
    weights = np.ascontiguousarray(weights)
    return np.asarray(weights * (mean / weights.mean(axis=1, keepdims=True)))


def mini_batch_divisor(total: Any, where: Callable[..., Any]) -> Any:
    """The divisor that makes the weights of a mini-batch sum to one: their sum, or 1 if all are zero, so that
    such a mini-batch adds no gradient.

    `total` is an array of NumPy, JAX or PyTorch, and `where` the function of that name.
    """
    return where(total == 0, 1.0, total)
