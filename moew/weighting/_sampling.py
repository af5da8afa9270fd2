"""Cheaper training with learned weights (the paper's conclusion): downsampling, and rows to label next."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from moew.exceptions import InvalidInputError
from moew.types import FloatArray, IntArray, Labels, Rows


def inclusion_probabilities(weights: FloatArray, rate: float) -> FloatArray:
    """Probabilities p (n,) = min(1, λ·w) of keeping each row, with λ such that their mean is `rate`."""
    w = _checked_weights(weights)
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


def downsample_rows(
    weights: FloatArray, rate: float, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
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


def expected_weights(model: Any, weight: Callable[[Rows, Labels], FloatArray], X: Rows) -> FloatArray:
    """The expected weights (n,) of rows without a label.

    The mean of w(x, y) over the labels, by the model's probabilities. For a regressor, or a classifier
    without `predict_proba`, it is w(x, prediction).
    """
    if not hasattr(model, "predict_proba"):
        return weight(X, np.asarray(model.predict(X)))
    proba = np.asarray(model.predict_proba(X), dtype=np.float64)
    labels = np.asarray(model.classes_)
    by_label = [weight(X, np.full(len(proba), label)) for label in labels]
    return np.asarray((proba * np.stack(by_label, axis=1)).sum(axis=1))


def draw_in_proportion(chunks: Iterable[FloatArray], n: int, rng: np.random.Generator) -> IntArray:
    """Draw n distinct row numbers, one after another, in proportion to the weights of the rows that are left.

    The weights come in chunks; at most n rows are kept in memory beside a chunk. The numbers are in the
    order of drawing, so the first m of them are a draw of m rows. The size of the chunks does not matter.
    """
    if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1:
        raise InvalidInputError(
            f"n must be a whole number of rows of the pool, 1 or more, got {n!r}.", argument="n"
        )
    keys, rows, n_seen = np.empty(0), np.empty(0, dtype=np.intp), 0
    for chunk in chunks:
        w = _finite_weights(chunk)
        with np.errstate(divide="ignore"):
            drawn = np.log(w) + rng.gumbel(size=len(w))  # the n largest are the draw (Efraimidis, Spirakis)
        keys = np.concatenate([keys, drawn])
        rows = np.concatenate([rows, np.arange(n_seen, n_seen + len(w))])
        n_seen += len(w)
        if len(keys) > n:
            best = np.argsort(-keys, kind="stable")[: int(n)]
            keys, rows = keys[best], rows[best]
    if n_seen < n:
        raise InvalidInputError(f"n must be at most the {n_seen} rows of the pool, got {n}.", argument="n")
    if not np.isfinite(keys).any():
        raise InvalidInputError(
            "all rows of the pool have a weight of 0; at least one must be above.", argument="pool"
        )
    return rows[np.argsort(-keys, kind="stable")]


def _checked_weights(weights: Any) -> FloatArray:
    w = _finite_weights(weights)
    if not (w > 0).any():
        raise InvalidInputError(f"weights must not be all 0, got {len(w)} rows without one above.")
    return w


def _finite_weights(weights: Any) -> FloatArray:
    w = np.asarray(weights, dtype=np.float64)
    if w.ndim != 1 or not np.isfinite(w).all() or (w < 0).any():
        raise InvalidInputError(
            f"weights must be finite numbers of at least 0, one for each row; got shape {w.shape}"
            + (f" with values from {w.min()} to {w.max()}." if w.size else ".")
        )
    return w
