"""Run R searches of networks side by side, saved to a file after every batch.

An interrupted run continues with the next batch and ends with the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed

from experiments.networks import PlacedRows, RepeatedNetworks, train_repeats
from moew._util.seeds import integer_seed
from moew._util.whole_files import write_whole
from moew.data import Fold, LabelledRows, SearchData
from moew.embedding import FunctionEmbedding
from moew.exceptions import MoewError
from moew.metrics import Predictions
from moew.samplers import Ball, GpBucb, RandomSampler
from moew.search._evaluate import Evaluator
from moew.search._honest_score import select_best
from moew.search._loop import Budget, Search, TrainedTrials, search_side_by_side
from moew.search._study import Trial, WeightStudy
from moew.types import Array, BaseWeights, FloatArray, IntArray, Labels, Sampler, Task, Weighting
from moew.weighting import (
    ExampleWeighting,
    FunctionBaseWeights,
    LabelShift,
    ListedWeighting,
    RandomWeighting,
    UniformBaseWeights,
)


@dataclass(frozen=True)
class Problem:
    """The rows of R repeats and the networks that are trained on them.

    `classes` (C,) are what classifiers predict, None for regressors.
    """

    networks: RepeatedNetworks
    classes: Array | None
    data: list[SearchData]
    test: list[LabelledRows]

    @classmethod
    def of(
        cls,
        networks: RepeatedNetworks,
        classes: Array | None,
        training: list[LabelledRows],
        validation: list[LabelledRows],
        test: list[LabelledRows],
    ) -> Problem:
        """The problem with these rows, one entry for each repeat."""
        task: Task = "regression" if classes is None else "classification"
        data = [
            SearchData(task, *both, (Fold(None, np.arange(len(both[1]))),))
            for both in zip(training, validation, strict=True)
        ]
        return cls(networks, classes, data, test)


def rows_of_repeats(
    placed: PlacedRows | None, y: Labels, n_repeats: int, **columns: Array
) -> list[LabelledRows]:
    """The rows of each repeat, from y and columns (R or 1, n) and `placed` features (None if no part of the
    search uses them)."""

    def of(values: Array, repeat: int) -> Array:
        return np.asarray(values[repeat if len(values) > 1 else 0])

    return [
        LabelledRows(
            None if placed is None else placed.of_repeat(r),
            of(y, r),
            columns={name: of(values, r) for name, values in columns.items()},
        )
        for r in range(n_repeats)
    ]


Scores = Callable[[Problem, int, Any, Predictions], Mapping[str, float]]
"""(problem, repeat, model, its validation predictions) → the scores to record for a candidate, by name."""


@dataclass(frozen=True)
class Judge:
    """What a search optimises, and the other scores to record for every candidate (None: its test score)."""

    evaluator: Evaluator
    scores: Scores | None = None
    wrong_way: bool = False  # optimise in the wrong direction

    @property
    def greater_is_better(self) -> bool:
        """Whether the search maximises the metric."""
        return self.evaluator.metric.greater_is_better != self.wrong_way

    def recorded(
        self, problem: Problem, repeat: int, model: Any, predictions: Predictions
    ) -> Mapping[str, float]:
        """The other scores of a candidate, by name."""
        if self.scores is not None:
            return self.scores(problem, repeat, model, predictions)
        final = self.evaluator.final_model(model, predictions, problem.data[repeat])
        return {"test": self.evaluator.value_on(final, problem.test[repeat])}


BaseWeightsOf = Callable[[int], BaseWeights]
"""The base weights π of a repeat, not fitted."""


def given_weights(pi: FloatArray) -> BaseWeightsOf:
    """Base weights with known values (R, n)."""
    return lambda repeat: FunctionBaseWeights(lambda *_: pi[repeat])


def uniform_weights(_repeat: int) -> BaseWeights:
    """π = 1 in every repeat."""
    return UniformBaseWeights()


def label_shift(_repeat: int) -> BaseWeights:
    """The paper's π(y) = p_V(y) / p_T(y), from class shares without smoothing."""
    return LabelShift(smoothing=0.0)


