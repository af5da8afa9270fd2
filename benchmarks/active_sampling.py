"""Does it pay to label rows of high weight next, as the paper's conclusion proposes?

    python benchmarks/active_sampling.py run [--repeats 20] [--jobs 2]
    python benchmarks/active_sampling.py table

Each repeat splits a problem's rows anew (LABELLING in benchmarks/one_kind_problems.py): 200 labelled training
rows, a pool of 3,000 rows whose labels are hidden, 400 validation rows and up to 10,000 test rows. Labelled
rows and pool come from the training distribution, validation and test rows from the one that matters. Then,
three times, a search is fitted on the labelled rows, and 100 rows of the pool get their labels. Strategies to
pick them:

random
    All rows alike.
suggest_rows
    Drawn in proportion to the expected weight, as the paper's conclusion would have it (`suggested_rows`).
suggest_rows, defaults
    The same of a second search with the library's defaults, which often selects a simple strategy. Its
    weights are then those of that strategy: all alike, or by class.
highest weight
    The rows of highest expected weight, not drawn.
uncertainty
    The rows with the smallest margin between the two most probable classes, by the search's model.
weight × uncertainty
    The rows with the highest product of expected weight and one less that margin.
whole pool
    For comparison: all rows of the pool are labelled at once.

The search has the strategy "example weights" alone, so that its weights are always learned ones, and
evaluates on the validation rows alone: labelled rows that somebody picked are no sample of any distribution.
It tries 30 candidates. No label of the pool is used before its row is picked; test rows choose nothing.

Two models are scored on the test rows before and after each round, to tell which rows from which weights:
"moew", what the search selects, and "plain", the unweighted model of the same rows with its decisions
tuned on the validation rows. All strategies of a repeat have the same rows, so differences to random are
taken within repeats.

`run` appends lines to results.csv in the folder `--out`, and skips what is there. `table` prints means with
95 % margins by Student's t over the repeats. Repeats share rows of a data set, so the margins are somewhat
too narrow.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # one process per core does the work
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import csv
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from compared_methods import LEVEL, MARKS, holm, markdown, p_value
from joblib import Parallel, delayed
from rivals_judge import Judge

from moew import MetricSearch, Rows
from moew._util.margins import margin
from moew._util.numbers import number, percent, signed
from moew._util.seeds import generator

if TYPE_CHECKING:
    from one_kind_problems import Problem, Table

OUT = Path("docs/results/active")
RANDOM, SUGGEST, DEFAULTS, WHOLE = "random", "suggest_rows", "suggest_rows, defaults", "whole pool"
HIGHEST, UNCERTAIN, PRODUCT = "highest weight", "uncertainty", "weight × uncertainty"
PICKING = (SUGGEST, DEFAULTS, HIGHEST, UNCERTAIN, PRODUCT)  # the strategies that are compared with random
WAYS = (RANDOM, *PICKING, WHOLE)
LEAST_OF_A_CLASS = 3  # labelled rows of each class at the start
LEARNED = {
    "strategies": "example weights",
    "evaluate_on": "validation",
    "honest": None,
}  # settings of the search that is scored
MEASURES = {"moew": "moew", "plain": "the unweighted model with tuned decisions"}


@dataclass(frozen=True)
class Plan:
    """Numbers of rows, rounds and candidates."""

    start: int = 200
    picked: int = 100
    rounds: int = 3
    pool: int = 3000
    validation: int = 400
    n_candidates: int = 30
    batch_size: int = 10


PLAN = Plan()


@dataclass(frozen=True)
class Line:
    """One line of results.csv: the two models after a round, and what picks the next rows."""

    problem: str
    repeat: int
    strategy: str
    round: int  # 0 before any row is picked
    labelled: int
    moew: float  # the metric on the test rows, in its own units
    plain: float
    chosen: str = ""  # what the search that picks the next rows selected
    even: float = 1.0  # (Σw)² / (m Σw²) of its expected weights of the pool's m rows: 1 where all are alike
    classes: str = ""  # the numbers of labelled rows of each class


Key = tuple[str, int, str, int]  # problem, repeat, strategy, round
Task = tuple[str, int, str]  # problem, repeat, strategy
FIELDS = tuple(field.name for field in fields(Line))


# One repeat -------------------------------------------------------------------------------------------------


def run_task(problem: Problem | str, repeat: int, strategy: str, plan: Plan) -> list[Line]:
    """All rounds of one strategy on one split of a problem, given by its name in LABELLING or itself."""
    warnings.simplefilter("ignore")  # models that have not converged
    if isinstance(problem, str):
        problem = all_problems()[problem]
    rows, validation, test = replace(problem, n_train=plan.start + plan.pool, n_val=plan.validation).split(
        repeat
    )
    judge = Judge.of(problem.metric, rows.y, problem.task)
    labelled = first_rows(rows.y, plan.start)
    if strategy == WHOLE:
        labelled = np.arange(len(rows.y))
    lines = []
    for number_of_round in [plan.rounds] if strategy == WHOLE else range(plan.rounds + 1):
        known = rows.take(labelled)
        search = fitted(problem, known, validation, repeat, plan, LEARNED)
        line = Line(
            problem.name,
            repeat,
            strategy,
            number_of_round,
            len(labelled),
            search.metric_value(test.X, test.y, columns=test.columns or None),
            plain_value(judge, search.unweighted_estimator_, validation, test),
            classes=" ".join(str((known.y == label).sum()) for label in np.unique(rows.y)),
        )
        if number_of_round < plan.rounds:
            left = np.setdiff1d(np.arange(len(rows.y)), labelled)
            if strategy == DEFAULTS:
                search = fitted(problem, known, validation, repeat, plan, {})
            weights = pool_weights(search, rows.take(left))
            line = replace(
                line,
                chosen=search.selected_,
                even=float(weights.sum() ** 2 / (weights**2).sum() / len(weights)),
            )
            seed = 1000 * repeat + number_of_round
            picked = pick(strategy, search, rows.take(left), weights, plan.picked, seed)
            labelled = np.concatenate([labelled, left[picked]])
        lines.append(line)
    return lines


def first_rows(y: np.ndarray, n: int) -> np.ndarray:
    """The numbers of the first n rows, with some of each class among them."""
    of_class = np.empty(len(y), dtype=int)  # how many rows of its class come before a row
    for label in np.unique(y):
        of_class[y == label] = np.arange((y == label).sum())
    return np.sort(np.argsort(of_class >= LEAST_OF_A_CLASS, kind="stable")[:n])


def fitted(
    problem: Problem, known: Table, validation: Table, repeat: int, plan: Plan, settings: Mapping[str, Any]
) -> MetricSearch:
    """A search on the labelled rows."""
    search = MetricSearch.from_settings(
        problem.estimator(),
        metric=problem.metric,
        n_candidates=plan.n_candidates,
        batch_size=plan.batch_size,
        random_state=repeat,
        verbose=False,
        **settings,
    )
    return search.fit(
        known.X,
        known.y,
        validation=Rows(validation.X, validation.y, columns=validation.columns or None),
        columns=known.columns or None,
    )


def plain_value(judge: Judge, model: Any, validation: Table, test: Table) -> float:
    """The metric on the test rows of a model whose decisions are tuned on the validation rows."""
    rule = judge.tuned(validation.y, judge.outputs(model, validation.X), validation.columns)
    return judge.value(test.y, rule(judge.outputs(model, test.X), test.columns), test.columns)


def pool_weights(search: MetricSearch, pool: Table) -> np.ndarray:
    """The expected weights (m,) of rows without labels: the mean over the classes by their probability."""
    model, columns = search.best_estimator_, pool.columns or None
    labels = [np.full(len(pool.X), label) for label in model.classes_]
    by_class = [search.example_weights(pool.X, y, columns=columns) for y in labels]
    return np.asarray((model.predict_proba(pool.X) * np.stack(by_class, axis=1)).sum(axis=1))


def suggested_rows(weights: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """n rows, drawn one after another without replacement in proportion to their weight.

    The n largest of these keys are such a draw (Efraimidis and Spirakis, 2006).
    """
    with np.errstate(divide="ignore"):
        keys = np.log(weights) + rng.gumbel(size=len(weights))
    return np.argsort(-keys, kind="stable")[:n]


def uncertainty(model: Any, X: np.ndarray) -> np.ndarray:
    """One less the margin (m,) between the two most probable classes."""
    probabilities = np.sort(model.predict_proba(X), axis=1)
    return np.asarray(1 - (probabilities[:, -1] - probabilities[:, -2]))


def pick(
    strategy: str, search: MetricSearch, pool: Table, weights: np.ndarray, n: int, seed: int
) -> np.ndarray:
    """The numbers (n,) of the pool's rows that are labelled next; their labels are not looked at."""
    if strategy == RANDOM:
        return np.random.default_rng(seed).permutation(len(weights))[:n]
    if strategy in (SUGGEST, DEFAULTS):
        return suggested_rows(weights, n, generator(seed, "suggest"))
    scores = {HIGHEST: weights, UNCERTAIN: np.ones(len(weights)), PRODUCT: weights}[strategy]
    if strategy != HIGHEST:
        scores = scores * uncertainty(search.best_estimator_, pool.X)
    return np.argsort(-scores, kind="stable")[:n]


