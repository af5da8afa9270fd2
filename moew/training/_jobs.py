"""One candidate's training, as it is sent to whoever does it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn import config_context, get_config
from sklearn.base import clone

from moew.protocols import FloatArray
from moew.threads import one_blas_thread
from moew.training._rows import TrainingRows

PROBE = -1  # the number of a job that is no candidate's


@dataclass(frozen=True)
class Job:
    """Everything but the rows: those travel on their own, once to each worker."""

    k: int
    estimator: Any
    weight_name: str
    weight: FloatArray  # (n,): this candidate's own, not the whole batch's
    seed: int
    # scikit-learn's settings are of a thread, and a worker's are not the user's
    config: Mapping[str, Any] = field(default_factory=get_config)


def fit_job(rows: TrainingRows, job: Job) -> tuple[int, Any]:
    """(k, fitted model or the exception that stopped it)."""
    # A candidate that fails must not take the others with it, so the exception is an answer too.
    try:
        model = with_seed(job.estimator, job.seed)
        weight = np.require(job.weight, requirements="A")  # clusters may deliver it at an odd address
        # "step__sample_weight" is how a Pipeline takes weights where metadata routing is off.
        routing = {"enable_metadata_routing": False} if "__" in job.weight_name else {}
        with config_context(**{**job.config, **routing}), one_blas_thread():
            model.fit(*rows.rows, **{job.weight_name: weight})
    except Exception as error:
        return job.k, error
    return job.k, model


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
