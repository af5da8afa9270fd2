"""Networks of several searches side by side: R repeats × K networks trained in one program.

A repeat has its own rows (or all share them), mini-batches, initial parameters and weights; repeats that
differ only in these are one compiled program. The rows stay on the device, and only predictions come back.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from experiments.networks import gpu
from experiments.networks._draws import draw_batches, draw_layers
from moew.exceptions import InvalidInputError
from moew.models.networks._devices import choose_devices, memory_bytes
from moew.models.networks._engine import prepare_rows, refuse_after_fork
from moew.models.networks._layers import ACTIVATIONS, Parameters, Products, outputs
from moew.models.networks._spec import NetworkSpec, ReconstructionLoss
from moew.types import Array, FloatArray, IntArray

_ORDER = 1_000  # number of its random stream; those of the layers begin at 0
_FORWARD_SHARE = 0.05  # of the device's memory that one forward pass may take


def name_of_device(device: str | None) -> str:
    """The name of the chosen device, such as "cpu" or "NVIDIA H200"."""
    return str(choose_devices(device)[0].device_kind)


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


@dataclass(frozen=True)
class PlacedRows:
    """Rows X (R or 1, m, D) of R repeats on a device."""

    X: Any

    def of_repeat(self, repeat: int) -> RepeatRows:
        """The rows of one repeat, as the networks of that repeat take them."""
        return RepeatRows(self, repeat)


@dataclass(frozen=True)
class RepeatRows:
    """The rows of one repeat, which are not sent anywhere: its networks find them on the device."""

    placed: PlacedRows
    repeat: int

    @property
    def shape(self) -> tuple[int, int]:
        """(m, D)"""
        return int(self.placed.X.shape[1]), int(self.placed.X.shape[2])


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
                    raise InvalidInputError(
                        "batch_size must be a number where mini-batches are to be drawn.",
                        argument="batch_size",
                    )
                key = jax.random.fold_in(self._key, 0)
                batches = draw_batches(key, n_repeats, X.shape[1], spec.batch_size, spec.steps)
        rows = prepare_rows(spec, X, Y, batches, self._device)
        self._rows, self._train_on = gpu.best_program(spec, rows)

    def train(self, weights: Any, draw: int) -> Parameters:
        """Train K networks of each repeat with `weights` (R, K, n).

        `draw` is the number of the batch of candidates; each batch has its own initial parameters.
        """
        K = weights.shape[1]
        with jax.default_device(self._device):
            key = jax.random.fold_in(self._key, 1 + draw)
            start = draw_layers(key, self.spec.sizes, self.n_repeats, K)
            rows = self._rows._replace(batches=self.mini_batches(draw))
            return self._train_on(self.spec, rows, weights, start)

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

    def place(self, X: FloatArray) -> PlacedRows:
        """Put rows (R or 1, m, D) on the device, to predict them many times."""
        return PlacedRows(jax.device_put(np.asarray(X, np.float32), self._device))

    def outputs(self, params: Parameters, rows: PlacedRows) -> FloatArray:
        """Linear outputs (R, K, m, C) of rows."""
        return np.concatenate([np.asarray(part) for part in self._forward(params, rows.X)], axis=2)

    def largest_outputs(self, params: Parameters, rows: PlacedRows) -> IntArray:
        """Which of the C outputs is the largest (R, K, m), of rows."""
        largest = [
            np.asarray(jnp.argmax(part, axis=3).astype(jnp.int16)) for part in self._forward(params, rows.X)
        ]
        return np.concatenate(largest, axis=2)

    def hidden(self, params: Parameters, rows: PlacedRows, depth: int) -> FloatArray:
        """Activations (R, K, m, h) of the `depth`-th layer, such as an autoencoder's middle."""
        activate = ACTIVATIONS[self.spec.activation]
        values = [np.asarray(activate(part)) for part in self._forward(params[:depth], rows.X)]
        return np.concatenate(values, axis=2)

    def _forward(self, params: Parameters, X: Any) -> Any:
        """Yield linear outputs for pieces of rows that fit into memory."""
        R, K = params[0][0].shape[:2]
        room = min(memory_bytes(self._device), 2.0**37) * _FORWARD_SHARE
        rows = max(1, int(room / (8 * R * K * max(W.shape[2] for W, _ in params))))
        for start in range(0, X.shape[1], rows):
            with jax.default_device(self._device):
                yield forward(self.spec, params, X[:, start : start + rows])