# The file ---------------------------------------------------------------------------------------------------


def read_lines(path: Path) -> dict[Key, Line]:
    """The lines of the file; what was cut off by an end is left out."""
    lines: dict[Key, Line] = {}
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.reader(file):
                if len(row) != len(FIELDS) or row[0] == FIELDS[0]:
                    continue
                problem, repeat, strategy, at, labelled, moew, plain, chosen, even, classes = row
                line = Line(
                    problem, int(repeat), strategy, int(at), int(labelled), float(moew), float(plain), chosen,
                    float(even), classes,
                )  # fmt: skip
                lines[problem, line.repeat, strategy, line.round] = line
    return lines


def whole_tasks(lines: dict[Key, Line], plan: Plan) -> dict[Task, list[Line]]:
    """The lines of each task of which all rounds are there."""
    by_task: dict[Task, list[Line]] = {}
    for (problem, repeat, strategy, _), line in sorted(lines.items()):
        by_task.setdefault((problem, repeat, strategy), []).append(line)
    return {
        task: found
        for task, found in by_task.items()
        if len(found) == (1 if task[2] == WHOLE else plan.rounds + 1)
    }


def append(path: Path, lines: Iterable[Line]) -> None:
    with path.open("a", newline="", encoding="utf-8") as file:
        for line in lines:
            values = asdict(line)
            csv.writer(file).writerow(
                f"{value:.10g}" if isinstance(value, float) else value for value in values.values()
            )


