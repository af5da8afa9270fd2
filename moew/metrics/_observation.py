"""What one candidate answered on the validation rows, kept when its model is long gone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from moew._util.state import State, pack_array, unpack_array
from moew.metrics import Outputs
from moew.types import FloatArray, IntArray


@dataclass(frozen=True)
class Observation:
    """Answers on the rows, (n,) each.

    `scores` (n,) are what a decision rule decides from; None where there is no rule, or where a rule
    fitted on training rows has already decided, in `outputs`.
    """

    outputs: Outputs
    scores: FloatArray | None = None

    def take(self, rows: IntArray) -> Observation:
        """The answers on some of the rows."""
        return Observation(self.outputs.take(rows), None if self.scores is None else self.scores[rows])

    def compact(self) -> Observation:
        """The same answers in less memory."""
        return replace(self, outputs=self.outputs.compact())

    def equals(self, other: Observation) -> bool:
        """Whether both gave the same answers, bit for bit."""
        mine, theirs = self.outputs.arrays, other.outputs.arrays
        return all(np.array_equal(mine[name], theirs[name]) for name in mine) and (
            self.scores is None or np.array_equal(self.scores, np.asarray(other.scores))
        )

    def state(self) -> State:
        """As a JSON-able dict, for a study's storage."""
        return {
            "outputs": {name: _pack(array) for name, array in self.outputs.arrays.items()},
            "classes": None if self.outputs.classes is None else _pack(self.outputs.classes),
            "estimator_type": self.outputs.estimator_type,
            "scores": None if self.scores is None else pack_array(self.scores),
        }

    @classmethod
    def from_state(cls, state: State) -> Observation:
        classes, scores = state["classes"], state["scores"]
        outputs = Outputs(
            {name: _unpack(packed) for name, packed in state["outputs"].items()},
            None if classes is None else _unpack(classes),
            state["estimator_type"],
        )
        return cls(outputs, None if scores is None else unpack_array(scores))


def _pack(array: np.ndarray[Any, Any]) -> State:
    return pack_array(array) if array.dtype.kind in "biuf" else {"values": array.tolist()}


def _unpack(packed: State) -> np.ndarray[Any, Any]:
    return np.asarray(packed["values"]) if "values" in packed else unpack_array(packed)
