"""The paper's autoencoder, D → h → d → h → D: trained on all rows at once, or on blocks of them in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from moew._util.seeds import integer_seed
from moew.data import Block
from moew.exceptions import InvalidInputError, TrainingDivergedError
from moew.models._shared import batch_rows
from moew.models.networks import _adam
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
from moew.models.networks._layers import ACTIVATIONS, row_losses, run_layers
from moew.models.networks._spec import Layers, NetworkSpec, ReconstructionLoss
from moew.types import FloatArray


def autoencoder_spec(
    n_columns: int,
    blocks: Sequence[Block],
    block_weights: Sequence[float],
    *,
    hidden: int,
    n_dims: int,
    **training: Any,
) -> NetworkSpec:
    """The network D → h → d → h → D of an autoencoder of D encoded columns; `training` as in `NetworkSpec`.

    The loss of a row is the sum over `blocks` of the block's weight times the squared error (numeric), the
    hinge loss on ±1 (binary, 0/1 in the inputs) or the softmax cross-entropy (categorical, one-hot in the
    inputs; zero where the category is missing) of the linear output. The three inner layers have the
    activation.
    """
    sizes = (n_columns, hidden, n_dims, hidden, n_columns)
    return NetworkSpec(sizes, loss=_reconstruction_loss(blocks, block_weights, n_columns), **training)


def train_autoencoder(spec: NetworkSpec, inputs: FloatArray, seed: int) -> Layers:
    """Train on inputs (n, D); return W (out, in) and b (out,) of the four layers D → h → d → h → D.

    `seed` sets the initial parameters and the order of the mini-batches.
    """
    inputs = np.asarray(inputs)
    if inputs.ndim != 2 or len(inputs) < 1:
        raise InvalidInputError(f"inputs must have shape (n, D) with n of 1 or more, got {inputs.shape}.")
    refuse_after_fork()
    rows = prepare_rows(spec, inputs[None], inputs[None], seed, choose_devices(None)[0])
    start = stack([[initial_layers(spec, seed)]])
    return _checked(pick(train_on(spec, rows, np.ones((1, 1, len(inputs))), start), 0, 0))


def train_autoencoder_on_blocks(
    spec: NetworkSpec, open_blocks: Callable[[], Iterable[FloatArray]], block_sizes: Sequence[int], seed: int
) -> Layers:
    """`train_autoencoder` for inputs in blocks of rows (n_i, D), of the sizes `block_sizes`.

    `open_blocks` returns them from the first on. It is called as often as the mini-batches of all steps
    need, at least once; each block gets its share of the steps, with mini-batches of its own rows, and
    Adam's moments carry over from block to block. A single block is trained on as in `train_autoencoder`.
    """
    n, steps = sum(block_sizes), spec.steps
    batch_size = min(block_sizes) if spec.batch_size is None else min(spec.batch_size, *block_sizes)
    passes = 1 if len(block_sizes) == 1 else -(-steps * batch_size // n)
    ends = np.cumsum(np.tile(block_sizes, passes))
    done = np.r_[0, [steps * int(end) // int(ends[-1]) for end in ends]]  # steps done after each block
    refuse_after_fork()
    params: Any = stack([[initial_layers(spec, seed)]])
    adam: Any = _adam.start(params, 1, 1)
    number = 0
    for _ in range(passes):
        for inputs in open_blocks():
            n_steps = int(done[number + 1] - done[number])
            block_seed = integer_seed(seed, "block", number) if number else seed
            batches = batch_rows(len(inputs), batch_size, n_steps, block_seed)
            if batches is None:  # every step takes all rows
                batches = np.tile(np.arange(len(inputs), dtype=np.int32), (n_steps, 1))
            if n_steps:
                # All blocks have the same shapes, so that the program is compiled once.
                params, adam = _advance(
                    spec.activation,
                    spec.loss,
                    params,
                    adam,
                    _padded(np.asarray(inputs), max(block_sizes), np.float32),
                    _padded(batches, int(np.diff(done).max()), np.int32),
                    np.int32(n_steps),
                    np.float32(spec.learning_rate),
                )
            number += 1
    return _checked(pick(params, 0, 0))


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


def _padded(values: NDArray[Any], length: int, dtype: Any) -> NDArray[Any]:
    """The values with zeros up to this length, in a new array: JAX may still be reading the last block's."""
    padded = np.zeros((length, *values.shape[1:]), dtype=dtype)
    padded[: len(values)] = values
    return padded


@partial(jax.jit, static_argnums=(0, 1))
def _advance(
    activation: str,
    loss: Any,
    params: Any,
    adam: Any,
    X: jax.Array,
    batches: jax.Array,
    steps: jax.Array,
    learning_rate: jax.Array,
) -> tuple[Any, Any]:
    """Do `steps` of Adam on rows X (n, D), with the first `steps` mini-batches of `batches` (…, b)."""
    active = jnp.ones((1, 1), dtype=bool)

    def mean_loss(params: Any, x: jax.Array) -> jax.Array:
        return jnp.mean(row_losses(loss, _outputs(activation, params, x), jnp.swapaxes(x, 1, 2)))

    def step(number: jax.Array, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        params, adam = carry
        x = jnp.take(X, batches[number], axis=0, mode="clip")[None]
        return _adam.update(params, jax.grad(mean_loss)(params, x), adam, learning_rate, active)

    trained: tuple[Any, Any] = lax.fori_loop(0, steps, step, (params, adam))
    return trained


def _outputs(activation: str, params: Any, x: jax.Array) -> jax.Array:
    """Linear outputs (1, 1, D, b) of rows x (1, b, D), feature-major as the losses expect them."""
    out = jnp.swapaxes(x, 1, 2)[None]
    for depth, (W, b) in enumerate(params):
        out = ACTIVATIONS[activation](out) if depth else out
        out = jnp.matmul(W, out, precision=lax.Precision.HIGHEST) + b[..., None]
    return out
