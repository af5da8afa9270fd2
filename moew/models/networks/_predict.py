"""The forward pass of one fitted network in NumPy, which is faster than JAX on small inputs.

In float64, so that a row's prediction does not depend on the rows beside it beyond the 15th digit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from moew.models.networks._spec import Float32Array, check_activation
from moew.types import FloatArray

_ROWS_AT_ONCE = 65_536  # bounds the memory of the hidden layers


def activate(activation: str, values: FloatArray) -> FloatArray:
    """Apply the activation function."""
    check_activation(activation)
    if activation == "sigmoid":
        return np.asarray(expit(values))
    if activation == "tanh":
        return np.tanh(values)
    return np.maximum(values, 0.0) if activation == "relu" else values


def run_layers(
    layers: Sequence[tuple[Float32Array, Float32Array]],
    activation: str,
    inputs: FloatArray,
    *,
    linear_end: bool,
) -> FloatArray:
    """Values (n, out) of the last of `layers`; `linear_end` leaves its activation out."""
    chunks = []
    for start in range(0, max(len(inputs), 1), _ROWS_AT_ONCE):
        values: FloatArray = np.asarray(inputs[start : start + _ROWS_AT_ONCE], dtype=np.float64)
        for depth, (W, b) in enumerate(layers):
            values = values @ W.T.astype(np.float64) + b
            if depth < len(layers) - 1 or not linear_end:
                values = activate(activation, values)
        chunks.append(values)
    return chunks[0] if len(chunks) == 1 else np.concatenate(chunks)
