"""Which embedding, how many models, in how many batches? Run `python benchmarks/choices.py` (half an hour).

The problems of `radius.py` at radius 3; test score with 95 % margins over repeats. "own" is the
embedding that `radius.py` gives a problem: chosen columns, the label, or a network. The table "final"
compares what is made of the candidates of one search (`final_choice.py`), with the problem's validation rows
and with a quarter of them; beside the scores stand gains over the single best, paired by repeat.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import final_choice
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
FINAL = "final"
COMMON: dict[str, Any] = {
    "radius": 3.0,
    "n_batches": 5,
    "batch_size": 10,
    "base_weights": "uniform",
    "honest": None,
}
SHARES = {"all validation rows": 1.0, "a quarter of them": 0.25}
Say = Callable[[str], None]


def run_repeat(name: str, number: int, changes: list[dict[str, Any]]) -> list[float]:
    """Test scores of the winner of each search."""
    problem = PROBLEMS[name]
    (X, y, _), (X_val, y_val, val), (X_test, y_test, test) = problem.draw(np.random.default_rng(number))
    common = PAPER | COMMON | {"random_state": number}
    scores = []
    for change in changes:
        search = ExampleWeightSearch(**problem.settings() | common | change)
        search.fit(X, y, X_val=X_val, y_val=y_val, metadata_val=val)
        scores.append(search.metric_value(X_test, y_test, metadata=test))
    return scores


def compare_arms(table: str, given: argparse.Namespace, say: Say) -> None:
    """Print the test scores of a table of searches."""
    arms = TABLES[table]
    say(f"\n{table:14}" + "".join(f"{name:>17}" for name in arms))
    for name in given.problem:
        jobs = (delayed(run_repeat)(name, n, list(arms.values())) for n in range(given.repeats))
        scores = np.array(Parallel(n_jobs=given.jobs)(jobs))
        cells = [f"{column.mean():.3g} ± {margin(column):.2g}" for column in scores.T]
        say(f"{name:14}" + "".join(f"{cell:>17}" for cell in cells))


def compare_finals(given: argparse.Namespace, say: Say) -> None:
    """Print the test scores of final choices, and their gains over the single best."""
    jobs = (
        delayed(final_choice.run_repeat)(name, n, share, COMMON)
        for share in SHARES.values()
        for name in given.problem
        for n in range(given.repeats)
    )
    found: Iterator[list[float]] = Parallel(n_jobs=given.jobs, return_as="generator")(jobs)
    finals = final_choice.FINALS
    for title in SHARES:
        say(f"\n{FINAL}, {title}\n{'test score':16}" + "".join(f"{name:>30}" for name in finals))
        gains = [f"{'gain':16}{'':30}" + "".join(f"{name:>30}" for name in finals[1:])]
        for name in given.problem:
            scores = np.array(list(islice(found, given.repeats)))
            greater = PROBLEMS[name].settings()["metric"].greater_is_better
            cells = [f"{column.mean():.4g} ± {margin(column):.2g}" for column in scores.T]
            say(f"{name + (' ↑' if greater else ' ↓'):16}" + "".join(f"{cell:>30}" for cell in cells))
            ahead = (scores[:, 1:] - scores[:, :1]) * (1 if greater else -1)
            cells = [f"{column.mean():+.2g} ± {margin(column):.2g}" for column in ahead.T]
            gains.append(f"{name:16}{'':30}" + "".join(f"{cell:>30}" for cell in cells))
        say("\n".join(gains))
    say("\nGain: over the single best in the same repeat; positive is better.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    names = [*TABLES, FINAL]
    parser.add_argument("--table", choices=names, nargs="+", default=names)
    parser.add_argument("--problem", choices=PROBLEMS, nargs="+", default=list(PROBLEMS))
    parser.add_argument("--out", type=Path, help="a file for what is printed")
    given = parser.parse_args()
    said: list[str] = []

    def say(text: str) -> None:
        print(text, flush=True)
        said.append(text + "\n")
        if given.out is not None:
            given.out.write_text("".join(said), encoding="utf-8")

    for table in given.table:
        if table == FINAL:
            compare_finals(given, say)
        else:
            compare_arms(table, given, say)
    say(f"\n{given.repeats} repeats; 51 models in each search but where the column says otherwise.")


if __name__ == "__main__":
    main()
