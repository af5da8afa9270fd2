"""Where a study lives: memory, a journal file, a database, any storage of Optuna's."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import BaseStorage

from moew.exceptions import InvalidInputError

Storage = str | Path | BaseStorage | None
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
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        # Absolute: Optuna's lock is a link to the path as given, and one that dangles is waited for forever.
        return JournalStorage(JournalFileBackend(str(Path(storage).absolute())))
    return storage


def _database(url: str) -> BaseStorage:
    """Optuna's storage of a database.

    Where several processes begin on an empty one, each would make its tables, and all but one fail; when
    they look again, the tables are there.
    """
    from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError

    for wait in (0.2, 1.0, 5.0):
        try:
            return optuna.storages.get_storage(url)
        except (IntegrityError, OperationalError, ProgrammingError) as error:
            if not isinstance(error, IntegrityError) and "exists" not in str(error):
                raise  # such as a server that does not answer
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
