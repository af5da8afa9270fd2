"""Algorithm 1: train a model for each candidate alpha, score it, ask for the next ones.

Several searches can run side by side: each batch of candidates of all of them is trained in one call, so that
a model that trains many weightings at once gets them together. A single search is a special case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from moew._util.progress import progress
from moew.data import SearchData, huge_columns
from moew.exceptions import InvalidInputError, SearchFailedError
from moew.metrics import Predictions
from moew.search._evaluate import Evaluator
from moew.search._stop import Stopped, reason_to_stop
from moew.search._study import Trial, WeightStudy
from moew.types import FloatArray, Trainer, Weighting
from moew.weighting._normalise import over_fold

_MOST_WEIGHTS = 2**27  # most weights to train in one call: a gigabyte


@dataclass(frozen=True)
class Suggestion:
    """Alphas for a search that follow from the predictions of one trial, instead of some of its sampler's.

    They are made once the first batch is done, and are the first candidates of the second.
    """

    study: WeightStudy  # of this search, or of one beside it
    number: int  # of the trial
    alphas: Callable[[Predictions], FloatArray | None]  # its predictions → (k, d), or None for nothing


@dataclass(frozen=True)
class Search:
    """The parts of one search: its study, rows, trainer, weighting and evaluator.

    The trainer may be None if `search_side_by_side` is given `train`.
    """

    study: WeightStudy
    data: SearchData
    trainer: Trainer | None
    weighting: Weighting
    evaluator: Evaluator
    share: tuple[float, float] = (0.0, 1.0)  # which part of the candidates of the searches side by side
    optional: bool = False  # whether others go on if all its candidates fail
    stop_when: float | None = None  # the gain, in the metric's units, below which it stops
    suggestion: Suggestion | None = None

    def n_until(self, batch: int, batch_size: int) -> int:
        """How many candidates besides those of α = 0 the search has after so many batches."""
        return n_in_share(self.share, batch * batch_size)


def n_in_share(share: tuple[float, float], n: int) -> int:
    """How many of n candidates lie in the share."""
    low, high = (math.ceil(end * n - 1e-9) for end in share)
    return high - low


@dataclass(frozen=True)
class Outcome:
    """All trials, their predictions on the validation rows, and the models of the best and of trial 0."""

    trials: list[Trial]
    predictions: dict[int, Predictions]
    greater_is_better: bool
    models: dict[int, list[Any]]  # of the best trial and of number 0, if kept; one for each fold
    stopped: Stopped | None = None  # if it stopped before its last batch

    @property
    def values(self) -> dict[int, float]:
        """The metric of every trial, by number."""
        return {trial.number: trial.value for trial in self.trials}


TrainBatch = Callable[[int, Sequence[Sequence[Trial]]], Iterator[tuple[int, Trial, list[Any] | Exception]]]
"""(number of the batch from 0, the trials of each search) → (index of the search, trial, its models, one for
each fold, or the exception that stopped it), as they finish."""
OnTrial = Callable[[int, Trial, list[Any], Predictions], None]
"""Called with (index of the search, trial with its value, its models, its predictions) for each trial that
could be scored."""


def search_weights(
    search: Search, *, n_batches: int, batch_size: int, show_progress: bool | None = None
) -> Outcome:
    """Run Algorithm 1 on a new or an interrupted study."""
    (outcome,) = search_side_by_side(
        [search], n_batches=n_batches, batch_size=batch_size, show_progress=show_progress
    )
    return outcome


def search_side_by_side(
    searches: Sequence[Search],
    *,
    n_batches: int,
    batch_size: int,
    show_progress: bool | None = None,
    train: TrainBatch | None = None,
    on_trial: OnTrial | None = None,
    on_batch: Callable[[int], None] | None = None,
    keep: bool = True,
    n_jobs: int = 1,
) -> list[Outcome]:
    """Run Algorithm 1 for several searches, batch by batch; each gives the same bits as it would alone.

    A search with `stop_when` may stop after any batch; the others go on.

    Parameters
    ----------
    searches : the searches, each with a study of its own
    n_batches, batch_size : B and K of each
    show_progress : as in `ExampleWeightSearch`
    train : trains a batch of all searches; None: each with its trainer, those on the same rows together
    on_trial : called for every trial that was scored
    on_batch : called after each batch with the number of batches done; an exception ends the searches
    keep : whether the outcomes hold predictions and models
    n_jobs : processes that propose alphas for studies in memory
    """
    ledgers = [_Ledger(search, keep) for search in searches]
    train = train or partial(_train_with_trainers, ledgers)
    ends = [search.n_until(n_batches, batch_size) for search in searches]
    total = sum(search.study.alpha_zero_repeats for search in searches) + sum(ends)
    with progress(total, n_batches, show_progress, sum(ledger.n_done for ledger in ledgers)) as report:
        for batch in range(n_batches):
            if batch == 1:
                _suggest(ledgers, batch_size)
            goals = [ledger.n_until(batch + 1, batch_size) for ledger in ledgers]
            asked = _ask([search.study for search in searches], goals, n_jobs)
            if any(asked):
                for place, trial, models in train(batch, asked):
                    scored = ledgers[place].enter(trial, models)
                    if on_trial is not None and scored is not None and not isinstance(models, Exception):
                        value, predictions = scored
                        on_trial(place, replace(trial, value=value, pending=False), models, predictions)
                    report(sum(ledger.n_done for ledger in ledgers), batch + 1, ledgers[0].best_value)
                for ledger in ledgers:
                    ledger.raise_if_nothing_works()
                if on_batch is not None:
                    on_batch(batch + 1)
            for ledger, goal, end in zip(ledgers, goals, ends, strict=True):
                ledger.stop_if_enough(goal, end)
    return [ledger.outcome() for ledger in ledgers]


def _suggest(ledgers: Sequence[_Ledger], batch_size: int) -> None:
    """Make the suggestions of all searches, from what the first batch showed."""
    for ledger in ledgers:
        search, suggestion = ledger.search, ledger.search.suggestion
        if suggestion is None:
            continue
        holder = next((other for other in ledgers if other.study is suggestion.study), ledger)
        predictions = holder.predictions.get(suggestion.number)
        alphas = None if predictions is None else suggestion.alphas(predictions)
        if alphas is not None:
            search.study.suggest(search.study.alpha_zero_repeats + search.n_until(1, batch_size), alphas)


def _ask(studies: Sequence[WeightStudy], ends: Sequence[int], n_jobs: int) -> list[list[Trial]]:
    """The trials of each study that are not yet told, up to the number `ends` after those of α = 0."""
    last = [study.alpha_zero_repeats + end for study, end in zip(studies, ends, strict=True)]
    if n_jobs != 1:
        wanted = [end - study.n_asked for study, end in zip(studies, last, strict=True)]
        jobs = (delayed(study.next_alphas)(k) for study, k in zip(studies, wanted, strict=True) if k > 0)
        alphas = iter(Parallel(n_jobs=n_jobs)(jobs))
        for study, k in zip(studies, wanted, strict=True):
            if k > 0:
                study.ask_with(next(alphas))
    return [study.ask_until(end) for study, end in zip(studies, last, strict=True)]


def _train_with_trainers(
    ledgers: Sequence[_Ledger], _batch: int, asked: Sequence[Sequence[Trial]]
) -> Iterator[tuple[int, Trial, list[Any] | Exception]]:
    """Train the candidates of all searches; those on the same rows in one call of their trainer."""
    waiting = [place for place, trials in enumerate(asked) if trials]
    while waiting:
        first = ledgers[waiting[0]].search
        if first.trainer is None:
            raise InvalidInputError("a search without a trainer needs `train`.", argument="trainer")
        group: list[int] = []
        size = 0
        for place in waiting:
            n_weights = len(asked[place]) * len(ledgers[place].search.data.training)
            fits = not group or size + n_weights <= _MOST_WEIGHTS
            if ledgers[place].search.data is first.data and fits:
                group.append(place)
                size += n_weights
        waiting = [place for place in waiting if place not in group]
        members = [(place, trial) for place in group for trial in asked[place]]
        weights = np.concatenate([training_weights(ledgers[place].search, asked[place]) for place in group])
        seeds, parameters = zip(*((trial.seed, trial.parameters) for _, trial in members), strict=True)
        for k, models in train_folds(first.trainer, first.data, weights, seeds, parameters):
            yield *members[k], models


def training_weights(search: Search, trials: Sequence[Trial]) -> FloatArray:
    """The weights (K, n) of a search's training rows for K trials."""
    return search.weighting.training_weights(np.stack([trial.alpha for trial in trials]))


