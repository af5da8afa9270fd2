"""Cheaper training with learned weights (the paper's conclusion): downsampling."""

from __future__ import annotations

import numpy as np

from moew.data import check_weights
from moew.exceptions import InvalidInputError
from moew.types import FloatArray, IntArray, Rng


def inclusion_probabilities(weights: FloatArray, rate: float) -> FloatArray:
    """Probabilities p (n,) = min(1, λ·w) of keeping each row, with λ such that their mean is `rate`."""
    w = check_weights(weights, name="weights")
    if not (np.isfinite(rate) and 0 < rate <= 1):
        raise InvalidInputError(
            f"rate is the share of rows to keep, above 0 and up to 1; got {rate!r}.", argument="rate"
        )
    if rate == 1:
        return np.ones(len(w))
    w = w / w.max()
    n_positive = int((w > 0).sum())
    n_kept = _snapped(rate * len(w))
    if n_kept > n_positive:
        raise InvalidInputError(
            f"only {n_positive} of {len(w)} rows have a weight above 0, fewer than the share of {rate} to "
            f"keep; take a rate of at most {n_positive}/{len(w)}.",
            argument="rate",
        )
    falling = np.sort(w)[::-1]
    # If the j heaviest rows are always kept, λ distributes the rest of n_kept over the others.
    rest = np.cumsum(falling[::-1])[::-1]
    j = np.arange(int(np.ceil(n_kept)))
    factors = (n_kept - j) / rest[j]
    # The heaviest of the others must get at most 1 (up to rounding): take the first such j.
    first = int(np.argmax(factors * falling[j] <= 1 + 1e-12))
    return np.asarray(np.minimum(1.0, factors[first] * w))


def _snapped(n_rows: float) -> float:
    """The number of rows, made whole if it is so up to rounding: 7/25 of 25 rows are 7."""
    return round(n_rows) if abs(n_rows - round(n_rows)) < 1e-9 else n_rows


def downsample_rows(weights: FloatArray, rate: float, rng: Rng) -> tuple[IntArray, FloatArray]:
    """Draw rows to keep: their numbers, in order, and their weights w/p, with p of `inclusion_probabilities`.

    w/p makes every weighted sum over the kept rows unbiased (Horvitz and Thompson, 1952). The rows are
    drawn by systematic sampling in random order, so that rate·n are kept, rounded up or down at random.
    """
    p = inclusion_probabilities(weights, rate)
    if _snapped(rate * len(p)) < 1:
        raise InvalidInputError(
            f"a rate of {rate} of {len(p)} rows is fewer than one row; take at least 1/{len(p)}.",
            argument="rate",
        )
    w = np.asarray(weights, dtype=np.float64)
    order = rng.permutation(len(p))
    # Steps of one along the sum of p, from a random start: a row is hit with probability p, never twice.
    ends = np.floor(np.cumsum(p[order]) + rng.random())
    hit = np.diff(ends, prepend=0.0) > 0
    kept = np.sort(order[hit | (p[order] == 1)])  # rounding must not drop a row with p = 1
    return kept, w[kept] / p[kept]
