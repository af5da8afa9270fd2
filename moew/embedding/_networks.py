"""Embeddings by networks: the paper's autoencoder of (x, y), and a network that predicts y."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state

from moew._util.checks import TASK, Wanted, check_parameters
from moew._util.seeds import draw_seed
from moew._util.state import Loads, each, has_state, load_state, unpack_array
from moew.data import (
    CHUNK_ROWS,
    Chunk,
    ColumnKey,
    LabelSummary,
    Moments,
    TableSummary,
    TabularEncoder,
    TargetEncoder,
    check_readable_again,
    check_same_columns,
    iter_chunks,
    label_positions,
)
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

    def __init__(  # noqa: PLR0913
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

    def _learn(self, X: Features, y: Labels, task: Task) -> None:
        from moew.models.networks import train_autoencoder  # loads JAX, as only training needs it

        check_parameters(self, trade_off=_TRADE_OFF, n_dims=_DIMS)
        self.encoder_ = TabularEncoder(self.scale).fit(X)
        self.target_ = TargetEncoder(self.scale).fit(y, task)
        self.layers_ = train_autoencoder(self._network(), self._inputs(X, y), self._seed())

    def fit_chunks(
        self, source: Any, *, task: Task, label: ColumnKey | None = None, chunk_rows: int = CHUNK_ROWS
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

        check_parameters(self, trade_off=_TRADE_OFF, n_dims=_DIMS)
        check_chunk_settings(source, task, self.batch_size, chunk_rows)
        chunks = EncodedChunks(source, label, chunk_rows, task, self.scale)
        self.encoder_, self.target_ = chunks.encoder, chunks.target
        sizes = even_sizes(chunks.n_rows, chunk_rows)
        self.layers_ = train_autoencoder_on_blocks(
            self._network(), lambda: chunks.blocks(sizes), sizes, self._seed()
        )
        offset, spread, top = centre_spread_and_top(chunks, self._embed, task)
        self.offset_, self.spread_ = np.zeros(len(offset)), np.ones(len(offset))
        if self.standardize:
            self.offset_ += offset
            self.spread_[:] = np.where(spread <= self._speck * top, np.inf, spread)  # as in fit
        return self

    def _network(self) -> NetworkSpec:
        from moew.models.networks import autoencoder_spec

        x_blocks, label = self.encoder_.blocks_, self.target_.block_
        width = x_blocks[-1].stop  # of x alone; y's columns come after it
        n_columns = width + label.stop - label.start
        return autoencoder_spec(
            n_columns,
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
class DiscriminativeEmbedding(NetworkEmbedding):
    """Embeds by the last hidden layer of a network trained to predict y from x, and by the label.

    `hidden` are the widths of the hidden layers; the last one is the number of dimensions that come
    from x. The default of 5 keeps alpha small (6 dimensions for two classes). `label=False` leaves the
    label out, which makes the weights a function of x alone.
    """

    _learned: ClassVar[Loads] = {"network_": load_state, "target_": TargetEncoder.from_state}

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


def check_chunk_settings(source: Any, task: Task, batch_size: int | None, chunk_rows: int) -> None:
    """Raise on settings that cannot be used with rows in chunks."""
    check_readable_again(source)
    TASK.check("task", task)
    if batch_size is None:
        raise InvalidInputError(
            "batch_size=None takes all rows in every step, which rows in chunks cannot; give a number.",
            argument="batch_size",
        )
    if chunk_rows < 2 * batch_size:  # a block has at least half of chunk_rows
        raise InvalidInputError(
            f"chunk_rows={chunk_rows} must be at least twice the batch_size of {batch_size}, whose rows all "
            "come from one block.",
            argument="chunk_rows",
        )


class EncodedChunks:
    """The rows of a source, encoded as network inputs (n, D); reads them once to fit the encoding."""

    def __init__(
        self, source: Any, label: ColumnKey | None, chunk_rows: int, task: Task, scale: bool
    ) -> None:
        self._open = partial(iter_chunks, source, label=label, chunk_rows=chunk_rows)
        table, labels = TableSummary(), LabelSummary(task)
        for X, y in self._open():
            table.add(X)
            labels.add(y)
        self.n_rows = labels.count
        if not self.n_rows:
            raise InvalidInputError("the source gave no rows.", argument="source")
        self.encoder = TabularEncoder(scale).learn(table)
        self.target = TargetEncoder(scale).learn(labels)

    def chunks(self) -> Iterator[Chunk]:
        """Yield the labelled rows in chunks; raise where their number differs from the first reading."""
        n_rows = 0
        for chunk in self._open():
            n_rows += len(chunk.y)
            yield chunk
        if n_rows != self.n_rows:
            raise InvalidInputError(
                f"the source gave {self.n_rows} rows when read first and {n_rows} now; it must give the same "
                "rows each time.",
                argument="source",
            )

    def blocks(self, sizes: list[int]) -> Iterator[FloatArray]:
        """Yield the encoded rows in float32 blocks of these sizes, whatever the sizes of the chunks are."""
        waiting: list[FloatArray] = []
        n_waiting, wanted = 0, iter(sizes)
        size = next(wanted)
        for X, y in self.chunks():
            rows = side_by_side(self.encoder.transform(X), self.target.transform(y)).astype(np.float32)
            waiting.append(rows)
            n_waiting += len(rows)
            while n_waiting >= size:
                together = np.concatenate(waiting)
                yield together[:size]
                waiting, n_waiting = [together[size:]], n_waiting - size
                size = next(wanted, self.n_rows + 1)


def even_sizes(n_rows: int, most: int) -> list[int]:
    """Sizes of the fewest blocks that hold n_rows with at most `most` each; they differ by at most 1."""
    n_blocks = -(-n_rows // most)
    ends = np.arange(n_blocks + 1) * n_rows // n_blocks
    return [int(size) for size in np.diff(ends)]


def centre_spread_and_top(
    chunks: EncodedChunks, embed: Callable[[Features, Labels], FloatArray], task: Task
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean, standard deviation and largest absolute value of Z, each (d,), all classes counted equally."""
    levels = list(chunks.target.column_.levels) if task == "classification" else [None]
    groups = [Moments() for _ in levels]
    for X, y in chunks.chunks():
        Z = embed(X, y)
        codes = np.zeros(len(y)) if task == "regression" else label_positions(y, levels)
        for code, group in enumerate(groups):
            group.add(Z[codes == code])
    offset = np.mean([group.mean for group in groups], axis=0)
    # The mean squared distance from the centre: the variance in a class plus that of the class's mean.
    around = np.mean([group.variance + (group.mean - offset) ** 2 for group in groups], axis=0)
    return offset, np.sqrt(around), np.max([group.top for group in groups], axis=0)
