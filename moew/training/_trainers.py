"""Which trainer an estimator gets: one model at a time where joblib's active backend says, or many at once.

An estimator that cannot take example weights is refused before any training.
"""

from __future__ import annotations

import inspect
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Literal

import numpy as np
from joblib.externals.loky.backend.reduction import dumps
from joblib.parallel import get_active_backend
from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from moew.data._read_only import read_only
from moew.exceptions import Argument, InPython, UnsupportedEstimatorError
from moew.training._clusters import cluster_of
from moew.training._ignored import ignores_weights, opposite_weights, warn_of_ignored_weights
from moew.training._jobs import PROBE, Job, as_failure, open_random_states, with_parameters
from moew.training._local import no_timeout, train_locally
from moew.training._rows import SharedRowsCache
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
    _spent: float = field(default=0.0, init=False, repr=False, compare=False)  # seconds, for "auto"
    _shared: SharedRowsCache = field(default_factory=SharedRowsCache, init=False, repr=False, compare=False)
    _probed: bool = field(default=False, init=False, repr=False, compare=False)

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
        each = [{} for _ in seeds] if parameters is None else parameters
        seeded = open_random_states(self.estimator)
        jobs = [self._job(k, weights[k], seed, each[k], seeded) for k, seed in enumerate(seeds)]
        if self._probed or len(jobs) < 2:
            yield from self._run(X, y, fold, jobs)
            return
        self._probed = True
        alike = [k for k in range(1, len(jobs)) if each[k] == each[0]]
        twin = next((k for k in alike if not np.array_equal(weights[k], weights[0])), PROBE)
        if twin == PROBE or seeded:
            # Candidates differ in their seeds, too, so one more is trained that differs only in weights.
            twin = PROBE
            opposite = opposite_weights(weights[0], seeds[0])
            jobs.append(self._job(PROBE, opposite, seeds[0], each[0], seeded))
        pair: dict[int, Any] = {}
        for k, outcome in self._run(X, y, fold, jobs):
            if k in (0, twin) and not isinstance(outcome, Exception):
                pair[k] = outcome
            if k != PROBE:
                yield k, outcome
        if len(pair) == 2 and ignores_weights(pair[0], pair[twin], X, y, fold):
            warn_of_ignored_weights(self.estimator)

    def _job(
        self, k: int, weight: FloatArray, seed: int, parameters: Mapping[str, Any], seeded: Sequence[str]
    ) -> Job:
        return Job(k, self.estimator, self.sample_weight_name, weight, seed, parameters, seeded)

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
    sample_weight_name: str = "sample_weight",
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
    _check_takes_weights(estimator, sample_weight_name)
    return EstimatorTrainer(estimator, sample_weight_name, n_jobs, timeout)


def _check_takes_weights(estimator: Any, name: str) -> None:
    if isinstance(estimator, Pipeline):
        step_name, _, argument = name.partition("__")
        if not argument:
            if get_config()["enable_metadata_routing"]:
                return  # the Pipeline itself checks what its steps requested
            last = _last_step(estimator)
            _check_takes_weights(estimator, f"{last}__{name}")  # raises where the advice below would not work
            raise UnsupportedEstimatorError(
                "a Pipeline takes weights by step: set ",
                Argument("sample_weight_name", f"{last}__sample_weight"),
                ".",
                argument="sample_weight_name",
            )
        if step_name not in estimator.named_steps:
            raise UnsupportedEstimatorError(
                f"the Pipeline has no step {step_name!r} (",
                Argument("sample_weight_name", name),
                f"); its steps are {list(estimator.named_steps)}.",
                argument="sample_weight_name",
            )
        _check_takes_weights(estimator.named_steps[step_name], argument)
        return
    if not hasattr(estimator, "fit"):
        raise UnsupportedEstimatorError(
            f"the Pipeline ends with {estimator!r}, which cannot be trained.", argument="estimator"
        )
    parameters = inspect.signature(estimator.fit).parameters
    takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    if name not in parameters and not takes_any:
        raise UnsupportedEstimatorError(
            f"{type(estimator).__name__}.fit takes no {name!r}, so weights would be ignored. Use an "
            "estimator whose fit takes sample weights",
            InPython(", or name its argument with sample_weight_name"),
            ".",
            argument="estimator",
        )


def _last_step(pipeline: Pipeline) -> str:
    """The name of the last step; for a Pipeline in a Pipeline, followed by the inner step's name."""
    name, model = pipeline.steps[-1]
    return f"{name}__{_last_step(model)}" if isinstance(model, Pipeline) else name
