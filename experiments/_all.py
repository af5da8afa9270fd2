"""`python -m experiments all`: every experiment as a process of its own, some at a time.

On one GPU the host's work of one experiment overlaps with the device's work of another. Run again, the
command goes on where it stopped: finished experiments are left out, the others continue from their own files.
The minutes of every experiment are summed over all these runs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from moew._util.whole_files import write_whole

# Longest first, so that the short ones fill the gaps at the end.
ORDER = ("mnist", "wine", "pages", "crime", "toy", "spam", "bound", "sampling")
PROGRAM = (sys.executable, "-m", "experiments")
AFTER = {"sampling": "pages"}  # looks into a search of the other one
DONE, OUT_OF_TIME, INTERRUPTED = 0, 3, 130
_WORDS = {None: "not begun", DONE: "done", OUT_OF_TIME: "out of time", INTERRUPTED: "interrupted"}
_SECONDS_BETWEEN_LOOKS, _SECONDS_BETWEEN_WRITES = 0.2, 20.0


@dataclass
class Part:
    """How long an experiment ran, in all runs together, and the last exit status (None: it never ended)."""

    name: str
    minutes: float = 0.0
    status: int | None = None


@dataclass
class Record:
    """The minutes of all parts and of the command itself, over all its runs with the same arguments."""

    path: Path
    arguments: Sequence[str]
    parts: list[Part]
    wall_minutes: float = 0.0

    @classmethod
    def begin(cls, path: Path, arguments: Sequence[str]) -> Record:
        """The record of earlier runs in the file, or a new one if there is none with these arguments."""
        if path.exists():
            kept = json.loads(path.read_text())
            if kept["arguments"] == list(arguments):
                known = {part["name"]: Part(**part) for part in kept["parts"]}
                parts = [known.get(name, Part(name)) for name in ORDER]
                return cls(path, arguments, parts, kept["wall minutes"])
        return cls(path, arguments, [Part(name) for name in ORDER])

    def write(self, running: Mapping[str, float], wall: float) -> None:
        """Write the file; `running` are the minutes of unfinished parts in this run, `wall` its own."""
        parts = [asdict(part) for part in self.parts]
        for part in parts:
            part["minutes"] = round(part["minutes"] + running.get(part["name"], 0.0), 2)
        content = {"arguments": list(self.arguments), "parts": parts}
        text = json.dumps({**content, "wall minutes": round(self.wall_minutes + wall, 2)}, indent=1)
        write_whole(self.path, lambda new: new.write_text(f"{text}\n"))

    def table(self) -> str:
        """The minutes of each part, of all of them, and by the clock."""
        lines = ["minutes of each experiment, over all runs of the command"]
        lines += [f"{part.name:10} {part.minutes:8.1f}  {words(part.status)}" for part in self.parts]
        lines.append(f"{'together':10} {sum(part.minutes for part in self.parts):8.1f}")
        lines.append(f"{'by clock':10} {self.wall_minutes:8.1f}")
        return "\n".join(lines)


def words(status: int | None) -> str:
    """What an exit status means."""
    return _WORDS.get(status, f"failed with status {status}")


class Child:
    """An experiment that runs in a process of its own; its lines are printed with its name before them."""

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.name, self._start = name, time.monotonic()
        self._process = subprocess.Popen(
            [*command],
            env=dict(environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )
        self._printer = threading.Thread(target=self._print, daemon=True)
        self._printer.start()

    def _print(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                print(f"[{self.name}] {line.rstrip()}", flush=True)

    @property
    def minutes(self) -> float:
        """Since its start."""
        return (time.monotonic() - self._start) / 60

    def ended(self) -> int | None:
        """The exit status; None while it runs."""
        status = self._process.poll()
        if status is not None:
            self._printer.join()
        return status

    def interrupt(self) -> int:
        """Let it stop as by Ctrl-C, and wait for its end."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        self._process.wait()
        self._printer.join()
        return INTERRUPTED


def run_all(given: Mapping[str, Any]) -> int:
    """Run every experiment, `together` at a time, with the options that were given.

    Returns 0, or the status of the first experiment that failed, or OUT_OF_TIME.
    """
    options = dict(given)
    together, minutes = options.pop("together"), options.pop("minutes", None)
    out = Path(options.get("out", "out"))
    arguments = [f"--{_option(name)}={value}" for name, value in options.items()]
    unlike = ("--out=", "--jobs=")  # results do not depend on these
    kept = [argument for argument in arguments if not argument.startswith(unlike)]
    out.mkdir(parents=True, exist_ok=True)
    record = Record.begin(out / "minutes.json", kept)
    try:
        _run_parts(record, arguments, together, minutes, environment(options.get("device")))
    except KeyboardInterrupt:
        print("interrupted; run the same command again to go on", file=sys.stderr)
    (out / "minutes.txt").write_text(f"{record.table()}\n")
    print(record.table(), flush=True)
    return conclusion(record.parts)


def _option(name: str) -> str:
    return "jobs" if name == "n_jobs" else name


def environment(device: str | None) -> dict[str, str]:
    """The children's environment: on a GPU, a process must not take most of the memory at its start."""
    more = {"PYTHONUNBUFFERED": "1"}
    if device != "cpu":
        more["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    return {**more, **os.environ}


def conclusion(parts: Sequence[Part]) -> int:
    """The exit status of the command, that of the first experiment that failed; prints which ones failed."""
    failed = [part for part in parts if part.status not in _WORDS]
    for part in failed:
        print(f"experiments: {part.name} {words(part.status)}", file=sys.stderr)
    if failed:
        return failed[0].status or 1
    unfinished = [part.status for part in parts if part.status != DONE]
    if not unfinished:
        return DONE
    print("experiments: run the same command again to go on", file=sys.stderr)
    return INTERRUPTED if INTERRUPTED in unfinished else OUT_OF_TIME


def _run_parts(
    record: Record, arguments: Sequence[str], together: int, minutes: float | None, env: Mapping[str, str]
) -> None:
    """Start parts as places become free, and enter their minutes into the record; with `minutes`, none is
    started later, and those that run stop by themselves."""
    waiting = [part for part in record.parts if part.status != DONE]
    running: dict[str, tuple[Part, Child]] = {}
    start = written = time.monotonic()

    def wall() -> float:
        return (time.monotonic() - start) / 60

    def ready() -> list[Part]:
        if minutes is not None and wall() >= minutes:
            return []
        busy = {*running, *(part.name for part in waiting)}
        return [part for part in waiting if AFTER.get(part.name) not in busy]

    def end(part: Part, child: Child, status: int) -> None:
        del running[part.name]
        part.minutes += child.minutes
        part.status = status
        print(f"[{part.name}] {words(status)} after {part.minutes:.1f} minutes", flush=True)

    def write() -> None:
        record.write({name: child.minutes for name, (_, child) in running.items()}, wall())

    try:
        while running or ready():
            for part in ready()[: together - len(running)]:
                waiting.remove(part)
                left = [] if minutes is None else [f"--minutes={minutes - wall():.3f}"]
                command = [*PROGRAM, part.name, *arguments, *left]
                running[part.name] = part, Child(part.name, command, env)
            time.sleep(_SECONDS_BETWEEN_LOOKS)
            for part, child in list(running.values()):
                if (status := child.ended()) is not None:
                    end(part, child, status)
                    write()
            if time.monotonic() - written > _SECONDS_BETWEEN_WRITES:
                written = time.monotonic()
                write()
    finally:
        for part, child in list(running.values()):
            end(part, child, child.interrupt())
        record.wall_minutes += wall()
        record.write({}, 0.0)
