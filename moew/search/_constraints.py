"""Choose among what keeps the bounds of the user's constraints.

A bound is kept on some rows if the metric keeps it there with the one-sided 95 % margin from bootstrap
resamples of these rows. Every strategy chooses what keeps the bounds and has the best value, or what comes
closest where nothing keeps them; and it does so on halves as on all rows, so that honest scores count this
choice, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from moew._util.margins import ONE_SIDED
from moew.data import LabelledRows, bootstrap_samples
from moew.metrics import Predictions, sum_of_excess
from moew.types import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from moew.search._choices import Choice, Chooser, Part

_SEED = 0x5EED  # of the resamples, the same for all candidates, whose differences then do not depend on them
_NEAR = 5  # choices whose margins are looked at where none keeps the bounds


@dataclass(frozen=True)
class Bounds:
    """How a choice stands to the constraints on some rows."""

    limits: Mapping[str, float]  # the value with its margin, by metric
    violation: float  # the sum of what the limits are beyond the bounds; 0: all are kept

    @property
    def kept(self) -> bool:
        """Whether all bounds are kept."""
        return self.violation <= 0


class Constraints:
    """The constraints of a chooser's evaluator, on choices of the chooser."""

    def __init__(self, chooser: Chooser) -> None:
        self.chooser, self.evaluator = chooser, chooser.evaluator
        self._drawn: tuple[Part, list[tuple[IntArray, LabelledRows]]] | None = None  # of the last part

    def bounds(self, choice: Choice, part: Part) -> Bounds:
        """How a choice stands to the constraints on these rows, margins counted."""
        remembers = choice.tuned is None and choice.part is part
        if remembers and choice.key in part.bounds:
            return part.bounds[choice.key]
        margins = self._margins(*self._decided(choice, part), part)
        values = self.chooser.values_of_all(choice, part)
        limits, excess = {}, []
        for one, margin in zip(self.evaluator.constraints, margins, strict=True):
            limits[one.name] = values[one.name] + (margin if one.at_most else -margin)
            excess.append(one.excess(limits[one.name]))
        found = Bounds(limits, sum_of_excess(excess))
        if remembers:
            part.bounds[choice.key] = found
        return found

    def first_kept(self, choices: Sequence[Choice], part: Part) -> Choice:
        """The first choice that keeps the bounds; else, of those that come closest without margins, the one
        that does with them."""
        excess = [self._excess(choice, part) for choice in choices]
        for choice, over in zip(choices, excess, strict=True):
            if over <= 0 and self.bounds(choice, part).kept:
                return choice
        near = np.argsort(excess, kind="stable")[:_NEAR]
        violations = [self.bounds(choices[k], part).violation for k in near]
        return choices[int(near[int(np.argmin(violations))])]

    def keeping(self, candidates: Sequence[int], part: Part) -> list[int]:
        """The candidates that keep the bounds without margins; all of them if none does."""
        kept = [k for k in candidates if self._excess(self.chooser.single(k, part), part) <= 0]
        return kept or list(candidates)

    def hopeful(self) -> IntArray:
        """The best of the candidates that keep the bounds on all rows, and those that come closest."""
        chooser = self.chooser
        every = range(len(chooser.predictions))
        excess = np.array([self._excess(chooser.single(k, chooser.every), chooser.every) for k in every])
        values = chooser.values(chooser.every)
        worth = np.where(excess <= 0, np.where(np.isnan(values), -np.inf, values), -np.inf)
        few = max(1, chooser.effort.evaluated // 2)
        best = np.argsort(-worth, kind="stable")[:few]
        closest = np.argsort(excess, kind="stable")[: max(1, few // 4)]
        return np.concatenate([best, closest])

    def scored_like(self, first: Choice) -> Callable[[Sequence[Predictions], Part], list[float]]:
        """A function that gives values of predictions on a part of the rows; NaN for those that are further
        beyond the bounds than a first choice, with its margins for all."""
        margins = self._margins(*self._decided(first, first.part), first.part)
        most = max(0.0, self._excess(first, first.part, margins))
        evaluator, chooser = self.evaluator, self.chooser

        def decided(one: Predictions, part: Part) -> Array | None:
            if not evaluator.always_tuned:
                return evaluator.decided(one, part.rows)
            rule = evaluator.tune(one, part.rows, margins=margins)
            return None if rule is None else evaluator.decide_tuned(rule, one, part.rows)

        def scored(tried: Sequence[Predictions], part: Part) -> list[float]:
            labels = [decided(one, part) for one in tried]
            if evaluator.always_tuned:
                values = [chooser.value_of(*pair, part) for pair in zip(tried, labels, strict=True)]
            else:
                values = chooser.scored(tried, part)  # in one call of the metric if it can
            return [
                math.nan if evaluator.excess(one, part.rows, made, margins) > most else value
                for one, made, value in zip(tried, labels, values, strict=True)
            ]

        return scored

    def tuned(self, choice: Choice, most_calls: int | None = None) -> Choice | None:
        """The choice with its decisions tuned on its rows among those that keep the bounds."""
        part, found = choice.part, None
        taken = choice.predictions.take(part.numbers)
        for _ in range(2):  # the margins of other decisions are others
            decided = None if found is None else self.chooser.decided(found, taken, part)
            margins = self._margins(taken, decided, part)
            fitted = self.evaluator.tune(taken, part.rows, most_calls, margins)
            if fitted is None:
                return None
            tried = [replace(choice, tuned=fitted), *([] if found is None else [found])]
            values = [self.chooser.value(one, part) for one in tried]
            order = np.argsort([math.inf if math.isnan(value) else -value for value in values], kind="stable")
            found = self.first_kept([tried[k] for k in order], part)
        return found

    def _excess(self, choice: Choice, part: Part, margins: Sequence[float] | None = None) -> float:
        """How far a choice is beyond the bounds on these rows, with these margins or none."""
        taken, decided = self._decided(choice, part)
        return self.evaluator.excess(taken, part.rows, decided, margins)

    def _decided(self, choice: Choice, part: Part) -> tuple[Predictions, Array | None]:
        taken = choice.predictions.take(part.numbers)
        return taken, self.chooser.decided(choice, taken, part)

    def _margins(self, taken: Predictions, decided: Array | None, part: Part) -> list[float]:
        """The one-sided margin of each bounded metric, as it would be on all evaluation rows, of predictions
        on these rows with the labels `decided` (n,) or those that are recorded.

        Halves have larger margins, but a choice on them stands for one on all rows: with their own, it would
        be a more careful one, whose value says too little of it.
        """
        evaluator, every = self.evaluator, len(self.chooser.rows)
        if self._drawn is None or self._drawn[0] is not part:
            n_resamples = self.chooser.effort.resamples[0 if len(part) == every else 1]
            self._drawn = part, list(bootstrap_samples(part.rows, n_resamples, np.random.default_rng(_SEED)))
        found: list[list[float]] = [[] for _ in evaluator.constraints]
        # Without scores, which only decisions are made by, and which would be taken again for each resample.
        taken = Predictions({**taken.arrays, **taken.further}, taken.classes, taken.estimator_type)
        for numbers, resample in self._drawn[1]:
            predicted = taken.take(numbers)
            labels = None if decided is None else decided[numbers]
            for one, values in zip(evaluator.constraints, found, strict=True):
                values.append(evaluator.value_of(one.name, predicted, resample, labels))
        share = math.sqrt(len(part) / every)
        return [ONE_SIDED * share * _spread(np.array(values)) for values in found]


def _spread(values: FloatArray) -> float:
    """The standard deviation of the finite values; infinite unless they are more than half of them."""
    finite = values[np.isfinite(values)]
    return float(finite.std()) if len(finite) * 2 > len(values) else math.inf
