"""Base class of the embeddings: checks, standardising on the training rows, the JSON state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from moew._util.checks import TASK
from moew._util.state import (
    Loads,
    State,
    Stateful,
    find_object,
    name_object,
    pack_array,
    pack_attributes,
    unpack_array,
    unpack_attributes,
)
from moew.data import columns_from
from moew.exceptions import InPython, InvalidInputError
from moew.types import Array, Columns, Features, FloatArray, Labels, Task


class BaseEmbedding(Stateful, BaseEstimator):
    """Base of moew's embeddings; a subclass implements `_learn` and `_embed`."""

    state_home = "moew.embedding"
    standardize: bool
    _users_own: ClassVar[str] = ""  # a setting of which a state holds only the name
    _learned: ClassVar[Loads] = {}  # what `_learn` learns
    # A dimension that varies less than this share of its largest value is constant up to rounding.
    _speck: ClassVar[float] = 1e-10

    @abstractmethod
    def _learn(self, X: Features, y: Labels, task: Task) -> None:
        """Learn from the training rows."""

    @abstractmethod
    def _embed(self, X: Features, y: Labels) -> Any:
        """Coordinates (n, d) of any rows, not standardised."""

    def _fitted_content(self) -> State:
        """What `_learn` learned, as a JSON-able dict."""
        own = self._users_own
        named = {own: name_object(getattr(self, f"{own}_", getattr(self, own)))} if own else {}
        return named | pack_attributes(self, self._learned)

    def _restore(self, content: State) -> None:
        """Restore what `_fitted_content` returned."""
        unpack_attributes(self, content, self._learned)

    def fit(self, X: Features, y: Labels, *, task: Task) -> Self:
        """Learn from the n training rows; `task` says what y is."""
        TASK.check("task", task)
        self._learn(X, y, task)
        return self._learn_scale(self._embed(X, y), y, task)

    def transform(self, X: Features, y: Labels) -> FloatArray:
        """Z (n, d) of any rows, standardised by the training rows where `standardize` is set."""
        check_is_fitted(self)
        return self._scaled(self._embed(X, y), len(y))

    @property
    def dimension_names(self) -> list[str] | None:
        """What the dimensions of a fitted embedding are called; None where they have no meaning alone."""
        return None

    def _learn_scale(self, raw: Any, y: Labels, task: Task) -> Self:
        """Learn to standardise from the training rows' coordinates (n, d)."""
        Z = self._checked(raw, len(y))
        self.offset_, self.spread_ = np.zeros(Z.shape[1]), np.ones(Z.shape[1])
        if self.standardize:
            share = _shares(y, task)
            self.offset_ = share @ Z
            self.spread_ = np.sqrt(share @ (Z - self.offset_) ** 2)
            if not np.isfinite(self.spread_).all():
                raise self._refused("gave values that are too large to standardise.")
            # With infinite spread a constant dimension is exactly 0 for any rows.
            self.spread_[self.spread_ <= self._speck * np.abs(Z).max(axis=0)] = np.inf
        return self

    def _scaled(self, raw: Any, n_rows: int) -> FloatArray:
        """The coordinates (n, d) of any rows, standardised."""
        Z = self._checked(raw, n_rows)
        if Z.shape[1] != len(self.offset_):
            raise self._refused(
                f"gave {Z.shape[1]} dimensions here and {len(self.offset_)} in training; "
                "it must give the same number for any rows."
            )
        return np.asarray((Z - self.offset_) / self.spread_)

    def _content(self) -> State:
        check_is_fitted(self)
        params: dict[str, Any] = self.get_params(deep=False)
        return {
            "params": {name: _plain(value) for name, value in params.items() if name != self._users_own},
            "offset": pack_array(self.offset_),
            "spread": pack_array(self.spread_),
            "fitted": self._fitted_content(),
        }

    @classmethod
    def from_state(cls, state: State, objects: Mapping[str, Any]) -> Self:
        params = dict(state["params"])
        if own := cls._users_own:
            params[own] = find_object(state["fitted"][own], objects)
        self = cls(**params)
        self.offset_, self.spread_ = unpack_array(state["offset"]), unpack_array(state["spread"])
        self._restore(state["fitted"])
        return self

    def _refused(self, what: str) -> InvalidInputError:
        return InvalidInputError(f"{type(self).__name__} {what}", argument="embedding")

    def _checked(self, raw: Any, n_rows: int) -> FloatArray:
        Z = np.asarray(raw.toarray() if hasattr(raw, "tocsr") else raw)
        if Z.ndim != 2 or len(Z) != n_rows or Z.shape[1] < 1:
            raise self._refused(
                f"must give one row of numbers for each of the {n_rows} rows, an array of shape "
                f"({n_rows}, d); it gave shape {Z.shape}."
            )
        try:
            Z = Z.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise self._refused(f"must give numbers: {error}.") from error
        if not np.isfinite(Z).all():
            bad = np.flatnonzero(~np.isfinite(Z).all(axis=1))
            raise self._refused(
                f"gave NaN or infinite values in {len(bad)} rows (first: row {bad[0]}); "
                "impute or drop such values first, or choose another embedding."
            )
        return Z


