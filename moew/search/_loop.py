"""Algorithm 1: train a model for each candidate alpha, score it, ask for the next ones.

Several searches can run side by side: each batch of candidates of all of them is trained in one call, so that
a model that trains many weightings at once gets them together. A single search is a special case. Below the
algorithm: how a batch is trained, for each fold, in time, together with other processes; the ledger, where
candidates are scored and told; and the budget, which ends it.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from joblib import effective_n_jobs

from moew._util.numbers import count, number
from moew._util.progress import Report, progress
from moew.data import Fold, SearchData, huge_columns
from moew.exceptions import Argument, InvalidInputError, SearchFailedError
from moew.metrics import Predictions
from moew.search._evaluate import Evaluator
from moew.search._stored import check_values, stored_predictions
from moew.search._study import Told, Trial, WeightStudy
from moew.storage import Crew
from moew.training import ManyTrainer
from moew.types import Outlook, Trainer, Training, Weighting, WeightingOfRows
from moew.weighting import over_fold


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
    strategy: str = ""  # whose trainings it proposes
    name: str = ""  # what it is called among the searches of a fit


TrainedTrials = Generator[tuple[int, Trial, list[Any] | Exception], None, None]
TrainBatch = Callable[[Sequence[Sequence[Trial]]], TrainedTrials]
"""(the trials of each search) → (index of the search, trial, its models, one for each fold, or the exception
that stopped it), as they finish."""
OnTold = Callable[[int, Trial, list[Any] | Exception, Predictions | None], None]
"""Called for each trial that was trained, with the index of its search, the trial with its value or its
error, its models, or what stopped them, and its predictions, None for a failure."""
Show = Callable[..., contextlib.AbstractContextManager[Report]]
"""(number of candidates, of batches, already=candidates that are done) → context that shows the progress."""

_MOST_WEIGHTS = 2**27  # most weights to train in one call: a gigabyte
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5  # seconds between looks at what other processes do
_TELL_EVERY = 1.0  # seconds
_ENOUGH_TO_TELL = 10  # candidates that were trained before the share of failures says anything
_MOST_REASONS = 3  # of failures that a message shows
_QUIET = partial(progress, enabled=False)


def search_side_by_side(
    searches: Sequence[Search],
    budget: Budget,
    *,
    train: TrainBatch | None = None,
    on_told: OnTold | None = None,
    keep: bool = True,
    crew: Crew | None = None,
    show: Show = _QUIET,
) -> list[Outcome]:
    """Run Algorithm 1 for several searches, batch by batch; each gives the same bits as it would alone.

    Studies that know candidates already, as after an interruption, go on with them.

    Parameters
    ----------
    searches : the searches, each with a study of its own
    budget : how many candidates they train, and what ends them before
    train : trains a batch of all searches; None: each with its trainer, those on the same rows together
    on_told : called for every trial that was trained, scored or failed
    keep : whether the outcomes hold predictions
    crew : the processes on these searches; those that join train each batch together
    show : shows the progress; without it nothing is shown
    """
    run = _SideBySide(searches, budget, keep, crew)
    train = run.training(train)
    interrupted = False
    with show(sum(run.ends(budget.n_batches)), budget.n_batches, already=run.n_done) as report:
        try:
            for batch, ends in enumerate(run.batches(), 1):
                asked = [one.study.ask_until(end) for one, end in zip(searches, ends, strict=True)]
                if not any(asked) and not run.joined:
                    continue
                try:
                    # Closed at once when interrupted, so that what is still being trained ends.
                    with contextlib.closing(train(asked)) as trained:
                        for place, trial, models in trained:
                            told, predictions = run.ledgers[place].enter(trial, models)
                            if on_told is not None:
                                on_told(place, told, models, predictions)
                            report(run.n_done, batch, run.ledgers[0].best_value)
                            if crew is not None:
                                crew.check()
                finally:  # also what was trained before an interruption
                    for ledger in run.ledgers:
                        ledger.tell_rest()
                run.check_failures()
        except KeyboardInterrupt:
            if not (budget.concludes and run.is_enough):
                raise
            interrupted = True
    cut_off = run.cut_off(interrupted)
    return [ledger.outcome(cut_off) for ledger in run.ledgers]


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


def train_all(trainer: Trainer, data: SearchData, trainings: Sequence[Training]) -> list[list[Any]]:
    """The models of each training, one for each fold; one that fails is an error. The same training gives the
    same bits."""
    found: dict[int, list[Any]] = {}
    for k, models in train_folds(trainer, data, trainings):
        if isinstance(models, Exception):
            raise SearchFailedError(f"the model could not be trained: {models}") from models
        found[k] = models
    return [found[k] for k in range(len(trainings))]


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


def _n_at_once(trainer: Trainer | None) -> int:
    """How many models a trainer trains at a time."""
    n_jobs = getattr(trainer, "n_jobs", 1)
    return int(effective_n_jobs(-1 if n_jobs == "auto" else n_jobs))


def n_in_share(share: tuple[float, float], n: int) -> int:
    """How many of n candidates lie in the share."""
    low, high = (math.ceil(end * n - 1e-9) for end in share)
    return high - low


@dataclass(frozen=True)
class Stopped:
    """Why and where a search stopped before its last batch; numbers are in the metric's units."""

    reason: Literal["gain", "width"]
    n_candidates: int  # asked for, with those of α = 0
    n_saved: int  # candidates that were not trained
    n_trainings_saved: int  # the models of all their folds
    gain: float  # of the highest upper confidence bound over the best value
    width: float  # of the widest prediction interval
    stop_when: float

    def __str__(self) -> str:
        why = (
            f"the upper confidence bound promised a gain of {number(max(self.gain, 0.0))} at most"
            if self.reason == "gain"
            else f"the prediction interval was nowhere wider than {number(self.width)}"
        )
        trainings = "training" if self.n_trainings_saved == 1 else "trainings"
        return (
            f"the search for example weights stopped after {self.n_candidates} of "
            f"{self.n_candidates + self.n_saved} candidates, because {why}, below {number(self.stop_when)}; "
            f"this saved {self.n_trainings_saved} {trainings}."
        )


