"""Differential evolution (Storn and Price, 1997), for batches of candidates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moew._util.numbers import is_number, is_whole
from moew.exceptions import InvalidInputError
from moew.samplers._checks import check_known
from moew.samplers._ranked import best_first, without_repeats
from moew.types import Domain, FloatArray


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
        if not (is_whole(self.population) and self.population >= 4):
            raise InvalidInputError(
                f"population must be a whole number of at least 4, got {self.population!r}.",
                argument="population",
            )
        if not (is_number(self.crossover) and 0 <= self.crossover <= 1):
            raise InvalidInputError(
                f"crossover is a chance, from 0 to 1; got {self.crossover!r}.", argument="crossover"
            )
        two = self.scale if isinstance(self.scale, tuple | list) and len(self.scale) == 2 else (-1, -1)
        if not (all(map(is_number, two)) and 0 < two[0] <= two[1]):
            raise InvalidInputError(
                f"scale must be two positive numbers, the lower one first; got {self.scale!r}.",
                argument="scale",
            )

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
