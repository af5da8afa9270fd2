"""Embeddings of what the user names or gives: the label, columns, a transformer or a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from moew._util.checks import check_takes_rows
from moew._util.numbers import level, number
from moew._util.state import Loads, has_state, or_none
from moew.data import (
    TabularEncoder,
    TargetEncoder,
    check_same_columns,
    column_names,
    label_levels,
    label_positions,
    number_labels,
    read_only,
)
from moew.embedding._base import BaseEmbedding, needed_columns, side_by_side
from moew.embedding._networks import NetworkEmbedding
from moew.exceptions import Argument, InvalidInputError
from moew.models import jax_is_missing
from moew.types import Columns, Embedding, Features, FloatArray, Labels, Task

_COLUMNS = "columns="  # before names of columns in a text


@has_state
@dataclass(eq=False, repr=False)
class LabelEmbedding(BaseEmbedding):
    """Embeds by the one-hot class, also of two classes; in regression, of `n_bins` quantile bins of y.

    X is not used, so it may be sparse, None or anything. The bins' edges are quantiles of the training
    targets (equal edges are merged); a value outside their range falls in the first or last bin.

    Examples
    --------
    >>> labels = ["a", "b", "c", "a"]
    >>> LabelEmbedding(standardize=False).fit(None, labels, task="classification").transform(None, labels)
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.],
           [1., 0., 0.]])
    """

    _learned: ClassVar[Loads] = {"task_": str, "levels_": list}

    n_bins: int = 10
    standardize: bool = True

    def _learn(self, X: Features, y: Labels, task: Task) -> None:
        if self.n_bins < 1:
            raise InvalidInputError(f"n_bins must be at least 1, got {self.n_bins}.", argument="n_bins")
        self.task_ = task
        if task == "classification":
            self.levels_ = label_levels(y)
        else:
            values = number_labels(y)
            # With edges at values of the data no bin is empty; an edge at the smallest value would leave one.
            inner = np.linspace(0, 1, self.n_bins + 1)[1:-1]
            edges = np.unique(np.quantile(values, inner, method="inverted_cdf"))
            self.levels_ = [float(edge) for edge in edges if edge > values.min()]

    def _embed(self, X: Features, y: Labels) -> FloatArray:
        if self.task_ == "classification":
            return np.eye(len(self.levels_))[label_positions(y, self.levels_)]
        bins = np.searchsorted(self.levels_, number_labels(y), side="right")
        return np.eye(len(self.levels_) + 1)[bins]

    @property
    def dimension_names(self) -> list[str]:
        """The classes, or the bins of the target."""
        check_is_fitted(self)
        if self.task_ == "classification":
            return [f"class {level(value)}" for value in self.levels_]
        edges = [number(edge, 3) for edge in self.levels_]
        if not edges:
            return ["target"]
        between = [f"target {low} to {high}" for low, high in pairwise(edges)]
        return [f"target below {edges[0]}", *between, f"target from {edges[-1]}"]


@has_state
@dataclass(eq=False, repr=False)
class ColumnsEmbedding(BaseEmbedding):
    """Embeds by chosen columns as numbers, and by the label unless `label=False`.

    `columns` are names or positions from 0 of columns of X, and names of per-row columns beside X (in a
    search, of `columns`), which come last. Categories become one-hot, missing numbers the mean and a flag;
    `scale=False` leaves numbers as they are.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [5.0]], [0, 0, 1, 1]
    >>> embedding = ColumnsEmbedding([0, "cost"], label=False, scale=False, standardize=False)
    >>> cost = {"cost": [3.0, 1.0, 4.0, 1.0]}
    >>> embedding.fit(X, y, task="classification", columns=cost).transform(X, y, columns=cost)
    array([[0., 3.],
           [1., 1.],
           [2., 4.],
           [5., 1.]])
    """

    takes_columns = True
    _learned: ClassVar[Loads] = {
        "names_": or_none(list),
        "n_columns_": int,
        "positions_": list,
        "encoder_": or_none(TabularEncoder.from_state),
        "beside_": list,
        "encoder_beside_": or_none(TabularEncoder.from_state),
        "target_": TargetEncoder.from_state,
    }

    columns: Sequence[str | int]
    label: bool = True
    scale: bool = True
    standardize: bool = True

    @property
    def wanted_columns(self) -> tuple[str, ...]:
        """The names among the columns, which may be of columns beside X."""
        return tuple(column for column in self._wanted() if isinstance(column, str))

    def _learn(self, X: Features, y: Labels, task: Task, columns: Columns | None = None) -> None:
        self.names_ = column_names(X)
        self.n_columns_ = len(self.names_) if self.names_ is not None else _width(X)
        check_same_columns(X, self.names_, self.n_columns_, "X")
        in_X = [column for column in self._wanted() if not self._is_beside(column, columns or {})]
        self.beside_ = [str(column) for column in self._wanted() if column not in in_X]
        self.positions_ = [self._position(column) for column in in_X]
        self.encoder_, self.encoder_beside_ = (
            None if table is None else TabularEncoder(self.scale).fit(table)
            for table in (self._chosen(X), self._table_beside(columns, len(y)))
        )
        self.target_ = TargetEncoder(self.scale).fit(y, task)

    def _embed(self, X: Features, y: Labels, columns: Columns | None = None) -> FloatArray:
        check_same_columns(X, self.names_, self.n_columns_, "the rows to embed")
        parts = [] if self.encoder_ is None else [self.encoder_.transform(self._chosen(X))]
        if self.encoder_beside_ is not None:
            parts.append(self.encoder_beside_.transform(self._table_beside(columns, len(y))))
        if self.label:
            parts.append(self.target_.transform(y))
        return reduce(side_by_side, parts)

    def _is_beside(self, column: str | int, columns: Columns) -> bool:
        """Whether a column is one beside X; X comes first."""
        return isinstance(column, str) and column not in (self.names_ or ()) and column in columns

    def _table_beside(self, columns: Columns | None, n_rows: int) -> Features:
        """The chosen columns beside X as a table (n, k); None if there are none."""
        if not self.beside_:
            return None
        chosen = list(needed_columns(self.beside_, columns, None, n_rows).values())
        numbers = all(values.dtype.kind in "biuf" for values in chosen)
        return np.column_stack([values if numbers else values.astype(object) for values in chosen])

    @property
    def dimension_names(self) -> list[str]:
        """The columns, with their categories, and the classes or the target."""
        check_is_fitted(self)
        names = self.names_ or [f"column {j}" for j in range(self.n_columns_)]
        found = []
        if self.encoder_ is not None:
            found += self.encoder_.dimension_names([names[position] for position in self.positions_])
        if self.encoder_beside_ is not None:
            found += self.encoder_beside_.dimension_names(self.beside_)
        return found + self.target_.dimension_names() if self.label else found

    def _wanted(self) -> list[str | int]:
        if isinstance(self.columns, str | int) or len(self.columns) == 0:
            raise InvalidInputError(
                f"columns must be a list of one or more names or positions, got {self.columns!r}.",
                argument="columns",
            )
        return list(self.columns)

    def _position(self, column: str | int) -> int:
        """The position of `column` in X."""
        if isinstance(column, str) and self.names_ is not None and column in self.names_:
            return self.names_.index(column)
        is_position = isinstance(column, int | np.integer) and not isinstance(column, bool)
        if is_position and 0 <= int(column) < self.n_columns_:
            return int(column)
        there = f"the positions 0 to {self.n_columns_ - 1}"
        if self.names_ is not None:
            there = f"the names {self.names_} and {there}"
        beside = " Nor is it in `columns` of the training rows." if isinstance(column, str) else ""
        raise InvalidInputError(f"X has no column {column!r}; it has {there}.{beside}", argument="columns")

    def _chosen(self, X: Features) -> Features:
        """The chosen columns of X; None if there are none."""
        if not self.positions_:
            return None
        if hasattr(X, "columns"):
            return X[[list(X.columns)[position] for position in self.positions_]]
        return np.asarray(X)[:, self.positions_]


def _width(X: Features) -> int:
    shape = np.shape(X)
    return int(shape[1]) if len(shape) == 2 else 0


@has_state
@dataclass(eq=False, repr=False)
class TransformerEmbedding(BaseEmbedding):
    """Embeds by a scikit-learn transformer of X, which gets X unchanged, and by the label.

    The transformer is cloned and fitted as `fit(X, y)` on the training rows. A state holds only its name:
    to load, pass the fitted transformer (`embedding.transformer_`) as objects={name: transformer}.
    """

    _users_own = "transformer"
    _learned: ClassVar[Loads] = {"target_": TargetEncoder.from_state}

    transformer: Any
    label: bool = True
    standardize: bool = True

    def _learn(self, X: Features, y: Labels, task: Task) -> None:
        with self._taking_rows():
            self.transformer_ = clone(self.transformer).fit(read_only(X), read_only(y))
        self.target_ = TargetEncoder().fit(y, task)

    def _embed(self, X: Features, y: Labels) -> Any:
        with self._taking_rows():
            raw = self.transformer_.transform(read_only(X))
        return side_by_side(self._checked(raw, len(y)), self.target_.transform(y)) if self.label else raw

    @contextmanager
    def _taking_rows(self) -> Iterator[None]:
        """Say which part cannot take the rows, such as texts, where the transformer says only why."""
        try:
            yield
        except (ValueError, TypeError) as error:
            raise InvalidInputError(
                Argument("embedding"),
                f": {self.transformer!r} cannot take these rows: {str(error).rstrip('.')}. Prepare them "
                "before it in a Pipeline, or use ",
                Argument("embedding", "directions"),
                ".",
            ) from error


@has_state
@dataclass(eq=False, repr=False)
class FunctionEmbedding(BaseEmbedding):
    """Embeds by `function(X, y)` → (n, d), the same d for any rows. A state holds only its name."""

    _users_own = "function"

    function: Callable[[Features, Labels], Any]
    standardize: bool = True

    def _learn(self, X: Features, y: Labels, task: Task) -> None:
        """Nothing to learn: the function is used as it is."""

    def _embed(self, X: Features, y: Labels) -> Any:
        return np.asarray(self.function(read_only(X), read_only(y)))


def resolve_embedding(thing: Any) -> Embedding:
    """An embedding to fit, a copy of moew's own, from a name, an embedding, columns, a transformer or a
    function."""
    embedding = _resolved(thing)
    if isinstance(embedding, NetworkEmbedding) and find_spec("jax") is None:
        raise jax_is_missing("the embeddings 'autoencoder' and 'discriminative'", argument="embedding")
    return embedding


def _resolved(thing: Any) -> Embedding:
    from moew.embedding import EMBEDDINGS

    if hasattr(thing, "tolist") and not callable(thing):
        thing = thing.tolist()  # an array or a pandas Index of columns
    if isinstance(thing, str) and thing in EMBEDDINGS:
        return EMBEDDINGS[thing]()
    if isinstance(thing, str) and thing.startswith(_COLUMNS):
        return ColumnsEmbedding(columns_of_text(thing))
    if isinstance(thing, BaseEmbedding):
        copy: BaseEmbedding = clone(thing)
        return copy
    if isinstance(thing, list | tuple) and thing and all(_is_column(item) for item in thing):
        return ColumnsEmbedding(list(thing))
    if not isinstance(thing, str | type):  # a class has the methods too, but is no object to fit
        if isinstance(thing, Embedding):
            return thing
        if hasattr(thing, "fit") and hasattr(thing, "transform"):
            return TransformerEmbedding(thing)
        if callable(thing):
            check_takes_rows(thing, "embedding")
            return FunctionEmbedding(thing)
    raise InvalidInputError(
        Argument("embedding"),
        f" must be one of {sorted(EMBEDDINGS)}, 'columns=A,B', a list of column names or positions, an "
        "embedding object such as LabelEmbedding(), a scikit-learn transformer such as PCA(3), or a function "
        f"of (X, y) that gives an array (n, d); got {thing!r}.",
    )


def columns_of_text(text: str) -> list[str]:
    """The columns of a text such as "columns=age,income"."""
    columns = [name.strip() for name in text.removeprefix(_COLUMNS).split(",") if name.strip()]
    if not columns:
        raise InvalidInputError(Argument("embedding", text), ": name at least one column, as in columns=A,B.")
    return columns


def _is_column(item: Any) -> bool:
    return isinstance(item, str | int | np.integer) and not isinstance(item, bool)