class Arm(Protocol):
    """One way to weight: a row of the paper's tables."""

    @property
    def radius(self) -> float:
        """The radius of the ball that α is searched in."""
        ...

    @property
    def seed(self) -> int:
        """The seed of the searches."""
        ...

    @property
    def mark(self) -> FloatArray:
        """A short summary of the embedding and radius, to check that stored alphas belong to them."""
        ...

    def weighting(self, repeat: int, data: SearchData) -> Weighting:
        """The weighting of a repeat."""
        ...

    def sampler(self, repeat: int) -> Sampler:
        """The sampler of a repeat."""
        ...


@dataclass(frozen=True)
class Fixed:
    """The weights π without a search: candidates differ only in their initial parameters."""

    base_weights: BaseWeightsOf = uniform_weights
    radius: float = 1.0
    seed: int = 0
    mark: FloatArray = field(default_factory=lambda: np.empty(0))

    def weighting(self, repeat: int, data: SearchData) -> Weighting:
        pi = self.base_weights(repeat).fit_weights(
            data.training.X, data.training.y, data.validation.X, data.validation.y, task=data.task
        )
        return ListedWeighting((pi / pi.mean())[None])

    def sampler(self, repeat: int) -> Sampler:
        return RandomSampler()


@dataclass(frozen=True)
class RandomRows(Fixed):
    """The paper's random weights, drawn for each row in the range of the authors' scripts."""

    def weighting(self, repeat: int, data: SearchData) -> Weighting:
        return RandomWeighting(len(data.training), None, integer_seed(self.seed, "rows", repeat))


@dataclass(frozen=True)
class Learned:
    """Weights found by a search: embeddings Z (R or 1, n, d), the radius of the ball of α, and the sampler
    (None: random; several: one for each repeat)."""

    Z: FloatArray
    radius: float
    samplers: Sampler | Sequence[Sampler] | None
    seed: int
    base_weights: BaseWeightsOf = uniform_weights

    @property
    def mark(self) -> FloatArray:
        """The radius, means and deviations (R or 1, 1 + 2d)."""
        radius = np.full((len(self.Z), 1), self.radius)
        return np.hstack([radius, self.Z.mean(axis=1), self.Z.std(axis=1)]).astype(np.float32)

    def weighting(self, repeat: int, data: SearchData) -> Weighting:
        Z = self.Z[repeat if len(self.Z) > 1 else 0]
        embedding = FunctionEmbedding(lambda *_: Z, standardize=False)
        return ExampleWeighting(embedding, self.base_weights(repeat)).fit(
            data.training.X, data.training.y, data.validation.X, data.validation.y, task=data.task
        )

    def sampler(self, repeat: int) -> Sampler:
        if self.samplers is None:
            return RandomSampler()
        return self.samplers[repeat] if isinstance(self.samplers, Sequence) else self.samplers


