"""The forward pass of R × K networks, with the derivatives of its products. Arrays are feature-major.

With (R, K, features, rows of the mini-batch) the first layer of all K networks is one matrix product, and no
activation is ever transposed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

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
    """The products of this precision on "cpu" or a GPU; sums are always in float32.

    A CPU has only float32 products (JAX's default), so the shorter formats are imitated there by rounding:
    this gives the same kind of results as on a GPU, but no speed. On a GPU, JAX's default would be TF32.
    """
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
