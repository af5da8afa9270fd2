"""A whole search against all its trainings alone: the second search in a process, one core.

    python benchmarks/search_time.py [--runs 3] [--profile]

Every `fit` of the search is recorded with its rows and weights, folds, finalists and final models included;
the same fits are then made again, one after the other, as clone and fit. What is more is the search: weights,
embedding, candidates, predictions, the metric, tuned decisions, the selection rule, honest scores.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import cProfile
import pstats
import time
import warnings
from typing import Any, ClassVar, Self

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from moew import MetricSearch
from moew.metrics import worst_class_error

Fit = tuple[Any, Any, Any]


class RecordedLogistic(LogisticRegression):
    """Remembers what it is fitted with."""

    fits: ClassVar[list[Fit]] = []

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        self.fits.append((X, y, sample_weight))
        super().fit(X, y, sample_weight)
        return self


class RecordedBoosting(LGBMClassifier):
    """Remembers what it is fitted with."""

    fits: ClassVar[list[Fit]] = []

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **more: Any) -> Self:  # type: ignore[override]
        self.fits.append((X, y, sample_weight))
        super().fit(X, y, sample_weight)
        return self


def rows(n: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, n_columns))
    return X, (X[:, 0] + X[:, 1] * X[:, 2] + rng.standard_normal(n) > 1).astype(int)


CASES: dict[str, tuple[Any, int, int]] = {
    "100 logistic regressions, 1,000 × 20": (RecordedLogistic(), 1000, 20),
    "100 boosted forests of 100 trees, 8,000 × 20": (
        RecordedBoosting(n_estimators=100, n_jobs=1, verbose=-1, random_state=0),
        8000,
        20,
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--only", type=int, choices=range(len(CASES)))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| search | fits | trainings alone | search | ratio |\n|---|---|---|---|---|")
    for place, (name, (estimator, n, n_columns)) in enumerate(CASES.items()):
        if options.only not in (None, place):
            continue
        X, y = rows(n + 500, n_columns)
        search = MetricSearch(estimator, metric=worst_class_error(), verbose=False, random_state=0)

        def run(search: MetricSearch = search, X: Any = X, y: Any = y, n: int = n) -> float:
            begun = time.perf_counter()
            search.fit(X[:n], y[:n], validation=(X[n:], y[n:]))
            return time.perf_counter() - begun

        run()  # the first in a process also imports and compiles
        searched, alone = [], []
        for _ in range(options.runs):
            estimator.fits.clear()
            searched.append(run())
            recorded = list(estimator.fits)
            begun = time.perf_counter()
            for features, labels, weights in recorded:
                clone(estimator).fit(features, labels, weights)
            alone.append(time.perf_counter() - begun)
        print(
            f"| {name} | {len(recorded)} | {min(alone):.2f} s | {min(searched):.2f} s | "
            f"{min(searched) / min(alone):.2f} |",
            flush=True,
        )
        if options.profile:
            profile = cProfile.Profile()
            profile.runcall(run)
            pstats.Stats(profile).sort_stats("tottime").print_stats(30)


if __name__ == "__main__":
    main()
