"""SQLite and PostgreSQL, as far as a store needs them: transactions, statements, patience.

What a storage is called says which: a path is a file of SQLite.

SQLite is used as it comes, with a rollback journal and full synchronisation: whatever kills a writer, the
next process takes back what it had not finished, and beside the file nothing is left. A write-ahead log would
be a second file, without which a copy of the first is not whole. Every transaction has a connection of its
own, for a connection must not go through a fork.

What a storage refuses for a moment is tried again: a database that restarts, a disk that is full.
"""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from moew._util.whole_files import create_private, writing
from moew.exceptions import Argument, InvalidInputError, MoewWarning, StorageError
from moew.storage._records import Storage

BUSY = 5.0  # seconds that SQLite itself waits for another process; what is more is for patience
_NEAR_LIMIT = 2**20  # bytes from a limit on the size of files at which it is the reason of a failed write
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 15.0  # seconds
_LASTING = (errno.EFBIG, errno.ENAMETOOLONG)  # limits that no waiting changes
# What may pass, in SQLite's words, and in the names of psycopg's errors.
_OF_SQLITE = ("locked", "busy", "full", "unable to open", "i/o error", "readonly")
_OF_PSYCOPG = {"OperationalError", "InterfaceError", "InternalError"}
_EXAMPLES = "'run.db', or a URL such as 'sqlite:///run.db' or 'postgresql://user@host/name'"

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


