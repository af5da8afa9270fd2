"""Samplers by name."""

from __future__ import annotations

from moew.exceptions import InvalidInputError
from moew.samplers._cover import CoverSampler
from moew.samplers._gp_bucb import GpBucb
from moew.samplers._random import RandomSampler
from moew.types import Sampler

_SAMPLERS: dict[str, type[GpBucb] | type[RandomSampler] | type[CoverSampler]] = {
    "gp_bucb": GpBucb,
    "random": RandomSampler,
    "cover": CoverSampler,
}


def resolve_sampler(sampler: str | Sampler) -> Sampler:
    """The sampler of that name with its default settings, or the object itself if it can propose."""
    if isinstance(sampler, str) and sampler in _SAMPLERS:
        return _SAMPLERS[sampler]()
    if not isinstance(sampler, (str, type)) and callable(getattr(sampler, "propose", None)):
        return sampler
    names = ", ".join(map(repr, _SAMPLERS))
    raise InvalidInputError(f"sampler must be one of {names}, or an object with propose; got {sampler!r}.")
