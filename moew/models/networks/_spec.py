"""The settings of a network: layer sizes, activation, loss and how it is trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moew.exceptions import InvalidInputError

Float32Array = NDArray[np.float32]
Layers = list[tuple[Float32Array, Float32Array]]  # of one network: W (out, in), b (out,) for each layer

ACTIVATIONS = ("sigmoid", "tanh", "relu", "identity")
LOSSES = ("logistic", "softmax", "sigmoid_cross_entropy", "hinge", "squared")
PRECISIONS = ("float32", "tf32", "bfloat16")


@dataclass(frozen=True)
class ReconstructionLoss:
    """The autoencoder's loss: the kind of loss and the weight of each column.

    `numeric` and `binary` hold (column, weight), `categorical` holds (start, stop, weight).
    """

    numeric: tuple[tuple[int, float], ...]
    binary: tuple[tuple[int, float], ...]
    categorical: tuple[tuple[int, int, float], ...]


@dataclass(frozen=True)
class EarlyStopping:
    """Stop a network when the loss of held-out rows no longer improves.

    `share` of the rows is held out, and their loss is checked every `check_every` steps. After `patience`
    checks in a row without a new lowest loss the network stops; its best parameters are kept.
    """

    share: float
    patience: int = 10
    check_every: int = 100

    def __post_init__(self) -> None:
        if isinstance(self.share, bool) or not (_is_number(self.share) and 0 < self.share < 1):
            raise InvalidInputError(
                "early_stopping must be False, or the share of the rows to hold out, above 0 and below 1, "
                f"such as 0.1; got {self.share!r}.",
                argument="early_stopping",
            )
        for name in ("patience", "check_every"):
            if not is_count(getattr(self, name), 1):
                raise InvalidInputError(
                    f"{name} must be a whole number of 1 or more, got {getattr(self, name)!r}.", argument=name
                )


@dataclass(frozen=True)
class NetworkSpec:
    """A multilayer network D → … → C and its training.

    `sizes` are (D, hidden …, C); the last layer is linear. `batch_size=None` takes all rows in every step.
    The weights W of all layers (not the biases) add l2/2·|W|² to the mean loss. `precision` is that of the
    matrix products.
    """

    sizes: tuple[int, ...]
    activation: str = "sigmoid"
    loss: str | ReconstructionLoss = "squared"
    steps: int = 10_000
    batch_size: int | None = 100
    learning_rate: float = 0.001
    l2: float = 0.0
    early_stopping: EarlyStopping | None = None
    precision: str = "float32"

    def __post_init__(self) -> None:
        if len(self.sizes) < 2 or any(not is_count(size, 1) for size in self.sizes):
            raise InvalidInputError(
                f"layer sizes must be at least two whole numbers of 1 or more, got {self.sizes!r}."
            )
        check_activation(self.activation)
        if isinstance(self.loss, str) and self.loss not in LOSSES:
            raise InvalidInputError(f"loss must be one of {LOSSES}, got {self.loss!r}.", argument="loss")
        if not is_count(self.steps, 1):
            raise InvalidInputError(
                f"steps must be a whole number of 1 or more, got {self.steps!r}.", argument="steps"
            )
        if self.batch_size is not None and not is_count(self.batch_size, 1):
            raise InvalidInputError(
                f"batch_size must be 1 or more, or None for all rows; got {self.batch_size!r}.",
                argument="batch_size",
            )
        if not (np.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise InvalidInputError(
                f"learning_rate must be a positive number, got {self.learning_rate!r}.",
                argument="learning_rate",
            )
        if not (_is_number(self.l2) and 0 <= self.l2 < np.inf):
            raise InvalidInputError(f"l2 must be a number of 0 or more, got {self.l2!r}.", argument="l2")
        if self.precision not in PRECISIONS:
            raise InvalidInputError(
                f"precision must be one of {PRECISIONS}, got {self.precision!r}.", argument="precision"
            )


def layer_widths(hidden: Any) -> tuple[int, ...]:
    """The widths of the hidden layers as ints, or an error that shows how to write them."""
    listed = isinstance(hidden, Sequence) or (isinstance(hidden, np.ndarray) and hidden.ndim == 1)
    if not listed or any(not is_count(width, 1) for width in hidden):
        raise InvalidInputError(
            "hidden must hold the width of each hidden layer, whole numbers of 1 or more, such as (20, 10), "
            f"(20,) for one layer or () for none; got {hidden!r}.",
            argument="hidden",
        )
    return tuple(int(width) for width in hidden)


def check_activation(activation: str) -> None:
    """Raise unless `activation` is a known name."""
    if activation not in ACTIVATIONS:
        raise InvalidInputError(
            f"activation must be one of {ACTIVATIONS}, got {activation!r}.", argument="activation"
        )


def is_count(value: Any, least: int) -> bool:
    """Whether `value` is a whole number of `least` or more."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return bool(whole and value >= least)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating)
