"""Adam (Kingma and Ba, 2015, Algorithm 1) for R × K networks at once, each with its own step count."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


class AdamState(NamedTuple):
    """Moments with the shapes of the parameters, and updates done (R, K)."""

    first: Any
    second: Any
    n_updates: jax.Array


def start(params: Any, n_repeats: int, n_networks: int) -> AdamState:
    """The state before the first update."""
    zeros = jax.tree.map(jnp.zeros_like, params)
    return AdamState(zeros, zeros, jnp.zeros((n_repeats, n_networks), jnp.float32))


def update(
    params: Any, gradients: Any, state: AdamState, learning_rate: jax.Array, active: jax.Array
) -> tuple[Any, AdamState]:
    """One step for the networks where `active` (R, K); all of the others stays as it is."""
    count = state.n_updates + active
    # Both bias corrections in one factor; 1 − β^0 = 0 only where nothing was updated yet, and is masked.
    correction_1 = 1.0 - BETA_1 ** jnp.maximum(count, 1.0)
    correction_2 = 1.0 - BETA_2 ** jnp.maximum(count, 1.0)

    def keep(new: jax.Array, old: jax.Array) -> jax.Array:
        return jnp.where(_like(active, old), new, old)

    def step(p: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
        m_hat, v_hat = m / _like(correction_1, m), v / _like(correction_2, v)
        return keep(p - learning_rate * m_hat / (jnp.sqrt(v_hat) + EPSILON), p)

    first = jax.tree.map(lambda m, g: keep(BETA_1 * m + (1 - BETA_1) * g, m), state.first, gradients)
    second = jax.tree.map(lambda v, g: keep(BETA_2 * v + (1 - BETA_2) * g * g, v), state.second, gradients)
    return jax.tree.map(step, params, first, second), AdamState(first, second, count)


def _like(per_network: jax.Array, array: jax.Array) -> jax.Array:
    """(R, K) with as many axes of length one as it takes to multiply (R, K, …)."""
    return per_network.reshape(per_network.shape + (1,) * (array.ndim - 2))
