"""What SIGTERM does, by which other programs end this one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_STATUS = 128 + signal.SIGTERM  # as shells tell it of a process that SIGTERM ended


@contextmanager
def sigterm_like_ctrl_c() -> Iterator[None]:
    """Context in which SIGTERM does what Ctrl-C does, so that what was computed is stored; the program then
    leaves with the status of one that SIGTERM has ended.

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
