"""What a search costs beyond its trainings: an estimator that trains in 50 ms, 200 candidates and trial 0.

    python benchmarks/search_overhead.py [--busy] [--metric worst_class_error] [--profile]
    python benchmarks/search_overhead.py --processor [--metric worst_class_error]

The estimator waits until 50 ms are over, asleep (or, with --busy, computing), and keeps the weighted mean of
each class; so a training takes as long on a busy machine as on an idle one, and what is added is the search:
candidates, weights, clones, predictions, metric, study, honest score. The embedding is a given one with d =
10; learning an embedding is a training of its own and not a part of the overhead.

The trainings alone are timed before and after the search, as clone and fit with weights, one after the other.

`--processor` is for a machine with other work: the processor seconds of a search whose trainings do not wait,
and of its parts, in the fastest of six searches.
"""

from __future__ import annotations

import argparse
import cProfile
import functools
import os
import pstats
import time
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from paper_way import PAPER
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from moew import ExampleWeightSearch, WeightStudy
from moew.embedding import FunctionEmbedding
from moew.metrics import accuracy, worst_class_error
from moew.samplers import GpBucb
from moew.search import _conclude

N_TRAINING, N_VALIDATION, N_FEATURES, N_DIMS = 5000, 1000, 10, 10
ALLOWED = 0.10
METRICS = {"accuracy": accuracy, "worst_class_error": worst_class_error}


class SlowCentroids(ClassifierMixin, BaseEstimator):
    """The nearest of the classes' weighted means, after `seconds` have gone by."""

    def __init__(self, seconds: float = 0.05, busy: bool = False) -> None:
        self.seconds = seconds
        self.busy = busy

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: Any = None) -> Self:
        end = time.perf_counter() + self.seconds
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
        self.classes_ = np.unique(y)
        self.means_ = np.stack(
            [np.average(X[y == label], axis=0, weights=weight[y == label]) for label in self.classes_]
        )
        if not self.busy:
            time.sleep(max(0.0, end - time.perf_counter()))
        while time.perf_counter() < end:
            pass
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        distances = ((X[:, None] - self.means_) ** 2).sum(axis=2)
        return np.asarray(self.classes_[distances.argmin(axis=1)])


def make_rows(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Three overlapping classes."""
    y = rng.integers(0, 3, n)
    return rng.standard_normal((n, N_FEATURES)) + 0.4 * (np.arange(N_FEATURES) % 3 == y[:, None]), y


def coordinates(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Z (n, 10): the features, moved by the label."""
    return np.asarray(X[:, :N_DIMS] + y[:, None])


def seconds_alone(estimator: SlowCentroids, X: np.ndarray, y: np.ndarray, n: int) -> float:
    """Mean seconds of n trainings."""
    weight = np.random.default_rng(0).uniform(0.1, 1.9, len(y))
    start = time.perf_counter()
    for _ in range(n):
        clone(estimator).fit(X, y, sample_weight=weight)
    return (time.perf_counter() - start) / n


class Parts:
    """Processor seconds spent inside some methods, by name."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    def watch(self, owner: Any, method: str, name: str) -> None:
        inner = getattr(owner, method)

        @functools.wraps(inner)
        def timed(*args: Any, **kwargs: Any) -> Any:
            start = time.process_time()
            try:
                return inner(*args, **kwargs)
            finally:
                self.spent[name] = self.spent.get(name, 0.0) + time.process_time() - start

        setattr(owner, method, timed)


def print_processor_seconds(search: Callable[[], Any], metric: str) -> None:
    """One line: all of the fastest of six searches, and its parts."""
    parts = Parts()
    parts.watch(SlowCentroids, "fit", "trainings")
    parts.watch(WeightStudy, "ask_until", "asking for candidates")
    parts.watch(GpBucb, "propose", "(of which the Gaussian process)")
    parts.watch(_conclude, "score_ways", "honest score")
    runs = []
    for _ in range(6):
        parts.spent = {}
        start = time.process_time()
        search()
        runs.append((time.process_time() - start, parts.spent))
    least, spent = min(runs, key=lambda run: run[0])
    shown = ", ".join(f"{name} {seconds:.2f}" for name, seconds in spent.items())
    print(f"{metric}: {least:.2f} processor seconds: {shown}; load {os.getloadavg()[0]:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--busy", action="store_true", help="compute for 50 ms instead of sleeping")
    parser.add_argument("--candidates", type=int, default=200, help="in ten batches")
    parser.add_argument("--metric", choices=list(METRICS), default="accuracy")
    parser.add_argument("--profile", action="store_true", help="show where the time goes (it adds some)")
    parser.add_argument("--processor", action="store_true", help="processor seconds without waiting")
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    (X, y), (X_val, y_val) = make_rows(N_TRAINING, rng), make_rows(N_VALIDATION, rng)
    estimator = SlowCentroids(0.0 if given.processor else 0.05, busy=given.busy)

    def search(batch_size: int, n_batches: int = 10) -> ExampleWeightSearch:
        return ExampleWeightSearch(
            estimator,
            metric=METRICS[given.metric](),
            embedding=FunctionEmbedding(coordinates),
            n_batches=n_batches,
            batch_size=batch_size,
            radius=3.0,
            **PAPER,
            n_jobs=1,
            random_state=0,
        )

    search(2, 2).fit(X, y, X_val=X_val, y_val=y_val)  # imports
    if given.processor:
        n = given.candidates // 10
        print_processor_seconds(lambda: search(n).fit(X, y, X_val=X_val, y_val=y_val), given.metric)
        return
    alone = seconds_alone(estimator, X, y, 40)
    profiler = cProfile.Profile(time.process_time)  # what is slept does not count
    if given.profile:
        profiler.enable()
    start, processor = time.perf_counter(), time.process_time()
    fitted = search(given.candidates // 10).fit(X, y, X_val=X_val, y_val=y_val)
    total, processor = time.perf_counter() - start, time.process_time() - processor
    profiler.disable()
    alone = (alone + seconds_alone(estimator, X, y, 40)) / 2
    n_models = len(fitted.result_.trials)
    trainings = n_models * alone
    share = total / trainings - 1
    how = "computing" if given.busy else "sleeping"
    print(f"{n_models} trainings of {1e3 * alone:.1f} ms ({how}), metric {given.metric}, n_jobs=1", end="")
    print(f"; load {os.getloadavg()[0]:.1f}")
    print(f"  trainings alone {trainings:7.2f} s")
    print(f"  the search      {total:7.2f} s, of which the processor worked {processor:.2f} s")
    verdict = "reached" if share <= ALLOWED else "missed"
    print(
        f"  overhead {100 * share:.1f} %, {1e3 * (total - trainings) / n_models:.2f} ms a candidate ", end=""
    )
    print(f"(at most {100 * ALLOWED:.0f} %: {verdict})")
    if given.profile:
        pstats.Stats(profiler).sort_stats("cumulative").print_stats(r"moew|optuna", 45)


if __name__ == "__main__":
    main()
