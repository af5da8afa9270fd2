"""An order of points that is spread over all of them at every length."""

from __future__ import annotations

import numpy as np

from moew.types import FloatArray, IntArray

_SAME = 1e-9  # points nearer than this share of the size count as the same
_DIGITS = 9  # distances that differ by rounding alone count as equal; the first such point is taken


def farthest_first(points: FloatArray, tried: FloatArray, k: int, size: float) -> IntArray:
    """The numbers (at most k,) of points (n, d) that were not tried (m, d), each the farthest from all that
    are before it and from those tried; where nothing was tried, the point nearest to 0 is first.

    For any beginning of the order, the largest distance of a point to the nearest one in it is at most twice
    as large as for the best choice of as many points (Gonzalez, 1985).
    """
    distances = np.full(len(points), np.inf)
    for row in tried:
        np.minimum(distances, np.linalg.norm(points - row, axis=1), out=distances)
    chosen: list[int] = []
    while len(chosen) < k:
        if len(tried) or chosen:
            number = int(np.argmax(np.round(distances / size, _DIGITS)))
        else:
            number = int(np.argmin(np.linalg.norm(points, axis=1)))
        if distances[number] <= _SAME * size:
            break
        chosen.append(number)
        np.minimum(distances, np.linalg.norm(points - points[number], axis=1), out=distances)
    return np.array(chosen, dtype=np.int64)