@dataclass(frozen=True)
class TrainedNetworks:
    """R × K trained networks; predictions on the same rows are computed for all of them together.

    `classes` (C,) are what classifiers predict, None for regressors.
    """

    networks: RepeatedNetworks
    params: Parameters
    classes: Array | None
    _computed: dict[tuple[str, int], Any] = field(default_factory=dict, repr=False, compare=False)

    def model(self, repeat: int, k: int) -> RepeatedModel | RepeatedRegressor:
        """The k-th network of a repeat, as a fitted model of scikit-learn's kind."""
        kind = RepeatedRegressor if self.classes is None else RepeatedModel
        return kind(self, repeat, k)

    def of_all(self, what: str, placed: PlacedRows) -> Any:
        """ "outputs" or "largest_outputs" of all networks on the rows, computed once."""
        if (what, id(placed)) not in self._computed:
            self._computed[what, id(placed)] = getattr(self.networks, what)(self.params, placed)
        return self._computed[what, id(placed)]


class RepeatedRegressor:
    """One of R × K networks that were trained for a number."""

    def __init__(self, trained: TrainedNetworks, repeat: int, k: int) -> None:
        self._trained, self._place = trained, (repeat, k)

    def predict(self, X: RepeatRows) -> FloatArray:
        """Predictions (m,)."""
        outputs: FloatArray = self._trained.of_all("outputs", X.placed)[self._place][:, 0]
        return outputs


class RepeatedModel(RepeatedRegressor):
    """One of R × K networks that were trained for classes."""

    @property
    def classes_(self) -> Array:
        """The classes (C,)."""
        return np.asarray(self._trained.classes)

    def decision_function(self, X: RepeatRows) -> FloatArray:
        """Linear outputs: (m,) for two classes, positive for the second one; (m, C) for more."""
        outputs: FloatArray = self._trained.of_all("outputs", X.placed)[self._place]
        return outputs[:, 0] if len(self.classes_) == 2 else outputs

    def predict(self, X: RepeatRows) -> Array:
        """The class (m,) with the largest output."""
        if len(self.classes_) == 2:
            return self.classes_[(self.decision_function(X) > 0).astype(np.intp)]
        largest: IntArray = self._trained.of_all("largest_outputs", X.placed)[self._place]
        return self.classes_[largest]


def autoencoder_codes(
    spec: NetworkSpec,
    inputs: FloatArray,
    two_values: Collection[int],
    trade_off: float,
    *,
    n_repeats: int,
    seed: int,
    device: str | None = None,
) -> FloatArray:
    """Middle layers Z (R, n, d) of autoencoders of (x, y), one for each of R repeats, trained in one program.

    Parameters
    ----------
    spec : layers D-h-d-h-D and how they are trained; its loss is not looked at
    inputs : (R or 1, n, D), the label last
    two_values : the columns with hinge loss; others have squared loss
    trade_off : the paper's λ of λ·L_x + (1 − λ)·L_y, where L_x is the mean over the features, so that at 0.5
        the label counts as much as all of them together
    """
    D = inputs.shape[2]
    weights = [trade_off / (D - 1)] * (D - 1) + [1 - trade_off]
    squared = tuple((column, weights[column]) for column in range(D) if column not in two_values)
    hinge = tuple((column, weights[column]) for column in range(D) if column in two_values)
    spec = replace(spec, loss=ReconstructionLoss(squared, hinge, ()))
    networks = RepeatedNetworks(spec, inputs, inputs, n_repeats, seed, device=device)
    params = networks.train(np.ones((n_repeats, 1, inputs.shape[1]), np.float32), 0)
    return networks.hidden(params, networks.place(inputs), depth=2)[:, 0]
