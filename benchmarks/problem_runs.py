"""A benchmark of methods on problems: run so that it can be interrupted, a line for each problem, split and
method, and tables from the lines alone.

`run` appends a line to results.csv for each problem, split and method, and skips what is there. `--only moew`
runs a method again and replaces its lines (with `--missing` it only adds what is not there).
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from raw_numbers import replace_below

FIELDS = ("problem", "split", "method", "test value", "fits", "fitting seconds", "seconds", "extra")
HEADING = "\n## The tables\n\n"  # of a page that ends with them
Key = tuple[str, int, str]  # problem, split, method


@dataclass(frozen=True)
class Line:
    """One line of results.csv."""

    problem: str
    split: int
    method: str
    value: float  # on the test rows, in the metric's units
    fits: int
    fit_seconds: float
    seconds: float
    extra: dict[str, Any] = field(default_factory=dict)


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


def read_lines(path: Path) -> dict[Key, Line]:
    """The lines by problem, split and method; the last one counts. A line cut off by an end is left out."""
    lines: dict[Key, Line] = {}
    if not path.exists():
        return lines
    with path.open(newline="") as file:
        for row in csv.reader(file):
            if len(row) != len(FIELDS) or row[0] == FIELDS[0]:
                continue
            try:
                extra = json.loads(row[7])
            except ValueError:
                continue
            line = Line(
                row[0], int(row[1]), row[2], float(row[3]), int(row[4]), float(row[5]), float(row[6]), extra
            )
            lines[line.problem, line.split, line.method] = line
    return lines


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


def budget_of(lines: dict[Key, Line], problem: str, split: int) -> float | None:
    """The seconds of fitting that moew used, if it has run."""
    line = lines.get((problem, split, "moew"))
    return None if line is None or not math.isfinite(line.value) else line.fit_seconds


@dataclass(frozen=True)
class Benchmark:
    """Problems, the methods that are run on them, and the tables of what came out.

    Other processes get it as it is, so its functions are those of modules.
    """

    name: str  # of its command, its picture and its folder in docs/results/
    problems: str  # a module with DEVELOPMENT, UNTOUCHED and PROBLEMS, loaded where it is needed
    methods: tuple[str, ...]
    asked: tuple[str, ...]  # methods that are run by name only
    methods_for: Callable[[Any], tuple[str, ...]]  # problem → those that can be run on it here
    run_methods: Callable[..., None]  # (problem, split, wanted, budget, write); see `run_steps`
    tables: Callable[..., str]  # (lines, problems' names, correction, picture) → Markdown

    @property
    def out(self) -> Path:
        return Path("docs/results") / self.name

    def run_split(self, problem: Any, split: int, wanted: set[str], budget: float | None, path: Path) -> None:
        """Run the wanted methods on one split of a problem, given by its name in PROBLEMS or itself."""
        if isinstance(problem, str):
            problem = import_module(self.problems).PROBLEMS[problem]

        def write(method: str, outcome: Any, seconds: float) -> None:
            found = outcome.value, outcome.fits, outcome.fit_seconds, seconds, outcome.extra
            append(path, Line(problem.name, split, method, *found))

        self.run_methods(problem, split, wanted, budget, write)

    def missing(
        self, lines: dict[Key, Line], problem: Any, split: int, methods: Sequence[str], again: bool
    ) -> set[str]:
        """Which of the methods are to be run on this split."""
        possible = [method for method in self.methods_for(problem) if method in methods]
        return {method for method in possible if again or (problem.name, split, method) not in lines}

    def chosen_problems(self, names: str) -> list[Any]:
        module = import_module(self.problems)
        if names in ("development", "untouched"):
            return list(module.DEVELOPMENT if names == "development" else module.UNTOUCHED)
        unknown = [name for name in names.split(",") if name not in module.PROBLEMS]
        if unknown:
            raise SystemExit(f"no such problem: {', '.join(unknown)}; there are {', '.join(module.PROBLEMS)}")
        return [module.PROBLEMS[name] for name in names.split(",")]

    def run(self, options: argparse.Namespace) -> None:
        problems, known = self.chosen_problems(options.problems), (*self.methods, *self.asked)
        methods = self.methods if options.only is None else [name.strip() for name in options.only.split(";")]
        if unknown := [name for name in methods if name not in known]:
            raise SystemExit(f"no such method: {', '.join(unknown)}; there are {'; '.join(known)}")
        if find_spec("optuna") is None:
            print("Optuna is not installed: what it searches is left out.")
        path = options.out / "results.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = read_lines(path)
        write_all(path, lines)
        again = options.only is not None and not options.missing
        tasks = []
        for split in range(options.first, options.first + options.splits):
            for problem in problems:
                wanted = self.missing(lines, problem, split, methods, again)
                if wanted:
                    tasks.append((problem.name, split, wanted, budget_of(lines, problem.name, split), path))
        start, context = time.perf_counter(), multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(options.jobs, mp_context=context) as executor:
            running = {executor.submit(self.run_split, *task): task for task in tasks}
            for n, done in enumerate(as_completed(running), 1):
                name, split = running[done][:2]
                error = done.exception()
                said = "" if error is None else f": {type(error).__name__}: {error}"
                passed = f"{time.perf_counter() - start:,.0f} s"
                print(f"{n} of {len(tasks)}, {passed}: {name} {split}{said}", flush=True)
        write_all(path, read_lines(path))

    def table(self, options: argparse.Namespace) -> None:
        lines = read_lines(options.out / "results.csv")
        if not lines:
            raise SystemExit(f"no results in {options.out}; run `python benchmarks/{self.name}.py run` first")
        wanted = ["development", "untouched"] if options.problems is None else [options.problems]
        names = [problem.name for each in wanted for problem in self.chosen_problems(each)]
        kept = {key: line for key, line in lines.items() if key[0] in names}
        text = self.tables(kept, names, options.correction, options.out / f"{self.name}.png")
        print(text)
        if options.page is not None:
            replace_below(options.page, HEADING, text)

    def main(self, text: str | None, **more: tuple[Callable[[argparse.Namespace], None], str]) -> None:
        """The command line: `run`, `table`, and `more` commands with their help."""
        parser = argparse.ArgumentParser(
            description=text, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        commands = parser.add_subparsers(required=True)
        problems = "development, untouched, or names with commas"
        runs = commands.add_parser("run", help="run the methods and write results.csv")
        runs.add_argument("--problems", default="development", help=problems)
        runs.add_argument("--splits", type=int, default=20)
        runs.add_argument("--first", type=int, default=0, help="the number of the first split")
        runs.add_argument("--jobs", type=int, default=2)
        runs.add_argument("--only", help="run these methods again; several with semicolons")
        runs.add_argument("--missing", action="store_true", help="with --only: skip what is there")
        runs.set_defaults(command=self.run)
        prints = commands.add_parser("table", help=f"print the tables and draw {self.name}.png")
        prints.add_argument("--problems", help=f"{problems}; default: all there")
        prints.add_argument("--correction", choices=("rows", "overlap"), default="overlap")
        prints.add_argument("--page", type=Path, help="a page whose tables are replaced")
        prints.set_defaults(command=self.table)
        for name, (command, what) in more.items():
            commands.add_parser(name, help=what).set_defaults(command=command)
        for one in commands.choices.values():
            one.add_argument("--out", type=Path, default=self.out)
        options = parser.parse_args()
        options.command(options)
