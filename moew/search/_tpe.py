"""Optuna's TPE as a sampler of hyper-parameters; loaded only with a search space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moew.exceptions import InvalidInputError
from moew.samplers._checks import check_known
from moew.search._space import ParameterSpace
from moew.types import Domain, FloatArray

try:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
    from optuna.samplers import TPESampler
except ImportError as error:
    raise InvalidInputError(
        "a search space needs Optuna, which is not installed: pip install 'moew[storage]'.",
        argument="search_space",
    ) from error

from moew.samplers._optuna import ask_optuna

KINDS = (FloatDistribution, IntDistribution, CategoricalDistribution)


@dataclass(frozen=True)
class Tpe:
    """Proposes parameters by tree-structured Parzen estimators (Bergstra et al., 2011).

    What is known is told to a new study in memory each time. A candidate that failed, or that is still in
    training, counts as the worst that was seen, so that the next ones lie elsewhere.
    """

    space: ParameterSpace

    def check_domain(self, domain: Domain) -> None:
        """Raise unless the domain is that of the parameters."""
        if domain.n_dims != self.space.n_dims:
            raise InvalidInputError(
                f"TPE searches {self.space.n_dims} parameters, the domain has {domain.n_dims} dimensions.",
                argument="sampler",
            )

    def propose(
        self,
        alphas: FloatArray,
        scores: FloatArray,
        *,
        pending: FloatArray,
        k: int,
        domain: Domain,
        rng: np.random.Generator,
    ) -> FloatArray:
        """The next `k` points (k, p); random ones while nothing has a score."""
        points, scores, pending, k = check_known(alphas, scores, pending, k, domain)
        if not np.isfinite(scores).any():
            return domain.sample(rng, k)
        asked = ask_optuna(
            TPESampler(n_startup_trials=1, seed=int(rng.integers(2**31))),
            self.space.distributions,
            [self.space.values(point) for point in np.concatenate([points, pending])],
            scores,
            k,
        )
        return np.stack([self.space.coordinates(parameters) for parameters in asked])
