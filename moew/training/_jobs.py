"""One candidate's training, as it is sent to whoever does it."""

from __future__ import annotations

import pickle
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
from moew.exceptions import MoewError
from moew.training._rows import SharedRows
from moew.types import FloatArray

PROBE = -1  # the number of a job that is no candidate's


def _warning_filters() -> tuple[Any, ...]:
    of_context = getattr(warnings, "_get_filters", None)  # where Python keeps them by context, from 3.14 on
    return tuple(warnings.filters if of_context is None else of_context())


@dataclass(frozen=True)
class Job:
    """Everything but the rows: those travel on their own, once to each worker."""

    k: int
    estimator: Any
    weight_name: str
    weight: FloatArray  # (n,): this candidate's own, not the whole batch's
    seed: int
    # scikit-learn's settings are of a thread, warning filters of a process, and a worker's are not the user's
    config: Mapping[str, Any] = field(default_factory=get_config)
    warning_filters: Sequence[Any] = field(default_factory=_warning_filters)


def fit_job(rows: SharedRows, fold: SharedRows | None, job: Job) -> tuple[int, Any]:
    """(k, fitted model or the exception that stopped it)."""
    # A candidate that fails must not take the others with it, so the exception is an answer too.
    try:
        model = with_seed(job.estimator, job.seed)
        weight = np.array(job.weight)  # its own; clusters may also deliver it at an odd address
        X, y = rows.rows(fold)
        # "step__sample_weight" is how a Pipeline takes weights where metadata routing is off.
        routing = {"enable_metadata_routing": False} if "__" in job.weight_name else {}
        with config_context(**{**job.config, **routing}), one_blas_thread():
            model.fit(read_only(X), read_only(y), **{job.weight_name: weight})
    except Exception as error:
        return job.k, error
    return job.k, model


def fit_job_apart(rows: SharedRows, fold: SharedRows | None, job: Job) -> tuple[int, Any]:
    """The same in another process: a model that is parallel itself uses threads there, as joblib has it;
    warnings count as they do for the user; and an exception that could not travel back is put in words."""
    threads = ThreadingBackend(nesting_level=1)
    with parallel_config(backend=threads, n_jobs=None), warnings.catch_warnings():
        _set_warning_filters(job.warning_filters)
        k, outcome = fit_job(rows, fold, job)
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


def with_seed(estimator: Any, seed: int) -> Any:
    """A clone whose random states that the user left open (None) are set to `seed`."""
    model = clone(estimator)
    names = open_random_states(model)
    return model.set_params(**dict.fromkeys(names, seed)) if names else model


def _set_warning_filters(filters: Sequence[Any]) -> None:
    warnings.resetwarnings()
    for action, message, category, module, line in filters:
        texts = [getattr(text, "pattern", text) or "" for text in (message, module)]
        if any(texts):
            warnings.filterwarnings(action, texts[0], category, texts[1], line, append=True)
        else:  # takes a tuple of categories, too
            warnings.simplefilter(action, category, line, append=True)
