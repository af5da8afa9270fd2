"""The records of a study as trials of an Optuna study, in any storage of Optuna's.

The alphas that are asked for together are one write, an attribute of the study, and their trials follow: an
interruption at any moment leaves all of the alphas or none, and the next process makes the trials that lack.
The Optuna parameters, one for each of up to ten dimensions, are only for dashboards. Every record carries a
checksum, so that damaged or edited ones are refused. Predictions lie in a folder beside a journal or an
SQLite file, in a table of PostgreSQL, and as attributes in other storages.
"""

from __future__ import annotations

import base64
import contextlib
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import FloatDistribution
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

from moew._util.whole_files import write_whole, writing
from moew.exceptions import InvalidInputError, MoewError
from moew.saving import in_words
from moew.search._storage._checks import checksum, digest, end_record
from moew.search._storage._patience import passing_reason, patiently
from moew.search._study import Told, TrialRecord
from moew.search._workers import MarkStore, WorkerRecord
from moew.types import Domain, FloatArray

ALPHAS = "alphas from "  # study attribute, with a number: the alphas of this and the following numbers
TOLD = "told"  # trial attribute: how a candidate ended, with a checksum
KEPT = "kept"  # trial attribute: the content that a candidate was told with
HOLDER = "worker"  # trial attribute: who trains a candidate, if not who asked for it
WORKER = "worker "  # study attribute, with an id: a process that works on the study
# What reading damaged records raises.
DAMAGE = (ValueError, LookupError, TypeError, AttributeError, AssertionError, RuntimeError)
_MOST_PARAMETERS = 10  # dimensions up to which a trial has Optuna parameters
_ELSEWHERE = "marked as failed by another program"


