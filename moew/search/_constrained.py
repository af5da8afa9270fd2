"""Choose among what keeps the bounds of the user's constraints.

A bound is kept on some rows if the metric keeps it there with the one-sided 95 % margin from bootstrap
resamples of these rows. Every way chooses what keeps the bounds and has the best value, or what comes closest
where nothing keeps them; and it does so on halves as on all rows, so that honest scores count this choice,
too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from moew._util.margins import ONE_SIDED
from moew.data import LabelledRows
from moew.data._groups import columns_of_names, copies_apart, count_groups
from moew.data._splits import bootstrap_rows
from moew.metrics import Predictions
from moew.search._judge import Choice, Judge
from moew.types import Array, FloatArray, IntArray

_SEED = 0x5EED  # of the resamples, the same for all candidates, whose differences then do not depend on them
_NEAR = 5  # choices whose margins are looked at where none keeps the bounds
_RESAMPLES = {25: (100, 25), 10: (50, 15), 0: (20, 10)}  # of all rows and of halves, by `Effort.error_pairs`


@dataclass(frozen=True)
class Bounds:
    """How a choice stands to the constraints on some rows."""

    limits: Mapping[str, float]  # the value with its margin, by metric
    violation: float  # the sum of what the limits are beyond the bounds; 0: all are kept

    @property
    def kept(self) -> bool:
        """Whether all bounds are kept."""
        return self.violation <= 0


class ConstrainedJudge(Judge):
    """A judge whose choices keep the constraints of its evaluator where they can."""

    _drawn: tuple[IntArray, list[tuple[IntArray, LabelledRows]]] | None = None  # resamples of the last rows

    def bounds(self, choice: Choice, rows: IntArray) -> Bounds:
        """How a choice stands to the constraints on these rows, margins counted."""
        single = self._numbers.get(id(choice.predictions))
        known, key = self._known_on(rows), ("bounds", single)
        remember = single is not None and choice.tuned is None and choice.rows is rows
        if remember and key in known:
            return known[key]  # type: ignore[return-value]
        margins = self._margins(choice, rows)
        values = self.values_of_all(choice, rows)
        limits, excess = {}, []
        for one, margin in zip(self.evaluator.constraints, margins, strict=True):
            limits[one.name] = values[one.name] + (margin if one.at_most else -margin)
            excess.append(one.excess(limits[one.name]))
        found = Bounds(limits, _sum_of_excess(excess))
        if remember:
            known[key] = found  # type: ignore[assignment]
        return found

    def best(self, candidates: Sequence[int], rows: IntArray) -> Choice:
        """The best candidate on these rows that keeps the bounds, or the one that comes closest."""
        return self._first_kept([self.single(k, rows) for k in self._ordered(candidates, rows)], rows)

    def ensemble(self, candidates: Sequence[int], rows: IntArray) -> Choice:
        """As without constraints, but every average must keep the bounds with the first one's margins."""
        first = self.best(candidates, rows)
        ordered = self._ordered(candidates, rows)
        kept = [k for k in ordered if self._excess(self.single(k, rows), rows) <= 0]
        contenders = (kept or ordered)[: self.effort.contenders]
        if len(contenders) < 2:
            return first
        margins = self._margins(first, rows)
        most = max(0.0, self._excess(first, rows, margins))
        parts = {k: self.predictions[k].take(rows) for k in {*contenders, *first.members}}
        joined = list(first.members)
        for _ in range(self.effort.rounds - 1):
            together = [self._together([*joined, k], parts) for k in contenders]
            tried = np.array(self._scored(together, rows))
            tried[[self._excess_of(one, rows, margins) > most for one in together]] = np.nan
            if np.isnan(tried).all():
                break
            joined.append(contenders[int(np.nanargmax(tried))])
        members = tuple(sorted(set(joined)))
        if len(members) < 2:
            return first
        votes = np.array([joined.count(k) for k in members]) / len(joined)
        return self._first_kept([self.joint(members, votes, rows), first], rows)

    def tuned(self, choice: Choice) -> Choice | None:
        """The same choice with its decisions tuned among those that keep the bounds."""
        if self.evaluator.always_tuned or not self.effort.tuning:
            return None
        rows, found = choice.rows, None
        part, known = self._part(rows), choice.predictions.take(rows)
        for _ in range(2):  # the margins of other decisions are others
            margins = self._margins(found or choice, rows)

            def allowed(labels: Array, margins: Sequence[float] = margins) -> bool:
                return self._excess_of(known, rows, margins, decided=labels) <= 0

            fitted = self.evaluator.tune(known, part, self._tuning_calls, allowed)
            if fitted is None:
                return None
            tried = [replace(choice, tuned=fitted), *([] if found is None else [found])]
            values = [self.value(one, rows) for one in tried]
            order = np.argsort([math.inf if math.isnan(value) else -value for value in values], kind="stable")
            found = self._first_kept([tried[k] for k in order], rows)
        return found

    def constant(self, rows: IntArray) -> Choice | None:
        """The best constant decision on these rows that keeps the bounds."""
        if not self.decides:
            return None
        tried = self._constants(rows)
        values = np.array([self._value_of_constant(c, rows) for c in tried])
        order = [k for k in np.argsort(-values, kind="stable") if not math.isnan(values[k])]
        if not order:
            return None
        return self._first_kept([self._constant_choice(tried[k], rows) for k in order], rows)

    @cached_property
    def _hopeful(self) -> IntArray:
        """Also the best of those that keep the bounds, and those that come closest."""
        every = range(len(self.predictions))
        excess = np.array([self._excess(self.single(k, self.every), self.every) for k in every])
        values = self.values(self.every)
        worth = np.where(excess <= 0, np.where(np.isnan(values), -np.inf, values), -np.inf)
        few = max(1, self.effort.judged // 2)
        best = np.argsort(-worth, kind="stable")[:few]
        closest = np.argsort(excess, kind="stable")[: max(1, few // 4)]
        return np.unique([*super()._hopeful, *best, *closest])

    def _ordered(self, candidates: Sequence[int], rows: IntArray) -> list[int]:
        """The candidates that have a value on these rows, the best first; all of them if none has."""
        values = self.values(rows)[list(candidates)]
        order = np.argsort(np.where(np.isnan(values), np.inf, -values), kind="stable")
        return [candidates[k] for k in order if not math.isnan(values[k])] or list(candidates)

    def _first_kept(self, choices: Sequence[Choice], rows: IntArray) -> Choice:
        """The first choice that keeps the bounds; else, of those that come closest without margins, the one
        that does with them."""
        excess = [self._excess(choice, rows) for choice in choices]
        for choice, over in zip(choices, excess, strict=True):
            if over <= 0 and self.bounds(choice, rows).kept:
                return choice
        near = np.argsort(excess, kind="stable")[:_NEAR]
        violations = [self.bounds(choices[k], rows).violation for k in near]
        return choices[int(near[int(np.argmin(violations))])]

    def _excess(self, choice: Choice, rows: IntArray, margins: Sequence[float] | None = None) -> float:
        part, known = self._part(rows), choice.predictions.take(rows)
        return self._excess_of(known, rows, margins, self.decided(choice, known, part))

    def _excess_of(
        self,
        known: Predictions,
        rows: IntArray,
        margins: Sequence[float] | None = None,
        decided: Array | None = None,
    ) -> float:
        """How far predictions on these rows are beyond the bounds, with these margins or none."""
        evaluator, part = self.evaluator, self._part(rows)
        if decided is None:
            decided = evaluator.decided(known, part)
        return _sum_of_excess(
            one.excess(evaluator.value_of(one.name, known, part, decided)) + margin
            for one, margin in zip(
                evaluator.constraints, margins or [0.0] * len(evaluator.constraints), strict=True
            )
        )

    def _margins(self, choice: Choice, rows: IntArray) -> list[float]:
        """The one-sided margin of each bounded metric, as it would be on all judged rows.

        Halves have larger margins, but a choice on them stands for one on all rows: with their own, it would
        be a more careful one, whose value says too little of it.
        """
        evaluator, part, known = self.evaluator, self._part(rows), choice.predictions.take(rows)
        decided = self.decided(choice, known, part)
        found: list[list[float]] = [[] for _ in evaluator.constraints]
        # Without scores, which only decisions are made by, and which would be taken again for each resample.
        known = Predictions({**known.arrays, **known.further}, known.classes, known.estimator_type)
        for numbers, resample in self._resamples(rows):
            predicted = known.take(numbers)
            labels = None if decided is None else decided[numbers]
            for one, values in zip(evaluator.constraints, found, strict=True):
                values.append(evaluator.value_of(one.name, predicted, resample, labels))
        share = math.sqrt(len(rows) / len(self.rows))
        return [ONE_SIDED * share * _spread(np.array(values)) for values in found]

    def _resamples(self, rows: IntArray) -> list[tuple[IntArray, LabelledRows]]:
        """Bootstrap samples of these rows: numbers among them, and the rows; whole groups."""
        if self._drawn is not None and self._drawn[0] is rows:
            return self._drawn[1]
        part, rng, drawn = self._part(rows), np.random.default_rng(_SEED), []
        one_group = part.groups is not None and count_groups(part.groups) < 2
        names = [] if part.groups is None else columns_of_names(part.columns, part.groups)
        on_all, on_halves = _RESAMPLES[self.effort.error_pairs]
        n_resamples = on_all if len(rows) == len(self.rows) else on_halves
        for _ in range(0 if one_group else n_resamples):
            numbers = bootstrap_rows(len(part), rng, part.groups)
            taken = part.take(numbers)
            if names:
                taken = replace(
                    taken, columns={**taken.columns, **copies_apart(part.columns, names, numbers)}
                )
            drawn.append((numbers, taken))
        self._drawn = rows, drawn
        return drawn


def judge_of(*arguments: Any, **more: Any) -> Judge:
    """The judge for an evaluator, the first argument, with constraints or without; the arguments are those
    of `Judge`."""
    evaluator = arguments[0]
    return (ConstrainedJudge if evaluator.constraints else Judge)(*arguments, **more)


def _sum_of_excess(excess: Iterable[float]) -> float:
    """The sum of what is beyond its bound; infinite where a value is undefined."""
    return sum(math.inf if math.isnan(over) else max(over, 0.0) for over in excess)


def _spread(values: FloatArray) -> float:
    """The standard deviation of the finite values; infinite unless they are more than half of them."""
    finite = values[np.isfinite(values)]
    return float(finite.std()) if len(finite) * 2 > len(values) else math.inf
