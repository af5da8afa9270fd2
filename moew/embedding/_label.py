"""The label alone: one dimension for each class, as the paper uses for MNIST, or for each quantile bin."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from moew._util.numbers import level, number
from moew._util.state import State, has_state
from moew.data import label_levels, label_positions, number_labels
from moew.embedding._base import BaseEmbedding
from moew.exceptions import InvalidInputError
from moew.types import FloatArray, Labels, Rows, Task


@has_state
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

    def __init__(self, n_bins: int = 10, standardize: bool = True) -> None:
        self.n_bins = n_bins
        self.standardize = standardize

    def _learn(self, X: Rows, y: Labels, task: Task) -> None:
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

    def _embed(self, X: Rows, y: Labels) -> FloatArray:
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

    def _fitted_content(self) -> State:
        return {"task": self.task_, "levels": self.levels_}

    def _restore(self, content: State, objects: Mapping[str, Any]) -> None:
        self.task_, self.levels_ = content["task"], content["levels"]
