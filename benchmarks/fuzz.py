"""Generated cases over all that moew takes: no hang, no error from inside, no silent wrong answer.

    python benchmarks/fuzz.py --cases 100000 --jobs 2 --out out/fuzz
    python benchmarks/fuzz.py --cases 1000 --kinds fit,stores --out out/fuzz
    python benchmarks/fuzz.py --only fit:17
    python benchmarks/fuzz.py table --out out/fuzz

A case follows from its kind and its seed alone. Each is a line in results.jsonl; started again, the command
goes on with the cases that have none. Cases run in processes of their own, so that one that takes longer
than --limit is recorded as a hang and one that ends the interpreter as a crash, and the others go on. Which
outcomes there are is in benchmarks/fuzz_cases.py; each kind is a file of its own, benchmarks/fuzz_*.py.
The exit status is 1 if there are findings.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # one process per core does the work
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import argparse
import json
import multiprocessing
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import count
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_cases import CRASH, FINDINGS, HANG, KINDS, OK, REFUSED, Record, find_case, run_case

RESULTS = "results.jsonl"
LIMIT = 120.0  # seconds; the slowest sound cases start worker processes and take a few
_CASES = 100_000
_STARTING = 300.0  # seconds that a new process may take to import everything
_SHOWN = 40  # findings that the table shows in full
_EACH = 30.0  # seconds between lines of progress

Key = tuple[str, int]
Places = Mapping[str, str]
PLACES: Places = {kind: place for kind, (place, _) in KINDS.items()}


def mixed_kinds() -> list[str]:
    """The kinds of the cases 0 to 99, and so on: each by its share, in a fixed random order."""
    kinds = [kind for kind, (_, share) in KINDS.items() for _ in range(share)]
    return [kinds[k] for k in np.random.default_rng(0).permutation(len(kinds))]


def list_cases(n: int, first: int = 0, kinds: Sequence[str] = tuple(KINDS)) -> Iterator[Key]:
    """n cases of these kinds: case number i has the seed i, and a kind that depends on i alone."""
    mixed = mixed_kinds()
    found = 0
    for seed in count(first):
        if found == n:
            return
        kind = mixed[seed % len(mixed)]
        if kind in kinds:
            found += 1
            yield kind, seed


def read_records(path: Path) -> dict[Key, Record]:
    """The recorded cases; a last line that was cut off is none."""
    records: dict[Key, Record] = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                record = Record(**json.loads(line))
            except (ValueError, TypeError):
                continue
            records[record.kind, record.seed] = record
    return records


class Recorder:
    """Adds lines to the file of results; those of an interrupted run stay whole."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        cut = path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0
        self._file = path.open("a", encoding="utf-8")
        if cut:
            self._file.write("\n")

    def add(self, record: Record) -> None:
        self._file.write(json.dumps(asdict(_shortened(record))) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _shortened(record: Record) -> Record:
    most = 4000 if record.outcome in FINDINGS else 160
    return Record(**{**asdict(record), "message": record.message[-most:]})


def _work(pipe: Connection, places: Places) -> None:
    """Run the cases that come through the pipe; the process ends when it is closed."""
    for place in places.values():
        find_case(place)  # imports take seconds, which are not the first case's
    pipe.send(None)
    while True:
        try:
            kind, seed = pipe.recv()
        except EOFError:
            return
        pipe.send(run_case(kind, seed, places[kind]))


class _Worker:
    """A process that runs cases one after another."""

    def __init__(self, places: Places, limit: float) -> None:
        context = multiprocessing.get_context("spawn")  # a fork could inherit locked locks
        self.pipe, there = context.Pipe()
        self._process = context.Process(target=_work, args=(there, places))
        self._process.start()
        there.close()
        self._limit = limit
        self.case: Key | None = None
        self.begun, self._most = time.monotonic(), _STARTING

    def give(self, case: Key) -> None:
        self.case, self.begun, self._most = case, time.monotonic(), self._limit
        self.pipe.send(case)

    @property
    def overdue(self) -> bool:
        return time.monotonic() - self.begun > self._most

    def outcome(self, *, answered: bool) -> tuple[Record | None, bool]:
        """How its case ended, None if it had none and has just started; and whether the process lives."""
        case, seconds = self.case, round(time.monotonic() - self.begun, 4)
        try:
            if answered:
                return self.pipe.recv(), True
            self.end(kill=True)
            outcome, message = HANG, f"no end within {seconds:g} s"
        except (EOFError, OSError):
            status = self.end(kill=False)
            outcome, message = CRASH, f"the interpreter ended with status {status}"
        if case is None:
            raise RuntimeError(f"a process for cases could not start: {message}")
        return Record(*case, outcome, message, seconds), False

    def end(self, *, kill: bool) -> int | None:
        self.pipe.close()
        if kill:
            self._process.kill()
        self._process.join(5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        return self._process.exitcode


def run_cases(cases: Sequence[Key], places: Places, jobs: int, limit: float) -> Iterator[Record]:
    """How each case ended, as they end. Without jobs they run here, where nothing can end a hang."""
    if jobs == 0:
        yield from (run_case(kind, seed, places[kind]) for kind, seed in cases)
        return
    left = deque(cases)
    workers = [_Worker(places, limit) for _ in range(min(jobs, len(cases)))]
    try:
        while workers:
            ready = {id(pipe) for pipe in wait([worker.pipe for worker in workers], timeout=1.0)}
            for worker in list(workers):
                if id(worker.pipe) not in ready and not worker.overdue:
                    continue
                ended, alive = worker.outcome(answered=id(worker.pipe) in ready)
                if ended is not None:
                    yield ended
                if left and alive:
                    worker.give(left.popleft())
                    continue
                if alive:
                    worker.end(kill=False)
                workers.remove(worker)
                if left:
                    workers.append(_Worker(places, limit))
    finally:
        for worker in workers:
            worker.end(kill=True)


def fuzz(
    cases: Sequence[Key], out: Path, *, jobs: int = 1, limit: float = LIMIT, places: Places = PLACES
) -> dict[Key, Record]:
    """Run the cases that are not recorded in `out`; returns the records of all of them."""
    known = read_records(out / RESULTS)
    left = [case for case in cases if case not in known]
    recorder, begun, told = Recorder(out / RESULTS), time.monotonic(), time.monotonic()
    try:
        for done, record in enumerate(run_cases(left, places, jobs, limit), 1):
            recorder.add(record)
            known[record.kind, record.seed] = record
            if record.outcome in FINDINGS:
                print(f"{record.outcome}: {record.name}: {_last_line(record)}", flush=True)
            if time.monotonic() - told > _EACH:
                told = time.monotonic()
                print(f"{done:,} of {len(left):,} cases, {done / (told - begun):.1f} a second", flush=True)
    finally:
        recorder.close()
    return {case: known[case] for case in cases}


def _last_line(record: Record) -> str:
    lines = record.message.strip().splitlines()
    return lines[-1][:300] if lines else ""


def table(records: Sequence[Record]) -> str:
    """How the cases of each kind ended, and what was found."""
    heads = ("kind", "cases", OK, REFUSED, *FINDINGS, "seconds")
    lines = ["| " + " | ".join(heads) + " |", "|---" + "|--:" * (len(heads) - 1) + "|"]
    kinds = [kind for kind in KINDS if any(record.kind == kind for record in records)]
    for kind in [*kinds, "all"]:
        of_kind = [record for record in records if kind in (record.kind, "all")]
        counts = [
            sum(record.outcome == outcome for record in of_kind) for outcome in (OK, REFUSED, *FINDINGS)
        ]
        seconds = sum(record.seconds for record in of_kind)
        cells = [kind, *(f"{n:,}" for n in (len(of_kind), *counts)), f"{seconds:,.0f}"]
        lines.append("| " + " | ".join(cells) + " |")
    findings = [record for record in records if record.outcome in FINDINGS]
    lines += [
        f"\n{one.outcome}: {one.name} (--only '{one.name}')\n{one.message.strip()}"
        for one in findings[:_SHOWN]
    ]
    if len(findings) > _SHOWN:
        lines.append(f"\n… and {len(findings) - _SHOWN} more")
    return "\n".join(lines)


def show_one(name: str) -> int:
    """Run one case here, with its traceback."""
    kind, _, seed = name.rpartition(":")
    if kind not in PLACES or not seed.isdecimal():
        sys.exit(f"--only takes KIND:SEED with a kind of {', '.join(PLACES)}; got {name!r}.")
    record = run_case(kind, int(seed), PLACES[kind])
    print(f"{record.outcome} ({record.seconds:.2f} s)\n{record.message}".strip())
    return int(record.outcome in FINDINGS)


def _kinds(text: str) -> list[str]:
    kinds = [kind.strip() for kind in text.split(",")]
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise argparse.ArgumentTypeError(f"unknown kinds {unknown}; there are {', '.join(KINDS)}")
    return kinds


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; gives its exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=["run", "table"], default="run")
    parser.add_argument("--cases", type=int, default=_CASES)
    parser.add_argument("--first", type=int, default=0, help="The number of the first case.")
    parser.add_argument("--kinds", type=_kinds, default=list(KINDS), help=f"Of {', '.join(KINDS)}.")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=LIMIT, help="Seconds for each case.")
    parser.add_argument("--only", metavar="KIND:SEED", help="Run this case here and show its traceback.")
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"))
    given: Any = parser.parse_args(arguments)
    if given.only is not None:
        return show_one(given.only)
    if given.what == "table":
        records = list(read_records(given.out / RESULTS).values())
    else:
        cases = list(list_cases(given.cases, given.first, given.kinds))
        records = list(fuzz(cases, given.out, jobs=given.jobs, limit=given.limit).values())
    print(table(records))
    return int(any(record.outcome in FINDINGS for record in records))


if __name__ == "__main__":
    sys.exit(main())
