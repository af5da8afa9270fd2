"""Chosen columns of X or of the metadata: the paper's "small subset of semantically-meaningful features"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from moew._util.state import State, has_state
from moew.data import TabularEncoder, TargetEncoder, check_same_columns, column_names
from moew.data._rows import columns_from
from moew.embedding._base import BaseEmbedding, side_by_side
from moew.exceptions import InPython, InvalidInputError
from moew.types import Columns, FloatArray, Labels, Rows, Task


@has_state
class ColumnsEmbedding(BaseEmbedding):
    """Embeds by chosen columns as numbers, and by the label unless `label=False`.

    `columns` are names or positions from 0 of columns of X, and names of per-row columns beside X (in a
    search, of its metadata), which come last. Categories become one-hot, missing numbers the mean and a flag;
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

    def __init__(
        self, columns: Sequence[str | int], label: bool = True, scale: bool = True, standardize: bool = True
    ) -> None:
        self.columns = columns
        self.label = label
        self.scale = scale
        self.standardize = standardize

    @property
    def wanted_columns(self) -> tuple[str, ...]:
        """The names among the columns, which may be of columns beside X."""
        return tuple(column for column in self._wanted() if isinstance(column, str))

    def fit(self, X: Rows, y: Labels, *, task: Task, columns: Columns | None = None) -> Self:
        """Learn from the n training rows; `columns` are those beside X, name → (n,)."""
        self._check_task(task)
        self._learn(X, y, task, columns)
        return self._learn_scale(self._embed(X, y, columns), y, task)

    def transform(self, X: Rows, y: Labels, columns: Columns | None = None) -> FloatArray:
        """Z (n, d) of any rows, standardised by the training rows where `standardize` is set."""
        check_is_fitted(self)
        return self._scaled(self._embed(X, y, columns), len(y))

    def _learn(self, X: Rows, y: Labels, task: Task, columns: Columns | None = None) -> None:
        self.names_ = column_names(X)
        self.n_columns_ = len(self.names_) if self.names_ is not None else _width(X)
        check_same_columns(X, self.names_, self.n_columns_, "X")
        in_X = [column for column in self._wanted() if not self._is_beside(column, columns or {})]
        self.beside_ = [str(column) for column in self._wanted() if column not in in_X]
        self.positions_ = [self._position(column) for column in in_X]
        self.encoder_ = TabularEncoder(self.scale).fit(self._chosen(X)) if in_X else None
        of_beside = self._beside(columns, len(y))
        self.encoder_beside_ = None if of_beside is None else TabularEncoder(self.scale).fit(of_beside)
        self.target_ = TargetEncoder(self.scale).fit(y, task)

    def _embed(self, X: Rows, y: Labels, columns: Columns | None = None) -> FloatArray:
        check_same_columns(X, self.names_, self.n_columns_, "the rows to embed")
        parts = [] if self.encoder_ is None else [self.encoder_.transform(self._chosen(X))]
        of_beside = self._beside(columns, len(y))
        if self.encoder_beside_ is not None:
            parts.append(self.encoder_beside_.transform(of_beside))
        chosen = parts[0] if len(parts) == 1 else side_by_side(*parts)
        return side_by_side(chosen, self.target_.transform(y)) if self.label else chosen

    def _is_beside(self, column: str | int, columns: Columns) -> bool:
        """Whether a column is one beside X; X comes first."""
        return isinstance(column, str) and column not in (self.names_ or ()) and column in columns

    def _beside(self, columns: Columns | None, n_rows: int) -> Rows:
        """The chosen columns beside X as a table (n, k); None if there are none."""
        if not self.beside_:
            return None
        given = columns_from(columns, None, ())
        if missing := [name for name in self.beside_ if name not in given]:
            raise InvalidInputError(
                f"the weights depend on {', '.join(map(repr, missing))} of each row, as in training, and "
                "these rows do not have it",
                InPython(": pass metadata={name: values}"),
                ".",
                argument="metadata",
            )
        for name in self.beside_:
            if len(given[name]) != n_rows:
                raise InvalidInputError(
                    f"the column {name!r} has {len(given[name])} values, but there are {n_rows} rows.",
                    argument="metadata",
                )
        chosen = [given[name] for name in self.beside_]
        numbers = all(values.dtype.kind in "biuf" for values in chosen)
        return np.column_stack([values if numbers else values.astype(object) for values in chosen])

    @property
    def dimension_names(self) -> list[str]:
        """The columns, with their categories, and the classes or the target."""
        check_is_fitted(self)
        names = self.names_ or [f"column {j}" for j in range(self.n_columns_)]
        in_X = [names[position] for position in self.positions_]
        of_columns = [
            name
            for encoder, given in ((self.encoder_, in_X), (self.encoder_beside_, self.beside_))
            if encoder is not None
            for name in encoder.dimension_names(given)
        ]
        return [*of_columns, *(self.target_.dimension_names() if self.label else [])]

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
        beside = " The training rows' metadata does not have it either." if isinstance(column, str) else ""
        raise InvalidInputError(f"X has no column {column!r}; it has {there}.{beside}", argument="columns")

    def _chosen(self, X: Rows) -> Rows:
        if hasattr(X, "columns"):
            return X[[list(X.columns)[position] for position in self.positions_]]
        return np.asarray(X)[:, self.positions_]

    def _fitted_content(self) -> State:
        return {
            "names": self.names_,
            "n_columns": self.n_columns_,
            "positions": self.positions_,
            "encoder": None if self.encoder_ is None else self.encoder_.state(),
            "beside": self.beside_,
            "encoder_beside": None if self.encoder_beside_ is None else self.encoder_beside_.state(),
            "target": self.target_.state(),
        }

    def _restore(self, content: State, objects: Mapping[str, Any]) -> None:
        self.names_, self.n_columns_ = content["names"], content["n_columns"]
        self.positions_ = content["positions"]
        self.beside_ = list(content.get("beside", []))
        states = content["encoder"], content.get("encoder_beside")
        self.encoder_, self.encoder_beside_ = (s and TabularEncoder.from_state(s) for s in states)
        self.target_ = TargetEncoder.from_state(content["target"])


def _width(X: Rows) -> int:
    shape = np.shape(X)
    return int(shape[1]) if len(shape) == 2 else 0
