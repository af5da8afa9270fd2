"""One network inside a program of the kernel: its layers in memory, and its backpropagation in registers.

A bias is the weight of a unit that is always one: rows have a column of ones after their features, and every
hidden layer a unit of ones after its own. Arrays in registers have power-of-two sides; what lies beyond the
real sizes is zero, and so are its gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas import triton as plgpu

from moew.models.networks import _adam
from moew.models.networks._layers import hinge, sigmoid_cross_entropy

_SIDE = 16  # the least side of a matrix product


def side(size: int) -> int:
    """Units of a layer of this size in registers: a power of two, with space for the unit of ones."""
    return max(_SIDE, 1 << size.bit_length())


def columns_in_memory(size: int) -> int:
    """Columns of an array with `size` inputs and the ones, filled up so that its rows are aligned."""
    return -(-(size + 1) // _SIDE) * _SIDE


@partial(jax.jit, static_argnums=1)
def with_ones(X: Any, dtype: str) -> Any:
    """Rows (R, n, D) followed by a column of ones, and zeros up to `columns_in_memory`."""
    D = X.shape[2]
    X = jnp.pad(X.astype(dtype), ((0, 0), (0, 0), (0, columns_in_memory(D) - D)))
    return X.at[..., D].set(1)


def joined(W: Any, b: Any) -> Any:
    """W (R, K, out, in) and b (R, K, out) as one array (R·K, out, columns): in + 1, then zeros."""
    V = jnp.concatenate([W, b[..., None]], axis=-1)
    V = jnp.pad(V, [(0, 0)] * 3 + [(0, columns_in_memory(W.shape[3]) - V.shape[3])])
    return V.reshape(-1, *V.shape[2:])


def parted(V: Any, W: Any) -> tuple[Any, Any]:
    """The inverse of `joined`: W and b, with the shape of W (R, K, out, in)."""
    V = V.reshape(*W.shape[:2], *V.shape[1:])
    return V[..., : W.shape[3]], V[..., W.shape[3]]


class Layer(NamedTuple):
    """One layer of one network in the GPU's memory: weights and moments (R·K, out, columns)."""

    refs: Sequence[Any]
    network: Any
    n_in: int
    n_out: int

    def load(self, ref: Any, first: Any, n: int) -> Any:
        """Columns `first` to `first + n`, (side(n_out), n)."""
        at, there = self._place(ref, first, n)
        return plgpu.load(at, mask=there, other=0.0)

    def weights(self) -> Any:
        return self.load(self.refs[0], 0, side(self.n_in))

    def update(self, pace: _adam.Pace, penalty: Any, first: Any, gradient: Any) -> None:
        """Update the columns from `first` on; `penalty` is the factor of the squared weights, or None."""
        n = gradient.shape[1]
        p, m, v = (self.load(ref, first, n) for ref in self.refs)
        if penalty is not None:  # not for the biases
            gradient = gradient + jnp.where(first + jnp.arange(n)[None, :] < self.n_in, penalty * p, 0.0)
        for ref, new in zip(self.refs, _adam.update_array(pace, p, m, v, gradient), strict=True):
            at, there = self._place(ref, first, n)
            plgpu.store(at, new.astype(ref.dtype), mask=there)

    def _place(self, ref: Any, first: Any, n: int) -> tuple[Any, Any]:
        i = jnp.arange(side(self.n_out))[:, None]
        j = first + jnp.arange(n)[None, :]
        return ref.at[self.network, i, j], (i < self.n_out) & (j < ref.shape[2])


class Network(NamedTuple):
    """What one network computes after the linear part of its first layer."""

    recipe: Any
    sizes: tuple[int, ...]
    interpreted: bool

    def dot(self, a: Any, b: Any) -> Any:
        precision = self.recipe.products.precision
        if precision == lax.DotAlgorithmPreset.BF16_BF16_F32:
            a, b, precision = a.astype(jnp.bfloat16), b.astype(jnp.bfloat16), None
        dimensions = (((1,), (0,)), ((), ()))
        return lax.dot_general(a, b, dimensions, precision=precision, preferred_element_type=jnp.float32)

    def backpropagate(self, z: Any, w: Any, y: Any, deeper: list[Any]) -> tuple[Any, list[Any]]:
        """Derivatives of the summed loss by z (b, h), and by the layers `deeper`, for weights w (b,)."""
        kept = []
        for V, size in zip(deeper, self.sizes[1:], strict=False):
            kept.append(self._activate(z, size))
            z = self.dot(kept[-1], V.T)
        g = jax.grad(lambda out: jnp.sum(w * _masked_row_losses(self.recipe.loss, out, y, self.sizes[-1])))(z)
        found: list[Any] = []
        for V, a, size in zip(deeper[::-1], kept[::-1], self.sizes[-2:0:-1], strict=True):
            found.insert(0, self.dot(g.T, a))
            g = self.dot(g, V) * self._slope(a, size)
        return g, found

    def _activate(self, z: Any, size: int) -> Any:
        """Activations (b, side): one in the unit after the last, zero beyond."""
        tanh = jnp.tanh if self.interpreted else plgpu.approx_tanh  # as precise as a product in TF32
        match self.recipe.activation:
            case "sigmoid":
                a = 0.5 * tanh(0.5 * z) + 0.5
            case "tanh":
                a = tanh(z)
            case "relu":
                a = jnp.maximum(z, 0.0)
            case _:
                a = z
        unit = jnp.arange(z.shape[1])[None, :]
        return jnp.where(unit < size, a, jnp.where(unit == size, 1.0, 0.0))

    def _slope(self, a: Any, size: int) -> Any:
        """The derivative of the activation function, from its value a."""
        match self.recipe.activation:
            case "sigmoid":
                slope = a * (1.0 - a)
            case "tanh":
                slope = 1.0 - a * a
            case "relu":
                slope = (a > 0).astype(jnp.float32)
            case _:
                slope = jnp.ones_like(a)
        return jnp.where(jnp.arange(a.shape[1])[None, :] < size, slope, 0.0)


def _masked_row_losses(loss: str, out: jax.Array, y: jax.Array, n_outputs: int) -> jax.Array:
    """Losses (b,) of one network's outputs (b, C), of which only the first `n_outputs` are real."""
    real = jnp.arange(out.shape[1])[None, :] < n_outputs
    if loss == "squared":
        each = (out - y) ** 2
    elif loss == "hinge":
        each = hinge(out, y)
    elif loss == "sigmoid_cross_entropy" or n_outputs == 1:
        each = sigmoid_cross_entropy(out, y)
    else:
        shifted = jnp.where(real, out, -jnp.inf)
        shifted = shifted - lax.stop_gradient(jnp.max(shifted, axis=1, keepdims=True))
        log_total = jnp.log(jnp.sum(jnp.exp(shifted), axis=1, keepdims=True))
        each = -y * (jnp.where(real, shifted, 0.0) - log_total)
    return jnp.sum(jnp.where(real, each, 0.0), axis=1)
