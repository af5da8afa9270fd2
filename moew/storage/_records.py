"""What a store holds and can do, in memory."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from moew.exceptions import InvalidInputError
from moew.types import FloatArray

Storage = str | os.PathLike[str] | None


@dataclass(frozen=True)
class TrialRecord:
    """What a store holds for one number. `point` (d,) is alpha; with a space also the coordinates of the
    parameters, behind it."""

    number: int
    point: FloatArray
    value: float = math.nan
    error: str | None = None
    finished: bool = False
    worker: str = ""  # who trains it, where that is recorded


@dataclass(frozen=True)
class Told:
    """The end of a trial: its finite value, or the error that prevented one; and content to keep with it."""

    number: int
    value: float | None = None
    error: str | None = None
    content: bytes | None = None


@dataclass(frozen=True)
class WorkerRecord:
    """The mark of a process; `renewals` counts how often it was renewed."""

    host: str
    machine: int
    process: int
    start: int  # of the process, in the system's ticks; 0: unknown
    joins: bool  # whether others may work on the study at the same time
    renewals: int = 0


class Store:
    """One study's candidates: here in memory, for the threads of one process, whose study has the contents.

    A subclass keeps them, and contents and marks of workers, for several processes.
    """

    is_stored = False  # whether it outlives the process, keeps contents and may be used by several processes

    def __init__(self) -> None:
        self._records: list[TrialRecord] = []
        self._lock = threading.RLock()

    def records(self) -> Sequence[TrialRecord]:
        """The records of all numbers so far: record i is that of number i."""
        return self._records

    def append(self, first: int, points: FloatArray, worker: str = "") -> bool:
        """Make candidates of the points (k, d), with the numbers from `first` on, all or none of them, that
        `worker` trains. False if there is a candidate `first`, because another process was faster."""
        with self._lock:
            if len(self._records) != first:
                return False
            self._records += [TrialRecord(first + i, point) for i, point in enumerate(points)]
            return True

    def claim(
        self, numbers: Sequence[int], worker: str, marks: Store, dead: Collection[str], most: int
    ) -> list[int]:
        """Let `worker` train those of the numbers that are not finished, but no more than `most`; returns
        them. Numbers stay with another worker that has a mark in `marks` and is not among the `dead`."""
        return [number for number in numbers if not self._records[number].finished][:most]

    def finish(self, told: Sequence[Told]) -> list[int]:
        """End trials, each as a whole; if some have ended otherwise, end none and return their numbers."""
        with self._lock:
            if ended := [one.number for one in told if self._records[one.number].finished]:
                return ended
            for one in told:
                value = math.nan if one.value is None else one.value
                record = replace(self._records[one.number], value=value, error=one.error, finished=True)
                self._records[one.number] = record
            return []

    def kept(self, numbers: Sequence[int] | None = None) -> dict[int, bytes]:
        """The contents that trials were ended with, by number: of these numbers, or of all."""
        return {}

    def workers(self) -> dict[str, WorkerRecord]:
        """The marks, by the workers' names."""
        return {}

    def register(self, name: str, record: WorkerRecord, beside: set[str] | None) -> bool:
        """Write a new mark; but if there are marks that are not in `beside`, write nothing and return False.
        No other process can write a mark in between."""
        return True

    def renew(self, name: str, record: WorkerRecord) -> bool:
        """Write the mark of a worker again; False if it was removed. Tried once."""
        return True

    def forget(self, names: Sequence[str]) -> None:
        """Remove marks. Tried once."""

    def refuse(self, what: str) -> InvalidInputError:
        """The error for a study that cannot be used."""
        return InvalidInputError(f"{what}.")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock())
