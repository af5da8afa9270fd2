"""What all experiments share: options, time limit and files."""

from __future__ import annotations

import json
import platform
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from experiments._searches import Arm, Judge, OutOfTimeError, Problem, Seen, run
from moew._util.beside_paper import write_values
from moew.types import FloatArray

SECOND_REPEATS = 20  # at most, of second settings
PERCENT = 100.0
PAPER_ARM = "moew, GP-BUCB as in the paper"


@dataclass(frozen=True)
class Options:
    """The options of every experiment's command."""

    repeats: int
    seed: int = 0
    device: str | None = None
    precision: str = "float32"
    out: Path = Path("out")
    steps: int = 10_000
    n_jobs: int = 1
    minutes: float | None = None  # time limit; the command stops between two batches

    @property
    def second_repeats(self) -> int:
        """The number of repeats of second settings, beside the paper's main ones."""
        return min(self.repeats, SECOND_REPEATS)


class Prepared(NamedTuple):
    """A search: what is trained, how rows are weighted, and how models are judged."""

    problem: Problem
    arm: Arm
    judge: Judge


class Run:
    """One run of a command: its files, its time limit and its progress messages."""

    def __init__(self, name: str, options: Options, **more: str) -> None:
        """`more` are options of this experiment alone."""
        self.name, self.options, self._more = name, options, more
        self.folder = options.out / name
        self._start = time.monotonic()
        meta = self._read_meta()
        self._before = meta.get("seconds", 0.0) if meta.get("options") == self._kept_options() else 0.0
        self._meta_is_due = not meta  # also after every batch; not if everything was done before

    def state(self, setting: str) -> Path:
        """The file for the candidates of one setting; runs with other options have other files."""
        o = self.options
        run = f"seed={o.seed} repeats={o.repeats} steps={o.steps} {o.precision}"
        names = (re.sub("[^a-z0-9=.]+", "-", text.lower()) for text in (run, f"{setting}.npz"))
        return self.folder.joinpath("state", *names)

    def tick(self, setting: str, n_batches: int, unit: str = "batch") -> Any:
        """The `on_batch` of `run`: prints a line of progress, and stops when the time is up."""

        def on_batch(done: int) -> None:
            elapsed = time.monotonic() - self._start
            print(f"{self.name} {setting}: {unit} {done}/{n_batches}, {elapsed:.0f} s", flush=True)
            self._meta_is_due = True
            self._write_meta(elapsed)
            if self.options.minutes is not None and elapsed > 60 * self.options.minutes:
                raise OutOfTimeError(
                    f"{self.options.minutes:g} minutes are over; run the same command again to go on."
                )

        return on_batch

    def search(
        self, setting: str, prepare: Callable[[], Prepared], *, n_batches: int, batch_size: int
    ) -> Seen:
        """All candidates of one setting; if the folder has them all, nothing is prepared or trained."""
        path = self.state(setting)
        if path.exists() and (seen := Seen.load(path)).n >= n_batches * batch_size:
            return seen
        return run(
            *prepare(),
            n_batches=n_batches,
            batch_size=batch_size,
            path=path,
            n_jobs=self.options.n_jobs,
            on_batch=self.tick(setting, n_batches),
        )

    def write_values(self, lines: Sequence[tuple[str, Mapping[str, FloatArray]]]) -> Path:
        """Write the scores of every repeat as CSV: setting, repeat, one column for each score."""
        path = self.folder / f"{self.name}.csv"
        write_values(path, lines)
        self._write_meta(time.monotonic() - self._start)
        return path

    def conclude(self, text: str) -> str:
        """Write the tables beside the raw numbers, and return them."""
        (self.folder / f"{self.name}.txt").write_text(f"{text.strip()}\n")
        return text

    def _kept_options(self) -> dict[str, Any]:
        """The options that results depend on."""
        shared = asdict(self.options)
        return {n: v for n, v in shared.items() if n not in ("out", "n_jobs", "minutes")} | self._more

    def _meta_path(self) -> Path:
        return self.folder / f"{self.name}.json"

    def _read_meta(self) -> dict[str, Any]:
        path = self._meta_path()
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def _write_meta(self, elapsed: float) -> None:
        """Write the command's options, versions, device and the seconds of all its runs together."""
        if not self._meta_is_due:
            return
        meta = {
            "experiment": self.name,
            "options": self._kept_options(),
            "seconds": round(self._before + elapsed, 1),
            "device": device_name(self.options.device),
            "python": platform.python_version(),
            "versions": {name: _version(name) for name in ("moew", "jax", "numpy", "scipy", "scikit-learn")},
        }
        self._meta_path().parent.mkdir(parents=True, exist_ok=True)
        self._meta_path().write_text(json.dumps(meta, indent=1) + "\n")


def chosen(
    seen: Seen, greater_is_better: bool, first: int | None = None, unit: float = 1.0
) -> dict[str, FloatArray]:
    """All scores (R,) of the candidate that each repeat chooses by validation, times `unit`."""
    return {name: unit * values for name, values in seen.at(seen.best(greater_is_better, first)).items()}


def device_name(device: str | None) -> str:
    """The name of the device that the networks are trained on."""
    from moew.models.networks import name_of_device

    return name_of_device(device)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "from source"
