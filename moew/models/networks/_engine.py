"""R × K networks trained in one compiled loop.

R repeats have their own rows and labels (or share them), the K networks of a repeat share them and differ in
their example weights and initial parameters. Rows are put on the device once, and mini-batches are gathered
there. Initial parameters and held-out rows are drawn by NumPy, whose generators give the same numbers on
every device, whatever is trained together.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from moew.exceptions import InvalidInputError, MoewError
from moew.models._shared import batch_rows
from moew.models.networks._layers import Parameters, products_on
from moew.models.networks._loop import Batches, Rates, Recipe, train_all_steps, train_until_stopped
from moew.models.networks._spec import Float32Array, Layers, NetworkSpec
from moew.types import IntArray


class TrainingRows(NamedTuple):
    """Training rows on a device, X (R or 1, n, D), Y (R or 1, n, C), those held out, and mini-batches; `kept`
    and `held` are the row numbers of the two parts."""

    X: Any
    Y: Any
    held_x: Any
    held_y: Any
    batches: Any  # (steps, R or 1, b), or None for all rows
    kept: IntArray
    held: IntArray
    device: Any


def prepare_rows(spec: NetworkSpec, X: Any, Y: Any, batches: Any, device: Any) -> TrainingRows:
    """Put X (R or 1, n, D) and Y (R or 1, n, C) on the device, some rows held out for early stopping."""
    X, Y = _float32(X), _float32(Y)
    stopping = spec.early_stopping
    kept, held = split_rows(X.shape[1], None if stopping is None else stopping.share)
    if np.ndim(batches) == 0:
        batches = batch_rows(len(kept), spec.batch_size, spec.steps, batches)
        batches = None if batches is None else batches[:, None]
    parts = (X, Y, None, None) if stopping is None else (X[:, kept], Y[:, kept], X[:, held], Y[:, held])
    X, Y, held_x, held_y, batches = jax.device_put((*parts, batches), device)
    return TrainingRows(X, Y, held_x, held_y, batches, kept, held, device)


def train_on(spec: NetworkSpec, rows: TrainingRows, W: Any, start: Parameters) -> Parameters:
    """Train with the weights W (R, K, n) of all rows, from the parameters `start` of R × K networks."""
    params = jax.device_put(start, rows.device)
    W = _float32(W)
    recipe, rates = recipe_for(spec, rows.device.platform)
    if spec.early_stopping is None:
        data = Batches(rows.X, rows.Y, jax.device_put(W, rows.device), rows.batches)
        steps = spec.steps if rows.batches is None else None  # else the number of mini-batches
        trained: Parameters = train_all_steps(recipe, steps, params, data, rates)
        return trained
    kept_W, held_W = jax.device_put((W[:, :, rows.kept], W[:, :, rows.held]), rows.device)
    data = Batches(rows.X, rows.Y, kept_W, rows.batches)
    held = (rows.held_x, rows.held_y, held_W)
    numbers = (spec.steps, spec.early_stopping.check_every, spec.early_stopping.patience)
    best: Parameters = train_until_stopped(recipe, params, data, rates, held, *map(np.int32, numbers))[0]
    return best


def recipe_for(spec: NetworkSpec, platform: str) -> tuple[Recipe, Rates]:
    """What the compiled program depends on, and the numbers that it is given."""
    products = products_on(platform, spec.precision)
    recipe = Recipe(spec.activation, spec.loss, products, spec.l2 > 0, in_place=platform == "cpu")
    return recipe, Rates(np.float32(spec.learning_rate), np.float32(spec.l2))


@cache  # a forked process inherits the value
def _process_of_first_use() -> int:
    return os.getpid()


def refuse_after_fork() -> None:
    """Raise where the process was forked after JAX ran: JAX's threads are gone, and it would hang."""
    if _process_of_first_use() != os.getpid():
        raise MoewError(
            "this process was forked from one in which networks were trained before, and JAX, which trains "
            "them, does not survive a fork; use joblib's 'loky' or 'threading' backend instead of "
            "'multiprocessing', or the start method 'spawn'."
        )


def _float32(array: Any) -> Any:
    """The array as float32; it stays in NumPy or on its device."""
    return array.astype(jnp.float32) if isinstance(array, jax.Array) else np.asarray(array, np.float32)


def stack(layers: list[list[Layers]]) -> Parameters:
    """Stack the layers of R × K networks into one W (R, K, out, in) and b (R, K, out) for each layer."""
    return tuple(
        (
            np.stack([[network[depth][0] for network in row] for row in layers]),
            np.stack([[network[depth][1] for network in row] for row in layers]),
        )
        for depth in range(len(layers[0][0]))
    )


def pick(params: Parameters, repeat: int, network: int) -> Layers:
    """The layers of one network, as new NumPy arrays."""
    return [(np.array(W[repeat, network]), np.array(b[repeat, network])) for W, b in params]


def all_finite(layers: Sequence[tuple[Float32Array, Float32Array]]) -> bool:
    """Whether every parameter of one network is a finite number."""
    return all(bool(np.isfinite(W).all() and np.isfinite(b).all()) for W, b in layers)


HELD_OUT_SEED = 1


def split_rows(n: int, held_share: float | None) -> tuple[IntArray, IntArray]:
    """Rows to train on and rows to hold out for early stopping, in order; the same for all candidates."""
    if held_share is None:
        return np.arange(n), np.arange(0)
    n_held = round(held_share * n)
    if not 0 < n_held < n:
        raise InvalidInputError(
            f"early_stopping={held_share:g} of {n} rows leaves no row to hold out or none to train on; give "
            "more rows or another share, or set early_stopping=False.",
            argument="early_stopping",
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
