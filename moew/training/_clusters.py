"""Training on a cluster, where joblib's active backend is one: Dask (see `_dask`) or Ray."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from moew.training._jobs import Job, fit_job_apart
from moew.training._rows import SharedRows, SharedRowsCache
from moew.types import IntArray, Labels, Rows

Train = Callable[
    [Any, Rows, Labels, IntArray | None, Sequence[Job], SharedRowsCache], Iterator[tuple[int, Any]]
]


def cluster_of(backend: Any) -> Train | None:
    """The function that trains on the cluster of joblib's `backend`; None where it is not a cluster."""
    kind = type(backend).__name__
    if kind == "DaskDistributedBackend":
        from moew.training._dask import train_on_dask

        return train_on_dask
    return train_on_ray if kind == "RayBackend" else None


def train_on_ray(
    backend: Any, X: Rows, y: Labels, fold: IntArray | None, jobs: Sequence[Job], cache: SharedRowsCache
) -> Iterator[tuple[int, Any]]:
    """Train the jobs on Ray; yield (k, model or exception) as they finish.

    Ray is called directly: its store holds the rows once on every machine, and every candidate is a task of
    its own, which Ray runs again if its worker dies. joblib's Ray backend can do neither.
    """
    import ray

    if not ray.is_initialized():
        ray.init()  # as joblib's backend does: RAY_ADDRESS names the cluster, or a local one is started
    session = ray.get_runtime_context().get_job_id()
    shared = cache.at(session, X, y, fold, lambda content: ray.put(SharedRows(content)))
    train = ray.remote(fit_job_apart).options(**(getattr(backend, "ray_remote_args", None) or {}))
    running = {train.remote(*shared, job): job.k for job in jobs}
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
