"""Start processes to be killed, wait for them, and find what they leave behind.

It works on Linux only, because it looks into /proc. A process is started as the leader of a session of its
own, which worker processes that it starts belong to.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("killed_search.py")
PATH = os.pathsep.join([str(PROGRAM.parents[1]), str(PROGRAM.parent)])
MARK = "MOEW_KILLS_CASE"  # environment variable by which a case's processes are found
_IN_SHARED_MEMORY = (("sem.loky-", "-"), ("joblib_memmapping_folder_", "_"))
_LOOK_EVERY = 0.02  # seconds


@dataclass
class Started:
    """A process that was started, and the processes that it has started."""

    process: int
    mark: str
    began: float  # time.monotonic()
    handle: int  # of the system: it never means a later process with the same number
    popen: subprocess.Popen[bytes] | None = None

    def wait(self, seconds: float) -> bool:
        """Whether it ends within so many seconds."""
        looked = select.poll()
        looked.register(self.handle, select.POLLIN)
        if not looked.poll(max(0.0, seconds) * 1000):
            return False
        if self.popen is not None:
            self.popen.wait()
        return True

    def send(self, number: signal.Signals, to_all: bool = False) -> bool:
        """Send a signal to it, or to its whole group as a terminal does. False: it has ended before."""
        if self.wait(0):
            return False
        try:
            if to_all:
                os.killpg(self.process, number)
            else:
                signal.pidfd_send_signal(self.handle, number)
        except ProcessLookupError:
            return False
        return True

    def left(self) -> list[int]:
        """The numbers of all its processes that still run."""
        mark, found = f"{MARK}={self.mark}".encode(), []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, ValueError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                state, session = fields[0], int(fields[3])
                if state in "ZX":
                    continue
                if session == self.process or mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
        return found

    def wait_for_all(self, seconds: float) -> tuple[float, int]:
        """Wait until none of its processes runs; seconds that it took, and how many still run after that."""
        began = time.monotonic()
        while True:
            left, passed = len(self.left()), time.monotonic() - began
            if not left or passed > seconds:
                return passed, left
            time.sleep(_LOOK_EVERY)

    def end(self) -> None:
        """End it and all its processes."""
        for process in {*self.left(), self.process} if not self.wait(0) else self.left():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.wait(10)
        os.close(self.handle)


class Starter:
    """Starts processes: new interpreters, or forks of one that has loaded everything."""

    def __init__(self) -> None:
        environment = {**os.environ, **_few_threads(), "PYTHONPATH": PATH}
        self._forks = subprocess.Popen(
            [sys.executable, PROGRAM, "forks"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the benchmark
        )
        assert self._forks.stdout is not None
        self._forks.stdout.readline()  # it has loaded everything: no case waits for that

    def start(
        self, arguments: Sequence[str], folder: Path, mark: str, more: dict[str, str], *, fork: bool = True
    ) -> Started:
        """Start `killed_search.py` with these arguments, in a folder; what it says goes to "said" there."""
        environment = {**more, MARK: mark}
        began = time.monotonic()
        if fork:
            order: dict[str, Any] = {"arguments": list(arguments), "folder": str(folder)}
            order |= {"environment": environment, "said": str(folder / "said")}
            assert self._forks.stdin is not None and self._forks.stdout is not None
            print(json.dumps(order), file=self._forks.stdin, flush=True)
            process = int(self._forks.stdout.readline())
            with contextlib.suppress(ProcessLookupError):
                return Started(process, mark, began, os.pidfd_open(process))
            raise RuntimeError(f"process {process} ended as it was started")
        program = ["-m", *arguments] if arguments[0] == "moew" else [str(PROGRAM), *arguments]
        with (folder / "said").open("ab") as said:
            popen = subprocess.Popen(
                [sys.executable, *program],
                cwd=folder,
                env={**os.environ, **_few_threads(), "PYTHONPATH": PATH, **environment},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        return Started(popen.pid, mark, began, os.pidfd_open(popen.pid), popen)

    def close(self) -> None:
        """End the process that forks; it ends when nobody gives it orders."""
        assert self._forks.stdin is not None and self._forks.stdout is not None
        self._forks.stdin.close()
        self._forks.wait()
        self._forks.stdout.close()


@contextlib.contextmanager
def starters(number: int) -> Iterator[list[Starter]]:
    """So many `Starter`s, which are closed afterwards."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(contextlib.closing(Starter())) for _ in range(number)]


def _few_threads() -> dict[str, str]:
    """One thread for each process: the matrices are small, and processes share the cores."""
    return {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def wait_until(happened: Callable[[], bool], seconds: float) -> bool:
    """Whether it happens within so many seconds."""
    deadline = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_EVERY)
    return True


def shared_memory_of(processes: Sequence[int]) -> list[str]:
    """What joblib's worker pools of these processes have left in shared memory: semaphores, and arrays."""
    starts = [f"{kind}{p}{end}" for p in processes for kind, end in _IN_SHARED_MEMORY]
    return [path.name for path in Path("/dev/shm").glob("*") if path.name.startswith(tuple(starts))]
