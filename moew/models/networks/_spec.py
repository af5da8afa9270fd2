"""The settings of a network: layer sizes, activation, loss and how it is trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moew._util.checks import COUNT, POSITIVE, Wanted, check_parameters
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
_WARM_START = Wanted(
    "must be False or 'uniform'",
    lambda value: value is False or (isinstance(value, str) and value == "uniform"),
)
_WARM_STEPS = Wanted(
    "must be a whole number of 1 or more, or None for a fifth of steps", COUNT.or_none().fits
)


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
        if not (is_number(self.share) and 0 < self.share < 1):
            raise InvalidInputError(
                "early_stopping must be False, or the share of the rows to hold out, above 0 and below 1, "
                f"such as 0.1; got {self.share!r}.",
                argument="early_stopping",
            )
        check_parameters(self, patience=COUNT, check_every=COUNT)


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


def check_warm_start(warm_start: Any, warm_steps: Any) -> None:
    """Raise unless these two settings of a network can be used."""
    _WARM_START.check("warm_start", warm_start)
    _WARM_STEPS.check("warm_steps", warm_steps)
