"""Samplers by name, and Optuna's by instance."""

from __future__ import annotations

import sys
from typing import Any

from moew.exceptions import Argument, InvalidInputError
from moew.types import Sampler


def resolve_sampler(sampler: Any) -> Sampler:
    """The sampler of that name with its default settings, or the object itself if it is a sampler; one of
    Optuna's becomes an `OptunaSampler`."""
    from moew.samplers import SAMPLERS

    if isinstance(sampler, str) and sampler in SAMPLERS:
        return SAMPLERS[sampler]()
    if isinstance(sampler, Sampler) and not isinstance(sampler, type):
        return sampler
    if "optuna" in sys.modules:  # else there are no samplers of Optuna's
        from moew.samplers._optuna import OptunaSampler, is_optuna_sampler

        if is_optuna_sampler(sampler):
            return OptunaSampler(sampler)
    names = ", ".join(map(repr, SAMPLERS))
    raise InvalidInputError(
        Argument("sampler"),
        f" must be one of {names}, an object with check_domain and propose, or one of Optuna's samplers, "
        f"such as optuna.samplers.TPESampler(); got {sampler!r}.",
        argument="sampler",
    )
