"""Which trainer an estimator gets: one model at a time where joblib's active backend says, or many at once.

An estimator that cannot take example weights is refused before any training.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from joblib.externals.loky.backend.reduction import dumps
from joblib.parallel import get_active_backend
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from moew.data._read_only import read_only
from moew.exceptions import UnsupportedEstimatorError
from moew.training._clusters import cluster_of
from moew.training._columns import is_of_library
from moew.training._eval_rows import MARGINS, EvalRows
from moew.training._fit_params import FitParams, FoldParams
from moew.training._ignored import ignores_weights, opposite_weights, warn_of_ignored_weights
from moew.training._jobs import PROBE, Job, as_failure, open_random_states, with_parameters
from moew.training._local import no_timeout, train_locally
from moew.training._meta_estimators import with_routed_weights
from moew.training._rows import SharedRowsCache
from moew.training._weight_name import AUTO, weight_name_of
from moew.types import FloatArray, IntArray, Labels, Rows

# Seconds of training after which n_jobs="auto" starts other processes, which takes a few seconds itself.
_STARTING_SECONDS = 10.0


@dataclass
class EstimatorTrainer:
    """Fits a clone of `estimator` for each weighting; joblib's active backend decides where.

    Whether the estimator uses its weights is checked once, in the first batch.
    """

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
        self,
        X: Rows,
        y: Labels,
        weights: FloatArray,
        seeds: Sequence[int],
        fold: IntArray | None = None,
        parameters: Sequence[Mapping[str, Any]] | None = None,
    ) -> Iterator[tuple[int, Any]]:
        """Yield (k, fitted model or exception) for each of the weights (K, n), as they finish.

        The n rows are those of X whose numbers are in `fold` (n,), or all of them. `parameters` are set in
        each of the K clones.
        """
        params = self._params_of(fold)
        each = [{} for _ in seeds] if parameters is None else parameters
        seeded = open_random_states(self.estimator)
        jobs = [self._job(k, weights[k], seed, each[k], seeded, params) for k, seed in enumerate(seeds)]
        if self._probed or len(jobs) < 2:
            yield from self._run(X, y, params.train, jobs)
            return
        self._probed = True
        alike = [k for k in range(1, len(jobs)) if each[k] == each[0]]
        twin = next((k for k in alike if not np.array_equal(weights[k], weights[0])), PROBE)
        if twin == PROBE or seeded:
            # Candidates differ in their seeds, too, so one more is trained that differs only in weights.
            twin = PROBE
            opposite = opposite_weights(weights[0], seeds[0])
            jobs.append(self._job(PROBE, opposite, seeds[0], each[0], seeded, params))
        pair: dict[int, Any] = {}
        for k, outcome in self._run(X, y, params.train, jobs):
            if k in (0, twin) and not isinstance(outcome, Exception):
                pair[k] = outcome
            if k != PROBE:
                yield k, outcome
        if len(pair) == 2 and ignores_weights(pair[0], pair[twin], X, y, fold):
            warn_of_ignored_weights(self.estimator)

    def _params_of(self, fold: IntArray | None) -> FoldParams:
        """What the models of the fold get besides; the same object for the same fold, as are its rows."""
        if not self.fit_params:
            return FoldParams(fold, {})
        for known, params in self._folds:
            if known is fold:
                return params
        self._folds.append((fold, self.fit_params.fold(fold)))
        return self._folds[-1][1]

    def _job(
        self,
        k: int,
        weight: FloatArray,
        seed: int,
        parameters: Mapping[str, Any],
        seeded: Sequence[str],
        params: FoldParams,
    ) -> Job:
        given, aside = {**self.fit_params.as_given, **params.per_row}, None
        if params.is_aside is not None and params.aside is not None:
            bare = {name.rpartition("__")[2]: values for name, values in params.per_row_aside.items()}
            margins = {name: values for name, values in bare.items() if name in MARGINS}
            aside = EvalRows(params.aside, weight[params.is_aside], margins)
            weight = weight[~params.is_aside]
        name = self.sample_weight_name
        estimator, routed = self.estimator, self.routed
        return Job(k, estimator, name, weight, seed, parameters, seeded, given, aside, routed)

    def _run(
        self, X: Rows, y: Labels, fold: IntArray | None, jobs: Sequence[Job]
    ) -> Iterator[tuple[int, Any]]:
        backend, _ = get_active_backend()
        if train_there := cluster_of(backend):
            if self.timeout is not None:
                raise no_timeout("a cluster ends its tasks itself: set a time limit there")
            return train_there(backend, X, y, fold, jobs, self._shared)
        if self.n_jobs == "auto":
            return self._run_as_it_pays(X, y, fold, jobs)
        return train_locally(X, y, fold, jobs, self._shared, self.n_jobs, self.timeout)

    def _run_as_it_pays(
        self, X: Rows, y: Labels, fold: IntArray | None, jobs: Sequence[Job]
    ) -> Iterator[tuple[int, Any]]:
        """Train in this process for a while, and then on all cores.

        Models that are fast need no other processes, and those that are slow lose little by waiting.
        """
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
    """Passes all K weightings to `estimator.fit_many(X, y, weights, seeds)`, those with the same parameters
    together."""

    estimator: Any
    sample_weight_name: ClassVar[str] = "sample_weight"

    def train(
        self,
        X: Rows,
        y: Labels,
        weights: FloatArray,
        seeds: Sequence[int],
        fold: IntArray | None = None,
        parameters: Sequence[Mapping[str, Any]] | None = None,
    ) -> Iterator[tuple[int, Any]]:
        """Yield (k, fitted model or exception) for each of the weights (K, n), as they finish.

        The n rows are those of X whose numbers are in `fold` (n,), or all of them.
        """
        if fold is not None:
            X, y = _safe_indexing(X, fold), y[fold]
        X, y = read_only(X), read_only(y)
        for alike in _groups(parameters, len(weights)):
            of_group = weights if len(alike) == len(weights) else weights[alike]
            shared = {} if parameters is None else parameters[alike[0]]
            for i, model in self._train_alike(X, y, of_group, [seeds[k] for k in alike], shared):
                yield alike[i], model

    def _train_alike(
        self, X: Rows, y: Labels, weights: FloatArray, seeds: Sequence[int], parameters: Mapping[str, Any]
    ) -> Iterator[tuple[int, Any]]:
        done = set()
        trained: Iterator[tuple[int, Any]] | None = None
        failure: Exception
        while True:
            # No yield in here: what the receiver raises there is not the model's.
            try:
                if trained is None:
                    estimator = with_parameters(self.estimator, parameters)
                    own = estimator.get_params().get("random_state")
                    chosen = [own if isinstance(own, Integral) else seed for seed in seeds]
                    trained = iter(estimator.fit_many(X, y, weights, chosen))
                k, model = next(trained)
            except StopIteration:
                return
            except (Exception, SystemExit, GeneratorExit) as error:
                failure = as_failure(error)
                break
            done.add(k)
            yield k, model
            del model  # keep no reference to it here
        yield from ((k, failure) for k in range(len(weights)) if k not in done)


def _can_be_sent(estimator: Any) -> bool:
    """Whether an estimator can go to another process."""
    try:
        dumps(estimator)
    except Exception:
        return False
    return True


def _groups(parameters: Sequence[Mapping[str, Any]] | None, n: int) -> list[list[int]]:
    """The numbers from 0 to n − 1, those of equal parameters together."""
    if parameters is None:
        return [list(range(n))]
    groups: list[list[int]] = []
    for k in range(n):
        same = next((group for group in groups if parameters[group[0]] == parameters[k]), None)
        if same is None:
            groups.append([k])
        else:
            same.append(k)
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
    _check_can_be_cloned(estimator)
    routed = with_routed_weights(estimator) if sample_weight_name in (AUTO, "sample_weight") else None
    if routed is not None:
        return EstimatorTrainer(routed, "sample_weight", n_jobs, timeout, routed=True)
    return EstimatorTrainer(estimator, weight_name_of(estimator, sample_weight_name), n_jobs, timeout)


def _check_can_be_cloned(estimator: Any) -> None:
    """Raise if scikit-learn cannot clone the estimator, as each candidate needs its own."""
    try:
        clone(estimator)
    except (RuntimeError, TypeError) as error:
        advice = "Store its parameters as they are given, in __init__."
        if is_of_library(estimator, "catboost"):
            advice = (
                "CatBoost keeps copies of lists: pass them to its fit, fit(…, fit_params={'cat_features': "
                "[…]}), not to the constructor."
            )
        raise UnsupportedEstimatorError(f"{error}. {advice}", argument="estimator") from error
