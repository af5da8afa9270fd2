"""Randomness by name and number: the same seed gives the same bits in any order and any process."""

from __future__ import annotations

import zlib
from functools import lru_cache

import numpy as np


def generator(seed: int, purpose: str, number: int = 0) -> np.random.Generator:
    """A stream of its own for each purpose and number, such as ("model", 17)."""
    return np.random.default_rng(_sequence(seed, purpose, number))


@lru_cache(maxsize=2**14)  # a study asks for the seeds of all its candidates again and again
def integer_seed(seed: int, purpose: str, number: int = 0) -> int:
    """A seed below 2³¹, which every library takes."""
    return int(_sequence(seed, purpose, number).generate_state(1, np.uint32)[0] >> 1)


def _sequence(seed: int, purpose: str, number: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed, spawn_key=(zlib.crc32(purpose.encode()), number))
