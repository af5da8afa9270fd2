"""The strategies, from the simplest to example weights: one list for all places.

The selection rule, the result, `compare`, the report and the command line go through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, Literal

from moew.exceptions import Argument, InvalidInputError
from moew.search._choices import Chooser
from moew.search._loop import Search
from moew.search._prepare import Prepared
from moew.search._strategies._strategy import ALL_CANDIDATES as ALL_CANDIDATES
from moew.search._strategies._strategy import AND_TUNED as AND_TUNED
from moew.search._strategies._strategy import NO_SHARE, Candidates, zero_is_unweighted
from moew.search._strategies._strategy import Choose as Choose
from moew.search._strategies._strategy import Strategy as Strategy
from moew.search._strategies._strategy import Variant as Variant
from moew.search._strategies._strategy import with_tuned_decisions as with_tuned_decisions
from moew.search._strategies.class_weights import ClassWeights, PowersOfTheTarget
from moew.search._strategies.example_weights import ExampleWeights as ExampleWeights
from moew.search._strategies.example_weights import RandomWeights
from moew.search._strategies.example_weights import WeightSettings as WeightSettings
from moew.search._strategies.hyper_parameters import HyperParameters
from moew.search._strategies.importance_weights import ImportanceWeights
from moew.search._strategies.unweighted import ConstantPrediction, TunedDecisions, Unweighted
from moew.search._strategies.unweighted import unweighted_function as unweighted_function

_EXAMPLE_WEIGHTS, _UNWEIGHTED = ExampleWeights(), Unweighted()
STRATEGIES: tuple[Strategy, ...] = (
    _UNWEIGHTED,
    ConstantPrediction(),
    TunedDecisions(),
    ImportanceWeights(),
    ClassWeights(),
    PowersOfTheTarget(),
    HyperParameters(),
    _EXAMPLE_WEIGHTS,
)
"""In the order of their simplicity."""
COMPARED: tuple[Strategy, ...] = (*STRATEGIES[:-1], RandomWeights())
"""Those that `compare` sets beside the whole search."""

UNWEIGHTED, CONSTANT, TUNED = Unweighted.name, ConstantPrediction.name, TunedDecisions.name
IMPORTANCE, CLASS_WEIGHTS, POWERS = ImportanceWeights.name, ClassWeights.name, PowersOfTheTarget.name
WEIGHTS, RANDOM = ExampleWeights.name, RandomWeights.name


def strategy_names() -> tuple[str, ...]:
    """The names of all strategies of a fit, the simplest first."""
    return tuple(strategy.name for strategy in STRATEGIES)


def resolve_strategies(given: Any) -> tuple[Literal["auto"] | tuple[str, ...], ExampleWeights]:
    """The names of the strategies that a user asks for, "auto" for all, and the settings of example weights.

    `given` is "auto", or a list of names and of `ExampleWeights(…)`, in which "auto" stands for all.
    """
    asked = [given] if isinstance(given, str | ExampleWeights) else given
    known, found, weights = strategy_names(), set(), _EXAMPLE_WEIGHTS
    if not isinstance(asked, list | tuple) or not asked:
        raise _no_strategies(given)
    for one in asked:
        if isinstance(one, ExampleWeights):
            if weights is not _EXAMPLE_WEIGHTS:
                raise _no_strategies(given)
            weights = one
            found.add(one.name)
        elif isinstance(one, str) and one in (*known, "auto"):
            found |= set(known) if one == "auto" else {one}
        else:
            raise _no_strategies(one)
    if WEIGHTS not in found:
        raise InvalidInputError(
            Argument("strategies"),
            f" must hold {WEIGHTS!r}, which the others are compared with; `moew.compare` shows each alone.",
        )
    return "auto" if found == set(known) else tuple(name for name in known if name in found), weights


def _no_strategies(given: Any) -> InvalidInputError:
    return InvalidInputError(
        Argument("strategies"),
        " must be 'auto', or a list of one ExampleWeights(…) and of names among "
        f"{', '.join(map(repr, ('auto', *strategy_names())))}; got {given!r}.",
    )


def called(name: str) -> str:
    """A strategy, tuned or not, as a sentence calls it."""
    base = name.removesuffix(AND_TUNED)
    known = next((strategy for strategy in STRATEGIES if strategy.name == base), None)
    words = base if known is None else known.called or base
    return words if base == name else f"{words} and tuned decisions"


def is_singular(name: str) -> bool:
    """Whether a sentence calls it by a singular."""
    return any(strategy.name == name and strategy.called for strategy in STRATEGIES)


def list_searches(prepared: Prepared) -> dict[str, Search]:
    """The searches of a fit, which run side by side, that of example weights first.

    The strategies that are asked for propose trainings, each with its share of the candidates. The unweighted
    model is always trained: where α = 0 is not it, by a search of its own.
    """
    begin, beside = 0.0, []
    for strategy in STRATEGIES[1:-1]:
        if strategy.name in prepared.settings.strategy_names and strategy.is_for(prepared):
            beside.append((strategy, (begin, begin + strategy.share)))
            begin += strategy.share
    found = _EXAMPLE_WEIGHTS.searches(prepared, (begin, 1.0))
    if not zero_is_unweighted(prepared, found[0].weighting):
        found += _UNWEIGHTED.searches(prepared, NO_SHARE)
    for strategy, share in beside:
        found += strategy.searches(prepared, share)
    return {search.name: search for search in found}


def list_variants(
    chooser: Chooser,
    candidates: Candidates,
    asked: Sequence[str],
    averages: bool,
    smoothed: Choose | None = None,
) -> list[Variant]:
    """Those of the strategies `asked` for that exist for a search, and the unweighted model, tuned and not,
    the simplest first.

    `candidates` are the numbers of the candidates of each strategy, one for the unweighted model or none if
    it failed. Example weights may take all candidates, and average several of them if `averages`; or they
    choose as `smoothed` does.
    """
    variants: list[Variant] = []
    for strategy in STRATEGIES:
        if strategy is not _UNWEIGHTED and strategy.name not in asked:
            continue
        if strategy is _EXAMPLE_WEIGHTS:
            everything = [k for one in STRATEGIES for k in candidates.get(one.name, ())]
            found: Choose | None = smoothed or partial(
                chooser.ensemble if averages else chooser.best, everything
            )
        else:
            found = strategy.chooser(chooser, candidates)
        if found is None:
            continue
        choose = lru_cache(maxsize=1)(found)  # the tuned variant needs the last choice again
        variants.append(Variant(strategy.name, strategy.simple, choose))
        # The single best is as in the paper: its own decisions.
        if strategy.can_be_tuned and (averages or strategy.simple):
            tuned = with_tuned_decisions(chooser, choose)
            variants.append(Variant(strategy.name + AND_TUNED, strategy.simple, tuned))
    return variants
