"""Write files atomically, so that an interrupted run never leaves half a file, and say which file failed."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from moew.exceptions import WriteError

_WHAT_TO_DO = {
    errno.ENOSPC: "make room on that disk, or name a place on another",
    errno.EDQUOT: "make room within your quota, or name a place on another disk",
    errno.EFBIG: "raise the limit on the size of files, or name a place on another disk",
    errno.EACCES: "name a place that you may write to",
    errno.EPERM: "name a place that you may write to",
    errno.EROFS: "name a place that can be written to",
}


@contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """Turn an error of the operating system within into a WriteError that names the file."""
    try:
        yield
    except (BrokenPipeError, WriteError):
        raise
    except OSError as error:
        reason = (error.strerror or str(error)).rstrip(".")
        advice = _WHAT_TO_DO.get(error.errno or 0, "check the path, or name another")
        raise WriteError(f"{path} cannot be written: {reason}; {advice}.") from error


def write_whole(path: Path, write: Callable[[Path], Any], *, private: bool = False) -> None:
    """Let `write` fill a new file beside `path`, with the same suffix, which then replaces `path`.

    A `private` file is readable by its owner alone, from its first byte on; one that is replaced keeps the
    rights that it has. Where `path` is no file, but a pipe or a device, it is written to as it is.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file():
            write(target)
            return
        new = target.with_suffix(f".new{target.suffix}")
        try:
            if private:
                new.unlink(missing_ok=True)
                create_private(new)
            write(new)
            if target.exists():
                new.chmod(target.stat().st_mode)
            with new.open("rb") as file:
                os.fsync(file.fileno())  # so that the name never points to a file without its content
            new.replace(target)
        except BaseException:
            new.unlink(missing_ok=True)
            raise


def create_private(path: Path) -> None:
    """Make an empty file that only its owner can read, unless there is a file."""
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
