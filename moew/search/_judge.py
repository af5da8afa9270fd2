"""Values of candidates, and of ensembles of them, on any of the judged rows.

Candidates have predicted once; everything here is done with those predictions. Values are signed so that
higher is better, and NaN where the metric is undefined.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from moew.data import LabelledRows
from moew.metrics import Predictions
from moew.search._evaluate import LABEL_ARRAYS, Evaluator
from moew.types import Array, FloatArray, IntArray, Task

_MOST_STACKED = 2**23  # most predictions, of all candidates together, to score in one call
_KEPT_PARTS = 4  # sets of rows of which copies are kept
_KEPT_FITS = 50  # choices of which tuned decisions are kept
_STACKED = "stacked"  # known where all candidates were scored in one call


@dataclass(frozen=True)
class Effort:
    """How many calls of the metric the choice and its honest score may take."""

    pairs: int = 5  # of halves that choices are made on
    error_pairs: int = (
        25  # of halves that show the error of a fixed choice; 0: those that choices are made on
    )
    judged: int = 60  # candidates that are scored on halves, the best on all rows; and a quarter of each way
    contenders: int = 15  # candidates that may join an ensemble
    constants: int = 19  # decisions that are tried as constants
    rounds: int = 5  # of the greedy selection
    tuning: int = 40  # calls that tune one decision; 0: none is tuned


EFFORTS = (
    Effort(),
    Effort(pairs=3, error_pairs=10, judged=30, contenders=8, constants=9, rounds=4, tuning=16),
    Effort(pairs=2, error_pairs=0, judged=12, contenders=4, constants=5, rounds=3, tuning=8),
    Effort(pairs=1, error_pairs=0, judged=1, contenders=1, constants=2, rounds=1, tuning=0),
)
"""From thorough to quick; the slower the metric, the quicker one is taken."""


@dataclass(frozen=True)
class Choice:
    """What was chosen on some rows: an ensemble of candidates (one member: a single candidate), its
    predictions on all judged rows, and how they are decided; or a constant, which has no members."""

    members: tuple[int, ...]
    votes: FloatArray
    predictions: Predictions
    rows: IntArray  # that it was chosen on
    tuned: Any = None  # a fitted rule of `Tuned`; None: the user's rule, or the model's own decisions
    constant: Any = None


class Judge:
    """Scores the candidates whose predictions on the judged `rows` are given, by number.

    `values` are the metric's on all rows, in its own direction, and None where they are not known yet. Where
    not all candidates can be scored on halves, the best of each of `families` are.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        rows: LabelledRows,
        task: Task,
        predictions: Sequence[Predictions],
        values: FloatArray | None,
        effort: Effort,
        families: Sequence[Sequence[int]] = (),
    ) -> None:
        self.evaluator, self.task, self.predictions = evaluator, task, list(predictions)
        # X takes the most memory, and few metrics look at it.
        uses_features = any(metric.uses_features for metric in evaluator.metrics.values())
        self.rows = rows if uses_features else replace(rows, X=np.empty((len(rows), 0)))
        self.every = np.arange(len(rows))
        self.sign = 1.0 if evaluator.metric.greater_is_better else -1.0
        self.effort, self.families = effort, families
        self.failure: Exception | None = None  # the first of the metric on some of the rows
        self._parts: dict[int, tuple[IntArray, LabelledRows]] = {}
        self._fits: dict[tuple[int, int], tuple[Choice, Any]] = {}
        self._numbers = {id(predicted): k for k, predicted in enumerate(self.predictions)}
        on_all: dict[Any, float] = {}
        if values is not None:
            on_all = dict(enumerate((self.sign * np.where(np.isfinite(values), values, np.nan)).tolist()))
        # Values by number, and of constants, on all rows and on the sets of rows of last.
        self._known: dict[int, tuple[IntArray, dict[Any, float]]] = {id(self.every): (self.every, on_all)}

    @cached_property
    def decides(self) -> bool:
        """Whether the metric looks only at decisions and predicted numbers, which can be tuned."""
        return self.evaluator.rule is None and set(self.predictions[0].arrays) <= LABEL_ARRAYS

    def values(self, rows: IntArray) -> FloatArray:
        """The values (m,) of all candidates on these rows, with the user's rule fitted there."""
        known = self._known_on(rows)
        if self._stack is not None and rows is not self.every and _STACKED not in known:
            known[_STACKED] = math.nan
            for k, value in enumerate(self._values_at_once(self._stack[:, rows], rows)):
                known.setdefault(k, value)
        hopeful = range(len(self.predictions)) if rows is self.every else self._hopeful
        for k in hopeful:
            self._value_of(int(k), rows)
        return np.array([known.get(k, math.nan) for k in range(len(self.predictions))])

    def best(self, candidates: Sequence[int], rows: IntArray) -> Choice:
        """The best candidate on these rows, the first among equals."""
        values = self.values(rows)[list(candidates)]
        place = int(np.argmax(np.where(np.isnan(values), -np.inf, values)))
        return self.single(candidates[place], rows)

    def single(self, candidate: int, rows: IntArray) -> Choice:
        """One candidate."""
        return Choice((candidate,), np.ones(1), self.predictions[candidate], rows)

    def ensemble(self, candidates: Sequence[int], rows: IntArray) -> Choice:
        """Few candidates whose averaged predictions are best on these rows: Caruana's greedy selection.

        The best candidate begins. In each round, the one of the best candidates joins that makes the average
        best; one that joins twice has two votes.
        """
        values = self.values(rows)[list(candidates)]
        order = np.argsort(np.where(np.isnan(values), np.inf, -values), kind="stable")
        contenders = [candidates[k] for k in order[: self.effort.contenders] if not math.isnan(values[k])]
        if len(contenders) < 2:
            return self.best(candidates, rows)
        parts = {k: self.predictions[k].take(rows) for k in contenders}
        joined: list[int] = [contenders[0]]
        for _ in range(self.effort.rounds - 1):
            tried = self._scored([self._together([*joined, k], parts) for k in contenders], rows)
            joined.append(contenders[int(np.argmax(np.where(np.isnan(tried), -np.inf, tried)))])
        members = tuple(sorted(set(joined)))
        votes = np.array([joined.count(k) for k in members]) / len(joined)
        return self.joint(members, votes, rows)

    def joint(self, members: tuple[int, ...], votes: FloatArray, rows: IntArray) -> Choice:
        """The ensemble of these members."""
        return Choice(members, votes, self._averaged(members, votes, self.predictions), rows)

    def tuned(self, choice: Choice) -> Choice | None:
        """The same choice with its decisions tuned for the metric on its rows; None if that is impossible."""
        if self.evaluator.always_tuned or not self.effort.tuning:
            return None
        part = self._part(choice.rows)
        fitted = self.evaluator.tune(choice.predictions.take(choice.rows), part, self._tuning_calls)
        return None if fitted is None else replace(choice, tuned=fitted)

    @cached_property
    def _tuning_calls(self) -> int:
        """Calls that tune one decision: more for thresholds of groups and for offsets of many classes."""
        n_classes = 2 if self.evaluator.classes is None else len(self.evaluator.classes)
        several = 3 if self.evaluator.tuned.by is not None else max(1.0, n_classes / 3)
        return round(several * self.effort.tuning)

    def constant(self, rows: IntArray) -> Choice | None:
        """The best constant decision on these rows; None if the metric is not of decisions."""
        if not self.decides:
            return None
        tried = self._constants(rows)
        values = [self._value_of_constant(c, rows) for c in tried]
        if np.isnan(values).all():
            return None
        return self._constant_choice(tried[int(np.nanargmax(values))], rows)

    def _constant_choice(self, best: Any, rows: IntArray) -> Choice:
        made = _constant(self.predictions[0], best, len(self.rows), self.evaluator.pos_label)
        return Choice((), np.empty(0), made, rows, constant=best)

    def _constants(self, rows: IntArray) -> Array:
        """Constant decisions worth trying: the most common classes, or quantiles of a target."""
        y, most = self.rows.y[rows], self.effort.constants
        if self.task != "classification":
            shares = np.linspace(0.05, 0.95, most) if most > 2 else np.array([0.5])
            return np.unique(np.quantile(np.asarray(y, dtype=np.float64), shares))
        classes = np.asarray(self.evaluator.classes)
        counts = np.array([np.count_nonzero(y == one) for one in classes])
        return classes[np.sort(np.argsort(-counts, kind="stable")[:most])]

    def values_of_all(self, choice: Choice, rows: IntArray) -> dict[str, float]:
        """All metrics of a choice on these rows, in their own directions, NaN where undefined; decisions are
        those that were fitted on its own rows."""
        part, known = self._part(rows), choice.predictions.take(rows)
        decided = self.decided(choice, known, part)
        return {name: self.evaluator.value_of(name, known, part, decided) for name in self.evaluator.metrics}

    def decided(self, choice: Choice, known: Predictions, part: LabelledRows) -> Array | None:
        """The choice's labels (n,) on rows of which its predictions are known, as fitted on its own rows;
        None where those that are recorded stand."""
        if choice.constant is not None:
            return np.full(len(part), choice.constant)
        tuned = self._tuned_once(choice) if self.evaluator.always_tuned else choice.tuned
        if tuned is not None:
            return self.evaluator.decide_tuned(tuned, known, part)
        if self.evaluator.rule is None:
            return None
        fit_on = choice.predictions.take(choice.rows), self._part(choice.rows)
        return self.evaluator.decided(known, part, fit_on)

    def value(self, choice: Choice, rows: IntArray) -> float:
        """The value of a choice on these rows, with decisions as they were fitted on its own rows."""
        if choice.constant is not None:
            return self._value_of_constant(choice.constant, rows)
        fits = self.evaluator.rule is not None or self.evaluator.always_tuned
        single = self._numbers.get(id(choice.predictions))
        if choice.tuned is None and single is not None and (not fits or choice.rows is rows):
            return self._value_of(single, rows)
        part, known = self._part(rows), choice.predictions.take(rows)
        tuned = self._tuned_once(choice) if self.evaluator.always_tuned else choice.tuned
        if tuned is not None:
            return self._value(known, part, decided=self.evaluator.decide_tuned(tuned, known, part))
        fit_on = (choice.predictions.take(choice.rows), self._part(choice.rows)) if fits else None
        return self._value(known, part, fit_on=fit_on)

    def decisions(self, choice: Choice) -> Array | None:
        """What a choice decides, or predicts in regression (n,), on all judged rows, as it would for new
        ones; None where nothing of that is recorded, as for metrics of scores."""
        if choice.constant is not None:
            return np.full(len(self.rows), choice.constant)
        evaluator, known = self.evaluator, choice.predictions
        tuned = self._tuned_once(choice) if evaluator.always_tuned else choice.tuned
        if tuned is not None:
            return evaluator.decide_tuned(tuned, known, self.rows)
        if evaluator.rule is not None and known.scores is not None:
            return evaluator.decide_by_rule(known, self.rows)
        arrays = known.arrays
        return next((arrays[name] for name in sorted(LABEL_ARRAYS) if name in arrays), None)

    def _tuned_once(self, choice: Choice) -> Any:
        """The choice's decisions as they are tuned on its rows, for the many rows that it is scored on."""
        key = id(choice.predictions), id(choice.rows)
        if key not in self._fits:
            if len(self._fits) == _KEPT_FITS:
                self._fits.clear()
            fitted = self.evaluator.tune(choice.predictions.take(choice.rows), self._part(choice.rows))
            self._fits[key] = choice, fitted  # keeping the choice keeps the ids valid
        return self._fits[key][1]

    def _known_on(self, rows: IntArray) -> dict[Any, float]:
        """The values that are known on these rows, by number of a candidate or ("constant", decision)."""
        if id(rows) not in self._known:
            if len(self._known) == _KEPT_PARTS:
                self._known = {id(self.every): self._known[id(self.every)]}
            self._known[id(rows)] = rows, {}  # keeping `rows` keeps its id valid
        return self._known[id(rows)][1]

    def _value_of(self, candidate: int, rows: IntArray) -> float:
        """The value of a candidate on these rows, with the user's rule fitted there."""
        known = self._known_on(rows)
        if candidate not in known:
            known[candidate] = self._value(self.predictions[candidate].take(rows), self._part(rows))
        return known[candidate]

    def _value_of_constant(self, constant: Any, rows: IntArray) -> float:
        known, key = self._known_on(rows), ("constant", constant)
        if key not in known:
            made = _constant(self.predictions[0], constant, len(rows), self.evaluator.pos_label)
            decided = np.full(len(rows), constant)  # so that it is not tuned
            known[key] = self._value(made, self._part(rows), decided=decided)
        return known[key]

    def _values_at_once(self, outputs: Array, rows: IntArray) -> list[float]:
        """The values of outputs (m, n) on these rows from one call; none if it is undefined for some."""
        found = self.evaluator.values_at_once(outputs, self._part(rows))
        values: list[float] = [] if found is None else np.where(np.isfinite(found), found, np.nan).tolist()
        return values

    @cached_property
    def _hopeful(self) -> IntArray:
        """The candidates that are scored on halves: the first, the best of all, the best of each family."""
        on_all = self.values(self.every)
        order = np.argsort(np.where(np.isnan(on_all), np.inf, -on_all), kind="stable")
        best = [0, *order[: self.effort.judged].tolist()]
        few = max(1, self.effort.judged // 4)
        for family in self.families:
            best += order[np.isin(order, family)][:few].tolist()
        return np.unique(best)

    @cached_property
    def _stack(self) -> Array | None:
        """The predictions (m, n) of all candidates, if the metric can score them in one call."""
        metric = self.evaluator.metric
        decides_again = self.evaluator.rule is not None or self.evaluator.always_tuned
        if not metric.takes_many or metric.response is None or decides_again:
            return None
        outputs = [predicted.arrays[metric.response] for predicted in self.predictions]
        alike = len({(array.shape, array.dtype) for array in outputs}) == 1 and outputs[0].ndim == 1
        few = sum(array.size for array in outputs) <= _MOST_STACKED
        return np.stack(outputs) if alike and few else None

    def _together(self, joined: Sequence[int], parts: dict[int, Predictions]) -> Predictions:
        members = sorted(set(joined))
        votes = np.array([joined.count(k) for k in members]) / len(joined)
        return self._averaged(members, votes, parts)

    def _scored(self, tried: Sequence[Predictions], rows: IntArray) -> list[float]:
        """The values of predictions on these rows, from one call of the metric if it can."""
        if self._stack is not None:
            response = str(self.evaluator.metric.response)
            outputs = np.stack([predicted.arrays[response] for predicted in tried])
            if found := self._values_at_once(outputs, rows):
                return found
        return [self._value(predicted, self._part(rows)) for predicted in tried]

    def _averaged(self, members: Sequence[int], votes: FloatArray, parts: Any) -> Predictions:
        evaluator = self.evaluator
        return Predictions.averaged(
            [parts[k] for k in members],
            votes,
            task=self.task,
            classes=evaluator.classes,
            pos_label=evaluator.pos_label if self.task == "classification" else None,
        )

    def _value(
        self,
        predictions: Predictions,
        part: LabelledRows,
        *,
        decided: Array | None = None,
        fit_on: tuple[Predictions, LabelledRows] | None = None,
    ) -> float:
        try:
            value = self.evaluator.value(predictions, part, fit_on, decided=decided)
        except Exception as error:  # it has a value on all rows, so it is undefined on these
            if len(part) < len(self.rows):
                self.failure = self.failure or error
            return math.nan
        return self.sign * value if math.isfinite(value) else math.nan

    def _part(self, rows: IntArray) -> LabelledRows:
        taken = self._parts.get(id(rows))
        if taken is None:
            if len(self._parts) == _KEPT_PARTS:
                self._parts.clear()
            taken = self._parts[id(rows)] = rows, self.rows.take(rows)  # keeping `rows` keeps its id valid
        return taken[1]


def _constant(like: Predictions, value: Any, n: int, pos_label: Any) -> Predictions:
    further = {
        name: np.full(n, value) if name in LABEL_ARRAYS else _sure(array[:n], value, like.classes, pos_label)
        for name, array in like.further.items()
    }
    arrays = {name: np.full(n, value) for name in like.arrays}
    return replace(like, arrays=arrays, scores=None, further=further)


def _sure(like: Array, value: Any, classes: Array | None, pos_label: Any) -> Array:
    """What a constant answers where other metrics ask for scores or probabilities: those of 0 and 1."""
    if classes is None:  # a regressor's score is its prediction
        return np.full(len(like), value, dtype=np.float64)
    if like.ndim == 1:
        return np.full(len(like), float(value == (classes[-1] if pos_label is None else pos_label)))
    return np.tile((np.asarray(classes) == value).astype(np.float64), (len(like), 1))