@dataclass
class Statements:
    """The statements of one transaction, with a cursor of either driver."""

    cursor: Any
    mark: str = "?"  # for a value, in the driver's words

    def read(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows that a query finds."""
        self.cursor.execute(statement.replace("?", self.mark), values)
        found: list[tuple[Any, ...]] = self.cursor.fetchall()
        return found

    def write(self, statement: str, *values: Any) -> int:
        """How many rows a statement has written."""
        self.cursor.execute(statement.replace("?", self.mark), values)
        return int(self.cursor.rowcount)

    def write_all(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """The same statement for many rows."""
        if rows:
            self.cursor.executemany(statement.replace("?", self.mark), rows)


@dataclass
class Sqlite:
    """A file of SQLite."""

    path: Path
    name: str  # in words, without a password
    errors: type[Exception] = sqlite3.Error  # that the driver raises

    def __post_init__(self) -> None:
        if not self.path.parent.is_dir() or self.path.is_dir():
            raise InvalidInputError(
                f"storage must be a file in a folder that exists, got {self.name}; name one such as "
                f"{_EXAMPLES}.",
                argument="storage",
            )
        # Closing a file that is there would take this process's other connections their locks.
        if not self.path.exists():
            with writing(self.path):
                create_private(self.path)

    @contextmanager
    def transaction(self, *, writes: bool = True) -> Iterator[Statements]:
        """A context that ends with all that is written in it, or with nothing of it. Of those that write to a
        study, which begin by writing to its row, there is one at a time."""
        address = f"{self.path.as_uri()}?mode=rw"  # a file that is gone is not made again
        try:
            with closing(sqlite3.connect(address, BUSY, isolation_level=None, uri=True)) as connection:
                connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
                yield Statements(connection.cursor())
                connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if "i/o error" in str(error).lower() and self._is_at_limit():
                with writing(self.path):
                    raise OSError(errno.EFBIG, os.strerror(errno.EFBIG)) from error
            raise

    def make_tables(self, statements: Statements, tables: Sequence[str]) -> None:
        """Make the tables that are not there."""
        there = {name for (name,) in statements.read("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if there and not any(name.startswith("moew_") for name in there):
            raise InvalidInputError(
                f"the storage {self.name} was not made by moew, or by another version of it: it holds other "
                "tables. Begin anew in another file.",
                argument="storage",
            )
        for table in tables:
            statements.write(table)

    def _is_at_limit(self) -> bool:
        """Whether the file is about as large as a file of this process may be."""
        if os.name != "posix":
            return False
        import resource

        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        return limit != resource.RLIM_INFINITY and self.path.stat().st_size + _NEAR_LIMIT > limit


@dataclass
class Postgres:
    """A database of a PostgreSQL server."""

    url: str

    def __post_init__(self) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise InvalidInputError(
                "a study in PostgreSQL needs psycopg, which is not installed: pip install 'moew[postgres]', "
                "or use a file of SQLite, which needs nothing.",
                argument="storage",
            ) from error
        self.name, self.errors, self._connect = storage_name(self.url), psycopg.Error, psycopg.connect

    @contextmanager
    def transaction(self, *, writes: bool = True) -> Iterator[Statements]:
        with self._connect(self.url) as connection, connection.cursor() as cursor:
            yield Statements(cursor, "%s")

    def make_tables(self, statements: Statements, tables: Sequence[str]) -> None:
        statements.read("SELECT pg_advisory_xact_lock(?)", 0x6D6F6577)  # for one process at a time
        for table in tables:
            statements.write(table.replace("BLOB", "BYTEA"))


Database = Sqlite | Postgres


def resolve_database(storage: Storage) -> Database:
    """The database that a storage names."""
    check_storage(storage)
    name = os.fspath(storage or "")
    if "://" not in name:
        return Sqlite(Path(name).absolute(), storage_name(storage))
    kind, _, place = name.partition("://")
    if kind in ("postgresql", "postgres") and place:
        return Postgres(name)
    if kind == "sqlite" and place.startswith("/") and place != "/" and "?" not in place:
        return Sqlite(Path(place[1:]).absolute(), storage_name(storage))
    raise cannot_be_opened(name, "this is no URL of a file of SQLite or of PostgreSQL")


def check_storage(storage: Any) -> None:
    """Raise unless `storage` is None, a path or a URL."""
    if storage is None or (isinstance(storage, str | os.PathLike) and os.fspath(storage)):
        return
    more = ""
    if hasattr(storage, "create_new_study"):
        more = "; study_.to_optuna() makes an Optuna study of what is stored"
    raise InvalidInputError(
        Argument("storage"), f" must be None, the path of a file such as {_EXAMPLES}, got {storage!r}{more}."
    )


def cannot_be_opened(storage: Storage, reason: object) -> InvalidInputError:
    """The error for a wrong storage; the words of its reason may hold a password, too."""
    name = storage_name(storage)
    words = " ".join(str(reason).replace(os.fspath(storage or ""), name).split()).rstrip(".")
    return InvalidInputError(
        f"storage {name} cannot be opened: {words}. It must be a path such as {_EXAMPLES}.",
        argument="storage",
    )


def storage_name(storage: Storage) -> str:
    """The storage in words, without a password."""
    name = os.fspath(storage or "")
    if "://" not in name:
        return repr(name)
    return re.sub(r"(?<=password=)[^&]*", "***", re.sub(r"(://[^:/?#]*:).*@", r"\1***@", name))


def patiently(
    method: Callable[Concatenate[Any, _Given], _Found],
) -> Callable[Concatenate[Any, _Given], _Found]:
    """Let a method of a store, which must do nothing twice, be called again, after growing pauses, while its
    database does not work: a connection may break after a write, before its confirmation."""

    @wraps(method)
    def tried(self: Any, /, *args: _Given.args, **settings: _Given.kwargs) -> _Found:
        place, begun, pause = f"the storage {self.database.name}", time.monotonic(), _FIRST_PAUSE
        while True:
            try:
                return method(self, *args, **settings)
            except Exception as error:
                if (reason := passing_reason(error)) is None:
                    raise
                if time.monotonic() + pause - begun > self.patience:
                    raise StorageError(
                        f"{place} cannot be used: {reason}. What was stored until then is "
                        "kept: the same call goes on from there when the cause is gone.",
                        argument="storage",
                    ) from error
                if pause == _FIRST_PAUSE:
                    warnings.warn(
                        f"{place} does not work: {reason}. This is tried again, for up to "
                        f"{self.patience:.0f} seconds.",
                        MoewWarning,
                        stacklevel=2,
                    )
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    return tried


def passing_reason(error: BaseException) -> str | None:
    """Why the storage does not work, in words, if that may pass; None for other errors."""
    words = " ".join(str(error).split()).rstrip(".")
    if isinstance(error, OSError):
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
        return None if cause.errno in _LASTING else words
    if isinstance(error, sqlite3.OperationalError):
        if not any(word in words.lower() for word in _OF_SQLITE):
            return None
        return f"{words}; make room on that disk, or name a place on another" if "full" in words else words
    of_psycopg = type(error).__module__.partition(".")[0] == "psycopg"
    passes = of_psycopg and any(base.__name__ in _OF_PSYCOPG for base in type(error).__mro__)
    return words if passes else None
