"""Which embedding, how many models, in how many batches? Run `python benchmarks/choices.py` (half an hour).

The problems of `radius.py` at radius 3; test score with 95 % margins over repeats. "own" is the
embedding that `radius.py` gives a problem: chosen columns, the label, or a network.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from paper_way import PAPER
from radius import PROBLEMS

from moew import ExampleWeightSearch
from moew._util.margins import margin
from moew.embedding import AutoencoderEmbedding, DiscriminativeEmbedding

EMBEDDINGS: dict[str, Any] = {
    "own": None,
    "label": "label",
    "autoencoder": AutoencoderEmbedding(steps=2_000),
    "discriminative": DiscriminativeEmbedding(steps=1_000),
}
BUDGETS = (1, 2, 5, 10, 20)  # batches of 10
SHAPES = ((1, 50), (2, 25), (5, 10), (10, 5))  # batches × candidates in a batch; one batch is a random search
UNIFORM: dict[str, Any] = {"radius": 1e-9, "n_batches": 1, "batch_size": 1}  # the ball holds nothing else

TABLES: dict[str, dict[str, dict[str, Any]]] = {
    "embedding": {
        "uniform": UNIFORM,
        **{name: {} if kind is None else {"embedding": kind} for name, kind in EMBEDDINGS.items()},
    },
    "models": {f"{10 * n}": {"n_batches": n} for n in BUDGETS},
    "batches": {f"{b} × {k}": {"n_batches": b, "batch_size": k} for b, k in SHAPES},
}


def run_repeat(name: str, number: int, changes: list[dict[str, Any]]) -> list[float]:
    """Test scores of the winner of each search."""
    problem = PROBLEMS[name]
    (X, y, _), (X_val, y_val, val), (X_test, y_test, test) = problem.draw(np.random.default_rng(number))
    common = {
        **PAPER,
        "radius": 3.0,
        "n_batches": 5,
        "batch_size": 10,
        "base_weights": "uniform",
        "honest": None,
        "random_state": number,
    }
    scores = []
    for change in changes:
        search = ExampleWeightSearch(**problem.settings() | common | change)
        search.fit(X, y, X_val=X_val, y_val=y_val, metadata_val=val)
        scores.append(search.metric_value(X_test, y_test, metadata=test))
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--table", choices=TABLES, nargs="+", default=list(TABLES))
    parser.add_argument("--problem", choices=PROBLEMS, nargs="+", default=list(PROBLEMS))
    given = parser.parse_args()
    for table in given.table:
        arms = TABLES[table]
        print(f"\n{table:14}" + "".join(f"{name:>17}" for name in arms))
        for name in given.problem:
            jobs = (delayed(run_repeat)(name, n, list(arms.values())) for n in range(given.repeats))
            scores = np.array(Parallel(n_jobs=given.jobs)(jobs))
            cells = [f"{column.mean():.3g} ± {margin(column):.2g}" for column in scores.T]
            print(f"{name:14}" + "".join(f"{cell:>17}" for cell in cells), flush=True)
    print(f"\n{given.repeats} repeats; 51 models in each search but where the column says otherwise.")


if __name__ == "__main__":
    main()
