"""What a network is, before any data: layer sizes, activation, loss and how it is trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moew.exceptions import InvalidInputError, MoewError

Float32Array = NDArray[np.float32]
Layers = list[tuple[Float32Array, Float32Array]]  # of one network: W (out, in), b (out,) for each layer

ACTIVATIONS = ("sigmoid", "tanh", "relu", "identity")
LOSSES = ("logistic", "softmax", "sigmoid_cross_entropy", "hinge", "squared")


class TrainingDivergedError(MoewError, FloatingPointError):
    """Training ended with parameters that are not finite."""


@dataclass(frozen=True)
class ReconstructionLoss:
    """The autoencoder's loss: which columns are compared how, and how much each block counts.

    `numeric` and `binary` hold (column, weight), `categorical` holds (start, stop, weight).
    """

    numeric: tuple[tuple[int, float], ...]
    binary: tuple[tuple[int, float], ...]
    categorical: tuple[tuple[int, int, float], ...]


@dataclass(frozen=True)
class NetworkSpec:
    """A multilayer network D → … → C and its training.

    `sizes` are (D, hidden …, C); the last layer is linear. `batch_size=None` takes all rows in every step.
    """

    sizes: tuple[int, ...]
    activation: str = "sigmoid"
    loss: str | ReconstructionLoss = "squared"
    steps: int = 10_000
    batch_size: int | None = 100
    learning_rate: float = 0.001

    def __post_init__(self) -> None:
        if len(self.sizes) < 2 or any(not _is_count(size, 1) for size in self.sizes):
            raise InvalidInputError(
                f"layer sizes must be at least two whole numbers of 1 or more, got {self.sizes!r}."
            )
        check_activation(self.activation)
        if isinstance(self.loss, str) and self.loss not in LOSSES:
            raise InvalidInputError(f"loss must be one of {LOSSES}, got {self.loss!r}.")
        if not _is_count(self.steps, 1):
            raise InvalidInputError(f"steps must be a whole number of 1 or more, got {self.steps!r}.")
        if self.batch_size is not None and not _is_count(self.batch_size, 1):
            raise InvalidInputError(
                f"batch_size must be 1 or more, or None for all rows; got {self.batch_size!r}."
            )
        if not (np.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise InvalidInputError(f"learning_rate must be a positive number, got {self.learning_rate!r}.")


def layer_widths(hidden: Any) -> tuple[int, ...]:
    """The widths of the hidden layers as ints, or an error that shows how to write them."""
    listed = isinstance(hidden, Sequence) or (isinstance(hidden, np.ndarray) and hidden.ndim == 1)
    if not listed or any(not _is_count(width, 1) for width in hidden):
        raise InvalidInputError(
            "hidden must hold the width of each hidden layer, whole numbers of 1 or more, such as (20, 10), "
            f"(20,) for one layer or () for none; got {hidden!r}."
        )
    return tuple(int(width) for width in hidden)


def check_activation(activation: str) -> None:
    """Raise unless `activation` is the name of one."""
    if activation not in ACTIVATIONS:
        raise InvalidInputError(f"activation must be one of {ACTIVATIONS}, got {activation!r}.")


def _is_count(value: Any, least: int) -> bool:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return bool(whole and value >= least)
