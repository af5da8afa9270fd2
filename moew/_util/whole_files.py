"""Files that are there whole or not at all, whenever a run is interrupted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Let `write` fill a new file beside `path`, of the same ending, which then takes its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(f".new{path.suffix}")
    write(new)
    new.replace(path)
