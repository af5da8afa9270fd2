"""Searches by name."""

from __future__ import annotations

from moew.exceptions import InvalidInputError
from moew.samplers._cover import CoverSearch
from moew.samplers._gp_bucb import GpBucb
from moew.samplers._random import RandomSearch
from moew.types import Search

_SEARCHES: dict[str, type[GpBucb] | type[RandomSearch] | type[CoverSearch]] = {
    "gp_bucb": GpBucb,
    "random": RandomSearch,
    "cover": CoverSearch,
}


def resolve_search(search: str | Search) -> Search:
    """The search of that name with its default settings, or the object itself if it can propose."""
    if isinstance(search, str) and search in _SEARCHES:
        return _SEARCHES[search]()
    if not isinstance(search, (str, type)) and callable(getattr(search, "propose", None)):
        return search
    names = ", ".join(map(repr, _SEARCHES))
    raise InvalidInputError(f"search must be one of {names}, or an object with propose; got {search!r}.")