def train_folds(
    trainer: Trainer,
    data: SearchData,
    weights: FloatArray,
    seeds: Sequence[int],
    parameters: Sequence[Mapping[str, Any]] = (),
) -> Iterator[tuple[int, list[Any] | Exception]]:
    """Yield (k, models, one for each fold, or the exception of the first that failed) for weights (K, n) and
    the hyper-parameters of K candidates, if they have any of their own."""
    more = {"parameters": parameters} if any(parameters) else {}
    models: list[dict[int, Any]] = [{} for _ in seeds]
    X, y, own = data.training.X, data.training.y, data.training.sample_weight
    for f, fold in enumerate(data.folds):
        of_fold = weights
        if fold.train is not None:
            of_fold = over_fold(weights[:, fold.train], None if own is None else own[fold.train])
        for k, model in trainer.train(X, y, of_fold, seeds, fold.train, **more):
            models[k][f] = model
            if len(models[k]) == len(data.folds):
                failed = [m for m in models[k].values() if isinstance(m, Exception)]
                yield k, failed[0] if failed else [models[k][i] for i in range(len(data.folds))]
                models[k] = {}  # free the memory unless the receiver keeps them


def train_one(
    trainer: Trainer, data: SearchData, weights: FloatArray, seed: int, parameters: Mapping[str, Any]
) -> list[Any]:
    """Train one model for each fold with weights (n,); the same weights, seed and parameters give the same
    bits."""
    ((_, models),) = train_folds(trainer, data, weights[None], [seed], [parameters])
    if isinstance(models, Exception):
        raise SearchFailedError(f"the model could not be trained: {models}") from models
    return models


