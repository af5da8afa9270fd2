"""Write files atomically, so that an interrupted run never leaves half a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Let `write` fill a new file beside `path`, with the same suffix, which then replaces `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(f".new{path.suffix}")
    write(new)
    new.replace(path)
