"""Tables of trained alphas of six real problems, so that samplers can be compared without training.

    python benchmarks/recorded_searches.py record [--only wine,mnist]
    python benchmarks/recorded_searches.py describe

`record` trains, for each problem, a model for each of 1,000 random alphas and of five searches of 200 by
GP-BUCB, whose alphas are dense where scores are high, and writes alphas and validation scores to
docs/results/samplers/recorded.npz. `Recorded.of(name)` is a function of alpha made from such a table.
`describe` says how well it predicts alphas that it was not given.
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

import checkout  # noqa: F401  # finds experiments/, beside this folder
import numpy as np

from moew.samplers import GpBucb
from moew.samplers._gaussian_process import squared_distances

TABLE = Path(__file__).parents[1] / "docs" / "results" / "samplers" / "recorded.npz"
N_RANDOM, N_SEARCHES, N_SEARCHED, BATCH = 1000, 5, 200, 20
N_FITTED = 600  # alphas that the kernel is fitted on


@dataclass(frozen=True)
class Source:
    """Where a table comes from: rows, a model, a metric and the embedding of the weights."""

    problem: Callable[[], tuple[Any, Any, Any, Any]]  # estimator, metric, training and validation rows
    embedding: Any


def _of_rivals(name: str) -> tuple[Any, Any, Any, Any]:
    from one_kind_problems import PROBLEMS

    problem = PROBLEMS[name]
    training, validation, _ = problem.split(0)
    return problem.estimator(), problem.metric, training, validation


def _wine() -> tuple[Any, Any, Any, Any]:
    from one_kind_problems import PROBLEMS

    from moew.models import NetworkRegressor

    problem = replace(PROBLEMS["wine-ridge"], n_train=4000, n_val=1000)
    training, validation, _ = problem.split(0)
    return NetworkRegressor((20,), steps=500), problem.metric, training, validation


def _mnist() -> tuple[Any, Any, Any, Any]:
    from one_kind_problems import Table

    from experiments.datasets import load_mnist
    from moew.metrics import worst_class_error
    from moew.models import NetworkClassifier

    rows = load_mnist().train
    training, validation = (Table(rows.X[part], rows.y[part]) for part in (slice(5000), slice(5000, 7000)))
    return NetworkClassifier((10,), steps=400), worst_class_error(), training, validation


def _crime() -> tuple[Any, Any, Any, Any]:
    from one_kind_problems import Problem, crime, worst_cell

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
    from moew import ExampleWeights, MetricSearch, Rows

    source = _sources()[name]
    estimator, metric, training, validation = source.problem()
    alphas, scores = [], []
    runs: list[tuple[Any, int]] = [("random", N_RANDOM), *([(GpBucb(), N_SEARCHED)] * N_SEARCHES)]
    for number, (sampler, n) in enumerate(runs):
        search = MetricSearch(
            estimator,
            metric=metric,
            strategies=[
                ExampleWeights(embedding=source.embedding, sampler=sampler, batch_size=BATCH, final="best")
            ],
            n_candidates=n // BATCH * BATCH,
            evaluate_on="validation",
            verbose=False,
            random_state=number,
        )
        search.fit(
            training.X,
            training.y,
            validation=Rows(validation.X, validation.y, columns=validation.columns or None),
            columns=training.columns or None,
        )
        sign = 1.0 if search.result_.greater_is_better else -1.0
        trials = [trial for trial in search.result_.trials if np.isfinite(trial.value)]
        alphas.append(np.stack([trial.alpha for trial in trials]))
        scores.append(sign * np.array([trial.value for trial in trials]))
    return np.concatenate(alphas), np.concatenate(scores)


@dataclass(frozen=True)
class Recorded:
    """A function of alpha made from a table, in units of the scores' spread: the posterior mean of a Gaussian
    process with a Matérn kernel (3/2) and a width for each dimension, given all alphas of the table."""

    name: str
    radius: float
    alphas: np.ndarray  # (n, d), divided by the kernel's widths
    widths: np.ndarray  # (d,)
    amplitude: float
    coefficients: np.ndarray  # (n,)
    noise: float  # standard deviation of a score around the function

    @property
    def n_dims(self) -> int:
        return len(self.widths)

    @staticmethod
    @cache
    def of(name: str) -> Recorded:
        """The function of the problem with this name."""
        with np.load(TABLE) as table:
            alphas, scores, kernel = (
                table[f"{name} {what}"].astype(float) for what in ("alphas", "scores", "kernel")
            )
        amplitude, variance, widths = kernel[0], max(kernel[1], 1e-6), kernel[2:]
        scaled = alphas / widths
        covariance = _matern(amplitude, scaled, scaled)
        covariance.flat[:: len(covariance) + 1] += variance
        targets = (scores - scores.mean()) / scores.std()
        radius = float(np.linalg.norm(alphas, axis=1).max())
        coefficients = np.linalg.solve(covariance, targets)
        return Recorded(name, radius, scaled, widths, amplitude, coefficients, float(np.sqrt(variance)))

    def __call__(self, alphas: np.ndarray) -> np.ndarray:
        """The function (n,) without noise at alphas (n, d)."""
        return np.asarray(_matern(self.amplitude, alphas / self.widths, self.alphas) @ self.coefficients)


def _matern(amplitude: float, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    r = np.sqrt(3 * squared_distances(a, b))
    return np.asarray(amplitude * (1 + r) * np.exp(-r))


def fit(alphas: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Amplitude, noise variance and widths of the kernel, by marginal likelihood on a part of the table."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    some = np.random.default_rng(0).permutation(len(alphas))[:N_FITTED]
    kernel = ConstantKernel() * Matern(np.full(alphas.shape[1], 3.0), (0.05, 100), nu=1.5) + WhiteKernel(0.05)
    process = GaussianProcessRegressor(kernel)
    process.fit(alphas[some], ((scores - scores.mean()) / scores.std())[some])
    of_points, of_noise = process.kernel_.k1, process.kernel_.k2
    return np.array([of_points.k1.constant_value, of_noise.noise_level, *of_points.k2.length_scale])


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
            found = {"alphas": alphas, "scores": scores, "kernel": fit(alphas, scores)}
            known |= {f"{name} {what}": values.astype(np.float32) for what, values in found.items()}
            np.savez_compressed(TABLE, **known)
            print(f"{name}: {alphas.shape}, {time.perf_counter() - begun:.0f} s", flush=True)
    print("| problem | alphas | dimensions | R², alphas left out | R², the best tenth left out | noise |")
    print("|---|---|---|---|---|---|")
    for name in NAMES:
        this = Recorded.of(name)
        r2 = [f"{left_out(name, best):.3f}" for best in (False, True)]
        print(f"| {name} | {len(this.alphas):,} | {this.n_dims} | {' | '.join(r2)} | {this.noise:.3f} |")


def left_out(name: str, best: bool) -> float:
    """1 − the squared error of 200 scores, of any or of the best tenth, predicted from all others, relative
    to the variance of all scores."""
    this = Recorded.of(name)
    with np.load(TABLE) as table:
        scores = table[f"{name} scores"].astype(float)
    targets = (scores - scores.mean()) / scores.std()
    among = np.argsort(-targets)[: len(targets) // 10 if best else None]
    out = np.random.default_rng(1).permutation(among)[:200]
    rest = np.setdiff1d(np.arange(len(targets)), out)
    covariance = _matern(this.amplitude, this.alphas[rest], this.alphas[rest])
    covariance.flat[:: len(covariance) + 1] += this.noise**2
    found = _matern(this.amplitude, this.alphas[out], this.alphas[rest]) @ np.linalg.solve(
        covariance, targets[rest]
    )
    return float(1 - np.mean((found - targets[out]) ** 2))


if __name__ == "__main__":
    main()
