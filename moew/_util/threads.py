"""Limit BLAS to one thread, for small matrices and for results that do not depend on the number of cores."""

from __future__ import annotations

import threading
from contextlib import ContextDecorator
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


class _OneThread(ContextDecorator):
    """The limit for the whole process: the first thread to enter sets it, the last to leave lifts it."""

    lock = threading.Lock()
    inside = 0
    limit: Any = None

    def __enter__(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.limit = _controller().limit(limits=1, user_api="blas")
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.limit.restore_original_limits()


_one_thread = _OneThread()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # cached: finding the loaded libraries takes milliseconds


def one_blas_thread() -> _OneThread:
    """Context, or decorator of a function, in which NumPy and SciPy compute with one thread.

    The number of threads changes the last bits of a matrix product, and joblib's backends set it in
    different ways; for small matrices several threads are also slower, many times so on a busy machine.
    """
    return _one_thread