@dataclass
class OptunaTrials:
    """A `TrialStore` in any storage of Optuna's, for one process at a time."""

    optuna_study: optuna.Study
    where: str  # the storage, for messages
    folder: Path | None = None  # where contents lie; None: in the storage itself
    patience: float = 120.0  # seconds for which a storage that does not work is tried again
    keeps_predictions: bool = True
    can_be_shared: bool = False
    _known: dict[int, tuple[FloatArray, str]] = field(default_factory=dict)  # alphas and who asked for them

    @patiently
    def records(self) -> Sequence[TrialRecord]:
        with self._reading():
            trials, known = self._trials(), self._alphas()
            return [self._record(trial, known) for trial in trials]

    @patiently
    def append(self, first: int, alphas: FloatArray, domain: Domain, worker: str = "") -> bool:
        with self._reading(), self._locked():
            known = self._alphas()
            planned = max(known, default=-1) + 1
            if planned > len(self._trials()):  # its process died, or lost its connection, in between
                self._create([known[n][0].tolist() for n in range(len(self._trials()), planned)], domain)
            if len(self._trials()) > first:
                return self._is_there(first, alphas, worker)
            rows = alphas.tolist()
            content = {"alphas": rows, "worker": worker, "checksum": checksum(first, rows, worker)}
            self._write_alphas(f"{ALPHAS}{first}", content)
            self._create(rows, domain)
            return True

    def claim(
        self, numbers: Sequence[int], worker: str, marks: MarkStore, dead: Collection[str], most: int
    ) -> list[int]:
        raise self.refuse("only a journal, SQLite and PostgreSQL can be shared by processes")

    @patiently
    def finish(self, told: Sequence[Told]) -> list[int]:
        with self._reading():
            ends = self._placed(told)
            ended = self._finish(told, ends)
        if ended and self.folder is not None:
            self._remove_unused({end["place"][0] for end in ends if end["place"]}, self.folder)
        return ended

    @patiently
    def kept(self, numbers: Sequence[int] | None = None) -> dict[int, bytes]:
        with self._reading():
            trials = self._trials()
            chosen = [
                trial
                for trial in (trials if numbers is None else [trials[n] for n in numbers])
                if trial.state.is_finished() and (trial.user_attrs.get(TOLD) or {}).get("content") is not None
            ]
            inside = self._inside([trial for trial in chosen if trial.user_attrs[TOLD]["place"] is None])
        found: dict[int, bytes] = {}
        files: dict[str, bytes] = {}
        for trial in chosen:
            end = trial.user_attrs[TOLD]
            try:
                if end["place"] is None:
                    content = inside[trial.number]
                    content = base64.b64decode(content) if isinstance(content, str) else content
                else:
                    name, start, length = end["place"]
                    if name not in files:
                        files[name] = (self.folder or Path()).joinpath(name).read_bytes()
                    content = files[name][start : start + length]
            except FileNotFoundError as error:
                raise self.refuse(
                    f"the predictions of candidate {trial.number} are missing: there is no {error.filename}; "
                    "they belong beside the study, and move with it"
                ) from error
            except DAMAGE as error:
                raise self.damaged(f"the predictions of candidate {trial.number}") from error
            if digest(content) != end["content"]:
                where = "" if end["place"] is None else f" in {str(self.folder)!r}"
                raise self.damaged(f"the predictions of candidate {trial.number}{where}")
            found[trial.number] = content
        return found

    @patiently
    def workers(self) -> dict[str, WorkerRecord]:
        with self._reading():
            attributes = self._storage.get_study_user_attrs(self.optuna_study._study_id)
            found = {k.removeprefix(WORKER): v for k, v in attributes.items() if k.startswith(WORKER)}
            return {name: WorkerRecord(**content) for name, content in found.items() if content is not None}

    @patiently
    def register(self, name: str, record: WorkerRecord, beside: set[str] | None) -> bool:
        if beside is not None and not set(self.workers()) <= beside:
            return False
        self.optuna_study.set_user_attr(f"{WORKER}{name}", vars(record))
        return True

    def renew(self, name: str, record: WorkerRecord) -> bool:
        if name not in self.workers():
            return False
        self.optuna_study.set_user_attr(f"{WORKER}{name}", vars(record))
        return True

    def forget(self, names: Sequence[str]) -> None:
        for name in names:
            self.optuna_study.set_user_attr(f"{WORKER}{name}", None)

    @patiently
    def settle(self, key: str, settings: Mapping[str, Any]) -> Any:
        """The study's settings, which become `settings` if it has none."""
        with self._reading(), self._locked():
            found = self._storage.get_study_user_attrs(self.optuna_study._study_id).get(key)
            if found is None and self._trials():
                raise self.refuse("this study was not made by moew")
            if found is None:
                self.optuna_study.set_user_attr(key, settings)
            return settings if found is None else found

    @patiently
    def tidy(self) -> None:
        if self.folder is not None and self.folder.is_dir():
            with self._reading():
                self._remove_unused({path.name for path in self.folder.glob(f"{self.prefix}*")}, self.folder)

    def close(self) -> None:
        self._storage.remove_session()
        backend = getattr(self._storage, "_backend", self._storage)
        if hasattr(backend, "engine"):
            backend.engine.dispose()

    def refuse(self, what: str) -> InvalidInputError:
        return InvalidInputError(
            f"{what} (study {self.optuna_study.study_name!r} in {self.where}). Begin anew in another "
            "storage, or under another name; a copy from before the damage can be continued.",
            argument="storage",
        )

    def damaged(self, what: str) -> InvalidInputError:
        """The error for records whose checksum is wrong."""
        return self.refuse(f"{what}, as stored, are not what was written: damaged, or edited")

    def _locked(self) -> contextlib.AbstractContextManager[Any]:
        """Context in which no other process writes to the study."""
        return contextlib.nullcontext()

    def _write_alphas(self, key: str, content: dict[str, Any]) -> None:
        self._storage.set_study_user_attr(self.optuna_study._study_id, key, content)

    def _create(self, rows: list[list[float]], domain: Domain) -> None:
        """Make trials with these alphas."""
        allowed = FloatDistribution(-domain.size, domain.size)
        for alpha in rows:
            trial = optuna.trial.create_trial(
                state=TrialState.RUNNING,
                params=(params := parameters(alpha)),
                distributions=dict.fromkeys(params, allowed),
            )
            self._storage.create_new_trial(self.optuna_study._study_id, trial)

    def _is_there(self, first: int, alphas: FloatArray, worker: str) -> bool:
        """Whether these alphas were written: by this worker, whose connection broke before it knew."""
        known = self._alphas()
        mine = [known.get(first + i, (None, "")) for i in range(len(alphas))]
        same = zip(mine, alphas, strict=True)
        return bool(worker) and all(of == worker and np.array_equal(a, b) for (a, of), b in same)  # type: ignore[arg-type]

    def _finish(self, told: Sequence[Told], ends: Sequence[dict[str, Any]]) -> list[int]:
        # Does what optuna_study.tell does, without its deep copy of the trial, which takes ten times as long.
        trials = self._trials()
        if ended := ended_otherwise(trials, told, ends):
            return ended
        for one, end in zip(told, ends, strict=True):
            trial = trials[one.number]
            if trial.state.is_finished():
                continue
            for key, value in self._attributes(one, end).items():
                self._storage.set_trial_user_attr(trial._trial_id, key, value)
            values = None if one.value is None else [one.value]
            self._storage.set_trial_state_values(trial._trial_id, state_of(one), values)
        return []

    def _attributes(self, told: Told, end: dict[str, Any]) -> dict[str, Any]:
        """The attributes of an ended trial."""
        if told.content is None or end["place"] is not None:
            return {TOLD: end}
        return {KEPT: base64.b64encode(told.content).decode("ascii"), TOLD: end}

    def _inside(self, trials: Sequence[FrozenTrial]) -> dict[int, bytes | str]:
        """The contents that lie in the storage itself, by number: bytes, or text of them in base 64."""
        return {trial.number: trial.user_attrs[KEPT] for trial in trials if KEPT in trial.user_attrs}

    def _placed(self, told: Sequence[Told]) -> list[dict[str, Any]]:
        """The records of how trials ended, after their contents were written into one file, if at all."""
        places: dict[int, list[Any]] = {}
        with_content = {one.number: one.content for one in told if one.content is not None}
        if self.folder is not None and with_content:
            contents = b"".join(with_content.values())
            name, start = f"{self.prefix}{min(with_content)}-{digest(contents)[:8]}.bin", 0
            for number, content in with_content.items():
                places[number] = [name, start, len(content)]
                start += len(content)
            with writing(self.folder):
                self.folder.mkdir(mode=0o700, exist_ok=True)
            write_whole(self.folder / name, lambda path: path.write_bytes(contents), private=True)
        if any(one.number not in self._known for one in told):
            self._alphas()
        alphas = [self._known.get(one.number, (None, ""))[0] for one in told]
        return [end_record(one, a, place=places.get(one.number)) for one, a in zip(told, alphas, strict=True)]

    def _remove_unused(self, names: set[str], folder: Path) -> None:
        """Remove files of contents that no trial refers to, because others had told these trials."""
        ends = [trial.user_attrs.get(TOLD) for trial in self._trials() if trial.state.is_finished()]
        used = {end["place"][0] for end in ends if end and end["place"]}
        for name in names - used:
            (folder / name).unlink(missing_ok=True)

    @property
    def prefix(self) -> str:
        """What the names of this study's files begin with: others may be in the same storage."""
        return f"{digest(self.optuna_study.study_name.encode())[:8]}-"

    @property
    def _storage(self) -> BaseStorage:
        return self.optuna_study._storage

    def _trials(self) -> list[FrozenTrial]:
        """All trials: trial i has number i."""
        trials = self.optuna_study.get_trials(deepcopy=False)
        if any(trial.number != i for i, trial in enumerate(trials)):
            there = {trial.number for trial in trials}
            lost = [i for i in range(len(trials)) if i not in there]
            raise self.refuse(
                f"the records of candidates {lost or 'with equal numbers'} are gone or confused"
            )
        return trials

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Context in which what a damaged storage raises is said in words."""
        try:
            yield
        except Exception as error:
            words = words_for(error)
            if words is None:
                raise
            raise self.refuse(f"the stored records cannot be read: {words}") from error

    def _alphas(self) -> dict[int, tuple[FloatArray, str]]:
        """The alphas of all numbers that have one, each with the worker that asked for it."""
        attributes = self._storage.get_study_user_attrs(self.optuna_study._study_id)
        found: dict[int, tuple[FloatArray, str]] = {}
        for key, content in attributes.items():
            if not key.startswith(ALPHAS):
                continue
            try:
                first, rows, worker = int(key.removeprefix(ALPHAS)), content["alphas"], content["worker"]
                whole = content["checksum"] == checksum(first, rows, worker)
            except DAMAGE:
                whole = False
            if not whole:
                raise self.damaged(f"the {key}")
            found.update((first + i, (np.asarray(row, dtype=float), worker)) for i, row in enumerate(rows))
        self._known = found
        return found

    def _record(self, trial: FrozenTrial, known: Mapping[int, tuple[FloatArray, str]]) -> TrialRecord:
        number = trial.number
        if number not in known:  # alphas are written before their trials
            raise self.refuse(
                f"candidate {number} has no alpha: another program made its trial, or records are gone"
            )
        alpha, asked_by = known[number]
        if not trial.state.is_finished():
            holder = trial.user_attrs.get(HOLDER, asked_by)
            return TrialRecord(number, alpha, worker=holder if isinstance(holder, str) else asked_by)
        end: Any = trial.user_attrs.get(TOLD)
        if end is None and trial.state == TrialState.FAIL:
            return TrialRecord(number, alpha, error=_ELSEWHERE, finished=True)
        value = trial.value if trial.state == TrialState.COMPLETE else None
        try:
            one = Told(number, end["value"], end["error"])
            whole = end["checksum"] == end_record(one, alpha, end["content"], end["place"])["checksum"]
        except DAMAGE:
            whole = False
        if not whole or one.value != value:
            raise self.damaged(f"the records of candidate {number}")
        return TrialRecord(number, alpha, math.nan if value is None else value, one.error, finished=True)


def parameters(alpha: Sequence[float]) -> dict[str, float]:
    """The Optuna parameters of an alpha, for dashboards; none if there would be too many."""
    if len(alpha) > _MOST_PARAMETERS:
        return {}
    return {f"alpha_{i}": value for i, value in enumerate(alpha)}


def state_of(told: Told) -> TrialState:
    """The state of an ended trial."""
    return TrialState.FAIL if told.value is None else TrialState.COMPLETE


def ended_otherwise(
    trials: Sequence[FrozenTrial], told: Sequence[Told], ends: Sequence[dict[str, Any]]
) -> list[int]:
    """The numbers of trials that have ended otherwise than they are told to."""
    pairs = [(trials[one.number], end) for one, end in zip(told, ends, strict=True)]
    return [t.number for t, end in pairs if t.state.is_finished() and t.user_attrs.get(TOLD) != end]


def words_for(error: Exception) -> str | None:
    """What is wrong with a storage, from the error of reading it; None if the error is not about that, or
    may pass."""
    if isinstance(error, MoewError) or passing_reason(error) is not None:
        return None
    of_database = type(error).__module__.partition(".")[0] in ("sqlalchemy", "sqlite3")
    if not of_database and not isinstance(error, (*DAMAGE, optuna.exceptions.OptunaError)):
        return None
    reason = error.__cause__ if isinstance(error.__cause__, Exception) else error
    return in_words(getattr(reason, "orig", None) or reason)  # without the statement of SQL
