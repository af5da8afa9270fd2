"""Honest scores of all ways to the metric, and which of them is handed out.

Every way chooses on one half of the judged rows and is scored on the other, several times: what it scores
less there than what it chose on all rows scores on the same half is its optimism. Nothing is trained for
that. docs/honest-score.md explains it, and what bias remains.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moew.data._groups import count_groups
from moew.data._splits import stratified_halves
from moew.search._constrained import Bounds, ConstrainedJudge
from moew.search._judge import Choice, Judge
from moew.search._ways import Way
from moew.types import FloatArray, IntArray

# Chosen on planted problems and on those of DEVELOPMENT in benchmarks/problems.py; see docs/rivals.md.
SIMPLER = 0.25  # a simpler way is taken if it is behind by no more standard errors
CERTAIN = 1.5  # example weights are handed out if they are ahead by more standard errors


@dataclass(frozen=True)
class WayScore:
    """What a way is worth; signed so that higher is better, NaN where undefined."""

    way: Way
    choice: Choice  # made on all judged rows, with the predictions of the finalists' folds
    best: float  # its value on all judged rows
    crossed: FloatArray  # (2J,) on each half, of what the other half chose
    chosen: FloatArray  # (2J,) on each half, of what all rows chose; both by the search's predictions
    own: FloatArray  # (2E,) on other halves, of what all rows chose, by the finalists' predictions
    failure: Exception | None = None  # the first failure of the metric on a half, of any way
    moves: FloatArray | None = None  # on halves less on all rows, of what other halves chose
    values: Mapping[str, float] = field(default_factory=dict)  # all metrics on all rows, in their directions
    corrections: Mapping[str, float] = field(default_factory=dict)  # honest less `values`, of other metrics
    bounds: Bounds | None = None  # how it stands to the constraints; None: there are none

    @property
    def optimism(self) -> float:
        """How much the choice makes its value look better than it is."""
        return _mean(self.chosen - self.crossed)

    @property
    def size_bias(self) -> float:
        """Bias of the metric itself from being computed on few rows: a worst class looks worse on few.

        On half the rows it is twice as large if it falls like 1/n, so the difference is that of all rows. It
        is measured on what other halves chose: what is best on all rows is worse on halves by its luck, too.
        """
        return _mean(self.own) - self.best if self.moves is None else _mean(self.moves)

    @property
    def honest(self) -> float:
        """The value on new rows."""
        return self.best - self.optimism - self.size_bias

    @property
    def error(self) -> float:
        """Standard error of a value on as many rows, of a fixed choice: the delete-half jackknife's."""
        return _spread(self.own)


def score_ways(
    ways: Sequence[Way], judge: Judge, finalists: Any, strata: IntArray, rng: np.random.Generator
) -> list[WayScore]:
    """The scores of all ways that exist; `finalists(choice)` gives a choice of all rows with the predictions
    that it is finally judged by."""
    every = judge.every
    chosen = {way.name: way.choose(every) for way in ways}
    there = [way for way in ways if chosen[way.name] is not None]
    final_judge, final = finalists({way.name: chosen[way.name] for way in there})

    def by(way: Way) -> Judge:
        return final_judge if final[way.name].members else judge  # a constant is the same by both

    crossed: dict[str, list[float]] = {way.name: [] for way in there}
    fixed: dict[str, list[float]] = {way.name: [] for way in there}
    own: dict[str, list[float]] = {way.name: [] for way in there}
    choices: dict[str, list[Choice | None]] = {way.name: [] for way in there}
    names = [*judge.evaluator.others]
    corrections: dict[str, list[list[float]]] = {way.name: [] for way in there}  # crossed less fixed
    pairs = []
    groups = judge.rows.groups
    halved = len(strata) > 1 and (groups is None or count_groups(groups) > 1)  # one group is not cut apart
    for _ in range(judge.effort.pairs if halved else 0):
        pair = stratified_halves(strata, rng, groups)
        pairs.append(pair)
        for half, other in (pair, pair[::-1]):
            for way in there:
                choice = way.choose(half)
                choices[way.name].append(choice)
                crossed[way.name].append(math.nan if choice is None else judge.value(choice, other))
                fixed[way.name].append(judge.value(_known(chosen[way.name]), other))
                if names and choice is not None:
                    here = judge.values_of_all(choice, other)
                    there_too = judge.values_of_all(_known(chosen[way.name]), other)
                    corrections[way.name].append([here[name] - there_too[name] for name in names])
                if not judge.effort.error_pairs:
                    own[way.name].append(by(way).value(final[way.name], other))
    is_bounded = bool(judge.evaluator.constraints)
    # New rows have other shares of the classes, so the halves that show the error are not stratified.
    alike = np.zeros_like(strata)
    for _ in range(judge.effort.error_pairs if halved else 0):
        for half in stratified_halves(alike, rng, groups):
            for way in there:
                own[way.name].append(by(way).value(final[way.name], half))
    return [
        WayScore(
            way,
            final[way.name],
            by(way).value(final[way.name], by(way).every),
            np.array(crossed[way.name]),
            np.array(fixed[way.name]),
            np.array(own[way.name]),
            judge.failure or final_judge.failure,
            _moves(judge, choices[way.name], pairs),
            by(way).values_of_all(final[way.name], by(way).every) if names or is_bounded else {},
            {
                name: _mean(column)
                for name, column in zip(names, _columns(corrections[way.name]), strict=False)
            },
            _bounds(by(way), final[way.name]),
        )
        for way in there
    ]


