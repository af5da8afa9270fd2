"""Where a study lives: memory, a journal file, a database, any storage of Optuna's."""

from __future__ import annotations

import contextlib
import json
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import BaseStorage

from moew.exceptions import InvalidInputError, MoewWarning

Storage = str | Path | BaseStorage | None
_FIRST_BYTES = b'{"op_code":'  # of Optuna's journals
_SETTINGS = "moew"  # study attribute: what must be the same when a study is opened again


def open_study(storage: Storage, name: str, maximize: bool, settings: dict[str, Any]) -> optuna.Study:
    """The study of that name, made or continued; one that was made with other settings is refused."""
    with _quiet_optuna():
        study = optuna.create_study(
            storage=resolve_storage(storage),
            sampler=optuna.samplers.RandomSampler(),  # never asked: alphas are written
            study_name=name,
            directions=["maximize" if maximize else "minimize"],
            load_if_exists=True,
        )
    found = study.user_attrs.get(_SETTINGS)
    if found is None:
        study.set_user_attr(_SETTINGS, settings)
    elif found != settings:
        changed = {
            key: (found.get(key), settings[key]) for key in settings if found.get(key) != settings[key]
        }
        raise InvalidInputError(
            f"the storage already holds a study {name!r} with other settings (there, here): {changed}. "
            "Use the same settings to continue it, or another name or storage to start anew."
        )
    return study


def resolve_storage(storage: Storage) -> str | BaseStorage | None:
    """What Optuna takes: of a path a journal, of a URL its database."""
    if isinstance(storage, str) and "://" in storage:
        return _database(storage)
    if isinstance(storage, str | Path):
        return _journal(Path(storage).absolute())
    return storage


def _journal(path: Path) -> BaseStorage:
    """Optuna's journal. A record that was cut off as it was written is taken away, or it spoils the next."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

    if not path.parent.is_dir() or path.is_dir():
        raise InvalidInputError(f"storage must be a file in a folder that exists, got {str(path)!r}.")
    # Absolute: Optuna's lock is a link to the path as given, and one that dangles is waited for forever.
    lock = JournalFileSymlinkLock(str(path))
    if path.exists():
        content = path.read_bytes()
        if not _FIRST_BYTES.startswith(content[: len(_FIRST_BYTES)]):
            raise InvalidInputError(
                f"storage {str(path)!r} exists and is no journal of a study; name another file."
            )
        if _whole_records(content) < len(content):
            _cut_last_record(path, lock)
    try:
        return JournalStorage(JournalFileBackend(str(path), lock))
    except (ValueError, KeyError, TypeError, AssertionError) as error:
        raise InvalidInputError(
            f"the journal {str(path)!r} is damaged ({error}); begin a new one."
        ) from error


def _whole_records(content: bytes) -> int:
    """How many bytes are whole records: all, but for a last one that was cut off."""
    end = content.rfind(b"\n") + 1
    if end < len(content):
        return end
    start = content.rfind(b"\n", 0, max(end - 1, 0)) + 1
    try:
        json.loads(content[start:end] or b"{}")
    except ValueError:
        return start
    return end


def _cut_last_record(path: Path, lock: Any) -> None:
    lock.acquire()  # whoever has it may only be about to write the rest
    try:
        content = path.read_bytes()
        whole = _whole_records(content)
        if whole < len(content):
            os.truncate(path, whole)
            warnings.warn(
                f"the last record of {str(path)!r} was cut off as it was written, and is taken away; the "
                "search goes on from the one before.",
                MoewWarning,
                stacklevel=2,
            )
    finally:
        lock.release()


def _database(url: str) -> BaseStorage:
    """Optuna's storage of a database.

    Where several processes begin on an empty one, each would make its tables, and all but one fail; when
    they look again, the tables are there.
    """
    from sqlalchemy.exc import DatabaseError, IntegrityError, SQLAlchemyError

    for wait in (0.2, 1.0, 5.0):
        try:
            return optuna.storages.get_storage(url)
        except (SQLAlchemyError, ImportError, ValueError) as error:
            made = isinstance(error, IntegrityError) or "already exists" in str(error)
            if not (isinstance(error, DatabaseError) and made):
                reason = getattr(error, "orig", None) or error
                raise InvalidInputError(
                    f"storage {url.split('://')[0]}://… cannot be opened: {reason}. It must be a path, or "
                    "a URL of SQLAlchemy such as 'sqlite:///study.db' or 'postgresql+psycopg://user@host/name'."
                ) from error
            time.sleep(wait)
    return optuna.storages.get_storage(url)


@contextlib.contextmanager
def _quiet_optuna() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
