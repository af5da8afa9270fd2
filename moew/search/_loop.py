"""Algorithm 1: train a model for each candidate alpha, score it, ask for the next ones.

Several searches can run side by side: each batch of candidates of all of them is trained in one call, so that
a model that trains many weightings at once gets them together. A single search is a special case.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from moew._util.progress import progress
from moew.data import SearchData, huge_columns
from moew.exceptions import Argument, InvalidInputError, SearchFailedError, StateError
from moew.metrics import Predictions
from moew.search._evaluate import Evaluator
from moew.search._stop import CutOff, Deadline, Stopped, reason_to_stop
from moew.search._study import Told, Trial, WeightStudy
from moew.search._workers import Crew
from moew.training import ManyTrainer
from moew.types import FloatArray, Trainer, Weighting
from moew.weighting._normalise import over_fold

_SAMPLE = 5  # stored predictions that a slow metric scores again
_TELL_EVERY = 1.0  # seconds
_SLOW = 0.1  # seconds of a call of the metric from which on it is slow
_SAME_SCORE = 1e-9  # relative and absolute difference of scores that are the same
_ENOUGH_TO_JUDGE = 10  # candidates that were trained before the share of failures says anything
_MOST_REASONS = 3  # of failures that a message shows
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5  # seconds between looks at what other processes do
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

    def n_of(self, n: int) -> int:
        """How many of the first n candidates of the searches side by side, besides those of α = 0, it has."""
        return n_in_share(self.share, n)


def n_in_share(share: tuple[float, float], n: int) -> int:
    """How many of n candidates lie in the share."""
    low, high = (math.ceil(end * n - 1e-9) for end in share)
    return high - low


@dataclass(frozen=True)
class Outcome:
    """All trials, their predictions on the validation rows, and the models of the best and of trial 0.

    A search that was cut off has only the trials that were trained.
    """

    trials: list[Trial]
    predictions: dict[int, Predictions]
    greater_is_better: bool
    models: dict[int, list[Any]]  # of the best trial and of number 0, if kept; one for each fold
    stopped: Stopped | None = None  # if it stopped before its last batch
    n_trained_here: int = 0  # by this process, not by others or before
    cut_off: CutOff | None = None  # if not all candidates of all searches side by side were trained

    @property
    def values(self) -> dict[int, float]:
        """The metric of every trial, by number."""
        return {trial.number: trial.value for trial in self.trials}


TrainedTrials = Generator[tuple[int, Trial, list[Any] | Exception], None, None]
TrainBatch = Callable[[int, Sequence[Sequence[Trial]]], TrainedTrials]
"""(number of the batch from 0, the trials of each search) → (index of the search, trial, its models, one for
each fold, or the exception that stopped it), as they finish."""
OnTrial = Callable[[int, Trial, list[Any], Predictions], None]
"""Called with (index of the search, trial with its value, its models, its predictions) for each trial that
could be scored."""
OnTold = Callable[[int, Trial], None]
"""Called with (index of the search, trial with its value or its error) for each trial that was trained."""


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
    n_candidates: int | None = None,
    show_progress: bool | None = None,
    progress_name: str = "",
    train: TrainBatch | None = None,
    on_trial: OnTrial | None = None,
    on_told: OnTold | None = None,
    on_batch: Callable[[int], None] | None = None,
    keep: bool = True,
    n_jobs: int = 1,
    most_failures: float = 1.0,
    crew: Crew | None = None,
    deadline: Deadline | None = None,
    concludes: bool = False,
) -> list[Outcome]:
    """Run Algorithm 1 for several searches, batch by batch; each gives the same bits as it would alone.

    A search with `stop_when` may stop after any batch; the others go on.

    Parameters
    ----------
    searches : the searches, each with a study of its own
    n_batches, batch_size : B and K of each
    n_candidates : in place of B·K; batches of K, of which the last may be smaller
    show_progress : as in `ExampleWeightSearch`
    progress_name : what the progress is of
    train : trains a batch of all searches; None: each with its trainer, those on the same rows together
    on_trial : called for every trial that was scored
    on_told : called for every trial that was trained, scored or failed
    on_batch : called after each batch with the number of batches done; an exception ends the searches
    keep : whether the outcomes hold predictions and models
    n_jobs : processes that propose alphas for studies in memory
    most_failures : the share of failed candidates of all searches above which they end with an error
    crew : the processes on these searches; those that join train each batch together
    deadline : no candidate is begun after it, but that the models at α = 0 and one candidate are always
        trained; with `train`, and with models that train many weightings at once, no batch is begun
    concludes : whether a KeyboardInterrupt ends the searches like a deadline, once these are trained
    """
    most = n_batches * batch_size if n_candidates is None else n_candidates
    n_batches = math.ceil(most / batch_size)
    joined = crew is not None and crew.joins
    ledgers = [_Ledger(search, keep, joined) for search in searches]
    is_over = partial(_is_over, ledgers, deadline)
    holds_its_share = crew.holds_its_share if crew is not None and crew.joins else None
    train = train or partial(
        _train_with_trainers, ledgers, None if deadline is None else is_over, holds_its_share
    )
    if crew is not None and crew.joins:
        train = partial(_train_together, ledgers, is_over, train, crew)
    ends = [search.n_of(most) for search in searches]
    total = sum(search.study.alpha_zero_repeats for search in searches) + sum(ends)
    already = sum(ledger.n_done for ledger in ledgers)
    reason: Literal["timeout", "interrupt"] | None = None
    with progress(total, n_batches, show_progress, already, progress_name) as report:
        try:
            for batch in range(n_batches):
                if batch == 1:
                    _suggest(ledgers, min(batch_size, most))
                goals = [ledger.n_of(min((batch + 1) * batch_size, most)) for ledger in ledgers]
                if is_over() and not _are_told(ledgers, goals):
                    reason = "timeout"
                    break
                asked = _ask([search.study for search in searches], goals, n_jobs)
                if any(asked) or joined:
                    try:
                        # Closed at once when interrupted, so that what is still being trained ends.
                        with contextlib.closing(train(batch, asked)) as trained:
                            for place, trial, models in trained:
                                told, scored = ledgers[place].enter(trial, models)
                                if on_told is not None:
                                    on_told(place, told)
                                if on_trial is not None and scored is not None:
                                    on_trial(place, told, *scored)
                                n_done = sum(ledger.n_done for ledger in ledgers)
                                report(n_done, batch + 1, ledgers[0].best_value)
                                if crew is not None:
                                    crew.check()
                    finally:  # also what was trained before an interruption
                        for ledger in ledgers:
                            ledger.tell_rest()
                    for ledger in ledgers:
                        ledger.raise_if_nothing_works()
                    _raise_if_most_fail(ledgers, most_failures)
                    if is_over() and not _are_told(ledgers, goals):
                        reason = "timeout"
                        break
                    if on_batch is not None:
                        on_batch(batch + 1)
                for ledger, goal, end in zip(ledgers, goals, ends, strict=True):
                    ledger.stop_if_enough(goal, end)
        except KeyboardInterrupt:
            if not (concludes and _are_enough(ledgers)):
                raise
            reason = "interrupt"
    cut_off = None
    if reason is not None:
        n_saved = sum(ledger.stopped.n_saved for ledger in ledgers if ledger.stopped is not None)
        n_trained = sum(len(ledger.trained()) for ledger in ledgers)
        seconds = deadline.seconds if deadline is not None and reason == "timeout" else None
        cut_off = CutOff(reason, n_trained, total - n_saved, seconds)
    return [ledger.outcome(cut_off) for ledger in ledgers]


def _is_over(ledgers: Sequence[_Ledger], deadline: Deadline | None) -> bool:
    """Whether no further candidate is to be begun."""
    return deadline is not None and deadline.is_over and _are_enough(ledgers)


def _are_enough(ledgers: Sequence[_Ledger]) -> bool:
    """Whether there is something to conclude from: the models at α = 0 of all searches and one more candidate
    of the first are told, and each search that must not fail has a value."""
    first = ledgers[0]
    return (
        all(0 in ledger.done for ledger in ledgers if ledger.study.alpha_zero_repeats)
        and any(number >= first.study.alpha_zero_repeats for number in first.done)
        and all(ledger.scored or ledger.search.optional for ledger in ledgers)
    )


def _are_told(ledgers: Sequence[_Ledger], goals: Sequence[int]) -> bool:
    """Whether all candidates up to these numbers after those of α = 0 are trained."""
    return all(ledger.has_told(goal) for ledger, goal in zip(ledgers, goals, strict=True))


def _suggest(ledgers: Sequence[_Ledger], n_first: int) -> None:
    """Make the suggestions of all searches, from what the first batch of so many candidates showed."""
    for ledger in ledgers:
        search, suggestion = ledger.search, ledger.search.suggestion
        if suggestion is None:
            continue
        holder = next((other for other in ledgers if other.study is suggestion.study), ledger)
        predictions = holder.predictions.get(suggestion.number)
        alphas = None if predictions is None else suggestion.alphas(predictions)
        if alphas is not None:
            search.study.suggest(search.study.alpha_zero_repeats + search.n_of(n_first), alphas)


def _raise_if_most_fail(ledgers: Sequence[_Ledger], most_failures: float) -> None:
    """Raise if a larger share of the candidates failed, with the most frequent reasons."""
    n_done = sum(ledger.n_done for ledger in ledgers)
    n_failed = n_done - sum(ledger.n_scored for ledger in ledgers)
    if n_done < _ENOUGH_TO_JUDGE or n_failed <= most_failures * n_done:
        return
    errors = [trial.error for ledger in ledgers for trial in ledger.study.trials() if trial.error]
    counts = Counter(_without_trace(error) for error in errors).most_common(_MOST_REASONS)
    reasons = "; ".join(f"{count} times: {error}" for error, count in counts)
    first = next((ledger.first_error for ledger in ledgers if ledger.first_error), None)
    raise SearchFailedError(
        f"{n_failed} of {n_done} candidates failed, more than ",
        Argument("most_failures", most_failures),
        " allows; mend their reasons, or allow more failures. ",
        reasons,
        argument="most_failures",
    ) from first


def _without_trace(error: str) -> str:
    return error.split("Stack trace")[0].rstrip()  # traces of other languages are long


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
    ledgers: Sequence[_Ledger],
    is_over: Callable[[], bool] | None,
    goes_on: Callable[[], bool] | None,
    _batch: int,
    asked: Sequence[Sequence[Trial]],
) -> TrainedTrials:
    """Train the candidates of all searches; those on the same rows in one call of their trainer, unless
    `is_over` is to be asked before each. If `goes_on` says no, the rest is left."""
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
        if is_over is None or isinstance(first.trainer, ManyTrainer):
            yield from _train_members(ledgers, members, goes_on)
            continue
        members.sort(key=partial(_turn, ledgers, asked))
        n_at_once = _n_at_once(first.trainer)
        while members and not is_over():
            # The first two are trained in one call, which shows whether the model uses its weights.
            n = n_at_once if any(ledger.n_trained_here for ledger in ledgers) else max(n_at_once, 2)
            yield from _train_members(ledgers, members[:n], goes_on)
            del members[:n]


def _train_members(
    ledgers: Sequence[_Ledger], members: Sequence[tuple[int, Trial]], goes_on: Callable[[], bool] | None
) -> TrainedTrials:
    """Train candidates (index of the search, trial) of searches on the same rows."""
    first = ledgers[members[0][0]].search
    assert first.trainer is not None
    weights = np.concatenate(
        [
            training_weights(ledgers[place].search, [trial for _, trial in some])
            for place, some in groupby(members, itemgetter(0))
        ]
    )
    seeds, parameters = zip(*((trial.seed, trial.parameters) for _, trial in members), strict=True)
    for k, models in train_folds(first.trainer, first.data, weights, seeds, parameters, goes_on):
        yield *members[k], models


def _turn(
    ledgers: Sequence[_Ledger], asked: Sequence[Sequence[Trial]], member: tuple[int, Trial]
) -> tuple[bool, float]:
    """When it is a candidate's turn if the time may not suffice for all: what `_are_enough` wants comes
    first, and then each search gets its share."""
    place, trial = member
    study, trials = ledgers[place].study, asked[place]
    zero = study.alpha_zero_repeats > 0 and trial.number == 0
    wanted = zero or (place == 0 and trial.number == study.alpha_zero_repeats)
    return not wanted, (trial.number - trials[0].number) / len(trials)


def _train_together(
    ledgers: Sequence[_Ledger],
    is_over: Callable[[], bool],
    train: TrainBatch,
    crew: Crew,
    batch: int,
    asked: Sequence[Sequence[Trial]],
) -> TrainedTrials:
    """Train those of the batch that no other process trains, until all of it is told, or the time is over.

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
            yield from train(batch, mine)
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


