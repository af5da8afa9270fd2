"""Trains one network block by block, on rows that do not fit into memory together."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from moew.models.networks import _adam
from moew.models.networks._engine import pick, refuse_after_fork
from moew.models.networks._initial import initial_layers
from moew.models.networks._layers import ACTIVATIONS
from moew.models.networks._losses import row_losses
from moew.models.networks._spec import Float32Array, Layers, NetworkSpec


class GradualTraining:
    """A network that reconstructs its inputs; parameters and Adam's moments carry over from block to block.

    Arrays keep their shapes (blocks of up to `block_rows` rows, up to `block_steps` mini-batches each), so
    that the program is compiled once.
    """

    def __init__(self, spec: NetworkSpec, seed: int, block_rows: int, block_steps: int) -> None:
        refuse_after_fork()
        self.spec = spec
        self.params: Any = tuple((W[None, None], b[None, None]) for W, b in initial_layers(spec, seed))
        self.adam: Any = _adam.start(self.params, 1, 1)
        self.block_rows = block_rows
        self.block_steps = block_steps

    def train(self, inputs: Float32Array, batches: NDArray[np.int32]) -> None:
        """Do one step on each mini-batch; `batches` are row numbers (steps, b) of inputs (n, D)."""
        # New arrays each time: JAX may still be reading those of the last block.
        rows = np.zeros((self.block_rows, inputs.shape[1]), dtype=np.float32)
        rows[: len(inputs)] = inputs
        padded = np.zeros((self.block_steps, batches.shape[1]), dtype=np.int32)
        padded[: len(batches)] = batches
        self.params, self.adam = _advance(
            self.spec.activation,
            self.spec.loss,
            self.params,
            self.adam,
            rows,
            padded,
            np.int32(len(batches)),
            np.float32(self.spec.learning_rate),
        )

    def layers(self) -> Layers:
        """The parameters as they are now."""
        return pick(self.params, 0, 0)


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
