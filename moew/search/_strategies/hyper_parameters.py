"""The unweighted model with other hyper-parameters, which TPE proposes."""

from __future__ import annotations

from moew.samplers import Box
from moew.search._loop import Search
from moew.search._prepare import Prepared
from moew.search._strategies._strategy import Share, Strategy, search_of
from moew.search._strategies.unweighted import OwnWeights, Unweighted

_FIRST = 5  # random hyper-parameters, before TPE proposes


class HyperParameters(Strategy):
    """A search in the user's search space."""

    name = "hyper-parameters"
    share = 0.2
    begins_with = Unweighted.name

    def is_for(self, prepared: Prepared) -> bool:
        return prepared.space is not None

    def searches(self, prepared: Prepared, share: Share, alone: bool = False) -> list[Search]:
        from moew.search._optuna import Tpe  # loads Optuna

        space = prepared.space
        assert space is not None
        search = search_of(
            prepared,
            self,
            OwnWeights(prepared, n_dims=0),
            share,
            name=self.name,
            domain=Box(space.n_dims, space.half_width),
            space=space,
            sampler=Tpe(space),
            alpha_zero_repeats=int(alone),
            n_initial=max(_FIRST, round((share[1] - share[0]) * prepared.settings.batch_size)),
        )
        return [search]
