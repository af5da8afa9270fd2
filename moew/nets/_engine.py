"""R × K networks trained in one compiled loop.

R repeats have their own rows and labels, the K networks of a repeat share them and differ in their example
weights and first parameters. Inside, arrays are feature-major, (R, K, features, rows of the mini-batch):
then the first layer of all K networks is one matrix product, and no activation is ever transposed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from moew.exceptions import InvalidInputError, MoewError
from moew.nets import _adam
from moew.nets._batches import batch_rows, initial_layers
from moew.nets._losses import row_losses
from moew.nets._spec import Float32Array, Layers, NetworkSpec

Parameters = tuple[tuple[Any, Any], ...]  # W (R, K, out, in), b (R, K, out) for each layer


def train_networks(
    spec: NetworkSpec, X: Any, Y: Any, W: Any, seeds: Sequence[Sequence[int]], batch_seed: int
) -> Parameters:
    """Train R × K networks at once, in float32.

    X (R, n, D), Y (R, n, C), example weights W (R, K, n), seeds (R, K) of the first parameters; `batch_seed`
    sets the order of the mini-batches, which all R × K networks share. In every mini-batch the weights of
    each network are brought to mean one; a mini-batch whose weights are all zero does not touch the network.

    Returns, for each layer, W (R, K, out, in) and b (R, K, out). The program is compiled once for each set of
    shapes, layer sizes, activation and loss.
    """
    refuse_after_fork()
    X, Y, W = (jnp.asarray(array, dtype=jnp.float32) for array in (X, Y, W))
    return train_on(spec, X, Y, W, seeds, batch_rows(X.shape[1], spec.batch_size, spec.steps, batch_seed))


def train_on(
    spec: NetworkSpec, X: jax.Array, Y: jax.Array, W: jax.Array, seeds: Sequence[Sequence[int]], rows: Any
) -> Parameters:
    """`train_networks` on mini-batches that are drawn already: rows (steps, b), or None for all rows."""
    _check_shapes(spec, X, Y, W, np.shape(seeds))
    params = _stack([[initial_layers(spec, int(seed)) for seed in row] for row in seeds])
    steps = spec.steps if rows is None else None  # else the mini-batches say how many
    trained: Parameters = _train(
        spec.activation, spec.loss, steps, params, X, Y, W, rows, np.float32(spec.learning_rate)
    )
    return trained


def forward(spec: NetworkSpec, params: Parameters, X: Any) -> jax.Array:
    """Linear outputs (R, K, n, C) of rows X (R, n, D)."""
    refuse_after_fork()
    outputs: jax.Array = _forward(spec.activation, params, jnp.asarray(X, dtype=jnp.float32))
    return outputs


@cache  # kept in the memory that a forked process gets a copy of
def _process_of_first_use() -> int:
    return os.getpid()


def refuse_after_fork() -> None:
    """Raise where the process was forked since JAX ran: JAX's threads are gone, it would wait for ever."""
    if _process_of_first_use() != os.getpid():
        raise MoewError(
            "this process was forked from one in which networks were trained before, and JAX, which trains "
            "them, does not survive a fork; use joblib's 'loky' or 'threading' backend instead of "
            "'multiprocessing', or the start method 'spawn'."
        )


@partial(jax.jit, static_argnums=0)
def _forward(activation: str, params: Parameters, X: jax.Array) -> jax.Array:
    return jnp.swapaxes(_outputs(activation, params, X), 2, 3)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _train(
    activation: str,
    loss: Any,
    steps: int | None,
    params: Parameters,
    X: jax.Array,
    Y: jax.Array,
    W: jax.Array,
    rows: jax.Array | None,
    learning_rate: jax.Array,
) -> Parameters:
    """The loop over the mini-batches (steps, b), or over `steps` times all rows."""
    W = jnp.swapaxes(W, 1, 2)  # (R, n, K): now the weights of a mini-batch are b pieces of memory

    def mean_loss(params: Parameters, x: jax.Array, y: jax.Array, w: jax.Array) -> jax.Array:
        losses = row_losses(loss, _outputs(activation, params, x), jnp.swapaxes(y, 1, 2))
        return jnp.sum(w * losses)  # the networks share nothing, so one gradient serves all

    def step(carry: Any, batch: jax.Array | None) -> tuple[Any, None]:
        params, state = carry
        x, y, w = (a if batch is None else jnp.take(a, batch, axis=1, mode="clip") for a in (X, Y, W))
        w = jnp.swapaxes(w, 1, 2)
        total = jnp.sum(w, axis=2, keepdims=True)
        active = total[:, :, 0] != 0
        w = w / jnp.where(total == 0, 1.0, total)
        gradients = jax.grad(mean_loss)(params, x, y, w)
        return _adam.update(params, gradients, state, learning_rate, active), None

    start = (params, _adam.start(params, W.shape[0], W.shape[2]))
    (params, _), _ = lax.scan(step, start, rows, length=steps)
    return params


