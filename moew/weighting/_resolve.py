"""Turn what the user passed as `base_weights` into base weights."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from moew._util.functions import check_takes_rows
from moew.exceptions import Argument, InvalidInputError
from moew.types import BaseWeights
from moew.weighting._base_weights import BaseWeightsEstimator, FunctionBaseWeights


def resolve_base_weights(thing: Any) -> BaseWeights:
    """Base weights to fit, from a name, an object or a function of (X, y).

    An object of moew is copied, so that fitting does not change what the user passed.
    """
    from moew.weighting import BASE_WEIGHTS

    if isinstance(thing, str) and thing in BASE_WEIGHTS:
        return BASE_WEIGHTS[thing]()
    if isinstance(thing, BaseWeightsEstimator):
        copy: BaseWeightsEstimator = clone(thing)
        return copy
    if not isinstance(thing, str | type):  # a class has the methods too, but cannot be fitted
        if isinstance(thing, BaseWeights):
            return thing
        if callable(thing):
            check_takes_rows(thing, "base_weights")
            return FunctionBaseWeights(thing)
    raise InvalidInputError(
        Argument("base_weights"),
        f" must be one of {sorted(BASE_WEIGHTS)}, an object such as LabelShift(), or a function of (X, y) "
        f"that gives a positive weight for each row; got {thing!r}.",
        argument="base_weights",
    )
