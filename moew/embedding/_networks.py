"""Embeddings by networks: the paper's autoencoder of (x, y), and a network that predicts y."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.utils import check_random_state

from moew._util.checks import Wanted, check_parameters
from moew._util.seeds import draw_seed
from moew._util.state import Loads, each, has_state, load_state, unpack_array
from moew.data import TabularEncoder, TargetEncoder, check_same_columns
from moew.embedding._base import BaseEmbedding, side_by_side
from moew.exceptions import InvalidInputError
from moew.types import Features, FloatArray, Labels, Task

if TYPE_CHECKING:
    from moew.models.networks import NetworkSpec

_TRADE_OFF = Wanted("must be between 0 and 1", lambda value: 0 <= value <= 1)
_DIMS = Wanted("must be at least 1 or None", lambda value: value is None or value >= 1)
_MOST_DIMS = 8  # the paper uses 3 to 10; each dimension more makes the search over alpha harder


class NetworkEmbedding(BaseEmbedding):
    """Base of embeddings that train a network."""

    _speck = 1e-5  # networks compute in single precision
    random_state: Any

    def _seed(self) -> int:
        return draw_seed(check_random_state(self.random_state))


@has_state
@dataclass(eq=False, repr=False)
class AutoencoderEmbedding(NetworkEmbedding):
    """Embeds (x, y), encoded, by the middle layer of an autoencoder D → h → d → h → D, trained on

        Σ { λ L_x(z(x, y), x) + (1 − λ) L_y(z(x, y), y) }

    with squared loss for numbers, hinge loss for two values, cross-entropy for categories; L_x is the mean
    over the features, so that many features do not outweigh the label. `trade_off` is λ; `n_dims` is d
    (None: the number of encoded columns, at most 8), `hidden` is h. The defaults are the paper's, with
    numbers scaled and Z standardised; the authors' scripts do neither: `scale=False, standardize=False`.
    """

    _learned: ClassVar[Loads] = {
        "encoder_": TabularEncoder.from_state,
        "target_": TargetEncoder.from_state,
        "layers_": each(lambda layer: tuple(map(unpack_array, layer))),
    }

    n_dims: int | None = None
    hidden: int = 100
    trade_off: float = 0.5
    activation: str = "sigmoid"
    steps: int = 10_000
    batch_size: int = 100
    learning_rate: float = 0.001
    scale: bool = True
    standardize: bool = True
    random_state: Any = None

    def _learn(self, X: Features, y: Labels, task: Task) -> None:
        from moew.models.networks import train_autoencoder  # loads JAX, as only training needs it

        check_parameters(self, trade_off=_TRADE_OFF, n_dims=_DIMS)
        self.encoder_ = TabularEncoder(self.scale).fit(X)
        self.target_ = TargetEncoder(self.scale).fit(y, task)
        self.layers_ = train_autoencoder(self._network(), self._inputs(X, y), self._seed())

    def _network(self) -> NetworkSpec:
        from moew.models.networks import autoencoder_spec

        x_blocks, label = self.encoder_.blocks_, self.target_.block_
        width = x_blocks[-1].stop  # of x alone; y's columns come after it
        n_columns = width + label.stop - label.start
        return autoencoder_spec(
            [*x_blocks, replace(label, start=width + label.start, stop=width + label.stop)],
            [*[self.trade_off / len(x_blocks)] * len(x_blocks), 1 - self.trade_off],
            hidden=self.hidden,
            n_dims=self.n_dims or min(_MOST_DIMS, n_columns),
            activation=self.activation,
            steps=self.steps,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
        )

    def _embed(self, X: Features, y: Labels) -> FloatArray:
        from moew.models.networks import encode

        return encode(self.layers_, self._inputs(X, y), self.activation)

    def _inputs(self, X: Features, y: Labels) -> FloatArray:
        return side_by_side(self.encoder_.transform(X), self.target_.transform(y))


@has_state
@dataclass(eq=False, repr=False)
class DiscriminativeEmbedding(NetworkEmbedding):
    """Embeds by the last hidden layer of a network trained to predict y from x, and by the label.

    `hidden` are the widths of the hidden layers; the last one is the number of dimensions that come
    from x. The default of 5 keeps alpha small (6 dimensions for two classes). `label=False` leaves the
    label out, which makes the weights a function of x alone.
    """

    _learned: ClassVar[Loads] = {"network_": load_state, "target_": TargetEncoder.from_state}

    hidden: Sequence[int] = (20, 5)
    label: bool = True
    steps: int = 10_000
    batch_size: int = 100
    learning_rate: float = 0.001
    scale: bool = True
    standardize: bool = True
    random_state: Any = None

    def _learn(self, X: Features, y: Labels, task: Task) -> None:
        from moew.models.networks import NetworkClassifier, NetworkRegressor, layer_widths  # loads JAX

        if len(layer_widths(self.hidden)) == 0:
            raise InvalidInputError(
                "hidden must name at least one layer: the last one is the embedding.", argument="hidden"
            )
        network = NetworkClassifier if task == "classification" else NetworkRegressor
        self.network_ = network(
            hidden=tuple(self.hidden),
            steps=self.steps,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            scale=self.scale,
            random_state=self._seed(),
        ).fit(X, y)
        self.target_ = TargetEncoder(self.scale).fit(y, task)

    def _embed(self, X: Features, y: Labels) -> FloatArray:
        encoder = self.network_.encoder_
        check_same_columns(X, encoder.names_, len(encoder.columns_), "the rows to embed")
        last_layer: FloatArray = self.network_.hidden_representation(X)
        return side_by_side(last_layer, self.target_.transform(y)) if self.label else last_layer
