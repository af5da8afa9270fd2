"""What a strategy is: which trainings it proposes, and how it chooses among them on some rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from moew._util.seeds import integer_seed
from moew.samplers import Ball, Halving
from moew.search._choices import Choice, Chooser, Part
from moew.search._loop import Search
from moew.search._prepare import Prepared, make_study
from moew.types import FloatArray, Task, Weighting

AND_TUNED = ", tuned"
SAME = 1e-9  # weights with a smaller relative difference count as the same

Choose = Callable[[Part], Choice | None]
"""(rows to choose on) → what is chosen, or None if the strategy does not exist there."""

Share = tuple[float, float]
"""The part of the candidates of a fit that a search has, from where to where."""
ALL_CANDIDATES, NO_SHARE = (0.0, 1.0), (0.0, 0.0)

Candidates = Mapping[str, Sequence[int]]
"""The numbers of the candidates that were trained for each strategy."""


@dataclass(frozen=True)
class Variant:
    """A strategy in one search, its decisions tuned or not: its name, and how it chooses on some rows."""

    name: str
    simple: bool
    choose: Choose


class Strategy:
    """A method to get to a model that is good by the metric.

    A subclass, and a place in `STRATEGIES`, add one. What it proposes is trained in the same folds as all
    candidates; what it chooses is evaluated as what the others choose.
    """

    name: ClassVar[str]
    called: ClassVar[str | None] = None  # in a sentence, where that is not its name; a singular then
    simple: ClassVar[bool] = True  # whether no α is searched for it
    share: ClassVar[float] = 0.0  # of the candidates of a fit
    task: ClassVar[Task | None] = None  # that it is for; None: for both
    can_be_tuned: ClassVar[bool] = True  # whether it also stands there with tuned decisions
    begins_with: ClassVar[str | None] = None  # the strategy whose candidates it may take as well

    def is_for(self, prepared: Prepared) -> bool:
        """Whether it exists for these rows and settings."""
        return self.task in (None, prepared.data.task)

    def searches(self, prepared: Prepared, share: Share, alone: bool = False) -> list[Search]:
        """The searches for its trainings, with its share of the candidates; one with `NO_SHARE` is a fixed
        list of one, that of α = 0. `alone`, in a comparison, it is one that begins with the unweighted
        model."""
        return []

    def fixed(self, prepared: Prepared) -> tuple[FloatArray, str] | None:
        """The weights (K, n) of a fixed list of trainings, for a comparison, and a note about them."""
        return None

    def chooser(self, chooser: Chooser, candidates: Candidates) -> Choose | None:
        """How it chooses on some rows: the best of its candidates and of those it begins with."""
        own = candidates.get(self.name, ())
        if not own:
            return None
        others = candidates.get(self.begins_with, ()) if self.begins_with else ()
        return partial(chooser.best, [*others, *own])


def search_of(
    prepared: Prepared,
    strategy: Strategy,
    weighting: Weighting,
    share: Share,
    *,
    name: str | None = None,
    optional: bool = True,
    **changes: Any,
) -> Search:
    """A search for a strategy, with the parts of the fit; its study has the name and seed of the settings, or
    of its own `name`. `changes` are arguments of `WeightStudy` that differ from the settings."""
    if name is not None:
        of = f"{prepared.settings.study_name}: {name}"
        changes = {"name": of, "seed": integer_seed(prepared.seed, name), **changes}
    study, evaluator = make_study(prepared, weighting, **changes), prepared.evaluator
    parts = (study, prepared.data, prepared.trainer, weighting, evaluator, share, optional)
    return Search(*parts, strategy=strategy.name, name=name or strategy.name)


def ball_search(
    prepared: Prepared,
    strategy: Strategy,
    weighting: Weighting,
    share: Share = NO_SHARE,
    *,
    radius: float = 1.0,
    name: str | None = None,
    alone: bool = False,
) -> Search:
    """A search of weights in a ball: on a line candidates are spread evenly, elsewhere by GP-BUCB."""
    on_a_line = weighting.n_dims == 1
    return search_of(
        prepared,
        strategy,
        weighting,
        share,
        name=name or strategy.name,
        optional=not alone,
        domain=Ball(weighting.n_dims, radius),
        sampler=Halving() if on_a_line else "gp_bucb",
        alpha_zero_repeats=int(alone or share == NO_SHARE),
        n_initial=0 if on_a_line else max(4, round(share[1] * prepared.settings.batch_size)),
    )


def with_tuned_decisions(chooser: Chooser, choose: Choose) -> Choose:
    """The same choice with its decisions tuned."""

    def chosen(rows: Part) -> Choice | None:
        choice = choose(rows)
        return None if choice is None else chooser.tuned(choice)

    return chosen


def zero_is_unweighted(prepared: Prepared, weighting: Weighting) -> bool:
    """Whether the weights at α = 0 are the user's own: π = 1."""
    own = prepared.data.training.own_weights
    at_zero = weighting.training_weights(np.zeros((1, weighting.n_dims)))[0]
    return bool(np.allclose(at_zero, own, rtol=SAME, atol=0))
