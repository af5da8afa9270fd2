"""Differential evolution (Storn and Price, 1997), for batches of candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.samplers._ranked import best_first, without_repeats
from moew._util.checks import Wanted, at_least, check_parameters
from moew._util.numbers import is_number
from moew.samplers import check_known
from moew.types import Domain, FloatArray


def _is_scale(value: Any) -> bool:
    two = isinstance(value, tuple | list) and len(value) == 2 and all(map(is_number, value))
    return two and 0 < value[0] <= value[1]


_CHANCE = Wanted("is a chance, from 0 to 1", lambda value: is_number(value) and 0 <= value <= 1)
_SCALE = Wanted("must be two positive numbers, the lower one first", _is_scale)


@dataclass(frozen=True)
class DifferentialEvolution:
    """Proposes alphas of the population that moved by differences between others of the population.

    Parameters
    ----------
    population
        How many of the best known alphas are the population; at least 4.
    crossover
        The chance of each entry of α to come from the mutant rather than from its parent.
    scale
        The lowest and the highest factor of a difference; each candidate draws its own between them.

    Notes
    -----
    A mutant is parent + F·(best − parent) + F·(a − b), where a and b are two others of the population. In the
    original, a candidate replaces its own parent; here the best of all that is known survive, so that the
    population depends only on what is known, and not on the order in which it arrived. Failed and pending
    candidates are not of the population.
    """

    population: int = 10
    crossover: float = 0.7
    scale: tuple[float, float] = (0.3, 0.9)

    def __post_init__(self) -> None:
        check_parameters(self, population=at_least(4), crossover=_CHANCE, scale=_SCALE)

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
        """The next `k` alphas (k, d); random ones while fewer than 4 have a score."""
        alphas, scores, pending, k = check_known(alphas, scores, pending, k, domain)
        population = best_first(alphas, scores)[0][: self.population]
        if len(population) < 4:
            return domain.sample(rng, k)
        # Parents in turn, each equally often.
        parents = (rng.integers(len(population)) + np.arange(k)) % len(population)
        children = np.stack([self._child(population, parent, rng) for parent in parents])
        return without_repeats(domain.project(children), np.concatenate([alphas, pending]), domain, rng)

    def _child(self, population: FloatArray, parent: int, rng: np.random.Generator) -> FloatArray:
        others = np.delete(np.arange(len(population)), parent)
        a, b = population[rng.choice(others, size=2, replace=False)]
        own, factor = population[parent], rng.uniform(*self.scale)
        mutant = own + factor * (population[0] - own) + factor * (a - b)
        crossed = rng.random(len(own)) < self.crossover
        crossed[rng.integers(len(own))] = True  # at least one entry is the mutant's
        return np.asarray(np.where(crossed, mutant, own))
