"""Rows that do not fit in memory: weights of each, and some of them drawn.

Run `python benchmarks/large_rows.py` (10 million rows × 50 columns: 2 GB of disk for each kind of file, a few
minutes). Every line is measured in a process of its own; the peak is all its resident memory, that of Python,
the libraries and the search before it included. `--rows` makes it smaller.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

WORK = ("weights", "downsample")
BLOCK = 100_000  # rows that are made at a time


def make_block(number: int, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Correlated features (rows, columns) in float32, and 0/1 labels that depend on them."""
    rng = np.random.default_rng(number)
    X = rng.standard_normal((rows, columns), dtype=np.float32)
    X[:, 1::2] += X[:, ::2][:, : columns // 2]
    return X, (X[:, 0] + rng.standard_normal(rows) > 1).astype(np.int64)


def make_files(folder: Path, kind: str, rows: int, columns: int) -> None:
    sizes = [min(BLOCK, rows - start) for start in range(0, rows, BLOCK)]
    blocks = (make_block(number, size, columns) for number, size in enumerate(sizes))
    if kind == "memmap":
        maps = [
            np.lib.format.open_memmap(folder / name, "w+", dtype, shape)
            for name, dtype, shape in (("X.npy", np.float32, (rows, columns)), ("y.npy", np.int64, (rows,)))
        ]
        for number, block in enumerate(blocks):
            for array, values in zip(maps, block, strict=True):
                array[number * BLOCK : number * BLOCK + len(values)] = values
        return
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow.parquet import ParquetWriter  # type: ignore[import-untyped]

    names = [f"x{j}" for j in range(columns)]
    schema = pa.schema([*[(name, pa.float32()) for name in names], ("label", pa.int64())])
    with ParquetWriter(folder / "rows.parquet", schema) as writer:
        for X, y in blocks:
            writer.write_table(
                pa.Table.from_arrays([*[pa.array(x) for x in X.T], pa.array(y)], schema=schema)
            )


def measure(folder: Path, kind: str, work: str, columns: int, chunk_rows: int) -> None:
    """Do the work in this process, and print rows per second and the peak of resident memory."""
    from sklearn.linear_model import LogisticRegression

    from moew import ExampleWeights, MetricSearch
    from moew.embedding import AutoencoderEmbedding

    source: tuple[Path, Path] | Path = (folder / "X.npy", folder / "y.npy")
    label = None
    if kind == "parquet":
        source, label = folder / "rows.parquet", "label"
    embedding = AutoencoderEmbedding(random_state=0)
    n = n_rows(folder, kind)
    names = [f"x{j}" for j in range(columns)]
    X, y = make_block(-1 % 2**32, 20_000, columns)
    if kind == "parquet":
        import pandas as pd

        X = pd.DataFrame(X, columns=names)
    search = MetricSearch(
        LogisticRegression(),
        strategies=[ExampleWeights(embedding=embedding, radius=3.0, batch_size=2, final="best")],
        n_candidates=2,
        evaluate_on=0.2,
        random_state=0,
    ).fit(X, y)
    start = time.monotonic()
    if work == "weights":
        parts = search.iter_example_weights(source, label=label, chunk_rows=chunk_rows)
        result = f"mean weight {sum(float(part.sum()) for part in parts) / n:.3f}"
    else:
        kept, _ = search.downsample(0.1, source, label=label, chunk_rows=chunk_rows)
        result = f"{len(kept):,} rows kept"
    seconds = time.monotonic() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # Linux counts in KiB
    print(
        f"{kind:9}{work:12}{n:>12,}{n / seconds:>14,.0f}{seconds:>9.1f}{peak:>12.2f}   {result}", flush=True
    )


def n_rows(folder: Path, kind: str) -> int:
    if kind == "memmap":
        return int(np.load(folder / "y.npy", mmap_mode="r").shape[0])
    from pyarrow.parquet import ParquetFile

    with ParquetFile(folder / "rows.parquet") as file:
        return int(file.columns.num_rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--chunk-rows", type=int, default=65_536)
    parser.add_argument("--kinds", nargs="+", choices=("memmap", "parquet"), default=("memmap", "parquet"))
    parser.add_argument("--work", nargs="+", choices=WORK, default=WORK)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)  # set in the measured processes
    given = parser.parse_args()
    if given.folder is not None:
        measure(given.folder, given.kinds[0], given.work[0], given.columns, given.chunk_rows)
        return
    print(f"{'file':9}{'work':12}{'rows':>12}{'rows/s':>14}{'s':>9}{'peak, GiB':>12}", flush=True)
    for kind in given.kinds:
        with tempfile.TemporaryDirectory() as folder:
            # In a process of its own: a process starts with the peak of the one that started it.
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:
                apart.submit(make_files, Path(folder), kind, given.rows, given.columns).result()
            for work in given.work:
                command = [sys.executable, __file__, "--folder", folder, "--kinds", kind, "--work", work]
                command += ["--columns", str(given.columns), "--chunk-rows", str(given.chunk_rows)]
                subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