def training_weights(search: Search, trials: Sequence[Trial]) -> FloatArray:
    """The weights (K, n) of a search's training rows for K trials."""
    return search.weighting.training_weights(np.stack([trial.alpha for trial in trials]))


def train_folds(
    trainer: Trainer,
    data: SearchData,
    weights: FloatArray,
    seeds: Sequence[int],
    parameters: Sequence[Mapping[str, Any]] = (),
    goes_on: Callable[[], bool] | None = None,
) -> Iterator[tuple[int, list[Any] | Exception]]:
    """Yield (k, models, one for each fold, or the exception of the first that failed) for weights (K, n) and
    the hyper-parameters of K candidates, if they have any of their own; no more once `goes_on` says no."""
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
            if goes_on is not None and not goes_on():
                return


def train_one(
    trainer: Trainer, data: SearchData, weights: FloatArray, seed: int, parameters: Mapping[str, Any]
) -> list[Any]:
    """Train one model for each fold with weights (n,); the same weights, seed and parameters give the same
    bits."""
    ((_, models),) = train_folds(trainer, data, weights[None], [seed], [parameters])
    if isinstance(models, Exception):
        raise SearchFailedError(f"the model could not be trained: {models}") from models
    return models


def _unpacked(search: Search, scored: Sequence[Trial]) -> dict[int, Predictions]:
    """The stored predictions of trials that have a value, by number."""
    study, n_rows = search.study, len(search.data.validation)
    kept = study.kept([trial.number for trial in scored])
    found: dict[int, Predictions] = {}
    for trial in scored:
        if trial.number not in kept:
            raise study.refuse(f"candidate {trial.number} has a score, but no predictions")
        try:
            found[trial.number] = Predictions.unpacked(kept[trial.number]).compact()
            if any(len(array) != n_rows for array in found[trial.number].arrays.values()):
                raise StateError(f"they are not of the {n_rows} judged rows")
        except StateError as error:
            raise study.refuse(f"the predictions of candidate {trial.number} are damaged: {error}") from error
    return found


