"""The ways to the metric, from the simplest to example weights: one list for all places.

A way is a method to get from the judged rows to a choice: which candidates it may take, whether it averages
several of them, and whether it tunes the decisions. The guard, the result, `compare` and the report go
through this list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from moew.search._judge import Choice, Judge
from moew.types import IntArray

UNWEIGHTED = "unweighted"
CONSTANT = "constant"
TUNED = "tuned decisions"
IMPORTANCE = "importance weights"
CLASS_WEIGHTS = "class weights"
POWERS = "powers of the target"  # what class weights are in regression
PARAMETERS = "hyper-parameters"
WEIGHTS = "example weights"
AND_TUNED = ", tuned"
TRAINED = (UNWEIGHTED, IMPORTANCE, CLASS_WEIGHTS, POWERS, PARAMETERS, WEIGHTS)
"""Ways that train models of their own, in the order of their simplicity."""

Choose = Callable[[IntArray], Choice | None]
"""(rows to choose on) → what is chosen, or None if the way does not exist here."""


@dataclass(frozen=True)
class Way:
    """A way to the metric: its name, whether it is a simple one, and how it chooses on some rows."""

    name: str
    simple: bool
    choose: Choose


def list_ways(judge: Judge, candidates: Mapping[str, Sequence[int]], averages: bool) -> list[Way]:
    """The ways that exist for a search, the simplest first.

    `candidates` are the numbers of the candidates that each of TRAINED trained, one for the unweighted model
    or none if it failed. Example weights may take all candidates, and average several of them if `averages`.
    """
    unweighted = candidates[UNWEIGHTED]
    plain = [partial(judge.single, number) for number in unweighted]
    ways = [
        *(Way(UNWEIGHTED, True, choose) for choose in plain),
        Way(CONSTANT, True, judge.constant),
        *(Way(TUNED, True, _tuned(judge, choose)) for choose in plain),
    ]
    for name in (IMPORTANCE, CLASS_WEIGHTS, POWERS, PARAMETERS):
        if numbers := candidates.get(name, ()):
            best = _once(partial(judge.best, [*unweighted, *numbers]))
            ways.append(Way(name, True, best))
            if name != IMPORTANCE:
                ways.append(Way(name + AND_TUNED, True, _tuned(judge, best)))
    everything = [number for name in TRAINED for number in candidates.get(name, ())]
    learned = _once(partial(judge.ensemble if averages else judge.best, everything))
    ways.append(Way(WEIGHTS, False, learned))
    if averages:  # the single best is as in the paper
        ways.append(Way(WEIGHTS + AND_TUNED, False, _tuned(judge, learned)))
    return ways


def _once(choose: Choose) -> Choose:
    """The same function, which remembers its last choice: the tuned variant of a way needs it again."""
    last: list[tuple[IntArray, Choice | None]] = []

    def chosen(rows: IntArray) -> Choice | None:
        if not last or last[0][0] is not rows:
            last[:] = [(rows, choose(rows))]
        return last[0][1]

    return chosen


def best_way(judge: Judge, candidates: Sequence[int], tuned: bool) -> Way:
    """The best of the candidates, with its decisions tuned if `tuned`."""
    best = partial(judge.best, candidates)
    return Way("best", True, _tuned(judge, best) if tuned else best)


def _tuned(judge: Judge, choose: Choose) -> Choose:
    def chosen(rows: IntArray) -> Choice | None:
        choice = choose(rows)
        return None if choice is None else judge.tuned(choice)

    return chosen
