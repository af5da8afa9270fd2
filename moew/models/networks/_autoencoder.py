"""The paper's autoencoder, D → h → d → h → D."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from moew.data import Block
from moew.exceptions import TrainingDivergedError
from moew.models.networks._devices import choose_devices
from moew.models.networks._engine import (
    all_finite,
    initial_layers,
    pick,
    prepare_rows,
    refuse_after_fork,
    stack,
    train_on,
)
from moew.models.networks._layers import run_layers
from moew.models.networks._spec import Layers, NetworkSpec, ReconstructionLoss
from moew.types import FloatArray


def autoencoder_spec(
    blocks: Sequence[Block], block_weights: Sequence[float], *, hidden: int, n_dims: int, **training: Any
) -> NetworkSpec:
    """The network D → h → d → h → D of an autoencoder of D encoded columns; `training` as in `NetworkSpec`.

    The loss of a row is the sum over `blocks`, which cover the columns in order, of the block's weight times
    the squared error (numeric), the hinge loss on ±1 (binary, 0/1 in the inputs) or the softmax cross-entropy
    (categorical, one-hot in the inputs; zero where the category is missing) of the linear output. The three
    inner layers have the activation.
    """
    columns: dict[str, list[tuple[int, float]]] = {"numeric": [], "binary": []}
    categorical = []
    for block, weight in zip(blocks, map(float, block_weights), strict=True):
        if block.kind == "categorical":
            categorical.append((block.start, block.stop, weight))
        else:
            columns[block.kind] += [(column, weight) for column in range(block.start, block.stop)]
    loss = ReconstructionLoss(tuple(columns["numeric"]), tuple(columns["binary"]), tuple(categorical))
    n_columns = blocks[-1].stop
    return NetworkSpec((n_columns, hidden, n_dims, hidden, n_columns), loss=loss, **training)


def train_autoencoder(spec: NetworkSpec, inputs: FloatArray, seed: int) -> Layers:
    """W (out, in) and b (out,) of the four layers, trained on inputs (n, D); `seed` sets the initial
    parameters and the order of the mini-batches."""
    refuse_after_fork()
    rows = prepare_rows(spec, inputs[None], inputs[None], seed, choose_devices(None)[0])
    start = stack([[initial_layers(spec, seed)]])
    layers = pick(train_on(spec, rows, np.ones((1, 1, len(inputs))), start), 0, 0)
    if not all_finite(layers):
        raise TrainingDivergedError(
            "the autoencoder's training diverged; lower learning_rate, or scale the columns."
        )
    return layers


def encode(params: Layers, inputs: FloatArray, activation: str = "sigmoid") -> FloatArray:
    """Z (n, d): activations of the middle layer for inputs (n, D)."""
    return run_layers(params[: len(params) // 2], activation, inputs, linear_end=False)
