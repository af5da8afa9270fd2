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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from moew._util.processes import is_running, machine, start_of
from moew.exceptions import Argument, InPython, InvalidInputError
from moew.storage._records import Store, WorkerRecord

RENEWED_EVERY = 3.0  # seconds
DEAD_AFTER = 30.0  # seconds without a renewal
_LONGEST_RENEWAL = 10.0  # seconds that the end of a process waits for a renewal that has begun


@dataclass
class _Look:
    """What was seen of a worker: its first and last mark, and when the last one was new."""

    first: WorkerRecord
    last: WorkerRecord
    at: float

    @property
    def is_dead(self) -> bool:
        if self.last.machine == machine() and not is_running(self.last.process, self.last.start):
            return True
        return time.monotonic() - self.at > DEAD_AFTER

    @property
    def is_alive(self) -> bool:
        """Whether it surely lives. A mark of this process may be left by a search that has ended."""
        of_others = self.last.machine == machine() and self.last.process != os.getpid()
        return not self.is_dead and (of_others or self.last != self.first)


class Crew:
    """All processes on a study, as one of them sees them.

    Parameters
    ----------
    store : where their marks are
    joins : whether this process works together with others; else it must be the only one
    """

    def __init__(self, store: Store, joins: bool) -> None:
        self.store, self.joins = store, joins
        self.name = uuid.uuid4().hex[:12]
        self._looks: dict[str, _Look] = {}
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._was_forgotten = False
        self._was_missed = False
        self._renewed_at = time.monotonic()
        self._process = os.getpid()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Context between `enter` and `leave`."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self) -> None:
        """Make a mark and renew it from now on; raises if this process must not work on the study now."""
        own = os.getpid()
        record = WorkerRecord(platform.node(), machine(), own, start_of(own) or 0, self.joins)
        while True:
            allowed = set(self._wait_for_those_that_work_alone())
            if self.store.register(self.name, record, allowed | {self.name}):
                break
        self._ended.clear()
        self._renewed_at = time.monotonic()
        self._thread = threading.Thread(target=self._renew, args=(record,), daemon=True)
        self._thread.start()

    def leave(self) -> None:
        """Remove the mark. Where the storage does not work, others see in a while that it is not renewed."""
        self._ended.set()
        if self.is_of_this_process:
            if self._thread not in (None, threading.current_thread()):
                self._thread.join(_LONGEST_RENEWAL)  # else it may write the mark again
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
            if alive := [others[name] for name in apart if self._looks[name].is_alive]:
                one = alive[0]
                raise InvalidInputError(
                    f"another search (process {one.process} on {one.host}) works on this study now. "
                    "Wait for its end, or use another ",
                    InPython("study_name or "),
                    Argument("storage"),
                    ". To let several processes work on one search, start all of them with ",
                    Argument("join", True),
                    ".",
                    argument="storage",
                )
            time.sleep(min(0.5, DEAD_AFTER / 10))

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
