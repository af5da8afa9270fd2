"""Samplers by name."""

from __future__ import annotations

from collections.abc import Callable

from moew.exceptions import Argument, InvalidInputError
from moew.samplers._cover import CoverSampler
from moew.samplers._gp_bucb import GpBucb
from moew.samplers._random import RandomSampler
from moew.types import Sampler

SAMPLERS: dict[str, Callable[[], Sampler]] = {
    "gp_bucb": GpBucb,
    "random": RandomSampler,
    "cover": CoverSampler,
}


def resolve_sampler(sampler: str | Sampler) -> Sampler:
    """The sampler of that name with its default settings, or the object itself if it is a sampler."""
    if isinstance(sampler, str) and sampler in SAMPLERS:
        return SAMPLERS[sampler]()
    if isinstance(sampler, Sampler) and not isinstance(sampler, type):
        return sampler
    names = ", ".join(map(repr, SAMPLERS))
    raise InvalidInputError(
        Argument("sampler"),
        f" must be one of {names}, or an object with check_domain and propose; got {sampler!r}.",
        argument="sampler",
    )
