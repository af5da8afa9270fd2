"""Cases of damaged stores: a stored search is damaged and fitted again.

It must be refused, or end with exactly the result of the search that nobody damaged. Anything else is a
silent wrong answer.
"""

from __future__ import annotations

import atexit
import json
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any
from unittest.mock import patch

import numpy as np
from fuzz_cases import WrongAnswer, chance, damaged_bytes, damaged_json, expect_same, pick
from fuzz_rows import Rng, make_problem
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier

from moew import MetricSearch, WeightStudy
from moew.search import WEIGHTS

FILE = "study.db"
_N_VARIANTS = 6
_BATCH = 3
_FIRST_BATCH = 1 + _BATCH  # candidates up to the end of the first batch
_MODELS = {0: Ridge(), 2: LogisticRegression(), 3: DecisionTreeClassifier(max_depth=2)}


class CutOff(Exception):  # noqa: N818  (as KeyboardInterrupt)
    """Ends a search in the middle, as a power cut would."""


@dataclass(frozen=True)
class Stored:
    """A stored search: where it lies, how it was made, and what it ends with when nothing is damaged."""

    folder: Path
    rows: dict[str, Any]
    settings: dict[str, Any]
    model: Any
    result: tuple[Any, ...]


def store_case(rng: Rng) -> None:
    """Damage a copy of a stored search in one way, and fit it again."""
    stored = stored_search(int(rng.integers(_N_VARIANTS)), cut=chance(rng, 0.4))
    with TemporaryDirectory() as name:
        folder = Path(name) / "there"
        shutil.copytree(stored.folder, folder)
        damage = pick(rng, [_of_bytes, *[_of_tables] * 4])(rng, folder / FILE)
        search = _search(stored.model, stored.settings, folder / FILE)
        search.fit(**stored.rows)
        _close(search)
        for what, got, wanted in zip(_WHAT, _result(search, stored.rows), stored.result, strict=True):
            try:
                expect_same(got, wanted, what)
            except WrongAnswer as wrong:
                raise WrongAnswer(f"after {damage}: {wrong}") from None


@cache
def stored_search(variant: int, cut: bool) -> Stored:
    """A search that was stored, the same each time; `cut`: one that was ended after its first batch."""
    rng = np.random.default_rng([variant, 7])
    problem = make_problem(rng, odd=False)
    problem.rows = {key: value for key, value in problem.rows.items() if key[:2] in ("X", "y", "X_", "y_")}
    rows = problem.arguments
    settings: dict[str, Any] = {
        "embedding": pick(rng, ["label", "directions"]),
        "sampler": pick(rng, ["random", "gp_bucb"]),
        "final": pick(rng, ["best", "ensemble"]),
        "strategies": "auto" if variant % 3 == 0 else WEIGHTS,
        "honest": "halves" if variant % 2 else None,
        "n_candidates": 2 * _BATCH,
        "batch_size": _BATCH,
        "random_state": variant,
    }
    model = _MODELS[problem.n_classes]
    folder = Path(mkdtemp(prefix="fuzz-store-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    whole = _search(model, settings, folder / FILE).fit(**rows)
    result = _result(whole, rows)
    _close(whole)
    if cut:
        shutil.rmtree(folder)
        folder.mkdir()
        _cut_off(_search(model, settings, folder / FILE), rows)
    return Stored(folder, rows, settings, model, result)


def _search(model: Any, settings: dict[str, Any], path: Path) -> MetricSearch:
    return MetricSearch.from_settings(model, storage=path, **settings)


def _close(search: MetricSearch) -> None:
    search.study_.close()


def _cut_off(search: MetricSearch, rows: dict[str, Any]) -> None:
    """Fit, and end when the second batch is asked for."""
    original = WeightStudy.ask_until

    def ask_until(study: WeightStudy, end: int) -> Any:
        if end > _FIRST_BATCH:
            raise CutOff
        return original(study, end)

    with patch.object(WeightStudy, "ask_until", ask_until), suppress(CutOff):
        search.fit(**rows)


_WHAT = ("predictions", "weights", "chosen", "best score", "honest score", "alphas", "values", "parameters")


def _result(search: MetricSearch, rows: dict[str, Any]) -> tuple[Any, ...]:
    return (
        np.asarray(search.predict(rows["X"])),
        search.sample_weight_,
        search.selected_,
        search.best_score_,
        search.honest_score_,
        np.stack([trial.alpha for trial in search.result_.trials]),
        np.array([trial.value for trial in search.result_.trials]),
        search.result_.n_models,
    )


def _of_bytes(rng: Rng, path: Path) -> str:
    path.write_bytes(damaged_bytes(rng, path.read_bytes()))
    return "damaged bytes"


def _of_tables(rng: Rng, path: Path) -> str:
    """Change, delete or double a row of a table of the database."""
    with closing(sqlite3.connect(path)) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        filled = [n for n in sorted(names) if database.execute(f'SELECT count(*) FROM "{n}"').fetchone()[0]]
        table = pick(rng, filled)
        ids = [row for (row,) in database.execute(f'SELECT rowid FROM "{table}"')]
        columns = [column[1] for column in database.execute(f'PRAGMA table_info("{table}")')]
        row, column = pick(rng, ids), pick(rng, columns)
        what = pick(rng, ["change", "change", "change", "delete", "swap", "all", "drop"])
        try:
            _change_table(rng, database, what, table, column, row, ids)
            database.commit()
        except sqlite3.Error:  # the table's own rules forbid it
            database.rollback()
            what = f"nothing ({what} is not possible)"
    return f"{what} {table}.{column}, row {row}"


def _change_table(
    rng: Rng, database: Any, what: str, table: str, column: str, row: int, ids: list[int]
) -> None:
    read, write = f'SELECT "{column}" FROM "{table}" WHERE rowid = ?', f'UPDATE "{table}" SET "{column}" = ?'
    (value,) = database.execute(read, (row,)).fetchone()
    if what == "change":
        try:
            changed = json.dumps(damaged_json(rng, json.loads(value)))
        except (TypeError, ValueError):
            changed = damaged_json(rng, value)
        if isinstance(changed, dict | list):
            changed = json.dumps(changed)
        if isinstance(changed, int) and abs(changed) > 2**62:
            changed = 2**62
        database.execute(f"{write} WHERE rowid = ?", (changed, row))
    elif what == "delete":
        database.execute(f'DELETE FROM "{table}" WHERE rowid = ?', (row,))
    elif what == "swap":
        other = pick(rng, ids)
        (second,) = database.execute(read, (other,)).fetchone()
        database.execute(f"{write} WHERE rowid = ?", (second, row))
        database.execute(f"{write} WHERE rowid = ?", (value, other))
    elif what == "all":
        database.execute(f'DELETE FROM "{table}"')
    else:
        database.execute(f'DROP TABLE "{table}"')
