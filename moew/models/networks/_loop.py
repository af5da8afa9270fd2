"""The compiled loops over the mini-batches: all steps, or until every network has stopped improving."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from moew.models.networks import _adam
from moew.models.networks._layers import Parameters, Products, outputs, row_losses
from moew.weighting import mini_batch_divisor


class Recipe(NamedTuple):
    """What the compiled program depends on besides the shapes. Numbers are arguments, so that another
    learning rate, penalty or patience needs no new compilation."""

    activation: str
    loss: Any
    products: Products
    penalised: bool
    in_place: bool = False  # see `_adam.update`


class Batches(NamedTuple):
    """Training rows X (R or 1, n, D), Y (R or 1, n, C) and W (R, K, n), and the row numbers (steps, R or 1,
    b) of their mini-batches, None for all rows in each step."""

    X: Any
    Y: Any
    W: Any
    rows: Any


class Rates(NamedTuple):
    """Adam's learning rate, and the factor of the squared weights in the penalty."""

    learning_rate: Any
    l2: Any


_Carry = tuple[Parameters, _adam.AdamState]
_Step = Callable[[_Carry, Any, Any], _Carry]


@partial(jax.jit, static_argnums=(0, 1))
def train_all_steps(
    recipe: Recipe, steps: int | None, params: Parameters, data: Batches, rates: Rates
) -> Parameters:
    """Train on all mini-batches, or `steps` times on all rows where there are none."""
    step = _make_step(recipe, data, rates)
    start = (params, _adam.start(params, *data.W.shape[:2]))
    (params, _), _ = lax.scan(lambda carry, rows: (step(carry, rows, None), None), start, data.rows, steps)
    return params


@partial(jax.jit, static_argnums=0)
def train_until_stopped(
    recipe: Recipe,
    params: Parameters,
    data: Batches,
    rates: Rates,
    held: tuple[Any, Any, Any],
    steps: Any,
    check_every: Any,
    patience: Any,
) -> tuple[Parameters, jax.Array]:
    """Train at most `steps`, each network until `patience` checks in a row on the held X (R, m, D), Y (R, m,
    C) and W (R, K, m) show no new best. Returns each network's best parameters and number of steps (R, K)."""
    step = _make_step(recipe, data, rates)
    held_X, held_Y, held_W = held
    held_Y = jnp.swapaxes(held_Y, 1, 2)
    held_W, _ = _to_sum_one(held_W)

    def inner(i: jax.Array, carry: _Carry, running: jax.Array) -> _Carry:
        return step(carry, None if data.rows is None else data.rows[i], running)

    def block(state: Any) -> Any:
        done, carry, best, best_loss, failed_checks, taken = state
        running = failed_checks < patience
        end = jnp.minimum(done + check_every, steps)
        carry = lax.fori_loop(done, end, partial(inner, running=running), carry)
        losses = row_losses(
            recipe.loss, outputs(recipe.activation, recipe.products, carry[0], held_X), held_Y
        )
        loss = jnp.sum(held_W * losses, axis=2)
        better = running & (loss < best_loss)  # never where it is NaN
        best = jax.tree.map(partial(_choose, better), carry[0], best)
        failed_checks = jnp.where(better, 0, failed_checks + running)
        best_loss = jnp.where(better, loss, best_loss)
        return end, carry, best, best_loss, failed_checks, jnp.where(running, end, taken)

    none = jnp.zeros(data.W.shape[:2], jnp.int32)
    carry = (params, _adam.start(params, *data.W.shape[:2]))
    start = (jnp.int32(0), carry, params, jnp.full(none.shape, jnp.inf), none, none)
    _, (params, _), best, best_loss, _, taken = lax.while_loop(
        lambda state: (state[0] < steps) & jnp.any(state[4] < patience), block, start
    )
    # A network without any finite loss has diverged; it is returned as it is, for the caller to notice.
    return jax.tree.map(partial(_choose, best_loss < jnp.inf), best, params), taken


def _make_step(recipe: Recipe, data: Batches, rates: Rates) -> _Step:
    X, Y = data.X, data.Y
    W = jnp.swapaxes(data.W, 1, 2)  # (R, n, K): the weights of a mini-batch are b pieces of memory

    def mean_loss(params: Parameters, x: jax.Array, y: jax.Array, w: jax.Array) -> jax.Array:
        out = outputs(recipe.activation, recipe.products, params, x)
        # the networks share nothing, so the gradient of the sum contains that of each
        return jnp.sum(w * row_losses(recipe.loss, out, jnp.swapaxes(y, 1, 2)))

    def step(carry: _Carry, rows: jax.Array | None, running: jax.Array | None) -> _Carry:
        params, state = carry
        x, y, w = (a if rows is None else _take(a, rows) for a in (X, Y, W))
        w, active = _to_sum_one(jnp.swapaxes(w, 1, 2))
        gradients = jax.grad(mean_loss)(params, x, y, w)
        if recipe.penalised:  # the derivative of l2/2·|W|²
            gradients = tuple(
                (dW + rates.l2 * W, db) for (dW, db), (W, _) in zip(gradients, params, strict=True)
            )
        if running is not None:
            active &= running
        return _adam.update(params, gradients, state, rates.learning_rate, active, recipe.in_place)

    return step


def _take(array: jax.Array, rows: jax.Array) -> jax.Array:
    """The rows (R or 1, b) of an array (R or 1, n, …): (R or 1, b, …)."""
    if rows.shape[0] == 1:
        return jnp.take(array, rows[0], axis=1, mode="clip")
    if array.shape[0] == 1:
        return jnp.take(array[0], rows, axis=0, mode="clip")
    return jax.vmap(lambda a, chosen: jnp.take(a, chosen, axis=0, mode="clip"))(array, rows)


def _to_sum_one(w: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Weights (R, K, b) with sum one, and (R, K) where there is any weight at all."""
    total = jnp.sum(w, axis=2, keepdims=True)
    return w / mini_batch_divisor(total, jnp.where), total[:, :, 0] != 0


def _choose(first: jax.Array, yes: jax.Array, no: jax.Array) -> jax.Array:
    """`yes` for the networks where `first` (R, K), else `no` (R, K, …)."""
    return jnp.where(first.reshape(first.shape + (1,) * (yes.ndim - 2)), yes, no)
