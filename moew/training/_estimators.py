"""Trainer for any scikit-learn estimator: one model at a time, on joblib's active backend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib.parallel import get_active_backend

from moew.training._clusters import cluster_of
from moew.training._ignored import ignores_weights, opposite_weights, warn_of_ignored_weights
from moew.training._jobs import PROBE, Job, open_random_states
from moew.training._local import train_locally
from moew.training._rows import SharedRowsCache
from moew.types import FloatArray, IntArray, Labels, Rows


@dataclass
class EstimatorTrainer:
    """Fits a clone of `estimator` for each weighting; joblib's active backend decides where.

    Whether the estimator uses its weights is checked once, in the first batch.
    """

    estimator: Any
    sample_weight_name: str = "sample_weight"
    n_jobs: int | None = None
    _shared: SharedRowsCache = field(default_factory=SharedRowsCache, init=False, repr=False, compare=False)
    _probed: bool = field(default=False, init=False, repr=False, compare=False)

    def train(
        self,
        X: Rows,
        y: Labels,
        weights: FloatArray,
        seeds: Sequence[int],
        fold: IntArray | None = None,
    ) -> Iterator[tuple[int, Any]]:
        """Yield (k, fitted model or exception) for each of the weights (K, n), as they finish.

        The n rows are those of X whose numbers are in `fold` (n,), or all of them.
        """
        jobs = [self._job(k, weights[k], seed) for k, seed in enumerate(seeds)]
        if self._probed or len(jobs) < 2:
            yield from self._run(X, y, fold, jobs)
            return
        self._probed = True
        twin = next((k for k in range(1, len(jobs)) if not np.array_equal(weights[k], weights[0])), PROBE)
        if twin == PROBE or open_random_states(self.estimator):
            # Candidates differ in their seeds, too, so one more is trained that differs only in weights.
            twin = PROBE
            jobs.append(self._job(PROBE, opposite_weights(weights[0], seeds[0]), seeds[0]))
        pair: dict[int, Any] = {}
        for k, outcome in self._run(X, y, fold, jobs):
            if k in (0, twin) and not isinstance(outcome, Exception):
                pair[k] = outcome
            if k != PROBE:
                yield k, outcome
        if len(pair) == 2 and ignores_weights(pair[0], pair[twin], X, y, fold):
            warn_of_ignored_weights(self.estimator)

    def _job(self, k: int, weight: FloatArray, seed: int) -> Job:
        return Job(k, self.estimator, self.sample_weight_name, weight, seed)

    def _run(
        self, X: Rows, y: Labels, fold: IntArray | None, jobs: Sequence[Job]
    ) -> Iterator[tuple[int, Any]]:
        backend, _ = get_active_backend()
        if train_there := cluster_of(backend):
            return train_there(backend, X, y, fold, jobs, self._shared)
        return train_locally(X, y, fold, jobs, self._shared, self.n_jobs)
