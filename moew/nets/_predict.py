"""The forward pass of one fitted network in NumPy: small inputs are done before JAX would have started."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from moew.nets._spec import Float32Array, check_activation
from moew.protocols import FloatArray

_ROWS_AT_ONCE = 65_536  # bounds the memory of the hidden layers


def activate(activation: str, values: Float32Array) -> Float32Array:
    """The activation function, in float32."""
    check_activation(activation)
    if activation == "sigmoid":
        return np.asarray(expit(values), dtype=np.float32)
    if activation == "tanh":
        return np.tanh(values)
    return np.maximum(values, np.float32(0)) if activation == "relu" else values


def run_layers(
    layers: Sequence[tuple[Float32Array, Float32Array]],
    activation: str,
    inputs: FloatArray,
    *,
    linear_end: bool,
) -> Float32Array:
    """Values (n, out) of the last of `layers`; `linear_end` leaves its activation out."""
    chunks = []
    for start in range(0, max(len(inputs), 1), _ROWS_AT_ONCE):
        values = np.asarray(inputs[start : start + _ROWS_AT_ONCE], dtype=np.float32)
        for depth, (W, b) in enumerate(layers):
            values = values @ W.T + b
            if depth < len(layers) - 1 or not linear_end:
                values = activate(activation, values)
        chunks.append(values)
    return chunks[0] if len(chunks) == 1 else np.concatenate(chunks)
