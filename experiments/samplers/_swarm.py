"""A particle swarm (Kennedy and Eberhart, 1995), for batches of candidates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.samplers._ranked import best_first, without_repeats
from moew._util.checks import Wanted, at_least, check_parameters
from moew._util.numbers import is_number
from moew.samplers import check_known
from moew.types import Domain, FloatArray

_SHARE = Wanted("is a share, from 0 to 1", lambda value: is_number(value) and 0 <= value <= 1)


@dataclass(frozen=True)
class Swarm:
    """Proposes alphas between and around a particle's own best and the best of the particles it knows of.

    Parameters
    ----------
    n_particles
        How many particles there are; at least 2.
    n_informants
        How many others, drawn anew for each candidate, a particle learns the best of.
    apart
        The least distance between two particles' bests at first, as a share of the domain's size; it falls
        with the number of candidates.

    Notes
    -----
    This is the swarm without velocities (Kennedy, "Bare bones particle swarms", 2003): entry i of a candidate
    is normal around the middle of the two bests, with their distance along i as standard deviation. A
    particle is the neighbourhood of its best: the best of all that is known is the first, the best that is
    far enough from it the second, and so on. So the swarm depends only on what is known, and not on the order
    in which it arrived. Failed candidates are nobody's best; pending ones count for the distance.
    """

    n_particles: int = 8
    n_informants: int = 3
    apart: float = 0.1

    def __post_init__(self) -> None:
        check_parameters(self, n_particles=at_least(2), n_informants=at_least(1), apart=_SHARE)

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
        """The next `k` alphas (k, d); random ones while there are not two particles."""
        alphas, scores, pending, k = check_known(alphas, scores, pending, k, domain)
        tried = np.concatenate([alphas, pending])
        apart = self.apart * domain.size * self.n_particles / (self.n_particles + len(tried))
        bests = self._bests(best_first(alphas, scores)[0], apart)
        if len(bests) < 2:
            return domain.sample(rng, k)
        # Particles in turn, each equally often.
        particles = (rng.integers(len(bests)) + np.arange(k)) % len(bests)
        moved = np.stack([self._move(bests, particle, rng) for particle in particles])
        return without_repeats(domain.project(moved), tried, domain, rng)

    def _bests(self, ranked: FloatArray, apart: float) -> FloatArray:
        """The particles' bests (p, d), best first, of known alphas (m, d), best first."""
        bests = ranked[:1]
        for alpha in ranked[1:]:
            if len(bests) == self.n_particles:
                break
            if np.linalg.norm(bests - alpha, axis=1).min() >= apart:
                bests = np.vstack([bests, alpha])
        return bests

    def _move(self, bests: FloatArray, particle: int, rng: np.random.Generator) -> FloatArray:
        others = np.delete(np.arange(len(bests)), particle)
        informants = rng.choice(others, size=min(self.n_informants, len(others)), replace=False)
        own, lead = bests[particle], bests[informants.min()]
        return np.asarray(rng.normal((own + lead) / 2, np.abs(own - lead)))
