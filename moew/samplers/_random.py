"""Random search: the paper's comparison, and the first batch of every other search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moew.samplers._checks import check_known
from moew.types import Domain, FloatArray


@dataclass(frozen=True)
class RandomSampler:
    """Alphas uniform in the domain, whatever is known."""

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
