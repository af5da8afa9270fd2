"""What the parts are to each other: the protocols, with the shapes of the arrays they pass.

n rows, K candidates, d dimensions of the embedding. X stays opaque everywhere (array, data frame, …).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from moew._util.state import State

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.integer[Any]]
BoolArray = NDArray[np.bool_]
Rows = Any  # rows of features: array, data frame, …
Labels = Any  # (n,) labels or targets
Columns = Mapping[str, Any]  # per-row columns that only the metric or the decision needs: name → (n,)
Task = Literal["classification", "regression"]
Response = Literal["decision", "score", "proba"]


@runtime_checkable
class Embedding(Protocol):
    """z(x, y): low-dimensional coordinates of a labelled row."""

    def fit(self, X: Rows, y: Labels, *, task: Task) -> Self:
        """Learn from the n training rows."""

    def transform(self, X: Rows, y: Labels) -> FloatArray:
        """Z (n, d) of any rows."""

    def state(self) -> State:
        """The fitted embedding as a JSON-able dict."""


@runtime_checkable
class BaseWeights(Protocol):
    """π: the weight a row has before anything is learned (α = 0)."""

    def fit(self, X: Rows, y: Labels, X_val: Rows, y_val: Labels, *, task: Task) -> Self:
        """Learn from the training and the validation rows."""

    def weights(self, X: Rows, y: Labels) -> FloatArray:
        """π (n,) of any rows, positive, not normalised."""

    def state(self) -> State:
        """The fitted base weights as a JSON-able dict."""


class Domain(Protocol):
    """A convex set of alphas."""

    @property
    def n_dims(self) -> int: ...

    @property
    def size(self) -> float: ...

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray: ...

    def project(self, points: FloatArray) -> FloatArray: ...

    def edge_distance(self, points: FloatArray) -> FloatArray: ...


@runtime_checkable
class Sampler(Protocol):
    """Algorithm 2 or another: a pure function of what is known.

    One that cannot search every domain may have `check_domain(domain)`, which is asked before any training.
    """

    def propose(
        self,
        alphas: FloatArray,
        scores: FloatArray,
        *,
        pending: FloatArray,
        k: int,
        domain: Domain,
        rng: np.random.Generator,
    ) -> FloatArray:
        """The next `k` alphas (k, d), given observed alphas (n, d), their scores (n,), pending (m, d).

        Higher scores are better; the score of a failed candidate is NaN. Pending alphas are out for
        training, in the order they were asked for.
        """


class Trainer(Protocol):
    """Trains one model for each weighting."""

    def train(
        self,
        X: Rows,
        y: Labels,
        weights: FloatArray,
        seeds: Sequence[int],
        fold: IntArray | None = None,
    ) -> Iterator[tuple[int, Any]]:
        """Yield (k, fitted model or the exception that stopped it) as each of the K weightings
        (K, n) is done. A `random_state` that the user fixed stays; one left open gets the seed.

        n are the rows of X whose numbers `fold` (n,) holds, or all of them. All batches of a search come with
        the same X, y and fold objects, so that a trainer can send them to workers once.
        """


@runtime_checkable
class DecisionRule(Protocol):
    """Turns a score of the positive class into a decision.

    One that decides by the probability of the class has an attribute `of`, "probability".
    """

    @property
    def fit_on(self) -> Literal["train", "validation"] | None:
        """The rows the rule is fitted on; None where there is nothing to fit."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The per-row columns the rule needs."""

    def fit(self, score: FloatArray, positive: BoolArray, columns: Columns) -> Self:
        """A fitted copy, from the scores (n,) and the labels (n,) of the rows named by `fit_on`."""

    def decide(self, score: FloatArray, columns: Columns) -> BoolArray:
        """True (n,) where the positive class is decided."""

    def state(self) -> State:
        """The fitted rule as a JSON-able dict."""
