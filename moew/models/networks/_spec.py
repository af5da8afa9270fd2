"""The settings of a network: layer sizes, activation, loss and how it is trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moew._util.checks import COUNT, POSITIVE, Wanted, check_parameters, one_of
from moew._util.numbers import is_number
from moew.exceptions import InvalidInputError

Float32Array = NDArray[np.float32]
Layers = list[tuple[Float32Array, Float32Array]]  # of one network: W (out, in), b (out,) for each layer

ACTIVATIONS = ("sigmoid", "tanh", "relu", "identity")
LOSSES = ("logistic", "softmax", "sigmoid_cross_entropy", "hinge", "squared")
PRECISIONS = ("float32", "tf32", "bfloat16")

ACTIVATION = Wanted(f"must be one of {ACTIVATIONS}", ACTIVATIONS.__contains__)
_LOSS = Wanted(f"must be one of {LOSSES}", lambda loss: not isinstance(loss, str) or loss in LOSSES)
_BATCH_SIZE = Wanted("must be 1 or more, or None for all rows", COUNT.or_none().fits)
_PENALTY = Wanted("must be a number of 0 or more", lambda value: is_number(value) and value >= 0)
_PRECISION = Wanted(f"must be one of {PRECISIONS}", PRECISIONS.__contains__)
WARM_START = Wanted(
    "must be False or 'uniform'", lambda value: value is False or one_of("uniform").fits(value)
)
WARM_STEPS = Wanted("must be a whole number of 1 or more, or None for a fifth of steps", COUNT.or_none().fits)


@dataclass(frozen=True)
class ReconstructionLoss:
    """The autoencoder's loss: (column, weight) of numeric and binary columns, (start, stop, weight) of
    categories."""

    numeric: tuple[tuple[int, float], ...]
    binary: tuple[tuple[int, float], ...]
    categorical: tuple[tuple[int, int, float], ...]


@dataclass(frozen=True)
class EarlyStopping:
    """Hold out a share of the rows, and stop a network after `patience` checks of their loss in a row, one
    every `check_every` steps, without a new lowest one; its best parameters are kept."""

    share: float
    patience: int = 10
    check_every: int = 100

    def __post_init__(self) -> None:
        if not (is_number(self.share) and 0 < self.share < 1):
            raise InvalidInputError(
                "early_stopping must be False, or the share of the rows to hold out, above 0 and below 1, "
                f"such as 0.1; got {self.share!r}.",
                argument="early_stopping",
            )
        check_parameters(self, patience=COUNT, check_every=COUNT)


@dataclass(frozen=True)
class NetworkSpec:
    """A multilayer network of `sizes` (D, hidden …, C) with a linear last layer, and its training, as in
    `NetworkClassifier`."""

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
        if len(self.sizes) < 2 or not all(map(COUNT.fits, self.sizes)):
            raise InvalidInputError(
                f"layer sizes must be at least two whole numbers of 1 or more, got {self.sizes!r}."
            )
        check_parameters(
            self,
            activation=ACTIVATION,
            loss=_LOSS,
            steps=COUNT,
            batch_size=_BATCH_SIZE,
            learning_rate=POSITIVE,
            l2=_PENALTY,
            precision=_PRECISION,
        )


def layer_widths(hidden: Any) -> tuple[int, ...]:
    """The widths of the hidden layers as ints, or an error that shows how to write them."""
    listed = isinstance(hidden, Sequence) or (isinstance(hidden, np.ndarray) and hidden.ndim == 1)
    if not listed or not all(map(COUNT.fits, hidden)):
        raise InvalidInputError(
            "hidden must hold the width of each hidden layer, whole numbers of 1 or more, such as (20, 10), "
            f"(20,) for one layer or () for none; got {hidden!r}.",
            argument="hidden",
        )
    return tuple(int(width) for width in hidden)
