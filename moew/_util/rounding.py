"""Round scores to the digits that are stored, without changing the decisions that they make."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_DIGITS = 11  # binary digits behind the first


def rounded_scores(
    scores: NDArray[np.floating[Any]], own_threshold: float = 0.0
) -> NDArray[np.floating[Any]]:
    """Scores (n,) or (n, C) with 11 binary digits behind the first; unchanged if float32 cannot hold them.

    The decisions that a model makes by them stay: by `own_threshold` for (n,), else for the highest of a row.
    Rounding twice is rounding once.
    """
    exact = np.asarray(scores, dtype=np.float64)
    with np.errstate(over="ignore"):
        narrow = exact.astype(np.float32)
    if not np.isfinite(narrow).all():
        return scores
    dropped = np.uint32(23 - _DIGITS)
    bits = narrow.view(np.uint32)
    odd = (bits >> dropped) & np.uint32(1)
    half = (np.uint32(1) << (dropped - np.uint32(1))) - np.uint32(1)
    kept = (bits + half + odd) & ~((np.uint32(1) << dropped) - np.uint32(1))
    found = kept.view(np.float32).astype(np.float64)
    if not np.isfinite(found).all():
        return scores
    if exact.ndim == 1:
        above = float(np.nextafter(np.float32(own_threshold), np.float32(np.inf)))
        found[(exact > own_threshold) & (found <= own_threshold)] = above
        found[(exact <= own_threshold) & (found > own_threshold)] = own_threshold
        return found
    best = exact.argmax(axis=1)
    rows = np.flatnonzero(found.argmax(axis=1) != best)
    highest = found[rows].max(axis=1).astype(np.float32)
    found[rows, best[rows]] = np.nextafter(highest, np.float32(np.inf))
    return found
