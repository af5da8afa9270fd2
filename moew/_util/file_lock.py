"""A lock between processes that the system releases whatever ends its holder."""

from __future__ import annotations

import errno
import os
import threading
import time
from pathlib import Path
from typing import Any

if os.name == "nt":
    import msvcrt
else:
    import fcntl

_LONGEST_WAIT = 60.0  # seconds: a holder that was stopped, not ended, keeps its lock
_FAR_BEHIND = 2**62  # Windows locks bytes, which others then cannot read: one that no file has


class FileLock:
    """A lock on an existing file, for one process and one thread at a time; the holder may take it again.

    The file itself is locked, so that none is left behind. It must not be replaced by another file of its
    name. Network file systems need to support locks: NFS 4 does.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._threads = threading.RLock()
        self._depth = 0
        self._file: Any = None

    def acquire(self) -> bool:
        """Wait for the lock; after a minute raise OSError."""
        self._threads.acquire()
        try:
            if self._depth == 0:
                self._file = self.path.open("r+b")
                self._wait()
            self._depth += 1
        except BaseException:
            self._close()
            self._threads.release()
            raise
        return True

    def release(self) -> None:
        """Give the lock back."""
        self._depth -= 1
        if self._depth == 0:
            self._close()
        self._threads.release()

    def __enter__(self) -> FileLock:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _wait(self) -> None:
        deadline, pause = time.monotonic() + _LONGEST_WAIT, 0.001
        while not _try_to_lock(self._file):
            if time.monotonic() > deadline:
                reason = "another process holds its lock and does not give it back"
                raise OSError(errno.ETIMEDOUT, reason, str(self.path))
            time.sleep(pause)
            pause = min(2 * pause, 0.05)

    def _close(self) -> None:
        if self._depth == 0 and self._file is not None:
            file, self._file = self._file, None
            file.close()  # which unlocks it


def _try_to_lock(file: Any) -> bool:
    try:
        if os.name == "nt":
            file.seek(_FAR_BEHIND)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
            return False
        raise
    return True
