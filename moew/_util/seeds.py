"""Random numbers by purpose and number: the same seed gives the same bits in any order and any process."""

from __future__ import annotations

import zlib
from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from moew.exceptions import Argument, InvalidInputError


def generator(seed: int, purpose: str, number: int = 0) -> np.random.Generator:
    """An independent random generator for each purpose and number, such as ("model", 17)."""
    return np.random.default_rng(_sequence(seed, purpose, number))


@lru_cache(maxsize=2**14)  # a study needs the seeds of all its candidates repeatedly
def integer_seed(seed: int, purpose: str, number: int = 0) -> int:
    """A seed for a purpose and number; below 2³¹, which every library accepts."""
    return int(_sequence(seed, purpose, number).generate_state(1, np.uint32)[0] >> 1)


def draw_seed(random_state: Any) -> int:
    """A seed of 0 or more from scikit-learn's `random_state`: an int is the seed, from anything else it is
    drawn."""
    if isinstance(random_state, Integral):
        if random_state < 0:
            raise InvalidInputError(Argument("random_state"), f" must not be negative, got {random_state!r}.")
        return int(random_state)
    try:
        drawn_from = check_random_state(random_state)
    except ValueError as error:
        raise InvalidInputError(
            Argument("random_state"),
            f" must be a whole number of 0 or more, a RandomState or None, got {random_state!r}.",
        ) from error
    return int(drawn_from.randint(np.iinfo(np.int32).max))


def _sequence(seed: int, purpose: str, number: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed, spawn_key=(zlib.crc32(purpose.encode()), number))
