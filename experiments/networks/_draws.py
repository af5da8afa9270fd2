"""Random draws for many repeats at once, on the device: there are too many numbers to send there.

JAX's generator gives the same numbers on every device. `_batches` draws on the host, for one search.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import jax
import jax.numpy as jnp

from moew.models.networks._layers import Parameters


@partial(jax.jit, static_argnums=(1, 2, 3, 4))
def draw_batches(key: jax.Array, n_repeats: int, n_rows: int, batch: int, steps: int) -> jax.Array:
    """Row numbers (steps, R, b) of the mini-batches, drawn for each repeat.

    Each repeat shuffles its rows, cuts them into mini-batches and shuffles again when they are used up, so
    that every mini-batch by itself is a uniform draw without replacement.
    """
    per_epoch = n_rows // batch
    n_epochs = -(-steps // per_epoch)

    def epoch(key: jax.Array) -> jax.Array:
        orders = jax.vmap(lambda k: jax.random.permutation(k, n_rows))(jax.random.split(key, n_repeats))
        used = orders[:, : per_epoch * batch].astype(jnp.int32)
        return jnp.swapaxes(used.reshape(n_repeats, per_epoch, batch), 0, 1)

    rows: jax.Array = jax.lax.map(epoch, jax.random.split(key, n_epochs))
    return rows.reshape(-1, n_repeats, batch)[:steps]


@partial(jax.jit, static_argnums=(1, 2, 3))
def draw_layers(key: jax.Array, sizes: tuple[int, ...], n_repeats: int, n_networks: int) -> Parameters:
    """Initial parameters of R × K networks: Glorot uniform weights, zero biases."""
    layers = []
    for i, (n_in, n_out) in enumerate(pairwise(sizes)):
        limit = (6.0 / (n_in + n_out)) ** 0.5
        shape = (n_repeats, n_networks, n_out, n_in)
        W = jax.random.uniform(jax.random.fold_in(key, i), shape, minval=-limit, maxval=limit)
        layers.append((W, jnp.zeros(shape[:3])))
    return tuple(layers)