class EmbeddingWithColumns(BaseEmbedding):
    """Base of embeddings that also take per-row columns, in `_learn` and in `_embed`."""

    takes_columns = True

    @abstractmethod
    def _learn(self, X: Features, y: Labels, task: Task, columns: Columns | None = None) -> None:
        """Learn from the training rows."""

    @abstractmethod
    def _embed(self, X: Features, y: Labels, columns: Columns | None = None) -> Any:
        """Coordinates (n, d) of any rows, not standardised."""

    def fit(self, X: Features, y: Labels, *, task: Task, columns: Columns | None = None) -> Self:
        """Learn from the n training rows; `columns` are those beside X, name → (n,)."""
        TASK.check("task", task)
        self._learn(X, y, task, columns)
        return self._learn_scale(self._embed(X, y, columns), y, task)

    def transform(self, X: Features, y: Labels, columns: Columns | None = None) -> FloatArray:
        """Z (n, d) of any rows, as in training; `columns` are those beside X, name → (n,)."""
        check_is_fitted(self)
        return self._scaled(self._embed(X, y, columns), len(y))


def needed_columns(names: list[str], columns: Columns | None, X: Features, n_rows: int) -> dict[str, Array]:
    """The columns (n,) of these names, from `columns` or from X."""
    given = columns_from(columns, X, names)
    if missing := [name for name in names if name not in given]:
        in_X = "" if X is None else ", or a data frame X with a column of that name"
        raise InvalidInputError(
            f"the weights depend on {', '.join(map(repr, missing))} of each row, as in training, and "
            "these rows do not have it",
            InPython(f": pass columns={{name: values}}{in_X}"),
            ".",
            argument="columns",
        )
    return check_lengths({name: given[name] for name in names}, n_rows)


def check_lengths(columns: dict[str, Array], n_rows: int) -> dict[str, Array]:
    """The columns, which must have n_rows values each."""
    for name, values in columns.items():
        if len(values) != n_rows:
            raise InvalidInputError(
                f"the column {name!r} has {len(values)} values for {n_rows} rows; they must be the same.",
                argument="columns",
            )
    return columns


def side_by_side(left: FloatArray, right: FloatArray) -> FloatArray:
    """Join the columns from X (n, a) and from y (n, b) into (n, a + b)."""
    return np.hstack([of_as_many(left, len(right)), right])


def of_as_many(encoded: FloatArray, n_rows: int) -> FloatArray:
    """The rows of X (n, D); raises unless there are as many as labels."""
    if len(encoded) != n_rows:
        raise InvalidInputError(
            f"X has {len(encoded)} rows and y has {n_rows}; they must be the same.", argument="y"
        )
    return encoded


def _plain(value: Any) -> Any:
    """A setting as a JSON-able value; the state of a random generator is not kept."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(item) for item in value]
    return value if isinstance(value, bool | int | float | str) else None


def _shares(y: Labels, task: Task) -> FloatArray:
    """The share (n,) of each row in the mean and variance of Z; the total is the same for every class.

    With equal shares for all rows, the label coordinates of a class of 1 % would be ten times as far out as
    those of the rest, and no α in the ball could weight it more than three times as much as the others.
    """
    if task == "regression":
        return np.full(len(y), 1 / len(y))
    _, codes, counts = np.unique(np.asarray(y), return_inverse=True, return_counts=True)
    return np.asarray(1 / (len(counts) * counts[codes]))
