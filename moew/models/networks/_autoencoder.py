"""The paper's autoencoder, D → h → d → h → D, trained with the engine of the networks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from moew._util.seeds import integer_seed
from moew.data import Block
from moew.exceptions import InvalidInputError, TrainingDivergedError
from moew.models._shared import batch_rows
from moew.models.networks._engine import all_finite, pick, train_networks
from moew.models.networks._gradual import GradualTraining
from moew.models.networks._predict import run_layers
from moew.models.networks._spec import (
    Layers,
    NetworkSpec,
    ReconstructionLoss,
)
from moew.types import FloatArray


def train_autoencoder(
    inputs: FloatArray,
    blocks: Sequence[Block],
    block_weights: Sequence[float],
    *,
    hidden: int,
    n_dims: int,
    activation: str = "sigmoid",
    steps: int = 10_000,
    batch_size: int | None = 100,
    learning_rate: float = 0.001,
    seed: int,
) -> Layers:
    """Train on inputs (n, D); return W (out, in) and b (out,) of the four layers D → h → d → h → D.

    The loss of a row is the sum over `blocks` of the block's weight times the squared error (numeric), the
    hinge loss on ±1 (binary, 0/1 in `inputs`) or the softmax cross-entropy (categorical, one-hot in
    `inputs`; zero where the category is missing) of the linear output. The three inner layers have the
    activation. `seed` sets the initial parameters and the order of the mini-batches.
    """
    inputs = np.asarray(inputs)
    if inputs.ndim != 2 or len(inputs) < 1:
        raise InvalidInputError(f"inputs must have shape (n, D) with n of 1 or more, got {inputs.shape}.")
    D = inputs.shape[1]
    spec = NetworkSpec(
        (D, hidden, n_dims, hidden, D),
        activation,
        _reconstruction_loss(blocks, block_weights, D),
        steps,
        batch_size,
        learning_rate,
    )
    rows = inputs[None]
    return _checked(
        pick(train_networks(spec, rows, rows, np.ones((1, 1, len(inputs))), [[seed]], seed), 0, 0)
    )


def train_autoencoder_on_blocks(
    open_blocks: Callable[[], Iterable[FloatArray]],
    block_sizes: Sequence[int],
    blocks: Sequence[Block],
    block_weights: Sequence[float],
    *,
    hidden: int,
    n_dims: int,
    activation: str = "sigmoid",
    steps: int = 10_000,
    batch_size: int = 100,
    learning_rate: float = 0.001,
    seed: int,
) -> Layers:
    """`train_autoencoder` for inputs in blocks of rows (n_i, D), of the sizes `block_sizes`.

    `open_blocks` returns them from the first on. It is called as often as the mini-batches of all `steps`
    need, at least once; each block gets its share of the steps, with mini-batches of its own rows, and
    Adam's moments carry over from block to block. A single block is trained on as in `train_autoencoder`.
    """
    n = sum(block_sizes)
    width = max(block.stop for block in blocks)
    loss = _reconstruction_loss(blocks, block_weights, width)
    spec = NetworkSpec(
        (width, hidden, n_dims, hidden, width), activation, loss, steps, batch_size, learning_rate
    )
    batch_size = min(batch_size, *block_sizes)
    passes = 1 if len(block_sizes) == 1 else -(-steps * batch_size // n)
    ends = np.cumsum(np.tile(block_sizes, passes))
    done = np.r_[0, [steps * int(end) // int(ends[-1]) for end in ends]]  # steps done after each block
    training = GradualTraining(spec, seed, max(block_sizes), int(np.diff(done).max()))
    number = 0
    for _ in range(passes):
        for inputs in open_blocks():
            n_steps = int(done[number + 1] - done[number])
            block_seed = integer_seed(seed, "block", number) if number else seed
            batches = batch_rows(len(inputs), batch_size, n_steps, block_seed)
            if batches is None:  # every step takes all rows
                batches = np.tile(np.arange(len(inputs), dtype=np.int32), (n_steps, 1))
            if n_steps:
                training.train(np.asarray(inputs, dtype=np.float32), batches)
            number += 1
    return _checked(training.layers())


def encode(params: Layers, inputs: FloatArray, activation: str = "sigmoid") -> FloatArray:
    """Z (n, d): activations of the middle layer for inputs (n, D)."""
    return run_layers(params[: len(params) // 2], activation, inputs, linear_end=False)


def _checked(layers: Layers) -> Layers:
    if not all_finite(layers):
        raise TrainingDivergedError(
            "the autoencoder's training diverged; lower learning_rate, or scale the columns."
        )
    return layers


def _reconstruction_loss(
    blocks: Sequence[Block], block_weights: Sequence[float], n_columns: int
) -> ReconstructionLoss:
    if len(blocks) != len(block_weights):
        raise InvalidInputError(f"got {len(blocks)} blocks but {len(block_weights)} block weights.")
    covered = sorted(column for block in blocks for column in range(block.start, block.stop))
    if covered != list(range(n_columns)):
        raise InvalidInputError(
            f"the blocks must cover each of the {n_columns} input columns once, they cover {covered}."
        )
    weights = [float(weight) for weight in block_weights]
    if not all(np.isfinite(weight) and weight >= 0 for weight in weights):
        raise InvalidInputError(f"block weights must be finite and not negative, got {weights}.")
    columns: dict[str, list[tuple[int, float]]] = {"numeric": [], "binary": []}
    categorical = []
    for block, weight in zip(blocks, weights, strict=True):
        if block.kind == "categorical":
            categorical.append((block.start, block.stop, weight))
        else:
            columns[block.kind] += [(column, weight) for column in range(block.start, block.stop)]
    return ReconstructionLoss(tuple(columns["numeric"]), tuple(columns["binary"]), tuple(categorical))
