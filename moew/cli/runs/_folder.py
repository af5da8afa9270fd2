"""The run folder: its files, when it may be written, and saving a finished search in it."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from moew._util.plain import plain
from moew._util.state import State
from moew._util.whole_files import write_whole, writing
from moew.cli.runs._replace import check_replaceable, new_place, recover, swap
from moew.cli.runs._schema import Schema, TableRows
from moew.cli.runs._tables import write_table
from moew.exceptions import InvalidInputError
from moew.saving import (
    UNWEIGHTED,
    is_model_file,
    model_files,
    needs_trust,
    reading,
    save_model,
    versions,
)
from moew.search import FittedSearch
from moew.search._saved import PARTS, parts_of
from moew.search._ways import CONSTANT, TUNED

SETTINGS, RESULT = "settings.toml", "result.json"
STUDY, WEIGHTS = "study.log", "weights.parquet"
PREDICTIONS = f"{STUDY}.predictions"  # a folder, which the study makes beside its file
REPORT_DATA, REPORT = "report.json", "report.html"
MODELS, CHECKSUM = "models", "checksum"  # in the parts: digests of the models' files, and of the parts
SIMPLE = "simple_ways"  # in the parts: see `simple_parts`
_BEFORE_MODELS = (RESULT, PARTS, STUDY, PREDICTIONS, WEIGHTS, REPORT_DATA, REPORT)


class RunFolder:
    """The files of one run. Other files in the folder are left alone.

    A run that replaces another is written into a folder beside it, until it is complete: `work`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._place = Path(os.path.realpath(path))  # links are followed: the folder itself is renamed
        self.work = self._place
        self._is_new = False

    @property
    def study(self) -> Path:
        """The Optuna journal."""
        return self.work / STUDY

    @property
    def settings_of_what_is_written(self) -> Path:
        """The settings of the run that is being written into this folder, or beside it to replace it."""
        new = new_place(self._place)
        self.work = new if (new / SETTINGS).exists() else self._place
        if not (self.work / SETTINGS).exists():
            raise InvalidInputError(f"{self.path} holds no {SETTINGS}; it is no run of `moew fit`.")
        return self.work / SETTINGS

    @property
    def is_unfinished(self) -> bool:
        """Whether a run was begun in this folder, or beside it to replace what is there, and is not done."""
        new = new_place(self._place)
        where = new if (new / SETTINGS).exists() else self._place
        return (where / SETTINGS).exists() and not (where / RESULT).exists()

    def check(self, *, force: bool = False, resume: bool = False) -> None:
        """Raise unless the folder is empty or not there, is a run to go on with, or may be replaced."""
        for package in ("pyarrow", "skops"):  # before hours of training, not after
            if find_spec(package) is None:
                raise InvalidInputError(f"a run folder needs {package}: pip install 'moew[cli]'.")
        if force and resume:
            raise InvalidInputError("--force begins anew and --resume goes on; give one of them.")
        recover(self._place, _is_of_run)
        if self.path.exists() and not self.path.is_dir():
            raise InvalidInputError(f"--out {self.path} is a file; name a folder.")
        holds = self._place.is_dir() and any(self._place.iterdir())
        new = new_place(self._place)
        if not (force or resume) and (holds or new.exists()):
            raise InvalidInputError(
                f"the folder {self.path} is not empty. Name another one with --out, go on with an "
                f"interrupted run with --resume or `moew resume {shlex.quote(str(self.path))}`, or replace "
                "it with --force."
                if holds
                else f"{new} holds an interrupted run that was to replace {self.path}. Go on with it with "
                "--resume, or begin anew with --force."
            )
        if force and holds:
            check_replaceable(self._place)
        self.work = new if (force and holds) or (resume and new.exists()) else self._place
        if resume and self.work == self._place and holds and not (self.work / SETTINGS).exists():
            raise InvalidInputError(f"{self.path} is no run of `moew fit`, so there is nothing to resume.")

    def begin(self, settings: str, *, force: bool = False, resume: bool = False) -> None:
        """Make the folder that is written to, and record the settings (TOML).

        What an interrupted run was begun with stays recorded until the study has accepted other settings.
        """
        self.check(force=force, resume=resume)
        if force:  # an interrupted run that was to replace this one is given up, the complete one is not
            shutil.rmtree(new_place(self._place), ignore_errors=True)
        with writing(self.work):
            self.work.mkdir(0o700, parents=True, exist_ok=True)  # what it tells of the data is private
        self._is_new = not (self.work / SETTINGS).exists()
        if self._is_new:
            self._write(SETTINGS, settings)

    def take_back(self) -> None:
        """Undo `begin`; what was there before stays."""
        if self._is_new:
            (self.work / SETTINGS).unlink()
            if not any(self.work.iterdir()):
                self.work.rmdir()

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
        """Write everything of a finished search, and then put it into the place of the run that it replaces.

        `rows` are the training rows, `settings` is TOML, `page` the report's. Returns the result as it is
        written, with what is known of the model's file.
        """
        ids = rows.ids[fitted.training_rows]
        write_table({rows.id_name: ids, "weight": fitted.weights}, self.work / WEIGHTS, private=True)
        some = rows.X.iloc[:200]
        name = save_model(fitted.winner.model, self.work, some)
        if fitted.unweighted is not None:
            save_model(fitted.unweighted.model, self.work, some, UNWEIGHTED)
        models = {model: file_digest(self.work / model) for model in model_files(self.work)}
        simple = {SIMPLE: simple_parts(fitted)}
        parts = plain({"schema": schema.state(), **parts_of(fitted), **simple, MODELS: models})
        self._write_json(PARTS, {**parts, CHECKSUM: parts_checksum(parts)})
        self._write_json(REPORT_DATA, report)
        self._write(REPORT, page)
        self._write(SETTINGS, settings)
        trusted = needs_trust(self.work)
        result = {**result, "model": {"file": name, "needs_trust": trusted}, "versions": versions()}
        self._write_json(RESULT, result)
        if self.work != self._place:
            with writing(self.path):
                swap(self._place, _is_of_run)
            self.work = self._place
        return result

    def files(self) -> list[str]:
        """The names of the run's files, and of its folder of predictions, that exist; last the settings,
        without which there is no run."""
        names = (*_BEFORE_MODELS, *model_files(self.work), SETTINGS)
        return [name for name in names if (self.work / name).exists()]

    def read_json(self, name: str) -> Any:
        """The content of a JSON file of the run; raise if the run is not finished."""
        if not (self.path / name).exists():
            how = f" (`moew resume {shlex.quote(str(self.path))}` finishes it)" if self.is_unfinished else ""
            raise InvalidInputError(f"{self.path} holds no {name}; it is no finished run of `moew fit`{how}.")
        with reading(self.path / name):
            return json.loads((self.path / name).read_text(encoding="utf-8"))

    def _write_json(self, name: str, content: Any) -> None:
        self._write(name, json.dumps(plain(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n")

    def _write(self, name: str, text: str) -> None:
        write_whole(self.work / name, lambda new: new.write_text(text, encoding="utf-8"), private=True)


def _is_of_run(name: str) -> bool:
    """Whether a file of that name belongs to a run, not to the user."""
    return name in (*_BEFORE_MODELS, SETTINGS, f"{STUDY}.workers", f"{STUDY}.lock") or is_model_file(name)


def simple_parts(fitted: FittedSearch) -> State:
    """What makes the models of simple ways of the unweighted model: a tuned rule, and a constant."""
    tuned, constant = (fitted.simple_models.get(way) for way in (TUNED, CONSTANT))
    return {
        "tuned_decision": None if tuned is None else tuned.rule.state(),
        "constant": None if constant is None else constant.model.constant[0],
    }


def parts_checksum(parts: State) -> str:
    """A digest of what is in the parts besides their checksum, to see later whether it is the same."""
    content = {name: value for name, value in parts.items() if name != CHECKSUM}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a file, to see later whether it is the same."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
