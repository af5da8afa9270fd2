"""Studies in a journal: one file of records, which several processes append to.

The journal itself is locked while a process looks and appends, by a lock that ends with its holder. Workers
have a small file each, in a folder beside the journal: renewing their marks there does not make it grow.
"""

from __future__ import annotations

import contextlib
import json
import os
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from optuna.distributions import FloatDistribution, distribution_to_json
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.storages.journal._storage import JournalOperation

from moew._util.file_lock import FileLock
from moew._util.whole_files import create_private, writing
from moew.exceptions import InvalidInputError, MoewWarning
from moew.saving import in_words
from moew.search._storage._patience import patiently
from moew.search._storage._trials import (
    DAMAGE,
    HOLDER,
    OptunaTrials,
    ended_otherwise,
    parameters,
    state_of,
)
from moew.search._study import Told
from moew.search._workers import MarkStore, WorkerRecord
from moew.types import Domain

_FIRST_BYTES = b'{"op_code":'  # of Optuna's journals
_WORKERS = ".workers"  # what the folder of the workers' marks is called, after the journal's name


@dataclass
class JournalTrials(OptunaTrials):
    """A `TrialStore` in a journal that `open_journal` opened."""

    can_be_shared: bool = True

    @patiently
    def claim(
        self, numbers: Sequence[int], worker: str, marks: MarkStore, dead: Collection[str], most: int
    ) -> list[int]:
        with self._reading(), self._locked():
            known, trials = self._alphas(), self._trials()
            records = [self._record(trials[n], known) for n in numbers]
            others = set(marks.workers()) - set(dead) - {worker}
            mine = [r for r in records if not r.finished and r.worker not in others][:most]
            new = [trials[r.number]._trial_id for r in mine if r.worker != worker]
            self._append(
                {
                    "op_code": JournalOperation.SET_TRIAL_USER_ATTR,
                    "trial_id": i,
                    "user_attr": {HOLDER: worker},
                }
                for i in new
            )
            return [record.number for record in mine]

    @patiently
    def workers(self) -> dict[str, WorkerRecord]:
        found = {}
        for path in self._marks.glob(f"{self.prefix}*.json"):
            with contextlib.suppress(FileNotFoundError):  # its process has just ended
                try:
                    record = WorkerRecord(**json.loads(path.read_text(encoding="utf-8")))
                except (ValueError, TypeError):
                    continue  # not a mark, or damaged: whoever wrote it writes it again
                found[path.stem.removeprefix(self.prefix)] = record
        return found

    @patiently
    def register(self, name: str, record: WorkerRecord, beside: set[str] | None) -> bool:
        with self._locked():
            if beside is not None and not set(self.workers()) <= beside:
                return False
            self._write_mark(name, record)
            return True

    def renew(self, name: str, record: WorkerRecord) -> bool:
        if not self._mark(name).exists():
            return False
        self._write_mark(name, record)
        return True

    def _write_mark(self, name: str, record: WorkerRecord) -> None:
        mark = self._mark(name)
        with writing(mark):
            self._marks.mkdir(mode=0o700, exist_ok=True)
            new = mark.with_suffix(".new")
            create_private(new)
            new.write_text(json.dumps(vars(record)), encoding="utf-8")
            new.replace(mark)

    def forget(self, names: Sequence[str]) -> None:
        for name in names:
            self._mark(name).unlink(missing_ok=True)
            self._mark(name).with_suffix(".new").unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it is not empty, or gone
            self._marks.rmdir()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        backend: Any = self._storage._backend  # type: ignore[attr-defined]
        with writing(backend.path), backend.lock:
            self._append(())  # takes in what others have written
            yield

    def _create(self, rows: list[list[float]], domain: Domain) -> None:
        allowed = distribution_to_json(FloatDistribution(-domain.size, domain.size))
        self._append(
            {
                "op_code": JournalOperation.CREATE_TRIAL,
                "study_id": self.optuna_study._study_id,
                "datetime_start": _now(),
                "params": (params := parameters(alpha)),
                "distributions": dict.fromkeys(params, allowed),
            }
            for alpha in rows
        )

    def _finish(self, told: Sequence[Told], ends: Sequence[dict[str, Any]]) -> list[int]:
        with self._locked():
            trials = self._trials()
            if ended := ended_otherwise(trials, told, ends):
                return ended
            logs = list[dict[str, Any]]()
            for one, end in zip(told, ends, strict=True):
                if trials[one.number].state.is_finished():
                    continue
                of = {"trial_id": trials[one.number]._trial_id}
                for key, value in self._attributes(one, end).items():
                    logs.append(
                        {"op_code": JournalOperation.SET_TRIAL_USER_ATTR, **of, "user_attr": {key: value}}
                    )
                logs.append(
                    {
                        "op_code": JournalOperation.SET_TRIAL_STATE_VALUES,
                        **of,
                        "state": state_of(one),
                        "values": None if one.value is None else [one.value],
                        "datetime_complete": _now(),
                    }
                )
            self._append(logs)
            return []

    def _append(self, logs: Any) -> None:
        """Append records in one write, and take in all that were written."""
        storage: Any = self._storage
        worker = {"worker_id": storage._replay_result.worker_id}
        with storage._thread_lock:
            if new := [{"op_code": log["op_code"], **worker, **log} for log in logs]:
                storage._backend.append_logs(new)
            storage._sync_with_backend()

    @property
    def _marks(self) -> Path:
        path: Path = self._storage._backend.path  # type: ignore[attr-defined]
        return path.with_name(f"{path.name}{_WORKERS}")

    def _mark(self, name: str) -> Path:
        return self._marks / f"{self.prefix}{name}.json"


