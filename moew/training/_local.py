"""Training on this machine: in this process, its threads or its worker processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed

from moew.exceptions import InvalidInputError
from moew.training._jobs import Job, fit_job
from moew.training._processes import train_in_processes
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
            "parallel_config(backend='loky'), which trains in processes too, or 'threading'."
        )
    if n_workers > 1 and name == "LokyBackend":
        shared = cache.at(SharedRowsInFile, X, y, fold, SharedRowsInFile)
        yield from train_in_processes(backend, *shared, jobs, n_workers)
        return
    shared = cache.at(SharedRows, X, y, fold, SharedRows)
    as_they_finish = getattr(backend, "supports_return_generator", False)  # not all backends support it
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered" if as_they_finish else "list")
    yield from parallel(delayed(fit_job)(*shared, job) for job in jobs)