@dataclass
class Seen:
    """The candidates of all repeats: alphas (R, n, d) and scores by name (R, n), NaN where there is none.

    "validation" is the score that the search was told, in the metric's own units.
    """

    alphas: FloatArray
    scores: dict[str, FloatArray] = field(default_factory=dict)
    mark: FloatArray = field(default_factory=lambda: np.empty(0))  # of the embedding

    @property
    def n(self) -> int:
        """The number of candidates of each repeat."""
        return int(self.alphas.shape[1])

    def room_for(self, alphas: FloatArray) -> None:
        """Append alphas (R, k, d), with no scores yet."""
        self.alphas = np.concatenate([self.alphas, alphas], axis=1)
        self.scores = {name: self._as_long(values) for name, values in self.scores.items()}

    def record(self, repeat: int, number: int, scores: Mapping[str, float]) -> None:
        """Record the scores of one candidate."""
        for name, value in scores.items():
            if name not in self.scores:
                self.scores[name] = self._as_long(np.empty((len(self.alphas), 0)))
            self.scores[name][repeat, number] = value

    def _as_long(self, values: FloatArray) -> FloatArray:
        missing = np.full((len(self.alphas), self.n - values.shape[1]), np.nan)
        return np.concatenate([values, missing], axis=1)

    def best(self, greater_is_better: bool, first: int | None = None) -> IntArray:
        """The number (R,) of the candidate with the best validation score, of the `first` ones (None: all).

        NaN never wins; of equals the earlier one wins.
        """
        values = self.scores["validation"][:, :first]
        return np.array([select_best(of_repeat, greater_is_better) for of_repeat in values])

    def at(self, chosen: IntArray) -> dict[str, FloatArray]:
        """All scores (R,) of the chosen candidates (R,)."""
        return {name: values[np.arange(len(chosen)), chosen] for name, values in self.scores.items()}

    def only(self, chosen: IntArray) -> Seen:
        """The chosen candidates (R,) alone, one for each repeat."""
        rows = np.arange(len(chosen)), chosen
        scores = {name: values[rows][:, None] for name, values in self.scores.items()}
        return Seen(self.alphas[rows][:, None], scores, self.mark)

    def first(self, repeats: int) -> Seen:
        """The candidates of the first repeats."""
        scores = {name: values[:repeats] for name, values in self.scores.items()}
        return Seen(self.alphas[:repeats], scores, self.mark[:repeats])

    def winners(self, greater_is_better: bool) -> FloatArray:
        """The alphas (R, d) of the best candidates of the repeats."""
        best = self.best(greater_is_better)
        return self.alphas[np.arange(len(best)), best]

    def save(self, path: Path) -> None:
        """Write to `path` atomically."""
        arrays: dict[str, Any] = {"alphas": self.alphas, "mark": self.mark, **self.scores}
        write_whole(path, lambda new: np.savez_compressed(new, **arrays))

    @classmethod
    def load(cls, path: Path) -> Seen:
        """Read what `save` wrote."""
        with np.load(path, allow_pickle=False) as kept:
            arrays = {name: kept[name] for name in kept.files}
        return cls(arrays.pop("alphas"), mark=arrays.pop("mark"), scores=arrays)


def paper_samplers(uniform: Seen | None, p: float = 68.3, q: float = 68.3) -> tuple[GpBucb, ...]:
    """The paper's GP-BUCB for each repeat: width R, and the noise of its uniform models' metric."""
    if uniform is None:
        raise MoewError("the uniform models come first: their scores give the noise.")
    scores = uniform.scores["validation"]
    noise = np.nanvar(
        np.where(np.isfinite(scores), scores, np.nan), axis=1, ddof=1
    )  # without diverged models
    return tuple(GpBucb(p, q, width="domain", noise=float(one)) for one in noise)


def run(
    problem: Problem,
    arm: Arm,
    judge: Judge,
    *,
    n_batches: int,
    batch_size: int,
    path: Path,
    n_jobs: int = 1,
    keep_embedding: bool = False,
    on_batch: Callable[[int], None] | None = None,
) -> Seen:
    """Train B batches of K candidates for all repeats; continues from what `path` holds.

    `keep_embedding` leaves the file of the embedding beside `path`, for candidates to be trained later.
    `on_batch` is called after each batch with the number of batches done; it may raise `OutOfTimeError`.
    """
    embedding = embedding_file(path)
    arm = with_kept_embedding(arm, embedding, begun=path.exists())
    searches = _searches(problem, arm, judge, batch_size)
    seen = _begun(path, arm, searches)

    def on_told(repeat: int, trial: Trial, models: Any, predictions: Predictions | None) -> None:
        if predictions is None:  # it failed
            return
        seen.record(repeat, trial.number, {"validation": trial.value})
        try:
            scores = judge.recorded(problem, repeat, models[0], predictions)
        except MoewError:  # the model diverged, or the metric is undefined on the test rows
            return
        seen.record(repeat, trial.number, scores)

    train = train_repeats(problem.networks, searches, problem.classes, n_jobs)

    def train_batch(asked: Sequence[Sequence[Trial]]) -> TrainedTrials:
        batch = asked[0][0].number // batch_size
        seen.room_for(np.stack([[trial.alpha for trial in trials] for trials in asked]))
        yield from train(batch, asked)
        seen.save(path)
        if on_batch is not None:
            on_batch(batch + 1)
        if batch + 1 < n_batches:
            _ask_ahead(searches, batch_size, n_jobs)

    budget = Budget(n_batches * batch_size, batch_size)
    search_side_by_side(searches, budget, train=train_batch, on_told=on_told, keep=False)
    if not keep_embedding:
        embedding.unlink(missing_ok=True)
    return seen


