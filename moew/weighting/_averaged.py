"""The weight function of an ensemble: the average of its members'."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from moew._util.state import State, Stateful, has_state, load_state
from moew.types import FloatArray, Labels, Rows


@has_state
@dataclass(frozen=True)
class AveragedWeights(Stateful):
    """The average of several weight functions by their votes, which sum to one."""

    state_home = "moew.weighting"

    functions: tuple[Any, ...]
    votes: tuple[float, ...]

    @property
    def takes_columns(self) -> bool:
        """Whether the weights depend on per-row columns beside X."""
        return any(function.takes_columns for function in self.functions)

    @property
    def wanted_columns(self) -> tuple[str, ...]:
        """Names of columns that the embedding was asked for, of X or beside it."""
        each = [getattr(function, "wanted_columns", ()) for function in self.functions]
        return tuple(dict.fromkeys(name for names in each for name in names))

    def __call__(self, X: Rows, y: Labels, columns: Any = None) -> FloatArray:
        """The weights (n,) of any rows."""
        total = np.zeros(len(y))
        for function, vote in zip(self.functions, self.votes, strict=True):
            total += vote * function(X, y, columns)
        return total

    def _content(self) -> State:
        return {"functions": [function.state() for function in self.functions], "votes": list(self.votes)}

    @classmethod
    def from_state(cls, state: State, objects: Mapping[str, Any]) -> Self:
        """The weight function that `state()` described."""
        return cls(tuple(load_state(one, objects) for one in state["functions"]), tuple(state["votes"]))