def _kept_predictions(search: Search, scored: Sequence[Trial]) -> dict[int, Predictions]:
    """The stored predictions of trials that have a value, by number; raises unless the metric still gives
    these values."""
    study, evaluator, rows = search.study, search.evaluator, search.data.validation
    if not study.keeps_predictions or not scored:
        return {}
    found = _unpacked(search, scored)
    checked, is_slow = list(scored), evaluator.metric.slow
    while checked:
        if is_slow and len(checked) > _SAMPLE:
            checked = [checked[i] for i in np.linspace(0, len(checked) - 1, _SAMPLE).astype(int)]
        trial, begun = checked.pop(0), time.perf_counter()
        try:
            value = evaluator.value(found[trial.number], rows)
        except Exception as error:
            now = f"{type(error).__name__}: {error}"
            raise _other_score(study, trial, now) from error
        if not math.isclose(value, trial.value, rel_tol=_SAME_SCORE, abs_tol=_SAME_SCORE):
            raise _other_score(study, trial, repr(value))
        if time.perf_counter() - begun > _SLOW:
            is_slow = True
    return found


def _other_score(study: WeightStudy, trial: Trial, now: str) -> InvalidInputError:
    return study.refuse(
        f"the metric gives the stored predictions of candidate {trial.number} {now}, but {trial.value!r} was "
        "stored: the metric or the rows have changed, or it gives other values each time, or the score was "
        "edited"
    )


