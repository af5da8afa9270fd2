"""Open a stored study, or make it: a path is a journal, a URL a database."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import optuna
from optuna.storages import BaseStorage

from moew._util.whole_files import create_private
from moew.exceptions import InvalidInputError, StorageError
from moew.search._storage._patience import passing_reason
from moew.search._storage._trials import OptunaTrials, words_for

if TYPE_CHECKING:
    from moew.search._study import Storage

_SETTINGS = "moew"  # study attribute: settings that must be the same when a study is opened again
_LAYOUT_NAME, _LAYOUT = "layout of the records", 2  # raise it when the records change
_PREDICTIONS = ".predictions"  # what the folder beside a file is called


def open_trials(storage: Storage, name: str, maximize: bool, settings: dict[str, Any]) -> OptunaTrials:
    """Create or open the study of that name; raises if it was made with other settings."""
    opened = _resolved(storage)
    with _quiet_optuna(), _reading(storage):
        study = optuna.create_study(
            storage=opened,
            sampler=optuna.samplers.RandomSampler(),  # not used: alphas are written
            study_name=name,
            directions=["maximize" if maximize else "minimize"],
            load_if_exists=True,
        )
    trials = _kind_of(study._storage)(study, storage_name(storage), _folder_beside(storage))
    settings = {_LAYOUT_NAME: _LAYOUT, **settings}
    found = trials.settle(_SETTINGS, settings)
    if not isinstance(found, dict):
        raise trials.damaged("the settings of the study")
    if found.get(_LAYOUT_NAME) != _LAYOUT:
        raise trials.refuse(
            "this study was stored by another version of moew, in a layout this one cannot read"
        )
    if found != settings:
        changed = {
            key: (found.get(key), settings[key]) for key in settings if found.get(key) != settings[key]
        }
        raise InvalidInputError(
            f"the storage already holds a study {name!r} with other settings (there, here): {changed}. "
            "Use the same settings to continue it, or another name or storage to start anew.",
            argument="study",
        )
    return trials


def storage_name(storage: Storage) -> str:
    """The storage in words, without a password."""
    if isinstance(storage, str) and "://" in storage:
        return str(_url(storage).render_as_string(hide_password=True))
    return repr(str(storage)) if isinstance(storage, str | Path) else type(storage).__name__


def _resolved(storage: Storage) -> BaseStorage | None:
    """The storage for Optuna: a journal for a path, a database for a URL, else what was passed."""
    if isinstance(storage, str) and "://" in storage:
        import sqlalchemy

        from moew.search._storage._database import open_database

        if (file := _sqlite_file(storage)) is not None and file.parent.is_dir():
            with contextlib.suppress(OSError):  # SQLite says in its words what is wrong
                create_private(file)
        with _reading(storage, optuna.exceptions.OptunaError):
            try:
                return open_database(storage)
            except (sqlalchemy.exc.SQLAlchemyError, ImportError, ValueError, RuntimeError) as error:
                raise _cannot_be_opened(storage, getattr(error, "orig", None) or error) from error
    if isinstance(storage, str | Path):
        from moew.search._storage._journal import open_journal

        return open_journal(Path(storage).absolute())
    return storage


def _kind_of(storage: BaseStorage) -> type[OptunaTrials]:
    """The class of trials that suits the storage."""
    if isinstance(storage, optuna.storages.JournalStorage):
        from moew.search._storage._journal import JournalFile, JournalTrials

        return JournalTrials if isinstance(storage._backend, JournalFile) else OptunaTrials
    if hasattr(storage, "_backend"):
        from moew.search._storage._database import DatabaseTrials, writes_many

        return DatabaseTrials if writes_many(storage) else OptunaTrials
    return OptunaTrials


def _folder_beside(storage: Storage) -> Path | None:
    """The folder of predictions beside a journal or an SQLite file; None for other storages."""
    file: Path | None = None
    if isinstance(storage, str) and "://" in storage:
        file = _sqlite_file(storage)
    elif isinstance(storage, str | Path):
        file = Path(storage).absolute()
    return None if file is None else file.with_name(f"{file.name}{_PREDICTIONS}")


def _sqlite_file(storage: str) -> Path | None:
    """The file of an SQLite database, if it has one."""
    url = _url(storage)
    if url.get_backend_name() != "sqlite" or url.query or url.database in (None, "", ":memory:"):
        return None
    return Path(url.database).absolute()


def _url(storage: str) -> Any:
    import sqlalchemy

    try:
        return sqlalchemy.engine.make_url(storage)
    except (sqlalchemy.exc.ArgumentError, ValueError) as error:
        raise _cannot_be_opened(storage, error) from error


def _cannot_be_opened(storage: str, reason: object) -> InvalidInputError:
    """The error for a wrong URL, which may hold a password."""
    return InvalidInputError(
        f"storage {storage.split('://')[0]}://… cannot be opened: {reason}. It must be a path, or a URL of "
        "SQLAlchemy such as 'sqlite:///study.db' or 'postgresql+psycopg://user@host/name'.",
        argument="storage",
    )


@contextlib.contextmanager
def _reading(storage: Storage, kind: type[Exception] = Exception) -> Iterator[None]:
    """Context in which what a damaged storage raises, if it is of that kind, is said in words."""
    try:
        yield
    except kind as error:
        if reason := passing_reason(error):
            raise StorageError(
                f"the storage {storage_name(storage)} cannot be used: {reason}.", argument="storage"
            ) from error
        words = words_for(error)
        if words is None:
            raise
        raise InvalidInputError(
            f"the storage {storage_name(storage)} cannot be read: {words}. Begin anew in another one.",
            argument="storage",
        ) from error


@contextlib.contextmanager
def _quiet_optuna() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
