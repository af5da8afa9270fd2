"""The training of one candidate as workers get it, and the rows, sent once to where they can read them."""

from __future__ import annotations

import pickle
import shutil
import threading
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from joblib import parallel_config
from joblib.parallel import ThreadingBackend
from sklearn import config_context, get_config
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from moew._util.processes import new_folder
from moew._util.threads import one_blas_thread
from moew.data import read_only
from moew.exceptions import MoewError, TrainingFailedError
from moew.training._fit_params import EvalRows, fit_with_eval_rows, fresh
from moew.training._meta_estimators import forget_requests
from moew.types import Features, FloatArray, IntArray, Labels, Training

PROBE = -1  # the number of a job that is not a candidate


class SharedRows:
    """Data that all candidates share, as workers get them: the rows (X, y), or a fold's row numbers."""

    def __init__(self, content: Any) -> None:
        self.content = content
        self._cut: tuple[SharedRows, tuple[Features, Labels]] | None = None

    def rows(self, fold: SharedRows | None) -> tuple[Features, Labels]:
        """X and y, or those of their rows whose numbers are in `fold`; those of the last fold are kept,
        because candidates come fold by fold."""
        X, y = self.content
        if fold is None:
            return X, y
        cut = self._cut
        if cut is None or cut[0] is not fold:
            cut = self._cut = fold, (_safe_indexing(X, fold.content), y[fold.content])
        return cut[1]


class SharedRowsInFile:
    """Shared rows in a file, which are pickled as its name; each process on this machine opens it once and
    shares its arrays of numbers, memory-mapped (read only)."""

    def __init__(self, content: Any) -> None:
        folder = new_folder()
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.path = str(Path(folder) / "rows")
        joblib.dump(content, self.path)

    def __reduce__(self) -> tuple[Callable[[str], SharedRows], tuple[str]]:
        return _load, (self.path,)


@lru_cache(maxsize=2)  # the rows and the fold that is being trained
def _load(path: str) -> SharedRows:
    return SharedRows(joblib.load(path, mmap_mode="r"))


class SharedRowsCache:
    """Keeps the shared rows and folds as long as the same rows are trained on at the same place."""

    def __init__(self) -> None:
        self._of: tuple[Any, Features, Labels] | None = None
        self._rows: Any = None
        self._folds: list[tuple[IntArray, Any]] = []

    def at(
        self, place: Any, X: Features, y: Labels, fold: IntArray | None, put: Callable[[Any], Any]
    ) -> tuple[Any, Any]:
        """What `put` gave for (X, y) and for the row numbers of the fold (None: all rows) at this place."""
        of = self._of
        if of is None or of[0] != place or of[1] is not X or of[2] is not y:
            self.forget()
            self._rows = put((X, y))
            self._of = place, X, y
        if fold is None:
            return self._rows, None
        for known, handle in self._folds:
            if known is fold:
                return self._rows, handle
        self._folds.append((fold, put(fold)))
        return self._rows, self._folds[-1][1]

    def forget(self) -> None:
        """Release the rows: the file is removed, a cluster drops its copies."""
        self._of, self._rows, self._folds = None, None, []


def _warning_filters() -> tuple[Any, ...]:
    of_context = getattr(warnings, "_get_filters", None)  # Python 3.14 and later keep them by context
    return tuple(warnings.filters if of_context is None else of_context())


@dataclass(frozen=True)
class Job:
    """What training one candidate needs, except the rows, which are sent once to each worker."""

    k: int
    estimator: Any
    weight_name: str
    training: Training  # with weights (n,) of the rows that are trained on
    fit_params: Mapping[str, Any]  # what `fit` gets besides, of these rows
    aside: EvalRows | None  # rows for the model to stop by
    routed: bool  # whether its parts request the weights
    # scikit-learn's settings belong to a thread, warning filters to a process: a worker needs the user's
    config: Mapping[str, Any] = field(default_factory=get_config)
    warning_filters: Sequence[Any] = field(default_factory=_warning_filters)


