"""Base class of the embeddings: checks, standardising on the training rows, the JSON state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from moew._util.checks import TASK, refusing
from moew._util.state import (
    Loads,
    State,
    Stateful,
    find_object,
    name_object,
    pack_attributes,
    plain_setting,
    unpack_array,
    unpack_attributes,
)
from moew.data import columns_from
from moew.exceptions import InPython, InvalidInputError
from moew.types import Array, Columns, Features, FloatArray, Labels, Task

_SCALE: Loads = {"offset_": unpack_array, "spread_": unpack_array}


class BaseEmbedding(Stateful, BaseEstimator):
    """Base of moew's embeddings; a subclass implements `_learn` and `_embed`, which also take `columns` if it
    says `takes_columns = True`."""

    state_home = "moew.embedding"
    takes_columns = False
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

    def fit(self, X: Features, y: Labels, *, task: Task, columns: Columns | None = None) -> Self:
        """Learn from the n training rows; `task` says what y is, `columns` are beside X, name → (n,)."""
        TASK.check("task", task)
        beside = self._beside(columns)
        self._learn(X, y, task, **beside)
        return self._learn_scale(self._embed(X, y, **beside), y, task)

    def transform(self, X: Features, y: Labels, columns: Columns | None = None) -> FloatArray:
        """Z (n, d) of any rows, standardised by the training rows where `standardize` is set."""
        check_is_fitted(self)
        Z = self._checked(self._embed(X, y, **self._beside(columns)), len(y))
        if Z.shape[1] != len(self.offset_):
            raise self._refused(
                f"gave {Z.shape[1]} dimensions here and {len(self.offset_)} in training; "
                "it must give the same number for any rows."
            )
        return np.asarray((Z - self.offset_) / self.spread_)

    def _beside(self, columns: Columns | None) -> dict[str, Any]:
        return {"columns": columns} if self.takes_columns else {}

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

    def _content(self) -> State:
        check_is_fitted(self)
        params: dict[str, Any] = self.get_params(deep=False)
        named: State = {}
        if own := self._users_own:
            named = {own: name_object(getattr(self, f"{own}_", params.pop(own)))}
        return {
            "params": {name: plain_setting(value) for name, value in params.items()},
            **pack_attributes(self, _SCALE),
            "fitted": named | pack_attributes(self, self._learned),
        }

    @classmethod
    def from_state(cls, state: State, objects: Mapping[str, Any]) -> Self:
        params, own = dict(state["params"]), cls._users_own
        if own:
            params[own] = find_object(state["fitted"][own], objects)
        self = cls(**params)
        if own:
            setattr(self, f"{own}_", params[own])
        unpack_attributes(self, state, _SCALE)
        unpack_attributes(self, state["fitted"], self._learned)
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
        with refusing(lambda error: f"{type(self).__name__} must give numbers: {error}.", "embedding"):
            Z = Z.astype(np.float64)
        if not np.isfinite(Z).all():
            bad = np.flatnonzero(~np.isfinite(Z).all(axis=1))
            raise self._refused(
                f"gave NaN or infinite values in {len(bad)} rows (first: row {bad[0]}); "
                "impute or drop such values first, or choose another embedding."
            )
        return Z


def needed_columns(
    names: Sequence[str], columns: Columns | None, X: Features, n_rows: int
) -> dict[str, Array]:
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


def _shares(y: Labels, task: Task) -> FloatArray:
    """The share (n,) of each row in the mean and variance of Z; the total is the same for every class,
    because the label coordinates of a rare class would lie so far out that no α in the ball could weight it
    enough."""
    if task == "regression":
        return np.full(len(y), 1 / len(y))
    _, codes, counts = np.unique(np.asarray(y), return_inverse=True, return_counts=True)
    return np.asarray(1 / (len(counts) * counts[codes]))
