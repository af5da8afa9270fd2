"""The processes that work on a stored study: their marks, and whether they still live.

Each process has a mark in the storage, which it renews every few seconds. A mark that was not renewed for
half a minute is that of a dead process, by the clock of whoever looks: clocks of several machines differ. On
the same machine a process that has ended is seen at once. The candidates that a dead process held are trained
by another.
"""

from __future__ import annotations

import os
import platform
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Protocol

from moew._util.processes import is_running, machine, start_of
from moew.exceptions import Argument, InPython, InvalidInputError

RENEWED_EVERY = 3.0  # seconds
DEAD_AFTER = 30.0  # seconds without a renewal


@dataclass(frozen=True)
class WorkerRecord:
    """The mark of a process; `renewals` counts how often it was renewed."""

    host: str
    machine: int
    process: int
    start: int  # of the process, in the system's ticks; 0: unknown
    joins: bool  # whether others may work on the study at the same time
    renewals: int = 0


class MarkStore(Protocol):
    """Stores the marks of processes."""

    can_be_shared: bool  # whether several processes may use it at once

    def workers(self) -> dict[str, WorkerRecord]:
        """The marks, by the workers' names."""

    def register(self, name: str, record: WorkerRecord, beside: set[str] | None) -> bool:
        """Write a new mark; but if there are marks that are not in `beside`, write nothing and return False.
        No other process can write a mark in between."""

    def renew(self, name: str, record: WorkerRecord) -> bool:
        """Write the mark of a worker again; False if it was removed. Tried once."""

    def forget(self, names: Sequence[str]) -> None:
        """Remove marks. Tried once."""

    def refuse(self, what: str) -> InvalidInputError:
        """The error for a study that cannot be used."""


@dataclass
class _Look:
    """What was seen of a worker: its first and last mark, and when the last one was new."""

    first: WorkerRecord
    last: WorkerRecord
    at: float

    @property
    def was_renewed(self) -> bool:
        return self.last != self.first

    @property
    def is_dead(self) -> bool:
        if self.last.machine == machine() and not is_running(self.last.process, self.last.start):
            return True
        return time.monotonic() - self.at > DEAD_AFTER

    @property
    def is_alive(self) -> bool:
        """Whether it surely lives. A mark of this process may be left by a search that has ended."""
        of_others = self.last.machine == machine() and self.last.process != os.getpid()
        return not self.is_dead and (of_others or self.was_renewed)


class Crew:
    """All processes on a study, as one of them sees them.

    Parameters
    ----------
    store : where their marks are
    joins : whether this process works together with others; else it must be the only one
    """

    def __init__(self, store: MarkStore, joins: bool) -> None:
        self.store, self.joins = store, joins
        self.name = uuid.uuid4().hex[:12]
        self._looks: dict[str, _Look] = {}
        self._ended = threading.Event()
        self._was_forgotten = False
        self._was_missed = False
        self._renewed_at = time.monotonic()
        self._process = os.getpid()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Context in which this process has a mark; raises if it must not work on the study now."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self) -> None:
        """Make a mark and renew it from now on; raises if this process must not work on the study now."""
        if self.joins and not self.store.can_be_shared:
            raise self.store.refuse(
                "only a journal, SQLite and PostgreSQL can be shared by several processes"
            )
        own = os.getpid()
        record = WorkerRecord(platform.node(), machine(), own, start_of(own) or 0, self.joins)
        while True:
            allowed = set(self._wait_for_those_that_work_alone())
            if self.store.register(self.name, record, allowed | {self.name}):
                break
        self._ended.clear()
        self._renewed_at = time.monotonic()
        threading.Thread(target=self._renew, args=(record,), daemon=True).start()

    def leave(self) -> None:
        """Remove the mark. Where the storage does not work, others see in a while that it is not renewed."""
        self._ended.set()
        if self.is_of_this_process:
            with suppress(Exception):
                self.store.forget([self.name])

    @property
    def is_of_this_process(self) -> bool:
        """Whether this process entered, and not one that it was forked from."""
        return self._process == os.getpid()

    def alive(self) -> dict[str, WorkerRecord]:
        """The marks of all that are not known to be dead, by name; those of the dead are removed."""
        marks = self.store.workers()
        for name, mark in marks.items():
            look = self._looks.setdefault(name, _Look(mark, mark, time.monotonic()))
            if mark != look.last:
                look.last, look.at = mark, time.monotonic()
        dead = [name for name in marks if name != self.name and self._looks[name].is_dead]
        if dead:
            with suppress(Exception):  # another process may do it at the same time
                self.store.forget(dead)
        return {name: mark for name, mark in marks.items() if name not in dead}

    def dead(self) -> set[str]:
        """The names of all that are known to be dead."""
        self.alive()
        return {name for name, look in self._looks.items() if name != self.name and look.is_dead}

    def holds_its_share(self) -> bool:
        """Whether what this process claimed is still its own: not if it did not run for so long that others
        take it for dead, and train what it held."""
        return not self._was_missed and time.monotonic() - self._renewed_at <= DEAD_AFTER

    def claims_anew(self) -> None:
        """From now on, `holds_its_share` is about what is claimed next."""
        self._was_missed = False

    def check(self) -> None:
        """Raise if another process took this one for dead, and works alone now."""
        if self._was_forgotten and not self.joins:
            raise InvalidInputError(
                "this process did not run for a while, and another one has gone on with its search. Wait for "
                "that one, or start this one again when it has ended.",
                argument="storage",
            )

    def _wait_for_those_that_work_alone(self) -> dict[str, WorkerRecord]:
        """The marks of others, once there is none that this process must not work beside; raises if such a
        one surely lives."""
        while True:
            others = {name: mark for name, mark in self.alive().items() if name != self.name}
            apart = [name for name, mark in others.items() if not (self.joins and mark.joins)]
            if not apart:
                return others
            for name in apart:
                if self._looks[name].is_alive:
                    raise self._refused(others[name])
            time.sleep(min(0.5, DEAD_AFTER / 10))

    def _refused(self, other: WorkerRecord) -> InvalidInputError:
        return InvalidInputError(
            f"another search (process {other.process} on {other.host}) works on this study now. Wait for its "
            "end, or use another ",
            InPython("study_name or "),
            Argument("storage"),
            ". To let several processes work on one search, start all of them with ",
            Argument("join", True),
            ".",
            argument="storage",
        )

    def _renew(self, record: WorkerRecord) -> None:
        process = os.getpid()
        while not self._ended.wait(RENEWED_EVERY) and os.getpid() == process:
            record = replace(record, renewals=record.renewals + 1)
            # A storage that does not work for a moment is the business of the search itself.
            with suppress(Exception):
                if not self.store.renew(self.name, record):
                    self._was_forgotten = self._was_missed = True
                    if not self.joins:
                        return
                    self.store.register(self.name, record, None)
                self._was_missed |= not self.holds_its_share()
                self._renewed_at = time.monotonic()
