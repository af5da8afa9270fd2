"""The protocols of the parts, with the shapes of the arrays they pass.

n rows, K candidates, d dimensions of the embedding, C classes. X can be of any kind (array, data frame, …).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from moew._util.state import State

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.integer[Any]]
BoolArray = NDArray[np.bool_]
Array = np.ndarray[Any, Any]
Rng = np.random.Generator
Features = Any  # rows of features: array, data frame, …
Labels = Any  # (n,) labels or targets
Columns = Mapping[str, Any]  # per-row columns for the metric or the decision rule: name → (n,)
Task = Literal["classification", "regression"]
Response = Literal["decision", "score", "proba"]


@runtime_checkable
class Embedding(Protocol):
    """z(x, y): low-dimensional coordinates of a labelled row.

    One that also looks at the metric's columns says so by `takes_columns = True`, and takes them as a further
    argument, `columns: Columns | None = None`, of `fit` and `transform`.
    """

    def fit(self, X: Features, y: Labels, *, task: Task) -> Self:
        """Learn from the n training rows."""

    def transform(self, X: Features, y: Labels) -> FloatArray:
        """The coordinates Z (n, d) of any rows."""

    def state(self) -> State:
        """The fitted embedding as a JSON-able dict."""


@runtime_checkable
class BaseWeights(Protocol):
    """π: the weight of a row before anything is learned, at α = 0."""

    def fit_weights(
        self, X: Features, y: Labels, X_val: Features, y_val: Labels, *, task: Task
    ) -> FloatArray:
        """Learn from the training and the validation rows; returns π (n,) of the training rows."""

    def weights(self, X: Features, y: Labels) -> FloatArray:
        """π (n,) for any rows, positive, not normalised."""

    def state(self) -> State:
        """The fitted base weights as a JSON-able dict."""


class Weighting(Protocol):
    """Example weights of the training rows for any α: eq. 3, or weights that do not depend on α."""

    @property
    def n_dims(self) -> int:
        """d, the number of entries of α."""

    def training_weights(self, alphas: FloatArray) -> FloatArray:
        """The weights (K, n) of the training rows for each α of (K, d), times the user's weights."""


@runtime_checkable
class WeightingOfRows(Weighting, Protocol):
    """A weighting whose models learn from other rows than those of their fold."""

    def rows(self, alpha: FloatArray) -> MakeRows | None:
        """What makes the rows for α (d,); None: they stay as they are."""


class Domain(Protocol):
    """A convex set of alphas."""

    @property
    def n_dims(self) -> int:
        """d, the number of entries of α."""

    @property
    def size(self) -> float:
        """The length scale of the domain: a ball's radius."""

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw `n` points (n, d) uniformly from the domain."""

    def project(self, points: FloatArray) -> FloatArray:
        """The nearest points of the domain to `points` (n, d)."""

    def edge_distance(self, points: FloatArray) -> FloatArray:
        """Distance (n,) of points (n, d) to the edge as a share of the size: 0 on the edge."""


@runtime_checkable
class Sampler(Protocol):
    """Proposes the next alphas, by Algorithm 2 or in another way: a pure function of what is known."""

    def check_domain(self, domain: Domain) -> None:
        """Raise, before anything is trained, if the sampler cannot search the domain."""

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

        Higher scores are better; the score of a failed candidate is NaN. Pending alphas are in training,
        in the order they were asked for.
        """


class Outlook(NamedTuple):
    """What a model of the scores expects of alphas that were not tried, in units of the scores."""

    gain: float  # the highest upper confidence bound in the domain, less the best score that is known
    width: float  # of the widest prediction interval in the domain


@runtime_checkable
class SamplerWithModel(Sampler, Protocol):
    """A sampler that models the scores, and can say what more candidates may bring."""

    def outlook(
        self, alphas: FloatArray, scores: FloatArray, *, domain: Domain, rng: np.random.Generator
    ) -> Outlook | None:
        """What alphas of the domain promise, given observed alphas (n, d) and their scores (n,), as in
        `propose`; None if too little is known."""


@runtime_checkable
class SamplerOfPoints(Sampler, Protocol):
    """A sampler whose points do not depend on scores, and which is told before training how many it may try.

    A search with it has no random first batch.
    """

    def for_budget(self, domain: Domain, n_candidates: int) -> Sampler:
        """The sampler for so many candidates; raises or warns if they are too few for it."""


class MakeRows(Protocol):
    """Makes the rows that a model learns from: some of those of its fold, drawn ones, or new ones."""

    def __call__(
        self, X: Features, y: Labels, weights: FloatArray, seed: int
    ) -> tuple[Features, Labels, FloatArray]:
        """Rows, labels and weights (m,) made of n rows, a pure function of these and the seed. Models are
        trained in other processes, too, so that it must be possible to pickle it."""


@dataclass(frozen=True)
class Training:
    """What a candidate is: how a model is trained, the same in every fold and at the end on all rows."""

    weights: FloatArray  # (n,) of the training rows
    seed: int  # for random states that the user left open, and for `rows`
    parameters: Mapping[str, Any] = field(default_factory=dict)  # searched ones; others stay as they are
    rows: MakeRows | None = None  # None: it learns from the rows of its fold as they are

    @classmethod
    def each(
        cls,
        weights: FloatArray | Sequence[FloatArray],
        seeds: Sequence[int],
        parameters: Sequence[Mapping[str, Any]] | None = None,
    ) -> list[Self]:
        """A training for each of the weights (K, n), with its seed and its parameters."""
        several = parameters or [{}] * len(seeds)
        return [cls(*one) for one in zip(weights, seeds, several, strict=True)]


class Trainer(Protocol):
    """Trains the models of candidates."""

    def train(
        self, X: Features, y: Labels, trainings: Sequence[Training], fold: IntArray | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield (k, fitted model or the exception that stopped it) as each of the K trainings is done. A
        `random_state` that the user fixed stays; one that is None gets the seed.

        The n rows that the trainings have weights of are those of X whose numbers `fold` (n,) holds, or all
        of them. All batches of a search come with the same X, y and fold objects, so that a trainer can send
        them to workers once.
        """


@runtime_checkable
class DecisionRule(Protocol):
    """Turns a score of the positive class into a decision."""

    @property
    def of(self) -> Literal["score", "probability"]:
        """What the rule takes as score: the model's score of the positive class, or its probability."""

    @property
    def fit_on(self) -> Literal["train", "validation"] | None:
        """The rows the rule is fitted on; None if there is nothing to fit."""

    @property
    def needs_labels(self) -> bool:
        """Whether fitting uses the labels."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The per-row columns the rule needs."""

    @property
    def thresholds(self) -> tuple[tuple[Any, float | None], ...]:
        """(group of rows, its threshold) for each group; the threshold is None if there is none yet."""

    def fit(self, score: FloatArray, positive: BoolArray, columns: Columns) -> Self:
        """A copy fitted on the scores (n,) and the labels (n,) of the rows named by `fit_on`."""

    def decide(self, score: FloatArray, columns: Columns) -> BoolArray:
        """True (n,) where the rule decides for the positive class."""

    def state(self) -> State:
        """The fitted rule as a JSON-able dict."""
