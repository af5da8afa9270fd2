"""The run folder: its files, when it may be written, and saving a finished search in it."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from moew._util.plain import plain
from moew._util.state import State
from moew.cli.runs import _model_files
from moew.cli.runs._damage import reading
from moew.cli.runs._schema import Schema, TableRows
from moew.cli.runs._tables import write_table
from moew.exceptions import InvalidInputError
from moew.search import FittedSearch
from moew.types import DecisionRule

SETTINGS, RESULT, PARTS = "settings.toml", "result.json", "parts.json"
STUDY, WEIGHTS = "study.log", "weights.parquet"
REPORT_DATA, REPORT = "report.json", "report.html"
_BEFORE_MODELS = (RESULT, PARTS, STUDY, WEIGHTS, REPORT_DATA, REPORT)
_PACKAGES = ("moew", "scikit-learn", "numpy", "lightgbm", "xgboost", "xgboost-cpu", "skops")


class RunFolder:
    """The files of one run. Other files in the folder are left alone."""

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
            self._write(SETTINGS, settings)

    def take_back(self) -> None:
        """Undo `begin`, and put an old run back."""
        for name in self.files():
            (self.path / name).unlink()
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
        for name in RunFolder(source).files():
            (source / name).replace(target / name)

    def save(
        self,
        fitted: FittedSearch,
        schema: Schema,
        rows: TableRows,
        settings: str,
        result: State,
        report: State,
        page: str,
    ) -> State:
        """Write everything of a finished search, and then remove the run that it replaces.

        `rows` are the training rows, `settings` is TOML, `page` the report's. Returns the result as it is
        written, with what is known of the model's file.
        """
        ids = rows.ids[fitted.training_rows]
        write_table({rows.id_name: ids, "weight": fitted.weights}, self.path / WEIGHTS)
        self._write_json(PARTS, parts_of(fitted, schema))
        some = rows.X.iloc[:200]
        name = _model_files.save_model(fitted.winner.model, self.path, some)
        if fitted.unweighted is not None:
            _model_files.save_model(fitted.unweighted.model, self.path, some, _model_files.UNWEIGHTED)
        self._write_json(REPORT_DATA, report)
        self._write(REPORT, page)
        self._write(SETTINGS, settings)
        trusted = _model_files.needs_trust(self.path)
        result = {**result, "model": {"file": name, "needs_trust": trusted}, "versions": _versions()}
        self._write_json(RESULT, result)
        shutil.rmtree(self._old, ignore_errors=True)
        return result

    def files(self) -> list[str]:
        """The names of the run's files that exist; last the settings, without which there is no run."""
        names = (*_BEFORE_MODELS, *_model_files.model_files(self.path), SETTINGS)
        return [name for name in names if (self.path / name).exists()]

    def read_json(self, name: str) -> Any:
        """The content of a JSON file of the run; raise if the run is not finished."""
        if not (self.path / name).exists():
            raise InvalidInputError(
                f"{self.path} holds no {name}; it is no finished run of `moew fit`"
                f"{' (the same `moew fit` with --resume finishes it)' if self.study.exists() else ''}."
            )
        with reading(self.path / name):
            return json.loads((self.path / name).read_text(encoding="utf-8"))

    def _write_json(self, name: str, content: Any) -> None:
        self._write(name, json.dumps(plain(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n")

    def _write(self, name: str, text: str) -> None:
        (self.path / name).write_text(text, encoding="utf-8")


def parts_of(fitted: FittedSearch, schema: Schema) -> State:
    """What predicting and weighting need besides the model, without pickle."""
    winner, unweighted = fitted.winner, fitted.unweighted
    return {
        "schema": schema.state(),
        "weight_function": fitted.weight_function.state(),
        "decision": _state(winner.rule),
        "unweighted_decision": None if unweighted is None else _state(unweighted.rule),
        "classes": winner.classes,
        "pos_label": winner.pos_label,
    }


def _state(rule: DecisionRule | None) -> State | None:
    return None if rule is None else rule.state()


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
