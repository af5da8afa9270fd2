"""What candidates, averages of them and constants are worth on any of the evaluation rows, and which is best.

Candidates have predicted once; everything here is done with those predictions. Values are signed so that
higher is better, and NaN where the metric is undefined.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from moew.data import LabelledRows
from moew.exceptions import MoewWarning
from moew.metrics import Predictions, is_vectorised
from moew.search._constraints import Bounds, Constraints
from moew.search._evaluate import LABEL_ARRAYS, Evaluator
from moew.types import Array, BoolArray, FloatArray, IntArray, Task

_MOST_STACKED = 2**23  # most predictions, of all candidates together, to score in one call
_STACKED = "stacked"  # known where all candidates were scored in one call
_MANY_ROWS = (100_000, 1_000_000)  # evaluation rows from which on the next of EFFORTS is made
_UNKNOWN = 10  # times fewer of them for a function that may go through its rows one by one
_CALLS = (3_500, 1_200, 400)  # of the metric that a choice with the default settings takes, about, by effort
_TIMED = 3  # calls that show how long one takes: single ones are slow by chance
_LONG = 15.0  # seconds of choosing that are worth a warning


@dataclass(frozen=True)
class Effort:
    """How many calls of the metric the choice and its honest score may take."""

    pairs: int = 5  # of halves that choices are made on
    error_pairs: int = 25  # that show the error of a fixed choice; 0: those that choices are made on
    evaluated: int = 60  # candidates that are scored on halves, the best; and a quarter of each family
    contenders: int = 15  # candidates that may join an ensemble
    constants: int = 19  # decisions that are tried as constants
    rounds: int = 5  # of the greedy selection
    tuning: int = 40  # calls that tune one decision; 0: none is tuned
    resamples: tuple[int, int] = (100, 25)  # of all rows and of halves, for the margins of constraints

    @property
    def without_halves(self) -> Effort:
        """The same where no honest score from halves is looked at."""
        return replace(self, pairs=0, error_pairs=0)


EFFORTS = (
    Effort(),
    Effort(3, 10, evaluated=30, contenders=8, constants=9, rounds=4, tuning=16, resamples=(50, 15)),
    Effort(2, 0, evaluated=12, contenders=4, constants=5, rounds=3, tuning=8, resamples=(20, 10)),
    Effort(1, 0, evaluated=1, contenders=1, constants=2, rounds=1, tuning=0, resamples=(20, 10)),
)
"""From thorough to quick: for more and more rows, the last for metrics that are said to be slow."""


def effort_of(
    evaluator: Evaluator, rows: LabelledRows, predictions: Predictions | None
) -> tuple[Effort, list[str]]:
    """The effort, and a note where it is not the whole one: the least for a metric that is said to be slow,
    else less the more rows there are. Never by the clock: the same seed must choose the same.

    `predictions` of one candidate on the rows only show how long a call takes, for a warning; None: there is
    no long choice to warn of.
    """
    if evaluator.chooses_slowly:
        effort, why = EFFORTS[-1], "the metric is slow"
    else:
        known = all(map(is_vectorised, evaluator.choosing_metrics))
        step = sum(len(rows) * (1 if known else _UNKNOWN) >= many for many in _MANY_ROWS)
        effort, why = EFFORTS[step], f"there are {len(rows):,} evaluation rows"
        if predictions is not None:
            _warn_if_it_takes_long(evaluator, rows, predictions, _CALLS[step])
    if effort is EFFORTS[0]:
        return effort, []
    untuned = "" if effort.tuning else ", and no decisions are tuned"
    return effort, [f"{why}, so honest scores are from {2 * effort.pairs} halves{untuned}."]


def _warn_if_it_takes_long(
    evaluator: Evaluator, rows: LabelledRows, predictions: Predictions, n_calls: int
) -> None:
    """Say what would make a long choice shorter; this changes nothing of what is computed."""
    took, chosen_by = [], {next(iter(evaluator.metrics)), *(one.name for one in evaluator.constraints)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the metric
        for _ in range(_TIMED):
            begun = time.perf_counter()
            for name in chosen_by:
                evaluator.value_of(name, predictions, rows)
            took.append(time.perf_counter() - begun)
    if min(took) * n_calls >= _LONG:
        warning = MoewWarning(
            f"a call of the metric takes {min(took):.2g} s, and the choice takes about {n_calls:,} of them. "
            "make_metric(…, slow=True) asks for about one more for each model instead.",
            argument="metric",
        )
        warnings.warn(warning, stacklevel=7)  # where `fit` was called


Smooth = Callable[[FloatArray], FloatArray]
"""Values (m,) of candidates, higher is better → smoothed ones (m,); NaN stays NaN."""


@dataclass(frozen=True, eq=False)
class Part:
    """Some of a chooser's evaluation rows, and what it knows on them, by the keys of choices."""

    numbers: IntArray
    rows: LabelledRows  # those with these numbers
    values: dict[Hashable, float] = field(default_factory=dict)
    rules: dict[Hashable, Any] = field(default_factory=dict)  # tuned decisions, fitted on these rows
    bounds: dict[Hashable, Bounds] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.numbers)

    def where(self, among: BoolArray) -> Part:
        """The rows of this part for which `among` (n,) is true."""
        return Part(self.numbers[among], self.rows.take(np.flatnonzero(among)))


