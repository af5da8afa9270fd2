"""Samplers by name."""

from __future__ import annotations

from moew.exceptions import Argument, InvalidInputError
from moew.types import Sampler


def resolve_sampler(sampler: str | Sampler) -> Sampler:
    """The sampler of that name with its default settings, or the object itself if it is a sampler."""
    from moew.samplers import SAMPLERS

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
