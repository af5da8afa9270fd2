"""What the selection rule selects on planted problems: one where weights cannot help, one where only weights
help.

    python benchmarks/planted.py [--runs 200] [--jobs 2] [--out docs/results/honest-score/planted.csv]

Weights cannot help where the model is right: logistic regression on rows that a logistic model made,
evaluated by a cost (a threshold is all that is needed), by the worst class, or by a ranking at its top
(nothing is needed). Only weights help where a linear model is wrong and the metric looks at the top: in a
quarter of the rows a feature means the opposite, so that a linear model of all rows ignores it. Prints how
often a simple strategy and how often example weights are selected, with 95 % intervals (Wilson), and the mean
test values of all that could have been selected. The selection rule's numbers were chosen on these problems,
among others. Runs that the file of raw numbers has are not run again."""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one process per core does the work

import math
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from one_kind_problems import cost
from raw_numbers import RESULTS, measured
from scipy import special
from sklearn.linear_model import LogisticRegression

from moew import MetricSearch
from moew.metrics import mean_of_selected, precision_at_recall, worst_class_error

N_TEST = 50_000
FIELDS = ("chosen", "simple", "test", "unweighted", "honest")


@dataclass(frozen=True)
class Planted:
    """A planted problem: how rows are drawn, the metric, and the numbers of rows."""

    name: str
    helps: bool  # whether weights do
    metric: Any
    n_train: int
    n_val: int

    def draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        if not self.helps:
            X = rng.standard_normal((n, 5))
            return X, (rng.random(n) < special.expit(X @ [1.0, -1.0, 0.5, 0.0, 0.0] - 1.0)).astype(int)
        X = rng.standard_normal((n, 3)) * [2.0, 1.0, 1.0]
        apart = X[:, 0] > 1.5  # a quarter of the rows, in which the second feature means the opposite
        logit = np.where(apart, 2.0 * X[:, 1], -2.0 - 1.5 * X[:, 1])
        return X, (rng.random(n) < special.expit(logit)).astype(int)


PLANTED = (
    Planted("no help, cost", False, cost, 1000, 300),
    Planted("no help, worst class", False, worst_class_error(), 1000, 300),
    Planted("no help, at 80 % recall", False, precision_at_recall(0.8), 1000, 300),
    Planted("only weights, top 5 %", True, mean_of_selected(0.05), 2000, 1000),
    Planted("only weights, top 10 %", True, mean_of_selected(0.1), 2000, 1000),
)


def run(name: str, number: int) -> tuple[Any, ...]:
    """One search on the planted problem of that name: what it selected, and test values; as FIELDS."""
    warnings.simplefilter("ignore")
    planted = next(planted for planted in PLANTED if planted.name == name)
    rng = np.random.default_rng([number, planted.n_train])
    X, y = planted.draw(planted.n_train, rng)
    X_val, y_val = planted.draw(planted.n_val, rng)
    X_test, y_test = planted.draw(N_TEST, rng)
    search = MetricSearch(LogisticRegression(), metric=planted.metric, verbose=False, random_state=number)
    search.fit(X, y, validation=(X_val, y_val))
    strategies = {strategy.name: strategy.simple for strategy in search.result_.strategies}
    evaluator = search.fitted_.evaluator
    plain = search.fitted_.unweighted
    assert plain is not None
    from moew.data import LabelledRows

    rows = LabelledRows(X_test, y_test)
    test = search.metric_value(X_test, y_test)
    return (
        search.selected_,
        strategies[search.selected_],
        test,
        evaluator.value_on(plain, rows),
        search.honest_score_,
    )


def wilson(k: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    z = 1.96
    centre = (k + z**2 / 2) / (n + z**2)
    half = z / (n + z**2) * math.sqrt(k * (n - k) / n + z**2 / 4)
    return centre - half, centre + half


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS / "honest-score" / "planted.csv")
    options = parser.parse_args()
    names = [planted.name for planted in PLANTED]
    every = measured(options.out, FIELDS, run, names, options.runs, options.jobs)
    print("| planted problem | runs | simple strategy | 95 % interval | selected | unweighted | test |")
    print("|---|---|---|---|---|---|---|")
    for name, found in every.items():
        chosen, simple, test, plain, _ = zip(*found, strict=True)
        n_simple = round(np.sum(simple))
        low, high = (abs(end) for end in wilson(n_simple, len(found)))  # not −0 %
        most = ", ".join(f"{strategy} {k}" for strategy, k in Counter(chosen).most_common(4))
        print(
            f"| {name} | {len(found)} | {n_simple / len(found):.0%} | {low:.0%}–{high:.0%} | "
            f"{most} | {np.mean(plain):.4f} | {np.mean(test):.4f} |"
        )


if __name__ == "__main__":
    main()
