"""The run folder: its files, when it may be written, and how a finished search is put into it."""

from __future__ import annotations

import hashlib
import json
import math
import platform
import shutil
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from moew._util.state import State
from moew.cli.runs import _model_files
from moew.cli.runs._damage import reading
from moew.cli.runs._schema import Schema, TableRows
from moew.cli.runs._tables import write_table
from moew.exceptions import InvalidInputError

SETTINGS, RESULT, PARTS = "settings.toml", "result.json", "parts.json"
STUDY, WEIGHTS = "study.log", "weights.parquet"
REPORT_DATA, REPORT = "report.json", "report.html"
_OURS = (RESULT, PARTS, STUDY, WEIGHTS, REPORT_DATA, REPORT, *_model_files.FILES, SETTINGS)
_PACKAGES = ("moew", "scikit-learn", "numpy", "lightgbm", "xgboost", "xgboost-cpu", "skops")


class RunFolder:
    """One run's files. Everything that is not moew's stays as it is."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def study(self) -> Path:
        """The Optuna journal."""
        return self.path / STUDY

    def check(self, *, force: bool = False, resume: bool = False) -> None:
        """Raise unless the folder is empty or not there, is a run to go on with, or may be replaced."""
        for package in ("pyarrow", "skops"):  # before hours of training, not after
            if find_spec(package) is None:
                raise InvalidInputError(f"a run folder needs {package}: pip install 'moew[cli]'.")
        if force and resume:
            raise InvalidInputError("--force begins anew and --resume goes on; give one of them.")
        holds = sorted(entry.name for entry in self.path.iterdir()) if self.path.is_dir() else []
        if self.path.exists() and not self.path.is_dir():
            raise InvalidInputError(f"--out {self.path} is a file; name a folder.")
        if resume and holds and not (self.path / SETTINGS).exists():
            raise InvalidInputError(f"{self.path} is no run of `moew fit`, so there is nothing to resume.")
        if holds and not (force or resume):
            raise InvalidInputError(
                f"the folder {self.path} is not empty. Name another one with --out, go on with an "
                "interrupted run with --resume, or replace it with --force."
            )

    def begin(self, settings: str, *, force: bool = False, resume: bool = False) -> None:
        """Make the folder, without the files of an old run, and record the settings (TOML).

        What an interrupted run was begun with stays recorded until the study has accepted other settings.
        """
        self.check(force=force, resume=resume)
        self.path.mkdir(parents=True, exist_ok=True)
        if force:
            self._move(self.path, self._old)
            (self.path / f"{STUDY}.lock").unlink(missing_ok=True)  # of a process that was killed
        if not (self.path / SETTINGS).exists():
            self.write_settings(settings)

    def take_back(self) -> None:
        """Undo `begin`: nothing was trained, and an old run is as it was."""
        for name in _OURS:
            (self.path / name).unlink(missing_ok=True)
        if self._old.exists():
            self._move(self._old, self.path)
            self._old.rmdir()
        if not any(self.path.iterdir()):
            self.path.rmdir()

    @property
    def _old(self) -> Path:
        """Where the files of a run that is being replaced wait until the new one is saved."""
        return self.path / "replaced"

    @staticmethod
    def _move(source: Path, target: Path) -> None:
        target.mkdir(exist_ok=True)
        for name in _OURS:
            if (source / name).exists():
                (source / name).replace(target / name)

    def write_settings(self, settings: str) -> None:
        """Record the settings."""
        (self.path / SETTINGS).write_text(settings, encoding="utf-8")

    def save(self, search: Any, schema: Schema, rows: TableRows, result: State) -> State:
        """Put a fitted search into the folder; the result, completed, that is written there."""
        write_table(
            {rows.id_name: rows.ids[search.training_rows_], "weight": search.sample_weight_},
            self.path / WEIGHTS,
        )
        self._write_json(PARTS, parts_of(search, schema))
        some = rows.X.iloc[:200]
        name = _model_files.save_model(search.best_estimator_, self.path, some)
        if search.unweighted_estimator_ is not None:
            _model_files.save_model(search.unweighted_estimator_, self.path, some, _model_files.UNWEIGHTED)
        trusted = _model_files.needs_trust(self.path)
        result = {**result, "model": {"file": name, "needs_trust": trusted}, "versions": _versions()}
        self.write_result(result)
        shutil.rmtree(self._old, ignore_errors=True)
        return result

    def write_result(self, result: State) -> None:
        """What the search found, as JSON."""
        self._write_json(RESULT, result)

    def write_report(self, data: State, page: str) -> None:
        """The report's data and its page."""
        self._write_json(REPORT_DATA, data)
        (self.path / REPORT).write_text(page, encoding="utf-8")

    def files(self) -> list[str]:
        """Those of moew's files that are there."""
        return [name for name in _OURS if (self.path / name).exists()]

    def read_json(self, name: str) -> Any:
        """A file of the run; an error says that the folder is no finished run."""
        if not (self.path / name).exists():
            raise InvalidInputError(
                f"{self.path} holds no {name}; it is no finished run of `moew fit`"
                f"{' (the same `moew fit` with --resume finishes it)' if self.study.exists() else ''}."
            )
        with reading(self.path / name):
            return json.loads((self.path / name).read_text(encoding="utf-8"))

    def _write_json(self, name: str, content: Any) -> None:
        text = json.dumps(plain(content), indent=1, ensure_ascii=False, allow_nan=False)
        (self.path / name).write_text(text + "\n", encoding="utf-8")


def parts_of(search: Any, schema: Schema) -> State:
    """What predicting and weighting need besides the model, without pickle."""
    evaluator = search.evaluator_
    classes = None if evaluator.classes is None else evaluator.classes.tolist()
    return {
        "schema": schema.state(),
        "weight_function": search.weight_function_.state(),
        "decision": None if search.decision_ is None else search.decision_.state(),
        "unweighted_decision": None
        if search.unweighted_decision_ is None
        else search.unweighted_decision_.state(),
        "classes": classes,
        "pos_label": evaluator.pos_label,
    }


def plain(value: Any) -> Any:
    """As JSON can hold it: NumPy's numbers as Python's, and null for what is not finite."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def file_digest(path: Path) -> str:
    """SHA-256 of a file, to see later whether it is the same."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
