"""Algorithm 1: train a model for each candidate alpha, score it, ask for the next ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from moew._util.progress import progress
from moew.data import huge_columns
from moew.data._problem import Problem
from moew.exceptions import SearchFailedError
from moew.metrics._observation import Observation
from moew.search._evaluate import Evaluator
from moew.search._study import Candidate, Told, WeightStudy
from moew.types import FloatArray, Trainer
from moew.weighting import ExampleWeighting


@dataclass(frozen=True)
class Outcome:
    """All candidates, what they answered on the validation rows, and the winner's models (one a fold)."""

    candidates: list[Told]
    observations: dict[int, Observation]
    best: Told
    best_models: list[Any]
    first_models: list[Any] | None  # of candidate 0; None where it failed, or before an interruption

    @property
    def values(self) -> dict[int, float]:
        """The metric of every candidate, by number."""
        return {told.candidate.number: told.value for told in self.candidates}


def search_weights(
    study: WeightStudy,
    problem: Problem,
    trainer: Trainer,
    weighting: ExampleWeighting,
    evaluator: Evaluator,
    *,
    n_batches: int,
    batch_size: int,
    show_progress: bool | None = None,
) -> Outcome:
    """Algorithm 1, on a study that may be new or interrupted."""
    ledger = _Ledger(study, evaluator, problem)
    total = study.alpha_zero_repeats + n_batches * batch_size
    with progress(total, n_batches, show_progress, ledger.n_done) as report:
        for number, batch in _batches(study, n_batches, batch_size):
            weights = weighting.training_weights(np.stack([candidate.alpha for candidate in batch]))
            seeds = [candidate.seed for candidate in batch]
            for k, models in train_folds(trainer, problem, weights, seeds):
                ledger.enter(batch[k], models)
                report(ledger.n_done, number, ledger.best_value)
            ledger.raise_if_nothing_works()
    ledger.raise_if_nothing_works()
    best = study.best()
    best_models = ledger.best_models
    if best_models is None:  # trained before an interruption; the seed is known
        weights = weighting.training_weights(best.candidate.alpha[None])[0]
        best_models = train_one(trainer, problem, weights, best.candidate.seed)
    return Outcome(study.told(), ledger.observations, best, best_models, ledger.first_models)


def train_folds(
    trainer: Trainer, problem: Problem, weights: FloatArray, seeds: Sequence[int]
) -> Iterator[tuple[int, list[Any] | Exception]]:
    """Yield (k, one model a fold, or the exception of the first that failed) for weights (K, n)."""
    models: list[dict[int, Any]] = [{} for _ in seeds]
    X, y = problem.training.X, problem.training.y
    for f, fold in enumerate(problem.folds):
        part = weights
        if fold.train is not None:
            part = weights[:, fold.train]
            user = problem.training.sample_weight
            mean = 1.0 if user is None else user[fold.train].mean()
            part = part * (mean / part.mean(axis=1, keepdims=True))  # c is of the rows that are trained on
        for k, model in trainer.train(X, y, part, seeds, fold.train):
            models[k][f] = model
            if len(models[k]) == len(problem.folds):
                failed = [m for m in models[k].values() if isinstance(m, Exception)]
                yield k, failed[0] if failed else [models[k][i] for i in range(len(problem.folds))]
                models[k] = {}  # a model is kept by the receiver or by nobody


def train_one(trainer: Trainer, problem: Problem, weights: FloatArray, seed: int) -> list[Any]:
    """One model a fold for weights (n,); the same weights and seed give the same bits."""
    ((_, models),) = train_folds(trainer, problem, weights[None], [seed])
    if isinstance(models, Exception):
        raise SearchFailedError(f"the model could not be trained: {models}") from models
    return models


def _batches(study: WeightStudy, n_batches: int, batch_size: int) -> Iterator[tuple[int, list[Candidate]]]:
    """(batch number from 1, its candidates that are not yet told), K at a time."""
    for batch in range(1, n_batches + 1):
        if candidates := study.ask_until(study.alpha_zero_repeats + batch * batch_size):
            yield batch, candidates


class _Ledger:
    """Tells the study, keeps what every candidate answered, and the models of the best and the first."""

    def __init__(self, study: WeightStudy, evaluator: Evaluator, problem: Problem) -> None:
        self.study = study
        self.evaluator = evaluator
        self.problem = problem
        told = study.told()
        scored = {t.candidate.number for t in told if math.isfinite(t.value)}
        kept = study.kept().items()
        self.observations = {n: Observation.from_state(state).compact() for n, state in kept if n in scored}
        self.n_done = sum(not t.pending for t in told)
        self.best_models: list[Any] | None = None
        self.first_models: list[Any] | None = None
        self.first_error: Exception | None = None
        self._sign = 1.0 if study.greater_is_better else -1.0
        values = [(self._sign * t.value, -t.candidate.number) for t in told if t.candidate.number in scored]
        self._best = max(values, default=(-math.inf, 0))  # among equals the lowest number

    def enter(self, candidate: Candidate, models: list[Any] | Exception) -> None:
        """Score the candidate and tell the study; a failure is recorded with its message."""
        self.n_done += 1
        try:
            if isinstance(models, Exception):
                raise models
            observation = self.evaluator.observe(models, self.problem)
            value = self.evaluator.value(observation, self.problem.validation)
        except Exception as error:
            self.first_error = self.first_error or error
            self.study.tell(candidate.number, error=f"{type(error).__name__}: {error}")
            return
        self.study.keep(candidate.number, observation.state)
        self.study.tell(candidate.number, value)
        if not math.isfinite(value):
            return
        self.observations[candidate.number] = observation.compact()
        if candidate.number == 0:
            self.first_models = models
        new = (self._sign * value, -candidate.number)
        if new > self._best:
            self._best, self.best_models = new, models

    @property
    def best_value(self) -> float:
        """The best so far, also of what was told before an interruption."""
        return self._sign * self._best[0] if self.observations else math.nan

    def raise_if_nothing_works(self) -> None:
        """After a whole batch without one value, more of the same would not help."""
        if self.observations:
            return
        first = next((told.error for told in self.study.told() if told.error), "no candidate was told")
        huge = huge_columns(self.problem.training.X) or huge_columns(self.problem.validation.X)
        where = (
            f" ({', '.join(huge[:5])}: infinite or huge values, which not every model takes)" if huge else ""
        )
        words = first.split("Stack trace")[0].rstrip()  # of a library's own language
        message = f"every candidate so far failed{where}; the first: {words}"
        raise SearchFailedError(message) from self.first_error
