"""Which embedding, how many models, in how many batches? Run `python benchmarks/choices.py` (half an hour).

The problems of `radius.py` at radius 3; test score with 95 % margins over repeats. "own" is the
embedding that `radius.py` gives a problem: chosen columns, the label, or a network. The table "final"
compares what is made of the candidates of one search (`final_choice.py`), with the problem's validation rows
and with a quarter of them; beside the scores stand gains over the single best, paired by repeat. Raw numbers
are in docs/results/choosing/, a file for each table; repeats that are there are not run again.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import final_choice
import numpy as np
from paper_way import PAPER
from radius import PROBLEMS
from raw_numbers import RESULTS, measured

from moew import MetricSearch, Rows
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
UNIFORM: dict[str, Any] = {"radius": 1e-9, "n_candidates": 1, "batch_size": 1}  # the ball holds nothing else

TABLES: dict[str, dict[str, dict[str, Any]]] = {
    "embedding": {
        "uniform": UNIFORM,
        **{name: {} if kind is None else {"embedding": kind} for name, kind in EMBEDDINGS.items()},
    },
    "models": {f"{10 * n}": {"n_candidates": 10 * n} for n in BUDGETS},
    "batches": {f"{b} × {k}": {"n_candidates": b * k, "batch_size": k} for b, k in SHAPES},
}
FINAL = "final"
COMMON: dict[str, Any] = {
    "radius": 3.0,
    "n_candidates": 50,
    "batch_size": 10,
    "base_weights": "uniform",
    "honest": None,
}
SHARES: dict[str, float] = {"all validation rows": 1.0, "a quarter of them": 0.25}


def run_repeat(table: str, name: str, number: int) -> list[float]:
    """Test scores of the winner of each search of a table."""
    problem = PROBLEMS[name]
    (X, y, _), (X_val, y_val, val), (X_test, y_test, test) = problem.draw(np.random.default_rng(number))
    common = PAPER | COMMON | {"random_state": number}
    scores = []
    for change in TABLES[table].values():
        search = MetricSearch.from_settings(**problem.settings() | common | change)
        search.fit(X, y, validation=Rows(X_val, y_val, columns=val))
        scores.append(search.metric_value(X_test, y_test, columns=test))
    return scores


def run_final(case: str, number: int) -> list[float]:
    """Test scores of the final choices; a case is a problem, and a title of SHARES or a number of rows."""
    name, title = case.split(", ")
    return final_choice.run_repeat(name, number, SHARES.get(title) or int(title.split()[0]), COMMON)


def compare_arms(table: str, given: argparse.Namespace) -> None:
    """Print the test scores of a table of searches."""
    arms, path = TABLES[table], given.out / f"{table}.csv"
    every = measured(path, list(arms), partial(run_repeat, table), given.problem, given.repeats, given.jobs)
    print(f"\n{table:14}" + "".join(f"{name:>17}" for name in arms))
    for name, found in every.items():
        scores = np.array(found, dtype=float)
        cells = [f"{column.mean():.3g} ± {margin(column):.2g}" for column in scores.T]
        print(f"{name:14}" + "".join(f"{cell:>17}" for cell in cells))


def compare_finals(given: argparse.Namespace) -> None:
    """Print the test scores of final choices, and their gains over the single best."""
    finals, path = final_choice.FINALS, given.out / f"{FINAL}.csv"
    titles = [f"{n} validation rows" for n in given.validation_rows] or list(SHARES)
    cases = [f"{name}, {title}" for title in titles for name in given.problem]
    every = measured(path, finals, run_final, cases, given.repeats, given.jobs)
    for title in titles:
        print(f"\n{FINAL}, {title}\n{'test score':16}" + "".join(f"{name:>30}" for name in finals))
        gains = [f"{'gain':16}{'':30}" + "".join(f"{name:>30}" for name in finals[1:])]
        for name in given.problem:
            scores = np.array(every[f"{name}, {title}"], dtype=float)
            greater = PROBLEMS[name].settings()["metric"].greater_is_better
            cells = [f"{column.mean():.4g} ± {margin(column):.2g}" for column in scores.T]
            print(f"{name + (' ↑' if greater else ' ↓'):16}" + "".join(f"{cell:>30}" for cell in cells))
            ahead = (scores[:, 1:] - scores[:, :1]) * (1 if greater else -1)
            cells = [f"{column.mean():+.2g} ± {margin(column):.2g}" for column in ahead.T]
            gains.append(f"{name:16}{'':30}" + "".join(f"{cell:>30}" for cell in cells))
        print("\n".join(gains))
    print("\nGain: over the single best in the same repeat; positive is better.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    names = [*TABLES, FINAL]
    parser.add_argument("--table", choices=names, nargs="+", default=names)
    parser.add_argument("--problem", choices=PROBLEMS, nargs="+", default=list(PROBLEMS))
    parser.add_argument("--validation-rows", type=int, nargs="+", default=[], help='for the table "final"')
    parser.add_argument("--out", type=Path, default=RESULTS / "choosing", help="a folder for raw numbers")
    given = parser.parse_args()
    for table in given.table:
        if table == FINAL:
            compare_finals(given)
        else:
            compare_arms(table, given)
    print(f"\n{given.repeats} repeats; 51 models in each search but where the column says otherwise.")


if __name__ == "__main__":
    main()
