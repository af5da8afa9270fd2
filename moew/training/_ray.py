"""Training on a Ray cluster; imported only where joblib's active backend is one.

Ray is called directly: its store holds the rows once on every machine, and every candidate is a task of its
own, which Ray runs again if its worker dies. joblib's Ray backend can do neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import ray

from moew.training._jobs import Job, SharedRows, SharedRowsCache, fit_job_apart
from moew.types import Features, IntArray, Labels


def train(
    backend: Any, X: Features, y: Labels, fold: IntArray | None, jobs: Sequence[Job], cache: SharedRowsCache
) -> Iterator[tuple[int, Any]]:
    """Train the jobs on Ray; yield (k, model or exception) as they finish."""
    if not ray.is_initialized():
        ray.init()  # as joblib's backend does: RAY_ADDRESS names the cluster, or a local one is started
    session = ray.get_runtime_context().get_job_id()
    shared = cache.at(session, X, y, fold, lambda content: ray.put(SharedRows(content)))
    fit = ray.remote(fit_job_apart).options(**(getattr(backend, "ray_remote_args", None) or {}))
    running = {fit.remote(*shared, job): job.k for job in jobs}
    try:
        while running:
            (done, *_), _ = ray.wait(list(running), num_returns=1)
            k = running.pop(done)
            try:
                outcome = ray.get(done)
            except ray.exceptions.RayError as error:
                outcome = k, error
            yield outcome
    finally:
        for left in running:  # interrupted: these are no longer needed
            ray.cancel(left)
