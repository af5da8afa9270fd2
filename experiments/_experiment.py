"""What all experiments share: options, time limit and files."""

from __future__ import annotations

import json
import platform
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from experiments import OutOfTimeError
from experiments._beside_paper import read_values, write_values
from experiments._posterior_choice import ARGMAX, BEST_TRIAL, choose_by_posterior_mean
from experiments._searches import (
    Arm,
    Judge,
    Problem,
    Seen,
    embedding_file,
    run,
    with_kept_embedding,
)
from moew.exceptions import InvalidInputError
from moew.types import FloatArray

SECOND_REPEATS = 20  # at most, of second settings
PERCENT = 100.0
PAPER_ARM = "moew, GP-BUCB as in the paper"
PI_ALONE, WITH_PI = "π(y) alone", "with π(y)"

Scores = Mapping[str, FloatArray]
"""The scores (R,) of what each repeat chose, by name."""


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
    only: tuple[str, ...] | None = None  # names of settings to run, with * for any text; None: all

    @property
    def second_repeats(self) -> int:
        """The number of repeats of second settings, beside the paper's main ones."""
        return min(self.repeats, SECOND_REPEATS)


class Prepared(NamedTuple):
    """A search: what is trained, how rows are weighted, and how models are evaluated."""

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
        before = self._of_these_settings(self._read_meta())
        self._before = before.get("seconds", 0.0) if before.get("options") == self._kept_options() else 0.0
        # Due after every batch, too; not if everything was done before, or nothing is to be run.
        self._meta_is_due = not before and options.only != ()

    def wants(self, setting: str) -> bool:
        """Whether the setting is to be run: all are, unless `only` names some of them."""
        only = self.options.only
        return only is None or any(fnmatchcase(setting, pattern) for pattern in only)

    def check_only(self, settings: Sequence[str]) -> None:
        """Raise an error if a name in `only` is that of no setting."""
        for pattern in self.options.only or ():
            if not any(fnmatchcase(setting, pattern) for setting in settings):
                raise InvalidInputError(
                    f"no setting of {self.name} is named {pattern!r} (* stands for any text); there are: "
                    f"{'; '.join(settings)}."
                )

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
        self,
        setting: str,
        prepare: Callable[[], Prepared],
        *,
        n_batches: int,
        batch_size: int,
        keep_embedding: bool = False,
    ) -> Seen:
        """All candidates of one setting; if the folder has them all, nothing is prepared or trained.

        `keep_embedding` is for settings with a `posterior_choice`.
        """
        path = self.state(setting)
        if path.exists() and (seen := Seen.load(path)).n >= n_batches * batch_size:
            return seen
        return run(
            *prepare(),
            n_batches=n_batches,
            batch_size=batch_size,
            path=path,
            n_jobs=self.options.n_jobs,
            keep_embedding=keep_embedding,
            on_batch=self.tick(setting, n_batches),
        )

    def posterior_choice(
        self, setting: str, prepare: Callable[[], Prepared], seen: Seen, *, n_batches: int
    ) -> dict[str, Seen]:
        """What the search of a setting chooses by the posterior mean of its Gaussian process: BEST_TRIAL and
        ARGMAX, one candidate each; if the folder has them, nothing is prepared or trained."""
        paths = {name: self.state(f"{setting}, {name}") for name in (BEST_TRIAL, ARGMAX)}
        if not all(path.exists() for path in paths.values()):
            problem, arm, judge = prepare()
            embedding = embedding_file(self.state(setting))
            arm = with_kept_embedding(arm, embedding, begun=True)
            # A batch number of its own: other initial parameters than those of all the search's candidates.
            found = choose_by_posterior_mean(
                problem, arm, judge, seen, batch=n_batches + 1, n_jobs=self.options.n_jobs
            )
            for name, path in paths.items():
                found[name].save(path)
            embedding.unlink(missing_ok=True)
            self.tick(f"{setting}, posterior mean", 1)(1)
        return {name: Seen.load(path) for name, path in paths.items()}

    def write_values(self, lines: Sequence[tuple[str, Scores]]) -> dict[str, Scores]:
        """Write the scores of every repeat as CSV: setting, repeat, one column for each score.

        With `only`, the wanted settings replace those of the same name in the file, and the others stay.
        Returns the scores of all settings in the file, by name.
        """
        path = self.folder / f"{self.name}.csv"
        kept: dict[str, Scores] = {}
        if self.options.only is not None and path.exists():
            kept.update(read_values(path))
        together = kept | dict(lines)
        if together:
            write_values(path, list(together.items()))
        self._write_meta(time.monotonic() - self._start)
        return together

    def remarks(self, make: Callable[[], str]) -> str:
        """What the tables say beside the scores in the CSV, such as of all candidates.

        It is kept in a file, and read from there if only some settings are run.
        """
        path = self.folder / f"{self.name}-remarks.txt"
        if self.options.only is None:
            path.write_text(f"{make().strip()}\n")
        return path.read_text() if path.exists() else ""

    def conclude(self, text: str) -> str:
        """Write the tables beside the raw numbers, and return them."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{self.name}.txt").write_text(f"{text.strip()}\n")
        return text

    def _kept_options(self) -> dict[str, Any]:
        """The options that results depend on."""
        shared = asdict(self.options)
        return {n: v for n, v in shared.items() if n not in ("out", "n_jobs", "minutes", "only")} | self._more

    def _meta_path(self) -> Path:
        return self.folder / f"{self.name}.json"

    def _read_meta(self) -> dict[str, Any]:
        path = self._meta_path()
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def _of_these_settings(self, meta: dict[str, Any]) -> dict[str, Any]:
        """What the file says of runs of all settings, or of runs of these settings only."""
        if self.options.only is None:
            return meta
        return dict(meta.get("only", {}).get("; ".join(self.options.only), {}))

    def _write_meta(self, elapsed: float) -> None:
        """Write the command's options, versions, device and the seconds of all its runs together."""
        if not self._meta_is_due:
            return
        this = {
            "options": self._kept_options(),
            "seconds": round(self._before + elapsed, 1),
            "device": device_name(self.options.device),
            "python": platform.python_version(),
            "versions": {name: _version(name) for name in ("moew", "jax", "numpy", "scipy", "scikit-learn")},
        }
        meta: dict[str, Any] = {"experiment": self.name}
        if self.options.only is None:
            meta |= this
        else:
            meta |= self._read_meta()
            meta["only"] = meta.get("only", {}) | {"; ".join(self.options.only): this}
        self._meta_path().parent.mkdir(parents=True, exist_ok=True)
        self._meta_path().write_text(json.dumps(meta, indent=1, ensure_ascii=False) + "\n")


def chosen(
    seen: Seen, greater_is_better: bool, first: int | None = None, unit: float = 1.0
) -> dict[str, FloatArray]:
    """All scores (R,) of the candidate that each repeat chooses by validation, times `unit`."""
    return {name: unit * values for name, values in seen.at(seen.best(greater_is_better, first)).items()}


def device_name(device: str | None) -> str:
    """The name of the device that the networks are trained on."""
    from experiments.networks import name_of_device

    return name_of_device(device)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "from source"