def _outputs(activation: str, params: Parameters, X: jax.Array) -> jax.Array:
    """Linear outputs (R, K, C, b) of rows X (R, b, D)."""
    (W, b), *deeper = params
    R, K, width, n_in = W.shape
    # (R, K·width, D) × (R, b, D): the first layer of all K networks is one product
    out: jax.Array = lax.dot_general(W.reshape(R, K * width, n_in), X, (((2,), (2,)), ((0,), (0,))))
    out = out.reshape(R, K, width, -1) + b[..., None]
    for W, b in deeper:
        out = _layer_product(W, _ACTIVATIONS[activation](out)) + b[..., None]
    return out


@jax.custom_vjp
def _sigmoid(x: jax.Array) -> jax.Array:
    return 0.5 * jnp.tanh(0.5 * x) + 0.5  # tanh is the faster one on CPU, and the same function


def _sigmoid_forward(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    a = _sigmoid(x)
    return a, a


def _sigmoid_backward(a: jax.Array, g: jax.Array) -> tuple[jax.Array]:
    return (g * a * (1.0 - a),)  # needs nothing but the activation, which is kept anyway


_sigmoid.defvjp(_sigmoid_forward, _sigmoid_backward)

_ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "sigmoid": _sigmoid,
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
    "identity": lambda x: x,
}


@jax.custom_vjp
def _layer_product(W: jax.Array, A: jax.Array) -> jax.Array:
    """(R, K, out, in) × (R, K, in, b): one small product for each network."""
    return jnp.matmul(W, A)


def _layer_product_forward(W: jax.Array, A: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return jnp.matmul(W, A), (W, A)


def _layer_product_backward(kept: tuple[jax.Array, jax.Array], g: jax.Array) -> tuple[jax.Array, jax.Array]:
    W, A = kept
    # Turning the small W first, for real, spares XLA's slow path for a product with a turned left side.
    turned = lax.optimization_barrier(jnp.swapaxes(W, 2, 3))  # type: ignore[no-untyped-call]
    return jnp.einsum("rkob,rkib->rkoi", g, A), jnp.matmul(turned, g)


_layer_product.defvjp(_layer_product_forward, _layer_product_backward)


def _stack(layers: list[list[Layers]]) -> Parameters:
    """Layers of R × K single networks as one W (R, K, out, in) and b (R, K, out) for each layer."""
    return tuple(
        (
            np.stack([[network[depth][0] for network in row] for row in layers]),
            np.stack([[network[depth][1] for network in row] for row in layers]),
        )
        for depth in range(len(layers[0][0]))
    )


def _check_shapes(
    spec: NetworkSpec, X: jax.Array, Y: jax.Array, W: jax.Array, seeds: tuple[int, ...]
) -> None:
    shapes = f"got X {X.shape}, Y {Y.shape}, W {W.shape}, seeds {seeds}"
    if not (X.ndim == Y.ndim == W.ndim == 3 and len(seeds) == 2):
        raise InvalidInputError(
            f"X (R, n, D), Y (R, n, C), W (R, K, n) and seeds (R, K) are needed; {shapes}."
        )
    (R, n, D), C, K = X.shape, Y.shape[2], W.shape[1]
    if Y.shape[:2] != (R, n) or W.shape != (R, K, n) or seeds != (R, K) or min(R, n, K) < 1:
        raise InvalidInputError(f"repeats, rows or networks do not fit together; {shapes}.")
    if (spec.sizes[0], spec.sizes[-1]) != (D, C):
        raise InvalidInputError(f"the network goes from {spec.sizes[0]} to {spec.sizes[-1]}; {shapes}.")


def pick(params: Parameters, repeat: int, network: int) -> Layers:
    """One network of many, as NumPy arrays of its own."""
    return [(np.array(W[repeat, network]), np.array(b[repeat, network])) for W, b in params]


def all_finite(layers: Sequence[tuple[Float32Array, Float32Array]]) -> bool:
    """Whether every parameter of one network is a finite number."""
    return all(bool(np.isfinite(W).all() and np.isfinite(b).all()) for W, b in layers)
