"""The trainer for an estimator; raises before any training where it cannot take example weights."""

from __future__ import annotations

import inspect
from typing import Any

from sklearn import get_config
from sklearn.pipeline import Pipeline

from moew.exceptions import Argument, InPython, UnsupportedEstimatorError
from moew.training._estimators import EstimatorTrainer
from moew.training._many import ManyTrainer


def resolve_trainer(
    estimator: Any, sample_weight_name: str = "sample_weight", n_jobs: int | None = None
) -> EstimatorTrainer | ManyTrainer:
    """The trainer for `estimator`, or an error that says why it cannot be trained with weights."""
    if hasattr(estimator, "fit_many"):
        return ManyTrainer(estimator)
    if not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise UnsupportedEstimatorError(
            f"{estimator!r} is no scikit-learn estimator: it needs fit, predict and get_params.",
            argument="estimator",
        )
    _check_takes_weights(estimator, sample_weight_name)
    return EstimatorTrainer(estimator, sample_weight_name, n_jobs)


def _check_takes_weights(estimator: Any, name: str) -> None:
    if isinstance(estimator, Pipeline):
        step_name, _, argument = name.partition("__")
        if not argument:
            if get_config()["enable_metadata_routing"]:
                return  # the Pipeline itself checks what its steps requested
            last = _last_step(estimator)
            _check_takes_weights(estimator, f"{last}__{name}")  # raises where the advice below would not work
            raise UnsupportedEstimatorError(
                "a Pipeline takes weights by step: set ",
                Argument("sample_weight_name", f"{last}__sample_weight"),
                ".",
                argument="sample_weight_name",
            )
        if step_name not in estimator.named_steps:
            raise UnsupportedEstimatorError(
                f"the Pipeline has no step {step_name!r} (",
                Argument("sample_weight_name", name),
                f"); its steps are {list(estimator.named_steps)}.",
                argument="sample_weight_name",
            )
        _check_takes_weights(estimator.named_steps[step_name], argument)
        return
    if not hasattr(estimator, "fit"):
        raise UnsupportedEstimatorError(
            f"the Pipeline ends with {estimator!r}, which cannot be trained.", argument="estimator"
        )
    parameters = inspect.signature(estimator.fit).parameters
    takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    if name not in parameters and not takes_any:
        raise UnsupportedEstimatorError(
            f"{type(estimator).__name__}.fit takes no {name!r}, so weights would be ignored. Use an "
            "estimator whose fit takes sample weights",
            InPython(", or name its argument with sample_weight_name"),
            ".",
            argument="estimator",
        )


def _last_step(pipeline: Pipeline) -> str:
    """The name of the last step; for a Pipeline in a Pipeline, followed by the inner step's name."""
    name, model = pipeline.steps[-1]
    return f"{name}__{_last_step(model)}" if isinstance(model, Pipeline) else name