def _ask_ahead(searches: Sequence[Search], k: int, n_jobs: int) -> None:
    """Ask every study for its next k candidates, which processes propose."""
    if n_jobs != 1:
        proposed = Parallel(n_jobs=n_jobs)(delayed(search.study.next_alphas)(k) for search in searches)
        for search, alphas in zip(searches, proposed, strict=True):
            search.study.ask_with(alphas)


def _searches(problem: Problem, arm: Arm, judge: Judge, batch_size: int) -> list[Search]:
    """The search of each repeat, with a study in memory."""
    searches = []
    for repeat, data in enumerate(problem.data):
        weighting = arm.weighting(repeat, data)
        study = WeightStudy(
            None,
            Ball(weighting.n_dims, arm.radius),
            sampler=arm.sampler(repeat),
            greater_is_better=judge.greater_is_better,
            n_initial=batch_size,
            alpha_zero_repeats=0,
            seed=integer_seed(arm.seed, "repeat", repeat),
        )
        searches.append(Search(study, data, None, weighting, judge.evaluator))
    return searches


def _begun(path: Path, arm: Arm, searches: Sequence[Search]) -> Seen:
    """The candidates in the file `path`, told to the studies; none if there is no such file."""
    if not path.exists():
        return Seen(np.empty((len(searches), 0, searches[0].weighting.n_dims)), mark=arm.mark)
    seen = Seen.load(path)
    try:
        check_mark(seen, arm)
    except MoewError as error:
        raise MoewError(
            f"{path}: {error} Bring {embedding_file(path).name} back, or remove the file to begin again."
        ) from error
    for repeat, search in enumerate(searches):
        for trial in search.study.ask_with(seen.alphas[repeat]):
            search.study.tell(trial.number, seen.scores["validation"][repeat, trial.number])
    return seen


def check_mark(seen: Seen, arm: Arm) -> None:
    """Raise an error if the candidates were found with another embedding or radius than the arm's."""
    if seen.mark.shape != arm.mark.shape or not np.allclose(seen.mark, arm.mark, rtol=0.01, atol=0.001):
        raise MoewError(
            "the candidates were found with another embedding or radius, and their alphas mean nothing here."
        )


def train_candidates(
    problem: Problem, arm: Arm, judge: Judge, alphas: FloatArray, batch: int, n_jobs: int = 1
) -> Seen:
    """Train and judge the candidates with the given alphas (R, k, d), as a batch of that number."""
    searches = _searches(problem, arm, judge, batch_size=alphas.shape[1])
    asked = [search.study.ask_with(of_repeat) for search, of_repeat in zip(searches, alphas, strict=True)]
    seen = Seen(alphas, mark=arm.mark)
    train = train_repeats(problem.networks, searches, problem.classes, n_jobs)
    for repeat, trial, models in train(batch, asked):
        if isinstance(models, Exception):
            raise models
        data = problem.data[repeat]
        try:
            predictions = judge.evaluator.predictions(models, data)
            value = judge.evaluator.value(predictions, data.validation)
            scores = judge.recorded(problem, repeat, models[0], predictions)
        except MoewError:  # the model diverged, or a metric is undefined
            continue
        seen.record(repeat, trial.number, {"validation": value, **scores})
    return seen


def embedding_file(path: Path) -> Path:
    """The file of the embedding of the search that is kept at `path`."""
    return path.with_suffix(".embedding.npy")


def with_kept_embedding(arm: Arm, path: Path, begun: bool) -> Arm:
    """The arm with the embedding that its search began with, which is kept at `path` until the search ends.

    Trained again it could differ: a GPU rounds differently if its compiler chooses other matrix products.
    """
    if not isinstance(arm, Learned):
        return arm
    if begun:
        return replace(arm, Z=np.load(path)) if path.exists() else arm
    write_whole(path, partial(np.save, arr=arm.Z))
    return arm
