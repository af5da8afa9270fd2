"""Losses of single rows. Arrays are feature-major: the rows of the mini-batch are the last axis."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from moew.models.networks._spec import ReconstructionLoss


def row_losses(loss: str | ReconstructionLoss, out: jax.Array, y: jax.Array) -> jax.Array:
    """Losses (R, K, b) of linear outputs (R, K, C, b) against targets (R, C, b).

    Targets are numbers for "squared", 0/1 for all others: one column for two classes, one-hot for more.
    """
    y = y[:, None]
    if isinstance(loss, ReconstructionLoss):
        return _reconstruction(loss, out, y)
    if loss == "squared":
        return jnp.sum((out - y) ** 2, axis=2)
    if loss == "hinge":
        return jnp.sum(_hinge(out, y), axis=2)
    if loss == "sigmoid_cross_entropy" or out.shape[2] == 1:
        return jnp.sum(_sigmoid_cross_entropy(out, y), axis=2)
    return _softmax_cross_entropy(out, y)


def _hinge(out: jax.Array, y: jax.Array) -> jax.Array:
    return jax.nn.relu(1.0 - (2.0 * y - 1.0) * out)


def _sigmoid_cross_entropy(out: jax.Array, y: jax.Array) -> jax.Array:
    # log(1 + exp(out)) − y·out, in the form that cannot overflow
    return jax.nn.relu(out) - y * out + jnp.log1p(jnp.exp(-jnp.abs(out)))


def _softmax_cross_entropy(out: jax.Array, y: jax.Array) -> jax.Array:
    """−Σ y log softmax(out): 0 for a row whose one-hot is all zeros (a missing category)."""
    return -jnp.sum(y * jax.nn.log_softmax(out, axis=2), axis=2)


def _reconstruction(loss: ReconstructionLoss, out: jax.Array, y: jax.Array) -> jax.Array:
    """The autoencoder's loss (Section 3.2, not numbered there): a weighted sum over the blocks of columns."""
    total = jnp.zeros((*out.shape[:2], out.shape[3]), dtype=out.dtype)
    for columns, one in ((loss.numeric, lambda o, t: (o - t) ** 2), (loss.binary, _hinge)):
        if columns:
            where = np.array([column for column, _ in columns])
            weights = np.array([weight for _, weight in columns], dtype=np.float32)
            total += jnp.sum(weights[:, None] * one(out[:, :, where], y[:, :, where]), axis=2)
    for start, stop, weight in loss.categorical:
        total += weight * _softmax_cross_entropy(out[:, :, start:stop], y[:, :, start:stop])
    return total


def masked_row_losses(loss: str, out: jax.Array, y: jax.Array, n_outputs: int) -> jax.Array:
    """Losses (b,) of one network's outputs (b, C), of which only the first `n_outputs` are real."""
    real = jnp.arange(out.shape[1])[None, :] < n_outputs
    if loss == "squared":
        each = (out - y) ** 2
    elif loss == "hinge":
        each = _hinge(out, y)
    elif loss == "sigmoid_cross_entropy" or n_outputs == 1:
        each = _sigmoid_cross_entropy(out, y)
    else:
        shifted = jnp.where(real, out, -jnp.inf)
        shifted = shifted - lax.stop_gradient(jnp.max(shifted, axis=1, keepdims=True))
        log_total = jnp.log(jnp.sum(jnp.exp(shifted), axis=1, keepdims=True))
        each = -y * (jnp.where(real, shifted, 0.0) - log_total)
    return jnp.sum(jnp.where(real, each, 0.0), axis=1)
