"""Algorithm 1: train a model for each candidate alpha, score it, ask for the next ones.

Several searches can run side by side: each batch of candidates of all of them is trained in one call, so that
a model that trains many weightings at once gets all of them together. One search is the case of one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from moew._util.progress import progress
from moew.data import SearchData, huge_columns
from moew.exceptions import SearchFailedError
from moew.metrics import Predictions
from moew.search._evaluate import Evaluator
from moew.search._study import Trial, WeightStudy
from moew.types import FloatArray, Trainer, Weighting
from moew.weighting._normalise import over_fold

_MOST_WEIGHTS = 2**27  # weights of several searches that are trained in one call: a gigabyte


@dataclass(frozen=True)
class Search:
    """What one search is made of: its study, rows, trainer, weighting, and how models are judged."""

    study: WeightStudy
    data: SearchData
    trainer: Trainer
    weighting: Weighting
    evaluator: Evaluator


@dataclass(frozen=True)
class Outcome:
    """All trials, what they predicted on the validation rows, and the models of the best and of the first."""

    trials: list[Trial]
    predictions: dict[int, Predictions]
    greater_is_better: bool
    models: dict[int, list[Any]]  # one a fold, of the best trial and of number 0, where they are at hand

    @property
    def values(self) -> dict[int, float]:
        """The metric of every trial, by number."""
        return {trial.number: trial.value for trial in self.trials}


def search_weights(
    search: Search, *, n_batches: int, batch_size: int, show_progress: bool | None = None
) -> Outcome:
    """Algorithm 1, on a study that may be new or interrupted."""
    budget = {"n_batches": n_batches, "batch_size": batch_size}
    return search_side_by_side([search], **budget, show_progress=show_progress)[0]


def search_side_by_side(
    searches: Sequence[Search], *, n_batches: int, batch_size: int, show_progress: bool | None = None
) -> list[Outcome]:
    """Algorithm 1 for several searches, batch by batch; each ends as it would alone, bit for bit."""
    ledgers = [_Ledger(search) for search in searches]
    total = sum(search.study.alpha_zero_repeats + n_batches * batch_size for search in searches)
    with progress(total, n_batches, show_progress, sum(ledger.n_done for ledger in ledgers)) as report:
        for batch in range(1, n_batches + 1):
            asked = [
                (ledger, ledger.study.ask_until(ledger.study.alpha_zero_repeats + batch * batch_size))
                for ledger in ledgers
            ]
            for together in _trained_together(asked):
                for ledger, trial, models in _train(together):
                    ledger.enter(trial, models)
                    report(sum(one.n_done for one in ledgers), batch, ledgers[0].best_value)
            for ledger in ledgers:
                ledger.raise_if_nothing_works()
    return [ledger.outcome() for ledger in ledgers]


_Asked = tuple["_Ledger", list[Trial]]


def _trained_together(asked: Sequence[_Asked]) -> Iterator[list[_Asked]]:
    """Groups of searches that train on the same rows, as many as their weights fit in memory."""
    waiting = [one for one in asked if one[1]]
    while waiting:
        first, _ = waiting[0]
        group: list[_Asked] = []
        size = 0
        for ledger, trials in waiting:
            n_weights = len(trials) * len(ledger.search.data.training)
            if ledger.search.data is first.search.data and (not group or size + n_weights <= _MOST_WEIGHTS):
                group.append((ledger, trials))
                size += n_weights
        yield group
        waiting = [one for one in waiting if one not in group]


def _train(together: Sequence[_Asked]) -> Iterator[tuple[_Ledger, Trial, list[Any] | Exception]]:
    """Train the candidates of searches on the same rows in one call."""
    members = [(ledger, trial) for ledger, trials in together for trial in trials]
    weights = np.concatenate([ledger.weights(trials) for ledger, trials in together])
    first = together[0][0].search
    for k, models in train_folds(first.trainer, first.data, weights, [trial.seed for _, trial in members]):
        yield *members[k], models


def train_folds(
    trainer: Trainer, data: SearchData, weights: FloatArray, seeds: Sequence[int]
) -> Iterator[tuple[int, list[Any] | Exception]]:
    """Yield (k, one model a fold, or the exception of the first that failed) for weights (K, n)."""
    models: list[dict[int, Any]] = [{} for _ in seeds]
    X, y, own = data.training.X, data.training.y, data.training.sample_weight
    for f, fold in enumerate(data.folds):
        of_fold = weights
        if fold.train is not None:
            of_fold = over_fold(weights[:, fold.train], None if own is None else own[fold.train])
        for k, model in trainer.train(X, y, of_fold, seeds, fold.train):
            models[k][f] = model
            if len(models[k]) == len(data.folds):
                failed = [m for m in models[k].values() if isinstance(m, Exception)]
                yield k, failed[0] if failed else [models[k][i] for i in range(len(data.folds))]
                models[k] = {}  # a model is kept by the receiver or by nobody


def train_one(trainer: Trainer, data: SearchData, weights: FloatArray, seed: int) -> list[Any]:
    """One model a fold for weights (n,); the same weights and seed give the same bits."""
    ((_, models),) = train_folds(trainer, data, weights[None], [seed])
    if isinstance(models, Exception):
        raise SearchFailedError(f"the model could not be trained: {models}") from models
    return models


class _Ledger:
    """Tells the study of one search, and keeps what every candidate predicted and the models of the best."""

    def __init__(self, search: Search) -> None:
        self.search, self.study = search, search.study
        trials = self.study.trials()
        scored = {trial.number for trial in trials if math.isfinite(trial.value)}
        kept = self.study.kept().items()
        self.predictions = {n: Predictions.from_state(s).compact() for n, s in kept if n in scored}
        self.n_done = sum(not trial.pending for trial in trials)
        self.best_models: list[Any] | None = None
        self.first_models: list[Any] | None = None
        self.first_error: Exception | None = None
        self._sign = 1.0 if self.study.greater_is_better else -1.0
        values = [(self._sign * trial.value, -trial.number) for trial in trials if trial.number in scored]
        self._best = max(values, default=(-math.inf, 0))  # among equals the lowest number

    def weights(self, trials: Sequence[Trial]) -> FloatArray:
        """The weights (K, n) of the training rows for K trials."""
        return self.search.weighting.training_weights(np.stack([trial.alpha for trial in trials]))

    def enter(self, trial: Trial, models: list[Any] | Exception) -> None:
        """Score the candidate and tell the study; a failure is recorded with its message."""
        self.n_done += 1
        evaluator, data = self.search.evaluator, self.search.data
        try:
            if isinstance(models, Exception):
                raise models
            predictions = evaluator.predictions(models, data)
            value = evaluator.value(predictions, data.validation)
        except Exception as error:
            self.first_error = self.first_error or error
            self.study.tell(trial.number, error=f"{type(error).__name__}: {error}")
            return
        self.study.keep(trial.number, predictions.state)
        self.study.tell(trial.number, value)
        if not math.isfinite(value):
            return
        self.predictions[trial.number] = predictions.compact()
        if trial.number == 0:
            self.first_models = models
        new = (self._sign * value, -trial.number)
        if new > self._best:
            self._best, self.best_models = new, models

    @property
    def best_value(self) -> float:
        """The best so far, also of what was told before an interruption."""
        return self._sign * self._best[0] if self.predictions else math.nan

    def raise_if_nothing_works(self) -> None:
        """After a whole batch without one value, more of the same would not help."""
        if self.predictions:
            return
        trials, data = self.study.trials(), self.search.data
        first = next((trial.error for trial in trials if trial.error), "no candidate was told")
        huge = huge_columns(data.training.X) or huge_columns(data.validation.X)
        where = (
            f" ({', '.join(huge[:5])}: infinite or huge values, which not every model takes)" if huge else ""
        )
        words = first.split("Stack trace")[0].rstrip()  # of a library's own language
        message = f"every candidate so far failed{where}; the first: {words}"
        raise SearchFailedError(message) from self.first_error

    def outcome(self) -> Outcome:
        """What is known at the end."""
        self.raise_if_nothing_works()
        at_hand = {0: self.first_models, -self._best[1]: self.best_models}
        models = {number: found for number, found in at_hand.items() if found is not None}
        return Outcome(self.study.trials(), self.predictions, self.study.greater_is_better, models)
