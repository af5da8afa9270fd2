"""From what the user wrote to a baseline object."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from moew.exceptions import InvalidInputError
from moew.types import Baseline
from moew.weighting._baselines import BaseBaseline, FunctionBaseline, UniformBaseline
from moew.weighting._covariate_shift import CovariateShift
from moew.weighting._label_shift import LabelShift

_BY_NAME: dict[str, type[BaseBaseline]] = {
    "uniform": UniformBaseline,
    "label_shift": LabelShift,
    "covariate_shift": CovariateShift,
}


def resolve_baseline(thing: Any, random_state: Any = None) -> Baseline:
    """A baseline to fit, from a name, a baseline or a function of (X, y).

    A baseline of moew's is copied, so that what the user passed is never changed. `random_state` seeds
    it where it has a `random_state` that is None.
    """
    baseline = _find(thing)
    if isinstance(baseline, BaseBaseline) and random_state is not None:
        params = baseline.get_params(deep=False)
        if "random_state" in params and params["random_state"] is None:
            baseline.set_params(random_state=random_state)
    return baseline


def _find(thing: Any) -> Baseline:
    if isinstance(thing, str) and thing in _BY_NAME:
        found: Any = _BY_NAME[thing]()
        return found  # type: ignore[no-any-return]
    if isinstance(thing, BaseBaseline):
        return clone(thing)  # type: ignore[no-any-return]
    if not isinstance(thing, str | type):  # a class has the methods too, but is no object to fit
        if isinstance(thing, Baseline):
            return thing
        if callable(thing):
            return FunctionBaseline(thing)
    raise InvalidInputError(
        f"baseline must be one of {sorted(_BY_NAME)}, a baseline object such as LabelShift(), or a function "
        f"of (X, y) that gives a positive weight for each row; got {thing!r}."
    )
