"""Training on a Dask or Ray cluster, where joblib's active backend is one of them.

Both are spoken to directly: their own stores hold the rows (once on every worker or machine), every candidate
is a task of its own whose worker's death makes the cluster run it again, and models come as they finish.
joblib's Ray backend can do none of these, its Dask backend sends the rows anew in every batch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any

from moew.exceptions import MoewError
from moew.protocols import IntArray, Labels, Rows
from moew.training._jobs import Job, fit_job_apart
from moew.training._rows import Parcel, ParcelInOnePiece, Placed

Train = Callable[[Any, Rows, Labels, IntArray | None, Sequence[Job], Placed], Iterator[tuple[int, Any]]]
_TRIES = 3  # how often the rows are sent anew after every worker that held them is gone


def cluster_of(backend: Any) -> Train | None:
    """How to train where joblib's `backend` is a cluster; None where it is not."""
    known: dict[str, Train] = {"DaskDistributedBackend": train_on_dask, "RayBackend": train_on_ray}
    return known.get(type(backend).__name__)


def train_on_dask(
    backend: Any, X: Rows, y: Labels, fold: IntArray | None, jobs: Sequence[Job], placed: Placed
) -> Iterator[tuple[int, Any]]:
    """Yield (k, model or exception) as they finish."""
    missing = {job.k: job for job in jobs}
    with backend.retrieval_context():  # a search inside a Dask task must not hold the thread it waits for
        for _ in range(_TRIES):
            for k, outcome in _dask_round(backend, X, y, fold, list(missing.values()), placed):
                del missing[k]
                yield k, outcome
            if not missing:
                return
            placed.forget()
    lost = MoewError(f"the Dask workers that held the training rows were lost {_TRIES} times.")
    yield from ((k, lost) for k in missing)


def _dask_round(
    backend: Any, X: Rows, y: Labels, fold: IntArray | None, jobs: Sequence[Job], placed: Placed
) -> Iterator[tuple[int, Any]]:
    """The same; candidates are left out if the rows got lost, because every worker that held them died."""
    import dask
    from distributed import as_completed

    client = backend.client
    # On every worker: Dask cannot make rows anew whose only holder has died.
    parcels = placed.at(
        client, X, y, fold, lambda it: client.scatter(ParcelInOnePiece(it), broadcast=True, hash=False)
    )
    # The weights go along with the task and are kept by the scheduler until it is done, on purpose.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "100 GiB"}):
        futures = {
            client.submit(fit_job_apart, *parcels, job, pure=False, **backend.submit_kwargs): job.k
            for job in jobs
        }
    try:
        for future in as_completed(list(futures)):
            k = futures.pop(future)
            if future.status == "finished":
                with contextlib.suppress(CancelledError):  # lost between the two lines: left out
                    yield future.result()
            elif future.status == "error":  # the model's own is a result, so this is about the worker
                yield k, future.exception()
            future.release()
    finally:
        if futures:  # interrupted: nobody waits for these
            client.cancel(list(futures))


def train_on_ray(
    backend: Any, X: Rows, y: Labels, fold: IntArray | None, jobs: Sequence[Job], placed: Placed
) -> Iterator[tuple[int, Any]]:
    """Yield (k, model or exception) as they finish."""
    import ray

    if not ray.is_initialized():
        ray.init()  # as joblib's backend does: RAY_ADDRESS names the cluster, or a local one is started
    session = ray.get_runtime_context().get_job_id()
    parcels = placed.at(session, X, y, fold, lambda content: ray.put(Parcel(content)))
    train = ray.remote(fit_job_apart).options(**(getattr(backend, "ray_remote_args", None) or {}))
    running = {train.remote(*parcels, job): job.k for job in jobs}
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
        for left in running:  # interrupted: nobody waits for these
            ray.cancel(left)