def write_all(path: Path, tasks: dict[Task, list[Line]]) -> None:
    """Write the file anew, in order."""
    new = path.with_suffix(".new")
    with new.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerow(FIELDS)
    for _, lines in sorted(tasks.items()):
        append(new, lines)
    new.replace(path)


# The tables -------------------------------------------------------------------------------------------------


class Results:
    """The lines of results.csv, and what follows from them. Signs are such that higher is better."""

    def __init__(self, lines: dict[Key, Line], problems: Sequence[Problem]) -> None:
        present = {problem for problem, *_ in lines}
        self.lines = lines
        self.problems = {problem.name: problem for problem in problems if problem.name in present}
        self.metrics = {
            name: Judge.of(problem.metric, np.zeros(1), problem.task).metric
            for name, problem in self.problems.items()
        }
        self.last = max(at for *_, at in lines)

    def sign(self, problem: str) -> float:
        return 1.0 if self.metrics[problem].greater_is_better else -1.0

    def title(self, problem: str) -> str:
        metric = self.metrics[problem]
        return f"{problem}, {metric.name} {'↑' if metric.greater_is_better else '↓'}"

    def values(self, problem: str, strategy: str, at: int, measure: str) -> dict[int, float]:
        """The test values by repeat."""
        return {
            repeat: float(getattr(line, measure))
            for (name, repeat, w, n), line in self.lines.items()
            if (name, w, n) == (problem, strategy, at)
        }

    def gains(
        self, problem: str, strategy: str, measure: str, rounds: Sequence[int], over: str = RANDOM
    ) -> np.ndarray:
        """The differences (J,) to another strategy within repeats, positive where better, averaged over
        rounds."""
        of_rounds = []
        for at in rounds:
            ours, theirs = (self.values(problem, w, at, measure) for w in (strategy, over))
            of_rounds.append([ours[j] - theirs[j] for j in sorted(ours.keys() & theirs.keys())])
        return np.asarray(self.sign(problem) * np.mean(of_rounds, axis=0))


