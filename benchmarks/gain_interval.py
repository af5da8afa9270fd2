"""How often the gain's 95 % interval holds the true gain, how wide it is, and how often the verdict is wrong.

Every repeat draws training and validation rows, searches with example weights alone, so that example weights
are selected, and compares the interval of `result_.gain` with the difference of the two models, winner and
unweighted, on 100,000 rows of the population. The table is in docs/honest-score-measured.md. Repeats that the
file of raw numbers has are not run again.

    python benchmarks/gain_interval.py [--repeats 60] [--jobs 2] [--out docs/results/honest-score/gains.csv]
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one process per core does the work

import math
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from raw_numbers import RESULTS, measured
from sklearn.linear_model import LogisticRegression

from moew import MetricSearch
from moew._util.margins import TWO_SIDED, margin
from moew.data import LabelledRows
from moew.metrics import Metric, accuracy, precision_at_recall, worst_class_error

METRICS: dict[str, Callable[[], Metric]] = {
    "accuracy": accuracy,
    "worst class error": worst_class_error,
    "precision at recall": partial(precision_at_recall, 0.9),
}
SIZES = (100, 400, 1600)
N_TRAINING, N_POPULATION = 400, 100_000
FIELDS = ("gain", "low", "high", "true gain", "half without luck")
CASES = {
    f"{metric}, {'shift' if shifted else 'none'}, {size}": (metric, shifted, size)
    for metric, shifted, size in product(METRICS, (False, True), SIZES)
}


def rows(n: int, shares: np.ndarray, curved: bool, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian classes in four dimensions; where `curved`, no linear model is right."""
    y = rng.choice(len(shares), size=n, p=shares)
    X = rng.standard_normal((n, 4)) + 1.2 * np.eye(4)[y % 4]
    return (np.where(X > 0.5, X**2, X) if curved else X), y


def one_repeat(case: str, seed: int) -> tuple[float, ...]:
    """(gain, low, high, true gain, half the interval without the allowance for luck) of one search."""
    metric, shifted, size = CASES[case]
    rng = np.random.default_rng([seed, size, shifted, list(METRICS).index(metric)])
    n_classes = 2 if metric == "precision at recall" else 3
    matters = np.full(n_classes, 1 / n_classes)
    training = np.array([0.7, 0.3] if n_classes == 2 else [0.6, 0.3, 0.1]) if shifted else matters
    X, y = rows(N_TRAINING, training, shifted, rng)
    X_val, y_val = rows(size, matters, shifted, rng)
    X_all, y_all = rows(N_POPULATION, matters, shifted, rng)
    evaluated = METRICS[metric]()
    search = MetricSearch(
        LogisticRegression(), metric=evaluated, strategies="example weights", verbose=False, random_state=seed
    )
    search.fit(X, y, validation=(X_val, y_val))
    fitted, result = search.fitted_, search.result_
    if fitted.unweighted is None:
        return (math.nan,) * 5
    population = LabelledRows(X_all, y_all)
    winner, plain = (
        fitted.evaluator.value_on(model, population) for model in (fitted.winner, fitted.unweighted)
    )
    truth = (winner - plain) * (1 if evaluated.greater_is_better else -1)
    of_rows = math.sqrt(max(result.gain_error**2 - result.honest.optimism**2, 0))
    return result.gain, *result.gain_interval, truth, TWO_SIDED * of_rows


def line(metric: str, shifted: bool, size: int, found: np.ndarray) -> str:
    known = np.isfinite(found).all(axis=1)
    gain, low, high, truth, of_rows = found[known].T
    error = gain - truth
    below, above = 100 * np.mean(truth < low), 100 * np.mean(truth > high)
    without = 100 * np.mean(np.abs(error) <= of_rows)
    called = low > 0
    wrong = np.sum(called & (truth <= 0))
    return (
        f"| {metric} | {'shift' if shifted else 'none'} | {size} | {100 * truth.mean():+.1f} | "
        f"{100 * error.mean():+.1f} ± {100 * margin(error):.1f} | {100 - below - above:.0f} % | "
        f"{100 * np.mean(high - low):.1f} | {below:.1f} / {above:.1f} % | {without:.0f} % | "
        f"{called.sum()} | {wrong} | {len(known)} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS / "honest-score" / "gains.csv")
    options = parser.parse_args()
    every = measured(options.out, FIELDS, one_repeat, list(CASES), options.repeats, options.jobs)
    print("Gains × 100 over the unweighted model; positive is better")
    heads = [
        "metric",
        "shift",
        "validation rows",
        "true gain",
        "gain − true",
        "held",
        "width",
        "truth below / above",
        "held without",
    ]
    print("| " + " | ".join([*heads, "called better", "wrongly", "of"]) + " |")
    print("|" + "---|" * 12)
    for case, found in every.items():
        print(line(*CASES[case], np.array(found, dtype=float)))
    gain, low, high, truth, _ = np.array([one for found in every.values() for one in found], dtype=float).T
    held, called = (low <= truth) & (truth <= high), low > 0
    print(
        f"\nOf {len(gain):,} intervals {held.mean():.0%} held the true gain. Of {called.sum()} gains that "
        f"were called better, {np.sum(called & (truth <= 0))} were none."
    )


if __name__ == "__main__":
    main()
