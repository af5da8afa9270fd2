"""Cases of files that are read: tables (CSV, Parquet, Feather), chunks (.npy, Parquet), settings (TOML).

What was written soundly must be read as it was written. What is damaged must be refused, or give rows.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from fuzz_cases import chance, checking, damaged_bytes, damaged_lines, expect, expect_same, odd_value, pick
from fuzz_rows import Rng

from moew.cli import commands
from moew.cli._options import read_config
from moew.cli.runs import read_table
from moew.cli.runs._tables import read_header
from moew.data import iter_chunks, iter_rows

_CELLS = (
    "",
    " ",
    "NA",
    "1",
    "007",
    "1e5",
    "-3.5",
    "x",
    "a,b",
    'say "hi"',
    "two\nlines",
    "é",
    "=1+1",
    "True",
    "inf",
)
_TOML = (
    'label = "y"', "batches = 3", "batch-size = 2", "radius = 1.5", 'metric = "accuracy"',
    "strategies = ['auto']",
    'drop = ["a", "b"]', "seed = 7", 'model = "logistic"', 'final = "best"', 'honest = "none"',
    "[model-option]",
    "stop-when = 0.1", 'metric-column = { group = "g" }', "validation-share = 0.3",
)  # fmt: skip


def reader_case(rng: Rng) -> None:
    """Read a file that is sound or damaged."""
    with TemporaryDirectory() as name:
        pick(rng, [_table_case, _table_case, _chunk_case, _toml_case, _sound_csv_case])(rng, Path(name))


def _frame(rng: Rng) -> pd.DataFrame:
    n = int(rng.integers(1, 30))
    return pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "whole": rng.integers(-5, 5, n),
            "text": rng.choice(["red", "green", "é", ""], n),
            "truth": rng.choice([True, False], n),
            "y": rng.integers(0, 2, n),
        }
    )


def _write(frame: pd.DataFrame, path: Path) -> None:
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".feather":
        frame.to_feather(path)
    else:
        frame.to_csv(path, index=False)


def _table_case(rng: Rng, folder: Path) -> None:
    frame = _frame(rng)
    path = folder / pick(rng, ["t.csv", "t.csv", "t.csv.gz", "t.parquet", "t.feather"])
    _write(frame, path)
    data = path.read_bytes()
    if path.name == "t.csv" and chance(rng, 0.4):
        data = damaged_lines(rng, data)
    elif path.suffix == ".gz" and chance(rng, 0.5):
        data = gzip.compress(damaged_bytes(rng, gzip.decompress(data)))
    else:
        data = damaged_bytes(rng, data)
    path.write_bytes(data)
    if chance(rng, 0.2):
        path = path.rename(folder / pick(rng, ["t.csv", "t.parquet", "t.feather", "t.txt", "t", "t.csv.gz"]))
    texts = [name for name in ("text", "whole", "nothing") if chance(rng, 0.3)]
    found = read_table(
        path, texts, label=pick(rng, [None, "y", "no"]), ids=pick(rng, [None, "whole", "text", "no"])
    )
    header = read_header(path)
    with checking("a table that was read"):
        expect(len(found) > 0, "a table without rows")
        expect(all(isinstance(name, str) for name in found.columns), f"names {list(found.columns)}")
        expect(len(set(found.columns)) == len(found.columns), f"names {list(found.columns)}")
        expect(
            header == list(found.columns), f"the header is {header}, the columns are {list(found.columns)}"
        )
        expect(list(found.index) == list(range(len(found))), "rows are not numbered from 0")


def _sound_csv_case(rng: Rng, folder: Path) -> None:
    """What stands in a CSV is read cell by cell as Python's own reader reads it."""
    n, names = int(rng.integers(1, 12)), ["a", "b b", "ç"]
    cells = [[pick(rng, _CELLS) for _ in names] for _ in range(n)]
    path = folder / "t.csv"
    with path.open("w", newline="", encoding=pick(rng, ["utf-8", "utf-8-sig"])) as file:
        ending = pick(rng, ["\n", "\r\n"])
        csv.writer(file, lineterminator=ending, quoting=csv.QUOTE_ALL).writerows([names, *cells])
    with checking("a sound CSV"):
        found = read_table(path, names)
        expect(list(found.columns) == names, f"names {list(found.columns)}")
        for k, name in enumerate(names):
            wanted = [None if row[k] in ("", "NA") else row[k] for row in cells]
            got = [None if pd.isna(cell) else cell for cell in found[name]]
            expect(got == wanted, f"the column {name!r}: {got} is not {wanted}")
        ids = read_table(path, ids="a")["a"].astype(str).tolist()
        expect(ids == [row[0] for row in cells], f"ids {ids}")


def _chunk_case(rng: Rng, folder: Path) -> None:
    array = rng.normal(size=(int(rng.integers(1, 40)), 3))
    sound = chance(rng, 0.3)
    size: Any = int(rng.integers(1, 20)) if sound or chance(rng, 0.8) else odd_value(rng)
    path = folder / pick(rng, ["t.npy", "t.npy", "t.parquet"])
    label: Any = 2 if path.suffix == ".npy" else "c"
    if path.suffix == ".npy":
        np.save(
            path,
            array if chance(rng, 0.7) or sound else array.astype(pick(rng, ["f4", "i8", "U5", "O", "?"])),
        )
    else:
        pd.DataFrame(array, columns=["a", "b", "c"]).to_parquet(path)
    if sound:
        with checking("chunks of a sound file"):
            chunks = list(iter_chunks(path, label=label, chunk_rows=size))
            expect(all(0 < len(chunk.y) <= size for chunk in chunks), "a chunk is empty or too long")
            expect_same(
                np.concatenate([np.asarray(chunk.X) for chunk in chunks]), array[:, :2], "X in chunks"
            )
            expect_same(np.concatenate([chunk.y for chunk in chunks]), array[:, 2], "y in chunks")
        return
    path.write_bytes(damaged_bytes(rng, path.read_bytes()))
    label = pick(rng, [label, label, 0, -1, 99, "a", None, "no"])
    source = odd_value(rng)
    if callable(source):
        source = None  # what a function of the user's raises is the user's
    ways: list[Callable[[], Any]] = [
        lambda: list(iter_chunks(path, label=label, chunk_rows=size)),
        lambda: list(iter_rows(path, chunk_rows=size)),
        lambda: list(iter_chunks((path, pick(rng, [array[:, 0], None, [1]])), chunk_rows=size)),
        lambda: list(iter_chunks(source, label=label, chunk_rows=size)),
        lambda: list(iter_rows(folder / "nothing.parquet", chunk_rows=size)),
    ]
    for chunk in pick(rng, ways)():
        rows = chunk[0] if isinstance(chunk, tuple) else chunk
        with checking("chunks of a damaged file"):
            expect(len(rows) > 0, "an empty chunk")


@cache
def _fit_command() -> Any:
    return commands().commands["fit"]


def _toml_case(rng: Rng, folder: Path) -> None:
    lines = [line for line in _TOML if chance(rng, 0.4)]
    text = "\n".join(sorted(lines, key=lambda line: line.startswith("["))) + "\n"
    path = folder / "run.toml"
    data = text.encode()
    path.write_bytes(data if chance(rng, 0.3) else damaged_bytes(rng, data))
    found = read_config(path, _fit_command())
    with checking("settings that were read"):
        known = {parameter.name for parameter in _fit_command().params}
        expect(set(found) <= known, f"settings {set(found) - known}")
