"""The unweighted model with other hyper-parameters, which TPE proposes."""

from __future__ import annotations

from moew._util.seeds import integer_seed
from moew.samplers import Box
from moew.search._ledger import Search
from moew.search._prepare import Prepared, make_study
from moew.search._strategies._strategy import Share, Strategy, search_of
from moew.search._strategies.unweighted import OwnWeights, Unweighted

_FIRST = 5  # random ones, before TPE proposes


class HyperParameters(Strategy):
    """A search in the user's search space."""

    name = "hyper-parameters"
    share = 0.2
    needs_space = True
    begins_with = Unweighted.name

    def searches(self, prepared: Prepared, share: Share, alone: bool = False) -> list[Search]:
        """Parameters other than the estimator's own, which the unweighted model has."""
        from moew.search._optuna import Tpe  # loads Optuna

        space = prepared.space
        assert space is not None
        study = make_study(
            prepared,
            OwnWeights(prepared, n_dims=0),
            domain=Box(space.n_dims, space.half_width),
            space=space,
            name=f"{prepared.settings.study_name}: {self.name}",
            seed=integer_seed(prepared.seed, self.name),
            sampler=Tpe(space),
            alpha_zero_repeats=int(alone),
            n_initial=max(_FIRST, round((share[1] - share[0]) * prepared.settings.batch_size)),
        )
        return [search_of(prepared, self, study, share)]
