"""Which argument of a model's `fit` takes the weights, and which others it takes."""

from __future__ import annotations

import inspect
from typing import Any

from sklearn import get_config
from sklearn.pipeline import Pipeline

from moew.exceptions import Argument, InPython, UnsupportedEstimatorError

AUTO = "auto"
_USUAL = "sample_weight"


def weight_name_of(estimator: Any, given: str = AUTO) -> str:
    """The name of the weights in the estimator's `fit`; for "auto" that of a Pipeline's last step.

    Raises if the estimator takes no weights by that name. With scikit-learn's metadata routing on, a Pipeline
    gets them as "sample_weight", and its steps by what they request.
    """
    name = given
    if given == AUTO:
        name = _USUAL if _routes(estimator) else of_last_step(estimator, _USUAL)
    if isinstance(estimator, Pipeline) and "__" not in name:
        if _routes(estimator):
            return name  # the Pipeline itself checks what its steps requested
        of_step = of_last_step(estimator, name)
        _check_takes_weights(estimator, of_step)  # raises where the advice below would not work
        raise UnsupportedEstimatorError(
            "a Pipeline takes weights by step: leave out ",
            Argument("sample_weight_name"),
            ", or set ",
            Argument("sample_weight_name", of_step),
            ".",
            argument="sample_weight_name",
        )
    _check_takes_weights(estimator, name)
    return name


def of_last_step(estimator: Any, name: str) -> str:
    """The name of an argument of `fit` behind the names of a Pipeline's last step; unchanged for others."""
    if not isinstance(estimator, Pipeline):
        return name
    step, model = estimator.steps[-1]
    return f"{step}__{of_last_step(model, name)}"


def takes(estimator: Any, name: str) -> bool:
    """Whether the estimator's `fit` takes an argument of that name, for a Pipeline that of its step."""
    if isinstance(estimator, Pipeline):
        step, _, argument = name.partition("__")
        return step in estimator.named_steps and takes(estimator.named_steps[step], argument)
    if not hasattr(estimator, "fit"):
        return False
    parameters = inspect.signature(estimator.fit).parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def fit_arguments(estimator: Any) -> list[str]:
    """The names of what the estimator's `fit` takes besides X and y."""
    parameters = inspect.signature(estimator.fit).parameters.values()
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)][2:]


def _routes(estimator: Any) -> bool:
    return isinstance(estimator, Pipeline) and bool(get_config()["enable_metadata_routing"])


def _check_takes_weights(estimator: Any, name: str) -> None:
    if isinstance(estimator, Pipeline):
        step, _, argument = name.partition("__")
        if step not in estimator.named_steps:
            raise UnsupportedEstimatorError(
                f"the Pipeline has no step {step!r} (",
                Argument("sample_weight_name", name),
                f"); its steps are {list(estimator.named_steps)}.",
                argument="sample_weight_name",
            )
        _check_takes_weights(estimator.named_steps[step], argument)
    elif not hasattr(estimator, "fit"):
        raise UnsupportedEstimatorError(
            f"the Pipeline ends with {estimator!r}, which cannot be trained.", argument="estimator"
        )
    elif not takes(estimator, name):
        raise UnsupportedEstimatorError(
            f"{type(estimator).__name__}.fit takes no {name!r}, so weights would be ignored. Use an "
            "estimator whose fit takes sample weights",
            InPython(", or name its argument with sample_weight_name"),
            ".",
            argument="estimator",
        )
