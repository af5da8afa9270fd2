"""The settings of a search as one typed record, checked before anything is trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import MISSING, dataclass, fields
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from moew._util.checks import COLUMN, FLAG, POSITIVE, Wanted, at_least, one_of
from moew._util.numbers import is_number, is_whole
from moew.embedding import AutoencoderEmbedding
from moew.exceptions import Argument, InvalidInputError
from moew.models import CALIBRATIONS
from moew.samplers import GpBucb, resolve_sampler
from moew.search._callbacks import SearchCallback
from moew.search._strategies import (
    WEIGHTS,
    ExampleWeights,
    WeightSettings,
    resolve_strategies,
    strategy_names,
)
from moew.storage import Storage, check_storage
from moew.types import SamplerWithModel

if TYPE_CHECKING:
    from moew.search._optuna import SearchSpace

DEFAULT_RADIUS = 4.0  # chosen on the problems of DEVELOPMENT in benchmarks/problems.py
FINAL = ("ensemble", "smoothed", "best")
_HOLDOUT_SHARE = 0.3
_HONEST, _AUTO = one_of("halves", "holdout"), one_of("auto")
_RADII = (1e-12, 1e12)  # beyond these, weights are all alike, or products overflow


def _is_share(given: Any) -> bool:
    return is_number(given) and 0 < given < 1


_ALONE = "validation"  # the value of `evaluate_on` for the validation rows alone
_SECONDS = Wanted("must be a positive number of seconds", POSITIVE.fits).or_none()
_WANTED = {
    **dict.fromkeys(("batch_size", "alpha_zero_repeats", "n_candidates"), at_least(1)),
    "radius": Wanted(
        f"must be a positive number between {_RADII[0]:g} and {_RADII[1]:g}",
        lambda radius: is_number(radius) and _RADII[0] <= radius <= _RADII[1],
    ).or_none(),
    "n_jobs": Wanted(
        "must be None, 'auto' or a whole number other than 0 (-1 for all cores)",
        lambda n_jobs: n_jobs is None or (n_jobs != 0 if is_whole(n_jobs) else _AUTO.fits(n_jobs)),
    ),
    **dict.fromkeys(("timeout", "candidate_timeout"), _SECONDS),
    "most_failures": Wanted(
        "must be a share from 0 to 1", lambda share: is_number(share) and 0 <= share <= 1
    ),
    "sample_weight_name": Wanted(
        "must be the name of the weights in the estimator's fit, such as 'sample_weight', "
        "'step__sample_weight' for a Pipeline, or 'auto' to find it",
        COLUMN.fits,
    ),
    "eval_share": Wanted("must be a share between 0 and 1", _is_share).or_none(),
    "callbacks": Wanted(
        "must be a list of objects of subclasses of moew.search.SearchCallback",
        lambda given: isinstance(given, list | tuple) and all(isinstance(g, SearchCallback) for g in given),
    ).or_none(),
    "join": FLAG,
    "final": one_of(*FINAL),
    "calibrate": Wanted("must be 'sigmoid', 'isotonic' or None", one_of(*CALIBRATIONS).or_none().fits),
    "honest": Wanted(
        "must be 'halves', 'holdout', a share between 0 and 1 or None",
        lambda honest: _is_share(honest) if isinstance(honest, float) else _HONEST.or_none().fits(honest),
    ),
}


@dataclass(frozen=True)
class StudyStorage:
    """Where a search keeps its study, so that with an integer `random_state` an interrupted fit continues
    where it stopped.

    Parameters
    ----------
    place : path or URL
        A file of SQLite, "run.db" or "sqlite:///run.db", or a database of PostgreSQL,
        "postgresql://user@host/name". A study that another fit works on is refused.
    study_name : str, default "moew"
        The name of the study, where several share a database.
    join : bool, default False
        Whether this fit works on its study together with others that have `join=True`: any number of
        processes, on any machines that reach the storage, with the same data and settings. All end with the
        result that a single process would have.
    """

    place: Storage
    study_name: str = "moew"
    join: bool = False


@dataclass(frozen=True)
class TrainingOptions:
    """How the models of a search are trained, where it is not the usual way.

    Parameters
    ----------
    sample_weight_name : str, default "auto"
        The name of the weights in the estimator's `fit`, such as "step__weight"; "auto" is "sample_weight",
        for a Pipeline that of its last step.
    eval_share : float or None, default None
        A share of the training rows, such as 0.1, for a model that stops early (LightGBM, XGBoost, CatBoost,
        HistGradientBoosting): each training sets it aside, whole groups and all classes alike, the same rows
        for all candidates, and passes it to `fit` as `eval_set` with the candidate's weights.
    candidate_timeout : float or None, default None
        Seconds that the training of one model may take; one that takes longer is ended, and its candidate a
        failure. Models are then trained in worker processes and must be picklable. Not for models with
        `fit_many`, for threads and for clusters, where nothing can end a training.
    most_failures : float, default 0.9
        The share of failed candidates above which the search ends with the reasons, after a batch and from
        ten candidates on. 1 goes on as long as one candidate works.
    """

    sample_weight_name: str = "auto"
    eval_share: float | None = None
    candidate_timeout: float | None = None
    most_failures: float = 0.9


@dataclass(frozen=True, kw_only=True)
class SearchSettings(WeightSettings, TrainingOptions):
    """All settings of a search in one flat record: the parameters of `MetricSearch`, and in place of its
    `strategies`, `storage` and `training` the parameters of `ExampleWeights`, `StudyStorage` and
    `TrainingOptions`; see there."""

    estimator: Any
    metric: Any
    constraints: Any
    strategies: Literal["auto"] | tuple[str, ...]  # names
    decision: Any
    evaluate_on: Any
    honest: Literal["halves", "holdout"] | float | None
    n_candidates: int
    timeout: float | None
    search_space: SearchSpace
    calibrate: Literal["sigmoid", "isotonic"] | None
    storage: Storage  # this and the next two are those of StudyStorage
    study_name: str
    join: bool
    n_jobs: int | Literal["auto"] | None
    callbacks: Sequence[SearchCallback] | None
    verbose: bool | None
    random_state: Any

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> SearchSettings:
        """The settings of these parameters of `MetricSearch`."""
        flat = dict(parameters)
        names, weights = resolve_strategies(flat.pop("strategies"))
        storage, training = flat.pop("storage"), flat.pop("training")
        if not isinstance(storage, StudyStorage):
            storage = StudyStorage(storage)
        if training is None:
            training = TrainingOptions()
        if not isinstance(training, TrainingOptions):
            raise _refused("training", "must be TrainingOptions(…) or None", training)
        for part in (weights, storage, training):
            flat |= vars(part)
        flat["storage"] = flat.pop("place")
        return cls(**flat, strategies=names)

    def parameters(self) -> dict[str, Any]:
        """The parameters of a `MetricSearch` with these settings."""
        flat = dict(vars(self))
        weights, training = (
            kind(**{field.name: flat.pop(field.name) for field in fields(kind)})
            for kind in (ExampleWeights, TrainingOptions)
        )
        storage = StudyStorage(flat.pop("storage"), flat.pop("study_name"), flat.pop("join"))
        names = flat["strategies"]
        if not _is_default(weights):
            named = ("auto", WEIGHTS) if names == "auto" else names
            flat["strategies"] = tuple(weights if name == WEIGHTS else name for name in named)
        flat["storage"] = storage.place if _is_default(storage) else storage
        return flat | {"training": None if _is_default(training) else training}

    def check(self) -> None:
        """Raise on a value that cannot work with any data."""
        check_is_estimator(self.estimator)
        for name, wanted in _WANTED.items():
            wanted.check(Argument(name), getattr(self, name))
        if self.storage is not None:
            check_storage(self.storage)
            if not isinstance(self.random_state, Integral):
                told = " must be an integer with a storage, so that the search can be continued."
                raise InvalidInputError(Argument("random_state"), told)
        elif self.join:
            told = " needs a storage that the processes share: set "
            raise InvalidInputError(Argument("join", True), told, Argument("storage"), ".")
        if self.stop_when is not None:
            _check_stop_when(self.stop_when, self.sampler)
        repeated = isinstance(self.sampler, GpBucb) and self.sampler.noise == "repeats"
        if repeated and self.alpha_zero_repeats < 2:
            raise InvalidInputError(
                Argument("noise", "repeats"),
                " takes the noise from models at α = 0, and needs two of them at least: raise ",
                Argument("alpha_zero_repeats"),
                f", which is {self.alpha_zero_repeats}.",
                argument="alpha_zero_repeats",
            )
        _check_evaluate_on(self.evaluate_on)

    @property
    def strategy_names(self) -> tuple[str, ...]:
        """The names of all strategies of the search."""
        return strategy_names() if self.strategies == "auto" else self.strategies

    @property
    def selects(self) -> bool:
        """Whether one of several strategies is selected; else example weights are."""
        return self.strategy_names != (WEIGHTS,)

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


def _is_default(part: Any) -> bool:
    """Whether all fields of a dataclass that have a default are at it."""
    known = [(getattr(part, field.name), field.default) for field in fields(part)]
    # By type first: arrays, say, are not compared to a truth.
    return all(d is MISSING or (type(value) is type(d) and value == d) for value, d in known)


def paper_settings() -> dict[str, Any]:
    """The settings of the paper's experiments, for `MetricSearch.from_settings`; see
    `MetricSearch.as_in_the_paper`."""
    return {
        "embedding": AutoencoderEmbedding(hidden=100, trade_off=0.5, steps=10_000, standardize=False),
        "base_weights": "label_shift",
        "sampler": GpBucb(p=68.3, q=68.3, width="domain", noise="repeats"),
        "radius": 5.0,  # the text gives no R; this is that of the authors' script with 100 hidden nodes
        "n_candidates": 200,  # B = 10 batches
        "batch_size": 20,
        "alpha_zero_repeats": 10,  # the text does not say how many models tell the noise
        "evaluate_on": "validation",
        "final": "best",
        "strategies": [WEIGHTS],
    }


def _check_stop_when(stop_when: Any, sampler: Any) -> None:
    """Raise unless `stop_when` is a positive number, and the sampler has a model to ask."""
    if not POSITIVE.fits(stop_when):
        wanted = "must be a positive number in the metric's units, or None to train all candidates;"
        raise InvalidInputError(Argument("stop_when"), f" {wanted} got {stop_when!r}.")
    if not isinstance(resolve_sampler(sampler), SamplerWithModel):
        raise InvalidInputError(
            Argument("stop_when"),
            f" needs a sampler with a model of the scores, and {sampler!r} has none: take ",
            Argument("sampler", "gp_bucb"),
            ", or leave out ",
            Argument("stop_when"),
            ".",
        )


def _check_evaluate_on(given: Any) -> None:
    is_other = isinstance(given, str) and given not in ("auto", _ALONE)
    if given is None or isinstance(given, bool | np.bool_) or is_other:
        wanted = f"must be 'auto', {_ALONE!r}, a share, a number of folds or a splitter"
    elif isinstance(given, np.ndarray) and given.ndim == 0:
        wanted = "must be a plain number, a splitter or a list of splits"
    elif isinstance(given, Sized) and not isinstance(given, str) and len(given) == 0:
        wanted = "as a list of splits must hold at least one"
    elif isinstance(given, Integral) and given < 2:
        wanted = "as a number of folds must be at least 2"
    elif isinstance(given, float | np.floating) and not 0 < given < 1:
        wanted = "as a share must lie between 0 and 1"
    else:
        return
    raise _refused("evaluate_on", wanted, given)


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


def _refused(name: str, wanted: str, got: Any) -> InvalidInputError:
    return InvalidInputError(Argument(name), f" {wanted}, got {got!r}.")
