"""Powers of the target as weights: what class weights are in regression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np

from moew._util.state import State, Stateful, has_state
from moew.types import FloatArray, Labels, Rows
from moew.weighting._normalise import mean_over_rows

_ABOVE_ZERO = 0.1  # of the spread: how far the lowest target is lifted above zero where not all are positive


@has_state
@dataclass(frozen=True)
class PowerWeights(Stateful):
    """The weight function ((y + shift) / scale)^exponent / mean, which does not look at X.

    Targets below `lowest`, that of the training rows, count as the lowest.
    """

    state_home = "moew.weighting"

    exponent: float
    shift: float
    scale: float
    mean: float
    lowest: float

    takes_columns: ClassVar[bool] = False  # per-row columns beside X

    def __call__(self, X: Rows, y: Labels, columns: Any = None) -> FloatArray:
        """The weights (n,) of any rows."""
        target = np.maximum(np.asarray(y, dtype=np.float64), self.lowest)
        return np.asarray(_powers(target, self.shift, self.scale, np.array([self.exponent]))[0] / self.mean)

    def _content(self) -> State:
        return asdict(self)

    @classmethod
    def from_state(cls, state: State, objects: Mapping[str, Any]) -> Self:
        """The weight function that `state()` described."""
        return cls(**{one.name: state[one.name] for one in fields(cls)})


class PowersOfTarget:
    """Weights y^α of the training rows for any exponent α, times the user's weights.

    Targets that are not all positive are lifted above zero first.

    Examples
    --------
    >>> PowersOfTarget(np.array([1.0, 2.0, 3.0])).training_weights(np.array([[0.0], [1.0]])).tolist()
    [[1.0, 1.0, 1.0], [0.5, 1.0, 1.5]]
    """

    n_dims = 1

    def __init__(self, y: Labels, sample_weight: FloatArray | None = None) -> None:
        target = np.asarray(y, dtype=np.float64)
        self.y, self.sample_weight = target, sample_weight
        self.lowest = float(target.min())
        # Targets that differ in their last digits only have no spread to speak of.
        spread = max(float(target.std()), 1e-9 * float(np.abs(target).max())) or 1.0
        self.shift = 0.0 if self.lowest > 0 else _ABOVE_ZERO * spread - self.lowest
        self.scale = float(np.median(target + self.shift))

    def training_weights(self, alphas: FloatArray) -> FloatArray:
        """The weights (K, n) for exponents (K, 1), each of mean one by the user's weights."""
        powers = _powers(self.y, self.shift, self.scale, np.asarray(alphas)[:, 0])
        weights = powers / mean_over_rows(powers, self.sample_weight)[:, None]
        return weights if self.sample_weight is None else weights * self.sample_weight

    def weight_function(self, alpha: FloatArray) -> PowerWeights:
        """The weight function for one exponent (1,)."""
        exponent = float(np.asarray(alpha)[0])
        powers = _powers(self.y, self.shift, self.scale, np.array([exponent]))
        mean = float(mean_over_rows(powers, self.sample_weight)[0])
        return PowerWeights(exponent, self.shift, self.scale, mean, self.lowest)


def _powers(y: Labels, shift: float, scale: float, exponents: FloatArray) -> FloatArray:
    lifted = np.asarray(y, dtype=np.float64) + shift
    # A factor of a million in the target is as much as a weight can tell apart.
    return np.asarray((np.clip(lifted, 1e-6 * scale, 1e6 * scale) / scale) ** exponents[:, None])