def fit_job(rows: SharedRows, fold: SharedRows | None, job: Job, *, apart: bool = False) -> tuple[int, Any]:
    """Train one candidate; return (k, fitted model or the exception that stopped it). `apart` says that this
    is not the user's process, so that nothing that the model raises is the user's."""
    # The exception is returned, so that a candidate that fails does not stop the others.
    try:
        model = with_seed(job.estimator, job.training.seed, job.training.parameters)
        X, y, weight = rows_of(job.training, *rows.rows(fold))
        # "step__sample_weight" is how a Pipeline takes weights where metadata routing is off.
        routing = {"enable_metadata_routing": False} if "__" in job.weight_name else {}
        routing = {"enable_metadata_routing": True} if job.routed else routing
        with config_context(**{**job.config, **routing}), one_blas_thread():
            arguments = {job.weight_name: weight, **fresh(dict(job.fit_params))}
            if job.aside is None:
                model.fit(read_only(X), read_only(y), **arguments)
            else:
                of = job.aside.of(*rows.rows(None))
                fit_with_eval_rows(model, read_only(X), read_only(y), arguments, job.aside, of)
            if job.routed:
                forget_requests(model)
    except KeyboardInterrupt as error:
        # A user's Ctrl-C reaches the main thread of the user's process, and nothing else.
        if not apart and threading.current_thread() is threading.main_thread():
            raise
        return job.k, as_failure(error)
    except BaseException as error:
        return job.k, as_failure(error)
    return job.k, model


def rows_of(training: Training, X: Features, y: Labels) -> tuple[Features, Labels, FloatArray]:
    """The rows (m,) that a training makes of n rows, checked, or these, with their labels and own weights."""
    weights = np.array(training.weights)  # clusters may deliver them unaligned
    if training.rows is None:
        return X, y, weights
    X, y, weights = training.rows(read_only(X), read_only(y), read_only(weights), training.seed)
    n_rows, n_labels, n_weights = (_num_samples(part) for part in (X, y, weights))
    if not 0 < n_rows == n_labels == n_weights:
        raise TrainingFailedError(
            f"{training.rows!r} made {n_rows} rows, {n_labels} labels and {n_weights} weights; it must make "
            "equally many, and one at least."
        )
    return X, y, np.asarray(weights, dtype=np.float64)


def as_failure(error: BaseException) -> Exception:
    """The error as one that can be recorded: exits and interruptions would end the search if raised again."""
    if isinstance(error, Exception):
        return error
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return TrainingFailedError(f"the model's fit raised {said}")


def fit_job_apart(rows: SharedRows, fold: SharedRows | None, job: Job) -> tuple[int, Any]:
    """`fit_job` in another process, with the user's warning filters and threads for models that are parallel;
    an exception that cannot be pickled becomes a `MoewError` with its text."""
    threads = ThreadingBackend(nesting_level=1)
    with parallel_config(backend=threads, n_jobs=None), warnings.catch_warnings():
        _set_warning_filters(job.warning_filters)
        k, outcome = fit_job(rows, fold, job, apart=True)
    if isinstance(outcome, Exception):
        try:
            pickle.loads(pickle.dumps(outcome))
        except Exception:
            return k, MoewError(f"{type(outcome).__name__}: {outcome}")
    return k, outcome


def open_random_states(estimator: Any) -> list[str]:
    """The names of the random states that the user left open (None)."""
    parameters = estimator.get_params()
    names = sorted(name for name in parameters if name.split("__")[-1] == "random_state")
    return [name for name in names if parameters[name] is None]


def with_seed(estimator: Any, seed: int, parameters: Mapping[str, Any] | None = None) -> Any:
    """A clone with these parameters, whose random states that are left open (None) are set to `seed`."""
    model = with_parameters(estimator, parameters or {})
    names = open_random_states(model)
    return model.set_params(**dict.fromkeys(names, seed)) if names else model


def with_parameters(estimator: Any, parameters: Mapping[str, Any]) -> Any:
    """A clone with these parameters."""
    # Cloned each: a model among the choices of a parameter must not be trained for two candidates.
    values = {name: clone(value, safe=False) for name, value in parameters.items()}
    model = clone(estimator)
    return model.set_params(**values) if values else model


def _set_warning_filters(filters: Sequence[Any]) -> None:
    warnings.resetwarnings()
    for action, message, category, module, line in filters:
        texts = [getattr(text, "pattern", text) or "" for text in (message, module)]
        if any(texts):
            warnings.filterwarnings(action, texts[0], category, texts[1], line, append=True)
        else:  # takes a tuple of categories, too
            warnings.simplefilter(action, category, line, append=True)
