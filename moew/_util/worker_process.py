"""What a worker process does besides training: it leaves Ctrl-C to its parent, and ends with it.

This is not in the room of training, which loads scikit-learn: a new process looks after its parent from the
beginning, not only once it can train.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from joblib.externals.loky.backend.utils import kill_process_tree

from moew._util.row_files import remove_folders_of_the_dead

_SECONDS_BETWEEN_LOOKS = 0.5


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
    """Wait until the parent has ended, whatever ended it; then remove its rows and end this process.

    The system's own signal for this (PR_SET_PDEATHSIG) is sent when the thread ends that started the worker,
    which is often before the process does.
    """
    while os.getppid() == parent:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    try:
        remove_folders_of_the_dead()
    finally:
        this = SimpleNamespace(pid=os.getpid(), join=lambda: None, kill=lambda: None)
        kill_process_tree(this)  # with what the model has started
        os._exit(1)
