"""Random sampler: the paper's comparison, and the first batch before any other sampler."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moew.samplers._checks import check_known
from moew.types import Domain, FloatArray


@dataclass(frozen=True)
class RandomSampler:
    """Proposes alphas uniform in the domain, whatever the scores are."""

    def check_domain(self, domain: Domain) -> None:
        """Any domain can be searched."""

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
        """`k` random alphas (k, d)."""
        _, _, _, k = check_known(alphas, scores, pending, k, domain)
        return domain.sample(rng, k)
