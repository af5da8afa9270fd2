"""From what the user wrote to base weights."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from moew.exceptions import InvalidInputError
from moew.types import BaseWeights
from moew.weighting._base_weights import BaseWeightsEstimator, FunctionBaseWeights, UniformBaseWeights
from moew.weighting._covariate_shift import CovariateShift
from moew.weighting._label_shift import LabelShift

_BY_NAME: dict[str, type[BaseWeightsEstimator]] = {
    "uniform": UniformBaseWeights,
    "label_shift": LabelShift,
    "covariate_shift": CovariateShift,
}


def resolve_base_weights(thing: Any, random_state: Any = None) -> BaseWeights:
    """Base weights to fit, from a name, an object or a function of (X, y).

    An object of moew's is copied, so that what the user passed is never changed. `random_state` seeds
    it where it has a `random_state` that is None.
    """
    base_weights = _find(thing)
    if isinstance(base_weights, BaseWeightsEstimator) and random_state is not None:
        params = base_weights.get_params(deep=False)
        if "random_state" in params and params["random_state"] is None:
            base_weights.set_params(random_state=random_state)
    return base_weights


def _find(thing: Any) -> BaseWeights:
    if isinstance(thing, str) and thing in _BY_NAME:
        found: Any = _BY_NAME[thing]()
        return found  # type: ignore[no-any-return]
    if isinstance(thing, BaseWeightsEstimator):
        return clone(thing)  # type: ignore[no-any-return]
    if not isinstance(thing, str | type):  # a class has the methods too, but is no object to fit
        if isinstance(thing, BaseWeights):
            return thing
        if callable(thing):
            return FunctionBaseWeights(thing)
    raise InvalidInputError(
        f"base_weights must be one of {sorted(_BY_NAME)}, an object such as LabelShift(), or a function "
        f"of (X, y) that gives a positive weight for each row; got {thing!r}."
    )
