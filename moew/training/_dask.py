"""Training on a Dask cluster; imported only where joblib's active backend is one.

Dask is called directly: every candidate is a task of its own, which Dask runs again if its worker dies, and
models come back as they finish. joblib's Dask backend would send the rows again in every batch.
"""

from __future__ import annotations

import contextlib
import pickle
import warnings
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any
from uuid import uuid4

import dask
from distributed import KilledWorker, Status, WorkerPlugin, as_completed

from moew.exceptions import MoewError, MoewWarning
from moew.training._jobs import Job, SharedRows, SharedRowsCache, fit_job_apart
from moew.types import Features, IntArray, Labels

_LOOK_EVERY = 30.0  # seconds after which it is looked whether the cluster has workers at all
_TRIES = 3  # how often a candidate is submitted that the cluster loses altogether, as in a restart
_delivered: dict[str, SharedRows] = {}  # on a worker: the shared rows by name


class _Delivery(WorkerPlugin):
    """Sends shared rows once to every worker, also to those that join or restart later.

    Scattered data would not stay: where no task waits for them, Dask drops all copies but one, and that one
    is lost with its worker. They travel as bytes: arrays that Dask sends arrive at unaligned addresses, where
    NumPy multiplies matrices without BLAS, which changes the last bits.
    """

    def __init__(self, name: str, content: Any) -> None:
        self.name, self.packed = name, pickle.dumps(content, protocol=4)

    def setup(self, worker: Any) -> None:
        _delivered[self.name] = SharedRows(pickle.loads(self.packed))
        self.packed = b""  # the scheduler keeps the bytes for workers that join later

    def teardown(self, worker: Any) -> None:
        _delivered.pop(self.name, None)
        if worker.status is Status.closing:
            # A closing worker removes its plugins and still answers: `_withdraw` would find no plugin of
            # this name, which Dask logs as a failure. So an empty one takes its place.
            worker.plugins[self.name] = WorkerPlugin()


class _Sent:
    """Shared rows on all workers; they are removed there when nothing refers to this object any more."""

    def __init__(self, client: Any, content: Any) -> None:
        self.name = f"moew-{uuid4().hex}"
        client.register_plugin(_Delivery(self.name, content), name=self.name)
        weakref.finalize(self, _withdraw, client, self.name).atexit = False


def _withdraw(client: Any, name: str) -> None:
    """Remove shared rows from workers without waiting: this may be the thread that talks to the cluster."""

    async def unregister() -> None:
        with contextlib.suppress(Exception):  # the cluster may be gone by now, and the rows with it
            await client._unregister_worker_plugin(name)

    if client.status == "running":
        client.loop.add_callback(unregister)


def _fit(rows: str, fold: str | None, job: Job) -> tuple[int, Any]:
    return fit_job_apart(_delivered[rows], None if fold is None else _delivered[fold], job)


def train(
    backend: Any, X: Features, y: Labels, fold: IntArray | None, jobs: Sequence[Job], cache: SharedRowsCache
) -> Iterator[tuple[int, Any]]:
    """Train the jobs on Dask; yield (k, model or exception) as they finish. Dask counts the death of a worker
    against every task that it had: candidates that have lost too many workers are run once more alone."""
    client = backend.client
    missing, blamed = {job.k: job for job in jobs}, dict[int, tuple[Job, KilledWorker]]()
    with backend.retrieval_context():  # a search inside a Dask task must not block the thread it waits for
        sent = cache.at(client, X, y, fold, lambda content: _Sent(client, content))
        rows, numbers = sent[0].name, None if fold is None else sent[1].name
        for _ in range(_TRIES):
            for k, outcome in _round(backend, rows, numbers, list(missing.values())):
                job = missing.pop(k)
                if isinstance(outcome, KilledWorker):
                    blamed[k] = job, outcome
                else:
                    yield k, outcome
            if not missing:
                break
        for k, (job, killed) in blamed.items():
            alone = {} if len(blamed) == 1 else dict(_round(backend, rows, numbers, [job]))
            yield k, alone.get(k, killed)
    lost = MoewError(f"the Dask cluster lost this candidate {_TRIES} times.")
    yield from ((k, lost) for k in missing)


def _round(backend: Any, rows: str, fold: str | None, jobs: Sequence[Job]) -> Iterator[tuple[int, Any]]:
    """Submit the jobs once; yield as `train`, but leave out candidates that the cluster lost."""
    client = backend.client
    # The weights are part of the task on purpose; the scheduler keeps them until it is done.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "100 GiB"}):
        futures = {
            client.submit(_fit, rows, fold, job, pure=False, **backend.submit_kwargs): job.k for job in jobs
        }
    try:
        for future in _as_they_end(client, list(futures)):
            k = futures.pop(future)
            if future.status == "finished":
                outcome = _result(future, k)
                if outcome is not None:
                    yield outcome
            elif future.status == "error":  # a model's own error is a result, so this one is about the worker
                yield k, future.exception()
            future.release()
    finally:
        if futures:  # interrupted: these are no longer needed
            client.cancel(list(futures))


def _as_they_end(client: Any, futures: Sequence[Any]) -> Iterator[Any]:
    """The futures as they end; a warning tells if the cluster has no workers for a while, as then they wait
    until it has some."""
    left, is_told = set(futures), False
    while left:
        try:
            for future in as_completed(list(left), timeout=_LOOK_EVERY):
                left.discard(future)
                yield future
        except TimeoutError:
            if not is_told and not client.scheduler_info(n_workers=1)["workers"]:
                is_told = True
                told = MoewWarning(
                    f"the Dask cluster has no workers, and {len(left)} models wait for one. Start workers, "
                    "and the search goes on; or interrupt it."
                )
                warnings.warn(told, stacklevel=2)


def _result(future: Any, k: int) -> tuple[int, Any] | None:
    """What a finished task gave, or (k, error) if that cannot be sent; None if it was lost meanwhile."""
    try:
        found: tuple[int, Any] = future.result()
    except CancelledError:
        return None
    except Exception as error:
        return k, error
    return found
