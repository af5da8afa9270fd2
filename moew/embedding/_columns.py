"""Chosen columns of X: the paper's "small subset of semantically-meaningful features"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from moew._util.state import State, has_state
from moew.data import TabularEncoder, TargetEncoder, check_same_columns, column_names
from moew.embedding._base import BaseEmbedding, side_by_side
from moew.exceptions import InvalidInputError
from moew.types import FloatArray, Labels, Rows, Task


@has_state
class ColumnsEmbedding(BaseEmbedding):
    """Embeds by chosen columns of X as numbers, and by the label unless `label=False`.

    `columns` are names (of a data frame) or positions from 0. Categories become one-hot, missing
    numbers the mean and a flag; `scale=False` leaves numbers as they are.
    """

    def __init__(
        self, columns: Sequence[str | int], label: bool = True, scale: bool = True, standardize: bool = True
    ) -> None:
        self.columns = columns
        self.label = label
        self.scale = scale
        self.standardize = standardize

    def _learn(self, X: Rows, y: Labels, task: Task) -> None:
        self.names_ = column_names(X)
        self.n_columns_ = len(self.names_) if self.names_ is not None else _width(X)
        check_same_columns(X, self.names_, self.n_columns_, "X")
        self.positions_ = [self._position(column) for column in self._wanted()]
        self.encoder_ = TabularEncoder(self.scale).fit(self._chosen(X))
        self.target_ = TargetEncoder(self.scale).fit(y, task)

    def _embed(self, X: Rows, y: Labels) -> FloatArray:
        check_same_columns(X, self.names_, self.n_columns_, "the rows to embed")
        chosen = self.encoder_.transform(self._chosen(X))
        return side_by_side(chosen, self.target_.transform(y)) if self.label else chosen

    @property
    def dimension_names(self) -> list[str]:
        """The columns, with their categories, and the classes or the target."""
        check_is_fitted(self)
        names = self.names_ or [f"column {j}" for j in range(self.n_columns_)]
        of_columns = self.encoder_.dimension_names([names[position] for position in self.positions_])
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
        raise InvalidInputError(f"X has no column {column!r}; it has {there}.", argument="columns")

    def _chosen(self, X: Rows) -> Rows:
        if hasattr(X, "columns"):
            return X[[list(X.columns)[position] for position in self.positions_]]
        return np.asarray(X)[:, self.positions_]

    def _fitted_content(self) -> State:
        return {
            "names": self.names_,
            "n_columns": self.n_columns_,
            "positions": self.positions_,
            "encoder": self.encoder_.state(),
            "target": self.target_.state(),
        }

    def _restore(self, content: State, objects: Mapping[str, Any]) -> None:
        self.names_, self.n_columns_ = content["names"], content["n_columns"]
        self.positions_ = content["positions"]
        self.encoder_ = TabularEncoder.from_state(content["encoder"])
        self.target_ = TargetEncoder.from_state(content["target"])


def _width(X: Rows) -> int:
    shape = np.shape(X)
    return int(shape[1]) if len(shape) == 2 else 0
