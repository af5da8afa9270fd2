"""The settings of a search as one typed record, checked before anything is trained."""

from __future__ import annotations

import os
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from moew._util.numbers import is_number, is_whole
from moew.exceptions import Argument, InvalidInputError
from moew.models._calibration import CALIBRATIONS
from moew.samplers import GpBucb
from moew.search._callbacks import SearchCallback
from moew.search._stop import check_stop_when

if TYPE_CHECKING:
    from moew.search._space import SearchSpace
    from moew.search._study import Storage

DEFAULT_RADIUS = 4.0  # chosen on the problems of DEVELOPMENT in benchmarks/problems.py
FINAL = ("ensemble", "average", "best")
_HOLDOUT_SHARE = 0.3
_RADII = (1e-12, 1e12)  # beyond these, weights are all alike, or products overflow


@dataclass(frozen=True)
class SearchSettings:
    """The parameters of `ExampleWeightSearch`; see there."""

    estimator: Any
    metric: Any
    constraint: Any
    decision: Any
    embedding: Any
    base_weights: Any
    sampler: Any
    search_space: SearchSpace
    radius: float | None
    n_batches: int
    batch_size: int
    n_candidates: int | None
    alpha_zero_repeats: int
    stop_when: float | None
    timeout: float | None
    validation: Any
    final: Literal["ensemble", "average", "best"]
    guard: bool
    honest: Literal["halves", "holdout"] | float | None
    calibrate: Literal["sigmoid", "isotonic"] | None
    storage: Storage
    study_name: str
    join: bool
    sample_weight_name: str
    n_jobs: int | Literal["auto"] | None
    candidate_timeout: float | None
    most_failures: float
    show_progress: bool | None
    random_state: Any
    eval_share: float | None = None
    callbacks: Sequence[SearchCallback] | None = None

    def check(self) -> None:
        """Raise on a value that cannot work with any data."""
        check_is_estimator(self.estimator)
        for name in ("n_batches", "batch_size", "alpha_zero_repeats"):
            if not is_whole(value := getattr(self, name)) or value < 1:
                raise _refused(name, "must be a whole number of at least 1", value)
        if self.n_candidates is not None and not (is_whole(self.n_candidates) and self.n_candidates >= 1):
            wanted = "must be a whole number of at least 1, or None"
            raise _refused("n_candidates", wanted, self.n_candidates)
        if self.radius is not None and not (is_number(self.radius) and _RADII[0] <= self.radius <= _RADII[1]):
            wanted = f"must be a positive number between {_RADII[0]:g} and {_RADII[1]:g}, or None"
            raise _refused("radius", wanted, self.radius)
        is_number_of_jobs = is_whole(self.n_jobs) and self.n_jobs != 0
        if not (self.n_jobs is None or is_number_of_jobs or self.n_jobs == "auto"):
            wanted = "must be None, 'auto' or a whole number other than 0 (-1 for all cores)"
            raise _refused("n_jobs", wanted, self.n_jobs)
        for name in ("timeout", "candidate_timeout"):
            seconds = getattr(self, name)
            if seconds is not None and not (is_number(seconds) and seconds > 0):
                raise _refused(name, "must be a positive number of seconds, or None", seconds)
        if not (is_number(self.most_failures) and 0 <= self.most_failures <= 1):
            raise _refused("most_failures", "must be a share from 0 to 1", self.most_failures)
        if not isinstance(self.sample_weight_name, str) or not self.sample_weight_name:
            wanted = (
                "must be the name of the weights in the estimator's fit, such as 'sample_weight', "
                "'step__sample_weight' for a Pipeline, or 'auto' to find it"
            )
            raise _refused("sample_weight_name", wanted, self.sample_weight_name)
        share = self.eval_share
        if share is not None and not (is_number(share) and 0 < share < 1):
            raise _refused("eval_share", "must be a share between 0 and 1, or None", share)
        check_callbacks(self.callbacks)
        check_storage(self.storage)
        if self.storage is not None and not isinstance(self.random_state, Integral):
            raise InvalidInputError(
                "with a storage, ",
                Argument("random_state"),
                " must be an integer, so that the search can be continued.",
                argument="random_state",
            )
        if not isinstance(self.join, bool):
            raise _refused("join", "must be True or False", self.join)
        if self.join and self.storage is None:
            raise InvalidInputError(
                Argument("join", True),
                " needs a storage that the processes share: set ",
                Argument("storage"),
                ".",
                argument="join",
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
        named = isinstance(self.calibrate, str) and self.calibrate in CALIBRATIONS
        if not (self.calibrate is None or named):
            raise _refused("calibrate", "must be 'sigmoid', 'isotonic' or None", self.calibrate)
        self._check_validation()
        is_share = isinstance(self.honest, float) and 0 < self.honest < 1
        named = isinstance(self.honest, str) and self.honest in ("halves", "holdout")
        if not (is_share or self.honest is None or named):
            wanted = "must be 'halves', 'holdout', a share between 0 and 1 or None"
            raise _refused("honest", wanted, self.honest)

    def _check_validation(self) -> None:
        given = self.validation
        if isinstance(given, bool | np.bool_) or (isinstance(given, str) and given != "auto"):
            wanted = "must be 'auto', None, a share, a number of folds or a splitter"
            raise _refused("validation", wanted, given)
        if isinstance(given, np.ndarray) and given.ndim == 0:
            raise _refused("validation", "must be a plain number, a splitter or a list of splits", given)
        if isinstance(given, Sized) and not isinstance(given, str) and len(given) == 0:
            raise _refused("validation", "as a list of splits must hold at least one", given)
        if isinstance(given, Integral) and given < 2:
            raise _refused("validation", "as a number of folds must be at least 2", given)
        if isinstance(given, float | np.floating) and not 0 < given < 1:
            raise _refused("validation", "as a share must lie between 0 and 1", given)

    @property
    def budget(self) -> int:
        """How many candidates there are in all ways, besides those of α = 0."""
        return int(self.n_batches * self.batch_size if self.n_candidates is None else self.n_candidates)

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


def check_is_estimator(estimator: Any) -> None:
    """Raise unless `estimator` is an object with the methods of a scikit-learn estimator."""
    kind = estimator if isinstance(estimator, type) else type(estimator)
    if any(base.__module__.startswith("torch.nn") for base in kind.__mro__):
        wanted = (
            "must be an estimator, and a PyTorch module is none: write TorchClassifier(make) or "
            "TorchRegressor(make) of moew.models.torch, where make(n_inputs, n_outputs) makes a new module"
        )
    elif isinstance(estimator, type):
        wanted = f"must be an estimator, not a class: write {estimator.__name__}()"
    elif not (hasattr(estimator, "get_params") and any(hasattr(estimator, f) for f in ("fit", "fit_many"))):
        wanted = (
            "must be an estimator as scikit-learn's, with fit and get_params, such as LogisticRegression()"
        )
    else:
        return
    raise _refused("estimator", wanted, estimator)


def check_callbacks(callbacks: Any) -> None:
    """Raise unless `callbacks` is None or a list of callbacks."""
    listed = isinstance(callbacks, list | tuple)
    if callbacks is None or (listed and all(isinstance(one, SearchCallback) for one in callbacks)):
        return
    wanted = "must be a list of objects of subclasses of moew.search.SearchCallback, or None"
    raise _refused("callbacks", wanted, callbacks)


def check_storage(storage: Any) -> None:
    """Raise unless `storage` is None, a path, a URL or a storage of Optuna's."""
    named = isinstance(storage, str | os.PathLike) and bool(os.fspath(storage))
    if not (storage is None or named or hasattr(storage, "create_new_study")):
        wanted = (
            "must be None, the path of a file, a URL such as 'sqlite:///study.db' or a storage of Optuna's"
        )
        raise _refused("storage", wanted, storage)


def _refused(name: str, wanted: str, got: Any) -> InvalidInputError:
    return InvalidInputError(Argument(name), f" {wanted}, got {got!r}.", argument=name)