@dataclass(frozen=True)
class Choice:
    """What was chosen on some rows: an average of candidates (one member: a single candidate), its
    predictions on all evaluation rows, and how they are decided; or a constant, which has no members."""

    key: Hashable  # of its predictions: the number of a candidate, members and votes, or a constant
    members: tuple[int, ...]
    votes: FloatArray
    predictions: Predictions
    part: Part  # that it was chosen on
    tuned: Any = None  # a fitted rule of `Tuned`; None: the user's rule, or the model's own decisions
    constant: Any = None


class Chooser:
    """Values of the candidates whose predictions on the evaluation `rows` are given, by number, and choices
    among them.

    `values` are the metric's on all rows, in its own direction, and None where they are not known yet. Where
    not all candidates can be scored on halves, the best of each of `families` are.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        rows: LabelledRows,
        task: Task,
        predictions: Sequence[Predictions] | Mapping[int, Predictions],
        values: FloatArray | None,
        effort: Effort,
        families: Sequence[Sequence[int]] = (),
    ) -> None:
        self.evaluator, self.task = evaluator, task
        self.predictions = predictions if isinstance(predictions, Mapping) else dict(enumerate(predictions))
        # X takes the most memory, and few metrics look at it.
        uses_features = any(metric.uses_features for metric in evaluator.metrics.values())
        self.rows = rows if uses_features else replace(rows, X=np.empty((len(rows), 0)))
        self.every = Part(np.arange(len(rows)), self.rows)
        self.sign = 1.0 if evaluator.metric.greater_is_better else -1.0
        self.effort, self.families = effort, families
        self.failure: Exception | None = None  # the first of the metric on some of the rows
        self.constraints = Constraints(self) if evaluator.constraints else None
        # Under constraints, the search tunes every candidate within the bounds as they are; here they have
        # margins.
        if values is not None and not (evaluator.constraints and evaluator.always_tuned):
            known = self.sign * np.where(np.isfinite(values), values, np.nan)
            self.every.values.update(enumerate(known.tolist()))

    def part(self, numbers: IntArray) -> Part:
        """The evaluation rows with these numbers."""
        return Part(numbers, self.rows.take(numbers))

    # Choices on a part of the rows.

    def single(self, candidate: int, part: Part) -> Choice:
        """One candidate."""
        return Choice(candidate, (candidate,), np.ones(1), self.predictions[candidate], part)

    def best(self, candidates: Sequence[int], part: Part) -> Choice:
        """The best candidate on these rows, the first among equals."""
        ordered = self._ordered(candidates, part) or candidates
        return self._first([self.single(k, part) for k in ordered], part)

    def smoothed(self, candidates: Sequence[int], smooth: Smooth, part: Part) -> Choice:
        """The candidate whose value on these rows is best after smoothing, the first among equals; all are
        scored: each tells of others nearby."""
        self.values(part)  # from one call of the metric if it can
        values = smooth(np.array([self.value(self.single(k, part), part) for k in candidates]))
        return self._first([self.single(candidates[k], part) for k in _best_first(values)], part)

    def ensemble(self, candidates: Sequence[int], part: Part) -> Choice:
        """Few candidates whose averaged predictions are best on these rows: Caruana's greedy selection.

        The best candidate begins. In each round, the one of the best candidates joins that makes the average
        best; one that joins twice has two votes.
        """
        first = self.best(candidates, part)
        contenders = self._ordered(candidates, part)
        scored: Callable[[Sequence[Predictions], Part], list[float]] = self.scored
        if self.constraints is not None:
            contenders = self.constraints.keeping(contenders, part)
            scored = self.constraints.scored_like(first)
        contenders = contenders[: self.effort.contenders]
        if len(contenders) < 2:
            return first
        taken = {k: self.predictions[k].take(part.numbers) for k in {*contenders, *first.members}}
        joined = list(first.members)
        for _ in range(self.effort.rounds - 1):
            tried = np.array(scored([self._averaged(*_votes([*joined, k]), taken) for k in contenders], part))
            if np.isnan(tried).all():
                break
            joined.append(contenders[int(np.nanargmax(tried))])
        members, votes = _votes(joined)
        if len(members) < 2:
            return first
        return self._first([self.joint(members, votes, part), first], part)

    def joint(self, members: tuple[int, ...], votes: FloatArray, part: Part) -> Choice:
        """The average of these members."""
        if len(members) == 1:
            return self.single(members[0], part)
        key = (members, tuple(votes.tolist()))
        return Choice(key, members, votes, self._averaged(members, votes, self.predictions), part)

    def constant(self, part: Part) -> Choice | None:
        """The best constant decision on these rows; None if the metric is not of decisions."""
        like, n, pos_label = self.predictions[0], len(self.rows), self.evaluator.pos_label
        if self.evaluator.rule is not None or not set(like.arrays) <= LABEL_ARRAYS:
            return None
        choices, values = [], []
        for one in self._constants(part):
            further = {
                name: np.full(n, one) if name in LABEL_ARRAYS else _sure(array, one, like.classes, pos_label)
                for name, array in like.further.items()
            }
            arrays = {name: np.full(n, one) for name in like.arrays}
            made = replace(like, arrays=arrays, scores=None, further=further)
            choices.append(Choice(("constant", one), (), np.empty(0), made, part, constant=one))
            values.append(self.value(choices[-1], part))
        ordered = [choices[k] for k in _best_first(np.array(values)) if not math.isnan(values[k])]
        return self._first(ordered, part) if ordered else None

    def tuned(self, choice: Choice) -> Choice | None:
        """The same choice with its decisions tuned for the metric on its rows; None if that is impossible."""
        if self.evaluator.always_tuned or not self.effort.tuning:
            return None
        several = self.evaluator.decisions_tuned(choice.part.rows)
        return self._tuned(choice, round(several * self.effort.tuning))

    # Values of choices on a part of the rows, which may be another than they were made on.

    def value(self, choice: Choice, part: Part) -> float:
        """The value of a choice on these rows, with decisions as they were fitted on its own rows."""
        fits = self.evaluator.rule is not None or self.evaluator.always_tuned
        remembers = choice.tuned is None and (choice.part is part or not fits or choice.constant is not None)
        if remembers and choice.key in part.values:
            return part.values[choice.key]
        taken = choice.predictions.take(part.numbers)
        found = self.value_of(taken, partial(self.decided, choice, taken, part), part)
        if remembers:
            part.values[choice.key] = found
        return found

    def values(self, part: Part) -> FloatArray:
        """The values (m,) of all candidates on these rows, with the user's rule fitted there."""
        known, every = part.values, range(len(self.predictions))
        if self._stack is not None and part is not self.every and _STACKED not in known:
            known[_STACKED] = math.nan
            for k, value in enumerate(self._values_at_once(self._stack[:, part.numbers], part)):
                known.setdefault(k, value)
        for k in every if part is self.every else self._hopeful:
            self.value(self.single(int(k), part), part)
        return np.array([known.get(k, math.nan) for k in every])

    def scored(self, tried: Sequence[Predictions], part: Part) -> list[float]:
        """The values of predictions on these rows, from one call of the metric if it can."""
        if self._stack is not None:
            response = str(self.evaluator.metric.response)
            outputs = np.stack([predicted.arrays[response] for predicted in tried])
            if found := self._values_at_once(outputs, part):
                return found
        return [self.value_of(predicted, None, part) for predicted in tried]

    def values_of_all(self, choice: Choice, part: Part) -> dict[str, float]:
        """All metrics of a choice on these rows, in their own directions, NaN where undefined; decisions are
        those that were fitted on its own rows."""
        taken = choice.predictions.take(part.numbers)
        decided = self.decided(choice, taken, part)
        return {
            name: self.evaluator.value_of(name, taken, part.rows, decided) for name in self.evaluator.metrics
        }

    def value_of(
        self, taken: Predictions, decided: Array | Callable[[], Array | None] | None, part: Part
    ) -> float:
        """The value of predictions on these rows, with labels (n,), a function that gives them, or, if there
        are none, those that are recorded."""
        try:
            labels = decided() if callable(decided) else decided
            value = self.evaluator.value(taken, part.rows, decided=labels)
        except Exception as error:  # it has a value on all rows, so it is undefined on these
            if len(part) < len(self.rows):
                self.failure = self.failure or error
            return math.nan
        return self.sign * value if math.isfinite(value) else math.nan

    def bounds(self, choice: Choice) -> Bounds | None:
        """How a choice stands to the constraints on its own rows; None if there are none."""
        return None if self.constraints is None else self.constraints.bounds(choice, choice.part)

    def decided(self, choice: Choice, taken: Predictions, part: Part) -> Array | None:
        """The choice's labels (n,) on a part on which its predictions are `taken`, as fitted on its own rows;
        None where those that are recorded stand."""
        if choice.constant is not None:
            return np.full(len(part), choice.constant)
        tuned = self._rule(choice)
        if tuned is not None:
            return self.evaluator.decide_tuned(tuned, taken, part.rows)
        if self.evaluator.rule is None:
            return None
        own = choice.part
        return self.evaluator.decided(taken, part.rows, (choice.predictions.take(own.numbers), own.rows))

    def decisions(self, choice: Choice) -> Array | None:
        """What a choice decides, or predicts in regression (n,), on all evaluation rows, as it would for new
        ones; None where nothing of that is recorded, as for metrics of scores."""
        arrays, decided = choice.predictions.arrays, self.decided(choice, choice.predictions, self.every)
        recorded = (arrays[name] for name in sorted(LABEL_ARRAYS) if name in arrays)
        return next(recorded, None) if decided is None else decided

    def with_rule(self, choice: Choice) -> Choice:
        """The choice with the tuned rule that it is evaluated by, for new rows."""
        return choice if choice.constant is not None else replace(choice, tuned=self._rule(choice))

    @cached_property
    def _hopeful(self) -> IntArray:
        """The candidates that are scored on halves: the first, the best of all, the best of each family; and
        those that constraints need."""
        order = _best_first(self.values(self.every))
        best = [0, *order[: self.effort.evaluated].tolist()]
        few = max(1, self.effort.evaluated // 4)
        for family in self.families:
            best += order[np.isin(order, family)][:few].tolist()
        return np.unique(best if self.constraints is None else [*best, *self.constraints.hopeful()])

    @cached_property
    def _stack(self) -> Array | None:
        """The predictions (m, n) of all candidates, if the metric can score them in one call."""
        metric = self.evaluator.metric
        decides_again = self.evaluator.rule is not None or self.evaluator.always_tuned
        if not metric.takes_many or metric.response is None or decides_again:
            return None
        outputs = [predicted.arrays[metric.response] for predicted in self.predictions.values()]
        alike = len({(array.shape, array.dtype) for array in outputs}) == 1 and outputs[0].ndim == 1
        few = sum(array.size for array in outputs) <= _MOST_STACKED
        return np.stack(outputs) if alike and few else None

    def _ordered(self, candidates: Sequence[int], part: Part) -> list[int]:
        """The candidates that have a value on these rows, the best first."""
        values = self.values(part)[list(candidates)]
        return [candidates[k] for k in _best_first(values) if not math.isnan(values[k])]

    def _first(self, choices: Sequence[Choice], part: Part) -> Choice:
        """The first choice, or the first that keeps the constraints."""
        return choices[0] if self.constraints is None else self.constraints.first_kept(choices, part)

    def _tuned(self, choice: Choice, most_calls: int | None = None) -> Choice | None:
        if self.constraints is not None:
            return self.constraints.tuned(choice, most_calls)
        taken = choice.predictions.take(choice.part.numbers)
        fitted = self.evaluator.tune(taken, choice.part.rows, most_calls)
        return None if fitted is None else replace(choice, tuned=fitted)

    def _rule(self, choice: Choice) -> Any:
        """The tuned rule of a choice; where the user wants all decisions tuned, it is fitted on the rows of
        the choice, once for the many that it is scored on."""
        if choice.tuned is not None or not self.evaluator.always_tuned:
            return choice.tuned
        rules = choice.part.rules
        if choice.key not in rules:
            tuned = self._tuned(choice)
            rules[choice.key] = None if tuned is None else tuned.tuned
        return rules[choice.key]

    def _values_at_once(self, outputs: Array, part: Part) -> list[float]:
        """The values of outputs (m, n) on these rows from one call; none if it is undefined for some."""
        found = self.evaluator.values_at_once(outputs, part.rows)
        return [] if found is None else list(np.where(np.isfinite(found), found, np.nan).tolist())

    def _averaged(
        self,
        members: Sequence[int],
        votes: FloatArray,
        predictions: Mapping[int, Predictions],
    ) -> Predictions:
        evaluator = self.evaluator
        return Predictions.averaged(
            [predictions[k] for k in members],
            votes,
            task=self.task,
            classes=evaluator.classes,
            pos_label=evaluator.pos_label if self.task == "classification" else None,
        )

    def _constants(self, part: Part) -> Array:
        """Constant decisions worth trying: the most common classes, or quantiles of a target."""
        y, most = part.rows.y, self.effort.constants
        if self.task != "classification":
            shares = np.linspace(0.05, 0.95, most) if most > 2 else np.array([0.5])
            return np.unique(np.quantile(np.asarray(y, dtype=np.float64), shares))
        classes = np.asarray(self.evaluator.classes)
        counts = np.array([np.count_nonzero(y == one) for one in classes])
        return classes[np.sort(np.argsort(-counts, kind="stable")[:most])]


def _best_first(values: FloatArray) -> IntArray:
    """The places of values (m,), the highest first, the first among equals, those without a value last."""
    return np.argsort(np.where(np.isnan(values), np.inf, -values), kind="stable")


def _votes(joined: Sequence[int]) -> tuple[tuple[int, ...], FloatArray]:
    """The members that joined, each once, and their shares of the votes."""
    members = tuple(sorted(set(joined)))
    return members, np.array([joined.count(k) for k in members]) / len(joined)


def _sure(like: Array, value: Any, classes: Array | None, pos_label: Any) -> Array:
    """What a constant answers where other metrics ask for scores or probabilities: those of 0 and 1."""
    if classes is None:  # a regressor's score is its prediction
        return np.full(len(like), value, dtype=np.float64)
    if like.ndim == 1:
        return np.full(len(like), float(value == (classes[-1] if pos_label is None else pos_label)))
    return np.tile((np.asarray(classes) == value).astype(np.float64), (len(like), 1))
