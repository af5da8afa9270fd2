"""The run folder: its files, when it may be written, and saving a finished search in it.

A run is replaced without a moment at which a kill would lose or mix the two. The new run is written into a
folder beside the old one. When it is complete, two renames swap them, and what else the user kept in the old
folder is moved over. A swap that was interrupted is completed when the folder is next looked at.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from moew._util.state import State, plain
from moew._util.whole_files import write_whole, writing
from moew.cli.runs._schema import Schema, TableRows
from moew.cli.runs._tables import write_table
from moew.exceptions import InvalidInputError
from moew.saving import reading, versions
from moew.search import FittedSearch, save_search

SETTINGS, RESULT, SEARCH = "settings.toml", "result.json", "search.moew"
STUDY, WEIGHTS = "study.db", "weights.parquet"
REPORT_DATA, REPORT = "report.json", "report.html"
_FILES = (RESULT, SEARCH, STUDY, WEIGHTS, REPORT_DATA, REPORT, SETTINGS)  # without the last there is no run


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
        """The file of SQLite with all candidates."""
        return self.work / STUDY

    @property
    def _written(self) -> Path:
        """Where a run was begun: beside this folder, to replace what is there, or in it."""
        new = _new_place(self._place)
        return new if (new / SETTINGS).exists() else self._place

    @property
    def settings_of_what_is_written(self) -> Path:
        """The settings of the run that is being written into this folder, or beside it to replace it."""
        self.work = self._written
        if not (self.work / SETTINGS).exists():
            raise InvalidInputError(f"{self.path} holds no {SETTINGS}; it is no run of `moew fit`.")
        return self.work / SETTINGS

    @property
    def is_unfinished(self) -> bool:
        """Whether a run was begun here and is not done."""
        return (self._written / SETTINGS).exists() and not (self._written / RESULT).exists()

    def check(self, *, force: bool = False, resume: bool = False) -> None:
        """Raise unless the folder is empty or not there, is a run to go on with, or may be replaced."""
        for package in ("pyarrow", "skops"):  # before hours of training, not after
            if find_spec(package) is None:
                raise InvalidInputError(f"a run folder needs {package}: pip install 'moew[cli]'.")
        if force and resume:
            raise InvalidInputError("--force begins anew and --resume goes on; give one of them.")
        _recover(self._place)
        if self.path.exists() and not self.path.is_dir():
            raise InvalidInputError(f"--out {self.path} is a file; name a folder.")
        holds = self._place.is_dir() and any(self._place.iterdir())
        new = _new_place(self._place)
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
            _check_replaceable(self._place)
        self.work = new if (force and holds) or (resume and new.exists()) else self._place
        if resume and self.work == self._place and holds and not (self.work / SETTINGS).exists():
            raise InvalidInputError(f"{self.path} is no run of `moew fit`, so there is nothing to resume.")

    def begin(self, settings: str, *, force: bool = False, resume: bool = False) -> None:
        """Make the folder that is written to, and record the settings (TOML).

        What an interrupted run was begun with stays recorded until the study has accepted other settings.
        """
        self.check(force=force, resume=resume)
        if force:  # an interrupted run that was to replace this one is given up, the complete one is not
            shutil.rmtree(_new_place(self._place), ignore_errors=True)
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
        features = list(rows.X.columns)
        is_code = save_search(fitted, features, self.work / SEARCH, trusted=True, table=asdict(schema))
        self._write_json(REPORT_DATA, report)
        self._write(REPORT, page)
        self._write(SETTINGS, settings)
        result = {**result, "model": {"file": SEARCH, "needs_trust": is_code}, "versions": versions()}
        self._write_json(RESULT, result)
        if self.work != self._place:
            with writing(self.path):
                _swap(self._place)
            self.work = self._place
        return result

    def files(self) -> list[str]:
        """The names of the run's files that exist."""
        return [name for name in _FILES if (self.work / name).exists()]

    def file_of_finished_run(self, name: str) -> Path:
        """The place of a file; raise if it is not there, as the run is not finished."""
        if not (self.path / name).exists():
            how = f" (`moew resume {shlex.quote(str(self.path))}` finishes it)" if self.is_unfinished else ""
            raise InvalidInputError(f"{self.path} holds no {name}; it is no finished run of `moew fit`{how}.")
        return self.path / name

    def read_json(self, name: str) -> Any:
        """The content of a JSON file of the finished run."""
        path = self.file_of_finished_run(name)
        with reading(path):
            return json.loads(path.read_text(encoding="utf-8"))

    def _write_json(self, name: str, content: Any) -> None:
        self._write(name, json.dumps(plain(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n")

    def _write(self, name: str, text: str) -> None:
        write_whole(self.work / name, lambda new: new.write_text(text, encoding="utf-8"), private=True)


def file_digest(path: Path) -> str:
    """SHA-256 of a file, to see later whether it is the same."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _new_place(folder: Path) -> Path:
    """Where the run is written that will replace the one in `folder`."""
    return folder.with_name(f"{folder.name}.moew-new")


def _old_place(folder: Path) -> Path:
    """Where the replaced run is while the two are swapped."""
    return folder.with_name(f"{folder.name}.moew-old")


def _check_replaceable(folder: Path) -> None:
    """Raise if the folder cannot be renamed, before hours of training, not after."""
    here = Path.cwd()
    reason = ""
    if here == folder or folder in here.parents:
        reason = "it is the current folder, or holds it; run the command from another folder"
    elif os.path.ismount(folder):
        reason = "it is a disk of its own; take a folder on it"
    elif not os.access(folder.parent, os.W_OK):
        reason = f"nothing can be written to {folder.parent}"
    if reason:
        raise InvalidInputError(
            f"--force writes the new run beside {folder} and then swaps the two, which cannot be done here: "
            f"{reason}, or name another --out."
        )


def _swap(folder: Path) -> None:
    """Put the complete run in `_new_place(folder)` into the place of the one in `folder`."""
    folder.rename(_old_place(folder))
    _new_place(folder).rename(folder)
    _clean(folder)


def _recover(folder: Path) -> None:
    """Complete a swap that was interrupted."""
    new, old = _new_place(folder), _old_place(folder)
    if not old.is_dir():
        return
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    if not folder.exists():  # between the two renames
        (new if new.is_dir() else old).rename(folder)
    elif new.is_dir():
        raise InvalidInputError(
            f"{old} holds an older run and {new} the one that was to replace it, but there is something else "
            f"in {folder}: move that away to go on."
        )
    if old.is_dir():
        _clean(folder)


def _clean(folder: Path) -> None:
    """Move what is not of the old run to the new one, and remove the old run."""
    for entry in _old_place(folder).iterdir():
        if entry.name not in (*_FILES, f"{STUDY}-journal") and not (folder / entry.name).exists():
            entry.rename(folder / entry.name)
    shutil.rmtree(_old_place(folder))
