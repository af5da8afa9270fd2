"""The settings of a search as one typed record, checked before anything is trained."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from moew.exceptions import Argument, InvalidInputError
from moew.samplers import GpBucb
from moew.search._stop import check_stop_when

if TYPE_CHECKING:
    from moew.search._space import SearchSpace
    from moew.search._study import Storage

DEFAULT_RADIUS = 4.0  # chosen on the problems of DEVELOPMENT in benchmarks/problems.py
FINAL = ("ensemble", "average", "best")
_HOLDOUT_SHARE = 0.3


@dataclass(frozen=True)
class SearchSettings:
    """The parameters of `ExampleWeightSearch`; see there."""

    estimator: Any
    metric: Any
    decision: Any
    embedding: Any
    base_weights: Any
    sampler: Any
    search_space: SearchSpace
    radius: float | None
    n_batches: int
    batch_size: int
    alpha_zero_repeats: int
    stop_when: float | None
    validation: Any
    final: Literal["ensemble", "average", "best"]
    guard: bool
    honest: Literal["halves", "holdout"] | float | None
    storage: Storage
    study_name: str
    sample_weight_name: str
    n_jobs: int | None
    show_progress: bool | None
    random_state: Any

    def check(self) -> None:
        """Raise on a value that cannot work with any data."""
        for name in ("n_batches", "batch_size", "alpha_zero_repeats"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise _refused(name, "must be a whole number of at least 1", value)
        if self.radius is not None and not (np.isfinite(self.radius) and self.radius > 0):
            raise _refused("radius", "must be a positive number", self.radius)
        if self.storage is not None and not isinstance(self.random_state, Integral):
            raise InvalidInputError(
                "with a storage, ",
                Argument("random_state"),
                " must be an integer, so that the search can be continued.",
                argument="random_state",
            )
        check_stop_when(self.stop_when, self.sampler)
        repeated = isinstance(self.sampler, GpBucb) and self.sampler.noise == "repeats"
        if repeated and self.alpha_zero_repeats < 2:
            raise InvalidInputError(
                Argument("noise", "repeats"),
                " takes the noise from models at α = 0, and needs two of them at least: raise ",
                Argument("alpha_zero_repeats"),
                f", which is {self.alpha_zero_repeats}.",
                argument="alpha_zero_repeats",
            )
        if not isinstance(self.final, str) or self.final not in FINAL:
            raise _refused("final", f"must be one of {', '.join(map(repr, FINAL))}", self.final)
        if not isinstance(self.guard, bool | np.bool_):
            raise _refused("guard", "must be True or False", self.guard)
        self._check_validation()
        is_share = isinstance(self.honest, float) and 0 < self.honest < 1
        if not (is_share or self.honest is None or self.honest in ("halves", "holdout")):
            wanted = "must be 'halves', 'holdout', a share between 0 and 1 or None"
            raise _refused("honest", wanted, self.honest)

    def _check_validation(self) -> None:
        given = self.validation
        if isinstance(given, bool | np.bool_) or (isinstance(given, str) and given != "auto"):
            wanted = "must be 'auto', None, a share, a number of folds or a splitter"
            raise _refused("validation", wanted, given)
        if isinstance(given, Integral) and given < 2:
            raise _refused("validation", "as a number of folds must be at least 2", given)
        if isinstance(given, float | np.floating) and not 0 < given < 1:
            raise _refused("validation", "as a share must lie between 0 and 1", given)

    @property
    def ball_radius(self) -> float:
        """R, the radius of the ball that α is searched in."""
        return DEFAULT_RADIUS if self.radius is None else float(self.radius)

    @property
    def holdout_share(self) -> float | None:
        """The share of the validation rows that is set aside for the honest score; None if none are."""
        if self.honest in (None, "halves"):
            return None
        return _HOLDOUT_SHARE if self.honest == "holdout" else float(self.honest)


def _refused(name: str, wanted: str, got: Any) -> InvalidInputError:
    return InvalidInputError(Argument(name), f" {wanted}, got {got!r}.", argument=name)
