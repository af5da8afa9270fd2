"""Simulated annealing (van Laarhoven and Aarts, 1987), for batches of candidates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.samplers._ranked import best_first, without_repeats
from moew._util.checks import POSITIVE, check_parameters
from moew.samplers import check_known
from moew.types import Domain, FloatArray


@dataclass(frozen=True)
class Annealing:
    """Proposes neighbours of alphas that a Metropolis chain would stand at: of good ones mostly, of worse
    ones the more often the higher the temperature is. It falls with the number of candidates.

    Parameters
    ----------
    cooling
        After so many candidates the temperature is half of what it was at first; after n of them it is
        cooling / (cooling + n), as in fast annealing (Szu and Hartley, 1987).
    heat
        The first temperature, as a share of the difference between the best and the median score.
    step
        The median length of the first steps, as a share of the domain's size. Lengths fall with the
        temperature; long ones stay possible, because they are those of a Cauchy distribution.

    Notes
    -----
    A chain that is walked one step at a time depends on the order in which scores arrive. Here each
    candidate starts at a known alpha that is drawn from the distribution such a chain settles in, in
    proportion to exp(score / temperature). So a batch is K chains, and what is proposed depends only on what
    is known. Failed candidates are no starts; pending ones count for the temperature.
    """

    cooling: float = 20.0
    heat: float = 0.2
    step: float = 0.5

    def __post_init__(self) -> None:
        check_parameters(self, cooling=POSITIVE, heat=POSITIVE, step=POSITIVE)

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
        """The next `k` alphas (k, d); random ones while nothing has a score."""
        alphas, scores, pending, k = check_known(alphas, scores, pending, k, domain)
        states, values = best_first(alphas, scores)
        if not len(states):
            return domain.sample(rng, k)
        n = len(alphas) + len(pending)
        temperature = self.cooling / (self.cooling + n)
        starts = states[rng.choice(len(states), size=k, p=self._chances(values, temperature))]
        directions = rng.standard_normal((k, domain.n_dims))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        lengths = np.abs(rng.standard_cauchy((k, 1))) * self.step * domain.size * temperature
        moved = domain.project(starts + np.minimum(lengths, 2 * domain.size) * directions)
        return without_repeats(moved, np.concatenate([alphas, pending]), domain, rng)

    def _chances(self, values: FloatArray, temperature: float) -> FloatArray:
        """The chance (m,) of each state to be a start, given their scores (m,), best first."""
        # Divided by the largest first, so that no difference can overflow.
        scaled = values / (float(np.abs(values).max()) or 1.0)
        below = scaled[0] - scaled
        unit = float(np.median(below)) or float(below[-1]) or 1.0
        chances = np.exp(-below / (unit * self.heat * temperature))
        return np.asarray(chances / chances.sum())
