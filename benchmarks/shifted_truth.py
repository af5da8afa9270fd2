"""Whether the honest score is about the rows that matter where training rows are of another kind.

    python benchmarks/shifted_truth.py [--repeats 40] [--jobs 2] [--problems development] [--page PAGE]

For each problem of benchmarks/shifted_problems.py, training, validation and test rows are drawn. They are
searched as it comes, with 40 candidates, and once more with `evaluate_on="validation"`, on the validation
rows alone. Raw numbers are in docs/results/shifted. The table says how far honest scores are off the metric
on 20,000 test rows, in standard errors as they are reported; how often the gain's 95 % interval holds the
gain on the test rows; and what is lost or won against the validation rows alone. With `--page` it also
replaces the table of a page.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # one process per core does the work
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from raw_numbers import RESULTS, measured, replace_below
from scipy.stats import binom
from shifted_problems import DEVELOPMENT, N_TRAINING, PROBLEMS, REPORTED

from moew import MetricSearch, Rows
from moew._util.margins import TWO_SIDED, margin
from moew.data import LabelledRows

SIZES = (100, 300, 1000)
N_TEST, N_CANDIDATES = 20_000, 40
FEWEST_INTERVALS = 20  # of a cell whose share of intervals that hold is looked at by itself
LEAST_HELD = 0.88  # the aim for the intervals of a single cell
AS_IT_COMES, ALONE = "as it comes", "validation rows alone"
NUMBERS = ("honest", "error", "test", "gain", "gain error", "test gain", "training rows")
FIELDS = (*NUMBERS, "selected")
HEADING = "\n## The table\n\n"


def case_of(problem: str, size: int, method: str) -> str:
    return f"{problem} | {size} | {method}"


def one_search(case: str, repeat: int) -> list[Any]:
    """What one search says, and what is true on the test rows; signed so that higher is better."""
    warnings.simplefilter("ignore")
    problem, size, method = case.split(" | ")
    shifted = PROBLEMS[problem]
    rng = np.random.default_rng([repeat, int(size), sum(map(ord, problem))])
    training = shifted.draw(N_TRAINING, False, rng)
    validation, test = shifted.draw(int(size), True, rng), shifted.draw(N_TEST, True, rng)
    search = MetricSearch(
        shifted.estimator(),
        metric=shifted.metric,
        n_candidates=N_CANDIDATES,
        evaluate_on="auto" if method == AS_IT_COMES else "validation",
        verbose=False,
        random_state=repeat,
    )
    search.fit(
        training.X,
        training.y,
        validation=Rows(validation.X, validation.y, columns=validation.columns),
        columns=training.columns,
    )
    fitted, result = search.fitted_, search.result_
    rows = LabelledRows(test.X, test.y, columns=test.columns or {})
    assert fitted.unweighted is not None
    selected, plain = (fitted.evaluator.value_on(model, rows) for model in (fitted.winner, fitted.unweighted))
    sign = 1 if result.greater_is_better else -1
    return [
        sign * result.honest.value,
        result.honest.standard_error,
        sign * selected,
        result.gain,
        result.gain_error,
        sign * (selected - plain),
        result.n_out_of_fold,
        result.selected,
    ]


@dataclass(frozen=True)
class Cell:
    """The searches of a problem with one number of validation rows: columns (repeats,) by name."""

    found: dict[str, np.ndarray]
    alone: dict[str, np.ndarray]

    @property
    def off(self) -> np.ndarray:
        """Honest − test in reported standard errors, of each repeat with an honest score."""
        difference = self.found["honest"] - self.found["test"]
        return np.asarray((difference / np.nanmean(self.found["error"]))[np.isfinite(difference)])

    @property
    def held(self) -> np.ndarray:
        """Whether the gain's interval holds the gain on the test rows, of each repeat that claims one."""
        gain, error, truth = (self.found[name] for name in ("gain", "gain error", "test gain"))
        return np.asarray((np.abs(gain - truth) <= TWO_SIDED * error)[np.isfinite(gain) & (error > 0)])

    @property
    def lead(self) -> np.ndarray:
        """The test value less that of the validation rows alone."""
        return np.asarray(self.found["test"] - self.alone["test"])

    def line(self, name: str, size: int) -> str:
        share = f"{self.held.mean():.0%} of {len(self.held)}" if len(self.held) else "–"
        return (
            f"| {name} | {size:,} | {abs(self.found['test'].mean()):.3f} | {self.off.mean():+.2f} ± "
            f"{margin(self.off):.2f} | {share} | {np.mean(self.found['training rows'] > 0):.0%} | "
            f"{self.lead.mean():+.4f} ± {margin(self.lead):.4f} |"
        )


