"""The paper's embedding: the middle layer of an autoencoder of (x, y) together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from moew._util.seeds import draw_seed
from moew._util.state import State, has_state, pack_array, unpack_array
from moew.data import TabularEncoder, TargetEncoder
from moew.data._chunks import CHUNK_ROWS, Column
from moew.embedding._base import BaseEmbedding, side_by_side
from moew.embedding._chunked import EncodedChunks, centre_spread_and_top, check_chunk_settings, even_sizes
from moew.exceptions import InvalidInputError
from moew.types import FloatArray, Labels, Rows, Task

_MOST_DIMS = 8  # the paper uses 3 to 10; each dimension more makes the search over alpha harder


@has_state
class AutoencoderEmbedding(BaseEmbedding):
    """Embeds (x, y), encoded, by the middle layer of an autoencoder D → h → d → h → D, trained on

        Σ { λ L_x(z(x, y), x) + (1 − λ) L_y(z(x, y), y) }

    with squared loss for numbers, hinge loss for two values, cross-entropy for categories; L_x is the mean
    over the features, so that many features do not outweigh the label. `trade_off` is λ; `n_dims` is d
    (None: the number of encoded columns, at most 8), `hidden` is h. The defaults are the paper's, with
    numbers scaled and Z standardised; the authors' scripts do neither: `scale=False, standardize=False`.
    """

    _speck = 1e-5  # networks compute in single precision

    def __init__(
        self,
        n_dims: int | None = None,
        hidden: int = 100,
        trade_off: float = 0.5,
        activation: str = "sigmoid",
        steps: int = 10_000,
        batch_size: int = 100,
        learning_rate: float = 0.001,
        scale: bool = True,
        standardize: bool = True,
        random_state: Any = None,
    ) -> None:
        self.n_dims = n_dims
        self.hidden = hidden
        self.trade_off = trade_off
        self.activation = activation
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.scale = scale
        self.standardize = standardize
        self.random_state = random_state

    def _learn(self, X: Rows, y: Labels, task: Task) -> None:
        from moew.models.networks import (
            train_autoencoder,  # loads JAX, which a fitted embedding does not need
        )

        self._check_settings()
        self.encoder_ = TabularEncoder(self.scale).fit(X)
        self.target_ = TargetEncoder(self.scale).fit(y, task)
        self.layers_ = train_autoencoder(self._inputs(X, y), **self._network())

    def fit_chunks(
        self, source: Any, *, task: Task, label: Column | None = None, chunk_rows: int = CHUNK_ROWS
    ) -> Self:
        """`fit` on rows that do not fit in memory; `source`, `label` and `chunk_rows` as in `iter_chunks`.

        The rows are read once for the encoding, once or more for the training, and once to standardise Z,
        so `source` must be one that can be read again. For the training they are cut into blocks of equal
        size, at most `chunk_rows`, and every mini-batch comes from one block. So the result depends on the
        order of the rows and on `chunk_rows`; how the source cuts them changes only rounding. Shuffle rows
        that are sorted by label or time first. Up to `chunk_rows` rows give the result of `fit`, up to
        rounding.
        """
        from moew.models.networks import train_autoencoder_on_blocks

        self._check_settings()
        check_chunk_settings(source, task, self.batch_size, chunk_rows)
        chunks = EncodedChunks(source, label, chunk_rows, task, self.scale)
        self.encoder_, self.target_ = chunks.encoder, chunks.target
        sizes = even_sizes(chunks.n_rows, chunk_rows)
        self.layers_ = train_autoencoder_on_blocks(lambda: chunks.blocks(sizes), sizes, **self._network())
        offset, spread, top = centre_spread_and_top(chunks, self._embed, task)
        self.offset_, self.spread_ = np.zeros(len(offset)), np.ones(len(offset))
        if self.standardize:
            self.offset_ += offset
            self.spread_[:] = np.where(spread <= self._speck * top, np.inf, spread)  # as in fit
        return self

    def _check_settings(self) -> None:
        if not 0 <= self.trade_off <= 1:
            raise InvalidInputError(
                f"trade_off must be between 0 and 1, got {self.trade_off!r}.", argument="trade_off"
            )
        if self.n_dims is not None and self.n_dims < 1:
            raise InvalidInputError(
                f"n_dims must be at least 1 or None, got {self.n_dims!r}.", argument="n_dims"
            )

    def _network(self) -> dict[str, Any]:
        """The arguments of both training functions, besides the rows."""
        x_blocks, label = self.encoder_.blocks_, self.target_.block_
        width = x_blocks[-1].stop  # of x alone; y's columns come after it
        return {
            "blocks": [*x_blocks, replace(label, start=width + label.start, stop=width + label.stop)],
            "block_weights": [*[self.trade_off / len(x_blocks)] * len(x_blocks), 1 - self.trade_off],
            "hidden": self.hidden,
            "n_dims": self.n_dims or min(_MOST_DIMS, width + label.stop - label.start),
            "activation": self.activation,
            "steps": self.steps,
            "batch_size": self.batch_size,
            "learning_rate": self.learning_rate,
            "seed": draw_seed(check_random_state(self.random_state)),
        }

    def _embed(self, X: Rows, y: Labels) -> FloatArray:
        from moew.models.networks import encode

        return encode(self.layers_, self._inputs(X, y), self.activation)

    def _inputs(self, X: Rows, y: Labels) -> FloatArray:
        return side_by_side(self.encoder_.transform(X), self.target_.transform(y))

    def _fitted_content(self) -> State:
        return {
            "encoder": self.encoder_.state(),
            "target": self.target_.state(),
            "layers": [[pack_array(weight), pack_array(bias)] for weight, bias in self.layers_],
        }

    def _restore(self, content: State, objects: Mapping[str, Any]) -> None:
        self.encoder_ = TabularEncoder.from_state(content["encoder"])
        self.target_ = TargetEncoder.from_state(content["target"])
        self.layers_ = [(unpack_array(weight), unpack_array(bias)) for weight, bias in content["layers"]]
