"""The training rows, put once where the workers find them."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import joblib

from moew.protocols import Labels, Rows


class TrainingRows:
    """X and y together, as they are handed to whoever trains."""

    def __init__(self, X: Rows, y: Labels) -> None:
        self.rows = X, y


class RowsInFile(TrainingRows):
    """Rows that pickle as the name of a file, for processes on one machine.

    joblib maps large arrays into its workers' memory, but pickles smaller arrays and what is no array (texts,
    the frame around the numbers) anew for every candidate. Here the first pickling writes the rows to a
    file, and each worker opens it once: numbers are mapped from there (read only), in memory that all share.
    """

    def __init__(self, X: Rows, y: Labels) -> None:
        super().__init__(X, y)
        self._path: str | None = None
        self._lock = threading.Lock()  # joblib pickles in threads of its own

    def __reduce__(self) -> tuple[Callable[[str], TrainingRows], tuple[str]]:
        with self._lock:
            if self._path is None:
                # The environment variable is joblib's own, for folders with room for the rows.
                folder = tempfile.mkdtemp(prefix="moew-", dir=os.environ.get("JOBLIB_TEMP_FOLDER"))
                weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
                path = str(Path(folder) / "rows")
                joblib.dump(self.rows, path)
                self._path = path
        return _from_file, (self._path,)


class RowsInOnePiece(TrainingRows):
    """Rows whose arrays are not cut out of the pickle and sent beside it, as Dask does.

    Such arrays arrive at odd addresses, where NumPy multiplies matrices without BLAS: other last bits.
    """

    def __reduce__(self) -> tuple[Callable[[bytes], TrainingRows], tuple[bytes]]:
        return _from_bytes, (pickle.dumps(self.rows, protocol=4),)

    def __sizeof__(self) -> int:  # Dask plans its workers' memory by it
        return super().__sizeof__() + sum(_n_bytes(part) for part in self.rows)


def _from_file(path: str) -> TrainingRows:
    return TrainingRows(*_load(path))


def _from_bytes(packed: bytes) -> TrainingRows:
    return RowsInOnePiece(*pickle.loads(packed))  # may be sent on from worker to worker


def _n_bytes(part: Any) -> int:
    of_columns = getattr(part, "memory_usage", None)  # a data frame's
    return int(of_columns().sum()) if callable(of_columns) else int(getattr(part, "nbytes", 0))


@lru_cache(maxsize=2)
def _load(path: str) -> tuple[Rows, Labels]:
    rows: tuple[Rows, Labels] = joblib.load(path, mmap_mode="r")
    return rows


class Placed:
    """Remembers where the rows were put, as long as the same rows are trained on at the same place.

    All batches of a search train on the same rows, so they travel once for the search, not once a batch.
    """

    def __init__(self) -> None:
        self._what: tuple[Any, Rows, Labels] | None = None
        self._handle: Any = None

    def at(self, place: Any, X: Rows, y: Labels, put: Callable[[], Any]) -> Any:
        """What `put` returned for these rows at this place; it is called if they are not there yet."""
        known = self._what
        if known is None or known[0] != place or known[1] is not X or known[2] is not y:
            self.forget()
            self._handle = put()
            self._what = place, X, y
        return self._handle

    def forget(self) -> None:
        """Let go of the rows: the file is removed, a cluster drops its copies."""
        self._what = self._handle = None
