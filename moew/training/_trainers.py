"""Which trainer an estimator gets: one model at a time where joblib's active backend says, or many at once.

An estimator that cannot take example weights is refused before any training.
"""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from joblib import parallel_config
from joblib.externals.loky.backend.reduction import dumps
from joblib.parallel import get_active_backend
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from moew.data import read_only
from moew.exceptions import InPython, InvalidInputError, MoewWarning, UnsupportedEstimatorError
from moew.training._fit_params import AUTO, FitParams, FoldParams, is_of_library, weight_name_of
from moew.training._jobs import (
    PROBE,
    Job,
    SharedRowsCache,
    as_failure,
    open_random_states,
    rows_of,
    with_parameters,
)
from moew.training._local import no_timeout, train_locally
from moew.training._meta_estimators import with_routed_weights
from moew.types import Features, FloatArray, IntArray, Labels, Training

# What trains on a cluster, where joblib's active backend is one.
_CLUSTERS = {"DaskDistributedBackend": "moew.training._dask", "RayBackend": "moew.training._ray"}
# Seconds of training after which n_jobs="auto" starts other processes, which takes a few seconds itself.
_STARTING_SECONDS = 10.0
_N_ROWS = 1000  # predictions on at most this many training rows are compared


@dataclass
class EstimatorTrainer:
    """Fits a clone of `estimator` for each weighting, where joblib's active backend says; whether it uses its
    weights is checked once, in the first batch."""

    estimator: Any
    sample_weight_name: str = "sample_weight"
    n_jobs: int | Literal["auto"] | None = None
    timeout: float | None = None  # seconds that the training of one model may take
    fit_params: FitParams = field(default_factory=FitParams)  # what `fit` gets besides rows and weights
    routed: bool = False  # whether weights reach the models inside by requests, see `_meta_estimators`
    _spent: float = field(default=0.0, init=False, repr=False, compare=False)  # seconds, for "auto"
    _shared: SharedRowsCache = field(default_factory=SharedRowsCache, init=False, repr=False, compare=False)
    _probed: bool = field(default=False, init=False, repr=False, compare=False)
    _folds: list[tuple[IntArray | None, FoldParams]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )

    def train(
        self, X: Features, y: Labels, trainings: Sequence[Training], fold: IntArray | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield (k, fitted model or exception) for each of the K trainings, as they finish; their n rows are
        those of X whose numbers are in `fold` (n,), or all of them."""
        params = self._params_of(fold)
        jobs = [self._job(k, training, params) for k, training in enumerate(trainings)]
        as_they_are = [k for k, training in enumerate(trainings) if training.rows is None]
        if self._probed or len(jobs) < 2 or not as_they_are:
            yield from self._run(X, y, params.train, jobs)
            return
        self._probed = True
        first = trainings[as_they_are[0]]
        alike = [k for k in as_they_are[1:] if trainings[k].parameters == first.parameters]
        twin = next((k for k in alike if not np.array_equal(trainings[k].weights, first.weights)), PROBE)
        if twin == PROBE or open_random_states(self.estimator):
            # Candidates differ in their seeds, too, so one more is trained that differs only in weights.
            twin = PROBE
            opposite = replace(first, weights=_opposite_weights(first.weights, first.seed))
            jobs.append(self._job(PROBE, opposite, params))
        pair: dict[int, Any] = {}
        for k, outcome in self._run(X, y, params.train, jobs):
            if k in (as_they_are[0], twin) and not isinstance(outcome, Exception):
                pair[k] = outcome
            if k != PROBE:
                yield k, outcome
        if len(pair) == 2 and _are_the_same(pair[as_they_are[0]], pair[twin], X, y, fold):
            warning = MoewWarning(
                f"{type(self.estimator).__name__} takes sample weights but seems to ignore them: two very "
                "different weightings gave the same model, so a search over weights can find nothing. Use an "
                "estimator that uses its weights",
                InPython(", or name the argument that does with sample_weight_name"),
                ".",
                argument="estimator",
            )
            warnings.warn(warning, stacklevel=1)

    def _params_of(self, fold: IntArray | None) -> FoldParams:
        """What the models of the fold get besides; the same object for the same fold, as are its rows."""
        if not self.fit_params:
            return FoldParams(fold, {})
        for known, params in self._folds:
            if known is fold:
                return params
        self._folds.append((fold, self.fit_params.fold(fold)))
        return self._folds[-1][1]

    def _job(self, k: int, training: Training, params: FoldParams) -> Job:
        given, aside = {**self.fit_params.as_given, **params.per_row}, params.aside
        if training.rows is not None and params.per_row:
            raise InvalidInputError(
                f"the fit parameters {', '.join(params.per_row)} have a value for each training row, and "
                f"{training.rows!r} makes other rows; leave out one of them.",
                argument="fit_params",
            )
        if aside is not None:
            aside = replace(aside, weight=training.weights[aside.places])
            training = replace(training, weights=training.weights[~aside.places])
        return Job(k, self.estimator, self.sample_weight_name, training, given, aside, routed=self.routed)

    def _run(
        self, X: Features, y: Labels, fold: IntArray | None, jobs: Sequence[Job]
    ) -> Iterator[tuple[int, Any]]:
        backend, _ = get_active_backend()
        if cluster := _CLUSTERS.get(type(backend).__name__):
            if self.timeout is not None:
                raise no_timeout("a cluster ends its tasks itself: set a time limit there")
            train_there = import_module(cluster).train
            return train_there(backend, X, y, fold, jobs, self._shared)  # type: ignore[no-any-return]
        if self.n_jobs == "auto":
            return self._run_as_it_pays(X, y, fold, jobs)
        return train_locally(X, y, fold, jobs, self._shared, self.n_jobs, self.timeout)

    def _run_as_it_pays(
        self, X: Features, y: Labels, fold: IntArray | None, jobs: Sequence[Job]
    ) -> Iterator[tuple[int, Any]]:
        """Train in this process for a while, and then on all cores: fast models need no other processes."""
        waiting = deque(jobs)
        while waiting and self._spent < _STARTING_SECONDS and self.timeout is None:
            begun = time.monotonic()
            (outcome,) = train_locally(X, y, fold, [waiting.popleft()], self._shared, 1)
            self._spent += time.monotonic() - begun
            yield outcome
        if waiting:
            n_jobs = -1 if self.timeout is not None or _can_be_sent(self.estimator) else 1
            yield from train_locally(X, y, fold, waiting, self._shared, n_jobs, self.timeout)


@dataclass(frozen=True)
class ManyTrainer:
    """Passes the K weightings to `estimator.fit_many(X, y, weights, seeds)`, those with the same parameters
    together."""

    estimator: Any
    sample_weight_name: ClassVar[str] = "sample_weight"

    def train(
        self, X: Features, y: Labels, trainings: Sequence[Training], fold: IntArray | None = None
    ) -> Iterator[tuple[int, Any]]:
        """As that of `EstimatorTrainer`."""
        if fold is not None:
            X, y = _safe_indexing(X, fold), y[fold]
        X, y = read_only(X), read_only(y)
        for alike in _groups(trainings):
            for i, model in self._train_alike(X, y, [trainings[k] for k in alike]):
                yield alike[i], model

    def _train_alike(
        self, X: Features, y: Labels, trainings: Sequence[Training]
    ) -> Iterator[tuple[int, Any]]:
        """Train those of the same parameters on the same rows in one call."""
        waiting, trained = set(range(len(trainings))), self._start(X, y, trainings)
        while True:
            # No yield in here: what the receiver raises there is not the model's.
            try:
                k, model = next(trained)
            except StopIteration:
                return
            except (Exception, SystemExit, GeneratorExit) as error:
                failure = as_failure(error)
                break
            waiting.discard(k)
            yield k, model
            del model  # keep no reference to it here
        yield from ((k, failure) for k in sorted(waiting))

    def _start(self, X: Features, y: Labels, trainings: Sequence[Training]) -> Iterator[tuple[int, Any]]:
        first = trainings[0]
        weights = np.stack([training.weights for training in trainings])
        if first.rows is not None:
            X, y, made = rows_of(first, X, y)
            weights = made[None]
        estimator = with_parameters(self.estimator, first.parameters)
        own = estimator.get_params().get("random_state")
        seeds = [own if isinstance(own, Integral) else training.seed for training in trainings]
        yield from estimator.fit_many(X, y, weights, seeds)


def _can_be_sent(estimator: Any) -> bool:
    """Whether an estimator can go to another process."""
    try:
        dumps(estimator)
    except Exception:
        return False
    return True


def _groups(trainings: Sequence[Training]) -> list[list[int]]:
    """The numbers of the trainings, those of equal parameters on the same rows together; one that makes its
    rows is alone."""
    groups: list[list[int]] = []
    for k, one in enumerate(trainings):
        for group in groups:
            first = trainings[group[0]]
            if one.rows is None and first.rows is None and one.parameters == first.parameters:
                group.append(k)
                break
        else:
            groups.append([k])
    return groups


def resolve_trainer(
    estimator: Any,
    sample_weight_name: str = AUTO,
    n_jobs: int | Literal["auto"] | None = None,
    timeout: float | None = None,
) -> EstimatorTrainer | ManyTrainer:
    """The trainer for `estimator`, or an error that says why it cannot be trained with weights."""
    if hasattr(estimator, "fit_many"):
        if timeout is not None:
            raise no_timeout(
                f"{type(estimator).__name__} trains many candidates at once in this process: limit its steps"
            )
        return ManyTrainer(estimator)
    if not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise UnsupportedEstimatorError(
            f"{estimator!r} is no scikit-learn estimator: it needs fit, predict and get_params.",
            argument="estimator",
        )
    try:
        clone(estimator)  # as each candidate needs its own
    except (RuntimeError, TypeError) as error:
        advice = "Store its parameters as they are given, in __init__."
        if is_of_library(estimator, "catboost"):
            advice = (
                "CatBoost keeps copies of lists: pass them to its fit, fit(…, fit_params={'cat_features': "
                "[…]}), not to the constructor."
            )
        raise UnsupportedEstimatorError(f"{error}. {advice}", argument="estimator") from error
    routed = with_routed_weights(estimator) if sample_weight_name in (AUTO, "sample_weight") else None
    if routed is not None:
        return EstimatorTrainer(routed, "sample_weight", n_jobs, timeout, routed=True)
    return EstimatorTrainer(estimator, weight_name_of(estimator, sample_weight_name), n_jobs, timeout)


def _opposite_weights(weight: FloatArray, seed: int) -> FloatArray:
    """Weights (n,) very different from `weight` (n,): a random half of the rows counts 39 times the other."""
    heavy = np.random.default_rng(seed).permutation(len(weight)) % 2 == 0
    changed: FloatArray = weight * np.where(heavy, 1.95, 0.05)
    changed *= weight.sum() / changed.sum()
    return changed


def _are_the_same(model: Any, other: Any, X: Features, y: Labels, fold: IntArray | None) -> bool:
    """Whether two models, trained alike but for very different weights, are the same: they ignore weights.
    Predictions that are only labels, or that repeat the targets (a fully grown tree), can be equal although
    weights are used: then everything that the models hold is compared."""
    trained: IntArray = np.arange(len(y)) if fold is None else fold
    n = len(trained)
    rows = trained[np.unique(np.linspace(0, n - 1, min(_N_ROWS, n)).astype(np.intp))]
    part = read_only(_safe_indexing(X, rows))
    try:
        with parallel_config(backend="sequential"):  # threads sum in any order, which changes the last bits
            answers, others = _answers(model, part), _answers(other, part)
        if not np.array_equal(answers, others):
            return False
        graded = answers.dtype.kind == "f" and not np.isin(answers, (0.0, 1.0)).all()
        by_heart = answers.ndim == 1 and np.array_equal(answers, np.asarray(y)[rows])
        return (graded and not by_heart) or _same(model, other)
    except Exception:
        return False  # a model that cannot predict fails where it is used, with its own error


def _same(a: Any, b: Any) -> bool:
    """Whether two objects have equal content, with arrays equal bit for bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        if a.dtype.names:  # field by field: the bytes between the fields are undefined
            return all(_same(a[name], b[name]) for name in a.dtype.names)
        if a.dtype == object:
            return _same(a.tolist(), b.tolist())
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, float):
        return a == b or (a != a and b != b)
    state = a.__getstate__() if hasattr(a, "__getstate__") else None
    return bool(a == b) if state is None else _same(state, b.__getstate__())


def _answers(model: Any, X: Features) -> np.ndarray[Any, Any]:
    for name in ("decision_function", "predict_proba", "predict"):
        if hasattr(model, name):
            return np.asarray(getattr(model, name)(X))
    raise AttributeError("the model has no predict")
