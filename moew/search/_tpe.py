"""Optuna's TPE as a sampler of hyper-parameters; loaded only with a search space."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from moew.exceptions import InvalidInputError
from moew.samplers._checks import check_known
from moew.search._space import ParameterSpace
from moew.types import Domain, FloatArray

try:
    import optuna
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
    from optuna.trial import create_trial
except ImportError as error:
    raise InvalidInputError(
        "a search space needs Optuna, which is not installed: pip install 'moew[storage]'.",
        argument="search_space",
    ) from error

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
        finite = np.isfinite(scores)
        if not finite.any():
            return domain.sample(rng, k)
        worst = float(scores[finite].min())
        told = np.append(np.where(finite, scores, worst), np.full(len(pending), worst))
        before = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self._ask(np.concatenate([points, pending]), told, worst, k, int(rng.integers(2**31)))
        finally:
            optuna.logging.set_verbosity(before)

    def _ask(self, points: FloatArray, told: FloatArray, worst: float, k: int, seed: int) -> FloatArray:
        sampler = optuna.samplers.TPESampler(n_startup_trials=1, seed=seed)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        allowed: dict[str, Any] = dict(self.space.distributions)
        for point, value in zip(points, told.tolist(), strict=True):
            study.add_trial(create_trial(params=self.space.values(point), distributions=allowed, value=value))
        proposed = []
        for _ in range(k):
            trial = study.ask(allowed)
            proposed.append(self.space.coordinates(trial.params))
            study.tell(trial, worst)
        return np.stack(proposed)
