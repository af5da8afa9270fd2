"""Training on this machine: in this process, its threads or its worker processes.

Worker processes are joblib's loky, each in a pool of its own: when a process of a pool dies, loky gives up
the whole pool, and with it what the other processes were training. With one process to a pool, a death costs
the one candidate that it held.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from queue import SimpleQueue
from typing import Any

from joblib import effective_n_jobs
from joblib.externals.loky.backend.utils import kill_process_tree
from joblib.externals.loky.process_executor import ProcessPoolExecutor
from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed

from moew.exceptions import InvalidInputError, MoewError
from moew.training._jobs import Job, fit_job, fit_job_apart
from moew.training._rows import SharedRows, SharedRowsCache, SharedRowsInFile
from moew.types import IntArray, Labels, Rows


def train_locally(
    X: Rows,
    y: Labels,
    fold: IntArray | None,
    jobs: Sequence[Job],
    cache: SharedRowsCache,
    n_jobs: int | None,
) -> Iterator[tuple[int, Any]]:
    """Train the jobs on this machine; yield (k, model or exception) as they finish."""
    backend, _ = get_active_backend()
    name, n_workers = type(backend).__name__, effective_n_jobs(n_jobs)
    if n_workers > 1 and name == "MultiprocessingBackend":
        raise InvalidInputError(
            "joblib's backend 'multiprocessing' waits for ever when one of its processes dies; use "
            "parallel_config(backend='loky'), which trains in processes too, or 'threading'.",
            argument="n_jobs",
        )
    if n_workers > 1 and name == "LokyBackend":
        shared = cache.at(SharedRowsInFile, X, y, fold, SharedRowsInFile)
        yield from train_in_processes(backend, *shared, jobs, n_workers)
        return
    shared = cache.at(SharedRows, X, y, fold, SharedRows)
    as_they_finish = getattr(backend, "supports_return_generator", False)  # not all backends support it
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered" if as_they_finish else "list")
    yield from parallel(delayed(fit_job)(*shared, job) for job in jobs)


_TRIES = 3  # processes that may die with a candidate before it is given up
_IDLE_SECONDS = 300  # joblib's default: after this time without work, a process ends


class _Worker:
    """One process, started when there is work and again when it has died."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self._pool = self._new_pool()
        self._stopped = False
        self._lock = threading.Lock()  # so that `stop` does not miss a process that is just being started

    def train(self, rows: SharedRows, fold: SharedRows | None, job: Job) -> tuple[int, Any]:
        """Return (k, model or exception); a job whose process dies is given to a new one."""
        outcome: Any = None
        for _ in range(_TRIES):
            try:
                k, outcome = self._submit(rows, fold, job).result()
                return k, outcome
            except BrokenProcessPool as error:
                outcome = error
            except Exception as error:  # the job could not be sent, or the model not sent back
                return job.k, error
        return job.k, outcome

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        with self._lock:
            self._stopped = True
            for process in list(self._pool._processes.values()):
                kill_process_tree(process)

    def _submit(self, *arguments: Any) -> Any:
        with self._lock:
            if self._stopped:
                raise MoewError("the training was interrupted.")
            try:
                return self._pool.submit(fit_job_apart, *arguments)
            except BrokenProcessPool:  # the process died in this job's last try, or ended while idle
                self._pool = self._new_pool()
                return self._pool.submit(fit_job_apart, *arguments)

    def _new_pool(self) -> Any:
        return ProcessPoolExecutor(max_workers=1, **self.settings)


class _Stock:
    """Free workers, kept between batches and searches because starting one takes seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: dict[int, list[_Worker]] = {}  # by process: a forked child cannot use its parent's

    def take(self, n: int, settings: dict[str, Any]) -> list[_Worker]:
        with self._lock:
            free = self._free.pop(os.getpid(), [])
        fitting = [worker for worker in free if worker.settings == settings]
        for worker in free:
            if worker not in fitting:
                worker.stop()
        self.give_back(fitting[n:])
        return fitting[:n] + [_Worker(settings) for _ in range(n - len(fitting))]

    def give_back(self, workers: Sequence[_Worker]) -> None:
        with self._lock:
            self._free.setdefault(os.getpid(), []).extend(workers)


_stock = _Stock()


def train_in_processes(
    backend: Any, rows: SharedRows, fold: SharedRows | None, jobs: Sequence[Job], n_jobs: int
) -> Iterator[tuple[int, Any]]:
    """Yield (k, model or exception) as they finish, trained by `n_jobs` processes."""
    workers = _stock.take(min(n_jobs, len(jobs)), _settings(backend, n_jobs))
    waiting = deque(jobs)
    done: SimpleQueue[tuple[int, Any]] = SimpleQueue()

    def serve(worker: _Worker) -> None:
        while True:
            try:
                job = waiting.popleft()
            except IndexError:
                return
            done.put(worker.train(rows, fold, job))

    for worker in workers:
        threading.Thread(target=serve, args=(worker,), daemon=True).start()
    left = len(jobs)
    try:
        while left:
            outcome = done.get()
            left -= 1
            yield outcome
            del outcome  # keep no reference to the model here
    finally:
        if left:  # interrupted: what is still being trained is not needed
            waiting.clear()
            for worker in workers:
                worker.stop()
        else:
            _stock.give_back(workers)


def _settings(backend: Any, n_jobs: int) -> dict[str, Any]:
    """The settings of `joblib.parallel_config(backend="loky", …)` for the processes."""
    given = getattr(backend, "backend_kwargs", {})
    return {
        "timeout": given.get("idle_worker_timeout") or _IDLE_SECONDS,
        "initializer": given.get("initializer"),
        "initargs": given.get("initargs", ()),
        "env": backend._prepare_worker_env(n_jobs=n_jobs),  # divides the cores for OpenMP and BLAS
    }