@dataclass(frozen=True)
class CutOff:
    """That a search ended before all its candidates were trained, and not because more promised little."""

    reason: Literal["timeout", "interrupt"]
    n_trained: int  # of all strategies, with those of α = 0, also those that failed
    n_candidates: int  # that it would have trained
    timeout: float | None = None  # seconds

    def __str__(self) -> str:
        why = "the search was interrupted"
        if self.reason == "timeout":
            why = f"the search ended by its timeout of {number(self.timeout)} s"
        were = "was" if self.n_trained == 1 else "were"
        return f"{why}: {self.n_trained:,} of {count(self.n_candidates, 'candidate')} {were} trained."


@dataclass(frozen=True)
class Outcome:
    """All trials, and their predictions on the evaluation rows, if kept.

    A search that was cut off has only the trials that were trained.
    """

    trials: list[Trial]
    predictions: dict[int, Predictions]
    stopped: Stopped | None = None  # if it stopped before its last batch
    n_trained_here: int = 0  # by this process, not by others or before
    cut_off: CutOff | None = None  # if not all candidates of all searches side by side were trained


class Ledger:
    """Scores the candidates of a search, tells its study, and keeps their predictions.

    Parameters
    ----------
    search : the search, which goes on with what its study knows
    keep : whether predictions are kept
    joined : whether other processes tell the study, too
    """

    def __init__(self, search: Search, keep: bool = True, joined: bool = False) -> None:
        self.search, self.study, self.keep, self.joined = search, search.study, keep, joined
        self.stopped: Stopped | None = None
        self.n_trained_here = 0
        self.first_error: Exception | None = None
        self.values: dict[int, float] = {}  # of all trials that are told, by number; NaN for a failure
        self.predictions: dict[int, Predictions] = {}
        self._untold: list[Told] = []
        self._told_at = time.monotonic()
        trials = self.study.trials()
        self._take_values(trials)
        if self.study.store.is_stored:
            self.predictions = stored_predictions(search, trials)
            check_values(search, trials, self.predictions)

    def catch_up(self, end: int) -> list[Trial]:
        """Take in what other processes have told; returns the pending trials below the number `end`."""
        trials = self.study.trials()
        self._take_values(trials)
        if self.keep:
            new = [trial for trial in trials if trial.number not in self.predictions]
            self.predictions.update(stored_predictions(self.search, new))
        return [trial for trial in trials if trial.pending and trial.number < end]

    def _take_values(self, trials: Sequence[Trial]) -> None:
        self.values = {trial.number: trial.value for trial in trials if not trial.pending}

    def enter(self, trial: Trial, models: list[Any] | Exception) -> tuple[Trial, Predictions | None]:
        """Score the candidate and tell the study; returns it with its value or its error, and its
        predictions, or None for a failure."""
        self.n_trained_here += 1
        evaluator, data = self.search.evaluator, self.search.data
        try:
            if isinstance(models, Exception):
                raise models
            predictions = evaluator.predictions(models, data)
            value = evaluator.value(predictions, data.validation)
        except Exception as error:
            self.first_error = self.first_error or error
            words = f"{type(error).__name__}: {error}"
            self._tell(Told(trial.number, error=words))
            self.values[trial.number] = math.nan
            return replace(trial, error=words, pending=False), None
        content = predictions.packed() if self.study.store.is_stored else None
        self._tell(Told(trial.number, value, content=content))
        self.values[trial.number] = value
        if self.keep and math.isfinite(value):
            self.predictions[trial.number] = predictions.compact()
        return replace(trial, value=value, pending=False), predictions

    def _tell(self, told: Told) -> None:
        """Tell the study. A storage is told at most once a second, since each write takes a while; what a
        process that is killed had not told yet is trained again."""
        self._untold.append(told)
        if not self.study.store.is_stored or time.monotonic() - self._told_at >= _TELL_EVERY:
            self.tell_rest()

    def tell_rest(self) -> None:
        """Tell the study what it was not told yet."""
        told, self._untold = self._untold, []
        for by_another in self.study.tell_all(told, joined=self.joined):
            self.predictions.pop(by_another, None)  # its record counts
        self._told_at = time.monotonic()

    @property
    def n_scored(self) -> int:
        """How many trials have a value."""
        return sum(map(math.isfinite, self.values.values()))

    @property
    def best_value(self) -> float:
        """The best value so far, including those told before an interruption; NaN without any."""
        best = max if self.study.greater_is_better else min
        return best(filter(math.isfinite, self.values.values()), default=math.nan)

    def raise_if_nothing_works(self) -> None:
        """Raise if no candidate has a value after a whole batch, since more candidates would not help."""
        if self.n_scored or self.search.optional:
            return
        trials, data = self.study.trials(), self.search.data
        first = next((trial.error for trial in trials if trial.error), "no candidate was told")
        where = ""
        if huge := huge_columns(data.training.X) or huge_columns(data.validation.X):
            where = f" ({', '.join(huge[:5])}: infinite or huge values, which not every model takes)"
        message = f"every candidate so far failed{where}; the first: {_without_trace(first)}"
        raise SearchFailedError(message) from self.first_error

    def trained(self) -> list[Trial]:
        """The trials that are told; without one whose predictions an interruption has prevented."""
        told = [trial for trial in self.study.trials() if not trial.pending]
        return [t for t in told if not (self.keep and math.isfinite(t.value)) or t.number in self.predictions]

    def outcome(self, cut_off: CutOff | None) -> Outcome:
        """The outcome of the search."""
        self.raise_if_nothing_works()
        trials = self.study.trials() if cut_off is None else self.trained()
        return Outcome(trials, self.predictions, self.stopped, self.n_trained_here, cut_off)