def table_text(lines: dict[Key, Line], problems: Sequence[Problem]) -> str:
    """All tables as Markdown."""
    results = Results(lines, problems)
    rounds = range(1, results.last + 1)
    parts = []
    for measure, name in MEASURES.items():
        parts.append(f"### What more labels bring: {name}\n\n{_levels(results, measure)}")
    for measure, name in MEASURES.items():
        after_last = _differences(results, measure, [results.last])
        over_all = _differences(results, measure, rounds)
        parts.append(f"### Difference to random rows after the last round: {name}\n\n{after_last}")
        parts.append(f"### Difference to random rows, mean of the rounds: {name}\n\n{over_all}")
    parts.append(f"### Difference of suggest_rows to uncertainty\n\n{_to_uncertainty(results)}")
    parts.append(f"### Rows of the rarer classes among the picked ones\n\n{_rare_classes(results)}")
    parts.append(f"### What picked the rows\n\n{_pickers(results)}")
    return "\n\n".join(parts)


def _with_margin(values: np.ndarray) -> str:
    return f"{number(float(values.mean()))} ± {number(margin(values), 2)}"


def _signed_with_margin(values: np.ndarray) -> str:
    return f"{signed(float(values.mean()))} ± {number(margin(values), 2)}"


def _levels(results: Results, measure: str) -> str:
    """The metric itself: before, after each round of random rows, and with the whole pool."""
    sizes = {line.round: line.labelled for line in results.lines.values() if line.strategy == RANDOM}
    (whole,) = {line.labelled for line in results.lines.values() if line.strategy == WHOLE} or {0}
    heads = ["problem", *(f"{sizes[at]} rows" for at in sorted(sizes)), f"{whole} rows"]
    places = [*((RANDOM, at) for at in sorted(sizes)), (WHOLE, results.last)]
    rows = []
    for problem in results.problems:
        cells = [
            np.array(list(results.values(problem, strategy, at, measure).values())) for strategy, at in places
        ]
        rows.append([results.title(problem), *(_with_margin(c) if len(c) > 1 else "–" for c in cells)])
    return markdown(heads, rows)


def _to_uncertainty(results: Results) -> str:
    """suggest_rows less uncertainty, for both models."""
    rounds = range(1, results.last + 1)
    columns = [(measure, over) for measure in MEASURES for over in ([results.last], rounds)]
    rows = []
    for problem in results.problems:
        cells = [results.gains(problem, SUGGEST, measure, over, UNCERTAIN) for measure, over in columns]
        rows.append([results.title(problem), *(_signed_with_margin(cell) for cell in cells)])
    heads = [
        f"{measure}, {'last round' if len(over) == 1 else 'mean of the rounds'}" for measure, over in columns
    ]
    return markdown(["problem", *heads], rows) + (
        "\n\nIn the metric's units, positive where suggest_rows is better, ± 95 % margins."
    )


def _rare_classes(results: Results) -> str:
    """The mean share of the rarer classes among the picked rows."""
    rows = []
    for problem in results.problems:
        cells = [results.title(problem)]
        for strategy in (RANDOM, *PICKING):
            shares = []
            for repeat in results.values(problem, WHOLE, results.last, "moew"):
                whole, first, last = (
                    _counts(results.lines[problem, repeat, w, at])
                    for w, at in ((WHOLE, results.last), (strategy, 0), (strategy, results.last))
                )
                picked = last - first
                shares.append(picked[whole < whole.mean()].sum() / picked.sum())
            cells.append(percent(float(np.mean(shares))))
        rows.append(cells)
    return markdown(["problem", RANDOM, *PICKING], rows) + (
        "\n\nThe rarer classes are those with fewer rows than the mean of all, in start and pool together."
    )


def _counts(line: Line) -> np.ndarray:
    return np.array([int(count) for count in line.classes.split()])


