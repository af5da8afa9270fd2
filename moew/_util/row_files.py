"""Folders for rows in the temporary folder, which go with the process that made them.

A folder's name says whose it is. What a process leaves because it was killed is removed by its workers, or by
the next process that writes rows.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from moew._util.processes import is_running, machine, start_of

_NAME = re.compile(r"moew-rows-(\d+)-(\d+)-(\d+)-")  # process, its start, machine


def new_folder() -> str:
    """An empty folder for the rows of this process; folders of processes that have ended are removed."""
    remove_folders_of_the_dead()
    prefix = f"moew-rows-{os.getpid()}-{start_of(os.getpid()) or 0}-{machine()}-"
    return tempfile.mkdtemp(prefix=prefix, dir=_place())


def remove_folders_of_the_dead() -> None:
    """Remove the folders of processes of this machine that have ended."""
    for folder in Path(_place()).glob("moew-rows-*"):
        name = _NAME.match(folder.name)
        if name is None:
            continue
        process, start, of_machine = map(int, name.groups())
        if of_machine == machine() and not is_running(process, start):
            shutil.rmtree(folder, ignore_errors=True)  # it may be another user's, or be removed just now


def _place() -> str:
    # joblib's own environment variable, for a folder with enough space for the rows.
    return os.environ.get("JOBLIB_TEMP_FOLDER") or tempfile.gettempdir()
