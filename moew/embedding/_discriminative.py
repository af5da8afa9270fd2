"""The embedding that the paper's conclusion proposes: learned to predict y."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.utils import check_random_state

from moew._util.seeds import draw_seed
from moew._util.state import State, has_state, load_state
from moew.data import TargetEncoder, check_same_columns
from moew.embedding._base import BaseEmbedding, side_by_side
from moew.exceptions import InvalidInputError
from moew.types import FloatArray, Labels, Rows, Task


@has_state
class DiscriminativeEmbedding(BaseEmbedding):
    """Embeds by the last hidden layer of a network trained to predict y from x, and by the label.

    `hidden` are the widths of the hidden layers; the last one is the number of dimensions that come
    from x. The default of 5 keeps alpha small (6 dimensions for two classes). `label=False` leaves the
    label out, which makes the weights a function of x alone.
    """

    _speck = 1e-5  # networks compute in single precision

    def __init__(
        self,
        hidden: Sequence[int] = (20, 5),
        label: bool = True,
        steps: int = 10_000,
        batch_size: int = 100,
        learning_rate: float = 0.001,
        scale: bool = True,
        standardize: bool = True,
        random_state: Any = None,
    ) -> None:
        self.hidden = hidden
        self.label = label
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.scale = scale
        self.standardize = standardize
        self.random_state = random_state

    def _learn(self, X: Rows, y: Labels, task: Task) -> None:
        from moew.models.networks import NetworkClassifier, NetworkRegressor  # loads JAX
        from moew.models.networks._spec import layer_widths

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
            random_state=draw_seed(check_random_state(self.random_state)),
        ).fit(X, y)
        self.target_ = TargetEncoder(self.scale).fit(y, task)

    def _embed(self, X: Rows, y: Labels) -> FloatArray:
        encoder = self.network_.encoder_
        check_same_columns(X, encoder.names_, len(encoder.columns_), "the rows to embed")
        last_layer: FloatArray = self.network_.hidden_representation(X)
        return side_by_side(last_layer, self.target_.transform(y)) if self.label else last_layer

    def _fitted_content(self) -> State:
        return {"network": self.network_.state(), "target": self.target_.state()}

    def _restore(self, content: State, objects: Mapping[str, Any]) -> None:
        self.network_ = load_state(content["network"], objects)
        self.target_ = TargetEncoder.from_state(content["target"])
