"""The forward pass of R × K networks and their losses, and that of one fitted network in NumPy.

Arrays of the R × K networks are feature-major: with (R, K, features, rows of the mini-batch) the first layer
of all K networks is one matrix product, and no activation is ever transposed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from scipy.special import expit

from moew.models.networks._spec import ACTIVATION, Float32Array, ReconstructionLoss
from moew.types import FloatArray

Parameters = tuple[tuple[Any, Any], ...]  # W (R, K, out, in), b (R, K, out) for each layer


class Products(NamedTuple):
    """How to compute matrix products: JAX's precision, and the bits that factors are rounded to before."""

    precision: Any = None
    mantissa_bits: int | None = None

    def __call__(self, contract: Callable[..., jax.Array], *factors: jax.Array) -> jax.Array:
        if self.mantissa_bits is not None:
            factors = tuple(lax.reduce_precision(factor, 8, self.mantissa_bits) for factor in factors)
        return contract(*factors, precision=self.precision)


def products_on(platform: str, precision: str) -> Products:
    """The products of this precision on "cpu" or a GPU; sums are always in float32. A CPU, which has only
    float32 products (JAX's default), imitates the shorter formats by rounding."""
    if platform == "cpu":
        return Products(None, {"float32": None, "tf32": 10, "bfloat16": 7}[precision])
    presets = lax.DotAlgorithmPreset
    known = {"tf32": presets.TF32_TF32_F32, "bfloat16": presets.BF16_BF16_F32}
    return Products(known.get(precision, lax.Precision.HIGHEST))


