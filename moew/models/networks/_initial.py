"""Random draws on the host: the rows held out for early stopping, and the initial parameters.

NumPy's generators give the same numbers on every device, whatever is trained together.
"""

from __future__ import annotations

import numpy as np

from moew.exceptions import InvalidInputError
from moew.models.networks._spec import Layers, NetworkSpec
from moew.types import IntArray

HELD_OUT_SEED = 1


def split_rows(n: int, held_share: float | None) -> tuple[IntArray, IntArray]:
    """Rows to train on and rows to hold out for early stopping, in order; the same for all candidates."""
    if held_share is None:
        return np.arange(n), np.arange(0)
    n_held = round(held_share * n)
    if not 0 < n_held < n:
        raise InvalidInputError(
            f"early_stopping={held_share:g} of {n} rows leaves no row to hold out or none to train on; give "
            "more rows or another share, or set early_stopping=False."
        )
    order = np.random.default_rng([HELD_OUT_SEED, n]).permutation(n)
    return np.sort(order[n_held:]), np.sort(order[:n_held])


def initial_layers(spec: NetworkSpec, seed: int) -> Layers:
    """Glorot uniform weights and zero biases of one network, from its seed alone."""
    rng = np.random.default_rng(seed)
    layers: Layers = []
    for n_in, n_out in zip(spec.sizes[:-1], spec.sizes[1:], strict=True):
        limit = np.sqrt(6.0 / (n_in + n_out))
        W = rng.uniform(-limit, limit, (n_out, n_in)).astype(np.float32)
        layers.append((W, np.zeros(n_out, dtype=np.float32)))
    return layers
