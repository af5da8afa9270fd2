"""Adam (Kingma and Ba, 2015, Algorithm 1) for R × K networks at once, each with its own step count."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


class AdamState(NamedTuple):
    """Moments with the shapes of the parameters, and the number of updates (R, K)."""

    first: Any
    second: Any
    n_updates: jax.Array


class Pace(NamedTuple):
    """What one update needs besides the gradient; `rate` and `epsilon` include both bias corrections."""

    active: Any
    rate: Any
    epsilon: Any


def start(params: Any, n_repeats: int, n_networks: int) -> AdamState:
    """The state before the first update."""
    first, second = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))
    return AdamState(first, second, jnp.zeros((n_repeats, n_networks), jnp.float32))


def pace(count: Any, learning_rate: Any, active: Any) -> Pace:
    """The pace of the `count`-th update; arrays of any shape, or single numbers."""
    count = jnp.maximum(count, 1.0)  # 0 only without any update so far, and none now
    root = jnp.sqrt(1.0 - BETA_2**count)
    return Pace(active, learning_rate * root / (1.0 - BETA_1**count), EPSILON * root)


def update_array(pace: Pace, p: Any, m: Any, v: Any, gradient: Any) -> tuple[Any, Any, Any]:
    """A parameter and its moments after the update; unchanged where it is not active."""
    new_m = BETA_1 * m + (1 - BETA_1) * gradient
    new_v = BETA_2 * v + (1 - BETA_2) * gradient * gradient
    keep = partial(jnp.where, pace.active)
    return keep(_moved(pace, p, new_m, new_v), p), keep(new_m, m), keep(new_v, v)


def _update_in_place(pace: Pace, p: Any, m: Any, v: Any, gradient: Any) -> tuple[Any, Any, Any]:
    """`update_array` for a CPU, where XLA would copy the old moments in every step if the parameter's loop
    read them, too: so the moments are written first."""
    _, m, v = update_array(pace, p, m, v, gradient)
    m, v = lax.optimization_barrier((m, v))  # type: ignore[no-untyped-call]
    return jnp.where(pace.active, _moved(pace, p, m, v), p), m, v


def _moved(pace: Pace, p: Any, m: Any, v: Any) -> Any:
    return p - pace.rate * m / (jnp.sqrt(v) + pace.epsilon)


def update(
    params: Any,
    gradients: Any,
    state: AdamState,
    learning_rate: Any,
    active: jax.Array,
    in_place: bool = False,
) -> tuple[Any, AdamState]:
    """One step for the networks where `active` (R, K); the others do not change. `in_place` gives the same
    numbers by loops that are faster on a CPU."""
    count = state.n_updates + active
    now = pace(count, learning_rate, active)
    change = _update_in_place if in_place else update_array

    def each(p: jax.Array, m: jax.Array, v: jax.Array, gradient: jax.Array) -> tuple[Any, Any, Any]:
        return change(Pace(*(_like(part, p) for part in now)), p, m, v, gradient)

    updated = jax.tree.map(each, params, state.first, state.second, gradients)
    layers, three = jax.tree.structure(params), jax.tree.structure((0, 0, 0))
    params, first, second = jax.tree.transpose(layers, three, updated)
    return params, AdamState(first, second, count)


def _like(per_network: jax.Array, array: jax.Array) -> jax.Array:
    """Reshape (R, K) with axes of length one, so that it can multiply (R, K, …)."""
    return per_network.reshape(per_network.shape + (1,) * (array.ndim - 2))
