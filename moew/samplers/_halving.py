"""Alphas on a line, each in the middle of the widest gap: for searches of one dimension."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moew.exceptions import InvalidInputError
from moew.samplers._checks import check_known
from moew.types import Domain, FloatArray

_SAME = 1e-9  # share of the domain within which two alphas count as one


@dataclass(frozen=True)
class Halving:
    """Proposes the points of the van der Corput sequence: at every length they are spread evenly, and no
    point depends on a score, so that a plateau cannot hold the search."""

    def check_domain(self, domain: Domain) -> None:
        """Raise unless the domain has one dimension."""
        if domain.n_dims != 1:
            raise InvalidInputError(
                f"halving searches one dimension, the domain has {domain.n_dims}.", argument="sampler"
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
        """The next `k` alphas (k, 1): the first of the sequence that are neither known nor pending."""
        alphas, scores, pending, k = check_known(alphas, scores, pending, k, domain)
        taken = np.concatenate([alphas, pending])
        longest = len(taken) + k  # so many of the sequence hold k that are not taken
        sequence = domain.size * (2 * np.array([_van_der_corput(1 + i) for i in range(longest)]) - 1)
        near = np.abs(sequence[:, None] - taken[:, 0]) <= _SAME * domain.size
        return np.asarray(sequence[~near.any(axis=1)][:k])[:, None]


def _van_der_corput(number: int) -> float:
    """The binary digits of the number, mirrored at the point: 1/4, 3/4, 1/8, 5/8, … (1/2 is α = 0)."""
    number += 1
    place, share = 0.0, 0.5
    while number:
        place += share * (number & 1)
        number >>= 1
        share /= 2
    return place