@dataclass(frozen=True)
class Deadline:
    """The moment from which on no candidate is begun, so many seconds after this object was made."""

    seconds: float
    begun: float = field(default_factory=time.monotonic)

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() - self.begun >= self.seconds


@dataclass(frozen=True)
class Budget:
    """How many candidates, seconds and failures searches side by side have.

    Parameters
    ----------
    n_candidates : of all searches together, besides those of α = 0
    batch_size : how many of them are asked for at a time; the last batch may be smaller
    deadline : no candidate is begun after it, but that the models at α = 0 and one candidate are always
        trained; models that train many weightings at once begin no batch
    most_failures : the share of failed candidates above which the searches end with an error
    concludes : whether a KeyboardInterrupt ends the searches like a deadline, once these are trained
    """

    n_candidates: int
    batch_size: int
    deadline: Deadline | None = None
    most_failures: float = 1.0
    concludes: bool = False

    @property
    def n_batches(self) -> int:
        """How many batches there are."""
        return math.ceil(self.n_candidates / self.batch_size)


class _SideBySide:
    """Searches that run side by side: their ledgers, and what their budget allows."""

    def __init__(self, searches: Sequence[Search], budget: Budget, keep: bool, crew: Crew | None) -> None:
        self.budget, self.joined = budget, crew is not None and crew.joins
        self.others = crew if self.joined else None
        self.ledgers = [Ledger(search, keep, self.joined) for search in searches]

    @property
    def n_done(self) -> int:
        """How many candidates are told."""
        return sum(len(ledger.values) for ledger in self.ledgers)

    def ends(self, n_batches: int) -> list[int]:
        """How many candidates each search has after so many batches, with those of α = 0; no more than it had
        when it stopped."""
        n = min(n_batches * self.budget.batch_size, self.budget.n_candidates)
        return [
            ledger.study.alpha_zero_repeats + n_in_share(ledger.search.share, n)
            if ledger.stopped is None
            else ledger.stopped.n_candidates
            for ledger in self.ledgers
        ]

    def batches(self) -> Iterator[list[int]]:
        """The `ends` after each batch, until all candidates are trained, or the time is over. Between two of
        them a search with `stop_when` may stop; the others go on."""
        for batch in range(1, self.budget.n_batches + 1):
            ends = self.ends(batch)
            if self.is_over() and not self._are_told(ends):
                return
            yield ends
            if self.is_over() and not self._are_told(ends):
                return
            for ledger, now, end in zip(self.ledgers, ends, self.ends(self.budget.n_batches), strict=True):
                if ledger.search.stop_when is not None and ledger.stopped is None:
                    ledger.stopped = _stopped(ledger, now, end, ledger.search.stop_when)

    def is_over(self) -> bool:
        """Whether no further candidate is to be begun."""
        deadline = self.budget.deadline
        return deadline is not None and deadline.is_over and self.is_enough

    @property
    def is_enough(self) -> bool:
        """Whether there is something to conclude from: the models at α = 0 of all searches and one more
        candidate of the first are told, and each search that must not fail has a value."""
        first = self.ledgers[0]
        return (
            all(0 in ledger.values for ledger in self.ledgers if ledger.study.alpha_zero_repeats)
            and any(k >= first.study.alpha_zero_repeats for k in first.values)
            and all(ledger.n_scored or ledger.search.optional for ledger in self.ledgers)
        )

    def _are_told(self, ends: Sequence[int]) -> bool:
        """Whether all candidates below these numbers are trained."""
        return all(led.values.keys() >= set(range(end)) for led, end in zip(self.ledgers, ends, strict=True))

    def cut_off(self, interrupted: bool) -> CutOff | None:
        """That the searches ended before all their candidates were trained; None if all were."""
        ends, deadline = self.ends(self.budget.n_batches), None if interrupted else self.budget.deadline
        if not interrupted and (deadline is None or self._are_told(ends)):
            return None
        n_trained = sum(len(ledger.trained()) for ledger in self.ledgers)
        if deadline is None:
            return CutOff("interrupt", n_trained, sum(ends))
        return CutOff("timeout", n_trained, sum(ends), deadline.seconds)

    def check_failures(self) -> None:
        """Raise if every candidate of a search that others need failed, or too large a share of all, with the
        most frequent reasons."""
        for ledger in self.ledgers:
            ledger.raise_if_nothing_works()
        n_done, most_failures = self.n_done, self.budget.most_failures
        n_failed = n_done - sum(ledger.n_scored for ledger in self.ledgers)
        if n_done < _ENOUGH_TO_TELL or n_failed <= most_failures * n_done:
            return
        errors = [trial.error for ledger in self.ledgers for trial in ledger.study.trials() if trial.error]
        most = Counter(map(_without_trace, errors)).most_common(_MOST_REASONS)
        reasons = "; ".join(f"{n} times: {error}" for error, n in most)
        first = next((ledger.first_error for ledger in self.ledgers if ledger.first_error), None)
        raise SearchFailedError(
            f"{n_failed} of {n_done} candidates failed, more than ",
            Argument("most_failures", most_failures),
            " allows; mend their reasons, or allow more failures. ",
            reasons,
            argument="most_failures",
        ) from first

    def training(self, train: TrainBatch | None) -> TrainBatch:
        """The function that trains a batch, as long as the time is not over, and together with others."""
        if train is None:
            goes_on = None if self.others is None else self.others.holds_its_share
            train = partial(train_batch, [ledger.search for ledger in self.ledgers], goes_on)
            if self.budget.deadline is not None:
                train = partial(self.train_in_time, train)
        return train if self.others is None else partial(self.train_together, train, self.others)

    def train_in_time(self, train: TrainBatch, asked: Sequence[Sequence[Trial]]) -> TrainedTrials:
        """Train the candidates of searches with one trainer, as many at a time as it trains at once, until
        the time is over. A model that trains many weightings at once gets the whole batch."""
        trainer = self.ledgers[0].search.trainer
        if isinstance(trainer, ManyTrainer):
            yield from train(asked)
            return

        def turn(member: tuple[int, Trial]) -> tuple[bool, float]:
            """What a result needs comes first, and then each search gets its share."""
            place, trial = member
            n_zero, trials = self.ledgers[place].study.alpha_zero_repeats, asked[place]
            wanted = (n_zero > 0 and trial.number == 0) or (place == 0 and trial.number == n_zero)
            return not wanted, (trial.number - trials[0].number) / len(trials)

        members = [(place, trial) for place, trials in enumerate(asked) for trial in trials]
        members.sort(key=turn)
        most = _n_at_once(trainer)
        while members and not self.is_over():
            # The first two are trained in one call, which shows whether the model uses its weights.
            n = most if any(ledger.n_trained_here for ledger in self.ledgers) else max(most, 2)
            now, members = members[:n], members[n:]
            yield from train([[trial for of, trial in now if of == place] for place in range(len(asked))])

    def train_together(
        self, train: TrainBatch, crew: Crew, asked: Sequence[Sequence[Trial]]
    ) -> TrainedTrials:
        """Train those of the batch that no other process on the stored study trains, until all of it is told,
        or the time is over.

        Each time a process takes half of its share of what is left, so that those who are fast, and those who
        come later, find something to do. What a process held that died is left again; one that was only taken
        for dead gives the rest of its share up.
        """
        ends = [max((trial.number for trial in trials), default=-1) + 1 for trials in asked]
        at_once, pause = _n_at_once(self.ledgers[0].search.trainer), _FIRST_PAUSE
        while True:
            left = [ledger.catch_up(end) for ledger, end in zip(self.ledgers, ends, strict=True)]
            n_left = sum(map(len, left))
            if not n_left or self.is_over():
                return
            crew.claims_anew()
            most = max(at_once, math.ceil(n_left / (2 * len(crew.alive()) or 1)))
            mine: list[list[Trial]] = []
            for ledger, trials in zip(self.ledgers, left, strict=True):
                numbers = ledger.study.claim([trial.number for trial in trials], crew, most) if most else []
                mine.append([trial for trial in trials if trial.number in numbers])
                most -= len(numbers)
            if any(mine):
                yield from train(mine)
                for ledger in self.ledgers:
                    ledger.tell_rest()
                pause = _FIRST_PAUSE
            else:
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)


def _stopped(ledger: Ledger, now: int, end: int, stop_when: float) -> Stopped | None:
    """Why and where the search stops, if more than its `now` first candidates of `end` promise little.

    The random candidates alone stop nothing: a model of a few of them often takes the differences between
    scores for noise. A study that has more candidates was not stopped here before it was interrupted, or had
    another `stop_when`.
    """
    study = ledger.study
    if not study.alpha_zero_repeats + study.n_initial < now < end or study.n_asked > now:
        return None
    outlook = study.outlook()
    reason = None if outlook is None else reason_to_stop(outlook, stop_when)
    if outlook is None or reason is None:
        return None
    n_models = (end - now) * len(ledger.search.data.folds)
    return Stopped(reason, now, end - now, n_models, outlook.gain, outlook.width, float(stop_when))


def reason_to_stop(outlook: Outlook, stop_when: float) -> Literal["gain", "width"] | None:
    """Why a search with this outlook can stop; None if it should go on."""
    if outlook.gain < stop_when:
        return "gain"
    return "width" if outlook.width < stop_when else None


def _without_trace(error: str) -> str:
    """The words of an error without the stack trace of another language, which is long."""
    return error.split("Stack trace")[0].rstrip()
