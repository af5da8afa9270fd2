"""Train the models of candidates, one for each fold: in batches, in time, together with other processes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs

from moew.data import Fold, SearchData
from moew.exceptions import InvalidInputError, SearchFailedError
from moew.search._study import Trial
from moew.storage import Crew
from moew.training import ManyTrainer
from moew.types import FloatArray, Trainer, Training, Weighting, WeightingOfRows
from moew.weighting import over_fold

if TYPE_CHECKING:
    from moew.search._ledger import Ledger, Search

TrainedTrials = Generator[tuple[int, Trial, list[Any] | Exception], None, None]
TrainBatch = Callable[[Sequence[Sequence[Trial]]], TrainedTrials]
"""(the trials of each search) → (index of the search, trial, its models, one for each fold, or the exception
that stopped it), as they finish."""

_MOST_WEIGHTS = 2**27  # most weights to train in one call: a gigabyte
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5  # seconds between looks at what other processes do


def trainings_of(weighting: Weighting, trials: Sequence[Trial]) -> list[Training]:
    """How the models of the trials are trained."""
    weights = weighting.training_weights(np.stack([trial.alpha for trial in trials]))
    makes = weighting.rows if isinstance(weighting, WeightingOfRows) else None
    return [
        Training(w, trial.seed, trial.parameters, None if makes is None else makes(trial.alpha))
        for w, trial in zip(weights, trials, strict=True)
    ]


def train_folds(
    trainer: Trainer,
    data: SearchData,
    trainings: Sequence[Training],
    goes_on: Callable[[], bool] | None = None,
) -> Iterator[tuple[int, list[Any] | Exception]]:
    """Yield (k, models, one for each fold, or the exception of the first that failed) for K trainings; no
    more once `goes_on` says no."""
    models: list[dict[int, Any]] = [{} for _ in trainings]
    X, y = data.training.X, data.training.y
    for f, fold in enumerate(data.folds):
        for k, model in trainer.train(X, y, _in_fold(trainings, data, fold), fold.train):
            models[k][f] = model
            if len(models[k]) == len(data.folds):
                failed = [m for m in models[k].values() if isinstance(m, Exception)]
                yield k, failed[0] if failed else [models[k][i] for i in range(len(data.folds))]
                models[k] = {}  # free the memory unless the receiver keeps them
            if goes_on is not None and not goes_on():
                return


def _in_fold(trainings: Sequence[Training], data: SearchData, fold: Fold) -> Sequence[Training]:
    """The trainings with weights of the rows that the fold's models learn from."""
    if fold.train is None:
        return trainings
    own = data.training.sample_weight
    weights = np.stack([training.weights[fold.train] for training in trainings])
    weights = over_fold(weights, None if own is None else own[fold.train])
    return [replace(training, weights=w) for training, w in zip(trainings, weights, strict=True)]


@dataclass(frozen=True)
class Members:
    """Trainings whose models predict together, by their votes (m,); none of a constant."""

    trainings: Sequence[Training]
    votes: FloatArray


def trained_models(
    trainer: Trainer, data: SearchData, trainings: Sequence[Training]
) -> Iterator[tuple[int, list[Any]]]:
    """Yield (k, models, one for each fold) for K trainings; one that fails is an error."""
    for k, models in train_folds(trainer, data, trainings):
        if isinstance(models, Exception):
            raise SearchFailedError(f"the model could not be trained: {models}") from models
        yield k, models


def train_one(trainer: Trainer, data: SearchData, training: Training) -> list[Any]:
    """Train one model for each fold; the same training gives the same bits."""
    ((_, models),) = trained_models(trainer, data, [training])
    return models


