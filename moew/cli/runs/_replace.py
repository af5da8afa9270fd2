"""Replace a run folder by a new run without a moment at which a kill would lose or mix them.

The new run is written into a folder beside the old one. When it is complete, two renames swap them, and what
else the user kept in the old folder is moved over. `recover` completes a swap that was interrupted.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from moew.exceptions import InvalidInputError


def new_place(folder: Path) -> Path:
    """Where the run is written that will replace the one in `folder`."""
    return folder.with_name(f"{folder.name}.moew-new")


def old_place(folder: Path) -> Path:
    """Where the replaced run is while the two are swapped."""
    return folder.with_name(f"{folder.name}.moew-old")


def check_replaceable(folder: Path) -> None:
    """Raise if the folder cannot be renamed, before hours of training, not after."""
    here = Path.cwd()
    reason = ""
    if here == folder or folder in here.parents:
        reason = "it is the current folder, or holds it; run the command from another folder"
    elif os.path.ismount(folder):
        reason = "it is a disk of its own; take a folder on it"
    elif not os.access(folder.parent, os.W_OK):
        reason = f"nothing can be written to {folder.parent}"
    if reason:
        raise InvalidInputError(
            f"--force writes the new run beside {folder} and then swaps the two, which cannot be done here: "
            f"{reason}, or name another --out."
        )


def swap(folder: Path, is_of_run: Callable[[str], bool]) -> None:
    """Put the complete run in `new_place(folder)` into the place of the one in `folder`."""
    folder.rename(old_place(folder))
    new_place(folder).rename(folder)
    _clean(folder, is_of_run)


def recover(folder: Path, is_of_run: Callable[[str], bool]) -> None:
    """Complete a swap that was interrupted; `is_of_run` tells a run's files by their names."""
    new, old = new_place(folder), old_place(folder)
    if not old.is_dir():
        return
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    if not folder.exists():  # between the two renames
        (new if new.is_dir() else old).rename(folder)
    elif new.is_dir():
        raise InvalidInputError(
            f"{old} holds an older run and {new} the one that was to replace it, but there is something else "
            f"in {folder}: move that away to go on."
        )
    if old.is_dir():
        _clean(folder, is_of_run)


def _clean(folder: Path, is_of_run: Callable[[str], bool]) -> None:
    """Move what is not of the old run to the new one, and remove the old run."""
    for entry in old_place(folder).iterdir():
        if not is_of_run(entry.name) and not (folder / entry.name).exists():
            entry.rename(folder / entry.name)
    shutil.rmtree(old_place(folder))
