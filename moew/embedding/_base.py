"""Base class of the embeddings: checks, standardising on the training rows, the JSON state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from moew._util.state import State, Stateful, pack_array, unpack_array
from moew.exceptions import InvalidInputError
from moew.types import FloatArray, Labels, Rows, Task


class BaseEmbedding(Stateful, BaseEstimator):
    """Base of moew's embeddings; a subclass implements `_learn` and `_embed`."""

    state_home = "moew.embedding"
    standardize: bool
    # A dimension that varies less than this share of its largest value is constant up to rounding.
    _speck: ClassVar[float] = 1e-10

    @abstractmethod
    def _learn(self, X: Rows, y: Labels, task: Task) -> None:
        """Learn from the training rows."""

    @abstractmethod
    def _embed(self, X: Rows, y: Labels) -> Any:
        """Coordinates (n, d) of any rows, not standardised."""

    def _fitted_content(self) -> State:
        """What `_learn` learned, as a JSON-able dict."""
        return {}

    def _restore(self, content: State, objects: Mapping[str, Any]) -> None:
        """Restore what `_fitted_content` returned."""

    def fit(self, X: Rows, y: Labels, *, task: Task) -> Self:
        """Learn from the n training rows; `task` says what y is."""
        self._check_task(task)
        self._learn(X, y, task)
        return self._learn_scale(self._embed(X, y), y, task)

    def transform(self, X: Rows, y: Labels) -> FloatArray:
        """Z (n, d) of any rows, standardised by the training rows where `standardize` is set."""
        check_is_fitted(self)
        return self._scaled(self._embed(X, y), len(y))

    @property
    def dimension_names(self) -> list[str] | None:
        """What the dimensions of a fitted embedding are called; None where they have no meaning alone."""
        return None

    def _check_task(self, task: Task) -> None:
        if task not in ("classification", "regression"):
            raise InvalidInputError(
                f"task must be 'classification' or 'regression', got {task!r}.", argument="task"
            )

    def _learn_scale(self, raw: Any, y: Labels, task: Task) -> Self:
        """Learn to standardise from the training rows' coordinates (n, d)."""
        Z = self._checked(raw, len(y))
        self.offset_, self.spread_ = np.zeros(Z.shape[1]), np.ones(Z.shape[1])
        if self.standardize:
            share = _shares(y, task)
            self.offset_ = share @ Z
            self.spread_ = np.sqrt(share @ (Z - self.offset_) ** 2)
            if not np.isfinite(self.spread_).all():
                raise InvalidInputError(
                    f"{self._name}: the embedding's values are too large to standardise.",
                    argument="embedding",
                )
            # With infinite spread a constant dimension is exactly 0 for any rows.
            self.spread_[self.spread_ <= self._speck * np.abs(Z).max(axis=0)] = np.inf
        return self

    def _scaled(self, raw: Any, n_rows: int) -> FloatArray:
        """The coordinates (n, d) of any rows, standardised."""
        Z = self._checked(raw, n_rows)
        if Z.shape[1] != len(self.offset_):
            raise InvalidInputError(
                f"{self._name} gave {Z.shape[1]} dimensions here and {len(self.offset_)} in training; "
                "it must give the same number for any rows.",
                argument="embedding",
            )
        return np.asarray((Z - self.offset_) / self.spread_)

    def _content(self) -> State:
        check_is_fitted(self)
        return {
            "params": {name: _plain(value) for name, value in self._plain_params().items()},
            "offset": pack_array(self.offset_),
            "spread": pack_array(self.spread_),
            "fitted": self._fitted_content(),
        }

    @classmethod
    def from_state(cls, state: State, objects: Mapping[str, Any]) -> Self:
        self = cls(**state["params"])
        self.offset_, self.spread_ = unpack_array(state["offset"]), unpack_array(state["spread"])
        self._restore(state["fitted"], objects)
        return self

    def _plain_params(self) -> dict[str, Any]:
        """The settings that the state holds without change."""
        params: dict[str, Any] = self.get_params(deep=False)
        return params

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _checked(self, raw: Any, n_rows: int) -> FloatArray:
        Z = np.asarray(raw.toarray() if hasattr(raw, "tocsr") else raw)
        if Z.ndim != 2 or len(Z) != n_rows or Z.shape[1] < 1:
            raise InvalidInputError(
                f"{self._name} must give one row of numbers for each of the {n_rows} rows, "
                f"an array of shape ({n_rows}, d); it gave shape {Z.shape}.",
                argument="embedding",
            )
        try:
            Z = Z.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"{self._name} must give numbers: {error}.", argument="embedding"
            ) from error
        if not np.isfinite(Z).all():
            bad = np.flatnonzero(~np.isfinite(Z).all(axis=1))
            raise InvalidInputError(
                f"{self._name} gave NaN or infinite values in {len(bad)} rows (first: row {bad[0]}); "
                "impute or drop such values first, or choose another embedding.",
                argument="embedding",
            )
        return Z


def side_by_side(left: FloatArray, right: FloatArray) -> FloatArray:
    """Join the columns from X (n, a) and from y (n, b) into (n, a + b)."""
    if len(left) != len(right):
        raise InvalidInputError(
            f"X has {len(left)} rows and y has {len(right)}; they must be the same.", argument="y"
        )
    return np.hstack([left, right])


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