def cells_of(options: argparse.Namespace) -> dict[tuple[str, int], Cell]:
    names = [p.name for p in (DEVELOPMENT if options.problems == "development" else REPORTED)]
    methods = (AS_IT_COMES, ALONE)
    cases = [case_of(name, size, method) for name in names for size in SIZES for method in methods]
    path = options.out / f"{options.problems}.csv"
    every = measured(path, FIELDS, one_search, cases, options.repeats, options.jobs)

    def columns(case: str) -> dict[str, np.ndarray]:
        numbers = np.array([line[: len(NUMBERS)] for line in every[case]], dtype=float)
        return dict(zip(NUMBERS, numbers.T, strict=True))

    return {
        (name, size): Cell(*(columns(case_of(name, size, method)) for method in methods))
        for name in names
        for size in SIZES
    }


def table(cells: dict[tuple[str, int], Cell], repeats: int) -> str:
    lines = [
        "| how training rows differ | validation rows | test | honest − test, in its errors | gains held | "
        "training rows used | test − test of validation rows alone |",
        "|---|---|---|---|---|---|---|",
        *(cell.line(name, size) for (name, size), cell in cells.items()),
    ]
    means = np.array([cell.off.mean() for cell in cells.values()])
    by_problem = [
        np.mean([cell.off.mean() for (other, _), cell in cells.items() if other == name]) for name, _ in cells
    ]
    held = [cell.held for cell in cells.values()]
    many = [inside for inside in held if len(inside) >= FEWEST_INTERVALS]
    least = f"{min(inside.mean() for inside in many):.0%}" if many else "–"
    below = sum(inside.mean() < LEAST_HELD for inside in many)
    worse = sum(cell.lead.mean() + margin(cell.lead) < 0 for cell in cells.values())
    better = sum(cell.lead.mean() - margin(cell.lead) > 0 for cell in cells.values())
    alike = [cell.found["training rows"] > 0 for (name, _), cell in cells.items() if "alike" in name]
    together = np.concatenate(held)
    by_chance = sum(
        binom.cdf(math.ceil(LEAST_HELD * len(inside)) - 1, len(inside), together.mean()) for inside in many
    )
    told = [
        f"{repeats} repeats of each of {len(cells)} cells.",
        f"Honest − test in standard errors: mean {means.mean():+.2f}, mean size {np.abs(means).mean():.2f},",
        f"largest {np.abs(means).max():.2f}; by problem, the largest is {np.abs(by_problem).max():.2f}.",
        f"Intervals of gains that hold: {together.mean():.1%} of {len(together):,};",
        f"of the {len(many)} cells with {FEWEST_INTERVALS} or more the least has {least},",
        f"and {below} have less than {LEAST_HELD:.0%},",
        f"where {by_chance:.1f} are expected by chance if every cell is like all together.",
        f"Against the validation rows alone, {better} cells are better beyond their margin, {worse} worse.",
        f"Where rows are alike, {np.mean(alike):.0%} of the searches evaluate on training rows.",
    ]
    lines.append("\n" + " ".join(told))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", choices=("reported", "development"), default="reported")
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS / "shifted")
    parser.add_argument("--page", type=Path, help="a page whose table is replaced")
    options = parser.parse_args()
    text = table(cells_of(options), options.repeats)
    print(text)
    if options.page is not None:
        replace_below(options.page, HEADING, text)


if __name__ == "__main__":
    main()
