"""One search: its parts, what it has told so far, and its outcome; and what ends searches side by side."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from moew._util.numbers import count, number
from moew.data import SearchData, huge_columns
from moew.exceptions import Argument, SearchFailedError
from moew.metrics import Predictions
from moew.search._evaluate import Evaluator
from moew.search._stored import check_values, stored_predictions
from moew.search._study import Told, Trial, WeightStudy
from moew.types import Outlook, Trainer, Weighting

_TELL_EVERY = 1.0  # seconds
_ENOUGH_TO_TELL = 10  # candidates that were trained before the share of failures says anything
_MOST_REASONS = 3  # of failures that a message shows


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
        why = (
            f"the search ended by its timeout of {number(self.timeout)} s"
            if self.reason == "timeout"
            else "the search was interrupted"
        )
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
        if self.study.keeps_predictions:
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
        content = predictions.packed() if self.study.keeps_predictions else None
        self._tell(Told(trial.number, value, content=content))
        self.values[trial.number] = value
        if self.keep and math.isfinite(value):
            self.predictions[trial.number] = predictions.compact()
        return replace(trial, value=value, pending=False), predictions

    def _tell(self, told: Told) -> None:
        """Tell the study. A storage is told at most once a second, since each write takes a while; what a
        process that is killed had not told yet is trained again."""
        self._untold.append(told)
        if not self.study.keeps_predictions or time.monotonic() - self._told_at >= _TELL_EVERY:
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

    def ends(self, ledgers: Sequence[Ledger], n_batches: int) -> list[int]:
        """How many candidates each search has after so many batches, with those of α = 0; no more than it had
        when it stopped."""
        n = min(n_batches * self.batch_size, self.n_candidates)
        return [
            ledger.study.alpha_zero_repeats + n_in_share(ledger.search.share, n)
            if ledger.stopped is None
            else ledger.stopped.n_candidates
            for ledger in ledgers
        ]

    def batches(self, ledgers: Sequence[Ledger]) -> Iterator[list[int]]:
        """The `ends` after each batch, until all candidates are trained, or the time is over. Between two of
        them a search with `stop_when` may stop; the others go on."""
        for batch in range(1, self.n_batches + 1):
            ends = self.ends(ledgers, batch)
            if self.is_over(ledgers) and not _are_told(ledgers, ends):
                return
            yield ends
            if self.is_over(ledgers) and not _are_told(ledgers, ends):
                return
            for ledger, now, end in zip(ledgers, ends, self.ends(ledgers, self.n_batches), strict=True):
                if ledger.search.stop_when is not None and ledger.stopped is None:
                    ledger.stopped = _stopped(ledger, now, end, ledger.search.stop_when)

    def is_over(self, ledgers: Sequence[Ledger]) -> bool:
        """Whether no further candidate is to be begun."""
        return self.deadline is not None and self.deadline.is_over and _are_enough(ledgers)

    def can_conclude(self, ledgers: Sequence[Ledger]) -> bool:
        """Whether a KeyboardInterrupt ends the searches with what there is."""
        return self.concludes and _are_enough(ledgers)

    def cut_off(self, ledgers: Sequence[Ledger], interrupted: bool) -> CutOff | None:
        """That the searches ended before all their candidates were trained; None if all were."""
        ends, deadline = self.ends(ledgers, self.n_batches), None if interrupted else self.deadline
        if not interrupted and (deadline is None or _are_told(ledgers, ends)):
            return None
        n_trained = sum(len(ledger.trained()) for ledger in ledgers)
        if deadline is None:
            return CutOff("interrupt", n_trained, sum(ends))
        return CutOff("timeout", n_trained, sum(ends), deadline.seconds)

    def check_failures(self, ledgers: Sequence[Ledger]) -> None:
        """Raise if every candidate of a search that others need failed, or too large a share of all, with the
        most frequent reasons."""
        for ledger in ledgers:
            ledger.raise_if_nothing_works()
        n_done = sum(len(ledger.values) for ledger in ledgers)
        n_failed = n_done - sum(ledger.n_scored for ledger in ledgers)
        if n_done < _ENOUGH_TO_TELL or n_failed <= self.most_failures * n_done:
            return
        errors = [trial.error for ledger in ledgers for trial in ledger.study.trials() if trial.error]
        most = Counter(map(_without_trace, errors)).most_common(_MOST_REASONS)
        reasons = "; ".join(f"{n} times: {error}" for error, n in most)
        first = next((ledger.first_error for ledger in ledgers if ledger.first_error), None)
        raise SearchFailedError(
            f"{n_failed} of {n_done} candidates failed, more than ",
            Argument("most_failures", self.most_failures),
            " allows; mend their reasons, or allow more failures. ",
            reasons,
            argument="most_failures",
        ) from first


def _are_told(ledgers: Sequence[Ledger], ends: Sequence[int]) -> bool:
    """Whether all candidates below these numbers are trained."""
    return all(ledger.values.keys() >= set(range(end)) for ledger, end in zip(ledgers, ends, strict=True))


def _are_enough(ledgers: Sequence[Ledger]) -> bool:
    """Whether there is something to conclude from: the models at α = 0 of all searches and one more candidate
    of the first are told, and each search that must not fail has a value."""
    first = ledgers[0]
    return (
        all(0 in ledger.values for ledger in ledgers if ledger.study.alpha_zero_repeats)
        and any(k >= first.study.alpha_zero_repeats for k in first.values)
        and all(ledger.n_scored or ledger.search.optional for ledger in ledgers)
    )


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