def train_batch(
    searches: Sequence[Search], goes_on: Callable[[], bool] | None, asked: Sequence[Sequence[Trial]]
) -> TrainedTrials:
    """Train the candidates of all searches, those on the same rows in one call of their trainer. Once
    `goes_on` says no, the rest is left."""
    waiting = [place for place, trials in enumerate(asked) if trials]
    while waiting:
        first = searches[waiting[0]]
        if first.trainer is None:
            raise InvalidInputError("a search without a trainer needs `train`.", argument="trainer")
        group: list[int] = []
        size = 0
        for place in waiting:
            n_weights = len(asked[place]) * len(searches[place].data.training)
            if searches[place].data is first.data and (not group or size + n_weights <= _MOST_WEIGHTS):
                group.append(place)
                size += n_weights
        waiting = [place for place in waiting if place not in group]
        members = [(place, trial) for place in group for trial in asked[place]]
        trainings = [
            training for place in group for training in trainings_of(searches[place].weighting, asked[place])
        ]
        for k, models in train_folds(first.trainer, first.data, trainings, goes_on):
            yield *members[k], models


def train_in_time(
    train: TrainBatch,
    ledgers: Sequence[Ledger],
    is_over: Callable[[], bool],
    asked: Sequence[Sequence[Trial]],
) -> TrainedTrials:
    """Train the candidates of searches with one trainer, as many at a time as it trains at once, until the
    time is over. A model that trains many weightings at once gets the whole batch."""
    trainer = ledgers[0].search.trainer
    if isinstance(trainer, ManyTrainer):
        yield from train(asked)
        return
    members = [(place, trial) for place, trials in enumerate(asked) for trial in trials]
    members.sort(key=partial(_turn, ledgers, asked))
    most = _n_at_once(trainer)
    while members and not is_over():
        # The first two are trained in one call, which shows whether the model uses its weights.
        n = most if any(ledger.n_trained_here for ledger in ledgers) else max(most, 2)
        now, members = members[:n], members[n:]
        yield from train([[trial for of, trial in now if of == place] for place in range(len(asked))])


def _turn(
    ledgers: Sequence[Ledger], asked: Sequence[Sequence[Trial]], member: tuple[int, Trial]
) -> tuple[bool, float]:
    """When it is a candidate's turn if the time may not suffice for all: what a result needs comes first, and
    then each search gets its share."""
    place, trial = member
    study, trials = ledgers[place].study, asked[place]
    zero = study.alpha_zero_repeats > 0 and trial.number == 0
    wanted = zero or (place == 0 and trial.number == study.alpha_zero_repeats)
    return not wanted, (trial.number - trials[0].number) / len(trials)


def train_together(
    train: TrainBatch,
    crew: Crew,
    ledgers: Sequence[Ledger],
    is_over: Callable[[], bool],
    asked: Sequence[Sequence[Trial]],
) -> TrainedTrials:
    """Train those of the batch that no other process on the stored study trains, until all of it is told, or
    the time is over.

    Each time a process takes half of its share of what is left, so that those who are fast, and those who
    come later, find something to do. What a process held that died is left again; one that was only taken
    for dead gives the rest of its share up.
    """
    ends = [max((trial.number for trial in trials), default=-1) + 1 for trials in asked]
    pause = _FIRST_PAUSE
    while True:
        left = [ledger.catch_up(end) for ledger, end in zip(ledgers, ends, strict=True)]
        n_left = sum(map(len, left))
        if not n_left or is_over():
            return
        crew.claims_anew()
        most = max(_n_at_once(ledgers[0].search.trainer), math.ceil(n_left / (2 * len(crew.alive()) or 1)))
        mine: list[list[Trial]] = []
        for ledger, trials in zip(ledgers, left, strict=True):
            numbers = ledger.study.claim([trial.number for trial in trials], crew, most) if most else []
            mine.append([trial for trial in trials if trial.number in numbers])
            most -= len(numbers)
        if any(mine):
            yield from train(mine)
            for ledger in ledgers:
                ledger.tell_rest()
            pause = _FIRST_PAUSE
        else:
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _n_at_once(trainer: Trainer | None) -> int:
    """How many models a trainer trains at a time."""
    n_jobs = getattr(trainer, "n_jobs", 1)
    return int(effective_n_jobs(-1 if n_jobs == "auto" else n_jobs))
