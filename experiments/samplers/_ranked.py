"""What samplers of a population share: known alphas in an order that does not depend on their arrival."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from moew.types import Domain, FloatArray

_SAME = 1e-6  # points nearer than this share of the domain's size count as the same


def best_first(alphas: FloatArray, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Alphas (m, d) and scores (m,) without failures, best first; equal scores by their coordinates."""
    finite = np.isfinite(scores)
    alphas, scores = alphas[finite], scores[finite]
    order = np.lexsort((*alphas.T[::-1], -scores))
    return alphas[order], scores[order]


def without_repeats(
    points: FloatArray, tried: FloatArray, domain: Domain, rng: np.random.Generator
) -> FloatArray:
    """Points (k, d) of the domain, where those that were tried (m, d), or are already among them, are
    replaced by random ones: to train the same candidate again tells nothing new."""
    points = points.copy()
    for i in range(len(points)):
        others = np.concatenate([tried, points[:i]])
        if len(others) and cdist(points[i : i + 1], others).min() <= _SAME * domain.size:
            points[i] = domain.sample(rng, 1)[0]
    return points
