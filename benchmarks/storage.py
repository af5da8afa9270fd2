"""What it costs to store a study: SQL statements and seconds for each batch, bytes on disk and in memory.

    python benchmarks/storage.py [--batches 10] [--batch-size 20] [--dims 30] [--rows 10000] [--decision-only]
                                 [--storages SQLite,PostgreSQL]
    python benchmarks/storage.py --batches 50 --storages SQLite        # 1,000 candidates

A study of one search is asked for batches of candidates, which are told random scores and made-up
predictions of two classes: decisions, and the scores that tuned decisions look at (left out with
--decision-only). Nothing is trained. The seconds are those of asking and telling, without those of making
predictions up. Each storage has a process of its own; the megabytes in memory are what the process has grown
by after its first batch, with the predictions of all candidates, as a search keeps them. A statement for many
rows counts for each of them. PostgreSQL has a server of its own, and is left out where it is not installed;
its bytes are those that the study adds to an empty database.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import math
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from postgresql_server import NotInstalledError, postgresql_server

from moew import WeightStudy
from moew.metrics import Predictions
from moew.samplers import Ball
from moew.storage import Told
from moew.storage._databases import Statements, resolve_database


def main() -> None:
    """Print a line for each storage."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=20)
    parser.add_argument("--dims", type=int, default=30)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--decision-only", action="store_true")
    parser.add_argument("--storages", default="SQLite,PostgreSQL")
    given = parser.parse_args()
    n = given.batches * given.batch_size
    print(f"{n} candidates in {given.dims} dimensions, {given.rows} validation rows")
    head = f"{'storage':12}{'statements a batch':>20}{'seconds a batch':>17}{'slowest':>9}"
    print(f"{head}{'MB on disk':>12}{'MB in memory':>14}", flush=True)
    for name in given.storages.split(","):
        try:
            with place(name) as (storage, size), multiprocessing.get_context("spawn").Pool(1) as alone:
                statements, seconds, memory = alone.apply(measured, (storage, given))
                times = f"{np.mean(statements):>20.0f}{np.mean(seconds):>17.3f}{max(seconds):>9.3f}"
                print(f"{name:12}{times}{size() / 1e6:>12.2f}{memory / 1e6:>14.1f}", flush=True)
        except NotInstalledError as missing:
            print(f"{name:12}{missing}")


@contextlib.contextmanager
def place(name: str) -> Iterator[tuple[str, Callable[[], float]]]:
    """A storage, and what tells the bytes that it takes."""
    if name == "PostgreSQL":
        with postgresql_server() as url:
            database = resolve_database(str(url))

            def taken() -> float:
                with database.transaction() as statements:
                    ((size,),) = statements.read("SELECT pg_database_size(current_database())")
                    return float(size)

            empty = taken()
            yield str(url), lambda: taken() - empty
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "study"
        files = Path(folder).rglob
        yield str(file), lambda: sum(path.stat().st_size for path in files("*") if path.is_file())


def measured(storage: str, given: argparse.Namespace) -> tuple[list[int], list[float], float]:
    """Statements and seconds of each batch, and the bytes in memory."""
    count = 0

    def counting(name: str) -> Callable[..., Any]:
        original = getattr(Statements, name)

        def counted(statements: Statements, statement: str, *values: Any) -> Any:
            nonlocal count
            count += len(values[0]) if name == "write_all" else 1
            return original(statements, statement, *values)

        return counted

    for name in ("read", "write", "write_all"):
        setattr(Statements, name, counting(name))
    rng = np.random.default_rng(0)
    domain = Ball(given.dims, 4.0)
    statements, seconds = [], []
    predictions: dict[int, Predictions] = {}
    before_all = 0.0
    study = WeightStudy(None, domain, sampler="random", storage=storage, alpha_zero_repeats=1)
    for batch in range(given.batches):
        made = [made_up(rng, given) for _ in range(given.batch_size)]
        before, begun = count, time.perf_counter()
        trials = study.ask_until((batch + 1) * given.batch_size)
        values = rng.random(len(trials)).tolist()
        told = zip(trials, values, made, strict=True)
        study.tell_all([Told(trial.number, value, content=one.packed()) for trial, value, one in told])
        seconds.append(time.perf_counter() - begun)
        statements.append(count - before)
        predictions.update((trial.number, one.compact()) for trial, one in zip(trials, made, strict=True))
        if batch == 0:
            before_all = resident()
    grown = resident() - before_all
    study.close()
    return statements, seconds, grown


def resident() -> float:
    """The bytes of memory that this process has; Linux tells."""
    gc.collect()
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return math.nan
    return float(pages * os.sysconf("SC_PAGE_SIZE"))


def made_up(rng: np.random.Generator, given: argparse.Namespace) -> Predictions:
    """Predictions of two classes, as a search keeps them."""
    scores = rng.normal(size=given.rows) * 2 - 1
    decisions = {"decision": np.where(scores > 0, 1, 0)}
    return Predictions(decisions, scores=None if given.decision_only else scores).with_rounded_scores()


if __name__ == "__main__":
    main()