def _differences(results: Results, measure: str, rounds: Sequence[int]) -> str:
    """The differences of all strategies to random; marks where one is significant after Holm's correction."""
    found = {
        (problem, strategy): results.gains(problem, strategy, measure, rounds)
        for problem in results.problems
        for strategy in PICKING
    }
    p_values = [
        p_value(float(gains.mean()), float(gains.std(ddof=1) / np.sqrt(len(gains))), len(gains))
        for gains in found.values()
    ]
    marks = {
        key: MARKS[int(np.sign(found[key].mean())) if p < LEVEL else 0]
        for key, p in zip(found, holm(p_values), strict=True)
    }

    def cell(problem: str, strategy: str) -> str:
        gains = found[problem, strategy]
        return _signed_with_margin(gains) + marks[problem, strategy]

    rows = [
        [results.title(problem), *(cell(problem, strategy) for strategy in PICKING)]
        for problem in results.problems
    ]
    repeats = {len(gains) for gains in found.values()}
    counted = f"{min(repeats)}" if len(repeats) == 1 else f"{min(repeats)} to {max(repeats)}"
    return (
        markdown(["problem", *PICKING], rows)
        + f"\n\nIn the metric's units, positive is better than random rows, ± 95 % margins, {counted}"
        f" repeats. ▲ ▼: significant after Holm's correction over the {len(found)} differences of the table."
    )


def _pickers(results: Results) -> str:
    """How uneven the weights are that rows are drawn by, and what searches with defaults selected."""
    rows = []
    for problem in results.problems:
        cells = [results.title(problem)]
        for strategy in (SUGGEST, DEFAULTS):
            of_strategy = [
                line
                for line in results.lines.values()
                if line.problem == problem and line.strategy == strategy and line.chosen
            ]
            cells.append(number(float(np.mean([line.even for line in of_strategy])), 2))
        strategies = Counter(line.chosen.removesuffix(", tuned") for line in of_strategy)
        cells.append(
            ", ".join(f"{name} {percent(n / strategies.total())}" for name, n in strategies.most_common())
        )
        rows.append(cells)
    heads = ["problem", "evenness, suggest_rows", "evenness, defaults", "selected, defaults"]
    return markdown(heads, rows) + (
        "\n\nEvenness is (Σw)² / (m Σw²) of the expected weights w of the pool's m rows: 1 where all are"
        " alike, so that suggest_rows draws at random."
    )


# The command ------------------------------------------------------------------------------------------------


def all_problems() -> dict[str, Problem]:
    from one_kind_problems import LABELLING

    return {problem.name: problem for problem in LABELLING}


def run(options: argparse.Namespace) -> None:
    plan, path = PLAN, options.out / "results.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    done = whole_tasks(read_lines(path), plan)
    write_all(path, done)
    names = list(all_problems()) if options.problems is None else options.problems.split(",")
    tasks = [
        (name, repeat, strategy) for repeat in range(options.repeats) for name in names for strategy in WAYS
    ]
    tasks = [task for task in tasks if task not in done]
    start = time.perf_counter()
    found = Parallel(n_jobs=options.jobs, return_as="generator_unordered")(
        delayed(run_task)(*task, plan) for task in tasks
    )
    for n, lines in enumerate(found, 1):
        append(path, lines)
        name = f"{lines[0].problem} {lines[0].repeat} {lines[0].strategy}"
        print(f"{n} of {len(tasks)}, {time.perf_counter() - start:,.0f} s: {name}", flush=True)
    write_all(path, whole_tasks(read_lines(path), plan))


def table(options: argparse.Namespace) -> None:
    lines = read_lines(options.out / "results.csv")
    if not lines:
        raise SystemExit(f"no results in {options.out}; run `python benchmarks/active_sampling.py run` first")
    print(table_text(lines, list(all_problems().values())))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    runs = commands.add_parser("run", help="run the strategies and write results.csv")
    runs.add_argument("--problems", help="names with commas; default: all")
    runs.add_argument("--repeats", type=int, default=20)
    runs.add_argument("--jobs", type=int, default=2)
    runs.add_argument("--out", type=Path, default=OUT)
    runs.set_defaults(command=run)
    prints = commands.add_parser("table", help="print the tables")
    prints.add_argument("--out", type=Path, default=OUT)
    prints.set_defaults(command=table)
    options = parser.parse_args(arguments)
    options.command(options)


if __name__ == "__main__":
    main()
