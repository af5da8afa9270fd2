"""The base class of base weights π, and those that are not estimated: uniform, or the user's function."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from moew._util.state import State, Stateful, find_object, has_state, name_object
from moew.data._read_only import read_only
from moew.exceptions import Argument, InvalidInputError
from moew.types import FloatArray, Labels, Rows, Task


class BaseWeightsEstimator(Stateful, BaseEstimator):
    """Base class of moew's base weights: `fit` learns them, `weights` gives π for any rows."""

    state_home = "moew.weighting"

    @abstractmethod
    def fit(self, X: Rows, y: Labels, X_val: Rows, y_val: Labels, *, task: Task) -> Self:
        """Learn from the training and the validation rows."""

    @abstractmethod
    def weights(self, X: Rows, y: Labels) -> FloatArray:
        """π (n,) for any rows."""

    def fit_weights(self, X: Rows, y: Labels, X_val: Rows, y_val: Labels, *, task: Task) -> FloatArray:
        """Fit, and return π (n,) of the training rows."""
        return self.fit(X, y, X_val, y_val, task=task).weights(X, y)


@has_state
class UniformBaseWeights(BaseWeightsEstimator):
    """π = 1 for every row."""

    def fit(
        self,
        X: Rows,
        y: Labels,
        X_val: Rows = None,
        y_val: Labels = None,
        *,
        task: Task,
    ) -> Self:
        """Does nothing."""
        return self

    def weights(self, X: Rows, y: Labels) -> FloatArray:
        """π (n,) = 1."""
        return np.ones(len(y))

    def _content(self) -> State:
        return {}

    @classmethod
    def from_state(cls, state: State, objects: Mapping[str, Any]) -> Self:
        """The base weights that `state()` described."""
        return cls()


@has_state
class FunctionBaseWeights(BaseWeightsEstimator):
    """π = `function(X, y)`, a positive number for each row. A saved state holds only the function's name."""

    def __init__(self, function: Callable[[Rows, Labels], Any]) -> None:
        self.function = function

    def fit(
        self,
        X: Rows,
        y: Labels,
        X_val: Rows = None,
        y_val: Labels = None,
        *,
        task: Task,
    ) -> Self:
        """Call the function on the training rows, to raise early if it does not work."""
        self.weights(X, y)
        return self

    def weights(self, X: Rows, y: Labels) -> FloatArray:
        """π (n,), as the function returns it."""
        return checked_base_weights(
            self.function(read_only(X), read_only(y)), len(y), name_object(self.function)
        )

    def _content(self) -> State:
        return {"function": name_object(self.function)}

    @classmethod
    def from_state(cls, state: State, objects: Mapping[str, Any]) -> Self:
        """The base weights that `state()` described."""
        return cls(find_object(state["function"], objects))


def checked_base_weights(raw: Any, n_rows: int, name: str) -> FloatArray:
    """π (n_rows,) as float64; raises unless all are positive and finite."""
    try:
        pi = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"the base weights {name} must give numbers: {error}.", argument="base_weights"
        ) from error
    if pi.shape != (n_rows,):
        raise InvalidInputError(
            f"the base weights {name} must give one number for each of the {n_rows} rows, got shape "
            f"{pi.shape}.",
            argument="base_weights",
        )
    if not (np.isfinite(pi) & (pi > 0)).all():
        worst = pi[~(np.isfinite(pi) & (pi > 0))][0]
        raise InvalidInputError(
            f"the base weights {name} must give positive, finite weights, got {worst}; "
            "leave out rows that should not count instead of giving them zero.",
            argument="base_weights",
        )
    return pi


def check_limit(limit: float) -> None:
    """Raise unless the limit is a finite number above 1."""
    if not (np.isfinite(limit) and limit > 1):
        raise InvalidInputError(
            f"limit must be above 1 (weights stay in 1/limit … limit), got {limit!r}.", argument="limit"
        )


def need_validation(values: Any, what: str, name: str) -> None:
    """Raise if the validation rows that the base weights `name` need were not given."""
    if values is None:
        raise InvalidInputError(
            f"{name} compares training and validation rows, but no {what} was given: pass the validation "
            "set, or use ",
            Argument("base_weights", "uniform"),
            ".",
            argument="base_weights",
        )
