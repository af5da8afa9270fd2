"""The training of one candidate, as it is sent to a worker."""

from __future__ import annotations

import pickle
import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import parallel_config
from joblib.parallel import ThreadingBackend
from sklearn import config_context, get_config
from sklearn.base import clone

from moew._util.threads import one_blas_thread
from moew.data._read_only import read_only
from moew.exceptions import MoewError, TrainingFailedError
from moew.training._eval_rows import EvalRows, fit_with_eval_rows
from moew.training._fit_params import fresh
from moew.training._meta_estimators import forget_requests
from moew.training._rows import SharedRows
from moew.types import FloatArray

PROBE = -1  # the number of a job that is not a candidate


def _warning_filters() -> tuple[Any, ...]:
    of_context = getattr(warnings, "_get_filters", None)  # Python 3.14 and later keep them by context
    return tuple(warnings.filters if of_context is None else of_context())


@dataclass(frozen=True)
class Job:
    """What training one candidate needs, except the rows, which are sent once to each worker."""

    k: int
    estimator: Any
    weight_name: str
    weight: FloatArray  # (n,), of this candidate, not of the whole batch
    seed: int
    parameters: Mapping[str, Any] = field(default_factory=dict)  # hyper-parameters of this candidate
    seeded: Sequence[str] | None = None  # the random states that are left open, where they are known
    fit_params: Mapping[str, Any] = field(default_factory=dict)  # what `fit` gets besides, of these rows
    aside: EvalRows | None = None  # rows for the model to stop by
    routed: bool = False  # whether its parts request the weights
    # scikit-learn's settings belong to a thread, warning filters to a process: a worker needs the user's
    config: Mapping[str, Any] = field(default_factory=get_config)
    warning_filters: Sequence[Any] = field(default_factory=_warning_filters)


def fit_job(rows: SharedRows, fold: SharedRows | None, job: Job, *, apart: bool = False) -> tuple[int, Any]:
    """Train one candidate; return (k, fitted model or the exception that stopped it).

    `apart` says that this is not the user's process, so that nothing that the model raises is the user's.
    """
    # The exception is returned, so that a candidate that fails does not stop the others.
    try:
        model = with_seed(job.estimator, job.seed, job.parameters, job.seeded)
        weight = np.array(job.weight)  # its own copy; clusters may also deliver it unaligned
        X, y = rows.rows(fold)
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


def as_failure(error: BaseException) -> Exception:
    """The error as one that can be recorded: exits and interruptions would end the search if raised again."""
    if isinstance(error, Exception):
        return error
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return TrainingFailedError(f"the model's fit raised {said}")


def fit_job_apart(rows: SharedRows, fold: SharedRows | None, job: Job) -> tuple[int, Any]:
    """`fit_job` in another process.

    A model that is itself parallel uses threads there, as in joblib. The user's warning filters apply. An
    exception that cannot be pickled is replaced by a `MoewError` with its text.
    """
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


def with_seed(
    estimator: Any,
    seed: int,
    parameters: Mapping[str, Any] | None = None,
    names: Sequence[str] | None = None,
) -> Any:
    """A clone with these parameters, whose random states that are left open (None) are set to `seed`.

    `names` are the estimator's own open random states, so that they need not be looked for in each clone.
    """
    model = with_parameters(estimator, parameters or {})
    if names is None or parameters:
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
