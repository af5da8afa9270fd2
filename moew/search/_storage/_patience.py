"""Try again what a storage refuses for a moment: a database that restarts, a disk that is full."""

from __future__ import annotations

import errno
import time
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from optuna.exceptions import StorageInternalError

from moew.exceptions import MoewWarning, StorageError

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 15.0  # seconds
_LASTING = (errno.EFBIG, errno.ENAMETOOLONG)  # limits that no waiting changes
_OF_SQLITE = (
    "locked",
    "busy",
    "full",
    "unable to open",
    "i/o error",
    "readonly",
)  # what may pass, in its words


class _Stored(Protocol):
    patience: float
    where: str


_Self = TypeVar("_Self", bound=_Stored)


def patiently(
    method: Callable[Concatenate[_Self, _Given], _Found],
) -> Callable[Concatenate[_Self, _Given], _Found]:
    """Let a method of a store be called again, after growing pauses, while its storage does not work.

    Such a method must do nothing twice: a connection may break after a write, before its confirmation.
    """

    @wraps(method)
    def tried(self: _Self, /, *args: _Given.args, **settings: _Given.kwargs) -> _Found:
        begun, pause = time.monotonic(), _FIRST_PAUSE
        while True:
            try:
                return method(self, *args, **settings)
            except Exception as error:
                reason = passing_reason(error)
                if reason is None:
                    raise
                if time.monotonic() + pause - begun > self.patience:
                    raise StorageError(
                        f"the storage {self.where} cannot be used: {reason}. What was stored until then is "
                        "kept: the same call goes on from there when the cause is gone.",
                        argument="storage",
                    ) from error
                if pause == _FIRST_PAUSE:
                    warnings.warn(
                        f"the storage {self.where} does not work: {reason}. This is tried again, for up to "
                        f"{self.patience:.0f} seconds.",
                        MoewWarning,
                        stacklevel=2,
                    )
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    return tried


def passing_reason(error: BaseException) -> str | None:
    """Why the storage does not work, in words, if that may pass; None for other errors."""
    if isinstance(error, StorageInternalError) and error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, OSError):
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
        return None if cause.errno in _LASTING else str(error).rstrip(".")
    if type(error).__module__.partition(".")[0] != "sqlalchemy":
        return None
    from sqlalchemy import exc

    if not isinstance(
        error, exc.OperationalError | exc.InterfaceError | exc.InternalError | exc.TimeoutError
    ):
        return None
    words = " ".join(str(getattr(error, "orig", None) or error).split()).rstrip(".")
    if type(getattr(error, "orig", None)).__module__.startswith("sqlite3"):
        if not any(word in words.lower() for word in _OF_SQLITE):
            return None
        if "full" in words:
            words += "; make room on that disk, or name a place on another"
    return words
