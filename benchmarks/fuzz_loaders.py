"""Cases of damaged files of finished searches: those of `save`, and run folders of `moew fit`.

Damaged bytes must be refused, or change nothing that is predicted. Edited entries of JSON cannot always be
told from what was written; they must be refused, or give an answer for each row that is one of the classes.
"""

from __future__ import annotations

import atexit
import io
import json
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any
from zipfile import ZipFile

import numpy as np
import pandas as pd
from fuzz_cases import (
    chance,
    checking,
    damaged_bytes,
    damaged_json,
    expect,
    expect_same,
    pick,
)
from fuzz_rows import Rng, make_problem
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier

from moew import MetricSearch, load
from moew.cli.runs import load_run
from moew.search import WEIGHTS

_N_SAVED = 8
_FILE = "search.moew"
_MODELS = {0: Ridge(), 2: LogisticRegression(), 3: DecisionTreeClassifier(max_depth=2)}
RUN_OPTIONS = (
    ("--model", "logistic"),
    ("--model", "logistic", "--strategies", "example weights", "--decision", "tuned"),
    (
        "--model",
        "random_forest",
        "--model-option",
        "n_estimators=2",
        "--strategies",
        "example weights",
        "--set",
        "final=best",
    ),
    ("--model", "ridge", "--task", "regression", "--metric", "r_squared"),
)


@dataclass(frozen=True)
class Saved:
    """A search in a file, and what it predicts."""

    path: Path
    rows: dict[str, Any]
    predictions: Any
    weights: Any
    classes: set[Any] | None
    numbers: tuple[float, ...]


@dataclass(frozen=True)
class Run:
    """A run folder, a table of its rows, and what it predicts."""

    folder: Path
    table: Path
    predictions: dict[str, Any]
    weights: Any
    classes: set[Any] | None


def loader_case(rng: Rng) -> None:
    """Damage a copy of a saved search or of a run, load it and predict."""
    if chance(rng, 0.5):
        _saved_case(rng, saved_search(int(rng.integers(_N_SAVED))))
    else:
        _run_case(rng, finished_run(int(rng.integers(len(RUN_OPTIONS)))))


