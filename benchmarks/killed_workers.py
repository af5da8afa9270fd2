"""Many processes on one search, of which some are killed: `StudyStorage(…, join=True)`.

A round is a search of three or four workers. At random moments one of them is killed, at once or after it was
stopped for a while (SIGSTOP), and a new one is started in its place. In the end the rest must finish, each
with the bits of a single worker. In some rounds a worker is stopped for so long that the others take it for
dead, and then goes on.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kill_cases import (
    EQUAL,
    FAILED,
    HANG,
    OTHER,
    STORAGES,
    Place,
    Records,
    Setting,
    heed_signals,
    server_for,
    side_by_side,
)
from killed_processes import Started, Starter, starters

BATCHES = "8"
_SECONDS_OF_ROUND = 240.0  # after which it hangs; most take ten
_LONGEST_PAUSE = 1.0  # between kills
_SHARE_OF_STOPPED = 0.2  # of the workers to be killed, those that are stopped before
_LONGEST_STOP = 2.0
_ROUNDS_BETWEEN_LONG_STOPS = 20
_SECONDS_OF_LONG_STOP = 40.0  # longer than a worker may be silent


@dataclass
class Round:
    """What came of a round."""

    seed: int
    storage: str
    outcome: str = EQUAL
    started: int = 0
    killed: int = 0
    stopped: int = 0  # of those that were killed, and those that were stopped for long
    finished: int = 0
    seconds: float = 0.0
    lost: int = 0  # trainings of candidates again, because the worker that began them was killed
    twice: int = 0  # trainings of candidates that the study had been told
    beside: int = 0  # trainings of candidates again, though nobody was killed
    processes_left: int = 0
    files_left: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)
    said: str = ""


@dataclass(frozen=True)
class Alone:
    """The same search of one worker: its digests, and how often it trains what for candidates."""

    digests: dict[str, str]
    trainings: Counter[str]


Event = tuple[int, float, str, str]


def of_candidates(events: Sequence[Event]) -> list[Event]:
    """The trainings that were begun for candidates: not to check model or rows, nor for the conclusion."""
    probes = {what for _, _, event, what in events if event == "probe"}
    looks = {what for _, _, event, what in events if event == "look"}
    concluding = {process: at for process, at, event, _ in events if event == "concluding"}
    return [
        (process, at, event, what)
        for process, at, event, what in events
        if event == "begin"
        and what.partition("-")[2] not in probes
        and what.partition("-")[0] not in looks
        and at < concluding.get(process, float("inf"))
    ]


def alone(folder: Path, processes: Starter) -> Alone:
    """Run the search with one worker that nothing interrupts."""
    place = Place(folder, Setting("sqlite", 1, "python", fork=True), None)
    search = place.start(processes, BATCHES)
    if not search.wait(_SECONDS_OF_ROUND) or not place.digests(processes):
        sys.exit(f"the search of one worker failed: see {place.folder}")
    search.end()
    found = Alone(place.digests(processes), Counter(what for *_, what in of_candidates(place.events())))
    place.close(keep=False)
    return found


def count_trainings(found: Round, events: Sequence[Event], expected: Alone, killed: set[int]) -> None:
    """Count the trainings of candidates that were more than those of one worker."""
    told: dict[str, float] = {}
    for _, at, event, what in events:
        if event == "told":
            told.setdefault(what, at)
    begun: dict[str, list[tuple[int, float]]] = {}
    for process, at, _, what in of_candidates(events):
        begun.setdefault(what, []).append((process, at))
    for what, trainings in begun.items():
        usual = expected.trainings[what]
        for i, (_, at) in enumerate(trainings[usual:], usual):
            if at > told.get(what.partition("-")[0], float("inf")):
                found.twice += 1
            elif any(process in killed for process, _ in trainings[:i]):
                found.lost += 1
            else:
                found.beside += 1


def run_round(seed: int, storage: str, expected: Alone, place: Place, processes: Starter) -> Round:
    """Let workers search together, and kill some of them."""
    rng = random.Random(f"workers {seed}")
    found, began = Round(seed, storage), time.monotonic()
    workers: list[Started] = []
    running: list[Started] = []
    killed: set[int] = set()

    def start() -> None:
        result = place.folder / f"result-{len(workers)}"
        worker = place.start(processes, BATCHES, "--join", result=result)
        workers.append(worker)
        running.append(worker)

    for _ in range(rng.choice((3, 4))):
        start()
        time.sleep(rng.random() * 0.3)
    if seed % _ROUNDS_BETWEEN_LONG_STOPS == _ROUNDS_BETWEEN_LONG_STOPS - 1:
        time.sleep(rng.random())
        if running[0].send(signal.SIGSTOP):
            found.stopped += 1
            wait_for(running[1:], _SECONDS_OF_LONG_STOP)
            running[0].send(signal.SIGCONT)
    for _ in range(rng.randint(4, 8)):
        time.sleep(rng.random() * _LONGEST_PAUSE)
        running = [worker for worker in running if not worker.wait(0)]
        if not running:
            break
        worker = rng.choice(running)
        if rng.random() < _SHARE_OF_STOPPED and worker.send(signal.SIGSTOP):
            found.stopped += 1
            time.sleep(rng.random() * _LONGEST_STOP)
        if worker.send(signal.SIGKILL):
            worker.wait(10)
            killed.add(worker.process)
            running.remove(worker)
            start()
    if not wait_for(running, _SECONDS_OF_ROUND):
        found.outcome = HANG
    for worker in workers:
        _, left = worker.wait_for_all(5 if found.outcome == EQUAL else 0)
        found.processes_left += left
        worker.end()
    found.started, found.killed = len(workers), len(killed)
    found.seconds = time.monotonic() - began
    count_trainings(found, place.events(), expected, killed)
    _compare(found, place, expected, [worker.process not in killed for worker in workers])
    return found


def wait_for(workers: Sequence[Started], seconds: float) -> bool:
    """Whether all of them end within so many seconds."""
    deadline = time.monotonic() + seconds
    return all(worker.wait(deadline - time.monotonic()) for worker in workers)


def _compare(found: Round, place: Place, expected: Alone, was_left: Sequence[bool]) -> None:
    """Compare what came out of the workers that were not killed with what one worker finds."""
    for i, left in enumerate(was_left):
        result = place.folder / f"result-{i}"
        digests = json.loads(result.read_text(encoding="utf-8")) if result.exists() else {}
        result.unlink(missing_ok=True)
        found.finished += bool(digests)
        differing = [name for name in expected.digests if digests.get(name) != expected.digests[name]]
        if (left or digests) and differing:
            found.differing = sorted({*found.differing, *differing})
            if found.outcome == EQUAL or not digests:
                found.outcome = OTHER if digests else (FAILED if found.outcome != HANG else HANG)
    found.files_left = place.left_behind()
    if found.outcome != EQUAL:
        found.said = (place.folder / "said").read_text(errors="replace")[-3000:]


def try_workers(
    n_killed: int, out: Path, *, first: int = 0, together: int = 1, storages: Sequence[str] = STORAGES
) -> list[Round]:
    """Run rounds until so many workers were killed on each storage; those that are recorded count."""
    heed_signals()
    records = Records(out / "workers.jsonl")
    done = [Round(**line) for line in records.lines]
    found: list[Round] = []
    with server_for(storages) as (available, server), starters(together) as lanes:
        expected = alone(out / "cases" / "alone", lanes[0])

        def run(seed: int, processes: Starter) -> None:
            storage = available[seed % len(available)]
            if sum(r.killed for r in (*done, *found) if r.storage == storage) >= n_killed:
                return
            setting = Setting(storage, 1, "python", fork=True)
            place = Place(out / "cases" / f"workers-{seed}", setting, server)
            one = run_round(seed, storage, expected, place, processes)
            place.close(keep=one.outcome != EQUAL)
            records.add(one)
            found.append(one)
            print(
                f"{seed:5} {one.outcome:9} {storage}: {one.killed} of {one.started} workers killed, "
                f"{one.lost} trainings lost, {one.twice + one.beside} done twice, {one.seconds:.1f} s",
                flush=True,
            )

        seeds = set(range(first, first + n_killed * len(available))) - {r.seed for r in done}
        side_by_side(sorted(seeds), lanes, run)
    return found


def print_workers(out: Path) -> None:
    """Print what came of all rounds."""
    rounds = [Round(**line) for line in Records(out / "workers.jsonl").lines]
    if not rounds:
        return
    print("\n### Workers killed while they search together\n")
    columns = (
        "storage, rounds, workers started, killed, stopped, finished, searches equal, not equal, failed, "
    )
    columns += "hang, trained again for a killed worker, finished candidates trained twice, "
    columns += "others trained twice, largest number of seconds"
    print(f"| {columns.replace(', ', ' | ')} |")
    print("|" + "---|" * 14)
    for storage in (*STORAGES, "all"):
        these = [r for r in rounds if storage in (r.storage, "all")]
        outcomes = Counter(r.outcome for r in these)
        sums = [sum(getattr(r, name) for r in these) for name in ("started", "killed", "stopped", "finished")]
        ends = [outcomes[name] for name in (EQUAL, OTHER, FAILED, HANG)]
        again = [sum(getattr(r, name) for r in these) for name in ("lost", "twice", "beside")]
        longest = f"{max((r.seconds for r in these), default=0):.1f}"
        print(f"| {' | '.join(map(str, [storage, len(these), *sums, *ends, *again, longest]))} |")
    print(f"\nprocesses left: {sum(r.processes_left for r in rounds)}")
    print(f"files left: {sum(len(r.files_left) for r in rounds)}")
    for r in rounds:
        if r.outcome != EQUAL or r.twice or r.beside or r.files_left or r.processes_left:
            last = r.said.strip().splitlines()[-1:] or [""]
            print(f"round {r.seed}: {r.outcome} {r.differing} {r.files_left} {last[0][:200]}".rstrip())
