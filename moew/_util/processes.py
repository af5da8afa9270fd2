"""Processes: which still run, the folders for rows that go with them, how workers begin and end, and SIGTERM.

Nothing here loads scikit-learn: a new worker looks after its parent from the beginning, not only once it can
train.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import signal
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from joblib.externals.loky.backend.utils import kill_process_tree

_FOLDER = re.compile(r"moew-rows-(\d+)-(\d+)-(\d+)-")  # process, its start, machine
_SECONDS_BETWEEN_LOOKS = 0.5
_STATUS = 128 + signal.SIGTERM  # as shells tell it of a process that SIGTERM ended


@lru_cache(maxsize=1)
def machine() -> int:
    """A number for the machine, or the container: a process number means nothing elsewhere."""
    try:
        numbering = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        numbering = ""
    return zlib.crc32(f"{platform.node()} {numbering}".encode())


def is_running(process: int, start: int) -> bool:
    """Whether the process that began at `start` (0: unknown) still runs."""
    if os.name != "posix":
        return True  # nothing tells, and os.kill would end it
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # it is another user's
    now = start_of(process)
    if now is None:
        return not Path("/proc/self/stat").exists()  # it has just ended, or nothing tells
    return start in (0, now)


def start_of(process: int) -> int | None:
    """When a process began, in the system's ticks; None if it has ended or the system does not tell."""
    try:
        state, *fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return None if state in "ZX" else int(fields[18])


def new_folder() -> str:
    """An empty temporary folder for the rows of this process, named after it; folders of processes that have
    ended are removed."""
    remove_folders_of_the_dead()
    prefix = f"moew-rows-{os.getpid()}-{start_of(os.getpid()) or 0}-{machine()}-"
    return tempfile.mkdtemp(prefix=prefix, dir=_place())


def remove_folders_of_the_dead() -> None:
    """Remove the folders of processes of this machine that have ended."""
    for folder in Path(_place()).glob("moew-rows-*"):
        name = _FOLDER.match(folder.name)
        if name is None:
            continue
        process, start, of_machine = map(int, name.groups())
        if of_machine == machine() and not is_running(process, start):
            shutil.rmtree(folder, ignore_errors=True)  # it may be another user's, or be removed just now


def _place() -> str:
    # joblib's own environment variable, for a folder with enough space for the rows.
    return os.environ.get("JOBLIB_TEMP_FOLDER") or tempfile.gettempdir()


def begin_worker(parent: int, initializer: Callable[..., Any] | None, arguments: Sequence[Any]) -> None:
    """Prepare a new worker process; then run the user's own initializer, if there is one."""
    # Ctrl-C reaches all processes of a terminal: the parent ends the workers. This is a handler, not SIG_IGN,
    # which programs that a model starts would inherit.
    signal.signal(signal.SIGINT, lambda *_: None)
    if os.name == "posix":  # elsewhere a process keeps the number of a parent that has ended
        threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()
    if initializer is not None:
        initializer(*arguments)


def _end_with_parent(parent: int) -> None:
    """Wait until the parent has ended, whatever ended it; then remove its rows and end this process."""
    # The system's own signal, PR_SET_PDEATHSIG, comes when the thread ends that started the worker.
    while os.getppid() == parent:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    try:
        remove_folders_of_the_dead()
    finally:
        this = SimpleNamespace(pid=os.getpid(), join=lambda: None, kill=lambda: None)
        kill_process_tree(this)  # with what the model has started
        os._exit(1)


@contextmanager
def sigterm_like_ctrl_c() -> Iterator[None]:
    """Context in which SIGTERM, by which other programs end this one, does what Ctrl-C does, so that what was
    computed is stored; the program then leaves with the status of one that SIGTERM has ended.

    Where the user handles SIGTERM, or this is not the main thread, which alone gets signals, nothing changes.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    came = False

    def interrupt(*_: Any) -> None:
        nonlocal came
        came = True
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if came:
            raise SystemExit(_STATUS)
