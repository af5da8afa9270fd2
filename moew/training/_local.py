"""Training on this machine: in this process, its threads or its worker processes.

Worker processes are joblib's loky, each in a pool of its own: when a process of a pool dies, loky gives up
the whole pool, and with it what the other processes were training. With one process to a pool, a death costs
the one candidate that it held.
"""

from __future__ import annotations

import atexit
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing.connection import wait
from queue import SimpleQueue
from typing import Any

from joblib import effective_n_jobs
from joblib._parallel_backends import LokyBackend
from joblib.externals.loky.backend.utils import kill_process_tree
from joblib.externals.loky.process_executor import ProcessPoolExecutor
from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed

from moew._util.processes import begin_worker
from moew.exceptions import Argument, InvalidInputError, MoewError, TrainingFailedError
from moew.training._jobs import (
    Job,
    SharedRows,
    SharedRowsCache,
    SharedRowsInFile,
    as_failure,
    fit_job,
    fit_job_apart,
)
from moew.types import Features, IntArray, Labels


def train_locally(
    X: Features,
    y: Labels,
    fold: IntArray | None,
    jobs: Sequence[Job],
    cache: SharedRowsCache,
    n_jobs: int | None,
    timeout: float | None = None,
) -> Iterator[tuple[int, Any]]:
    """Train the jobs on this machine; yield (k, model or exception) as they finish. A training that takes
    more than `timeout` seconds is ended, which needs another process, also for one job."""
    backend, _ = get_active_backend()
    name, n_workers = type(backend).__name__, effective_n_jobs(n_jobs)
    if n_workers > 1 and name == "MultiprocessingBackend":
        raise InvalidInputError(
            "joblib's backend 'multiprocessing' waits for ever when one of its processes dies; use "
            "parallel_config(backend='loky'), which trains in processes too, or 'threading'.",
            argument="n_jobs",
        )
    if n_workers > 1 and name != "LokyBackend" and timeout is not None:
        raise no_timeout(
            f"joblib's backend {name} cannot end a training: use parallel_config(backend='loky')"
        )
    if timeout is not None or (n_workers > 1 and name == "LokyBackend"):
        shared = cache.at(SharedRowsInFile, X, y, fold, SharedRowsInFile)
        of_processes = backend if name == "LokyBackend" else LokyBackend()
        yield from _train_in_processes(of_processes, *shared, jobs, n_workers, timeout)
        return
    shared = cache.at(SharedRows, X, y, fold, SharedRows)
    as_they_finish = getattr(backend, "supports_return_generator", False)  # not all backends support it
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered" if as_they_finish else "list")
    yield from parallel(delayed(fit_job)(*shared, job) for job in jobs)


def no_timeout(reason: str) -> InvalidInputError:
    """The error for a timeout that cannot be kept."""
    return InvalidInputError(
        Argument("candidate_timeout"), f" cannot be kept here, because {reason}, or leave it out."
    )


_STARTING_SECONDS = 120  # most that a process may take to start and to load the rows, besides the timeout
_TRIES = 3  # processes that may die with a candidate before it is given up
_IDLE_SECONDS = 300  # joblib's default: after this time without work, a process ends
_LOOK_EVERY = 1.0  # seconds between two looks whether a process that is waited for still lives


_busy: set[_Worker] = set()
_free: list[_Worker] = []  # kept between batches and searches because starting one takes seconds
_lock = threading.Lock()  # of `_free`


@atexit.register
def _stop_all_workers() -> None:
    """End all workers. Python has waited for idle ones before, unless the process leaves at once: then
    multiprocessing would wait for them, for as long as they may be idle."""
    _stop([*_busy, *_free])


def _stop(workers: Collection[_Worker]) -> None:
    """End workers, whatever they are doing; a fork leaves them to the process that they belong to."""
    for worker in list(workers):
        if worker.process == os.getpid():
            worker.stop()


