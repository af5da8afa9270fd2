"""Processes of this machine: what they are known by, and whether they still run."""

from __future__ import annotations

import os
import platform
import zlib
from functools import lru_cache
from pathlib import Path


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
