"""What all experiments share: their options, time, files, tables and verdicts."""

from __future__ import annotations

import csv
import json
import platform
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from moew._util.margins import margin
from moew.models.networks import RepeatedNetworks
from moew.paper._searches import Arm, Evaluate, OutOfTimeError, Seen, run
from moew.types import FloatArray

SECOND_REPEATS = 20  # at most
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
    minutes: float | None = None  # stop after so many, cleanly, between two batches

    @property
    def second_repeats(self) -> int:
        """Of settings beside the paper's main ones."""
        return min(self.repeats, SECOND_REPEATS)


@dataclass(frozen=True)
class Line:
    """One row of a table: the paper's figure, ours (repeats,), and which way is better."""

    name: str
    values: FloatArray
    greater_is_better: bool
    paper: float | None = None
    paper_margin: float = 0.0

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def margin(self) -> float:
        return margin(self.values) if len(self.values) > 1 else float("nan")

    @property
    def verdict(self) -> str:
        """Ours against the paper's: inside both margins, better or worse."""
        if self.paper is None:
            return ""
        sign = 1.0 if self.greater_is_better else -1.0
        gain = sign * (self.mean - self.paper)
        within = float(np.hypot(self.margin, self.paper_margin))
        return "inside the margin" if abs(gain) <= within else "better" if gain > 0 else "worse"


class Prepared(NamedTuple):
    """What a search trains, how it weights, and what its models score."""

    networks: RepeatedNetworks
    arm: Arm
    evaluate: Evaluate


class Run:
    """One command: where its files go, how long it may take, what it has to say."""

    def __init__(self, name: str, options: Options, **more: str) -> None:
        """`more` are options of this experiment alone."""
        self.name, self.options, self._more = name, options, more
        self.folder = options.out / name
        self._start = time.monotonic()
        meta = self._read_meta()
        self._before = meta.get("seconds", 0.0) if meta.get("options") == self._kept_options() else 0.0
        self._meta_is_due = not meta  # and after every batch; a run that finds all done says nothing new

    def state(self, setting: str) -> Path:
        """Where the candidates of one setting are kept; runs with other options keep theirs elsewhere."""
        o = self.options
        run = f"seed={o.seed} repeats={o.repeats} steps={o.steps} {o.precision}"
        names = (re.sub("[^a-z0-9=.]+", "-", text.lower()) for text in (run, f"{setting}.npz"))
        return self.folder.joinpath("state", *names)

    def tick(self, setting: str, n_batches: int, unit: str = "batch") -> Any:
        """What `run` calls after each batch: a line of progress, and an end when time is up."""

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
        """All candidates of one setting; where the folder holds them all, nothing is prepared."""
        path = self.state(setting)
        if path.exists() and (seen := Seen.load(path)).n >= n_batches * batch_size:
            return seen
        on_batch = self.tick(setting, n_batches)
        return run(*prepare(), n_batches=n_batches, batch_size=batch_size, path=path, on_batch=on_batch)

    def write_values(self, lines: Sequence[tuple[str, Mapping[str, FloatArray]]]) -> Path:
        """The raw numbers of every repeat: setting, repeat, one column for each score."""
        names = list(dict.fromkeys(name for _, values in lines for name in values))
        path = self.folder / f"{self.name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["setting", "repeat", *names])
            for setting, values in lines:
                for r in range(len(next(iter(values.values())))):
                    writer.writerow(
                        [setting, r, *(f"{values[n][r]:.6g}" if n in values else "" for n in names)]
                    )
        self._write_meta(time.monotonic() - self._start)
        return path

    def conclude(self, text: str) -> str:
        """Keep the tables beside the raw numbers, and return them."""
        (self.folder / f"{self.name}.txt").write_text(f"{text.strip()}\n")
        return text

    def _kept_options(self) -> dict[str, Any]:
        """Those that results depend on."""
        shared = asdict(self.options)
        return {n: v for n, v in shared.items() if n not in ("out", "n_jobs", "minutes")} | self._more

    def _meta_path(self) -> Path:
        return self.folder / f"{self.name}.json"

    def _read_meta(self) -> dict[str, Any]:
        path = self._meta_path()
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def _write_meta(self, elapsed: float) -> None:
        """The command's options, versions, device and the seconds of all its runs together."""
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


def chosen(seen: Seen, greater_is_better: bool, first: int | None = None) -> dict[str, FloatArray]:
    """All scores (R,) of the candidate that each repeat would choose by validation."""
    return seen.at(seen.best(greater_is_better, first))


def table(title: str, lines: Sequence[Line], paper_is: str = "paper") -> str:
    """The table as people read it; a row of fewer repeats than the others says so."""
    repeats = max(len(line.values) for line in lines)
    names = [
        line.name if len(line.values) == repeats else f"{line.name} ({len(line.values)} repeats)"
        for line in lines
    ]
    width = max(map(len, names))
    shown = [f"{title}, {repeats} repeats", f"{'':{width}}  {paper_is:>15}  {'ours':>17}  verdict"]
    for name, line in zip(names, lines, strict=True):
        paper = "–" if line.paper is None else f"{line.paper:.2f}"
        if line.paper is not None and line.paper_margin:
            paper += f" ± {line.paper_margin:.2f}"
        ours = f"{line.mean:8.2f} ± {line.margin:6.2f}"
        shown.append(f"{name:{width}}  {paper:>15}  {ours}  {line.verdict}".rstrip())
    return "\n".join(shown)


def difference(name: str, ours: FloatArray, other: FloatArray, greater_is_better: bool) -> str:
    """ours − other within each repeat that both have, with its margin and in how many it is better."""
    both = min(len(ours), len(other))  # second settings have fewer repeats
    gain = ours[:both] - other[:both]
    better = int((gain > 0 if greater_is_better else gain < 0).sum())
    return f"{name}: {gain.mean():+.2f} ± {margin(gain):.2f}, better in {better} of {len(gain)}"


def device_name(device: str | None) -> str:
    from moew.models.networks import name_of_device

    return name_of_device(device)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "from source"
