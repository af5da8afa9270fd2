"""Samplers without a model, random and on a line; the checks that all samplers share; samplers by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from moew._util.checks import COUNT
from moew.exceptions import Argument, InvalidInputError
from moew.types import Domain, FloatArray, Rng, Sampler

_SAME = 1e-9  # share of the domain within which two alphas of `Halving` count as one


def check_known(
    alphas: FloatArray, scores: FloatArray, pending: FloatArray, k: int, domain: Domain
) -> tuple[FloatArray, FloatArray, FloatArray, int]:
    """Alphas (n, d), scores (n,) and pending (m, d) as float64 arrays, and k as int; raise if not valid."""
    COUNT.check("k", k)
    alphas = _points(alphas, "alphas", domain)
    pending = _points(pending, "pending", domain)
    scores = np.asarray(scores, dtype=np.float64)
    if scores.shape != (len(alphas),):
        raise InvalidInputError(
            f"scores must have one number for each of the {len(alphas)} alphas, got shape {scores.shape}."
        )
    return alphas, scores, pending, int(k)


def _points(points: FloatArray, name: str, domain: Domain) -> FloatArray:
    points = np.asarray(points, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != domain.n_dims:
        raise InvalidInputError(
            f"{name} must have shape (n, {domain.n_dims}), one row a candidate, got {points.shape}; "
            f"pass np.empty((0, {domain.n_dims})) if there are none."
        )
    if not np.isfinite(points).all():
        raise InvalidInputError(
            f"{name} must be finite; row {int(np.argmin(np.isfinite(points).all(axis=1)))} is not."
        )
    return points


@dataclass(frozen=True)
class RandomSampler:
    """Proposes alphas uniform in the domain, whatever the scores are."""

    def check_domain(self, domain: Domain) -> None:
        """Any domain can be searched."""

    def propose(
        self, alphas: FloatArray, scores: FloatArray, *, pending: FloatArray, k: int, domain: Domain, rng: Rng
    ) -> FloatArray:
        """`k` random alphas (k, d)."""
        _, _, _, k = check_known(alphas, scores, pending, k, domain)
        return domain.sample(rng, k)


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
        self, alphas: FloatArray, scores: FloatArray, *, pending: FloatArray, k: int, domain: Domain, rng: Rng
    ) -> FloatArray:
        """The next `k` alphas (k, 1): the first of the sequence that are neither known nor pending."""
        alphas, scores, pending, k = check_known(alphas, scores, pending, k, domain)
        taken = np.concatenate([alphas, pending])
        longest = len(taken) + k  # so many of the sequence hold k that are not taken
        # 1/4, 3/4, 1/8, 5/8, …: binary digits of 2, 3, 4, …, mirrored at the point; 1/2 is α = 0.
        shares = [int(f"{number:b}"[::-1], 2) / 2 ** number.bit_length() for number in range(2, longest + 2)]
        sequence = domain.size * (2 * np.array(shares) - 1)
        near = np.abs(sequence[:, None] - taken[:, 0]) <= _SAME * domain.size
        return np.asarray(sequence[~near.any(axis=1)][:k])[:, None]


def resolve_sampler(sampler: Any) -> Sampler:
    """The sampler of that name, or the object itself if it is one."""
    from moew.samplers import SAMPLERS

    if isinstance(sampler, str) and sampler in SAMPLERS:
        return SAMPLERS[sampler]()
    if isinstance(sampler, Sampler) and not isinstance(sampler, type):
        return sampler
    raise InvalidInputError(
        Argument("sampler"),
        f" must be one of {', '.join(map(repr, SAMPLERS))}, or an object with check_domain and propose; "
        f"got {sampler!r}.",
    )
