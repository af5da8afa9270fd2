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


@dataclass(frozen=True)
class Effort:
    """How many calls of the metric the choice and its honest score may take."""

    pairs: int = 5  # of halves that choices are made on
    error_pairs: int = 25  # of halves that show the error of a fixed choice
    judged: int = 60  # candidates that are scored on halves, the best on all rows
    contenders: int = 15  # candidates that may join an ensemble
    rounds: int = 5  # of the greedy selection
    tuning: int = 40  # calls that tune one decision; 0: none is tuned


EFFORTS = (
    Effort(),
    Effort(pairs=3, error_pairs=10, judged=30, contenders=8, rounds=4, tuning=16),
    Effort(pairs=2, error_pairs=4, judged=12, contenders=4, rounds=3, tuning=8),
    Effort(pairs=1, error_pairs=1, judged=3, contenders=1, rounds=1, tuning=0),
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
    """Scores the candidates whose predictions on the judged `rows` are given, by number."""

    def __init__(
        self,
        evaluator: Evaluator,
        rows: LabelledRows,
        task: Task,
        predictions: Sequence[Predictions],
        values: FloatArray,
        effort: Effort,
    ) -> None:
        self.evaluator, self.task, self.predictions = evaluator, task, list(predictions)
        # X takes the most memory, and few metrics look at it.
        self.rows = rows if evaluator.metric.uses_features else replace(rows, X=np.empty((len(rows), 0)))
        self.every = np.arange(len(rows))
        self.sign = 1.0 if evaluator.metric.greater_is_better else -1.0
        self.effort = effort
        self.n_calls = 0
        self.failure: Exception | None = None  # the first of the metric on some of the rows
        self._parts: dict[int, tuple[IntArray, LabelledRows]] = {}
        self._on_all = self.sign * np.where(np.isfinite(values), values, np.nan)
        self._values: dict[int, tuple[IntArray, FloatArray]] = {id(self.every): (self.every, self._on_all)}

    @cached_property
    def decides(self) -> bool:
        """Whether the metric looks only at decisions and predicted numbers, which can be tuned."""
        return self.evaluator.rule is None and set(self.predictions[0].arrays) <= LABEL_ARRAYS

    def values(self, rows: IntArray) -> FloatArray:
        """The values (m,) of all candidates on these rows, with the user's rule fitted there."""
        known = self._values.get(id(rows))
        if known is None:
            if len(self._values) == _KEPT_PARTS:
                self._values = {id(self.every): (self.every, self._on_all)}
            known = self._values[id(rows)] = rows, self._all_values(rows)
        return known[1]

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
            tried = [self._together([*joined, k], parts, rows) for k in contenders]
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
        fitted = self.evaluator.tune(choice.predictions.take(choice.rows), part, self.effort.tuning)
        self.n_calls += self.effort.tuning
        return None if fitted is None else replace(choice, tuned=fitted)

    def constant(self, rows: IntArray) -> Choice | None:
        """The best constant decision on these rows; None if the metric is not of decisions."""
        if not self.decides:
            return None
        part = self._part(rows)
        if self.task == "classification":
            tried = np.asarray(self.evaluator.classes)
        else:
            tried = np.unique(np.quantile(np.asarray(part.y, dtype=np.float64), np.linspace(0.05, 0.95, 19)))
        values = [self._value(_constant(self.predictions[0], c, len(part)), part) for c in tried]
        if np.isnan(values).all():
            return None
        best = tried[int(np.nanargmax(values))]
        made = _constant(self.predictions[0], best, len(self.rows))
        return Choice((), np.empty(0), made, rows, constant=best)

    def value(self, choice: Choice, rows: IntArray) -> float:
        """The value of a choice on these rows, with decisions as they were fitted on its own rows."""
        part, known = self._part(rows), choice.predictions.take(rows)
        if choice.tuned is not None:
            return self._value(known, part, decided=self.evaluator.decide_tuned(choice.tuned, known, part))
        fit_on = None
        if self.evaluator.rule is not None or self.evaluator.always_tuned:
            fit_on = choice.predictions.take(choice.rows), self._part(choice.rows)
        return self._value(known, part, fit_on=fit_on)

    def _all_values(self, rows: IntArray) -> FloatArray:
        part, metric = self._part(rows), self.evaluator.metric
        if self._stack is not None:
            weight = part.sample_weight
            self.n_calls += 1
            try:
                found = metric.values(self._stack[:, rows], part.y, sample_weight=weight)
            except Exception:
                found = None  # undefined for some candidates: one by one
            if found is not None:
                return self.sign * np.where(np.isfinite(found), found, np.nan)
        values = np.full(len(self.predictions), np.nan)
        for k in self._hopeful:
            values[k] = self._value(self.predictions[k].take(rows), part)
        return values

    @cached_property
    def _hopeful(self) -> IntArray:
        """The candidates that are scored on halves: the first, and the best on all rows."""
        order = np.argsort(np.where(np.isnan(self._on_all), np.inf, -self._on_all), kind="stable")
        return np.union1d([0], order[: self.effort.judged])

    @cached_property
    def _stack(self) -> Array | None:
        """The predictions (m, n) of all candidates, if the metric can score them in one call."""
        metric = self.evaluator.metric
        if not metric.takes_many or metric.response is None or self.evaluator.rule is not None:
            return None
        outputs = [predicted.arrays[metric.response] for predicted in self.predictions]
        alike = len({(array.shape, array.dtype) for array in outputs}) == 1 and outputs[0].ndim == 1
        few = sum(array.size for array in outputs) <= _MOST_STACKED
        return np.stack(outputs) if alike and few else None

    def _together(self, joined: Sequence[int], parts: dict[int, Predictions], rows: IntArray) -> float:
        members = sorted(set(joined))
        votes = np.array([joined.count(k) for k in members]) / len(joined)
        return self._value(self._averaged(members, votes, parts), self._part(rows))

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
        self.n_calls += 1
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


def _constant(like: Predictions, value: Any, n: int) -> Predictions:
    return replace(like, arrays={name: np.full(n, value) for name in like.arrays}, scores=None)