class _Ledger:
    """Tells one search's study the values, and keeps all predictions and the models of the best trial."""

    def __init__(self, search: Search, keep: bool, joined: bool = False) -> None:
        self.search, self.study, self.keep, self.joined = search, search.study, keep, joined
        self._untold: list[Told] = []
        self.done: set[int] = set()  # the numbers of trials that are told
        self.scored: set[int] = set()  # of those that have a value
        self._told_at = time.monotonic()
        self.stopped: Stopped | None = None
        self.n_trained_here = 0
        self.first_models: list[Any] | None = None
        self.first_error: Exception | None = None
        self._of_best: tuple[int, list[Any]] | None = None  # number and models of the best trained here
        self._sign = 1.0 if self.study.greater_is_better else -1.0
        trials = self.study.trials()
        self._count(trials)
        self.predictions = _kept_predictions(search, [t for t in trials if math.isfinite(t.value)])

    def _count(self, trials: Sequence[Trial]) -> None:
        """Look at all trials of the study: which are done, have a value, and are best."""
        scored = [trial for trial in trials if math.isfinite(trial.value)]
        self.done = {trial.number for trial in trials if not trial.pending}
        self.scored = {trial.number for trial in scored}
        values = [(self._sign * trial.value, -trial.number) for trial in scored]
        self._best = max(values, default=(-math.inf, 0))  # among equals the lowest number

    def catch_up(self, end: int) -> list[Trial]:
        """Take in what other processes have told; returns the pending trials below the number `end`."""
        trials = self.study.trials()
        self._count(trials)
        if self.keep:
            scored = [trial for trial in trials if math.isfinite(trial.value)]
            new = [trial for trial in scored if trial.number not in self.predictions]
            self.predictions.update(_unpacked(self.search, new) if new else {})
        return [trial for trial in trials if trial.pending and trial.number < end]

    def enter(
        self, trial: Trial, models: list[Any] | Exception
    ) -> tuple[Trial, tuple[list[Any], Predictions] | None]:
        """Score the candidate and tell the study; returns it with its value or its error, and its models and
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
            self.done.add(trial.number)
            return replace(trial, error=words, pending=False), None
        content = predictions.packed() if self.study.keeps_predictions else None
        self._tell(Told(trial.number, value, content=content))
        self.done.add(trial.number)
        scored = replace(trial, value=value, pending=False), (models, predictions)
        if not math.isfinite(value):
            return scored
        self.scored.add(trial.number)
        new = (self._sign * value, -trial.number)
        if new > self._best:
            self._best = new
            self._of_best = (trial.number, models) if self.keep else None
        if self.keep:
            self.predictions[trial.number] = predictions.compact()
            self.first_models = models if trial.number == 0 else self.first_models
        return scored

    def _tell(self, told: Told) -> None:
        """Tell the study. A storage is told at most once a second, since each write takes a while; what a
        process that is killed had not told yet is trained again."""
        self._untold.append(told)
        if not self.study.keeps_predictions or time.monotonic() - self._told_at >= _TELL_EVERY:
            self.tell_rest()

    def tell_rest(self) -> None:
        """Tell the study what it was not told yet."""
        told, self._untold = self._untold, []
        for number in self.study.tell_all(told, joined=self.joined):
            self.predictions.pop(number, None)  # another process has told it: its record counts
        self._told_at = time.monotonic()

    @property
    def n_done(self) -> int:
        """How many trials are told."""
        return len(self.done)

    @property
    def n_scored(self) -> int:
        """How many of them have a value."""
        return len(self.scored)

    def n_of(self, n: int) -> int:
        """As of its search; no more than it has after it stopped."""
        if self.stopped is not None:
            return self.stopped.n_candidates - self.study.alpha_zero_repeats
        return self.search.n_of(n)

    def has_told(self, goal: int) -> bool:
        """Whether all trials up to the number `goal` after those of α = 0 are told."""
        return all(number in self.done for number in range(self.study.alpha_zero_repeats + goal))

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
        message = f"every candidate so far failed{where}; the first: {_without_trace(first)}"
        raise SearchFailedError(message) from self.first_error

    def trained(self) -> list[Trial]:
        """The trials that are told; without one whose predictions an interruption has prevented."""
        told = [trial for trial in self.study.trials() if not trial.pending]
        return [t for t in told if not (self.keep and math.isfinite(t.value)) or t.number in self.predictions]

    def outcome(self, cut_off: CutOff | None = None) -> Outcome:
        """The outcome of the search."""
        self.raise_if_nothing_works()
        models = {} if self.first_models is None else {0: self.first_models}
        if self._of_best is not None and self._of_best[0] == -self._best[1]:
            models[self._of_best[0]] = self._of_best[1]
        return Outcome(
            self.study.trials() if cut_off is None else self.trained(),
            self.predictions,
            self.study.greater_is_better,
            models,
            self.stopped,
            self.n_trained_here,
            cut_off,
        )
