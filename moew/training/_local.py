"""Training on this machine, by joblib: in this process, its threads or its worker processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed

from moew.protocols import Labels, Rows
from moew.training._jobs import Job, fit_job
from moew.training._rows import Placed, RowsInFile, TrainingRows

_TOGETHER = 2  # rounds in which all missing candidates are tried together


def train_locally(
    X: Rows, y: Labels, jobs: Sequence[Job], placed: Placed, n_jobs: int | None
) -> Iterator[tuple[int, Any]]:
    """Yield (k, model or exception) as they finish. Candidates whose process died are trained again.

    joblib replaces all its processes when one dies, so a second round trains what is missing. What is missing
    after that is tried one by one: a candidate that kills every process it is given takes no other with it.
    """
    backend, _ = get_active_backend()
    # Another backend's workers may be on other machines, where our file is not.
    in_file = type(backend).__name__ in ("LokyBackend", "MultiprocessingBackend")
    kind = RowsInFile if in_file else TrainingRows
    rows = placed.at(kind, X, y, lambda: kind(X, y))
    missing = {job.k: job for job in jobs}
    for _ in range(_TOGETHER):
        try:
            for k, outcome in _parallel(backend, rows, list(missing.values()), n_jobs):
                del missing[k]
                yield k, outcome
        except BrokenProcessPool:
            continue
        return
    for k, job in missing.items():
        try:
            yield from _parallel(backend, rows, [job], n_jobs)
        except BrokenProcessPool as error:
            yield k, error


def _parallel(
    backend: Any, rows: TrainingRows, jobs: Sequence[Job], n_jobs: int | None
) -> Iterator[tuple[int, Any]]:
    # joblib's multiprocessing backend cannot hand models out as they finish, only all at the end.
    as_they_finish = getattr(backend, "supports_return_generator", False)
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered" if as_they_finish else "list")
    yield from parallel(delayed(fit_job)(rows, job) for job in jobs)
