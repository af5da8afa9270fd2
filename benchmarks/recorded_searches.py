"""Tables of trained alphas of six real problems, so that samplers can be compared without training.

    python benchmarks/recorded_searches.py record [--only wine,mnist]
    python benchmarks/recorded_searches.py describe

`record` trains, for each problem, a model for each of 1,000 random alphas and of five searches of 200 by
GP-BUCB, whose alphas are dense where scores are high, and writes alphas and validation scores to
docs/results/samplers/recorded.npz. `Recorded.of(name)` makes a function of alpha from such a table: the mean of
randomised trees (a model that none of the samplers uses), and noise as large as what the trees leave
unexplained on alphas they were not fitted on.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from moew.samplers import GpBucb

TABLE = Path(__file__).parents[1] / "docs" / "results" / "samplers" / "recorded.npz"
N_RANDOM, N_SEARCHES, N_SEARCHED, BATCH = 1000, 5, 200, 20


@dataclass(frozen=True)
class Source:
    """Where a table comes from: rows, a model, a metric and the embedding of the weights."""

    problem: Callable[[], tuple[Any, Any, Any, Any]]  # estimator, metric, training and validation rows
    embedding: Any


def _of_rivals(name: str) -> tuple[Any, Any, Any, Any]:
    from problems import PROBLEMS

    problem = PROBLEMS[name]
    training, validation, _ = problem.split(0)
    return problem.estimator(), problem.metric, training, validation


def _wine() -> tuple[Any, Any, Any, Any]:
    from problems import PROBLEMS

    from moew.models import NetworkRegressor

    problem = replace(PROBLEMS["wine-ridge"], n_train=4000, n_val=1000)
    training, validation, _ = problem.split(0)
    return NetworkRegressor((20,), steps=500), problem.metric, training, validation


def _mnist() -> tuple[Any, Any, Any, Any]:
    from problems import Table

    from moew.datasets import load_mnist
    from moew.metrics import worst_class_error
    from moew.models import NetworkClassifier

    rows = load_mnist().train
    training, validation = (Table(rows.X[part], rows.y[part]) for part in (slice(5000), slice(5000, 7000)))
    return NetworkClassifier((10,), steps=400), worst_class_error(), training, validation


def _crime() -> tuple[Any, Any, Any, Any]:
    from problems import Problem, crime, worst_cell

    problem = Problem("crime", crime, "logistic", worst_cell, "groups", 800, 400)
    training, validation, _ = problem.split(0)
    return problem.estimator(), problem.metric, training, validation


def _sources() -> dict[str, Source]:
    from moew.embedding import AutoencoderEmbedding

    # With a seed of their own, so that all searches have the same embedding.
    learned = {d: AutoencoderEmbedding(d, steps=3000, random_state=0) for d in (8, 10, 16)}
    return {
        "wine": Source(_wine, learned[8]),
        "mnist": Source(_mnist, learned[10]),
        "crime": Source(_crime, learned[16]),
        "adult-cell": Source(lambda: _of_rivals("adult-cell"), "directions"),
        "credit-f1": Source(lambda: _of_rivals("credit-f1"), "directions"),
        "compas-gap": Source(lambda: _of_rivals("compas-gap"), "directions"),
    }


NAMES = ("wine", "mnist", "crime", "adult-cell", "credit-f1", "compas-gap")


def record(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Alphas (n, d) and their scores (n,), higher is better."""
    from moew import ExampleWeightSearch

    source = _sources()[name]
    estimator, metric, training, validation = source.problem()
    alphas, scores = [], []
    runs: list[tuple[Any, int]] = [("random", N_RANDOM), *([(GpBucb(), N_SEARCHED)] * N_SEARCHES)]
    for number, (sampler, n) in enumerate(runs):
        search = ExampleWeightSearch(
            estimator,
            metric=metric,
            embedding=source.embedding,
            sampler=sampler,
            n_batches=n // BATCH,
            batch_size=BATCH,
            validation=None,
            final="best",
            guard=False,
            show_progress=False,
            random_state=number,
        )
        search.fit(
            training.X,
            training.y,
            X_val=validation.X,
            y_val=validation.y,
            metadata=training.columns or None,
            metadata_val=validation.columns or None,
        )
        sign = 1.0 if search.result_.greater_is_better else -1.0
        trials = [trial for trial in search.result_.trials if np.isfinite(trial.value)]
        alphas.append(np.stack([trial.alpha for trial in trials]))
        scores.append(sign * np.array([trial.value for trial in trials]))
    return np.concatenate(alphas), np.concatenate(scores)


@dataclass(frozen=True)
class Recorded:
    """A function of alpha made from a table."""

    name: str
    radius: float
    n_dims: int
    trees: Any
    noise: float  # standard deviation of a score around the function
    spread: float  # of the function over random alphas

    @staticmethod
    @cache
    def of(name: str) -> Recorded:
        """The function of the problem with this name."""
        from sklearn.ensemble import ExtraTreesRegressor

        with np.load(TABLE) as table:
            alphas, scores = (table[f"{name} {what}"].astype(float) for what in ("alphas", "scores"))
        trees = ExtraTreesRegressor(300, min_samples_leaf=2, bootstrap=True, oob_score=True, random_state=0)
        trees.fit(alphas, scores)
        noise = float(np.std(scores - trees.oob_prediction_))
        radius = float(np.linalg.norm(alphas, axis=1).max())
        rng = np.random.default_rng(0)
        from moew.samplers import Ball

        anywhere = trees.predict(Ball(alphas.shape[1], radius).sample(rng, 2000))
        trees.n_jobs = None
        return Recorded(name, radius, alphas.shape[1], trees, noise, float(np.std(anywhere)))

    def __call__(self, alphas: np.ndarray) -> np.ndarray:
        """The function (n,) without noise at alphas (n, d)."""
        return np.asarray(self.trees.predict(alphas))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("record", "describe"))
    parser.add_argument("--only", default=",".join(NAMES))
    options = parser.parse_args()
    if options.command == "record":
        TABLE.parent.mkdir(parents=True, exist_ok=True)
        for name in options.only.split(","):
            known = dict(np.load(TABLE)) if TABLE.exists() else {}
            begun = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                alphas, scores = record(name)
            known |= {f"{name} alphas": alphas.astype(np.float32), f"{name} scores": scores.astype(np.float32)}
            np.savez_compressed(TABLE, **known)
            print(f"{name}: {alphas.shape}, {time.perf_counter() - begun:.0f} s", flush=True)
    print("| problem | alphas | dimensions | spread of random alphas | noise | best of the table |")
    print("|---|---|---|---|---|---|")
    with np.load(TABLE) as table:
        for name in NAMES:
            if f"{name} alphas" in table:
                scores = table[f"{name} scores"]
                this = Recorded.of(name)
                print(
                    f"| {name} | {len(scores):,} | {this.n_dims} | {this.spread:.4f} | {this.noise:.4f} | "
                    f"{scores.max():.4f} |"
                )


if __name__ == "__main__":
    main()
