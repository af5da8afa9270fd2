"""Choose the winner."""

from __future__ import annotations

import numpy as np

from moew.exceptions import InvalidInputError, SearchFailedError
from moew.search._loop import Outcome
from moew.search._study import Trial
from moew.types import FloatArray


def select(outcome: Outcome) -> Trial:
    """The trial with the best score on the validation rows; among equals the one with the lowest number."""
    values = np.array([trial.value for trial in outcome.trials], dtype=np.float64)
    return outcome.trials[select_best(values, outcome.greater_is_better)]


def select_best(scores: FloatArray, greater_is_better: bool) -> int:
    """The index of the best finite score in `scores` (n,); among equals the lowest index."""
    scores = np.asarray(scores, dtype=float)
    if scores.ndim != 1 or len(scores) == 0:
        raise InvalidInputError(f"scores must be a list of at least one score, got shape {scores.shape}.")
    finite = np.isfinite(scores)
    if not finite.any():
        raise SearchFailedError(
            f"none of the {len(scores)} candidates has a finite score; look at their messages for the cause."
        )
    return int(np.argmax(np.where(finite, scores if greater_is_better else -scores, -np.inf)))
