"""R × K networks trained in one compiled loop.

R repeats have their own rows and labels (or share them), the K networks of a repeat share them and differ in
their example weights and initial parameters. Rows are put on the device once, and mini-batches are gathered
there.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from moew.exceptions import InvalidInputError, MoewError
from moew.models._shared import batch_rows
from moew.models.networks import gpu
from moew.models.networks._devices import choose_devices
from moew.models.networks._initial import initial_layers, split_rows
from moew.models.networks._layers import Parameters, Products, outputs, products_on
from moew.models.networks._loop import Batches, Rates, Recipe, train_all_steps, train_until_stopped
from moew.models.networks._spec import Float32Array, Layers, NetworkSpec
from moew.types import IntArray


class TrainingRows(NamedTuple):
    """Training rows on a device: X (R or 1, n, D), Y (R or 1, n, C), those held out, and mini-batches.

    `kept` and `held` are the row numbers of the two parts. Where `in_kernel`, X comes from `gpu.rows_for`.
    """

    X: Any
    Y: Any
    held_x: Any
    held_y: Any
    batches: Any  # (steps, R or 1, b), or None for all rows
    kept: IntArray
    held: IntArray
    device: Any
    in_kernel: bool


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
    in_kernel = gpu.fits(spec, len(kept), device.platform)
    if in_kernel:
        X = gpu.rows_for(spec, X)
    return TrainingRows(X, Y, held_x, held_y, batches, kept, held, device, in_kernel)


def train_on(spec: NetworkSpec, rows: TrainingRows, W: Any, start: Parameters) -> Parameters:
    """Train with the weights W (R, K, n) of all rows, from the parameters `start` of R × K networks."""
    params = jax.device_put(start, rows.device)
    W = _float32(W)
    products = products_on(rows.device.platform, spec.precision)
    recipe = Recipe(spec.activation, spec.loss, products, spec.l2 > 0, in_place=rows.device.platform == "cpu")
    rates = Rates(np.float32(spec.learning_rate), np.float32(spec.l2))
    if spec.early_stopping is None:
        data = Batches(rows.X, rows.Y, jax.device_put(W, rows.device), rows.batches)
        if rows.in_kernel:
            in_kernel: Parameters = gpu.train(spec, recipe, params, data, rates)
            return in_kernel
        steps = spec.steps if rows.batches is None else None  # else the number of mini-batches
        trained: Parameters = train_all_steps(recipe, steps, params, data, rates)
        return trained
    kept_W, held_W = jax.device_put((W[:, :, rows.kept], W[:, :, rows.held]), rows.device)
    data = Batches(rows.X, rows.Y, kept_W, rows.batches)
    held = (rows.held_x, rows.held_y, held_W)
    numbers = (spec.steps, spec.early_stopping.check_every, spec.early_stopping.patience)
    best: Parameters = train_until_stopped(recipe, params, data, rates, held, *map(np.int32, numbers))[0]
    return best


def forward(spec: NetworkSpec, params: Parameters, X: Any) -> jax.Array:
    """Linear outputs (R, K, n, C) of rows X (R or 1, n, D)."""
    refuse_after_fork()
    values: jax.Array = _forward(spec.activation, params, jnp.asarray(X, dtype=jnp.float32))
    return values


@partial(jax.jit, static_argnums=0)
def _forward(activation: str, params: Parameters, X: jax.Array) -> jax.Array:
    return jnp.swapaxes(_outputs(activation, params, X), 2, 3)


def _outputs(activation: str, params: Parameters, X: jax.Array) -> jax.Array:
    """Linear outputs (R, K, C, b) of rows X (R or 1, b, D), in full single precision on every device."""
    return outputs(activation, Products(lax.Precision.HIGHEST), params, X)


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


def pick(params: Parameters, repeat: int, network: int) -> Layers:
    """The layers of one network, as new NumPy arrays."""
    return [(np.array(W[repeat, network]), np.array(b[repeat, network])) for W, b in params]


def all_finite(layers: Sequence[tuple[Float32Array, Float32Array]]) -> bool:
    """Whether every parameter of one network is a finite number."""
    return all(bool(np.isfinite(W).all() and np.isfinite(b).all()) for W, b in layers)
