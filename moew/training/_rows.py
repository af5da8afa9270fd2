"""The training rows, sent once to where the workers can read them."""

from __future__ import annotations

import pickle
import shutil
import threading
import weakref
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import joblib
from sklearn.utils import _safe_indexing

from moew._util.row_files import new_folder
from moew.types import IntArray, Labels, Rows


class SharedRows:
    """Data that all candidates share, as workers get them: the rows (X, y), or a fold's row numbers."""

    def __init__(self, content: Any) -> None:
        self.content = content
        self._cut: tuple[SharedRows, tuple[Rows, Labels]] | None = None

    def rows(self, fold: SharedRows | None) -> tuple[Rows, Labels]:
        """X and y, or those of their rows whose numbers are in `fold`.

        The rows of the last fold are kept, because candidates come fold by fold and share them.
        """
        X, y = self.content
        if fold is None:
            return X, y
        cut = self._cut
        if cut is None or cut[0] is not fold:
            cut = self._cut = fold, (_safe_indexing(X, fold.content), y[fold.content])
        return cut[1]


class SharedRowsInFile(SharedRows):
    """Shared rows that are pickled as the name of a file, for processes on one machine.

    Otherwise the rows would go through a pipe with every candidate. Here the first pickling writes them to a
    file, and each worker opens it once: arrays of numbers are memory-mapped (read only) and shared by all.
    """

    def __init__(self, content: Any) -> None:
        super().__init__(content)
        self._path: str | None = None
        self._lock = threading.Lock()  # there is one thread for each worker that pickles for it

    def __reduce__(self) -> tuple[Callable[[str], SharedRows], tuple[str]]:
        with self._lock:
            if self._path is None:
                folder = new_folder()
                weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
                path = str(Path(folder) / "rows")
                joblib.dump(self.content, path)
                self._path = path
        return _load, (self._path,)


class SharedRowsInOnePiece(SharedRows):
    """Shared rows that are pickled in one piece, where Dask would send arrays separately.

    Such arrays arrive at unaligned addresses, where NumPy multiplies matrices without BLAS, which changes
    the last bits.
    """

    def __reduce__(self) -> tuple[Callable[[bytes], SharedRows], tuple[bytes]]:
        return self._unpack, (pickle.dumps(self.content, protocol=4),)

    @classmethod
    def _unpack(cls, packed: bytes) -> Self:
        return cls(pickle.loads(packed))  # of this class again, as workers may send it on to other workers


@lru_cache(maxsize=2)  # the rows and the fold that is being trained
def _load(path: str) -> SharedRows:
    return SharedRows(joblib.load(path, mmap_mode="r"))


class SharedRowsCache:
    """Keeps the shared rows and folds, as long as the same rows are trained on at the same place.

    All batches and folds of a search train on the same rows, so these are sent once for each search.
    """

    def __init__(self) -> None:
        self._of: tuple[Any, Rows, Labels] | None = None
        self._rows: Any = None
        self._folds: list[tuple[IntArray, Any]] = []

    def at(
        self, place: Any, X: Rows, y: Labels, fold: IntArray | None, put: Callable[[Any], Any]
    ) -> tuple[Any, Any]:
        """The shared (X, y) and row numbers of the fold (None: all rows) at this place.

        They are what `put` returns; it is called for what is not there yet.
        """
        of = self._of
        if of is None or of[0] != place or of[1] is not X or of[2] is not y:
            self.forget()
            self._rows = put((X, y))
            self._of = place, X, y
        if fold is None:
            return self._rows, None
        for known, handle in self._folds:
            if known is fold:
                return self._rows, handle
        self._folds.append((fold, put(fold)))
        return self._rows, self._folds[-1][1]

    def forget(self) -> None:
        """Release the rows: the file is removed, a cluster drops its copies."""
        self._of, self._rows, self._folds = None, None, []