def new_folder() -> Path:
    """A folder that goes away with the process."""
    folder = Path(mkdtemp(prefix="fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def saved_search(variant: int) -> Saved:
    """A saved search, the same each time."""
    rng = np.random.default_rng([variant, 11])
    problem = make_problem(rng, odd=False)
    search = MetricSearch.from_settings(
        _MODELS[problem.n_classes],
        metric="worst_class_error" if problem.n_classes else None,
        embedding=pick(rng, ["label", "directions"]),
        final=pick(rng, ["best", "ensemble"]),
        strategies="auto" if variant % 2 == 0 else WEIGHTS,
        decision="tuned" if variant == 1 and problem.n_classes else None,
        honest=None,
        n_candidates=4,
        batch_size=4,
        random_state=variant,
    ).fit(**problem.arguments)
    path = new_folder() / _FILE
    search.save(path)
    classes = set(search.classes_.tolist()) if problem.n_classes else None
    X, y = problem.rows["X"], problem.rows["y"]
    numbers = (search.best_score_, search.honest_score_, search.unweighted_score_)
    return Saved(path, problem.rows, search.predict(X), search.example_weights(X, y), classes, numbers)


def _saved_case(rng: Rng, saved: Saved) -> None:
    data = saved.path.read_bytes()
    edited = chance(rng, 0.5)
    damaged = _edited_zip(rng, data) if edited else damaged_bytes(rng, data)
    with TemporaryDirectory() as name:
        path = Path(name) / _FILE
        path.write_bytes(damaged)
        search = load(path)
    X, y = saved.rows["X"], saved.rows["y"]
    try:
        found = search.predict(X)
    except ValueError as error:
        if edited and "features" in str(error):  # another number of columns, by scikit-learn's own check
            return
        raise
    weights = search.example_weights(X, y)
    with checking("a loaded search"):
        expect(np.shape(found) == np.shape(saved.predictions), f"predictions of shape {np.shape(found)}")
        if saved.classes is not None and not edited:
            expect(set(np.asarray(found).tolist()) <= saved.classes, "a prediction is none of the classes")
        if not edited:
            expect_same(found, saved.predictions, "predictions of a damaged file")
            expect_same(weights, saved.weights, "weights of a damaged file")
            numbers = (search.best_score_, search.honest_score_, search.unweighted_score_)
            expect_same(numbers, saved.numbers, "scores of a damaged file")
        str(search.result_)


def _edited_zip(rng: Rng, data: bytes) -> bytes:
    """The archive with an entry of JSON changed, an entry damaged, left out or exchanged."""
    with ZipFile(io.BytesIO(data)) as packed:
        contents = {name: packed.read(name) for name in packed.namelist()}
    name = pick(rng, sorted(contents))
    what = pick(rng, ["edit", "edit", "edit", "edit", "damage", "delete", "exchange"])
    if what == "edit":
        name = pick(rng, [each for each in sorted(contents) if each.endswith(".json")])
        contents[name] = json.dumps(damaged_json(rng, json.loads(contents[name]))).encode()
    elif what == "damage":
        contents[name] = damaged_bytes(rng, contents[name])
    elif what == "delete":
        del contents[name]
    else:
        contents[name] = contents[pick(rng, sorted(contents))]
    new = io.BytesIO()
    with ZipFile(new, "w") as packed:
        for entry, content in contents.items():
            packed.writestr(entry, content)
    return new.getvalue()


def run_table(rng: Rng, n_classes: int, n: int = 60) -> pd.DataFrame:
    """A table for the command line: numbers, a text, an id and a label."""
    x = rng.normal(size=(n, 2))
    signal = x[:, 0] + 0.7 * rng.normal(size=n)
    label: Any = np.round(20 + 4 * signal, 3)
    if n_classes:
        label = np.array(["no", "yes", "perhaps"])[np.digitize(signal, [0.3, 1.0][: n_classes - 1])]
    colour = rng.choice(["red", "green"], n)
    return pd.DataFrame({"id": np.arange(n) + 100, "a": x[:, 0], "b": x[:, 1], "colour": colour, "y": label})


@cache
def finished_run(variant: int) -> Run:
    """A run folder of the command line, the same each time."""
    from click.testing import CliRunner

    from moew.cli import commands

    folder = new_folder()
    regression = "regression" in RUN_OPTIONS[variant]
    frame = run_table(np.random.default_rng([variant, 5]), 0 if regression else 2)
    table, run = folder / "train.csv", folder / "run"
    frame.to_csv(table, index=False)
    options = ["--metric", "worst_class_error", *RUN_OPTIONS[variant]]
    words = ["fit", str(table), "--label", "y", "--id", "id", "--out", str(run), *options]
    words += ["--candidates", "3", "--set", "batch_size=3", "--set", "embedding=label"]
    ended = CliRunner().invoke(commands(), words)
    if ended.exit_code != 0:
        raise RuntimeError(f"a sound run of the command line failed: {ended.output}")
    found = load_run(run)
    predictions = found.predict(found.rows_to_predict(table))
    weights = found.weights(found.rows_to_weigh(table))
    return Run(run, table, predictions, weights, None if regression else {"no", "yes"})


def _run_case(rng: Rng, run: Run) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name) / "run"
        shutil.copytree(run.folder, folder)
        edited, what = _damaged_folder(rng, folder)
        found = load_run(folder)
        predictions = found.predict(found.rows_to_predict(run.table))
        weights = found.weights(found.rows_to_weigh(run.table))
    with checking(f"a loaded run, {what}"):
        n = len(run.weights)
        expect(all(np.shape(column) == (n,) for column in predictions.values()), "columns of other lengths")
        if run.classes is not None and not edited:
            answers = set(np.asarray(predictions["prediction"]).tolist())
            expect(answers <= run.classes, "a prediction is none of the classes")
        if not edited:
            expect(predictions.keys() == run.predictions.keys(), f"columns {list(predictions)}, {what}")
            for column, values in run.predictions.items():
                expect_same(predictions[column], values, f"{column} of a damaged run, {what}")
            expect_same(weights, run.weights, f"weights of a damaged run, {what}")


def _damaged_folder(rng: Rng, folder: Path) -> tuple[bool, str]:
    """Damage a file of the folder; whether an entry was edited on purpose, and what was done."""
    path = folder / _FILE
    what = pick(rng, ["bytes", "bytes", "edit", "edit", "delete", "exchange", "other file"])
    others = [other for other in sorted(folder.iterdir()) if other.is_file() and other != path]
    if what == "edit":
        path.write_bytes(_edited_zip(rng, path.read_bytes()))
        return True, "edited"
    if what == "delete":
        path.unlink()
    elif what == "exchange":
        path.write_bytes(pick(rng, others).read_bytes())
    elif what == "other file":  # loading does not read it
        other = pick(rng, others)
        other.write_bytes(damaged_bytes(rng, other.read_bytes()))
    else:
        path.write_bytes(damaged_bytes(rng, path.read_bytes()))
    return False, what