class _Worker:
    """One process, started when there is work and again when it has died."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.process = os.getpid()
        self._begun = False  # whether its pool was given a job
        self._pool = self._new_pool()
        self._stopped = False
        self._lock = threading.Lock()  # so that `stop` does not miss a process that is just being started

    def train(
        self, rows: SharedRows, fold: SharedRows | None, job: Job, timeout: float | None
    ) -> tuple[int, Any]:
        """Return (k, model or exception). A job whose process dies is given to a new one; one that takes more
        than `timeout` seconds is not, and its process is ended."""
        outcome: Any = None
        for _ in range(_TRIES):
            try:
                if timeout is not None:  # the time that a new process needs to start does not count
                    self._result(_load_for, rows, fold, job.estimator, timeout=timeout + _STARTING_SECONDS)
                k, outcome = self._result(fit_job_apart, rows, fold, job, timeout=timeout)
                return k, outcome
            except BrokenProcessPool as error:
                outcome = error
            except FutureTimeoutError:
                self._replace()
                seconds = f"candidate_timeout={timeout:g} seconds"
                return job.k, TrainingFailedError(f"the training took longer than {seconds} and was ended")
            except BaseException as error:  # the job could not be sent, or the model not sent back
                return job.k, as_failure(error)
        return job.k, outcome

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        with self._lock:
            self._stopped = True
            self._kill()

    def _replace(self) -> None:
        with self._lock:
            self._kill()
            self._pool = self._new_pool()

    def _kill(self) -> None:
        for process in list(self._pool._processes.values()):
            if process.is_alive():
                kill_process_tree(process)

    def _result(self, function: Callable[..., Any], *arguments: Any, timeout: float | None) -> Any:
        """What `function` returns in the process; raises TimeoutError after `timeout` seconds."""
        submitted = self._submit(function, *arguments)
        end = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            left = end - time.monotonic()
            try:
                return submitted.result(max(0.0, min(left, _LOOK_EVERY)))
            except FutureTimeoutError:
                if left <= _LOOK_EVERY:
                    raise
            self._notice_death()

    def _notice_death(self) -> None:
        """Let the pool look at its process again if that has ended. A pool whose process was idle for long
        starts a new one after it has made its list of what to watch, and would wait for ever if it dies."""
        with suppress(OSError, ValueError):  # it is just being closed
            ends = [process.sentinel for process in list(self._pool._processes.values())]
            if ends and wait(ends, timeout=0):
                self._pool._executor_manager_thread_wakeup.wakeup()

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        with self._lock:
            if self._stopped:
                raise MoewError("the training was interrupted.")
            try:
                submitted = self._pool.submit(function, *arguments)
            except BrokenProcessPool:  # the process died in this job's last try, or ended while idle
                self._pool = self._new_pool()
                submitted = self._pool.submit(function, *arguments)
            if not self._begun:
                self._begun = True
                # The new pool has registered a function that waits for it, and that is called before those of
                # `atexit`; what is registered last is called first.
                threading._register_atexit(_stop, _busy)  # type: ignore[attr-defined]
            return submitted

    def _new_pool(self) -> Any:
        self._begun = False
        return ProcessPoolExecutor(max_workers=1, **self.settings)


def _load_for(rows: SharedRows, fold: SharedRows | None, estimator: Any) -> None:
    """Does nothing: its arguments are loaded when the process gets them."""


def _take_workers(n: int, settings: dict[str, Any]) -> list[_Worker]:
    """`n` workers with these settings, free or new; free ones with other settings are ended."""
    with _lock:
        own = [worker for worker in _free if worker.process == os.getpid()]
        fitting = [worker for worker in own if worker.settings == settings]
        _free[:] = [worker for worker in _free if worker not in own or worker in fitting[n:]]
    _stop(set(own) - set(fitting))
    return fitting[:n] + [_Worker(settings) for _ in range(n - len(fitting))]


def _train_in_processes(
    backend: Any,
    rows: SharedRows,
    fold: SharedRows | None,
    jobs: Sequence[Job],
    n_jobs: int,
    timeout: float | None,
) -> Iterator[tuple[int, Any]]:
    """`train_locally` by `n_jobs` processes with the settings of `parallel_config(backend="loky", …)`."""
    given = getattr(backend, "backend_kwargs", {})
    settings = {
        "timeout": given.get("idle_worker_timeout") or _IDLE_SECONDS,
        "initializer": begin_worker,
        "initargs": (os.getpid(), given.get("initializer"), given.get("initargs", ())),
        "env": backend._prepare_worker_env(n_jobs=n_jobs),  # divides the cores for OpenMP and BLAS
    }
    workers = _take_workers(min(n_jobs, len(jobs)), settings)
    waiting = deque(jobs)
    done: SimpleQueue[tuple[int, Any]] = SimpleQueue()

    def serve(worker: _Worker) -> None:
        while True:
            try:
                job = waiting.popleft()
            except IndexError:
                return
            done.put(worker.train(rows, fold, job, timeout))

    left = len(jobs)
    try:
        _busy.update(workers)
        for worker in workers:
            threading.Thread(target=serve, args=(worker,), daemon=True).start()
        while left:
            outcome = done.get()
            left -= 1
            yield outcome
            del outcome  # keep no reference to the model here
    finally:
        _busy.difference_update(workers)
        if left:  # interrupted: what is still being trained is not needed
            waiting.clear()
            _stop(workers)
        else:
            with _lock:
                _free.extend(workers)