class JournalFile(JournalFileBackend):
    """Optuna's journal file, of which a record that its writer could not finish is taken away."""

    def __init__(self, path: Path) -> None:
        with writing(path):
            create_private(path)
        self.path = path
        self.lock = FileLock(path)
        super().__init__(str(path), self.lock)  # type: ignore[arg-type]

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        text = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs)
        with writing(self.path), self.lock, self.path.open("r+b") as file:
            # Who holds the lock is the only writer: what is cut off was written by a process that died.
            end = _end_of_whole_records(file)
            try:
                file.truncate(end)
                file.seek(end)
                file.write(text.encode("utf-8"))
                file.flush()
                os.fsync(file.fileno())
            except BaseException:
                with contextlib.suppress(OSError):
                    os.truncate(self.path, end)
                raise


def open_journal(path: Path) -> JournalStorage:
    """Optuna's storage in the journal at `path`. A last record that was cut off while writing is removed."""
    if not path.parent.is_dir() or path.is_dir():
        raise InvalidInputError(
            f"storage must be a file in a folder that exists, got {str(path)!r}.", argument="storage"
        )
    _remove_lock_of_optuna(path)
    if path.exists():
        with path.open("rb") as file:
            head = file.read(len(_FIRST_BYTES))
        if not _FIRST_BYTES.startswith(head):
            raise InvalidInputError(
                f"storage {str(path)!r} exists and is no journal of a study; name another file.",
                argument="storage",
            )
        _cut_last_record(path)
    try:
        return JournalStorage(JournalFile(path))
    except DAMAGE as error:
        raise InvalidInputError(
            f"the journal {str(path)!r} is damaged: {in_words(error)}. Begin a new one.", argument="storage"
        ) from error


def _remove_lock_of_optuna(path: Path) -> None:
    """Remove the lock that an Optuna that was killed may have left: a link to the journal."""
    lock = path.with_name(f"{path.name}.lock")
    if lock.is_symlink():
        lock.unlink(missing_ok=True)


def _cut_last_record(path: Path) -> None:
    with writing(path), FileLock(path), path.open("r+b") as file:
        size, end = file.seek(0, os.SEEK_END), _end_of_whole_records(file)
        start = _start_of_line_before(file, end)
        file.seek(start)
        try:
            json.loads(file.read(end - start) or b"{}")
        except ValueError:  # some file systems leave a line of zeros after a power failure
            end = start
        if end < size:
            file.truncate(end)
            warnings.warn(
                f"the last record of {str(path)!r} was cut off as it was written, and is taken away; the "
                "search goes on from the one before.",
                MoewWarning,
                stacklevel=2,
            )


def _end_of_whole_records(file: Any) -> int:
    """The number of bytes up to the last end of a line."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 1))
    return size if not size or file.read(1) == b"\n" else _start_of_line_before(file, size + 1)


def _start_of_line_before(file: Any, end: int, block: int = 2**16) -> int:
    """Where the line begins that ends before the byte number `end`."""
    stop = max(0, end - 1)
    while stop > 0:
        start = max(0, stop - block)
        file.seek(start)
        at = file.read(stop - start).rfind(b"\n")
        if at >= 0:
            return int(start + at + 1)
        stop = start
    return 0


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
