"""What the guard hands out on planted problems: one where weights cannot help, one where only weights help.

    python benchmarks/guard.py [--runs 200] [--jobs 2]

Weights cannot help where the model is right: logistic regression on rows that a logistic model made, judged
by a cost (a threshold is all that is needed), by the worst class, or by a ranking at its top (nothing is
needed). Only weights help where a linear model is wrong and the metric looks at the top: in a quarter of the
rows a feature means the opposite, so that a linear model of all rows ignores it. Prints how often a
simple way and how often example weights are handed out, with 95 % intervals (Wilson), and the mean test
values of all that could have been handed out.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one process per core does the work

import math
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from problems import cost
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from moew import ExampleWeightSearch
from moew.metrics import mean_of_selected, precision_at_recall, worst_class_error

N_TEST = 50_000


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
            return X, (rng.random(n) < expit(X @ [1.0, -1.0, 0.5, 0.0, 0.0] - 1.0)).astype(int)
        X = rng.standard_normal((n, 3)) * [2.0, 1.0, 1.0]
        apart = X[:, 0] > 1.5  # a quarter of the rows, in which the second feature means the opposite
        logit = np.where(apart, 2.0 * X[:, 1], -2.0 - 1.5 * X[:, 1])
        return X, (rng.random(n) < expit(logit)).astype(int)


PLANTED = (
    Planted("no help, cost", False, cost, 1000, 300),
    Planted("no help, worst class", False, worst_class_error(), 1000, 300),
    Planted("no help, at 80 % recall", False, precision_at_recall(0.8), 1000, 300),
    Planted("only weights, top 5 %", True, mean_of_selected(0.05), 2000, 1000),
    Planted("only weights, top 10 %", True, mean_of_selected(0.1), 2000, 1000),
)


def run(planted: Planted, number: int) -> dict[str, Any]:
    """One search, what it handed out, and test values."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([number, planted.n_train])
    X, y = planted.draw(planted.n_train, rng)
    X_val, y_val = planted.draw(planted.n_val, rng)
    X_test, y_test = planted.draw(N_TEST, rng)
    search = ExampleWeightSearch(
        LogisticRegression(), metric=planted.metric, show_progress=False, random_state=number
    )
    search.fit(X, y, X_val=X_val, y_val=y_val)
    ways = {way.name: way.simple for way in search.result_.ways}
    evaluator = search.fitted_.evaluator
    plain = search.fitted_.unweighted
    assert plain is not None
    from moew.data import LabelledRows

    rows = LabelledRows(X_test, y_test)
    return {
        "chosen": search.chosen_,
        "simple": ways[search.chosen_],
        "test": search.metric_value(X_test, y_test),
        "unweighted": evaluator.value_on(plain, rows),
        "honest": search.honest_score_,
    }


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
    options = parser.parse_args()
    print("| planted problem | runs | simple way | 95 % interval | handed out | unweighted | test |")
    print("|---|---|---|---|---|---|---|")
    with ProcessPoolExecutor(options.jobs) as pool:
        for planted in PLANTED:
            found = list(pool.map(run, [planted] * options.runs, range(options.runs)))
            n_simple = sum(one["simple"] for one in found)
            low, high = wilson(n_simple, len(found))
            most = ", ".join(f"{way} {k}" for way, k in Counter(o["chosen"] for o in found).most_common(4))
            plain, test = (np.mean([one[key] for one in found]) for key in ("unweighted", "test"))
            print(
                f"| {planted.name} | {len(found)} | {n_simple / len(found):.0%} | {low:.0%}–{high:.0%} | "
                f"{most} | {plain:.4f} | {test:.4f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