def _bounds(judge: Judge, choice: Choice) -> Bounds | None:
    return judge.bounds(choice, judge.every) if isinstance(judge, ConstrainedJudge) else None


def _columns(rows: Sequence[Sequence[float]]) -> list[FloatArray]:
    return [np.array(column) for column in zip(*rows, strict=True)]


def _moves(
    judge: Judge, choices: Sequence[Choice | None], pairs: Sequence[tuple[IntArray, IntArray]]
) -> FloatArray | None:
    """The value on a half less that on all rows, of each choice on the halves of another pair; None where
    there is no other pair, or no time."""
    if len(pairs) < 2 or not judge.effort.error_pairs:
        return None
    moves = []
    for place, choice in enumerate(choices):
        if choice is not None:
            on_all = judge.value(choice, judge.every)
            moves += [judge.value(choice, half) - on_all for half in pairs[(place // 2 + 1) % len(pairs)]]
    return np.array(moves)


@dataclass(frozen=True)
class Verdict:
    """Which way is handed out, and why."""

    chosen: WayScore
    reason: str
    honest: float  # the honest value of what is handed out, the guard's choice included; signed
    optimism: float  # of all choices that were made, the guard's included


def decide(scores: Sequence[WayScore], guard: bool) -> Verdict:
    """Hand out the simplest way that is not worse beyond chance; without the guard, example weights."""
    if guard and any(score.way.simple for score in scores):
        chosen, reason = _guarded(scores)
        # The best way on each half, with the ways' optimism of all rows, which a half has more of.
        crossed = np.array([_chosen_on_half(scores, k).crossed[k] for k in range(len(chosen.crossed))])
    else:
        chosen = _best([score for score in scores if not score.way.simple])
        reason, crossed = "no simple way worked" if guard else "the guard is off", chosen.crossed
    optimism = _mean(chosen.chosen - crossed)
    # A choice among ways flatters no less than the choice within one.
    optimism = max(optimism, chosen.optimism) if math.isfinite(optimism) else chosen.optimism
    honest = chosen.best - optimism - chosen.size_bias
    return Verdict(chosen, reason, honest, optimism)


def keeping_constraints(scores: Sequence[WayScore], guard: bool) -> tuple[list[WayScore], bool]:
    """The ways that may be handed out, and whether they keep the constraints: all that do, or the one that
    comes closest, the simplest among equals. Without the guard, only example weights may be handed out."""
    ours = [score for score in scores if guard or not score.way.simple]
    if kept := [score for score in ours if score.bounds is None or score.bounds.kept]:
        return kept, True
    closest = min(ours, key=lambda score: math.inf if score.bounds is None else score.bounds.violation)
    return [closest], False


def gain_error(one: WayScore, other: WayScore) -> float:
    """Standard error of the difference of two honest values, for what was chosen, on the same rows.

    Errors that both share cancel. The corrections for the choice are estimates, whose errors are taken to be
    as large as their difference.
    """
    if one is other:
        return 0.0
    return math.hypot(_spread(one.own - other.own), one.optimism - other.optimism)


def simplest(scores: Sequence[WayScore]) -> WayScore:
    """The simplest of the simple ways that is not worse than the best of them beyond chance."""
    simple = [score for score in scores if score.way.simple]
    best = _best(simple)
    for score in simple:
        behind = best.honest - score.honest
        if score is best or behind <= SIMPLER * gain_error(best, score):
            return score
    return best


def _guarded(scores: Sequence[WayScore]) -> tuple[WayScore, str]:
    simple, best_simple = simplest(scores), _best([score for score in scores if score.way.simple])
    not_simple = [score for score in scores if not score.way.simple]
    if not not_simple:  # none that keeps the constraints
        return simple, "no way is ahead of it beyond chance"
    learned = _best(not_simple)
    ahead = learned.honest - best_simple.honest
    if ahead > CERTAIN * gain_error(learned, best_simple):
        return learned, "ahead of every simple way beyond chance"
    return simple, "no way is ahead of it beyond chance"


def _chosen_on_half(scores: Sequence[WayScore], k: int) -> WayScore:
    """The best way by the half that the k-th cross-fitted value was not scored on.

    Without the guard's caution, which half the rows would make too great: a choice of the best flatters no
    less than a cautious one.
    """
    other = k + 1 if k % 2 == 0 else k - 1  # halves come in pairs; the other half's own values are here
    worth = [score.chosen[other] - math.sqrt(2) * score.optimism for score in scores]
    return scores[int(np.nanargmax(worth))] if np.isfinite(worth).any() else scores[0]


def _best(scores: Sequence[WayScore]) -> WayScore:
    """The way with the highest honest value, the simplest among equals; without any, the first with a value
    on the judged rows."""
    finite = [score for score in scores if math.isfinite(score.honest)]
    if finite:
        return max(finite, key=lambda score: score.honest)
    return next((score for score in scores if math.isfinite(score.best)), scores[0])


def _spread(values: FloatArray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.std()) if len(finite) else math.nan


def _mean(values: FloatArray) -> float:
    """The mean of the finite values; NaN unless they are more than half of them.

    A metric that is defined on one half of every pair only has no value there that was chosen on the other.
    """
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) * 2 > len(values) else math.nan


def _known(choice: Choice | None) -> Choice:
    assert choice is not None
    return choice
