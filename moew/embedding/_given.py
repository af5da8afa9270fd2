"""Embeddings that the user gives: a scikit-learn transformer, or a function of (X, y)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from moew._util.state import State, find_object, has_state, name_object
from moew.data import TargetEncoder
from moew.data._read_only import read_only
from moew.embedding._base import BaseEmbedding, side_by_side
from moew.exceptions import Argument, InvalidInputError
from moew.types import Labels, Rows, Task


@has_state
class TransformerEmbedding(BaseEmbedding):
    """Embeds by a scikit-learn transformer of X, which gets X unchanged, and by the label.

    The transformer is cloned and fitted as `fit(X, y)` on the training rows. A state holds only its name:
    to load, pass the fitted transformer (`embedding.transformer_`) as objects={name: transformer}.
    """

    def __init__(self, transformer: Any, label: bool = True, standardize: bool = True) -> None:
        self.transformer = transformer
        self.label = label
        self.standardize = standardize

    def _learn(self, X: Rows, y: Labels, task: Task) -> None:
        with self._taking_rows():
            self.transformer_ = clone(self.transformer).fit(read_only(X), read_only(y))
        self.target_ = TargetEncoder().fit(y, task)

    def _embed(self, X: Rows, y: Labels) -> Any:
        with self._taking_rows():
            raw = self.transformer_.transform(read_only(X))
        if not self.label:
            return raw
        dense = self._checked(raw, len(y))
        return side_by_side(dense, self.target_.transform(y))

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
                argument="embedding",
            ) from error

    def _plain_params(self) -> dict[str, Any]:
        return {"label": self.label, "standardize": self.standardize}

    def _fitted_content(self) -> State:
        return {"transformer": name_object(self.transformer_), "target": self.target_.state()}

    @classmethod
    def from_state(cls, state: State, objects: Mapping[str, Any]) -> Self:
        transformer = find_object(state["fitted"]["transformer"], objects)
        return super().from_state(
            {**state, "params": {**state["params"], "transformer": transformer}}, objects
        )

    def _restore(self, content: State, objects: Mapping[str, Any]) -> None:
        self.transformer_ = self.transformer
        self.target_ = TargetEncoder.from_state(content["target"])


@has_state
class FunctionEmbedding(BaseEmbedding):
    """Embeds by `function(X, y)` → (n, d), the same d for any rows. A state holds only its name."""

    def __init__(self, function: Callable[[Rows, Labels], Any], standardize: bool = True) -> None:
        self.function = function
        self.standardize = standardize

    def _learn(self, X: Rows, y: Labels, task: Task) -> None:
        """Nothing to learn: the function is used as it is."""

    def _embed(self, X: Rows, y: Labels) -> Any:
        return np.asarray(self.function(read_only(X), read_only(y)))

    def _plain_params(self) -> dict[str, Any]:
        return {"standardize": self.standardize}

    def _fitted_content(self) -> State:
        return {"function": name_object(self.function)}

    @classmethod
    def from_state(cls, state: State, objects: Mapping[str, Any]) -> Self:
        function = find_object(state["fitted"]["function"], objects)
        return super().from_state({**state, "params": {**state["params"], "function": function}}, objects)