class _Ledger:
    """Tells one search's study the values, and keeps all predictions and the models of the best trial."""

    def __init__(self, search: Search, keep: bool) -> None:
        self.search, self.study, self.keep = search, search.study, keep
        self.stopped: Stopped | None = None
        trials = self.study.trials()
        scored = {trial.number for trial in trials if math.isfinite(trial.value)}
        kept = self.study.kept().items()
        self.predictions = {n: Predictions.from_state(s).compact() for n, s in kept if n in scored}
        self.n_done = sum(not trial.pending for trial in trials)
        self.n_scored = len(scored)
        self.best_models: list[Any] | None = None
        self.first_models: list[Any] | None = None
        self.first_error: Exception | None = None
        self._sign = 1.0 if self.study.greater_is_better else -1.0
        values = [(self._sign * trial.value, -trial.number) for trial in trials if trial.number in scored]
        self._best = max(values, default=(-math.inf, 0))  # among equals the lowest number

    def enter(self, trial: Trial, models: list[Any] | Exception) -> tuple[float, Predictions] | None:
        """Score the candidate and tell the study; returns its value and predictions, or None for a failure,
        which is recorded with its message."""
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
            return None
        self.study.keep(trial.number, predictions.state)
        self.study.tell(trial.number, value)
        if not math.isfinite(value):
            return value, predictions
        self.n_scored += 1
        new = (self._sign * value, -trial.number)
        if new > self._best:
            self._best = new
            self.best_models = models if self.keep else None
        if self.keep:
            self.predictions[trial.number] = predictions.compact()
            self.first_models = models if trial.number == 0 else self.first_models
        return value, predictions

    def n_until(self, batch: int, batch_size: int) -> int:
        """As of its search; no more than it has after it stopped."""
        if self.stopped is not None:
            return self.stopped.n_candidates - self.study.alpha_zero_repeats
        return self.search.n_until(batch, batch_size)

    def stop_if_enough(self, n_now: int, n_end: int) -> None:
        """Stop the search if it may, it has no more than `n_now` of its `n_end` candidates yet, and more
        promise little.

        The random candidates alone stop nothing: a model of a few of them often takes the differences between
        scores for noise. A study that has more candidates was not stopped here before it was interrupted, or
        had another `stop_when`.
        """
        limit, n_asked = self.search.stop_when, self.study.alpha_zero_repeats + n_now
        if limit is None or self.stopped is not None or n_now <= self.study.n_initial:
            return
        if n_now >= n_end or self.study.n_asked > n_asked:
            return
        outlook = self.study.outlook()
        reason = reason_to_stop(outlook, limit)
        if outlook is not None and reason is not None:
            n_saved = n_end - n_now
            n_models = n_saved * len(self.search.data.folds)
            self.stopped = Stopped(
                reason, n_asked, n_saved, n_models, outlook.gain, outlook.width, float(limit)
            )

    @property
    def best_value(self) -> float:
        """The best value so far, including those told before an interruption; NaN without any."""
        return self._sign * self._best[0] if self.n_scored else math.nan

    def raise_if_nothing_works(self) -> None:
        """Raise if no candidate has a value after a whole batch, since more candidates would not help."""
        if self.n_scored or self.search.optional:
            return
        trials, data = self.study.trials(), self.search.data
        first = next((trial.error for trial in trials if trial.error), "no candidate was told")
        huge = huge_columns(data.training.X) or huge_columns(data.validation.X)
        where = (
            f" ({', '.join(huge[:5])}: infinite or huge values, which not every model takes)" if huge else ""
        )
        words = first.split("Stack trace")[0].rstrip()  # traces of other languages are long
        message = f"every candidate so far failed{where}; the first: {words}"
        raise SearchFailedError(message) from self.first_error

    def outcome(self) -> Outcome:
        """The outcome of the search."""
        self.raise_if_nothing_works()
        at_hand = {0: self.first_models, -self._best[1]: self.best_models}
        models = {number: found for number, found in at_hand.items() if found is not None}
        return Outcome(
            self.study.trials(), self.predictions, self.study.greater_is_better, models, self.stopped
        )
