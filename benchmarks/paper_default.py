"""The default search, as it comes, on the rows of the paper's experiments.

    python benchmarks/paper_default.py [--case "toy" "crime, violation" …] [--repeats 10] [--jobs 1]

"moew" in docs/results.md has settings that were made for each data set. Here nothing is set: rows, model,
metric and, where the experiment has one, the decision rule are those of the experiment, and the rest is what
`MetricSearch` does by itself. Prints the test metric of the unweighted model and of what is selected
, in the units of docs/results.md, with 95 % margins over repeats, and the selected model. Raw numbers are
in docs/results/default/default.csv; repeats that are there are not run again.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one process per core does the work

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import checkout  # noqa: F401  # finds experiments/, beside this folder
import numpy as np
from raw_numbers import RESULTS, measured
from sklearn.linear_model import LogisticRegression

from experiments import datasets, mnist, pages, spam
from experiments._crime_measures import MEASURES, RULES
from experiments._crime_study import Crime
from experiments._experiment import PERCENT, Options
from experiments._stand_ins import HIDDEN, Training
from experiments._wine_rows import HIDDEN as WINE_HIDDEN
from experiments._wine_rows import JUDGE, ROWS_A_STEP, Wine, most_frequent_flags
from experiments.figure_1 import draw_parts
from moew import MetricSearch, NetworkClassifier, NetworkRegressor, Rows
from moew._util.margins import margin
from moew._util.seeds import generator
from moew.data import LabelledRows
from moew.metrics import make_metric, precision_at_recall, worst_class_error

FIELDS = ("unweighted", "selected", "honest", "accuracy before", "accuracy after", "chosen")


class Part(NamedTuple):
    """Training, validation or test rows."""

    X: np.ndarray
    y: np.ndarray
    columns: Mapping[str, np.ndarray] = {}


Parts = tuple[Part, Part, Part]


@dataclass(frozen=True)
class Case:
    """An experiment: its rows in a repeat, and what is trained and evaluated."""

    rows: Callable[[int], Parts]
    model: Any
    metric: Any
    decision: Any = None
    unit: float = 1.0


def toy_rows(repeat: int) -> Parts:
    train, validation, test = (Part(*rows) for rows in draw_parts(generator(0, "toy", repeat)))
    return train, validation, test


def crime_rows(study: str, repeat: int) -> Parts:
    crime = Crime(Options(repeat + 1), datasets.load_crime(), study)
    data = crime.data
    train, validation, test = (
        Part(data.X[rows[repeat]], data.y[rows[repeat]], {"group": data.columns["group"][rows[repeat]]})
        for rows in crime.rows
    )
    return train, validation, test


def wine_rows(load: Callable[[], datasets.Dataset], repeat: int) -> Parts:
    wine = Wine(Options(repeat + 1), load())
    train, validation, test = (
        Part(part.X[repeat], part.y[repeat]) for part in (wine.train, wine.validation, wine.test)
    )
    return train, validation, test


def spam_rows(study: int, repeat: int) -> Parts:
    rows = spam.Spam(Options(repeat + 1), datasets.load_credit_default(), study)
    train, validation, test = (
        Part(
            part.X[repeat],
            part.y[repeat].astype(int),
            {"value": part.value[repeat], "harm": part.harm[repeat]},
        )
        for part in (rows.train, rows.validation, rows.test)
    )
    return train, validation, test


def pages_rows(_repeat: int) -> Parts:
    data = datasets.load_blog()
    rows = pages.Pages(Options(1), data)
    train, validation, test = (
        Part(X[0], part.y.astype(int), {"grade": grades})
        for X, part, grades in (
            (rows.X, data.train, rows.grades),
            (rows.X_val, data.valid, rows.grades_val),
            (rows.X_test, data.test, rows.grades_test),
        )
    )
    return train, validation, test


def mnist_rows(_repeat: int) -> Parts:
    rows = mnist.Mnist(Options(1), datasets.load_mnist())
    return Part(rows.X, rows.y), Part(rows.X_val, rows.y_val), Part(rows.X_test, rows.y_test)


def mean_grade(_y_true: Any, score: Any, grade: Any) -> float:
    """The mean grade of the 40 % with the highest scores."""
    n = round(pages.SHARES[0] * len(score))
    return float(np.mean(np.asarray(grade)[np.argsort(-np.asarray(score), kind="stable")[:n]]))


def network(training: Training) -> NetworkClassifier:
    """The classifier of spam and pages; their rows are scaled."""
    return NetworkClassifier(
        HIDDEN,
        loss=training.loss,
        batch_size=training.batch_size,
        learning_rate=training.learning_rate,
        scale=False,
    )


def digits_network(hidden: int, loss: str) -> NetworkClassifier:
    return NetworkClassifier((hidden,), loss=loss, scale=False)


WINE = NetworkRegressor(WINE_HIDDEN, batch_size=ROWS_A_STEP, scale=False)
LINEAR = NetworkClassifier((), loss="hinge", scale=False)
GRADE = make_metric(mean_grade, response="score", name="mean grade")
CASES = {
    "toy": Case(toy_rows, LogisticRegression(), precision_at_recall(0.95), unit=PERCENT),
    **{
        f"MNIST{title}, h = {hidden}": Case(
            mnist_rows, digits_network(hidden, loss), worst_class_error(), unit=PERCENT
        )
        for title, loss in (("", "sigmoid_cross_entropy"), (" with the softmax", "softmax"))
        for hidden in mnist.SECOND_HIDDEN
    },
    "wine": Case(partial(wine_rows, datasets.load_wine), WINE, JUDGE.evaluator.metric, unit=PERCENT),
    "wine-full": Case(
        partial(wine_rows, lambda: most_frequent_flags(datasets.load_wine_full())),
        WINE,
        JUDGE.evaluator.metric,
        unit=PERCENT,
    ),
    **{
        f"crime{title}, {what}": Case(
            partial(crime_rows, study), LINEAR, MEASURES[measure], RULES[rule], PERCENT
        )
        for study, title in (("iid", ""), ("shifted", " shifted"))
        for what, measure, rule in (
            ("violation", "FPR violation", "training accuracy"),
            ("post-shift, accuracy", "accuracy", "post-shift"),
        )
    },
    **{
        f"spam, study {study}": Case(
            partial(spam_rows, study),
            network(spam.TRAINING),
            spam.JUDGE.evaluator.metric,
            spam.JUDGE.evaluator.rule,
        )
        for study in spam.SHARES
    },
    "pages, 40 % selected": Case(pages_rows, network(pages.TRAININGS[pages.STATED]), GRADE, unit=PERCENT),
}


def run_repeat(name: str, repeat: int) -> tuple[Any, ...]:
    """The test metric of the unweighted model and of the selected model, and what that is; as FIELDS."""
    case = CASES[name]
    train, validation, test = case.rows(repeat)
    search = MetricSearch(
        case.model, metric=case.metric, decision=case.decision, verbose=False, random_state=repeat
    )
    search.fit(
        train.X,
        train.y,
        validation=Rows(validation.X, validation.y, columns=validation.columns or None),
        columns=train.columns or None,
    )
    fitted, rows = search.fitted_, LabelledRows(test.X, test.y, columns=test.columns)
    assert fitted.unweighted is not None
    models = fitted.unweighted, fitted.winner
    before, after = (case.unit * fitted.evaluator.value_on(model, rows) for model in models)
    accuracy = [math.nan, math.nan]
    if fitted.task == "classification":
        accuracy = [
            PERCENT * float(np.mean(model.decide(rows.X, rows.columns) == rows.y)) for model in models
        ]
    return before, after, case.unit * search.honest_score_, *accuracy, search.selected_


def line(name: str, found: Any) -> str:
    before, after, honest, *accuracy, chosen = zip(*found, strict=True)
    better = "↑" if CASES[name].metric.greater_is_better else "↓"
    gain = np.subtract(after, before)
    cells = [f"{np.mean(values):.4g} ± {margin(np.array(values)):.2g}" for values in (before, after)]
    most = ", ".join(f"{strategy} {k}" for strategy, k in Counter(chosen).most_common(3))
    return (
        f"| {name} {better} | {len(found)} | {' | '.join(cells)} | {np.mean(gain):+.3g} ± {margin(gain):.2g} "
        f"| {np.mean(honest):.4g} | {np.mean(np.subtract(accuracy[1], accuracy[0])):+.1f} | {most} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--case", choices=CASES, nargs="+", default=list(CASES))
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS / "default" / "default.csv")
    given = parser.parse_args()
    every = measured(given.out, FIELDS, run_repeat, given.case, given.repeats, given.jobs)
    heads = ["test metric", "repeats", "unweighted", "the default", "difference", "honest score"]
    print(f"| {' | '.join([*heads, 'accuracy, points', 'selected'])} |")
    print("|" + "---|" * (len(heads) + 2))
    for name, found in every.items():
        print(line(name, found))


if __name__ == "__main__":
    main()