def outputs(activation: str, products: Products, params: Parameters, X: jax.Array) -> jax.Array:
    """Linear outputs (R, K, C, b) of rows X (R, b, D), or (1, b, D) where all repeats share them."""
    (W, b), *deeper = params
    R, K, width, n_in = W.shape
    # (R, K·width, D) × (R, b, D): the first layer of all K networks is one product; of all R × K where they
    # share the rows.
    groups = len(X)
    contract = partial(lax.dot_general, dimension_numbers=(((2,), (2,)), ((0,), (0,))))
    out: jax.Array = products(contract, W.reshape(groups, R // groups * K * width, n_in), X)
    out = out.reshape(R, K, width, -1) + b[..., None]
    for W, b in deeper:
        out = _layer_product(products, W, ACTIVATIONS[activation](out)) + b[..., None]
    return out


@jax.custom_vjp
def _sigmoid(x: jax.Array) -> jax.Array:
    return 0.5 * jnp.tanh(0.5 * x) + 0.5  # the same function by tanh, which is faster on a CPU


def _sigmoid_forward(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    a = _sigmoid(x)
    return a, a


def _sigmoid_backward(a: jax.Array, g: jax.Array) -> tuple[jax.Array]:
    return (g * a * (1.0 - a),)  # needs only the activation, which is kept anyway


_sigmoid.defvjp(_sigmoid_forward, _sigmoid_backward)

ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "sigmoid": _sigmoid,
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
    "identity": lambda x: x,
}

_Kept = tuple[jax.Array, jax.Array]


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _layer_product(products: Products, W: jax.Array, A: jax.Array) -> jax.Array:
    """(R, K, out, in) × (R, K, in, b): one small product for each network."""
    return products(jnp.matmul, W, A)


def _layer_product_forward(products: Products, W: jax.Array, A: jax.Array) -> tuple[jax.Array, _Kept]:
    return products(jnp.matmul, W, A), (W, A)


def _layer_product_backward(products: Products, kept: _Kept, g: jax.Array) -> _Kept:
    W, A = kept
    # Transposing the small W in memory first avoids XLA's slow path for a transposed left factor.
    turned = lax.optimization_barrier(jnp.swapaxes(W, 2, 3))  # type: ignore[no-untyped-call]
    return products(partial(jnp.einsum, "rkob,rkib->rkoi"), g, A), products(jnp.matmul, turned, g)


_layer_product.defvjp(_layer_product_forward, _layer_product_backward)


def row_losses(loss: str | ReconstructionLoss, out: jax.Array, y: jax.Array) -> jax.Array:
    """Losses (R, K, b) of linear outputs (R, K, C, b) against targets (R, C, b): numbers for "squared", 0/1
    for all others, one column for two classes, one-hot for more."""
    y = y[:, None]
    if isinstance(loss, ReconstructionLoss):
        return _reconstruction(loss, out, y)
    if loss == "squared":
        return jnp.sum((out - y) ** 2, axis=2)
    if loss == "hinge":
        return jnp.sum(hinge(out, y), axis=2)
    if loss == "sigmoid_cross_entropy" or out.shape[2] == 1:
        return jnp.sum(sigmoid_cross_entropy(out, y), axis=2)
    return _softmax_cross_entropy(out, y)


def hinge(out: jax.Array, y: jax.Array) -> jax.Array:
    """Hinge loss of each output, for targets 0/1."""
    return jax.nn.relu(1.0 - (2.0 * y - 1.0) * out)


def sigmoid_cross_entropy(out: jax.Array, y: jax.Array) -> jax.Array:
    """Cross-entropy of each output with its own sigmoid, for targets 0/1."""
    # log(1 + exp(out)) − y·out, in the form that cannot overflow
    return jax.nn.relu(out) - y * out + jnp.log1p(jnp.exp(-jnp.abs(out)))


def _softmax_cross_entropy(out: jax.Array, y: jax.Array) -> jax.Array:
    """−Σ y log softmax(out): 0 for a row whose one-hot is all zeros (a missing category)."""
    return -jnp.sum(y * jax.nn.log_softmax(out, axis=2), axis=2)


def _reconstruction(loss: ReconstructionLoss, out: jax.Array, y: jax.Array) -> jax.Array:
    """The autoencoder's loss (Section 3.2, not numbered there): a weighted sum over the blocks of columns."""
    total = jnp.zeros((*out.shape[:2], out.shape[3]), dtype=out.dtype)
    for columns, one in ((loss.numeric, lambda o, t: (o - t) ** 2), (loss.binary, hinge)):
        if columns:
            where = np.array([column for column, _ in columns])
            weights = np.array([weight for _, weight in columns], dtype=np.float32)
            total += jnp.sum(weights[:, None] * one(out[:, :, where], y[:, :, where]), axis=2)
    for start, stop, weight in loss.categorical:
        total += weight * _softmax_cross_entropy(out[:, :, start:stop], y[:, :, start:stop])
    return total


_ROWS_AT_ONCE = 65_536  # bounds the memory of the hidden layers of a prediction
_IN_NUMPY: dict[str, Callable[[FloatArray], FloatArray]] = {
    "sigmoid": expit,
    "tanh": np.tanh,
    "relu": lambda values: np.maximum(values, 0.0),
    "identity": lambda values: values,
}


def run_layers(
    layers: Sequence[tuple[Float32Array, Float32Array]],
    activation: str,
    inputs: FloatArray,
    *,
    linear_end: bool,
) -> FloatArray:
    """Values (n, out) of the last of one network's layers, without its activation for `linear_end`; in NumPy
    and float64, so that a row's prediction hardly depends on the rows beside it."""
    ACTIVATION.check("activation", activation)
    chunks = []
    for start in range(0, max(len(inputs), 1), _ROWS_AT_ONCE):
        values: FloatArray = np.asarray(inputs[start : start + _ROWS_AT_ONCE], dtype=np.float64)
        for depth, (W, b) in enumerate(layers):
            values = values @ W.T.astype(np.float64) + b
            if depth < len(layers) - 1 or not linear_end:
                values = _IN_NUMPY[activation](values)
        chunks.append(values)
    return chunks[0] if len(chunks) == 1 else np.concatenate(chunks)
