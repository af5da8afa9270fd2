"""Many searches of one experiment at once: R repeats × K networks, all on the device.

The paper repeats every experiment 100 times. A repeat has its own rows (or all share them), mini-batches,
initial parameters and candidates; repeats that differ only in these are one compiled program. Weights are
computed on the device from the candidates, and only outputs come back.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from moew.exceptions import InvalidInputError
from moew.models.networks._devices import choose_devices, memory_bytes
from moew.models.networks._draws import draw_batches, draw_layers
from moew.models.networks._engine import forward, prepare_rows, refuse_after_fork, train_on
from moew.models.networks._layers import ACTIVATIONS, Parameters
from moew.models.networks._spec import NetworkSpec
from moew.types import FloatArray, IntArray

_ORDER, _ROW_WEIGHTS = 1_000, 1_001  # numbers of their random streams; those of the layers begin at 0
_ROWS_AT_ONCE_BYTES = 0.05  # share of the device's memory that one forward pass may take


class RepeatedNetworks:
    """Networks of R repeats on X (R, n, D) and Y (R, n, C), either with 1 in place of R where all share it.

    `batches` are row numbers (steps, R or 1, b) of mini-batches; None draws them for each repeat, and gives
    each batch of candidates another order. `seed` sets all random draws, the same on every device.
    """

    def __init__(
        self,
        spec: NetworkSpec,
        X: FloatArray,
        Y: FloatArray,
        n_repeats: int,
        seed: int,
        *,
        batches: IntArray | None = None,
        device: str | None = None,
    ) -> None:
        refuse_after_fork()
        if {len(X), len(Y)} - {1, n_repeats}:
            raise InvalidInputError(f"X and Y must hold 1 or {n_repeats} repeats, got {len(X)} and {len(Y)}.")
        self.spec, self.n_repeats = spec, n_repeats
        self._device = choose_devices(device)[0]
        self._own_order = batches is None
        with jax.default_device(self._device):
            self._key = jax.random.key(seed)
            if batches is None:
                if spec.batch_size is None:
                    raise InvalidInputError("batch_size must be a number where mini-batches are to be drawn.")
                key = jax.random.fold_in(self._key, 0)
                batches = draw_batches(key, n_repeats, X.shape[1], spec.batch_size, spec.steps)
        self._rows = prepare_rows(spec, X, Y, batches, self._device)

    def train(self, weights: Any, draw: int) -> Parameters:
        """Train K networks of each repeat with `weights` (R, K, n), an array or what `weights_of` returned.

        `draw` is the number of the batch of candidates; each batch has its own initial parameters.
        """
        K = weights.shape[1]
        with jax.default_device(self._device):
            key = jax.random.fold_in(self._key, 1 + draw)
            start = draw_layers(key, self.spec.sizes, self.n_repeats, K)
            rows = self._rows._replace(batches=self.mini_batches(draw))
            return train_on(self.spec, rows, weights, start)

    def mini_batches(self, draw: int) -> Any:
        """Row numbers (steps, R or 1, b) of the mini-batches in the order of this draw, on the device.

        Mini-batches in the same order make the outputs of all networks of a repeat too high or too low alike.
        With one order for all candidates, a repeat could never choose a model without that error.
        """
        if not self._own_order:
            return self._rows.batches
        with jax.default_device(self._device):
            key = jax.random.fold_in(jax.random.fold_in(self._key, 1 + draw), _ORDER)
            order = jax.random.permutation(key, self.spec.steps)
            return jnp.take(self._rows.batches, order, axis=0)

    def weights_of(self, Z: FloatArray, alphas: FloatArray, base_weights: FloatArray | None = None) -> Any:
        """π · σ(zᵀα) (R, K, n) of Z (R or 1, n, d), alphas (R, K, d) and π (R or 1, n), on the device.

        Training brings the weights of every mini-batch to mean one, so the constant c of eq. 3 is left out.
        """
        with jax.default_device(self._device):
            return _weights(
                *(None if a is None else jnp.asarray(a, jnp.float32) for a in (Z, alphas, base_weights))
            )

    def uniform_weights(self, K: int, base_weights: FloatArray | None = None) -> Any:
        """Base weights π (R, K, n), or ones."""
        n = self._rows.X.shape[1]
        with jax.default_device(self._device):
            pi = jnp.ones((1, n)) if base_weights is None else jnp.asarray(base_weights, jnp.float32)
            return jnp.broadcast_to(pi[:, None], (self.n_repeats, K, n))

    def random_weights(self, K: int, draw: int, low: float, high: float) -> Any:
        """Random weights (R, K, n), uniform from low to high, on the device."""
        shape = (self.n_repeats, K, self._rows.X.shape[1])
        with jax.default_device(self._device):
            key = jax.random.fold_in(jax.random.fold_in(self._key, 1 + draw), _ROW_WEIGHTS)
            return jax.random.uniform(key, shape, minval=low, maxval=high)

    def place(self, X: FloatArray) -> Any:
        """Put rows (R or 1, m, D) on the device, to predict them many times."""
        return jax.device_put(np.asarray(X, np.float32), self._device)

    def outputs(self, params: Parameters, X: Any) -> FloatArray:
        """Linear outputs (R, K, m, C) of rows X (R or 1, m, D)."""
        return np.concatenate([np.asarray(part) for part in self._forward(params, X)], axis=2)

    def classes(self, params: Parameters, X: Any) -> IntArray:
        """The class with the largest output (R, K, m) for rows X (R or 1, m, D)."""
        largest = [
            np.asarray(jnp.argmax(part, axis=3).astype(jnp.int16)) for part in self._forward(params, X)
        ]
        return np.concatenate(largest, axis=2)

    def hidden(self, params: Parameters, X: Any, depth: int) -> FloatArray:
        """Activations (R, K, m, h) of the `depth`-th layer, such as an autoencoder's middle."""
        values = [
            np.asarray(ACTIVATIONS[self.spec.activation](part)) for part in self._forward(params[:depth], X)
        ]
        return np.concatenate(values, axis=2)

    def _forward(self, params: Parameters, X: Any) -> Any:
        """Yield linear outputs for pieces of rows that fit into memory."""
        R, K = params[0][0].shape[:2]
        room = min(memory_bytes(self._device), 2.0**37) * _ROWS_AT_ONCE_BYTES
        rows = max(1, int(room / (8 * R * K * max(W.shape[2] for W, _ in params))))
        for start in range(0, X.shape[1], rows):
            with jax.default_device(self._device):
                yield forward(self.spec, params, X[:, start : start + rows])


@jax.jit
def _weights(Z: jax.Array, alphas: jax.Array, base_weights: jax.Array | None) -> jax.Array:
    sigma = jax.nn.sigmoid(
        jnp.einsum("rnd,rkd->rkn", jnp.broadcast_to(Z, (len(alphas), *Z.shape[1:])), alphas)
    )
    return sigma if base_weights is None else sigma * base_weights[:, None]
