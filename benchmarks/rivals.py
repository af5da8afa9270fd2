"""How moew does against what people do today, on the problems of benchmarks/one_kind_problems.py.

    python benchmarks/rivals.py run --problems development --splits 20 --jobs 2
    python benchmarks/rivals.py table --problems untouched --page docs/rivals.md

`run` appends a line to results.csv for each problem, split and method, and skips what is there. `--only moew`
runs a method again and replaces its lines (with `--missing` it only adds what is not there). A searched rival
may use as many seconds of fitting as moew used on the same problem and split, and tries 20 candidates at
least; the methods are in benchmarks/rivals_methods.py. `table` prints tables in Markdown and draws
rivals.png; benchmarks/rivals_tables.py says how they are computed. With `--page` they also replace those at
the end of a page.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # one process per core does the work
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import argparse
import csv
import json
import math
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from raw_numbers import replace_below
from rivals_methods import ASKED, METHODS, Outcome, methods_for, run_methods
from rivals_tables import FIELDS, Key, Line, Results, over_problems, read_lines, tables

if TYPE_CHECKING:
    from one_kind_problems import Problem

OUT = Path("docs/results/rivals")
HEADING = "\n## The tables\n\n"  # of a page that ends with them


def as_row(line: Line) -> list[Any]:
    return [
        line.problem,
        line.split,
        line.method,
        f"{line.value:.10g}",
        line.fits,
        f"{line.fit_seconds:.3f}",
        f"{line.seconds:.3f}",
        json.dumps(line.extra),
    ]


def append(path: Path, line: Line) -> None:
    """Add a line to the file; several processes may do so at a time."""
    with path.open("a", newline="") as file:
        csv.writer(file).writerow(as_row(line))


def write_all(path: Path, lines: dict[Key, Line]) -> None:
    """Write the file with one line for each key."""
    new = path.with_suffix(".new")
    with new.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(FIELDS)
        writer.writerows(as_row(line) for _, line in sorted(lines.items()))
    new.replace(path)


def run_split(problem: Problem | str, split: int, wanted: set[str], budget: float | None, path: Path) -> None:
    """Run the wanted methods on one split of a problem, given by its name in PROBLEMS or itself."""
    if isinstance(problem, str):
        from one_kind_problems import PROBLEMS

        problem = PROBLEMS[problem]
    name = problem.name

    def write(method: str, outcome: Outcome, seconds: float) -> None:
        line = Line(
            name, split, method, outcome.value, outcome.fits, outcome.fit_seconds, seconds, outcome.extra
        )
        append(path, line)

    run_methods(problem, split, wanted, budget, write)


def missing(
    lines: dict[Key, Line], problem: Problem, split: int, methods: list[str], again: bool
) -> set[str]:
    """Which of the methods are to be run on this split."""
    possible = [method for method in methods_for(problem) if method in methods]
    return {method for method in possible if again or (problem.name, split, method) not in lines}


def budget_of(lines: dict[Key, Line], problem: str, split: int) -> float | None:
    """The seconds of fitting that moew used, if it has run."""
    line = lines.get((problem, split, "moew"))
    return None if line is None or not math.isfinite(line.value) else line.fit_seconds


def chosen_problems(names: str) -> list[Problem]:
    from one_kind_problems import DEVELOPMENT, PROBLEMS, UNTOUCHED

    if names in ("development", "untouched"):
        return list(DEVELOPMENT if names == "development" else UNTOUCHED)
    unknown = [name for name in names.split(",") if name not in PROBLEMS]
    if unknown:
        raise SystemExit(f"no such problem: {', '.join(unknown)}; there are {', '.join(PROBLEMS)}")
    return [PROBLEMS[name] for name in names.split(",")]


def run(options: argparse.Namespace) -> None:
    problems = chosen_problems(options.problems)
    methods = METHODS if options.only is None else [name.strip() for name in options.only.split(";")]
    if unknown := [name for name in methods if name not in (*METHODS, *ASKED)]:
        known = "; ".join((*METHODS, *ASKED))
        raise SystemExit(f"no such method: {', '.join(unknown)}; there are {known}")
    if find_spec("optuna") is None:
        print("Optuna is not installed: hyper-parameters are left out.")
    path = options.out / "results.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = read_lines(path)
    write_all(path, lines)
    again = options.only is not None and not options.missing
    tasks = []
    for split in range(options.first, options.first + options.splits):
        for problem in problems:
            wanted = missing(lines, problem, split, list(methods), again)
            if wanted:
                tasks.append((problem.name, split, wanted, budget_of(lines, problem.name, split), path))
    start, context = time.perf_counter(), multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=context) as executor:
        running = {executor.submit(run_split, *task): task for task in tasks}
        for n, done in enumerate(as_completed(running), 1):
            name, split = running[done][:2]
            error = done.exception()
            said = "" if error is None else f": {type(error).__name__}: {error}"
            print(
                f"{n} of {len(tasks)}, {time.perf_counter() - start:,.0f} s: {name} {split}{said}", flush=True
            )
    write_all(path, read_lines(path))


def table(options: argparse.Namespace) -> None:
    lines = read_lines(options.out / "results.csv")
    if not lines:
        raise SystemExit(f"no results in {options.out}; run `python benchmarks/rivals.py run` first")
    wanted = ["development", "untouched"] if options.problems is None else [options.problems]
    names = [problem.name for each in wanted for problem in chosen_problems(each)]
    kept = {key: line for key, line in lines.items() if key[0] in names}
    text = tables(kept, names, options.correction, options.out / "rivals.png")
    print(text)
    if options.page is not None:
        replace_below(options.page, HEADING, text)


def again(options: argparse.Namespace) -> None:
    """Print what a later version of moew reaches, beside the recorded one on the same splits."""
    before, now = (read_lines(options.out / name) for name in ("results.csv", "again.csv"))
    recorded = Results(before)
    keys = [key for key in now if key in before]
    rest = {key: line for key, line in before.items() if key[2] in ("unweighted", "achievable")}
    both = [Results({**rest, **{key: lines[key] for key in keys}}) for lines in (before, now)]
    problems = list(dict.fromkeys(key[0] for key in keys))
    clear = [name for name in problems if not math.isnan(recorded.share(name, "moew"))]
    shares = np.array([[results.share(name, "moew") for results in both] for name in clear])
    print("| problem | splits | share of the achievable gain before | now |\n|---|---|---|---|")
    for name, (old, new) in zip(clear, shares, strict=True):
        print(f"| {name} | {sum(key[0] == name for key in keys)} | {old:.0%} | {new:.0%} |")
    (old, _), (new, _) = (over_problems(column) for column in shares.T)
    lead, margin = over_problems(shares[:, 1] - shares[:, 0])
    bias = [np.nanmean([results.honest_bias(name, "moew") for name in problems]) for results in both]
    print(
        f"\nmean share {old:.0%} before and {new:.0%} now, a difference of {lead:+.0%} ± {margin:.0%} over "
        f"{len(clear)} problems; honest − test {bias[0]:+.2f} of its spread before and {bias[1]:+.2f} now, "
        f"over {len(problems)}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    runs = commands.add_parser("run", help="run the methods and write results.csv")
    runs.add_argument(
        "--problems", default="development", help="development, untouched, or names with commas"
    )
    runs.add_argument("--splits", type=int, default=20)
    runs.add_argument("--first", type=int, default=0, help="the number of the first split")
    runs.add_argument("--jobs", type=int, default=2)
    runs.add_argument("--only", help="run these methods again; several with semicolons")
    runs.add_argument("--missing", action="store_true", help="with --only: skip what is there")
    runs.add_argument("--out", type=Path, default=OUT)
    runs.set_defaults(command=run)
    prints = commands.add_parser("table", help="print the tables and draw rivals.png")
    prints.add_argument("--problems", help="development, untouched, or names with commas; default: all there")
    prints.add_argument("--correction", choices=("rows", "overlap"), default="overlap")
    prints.add_argument("--page", type=Path, help="a page whose tables are replaced")
    prints.add_argument("--out", type=Path, default=OUT)
    prints.set_defaults(command=table)
    later = commands.add_parser("again", help="compare moew in again.csv with that in results.csv")
    later.add_argument("--out", type=Path, default=OUT)
    later.set_defaults(command=again)
    options = parser.parse_args()
    options.command(options)


if __name__ == "__main__":
    main()
