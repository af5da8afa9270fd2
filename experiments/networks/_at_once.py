"""R × K networks trained at once, from arrays of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from moew.exceptions import InvalidInputError
from moew.models.networks import NetworkSpec
from moew.models.networks._devices import choose_devices
from moew.models.networks._engine import initial_layers, prepare_rows, refuse_after_fork, stack, train_on
from moew.models.networks._layers import Parameters


def train_networks(
    spec: NetworkSpec,
    X: Any,
    Y: Any,
    W: Any,
    seeds: Sequence[Sequence[int]],
    batches: Any,
    device: str | None = None,
) -> Parameters:
    """Train R × K networks at once, in float32.

    X (R, n, D), Y (R, n, C), either with 1 in place of R where all repeats share them; example weights W
    (R, K, n), seeds (R, K) of the initial parameters. `batches` is a seed of the order of mini-batches that
    all R × K networks share, or the row numbers of the mini-batches, (steps, R or 1, b). In every mini-batch
    the weights of each network are brought to mean one; a mini-batch whose weights are all zero does not
    change the network. `device` is "cpu", "gpu" or None for JAX's own choice.

    Returns, for each layer, W (R, K, out, in) and b (R, K, out). The program is compiled once for each set of
    shapes, layer sizes, activation, loss and precision.
    """
    refuse_after_fork()
    _check_shapes(spec, np.shape(X), np.shape(Y), np.shape(W), np.shape(seeds))
    rows = prepare_rows(spec, X, Y, batches, choose_devices(device)[0])
    return train_on(
        spec, rows, W, stack([[initial_layers(spec, int(seed)) for seed in row] for row in seeds])
    )


def _check_shapes(
    spec: NetworkSpec, X: tuple[int, ...], Y: tuple[int, ...], W: tuple[int, ...], seeds: tuple[int, ...]
) -> None:
    shapes = f"got X {X}, Y {Y}, W {W}, seeds {seeds}"
    if not (len(X) == len(Y) == len(W) == 3 and len(seeds) == 2):
        raise InvalidInputError(
            f"X (R, n, D), Y (R, n, C), W (R, K, n) and seeds (R, K) are needed; {shapes}."
        )
    (R, K, n), D, C = W, X[2], Y[2]
    fit_together = X[0] in (1, R) and Y[0] in (1, R) and X[1] == Y[1] == n and seeds == (R, K)
    if not fit_together or min(R, n, K) < 1:
        raise InvalidInputError(f"repeats, rows or networks do not fit together; {shapes}.")
    if (spec.sizes[0], spec.sizes[-1]) != (D, C):
        raise InvalidInputError(f"the network goes from {spec.sizes[0]} to {spec.sizes[-1]}; {shapes}.")
