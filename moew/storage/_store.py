"""A study in three tables: studies, with their settings; candidates; the marks of workers.

What belongs together is one transaction, which first writes to the study's row, so that no other process
writes to the study before it ends. Each candidate carries a checksum of what is known of it, and the study
has the number of its candidates, so that damaged, edited and missing records are refused. Calls that a
broken connection cut off can be repeated.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from moew.exceptions import InvalidInputError, StorageError
from moew.storage._databases import (
    Database,
    Statements,
    cannot_be_opened,
    passing_reason,
    patiently,
    resolve_database,
)
from moew.storage._records import Storage, Store, Told, TrialRecord, WorkerRecord
from moew.types import FloatArray

_LAYOUT_NAME, _LAYOUT = "layout of the records", 4  # raise it when tables or predictions change
_TABLES = (
    """CREATE TABLE IF NOT EXISTS moew_studies (
        name TEXT NOT NULL PRIMARY KEY,
        settings TEXT NOT NULL,
        n_candidates INTEGER NOT NULL
    )""",
    """CREATE TABLE IF NOT EXISTS moew_candidates (
        study TEXT NOT NULL REFERENCES moew_studies ON DELETE CASCADE,
        number INTEGER NOT NULL,
        point TEXT NOT NULL,
        worker TEXT NOT NULL,
        value DOUBLE PRECISION,
        error TEXT,
        digest TEXT,
        checksum TEXT NOT NULL,
        predictions BLOB,
        PRIMARY KEY (study, number)
    )""",
    """CREATE TABLE IF NOT EXISTS moew_workers (
        study TEXT NOT NULL REFERENCES moew_studies ON DELETE CASCADE,
        name TEXT NOT NULL,
        mark TEXT NOT NULL,
        PRIMARY KEY (study, name)
    )""",
)
_CANDIDATE = "c.number, c.point, c.worker, c.value, c.error, c.digest, c.checksum"
_THESE = "WHERE study = ? AND number BETWEEN ? AND ?"

_Row = tuple[Any, ...]


def open_store(storage: Storage, name: str, settings: dict[str, Any]) -> SqlStore:
    """Create or open the study of that name; raises if it was made with other settings."""
    store = SqlStore(_reached(storage), name)
    settings = {_LAYOUT_NAME: _LAYOUT, **settings}
    text = store.settle(json.dumps(settings))
    try:
        found = json.loads(text)
    except (ValueError, TypeError):
        found = None
    if not isinstance(found, dict):
        raise store.damaged("the settings of the study")
    if found.get(_LAYOUT_NAME) != _LAYOUT:
        raise store.refuse(
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
    return store


def _reached(storage: Storage) -> Database:
    """The database of a storage; raises at once, without patience, where none can be opened."""
    database = resolve_database(storage)
    try:
        with database.transaction(writes=False):
            pass
    except database.errors as error:
        reason = passing_reason(error)
        if reason is None:
            raise cannot_be_opened(storage, error) from error
        raise StorageError(
            f"the storage {database.name} cannot be used: {reason}.", argument="storage"
        ) from error
    return database


@dataclass
class SqlStore(Store):
    """A store in a database; what its methods do is said in `Store`."""

    database: Database
    name: str
    patience: float = 120.0  # seconds for which a storage that does not work is tried again
    _seen: dict[int, tuple[_Row, TrialRecord]] = field(default_factory=dict, repr=False)
    is_stored = True

    @patiently
    def settle(self, settings: str) -> Any:
        """The study's settings, which become `settings` if there is no such study."""
        with self._transaction() as sql:
            self.database.make_tables(sql, _TABLES)
            new = "INSERT INTO moew_studies VALUES (?, ?, 0) ON CONFLICT (name) DO NOTHING"
            sql.write(new, self.name, settings)
            return sql.read("SELECT settings FROM moew_studies WHERE name = ?", self.name)[0][0]

    @patiently
    def records(self) -> Sequence[TrialRecord]:
        query = (
            f"SELECT s.n_candidates, {_CANDIDATE} FROM moew_studies s LEFT JOIN moew_candidates c "
            "ON c.study = s.name WHERE s.name = ? ORDER BY c.number"
        )
        with self._transaction(writes=False) as sql:
            found = sql.read(query, self.name)
        if not found:
            raise self._is_gone()
        n, rows = found[0][0], [row[1:] for row in found if row[1] is not None]
        self._check_whole(n, [row[0] for row in rows])
        return [self._record(row) for row in rows]

    @patiently
    def append(self, first: int, points: FloatArray, worker: str = "") -> bool:
        texts = [json.dumps(point.tolist()) for point in points]
        last = first + len(texts) - 1
        with self._writing() as (sql, n):
            numbers = sql.read(
                "SELECT number FROM moew_candidates WHERE study = ? ORDER BY number", self.name
            )
            self._check_whole(n, [number for (number,) in numbers])
            if n != first:  # perhaps it was this worker, whose connection broke before it knew
                there = sql.read(
                    f"SELECT point, worker FROM moew_candidates {_THESE}", self.name, first, last
                )
                return bool(worker) and there == [(text, worker) for text in texts]
            sql.write_all(
                "INSERT INTO moew_candidates (study, number, point, worker, checksum) VALUES (?, ?, ?, ?, ?)",
                [
                    (self.name, number, text, worker, self._checksum(number, text))
                    for number, text in enumerate(texts, first)
                ],
            )
            sql.write("UPDATE moew_studies SET n_candidates = ? WHERE name = ?", last + 1, self.name)
            return True

    @patiently
    def claim(
        self, numbers: Sequence[int], worker: str, marks: Store, dead: Collection[str], most: int
    ) -> list[int]:
        assert isinstance(marks, SqlStore)
        with self._writing() as (sql, _):
            others = marks._names(sql) - set(dead) - {worker}
            there = [self._record(row) for row in self._rows(sql, numbers)]
            free = [one for one in there if not one.finished and one.worker not in others][:most]
            sql.write_all(
                "UPDATE moew_candidates SET worker = ? WHERE study = ? AND number = ?",
                [(worker, self.name, one.number) for one in free if one.worker != worker],
            )
            return [one.number for one in free]

    @patiently
    def finish(self, told: Sequence[Told]) -> list[int]:
        ends = [
            (one.value, None if one.error is None else json.dumps(one.error), _digest(one.content))
            for one in told
        ]
        with self._writing() as (sql, _):
            rows = {row[0]: row for row in self._rows(sql, [one.number for one in told])}
            ended, new = [], list[_Row]()
            for one, end in zip(told, ends, strict=True):
                _, point, _, *there, _ = rows[one.number]
                if there[:2] == [None, None]:
                    checksum = self._checksum(one.number, point, *end)
                    new.append((*end, checksum, one.content, self.name, one.number))
                elif tuple(there) != end:
                    ended.append(one.number)
            if not ended:
                sql.write_all(
                    "UPDATE moew_candidates SET value = ?, error = ?, digest = ?, checksum = ?, "
                    "predictions = ? WHERE study = ? AND number = ?",
                    new,
                )
            return ended

    @patiently
    def kept(self, numbers: Sequence[int] | None = None) -> dict[int, bytes]:
        if numbers is not None and not len(numbers):
            return {}
        low, high = (0, 2**31 - 1) if numbers is None else (min(numbers), max(numbers))
        query = f"SELECT number, digest, predictions FROM moew_candidates {_THESE} AND digest IS NOT NULL"
        with self._transaction(writes=False) as sql:
            rows = sql.read(query, self.name, low, high)
        wanted = None if numbers is None else set(numbers)
        found = {}
        for number, digest, content in rows:
            if wanted is None or number in wanted:
                if not isinstance(content, bytes) or _digest(content) != digest:
                    raise self.damaged(f"the predictions of candidate {number}")
                found[number] = content
        return found

    @patiently
    def workers(self) -> dict[str, WorkerRecord]:
        with self._transaction(writes=False) as sql:
            rows = sql.read("SELECT name, mark FROM moew_workers WHERE study = ?", self.name)
        found = {}
        for name, mark in rows:
            try:
                found[name] = WorkerRecord(**json.loads(mark))
            except (ValueError, TypeError):
                continue  # no mark, or damaged: whoever wrote it writes it again
        return found

    @patiently
    def register(self, name: str, record: WorkerRecord, beside: set[str] | None) -> bool:
        with self._writing() as (sql, _):
            if beside is not None and not self._names(sql) <= beside:
                return False
            sql.write("DELETE FROM moew_workers WHERE study = ? AND name = ?", self.name, name)
            sql.write("INSERT INTO moew_workers VALUES (?, ?, ?)", self.name, name, json.dumps(vars(record)))
            return True

    def renew(self, name: str, record: WorkerRecord) -> bool:
        update = "UPDATE moew_workers SET mark = ? WHERE study = ? AND name = ?"
        with self._transaction() as sql:
            return bool(sql.write(update, json.dumps(vars(record)), self.name, name))

    def forget(self, names: Sequence[str]) -> None:
        with self._transaction() as sql:
            delete = "DELETE FROM moew_workers WHERE study = ? AND name = ?"
            sql.write_all(delete, [(self.name, name) for name in names])

    def refuse(self, what: str) -> InvalidInputError:
        return InvalidInputError(
            f"{what} (study {self.name!r} in {self.database.name}). Begin anew in another storage, or under "
            "another name; a copy from before the damage can be continued.",
            argument="storage",
        )

    def damaged(self, what: str) -> InvalidInputError:
        """The error for records whose checksum is wrong."""
        return self.refuse(f"{what}, as stored, are not what was written: damaged, or edited")

    @contextmanager
    def _transaction(self, *, writes: bool = True) -> Iterator[Statements]:
        """Context of a transaction, in which what a damaged database raises is said in words."""
        try:
            with self.database.transaction(writes=writes) as sql:
                yield sql
        except self.database.errors as error:
            if passing_reason(error) is not None:
                raise
            words = " ".join(str(error).split()).rstrip(".")
            raise self.refuse(f"the stored records cannot be read: {words}") from error

    @contextmanager
    def _writing(self) -> Iterator[tuple[Statements, int]]:
        """Context in which no other process writes to the study, with the number of its candidates."""
        with self._transaction() as sql:
            sql.write("UPDATE moew_studies SET n_candidates = n_candidates WHERE name = ?", self.name)
            found = sql.read("SELECT n_candidates FROM moew_studies WHERE name = ?", self.name)
            if not found:
                raise self._is_gone()
            yield sql, found[0][0]

    def _names(self, sql: Statements) -> set[str]:
        """The names of all workers that have a mark."""
        return {name for (name,) in sql.read("SELECT name FROM moew_workers WHERE study = ?", self.name)}

    def _rows(self, sql: Statements, numbers: Sequence[int]) -> list[_Row]:
        """The rows of these numbers, checked."""
        if not len(numbers):
            return []
        query = f"SELECT {_CANDIDATE} FROM moew_candidates c {_THESE} ORDER BY number"
        rows = [row for row in sql.read(query, self.name, min(numbers), max(numbers)) if row[0] in numbers]
        if lost := set(numbers) - {self._record(row).number for row in rows}:
            raise self._are_gone(lost)
        return rows

    def _check_whole(self, n: Any, numbers: Sequence[Any]) -> None:
        """Raise unless these are the numbers of all n candidates."""
        if len(numbers) != n or any(number != i for i, number in enumerate(numbers)):
            raise self._are_gone(set(range(len(numbers) + 1)) - set(numbers))

    def _are_gone(self, lost: Collection[int]) -> InvalidInputError:
        return self.refuse(f"the records of candidates {sorted(lost)} are gone or confused")

    def _record(self, row: _Row) -> TrialRecord:
        number, point, worker, value, error, digest, checksum = row
        if number in self._seen and self._seen[number][0] == row:
            return self._seen[number][1]
        if checksum != self._checksum(number, point, value, error, digest) or not isinstance(worker, str):
            raise self.damaged(f"the records of candidate {number}")
        record = TrialRecord(
            number,
            np.asarray(json.loads(point), dtype=np.float64),
            math.nan if value is None else value,
            None if error is None else json.loads(error),
            finished=(value, error) != (None, None),
            worker=worker,
        )
        self._seen[number] = (row, record)
        return record

    def _checksum(
        self, number: Any, point: Any, value: Any = None, error: Any = None, digest: Any = None
    ) -> str:
        content = repr((self.name, number, point, value, error, digest))
        return hashlib.sha256(content.encode("utf-8", "backslashreplace")).hexdigest()[:16]

    def _is_gone(self) -> InvalidInputError:
        return self.refuse("the study is gone")


def _digest(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()[:16]
