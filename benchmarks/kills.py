"""Kill searches at random moments, start them again, and see whether what comes out has the same bits.

    python benchmarks/kills.py kills --number 1000 [--first 0] [--together 2] [--out out/kills]
                                     [--storages sqlite,postgresql] [--only SEED]
    python benchmarks/kills.py workers --killed 200 [--first 0] [--together 1] [--out out/kills]
                                       [--storages sqlite,postgresql]
    python benchmarks/kills.py table [--out out/kills]

`kills`: each seed is a case: a storage, one or two jobs, Python or the command line, and one to three kills,
each with a signal (SIGKILL, SIGTERM, SIGINT; some go to the whole group of processes, as from a terminal) and
a moment, uniform over the time that the same search takes when nothing interrupts it, from its start to its
end. After each kill the search is started again with the same call, and after the last it must end by itself.
Everything that comes out (alphas, values, scores, weights, predictions) must equal that of an uninterrupted
search, bit for bit. Most processes are forks of one that has loaded moew; some are new interpreters.

Cases that --out has are not run again, so that the command can be interrupted; begin a new folder for other
code. Cases on PostgreSQL start a server of their own, and are left out where it is not installed. The folders
of cases that went wrong are kept in --out.

`workers`: three or four processes search together; random ones are killed at random moments, some after they
were stopped (SIGSTOP), and new ones are started in their place, until so many were killed on each storage.
All that finish must have the bits of a single worker. Trainings of candidates are counted: those begun again
because their worker was killed, and those of candidates that the study had already been told, of which there
must be none.

`table` prints what was found: cases tried and equal, seconds to start again, what is left behind. "Ended
before" are searches that had ended when their first signal was to be sent.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from kill_cases import (
    EQUAL,
    OUTCOMES,
    SIGNALS,
    STORAGES,
    Records,
    Setting,
    Tried,
    process_of,
    read_tried,
    read_uninterrupted,
    try_kills,
)
from killed_workers import print_workers, try_workers


def print_kills(out: Path) -> None:
    """Print what was found."""
    tried = read_tried(Records(out / "kills.jsonl"))
    known = read_uninterrupted(Records(out / "uninterrupted.jsonl"))
    if not tried:
        sys.exit(f"no results in {out}: run `python benchmarks/kills.py kills --out {out}` first")
    print(f"{len(tried)} searches, killed {sum(sum(one.reached) for one in tried)} times\n")
    print("### Searches by storage and first signal\n")
    print("| storage | signal | tried | equal | not equal | hang | failed | ended before |")
    print("|---|---|---|---|---|---|---|---|")
    for storage in (*STORAGES, "all"):
        for name in (*SIGNALS, "all"):
            these = [t for t in tried if storage in (t.case.setting.storage, "all")]
            these = [t for t in these if name in (t.case.kills[0].name, "all")]
            print(f"| {storage} | {name} | {_counted(these)} |")
    print("\n### Searches by how they are called\n")
    print("| front end | jobs | process | tried | equal | not equal | hang | failed | ended before |")
    print("|---|---|---|---|---|---|---|---|---|")
    for front in ("python", "command line"):
        for n_jobs in (1, 2):
            for fork in (True, False):
                kind = (front, n_jobs, fork)
                these = [t for t in tried if _kind_of_call(t.case.setting) == kind]
                print(f"| {front} | {n_jobs} | {process_of(fork)} | {_counted(these)} |")
    print("\n### Seconds from a start to the first training, or to the result\n")
    print("| process | storage | jobs | uninterrupted | starts after a kill | median | 95 % | largest |")
    print("|---|---|---|---|---|---|---|---|")
    for setting in sorted(known, key=lambda setting: setting.key):
        seconds = [s for t in tried if t.case.setting == setting for s in t.restart_seconds]
        first = f"{known[setting].first_seconds:.2f}"
        how = f"{process_of(setting.fork)}, {setting.front}"
        print(f"| {how} | {setting.storage} | {setting.n_jobs} | {first} | {_spread(seconds)} |")
    print("\n### What is left behind\n")
    print("| signal | kills | seconds to the end, median | largest | seconds of its workers, largest |")
    print("|---|---|---|---|---|")
    for name in SIGNALS:
        ends, workers = [], []
        for t in tried:
            hit = [kill for kill, reached in zip(t.case.kills, t.reached, strict=False) if reached]
            for kill, end, worker in zip(hit, t.seconds_to_end, t.seconds_of_workers, strict=True):
                if kill.name == name:
                    ends.append(end)
                    workers.append(worker)
        if ends:
            print(f"| {name} | {len(ends)} | {np.median(ends):.2f} | {max(ends):.2f} | {max(workers):.2f} |")
    print(f"\nprocesses that ran on for 5 s after a kill or an end: {sum(t.processes_left for t in tried)}")
    print(f"folders of rows left when all processes had ended: {sum(t.rows_left for t in tried)}")
    print(f"signals that Python lost, so that they were sent again: {sum(t.signals_lost for t in tried)}")
    files = Counter(_kind(name) for t in tried for name in t.files_left)
    print(f"files left after the last end: {sum(files.values())}", *([dict(files)] if files else []))
    again = sum(t.trainings - known[t.case.setting].trainings for t in tried if t.case.setting in known)
    print(f"trainings beyond those of uninterrupted searches: {again}")
    for t in tried:
        if t.outcome != EQUAL or t.files_left or t.processes_left or t.rows_left:
            last = t.said.strip().splitlines()[-1:] or [""]
            files = Counter(map(_kind, t.files_left))
            print(f"seed {t.case.seed}: {t.outcome} {t.differing} {dict(files)} {last[0][:200]}".rstrip())


def _counted(tried: Sequence[Tried]) -> str:
    outcomes = Counter(t.outcome for t in tried)
    numbers = [len(tried), *(outcomes[name] for name in OUTCOMES), sum(not any(t.reached) for t in tried)]
    return " | ".join(map(str, numbers))


def _kind_of_call(setting: Setting) -> tuple[str, int, bool]:
    return setting.front, setting.n_jobs, setting.fork


def _spread(seconds: Sequence[float]) -> str:
    if not seconds:
        return "0 | – | – | –"
    return (
        f"{len(seconds)} | {np.median(seconds):.2f} | {np.quantile(seconds, 0.95):.2f} | {max(seconds):.2f}"
    )


def _kind(name: str) -> str:
    """A file's name without its numbers, and a semaphore's without its random part."""
    name = "sem.loky" if name.startswith("sem.loky") else name
    return "".join("#" if letter.isdigit() else letter for letter in name)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    kills = commands.add_parser("kills")
    kills.add_argument("--number", type=int, default=1000)
    kills.add_argument("--first", type=int, default=0)
    kills.add_argument("--together", type=int, default=1)
    kills.add_argument("--only", type=int)
    kills.add_argument("--storages", default=",".join(STORAGES))
    workers = commands.add_parser("workers")
    workers.add_argument("--killed", type=int, default=200)
    workers.add_argument("--first", type=int, default=0)
    workers.add_argument("--together", type=int, default=1)
    workers.add_argument("--storages", default=",".join(STORAGES))
    table = commands.add_parser("table")
    for command_ in (kills, workers, table):
        command_.add_argument("--out", type=Path, default=Path("out/kills"))
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the server of the cases must end, too
    if given.command == "kills":
        seeds = [given.only] if given.only is not None else range(given.first, given.first + given.number)
        try_kills(list(seeds), given.out, together=given.together, storages=given.storages.split(","))
    if given.command == "workers":
        storages = given.storages.split(",")
        try_workers(given.killed, given.out, first=given.first, together=given.together, storages=storages)
    if given.command != "workers":
        print_kills(given.out)
    print_workers(given.out)


if __name__ == "__main__":
    main()
