"""Read rows that do not fit in memory in chunks, from Parquet and .npy files, memory maps and iterators."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from moew._util.checks import COUNT
from moew.exceptions import InvalidInputError
from moew.types import Features, Labels

CHUNK_ROWS = 65_536  # 50 columns of float64 are 26 MB
ColumnKey = str | int


class Chunk(NamedTuple):
    """Consecutive labelled rows of a source."""

    X: Features
    y: Labels


def iter_chunks(
    source: Any, *, label: ColumnKey | None = None, chunk_rows: int = CHUNK_ROWS
) -> Iterator[Chunk]:
    """Yield the rows of `source` in order, at most `chunk_rows` at a time, each chunk a copy in memory.

    `source` is a Parquet file or a folder of them, a .npy file, an array or a memory map (n, D), a data
    frame, a pair `(X, y)` of those, an iterable of frames, arrays or pairs, or a function without arguments
    that returns such an iterable. `label` is the column that holds the labels, by name in a frame and by
    number in an array; leave it out where the source gives pairs. Chunks of an iterable that are longer than
    `chunk_rows` are cut; shorter ones are not joined.
    """
    for X, y in _pieces(source, chunk_rows):
        if y is None:
            yield _labelled(X, label)
        elif label is None:
            yield Chunk(X, y)
        else:
            raise InvalidInputError(
                f"the source gives pairs (X, y), so label={label!r} is one too many.", argument="label"
            )


def iter_rows(source: Any, *, chunk_rows: int = CHUNK_ROWS) -> Iterator[Features]:
    """As `iter_chunks`, for rows without labels: all columns are features, and pairs (X, y) are refused."""
    for X, y in _pieces(source, chunk_rows):
        if y is not None:
            raise InvalidInputError(
                "rows without labels are wanted, but a pair came, which is read as (X, y): pass X alone, and "
                "several tables as a list.",
                argument="source",
            )
        yield X


def _pieces(source: Any, chunk_rows: int) -> Iterator[tuple[Features, Labels | None]]:
    """At most `chunk_rows` rows at a time, with their labels where the source gives pairs."""
    COUNT.check("chunk_rows", chunk_rows)
    size = min(int(chunk_rows), 2**31)  # Arrow takes no larger one
    for table in _tables(source, size):
        X, y = map(_opened, table) if _is_pair(table) else (table, None)
        if not _is_table(X):
            raise InvalidInputError(
                f"X must be a data frame or an array of two dimensions, got {type(X).__name__} of shape "
                f"{np.shape(X)}.",
                argument="X",
            )
        X, n = X.tocsr() if hasattr(X, "tocsr") else X, int(X.shape[0])  # CSR has row slices
        n_labels = len(y) if y is not None and hasattr(y, "__len__") else "none"
        if _is_pair(table) and n != n_labels:
            raise InvalidInputError(
                f"X has {n} rows and y has {n_labels}; give a label to each row.", argument="y"
            )
        for start in range(0, n, size):
            yield _take(X, start, size), None if y is None else _take(y, start, size)


def _tables(source: Any, chunk_rows: int) -> Iterator[Any]:
    """Tables, or pairs of tables and labels, of any length."""
    if isinstance(source, str | os.PathLike):
        yield from [_opened(source)] if _is_npy(source) else _of_parquet(Path(source), chunk_rows)
        return
    if _is_pair(source) or _is_table(source):
        yield source
        return
    tables = source() if callable(source) else source
    single = isinstance(tables, np.ndarray) and tables.ndim == 0  # has __iter__ all the same
    if single or not isinstance(tables, Iterable):
        raise InvalidInputError(
            "rows come from a Parquet or .npy file, an array, a data frame, a pair (X, y), an iterable of "
            f"those, or a function that returns one; got {type(tables).__name__}.",
            argument="source",
        )
    for table in tables:
        if not _is_pair(table) and not _is_table(table):
            raise InvalidInputError(
                "an iterable of chunks must give data frames, arrays of two dimensions or pairs (X, y); it "
                f"gave {type(table).__name__}.",
                argument="source",
            )
        yield table


def _of_parquet(path: Path, chunk_rows: int) -> Iterator[Any]:
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise InvalidInputError(f"the folder {path} holds no *.parquet files.", argument="source")
    try:
        import pandas  # noqa: F401  (embeddings and models take data frames)
        from pyarrow.parquet import ParquetFile  # type: ignore[import-untyped]
    except ImportError as error:
        raise InvalidInputError(
            f"reading {path.name} needs pyarrow and pandas ({error}): pip install 'moew[parquet]'.",
            argument="source",
        ) from error
    for file in files:
        with _as_parquet(file):
            opened = ParquetFile(file, pre_buffer=False)  # otherwise everything that was read stays in memory
        with opened:
            batches = (batch.to_pandas() for batch in opened.iter_batches(batch_size=chunk_rows))
            while True:
                with _as_parquet(file):  # what is damaged may lie in the middle
                    rows = next(batches, None)
                if rows is None:
                    break
                yield rows


@contextmanager
def _as_parquet(file: Path) -> Iterator[None]:
    """Turn whatever a reader says about a file into an error that names it."""
    try:
        yield
    except Exception as error:
        if type(error) is MemoryError:  # not Arrow's, of a file that says it holds more than there is
            raise
        raise InvalidInputError(
            f"{file} cannot be read as a Parquet file ({error}). Read other files yourself and pass a "
            "function, such as lambda: pandas.read_csv(path, chunksize=100_000).",
            argument="source",
        ) from error


def _labelled(table: Any, label: ColumnKey | None) -> Chunk:
    if label is None:
        raise InvalidInputError(
            "the rows come without labels: name the column that holds them by label=…, or pass pairs (X, y).",
            argument="label",
        )
    if hasattr(table, "columns"):
        names = list(table.columns)
        if label not in names:
            raise InvalidInputError(
                f"there is no column {label!r}; the columns are {names[:20]!r}.", argument="label"
            )
        y = np.asarray(table[label])
        return Chunk(table[[name for name in names if name != label]], y)
    if isinstance(label, str) or not -table.shape[1] <= label < table.shape[1]:
        raise InvalidInputError(
            f"an array's label column is a number below its {table.shape[1]} columns, got {label!r}.",
            argument="label",
        )
    return Chunk(np.delete(table, label, axis=1), table[:, label])


def _is_table(thing: Any) -> bool:
    return hasattr(thing, "columns") or (hasattr(thing, "shape") and len(thing.shape) == 2)


def _is_pair(thing: Any) -> bool:
    return isinstance(thing, tuple) and len(thing) == 2


def _is_npy(thing: Any) -> bool:
    return isinstance(thing, str | os.PathLike) and Path(thing).suffix == ".npy"


def _opened(part: Any) -> Any:
    """The array of a .npy file as a memory map; anything else as it is."""
    if not _is_npy(part):
        return part
    try:
        array = np.load(part, mmap_mode="r")
    except MemoryError:
        raise
    except Exception as error:  # of a damaged header NumPy raises what its parser does
        raise InvalidInputError(
            f"{part} cannot be mapped as a .npy file: {error}.", argument="source"
        ) from error
    if array.ndim > 2:
        raise InvalidInputError(
            f"{part} has the shape {array.shape}; rows have two dimensions.", argument="source"
        )
    return array


def _take(rows_of: Any, start: int, n: int) -> Any:
    """The n rows from `start`, or fewer at the end."""
    rows = slice(start, start + n)
    if hasattr(rows_of, "iloc"):
        return rows_of.iloc[rows]
    if hasattr(rows_of, "to_pandas") and hasattr(rows_of, "column_names"):  # an Arrow table or record batch
        return rows_of.slice(start, n).to_pandas()
    if not isinstance(rows_of, np.ndarray):
        return rows_of[rows]
    taken = np.array(rows_of[rows])
    _forget_pages(rows_of)
    return taken


def _forget_pages(array: Any) -> None:
    """Release the pages of a memory-mapped file, which otherwise count as used memory once they were read."""
    owner = array
    while owner is not None and not isinstance(owner, np.memmap):
        owner = getattr(owner, "base", None)
    pages = getattr(owner, "_mmap", None)
    # Changes to a copy-on-write map (mode "c") exist only in those pages, so they are kept.
    if pages is not None and getattr(owner, "mode", "c") != "c" and hasattr(mmap, "MADV_DONTNEED"):
        pages.madvise(mmap.MADV_DONTNEED)
