"""Helpers to learn an embedding from chunks: the encoding, blocks of equal size, the spread of Z."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from moew.data import LabelSummary, Moments, TableSummary, TabularEncoder, TargetEncoder, label_positions
from moew.data._chunks import Chunk, Column, check_readable_again, iter_chunks
from moew.embedding._base import side_by_side
from moew.exceptions import InvalidInputError
from moew.types import FloatArray, Labels, Rows, Task


def check_chunk_settings(source: Any, task: Task, batch_size: int | None, chunk_rows: int) -> None:
    """Raise on settings that cannot be used with rows in chunks."""
    check_readable_again(source)
    if task not in ("classification", "regression"):
        raise InvalidInputError(f"task must be 'classification' or 'regression', got {task!r}.")
    if batch_size is None:
        raise InvalidInputError(
            "batch_size=None takes all rows in every step, which rows in chunks cannot; give a number."
        )
    if chunk_rows < 2 * batch_size:  # a block has at least half of chunk_rows
        raise InvalidInputError(
            f"chunk_rows={chunk_rows} must be at least twice the batch_size of {batch_size}, whose rows all "
            "come from one block."
        )


class EncodedChunks:
    """The rows of a source, encoded as network inputs (n, D); reads them once to fit the encoding."""

    def __init__(self, source: Any, label: Column | None, chunk_rows: int, task: Task, scale: bool) -> None:
        self._open = partial(iter_chunks, source, label=label, chunk_rows=chunk_rows)
        table, labels = TableSummary(), LabelSummary(task)
        for X, y in self._open():
            table.add(X)
            labels.add(y)
        self.n_rows = labels.count
        if not self.n_rows:
            raise InvalidInputError("the source gave no rows.")
        self.encoder = TabularEncoder(scale).learn(table)
        self.target = TargetEncoder(scale).learn(labels)

    def chunks(self) -> Iterator[Chunk]:
        """Yield the labelled rows in chunks; raise where their number differs from the first reading."""
        n_rows = 0
        for chunk in self._open():
            n_rows += len(chunk.y)
            yield chunk
        if n_rows != self.n_rows:
            raise InvalidInputError(
                f"the source gave {self.n_rows} rows when read first and {n_rows} now; it must give the same "
                "rows each time."
            )

    def blocks(self, sizes: list[int]) -> Iterator[FloatArray]:
        """Yield the encoded rows in float32 blocks of these sizes, whatever the sizes of the chunks are."""
        waiting: list[FloatArray] = []
        n_waiting, wanted = 0, iter(sizes)
        size = next(wanted)
        for X, y in self.chunks():
            rows = side_by_side(self.encoder.transform(X), self.target.transform(y)).astype(np.float32)
            waiting.append(rows)
            n_waiting += len(rows)
            while n_waiting >= size:
                together = np.concatenate(waiting)
                yield together[:size]
                waiting, n_waiting = [together[size:]], n_waiting - size
                size = next(wanted, self.n_rows + 1)


def even_sizes(n_rows: int, most: int) -> list[int]:
    """Sizes of the fewest blocks that hold n_rows with at most `most` each; they differ by at most 1."""
    n_blocks = -(-n_rows // most)
    ends = np.arange(n_blocks + 1) * n_rows // n_blocks
    return [int(size) for size in np.diff(ends)]


def centre_spread_and_top(
    chunks: EncodedChunks, embed: Callable[[Rows, Labels], FloatArray], task: Task
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean, standard deviation and largest absolute value of Z, each (d,), all classes counted equally."""
    levels = list(chunks.target.column_.levels) if task == "classification" else [None]
    groups = [Moments() for _ in levels]
    for X, y in chunks.chunks():
        Z = embed(X, y)
        codes = np.zeros(len(y)) if task == "regression" else label_positions(y, levels)
        for code, group in enumerate(groups):
            group.add(Z[codes == code])
    offset = np.mean([group.mean for group in groups], axis=0)
    # The mean squared distance from the centre: the variance in a class plus that of the class's mean.
    around = np.mean([group.variance + (group.mean - offset) ** 2 for group in groups], axis=0)
    return offset, np.sqrt(around), np.max([group.top for group in groups], axis=0)
