"""Store studies in files and databases through Optuna: each trial is a trial of an Optuna study.

A whole alpha is one write (a trial attribute), and so are the alphas of consecutive numbers, so that an
interruption at any moment leaves all of them or none. The Optuna parameters, one for each dimension, are only
for dashboards.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from moew._util.state import State
from moew.exceptions import InvalidInputError, MoewWarning
from moew.search._study import TrialRecord
from moew.types import Domain, FloatArray

if TYPE_CHECKING:
    from moew.search._study import Storage

try:
    import optuna
    from optuna.distributions import FloatDistribution
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial, TrialState
except ImportError as error:
    raise InvalidInputError(
        "a study in a file or a database needs Optuna, which is not installed: pip install 'moew[storage]', "
        "or do without a storage.",
        argument="storage",
    ) from error

_ALPHA = "alpha"  # trial attribute: the whole alpha in one write
_RUN = "run"  # trial attribute: the alphas of this and the following numbers, in one write
_KEPT = "kept"  # trial attribute: the content passed to `keep`
_ERROR = "error"  # trial attribute: why a candidate failed
_FIRST_BYTES = b'{"op_code":'  # of Optuna's journals
_SETTINGS = "moew"  # study attribute: settings that must be the same when a study is opened again


@dataclass
class OptunaTrials:
    """A `TrialStore` that keeps the records of a study as trials of an Optuna study."""

    optuna_study: optuna.Study
    patience: float = 60.0
    keeps_predictions: bool = True

    def asking(self) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()  # Optuna gives out every number once

    def draw_numbers(self, k: int) -> list[int]:
        return [self.optuna_study.ask().number for _ in range(k)]

    def records(self) -> Sequence[TrialRecord]:
        return [_record(trial) for trial in self._trials()]

    def written_alphas(self, first: int, k: int) -> FloatArray | None:
        for trial in self._trials()[: first + 1]:
            alphas = trial.user_attrs.get(_RUN, [])
            start = first - trial.number
            if start + k <= len(alphas):
                return np.asarray(alphas[start : start + k], dtype=np.float64)
        return None

    def write_alphas(self, first: int, alphas: FloatArray, domain: Domain) -> None:
        run = [trial._trial_id for trial in self._trials()[first : first + len(alphas)]]
        if self.written_alphas(first, len(alphas)) is None:
            self._storage.set_trial_user_attr(run[0], _RUN, alphas.tolist())
        for trial_id, alpha in zip(run, alphas.tolist(), strict=True):
            self._storage.set_trial_user_attr(trial_id, _ALPHA, alpha)
        allowed = FloatDistribution(-domain.size, domain.size)
        for trial_id, alpha in zip(run, alphas.tolist(), strict=True):
            for i, value in enumerate(alpha):
                self._storage.set_trial_param(trial_id, f"{_ALPHA}_{i}", value, allowed)

    def finish(self, number: int, value: float | None, error: str | None) -> None:
        # Does what optuna_study.tell does, without its deep copy of the trial, which takes ten times as long.
        trial_id = self._trials()[number]._trial_id
        if value is not None:
            self._storage.set_trial_state_values(trial_id, TrialState.COMPLETE, [value])
            return
        self._storage.set_trial_user_attr(trial_id, _ERROR, error)
        self._storage.set_trial_state_values(trial_id, TrialState.FAIL)

    def keep(self, number: int, content: State) -> None:
        self._storage.set_trial_user_attr(self._trials()[number]._trial_id, _KEPT, content)

    def kept(self) -> dict[int, State]:
        return {t.number: t.user_attrs[_KEPT] for t in self._trials() if _KEPT in t.user_attrs}

    def close(self) -> None:
        self._storage.remove_session()
        backend = getattr(self._storage, "_backend", self._storage)
        if hasattr(backend, "engine"):
            backend.engine.dispose()

    @property
    def _storage(self) -> BaseStorage:
        return self.optuna_study._storage

    def _trials(self) -> list[FrozenTrial]:
        return self.optuna_study.get_trials(deepcopy=False)


def _record(trial: FrozenTrial) -> TrialRecord:
    alpha = trial.user_attrs.get(_ALPHA)
    complete = trial.state == TrialState.COMPLETE and trial.value is not None
    return TrialRecord(
        trial.number,
        None if alpha is None else np.asarray(alpha, dtype=np.float64),
        float(trial.value) if complete and trial.value is not None else math.nan,
        trial.user_attrs.get(_ERROR),
        trial.state.is_finished(),
    )


def open_trials(storage: Storage, name: str, maximize: bool, settings: dict[str, Any]) -> OptunaTrials:
    """Create or open the study of that name; raises if it was made with other settings."""
    with _quiet_optuna():
        study = optuna.create_study(
            storage=resolve_storage(storage),
            sampler=optuna.samplers.RandomSampler(),  # not used: alphas are written
            study_name=name,
            directions=["maximize" if maximize else "minimize"],
            load_if_exists=True,
        )
    found = study.user_attrs.get(_SETTINGS)
    if found is None:
        study.set_user_attr(_SETTINGS, settings)
    elif found != settings:
        changed = {
            key: (found.get(key), settings[key]) for key in settings if found.get(key) != settings[key]
        }
        raise InvalidInputError(
            f"the storage already holds a study {name!r} with other settings (there, here): {changed}. "
            "Use the same settings to continue it, or another name or storage to start anew.",
            argument="study",
        )
    return OptunaTrials(study)


def resolve_storage(storage: Storage) -> str | BaseStorage | None:
    """The storage for Optuna: a journal for a path, a database for a URL, else what was passed."""
    if isinstance(storage, str) and "://" in storage:
        return _database(storage)
    if isinstance(storage, str | Path):
        return _journal(Path(storage).absolute())
    return storage


def _journal(path: Path) -> BaseStorage:
    """Optuna's journal at `path`. A last record that was cut off while writing is removed, since it would
    corrupt the next."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

    if not path.parent.is_dir() or path.is_dir():
        raise InvalidInputError(
            f"storage must be a file in a folder that exists, got {str(path)!r}.", argument="storage"
        )
    # Absolute: Optuna's lock is a link to the path as given, and a dangling link is waited for forever.
    lock = JournalFileSymlinkLock(str(path))
    if path.exists():
        content = path.read_bytes()
        if not _FIRST_BYTES.startswith(content[: len(_FIRST_BYTES)]):
            raise InvalidInputError(
                f"storage {str(path)!r} exists and is no journal of a study; name another file.",
                argument="storage",
            )
        if _whole_records(content) < len(content):
            _cut_last_record(path, lock)
    try:
        return JournalStorage(JournalFileBackend(str(path), lock))
    except (ValueError, KeyError, TypeError, AssertionError) as error:
        raise InvalidInputError(
            f"the journal {str(path)!r} is damaged ({error}); begin a new one.", argument="storage"
        ) from error


def _whole_records(content: bytes) -> int:
    """The number of bytes up to the end of the last complete record."""
    end = content.rfind(b"\n") + 1
    if end < len(content):
        return end
    start = content.rfind(b"\n", 0, max(end - 1, 0)) + 1
    try:
        json.loads(content[start:end] or b"{}")
    except ValueError:
        return start
    return end


def _cut_last_record(path: Path, lock: Any) -> None:
    lock.acquire()  # another process may still be writing the rest
    try:
        content = path.read_bytes()
        whole = _whole_records(content)
        if whole < len(content):
            os.truncate(path, whole)
            warnings.warn(
                f"the last record of {str(path)!r} was cut off as it was written, and is taken away; the "
                "search goes on from the one before.",
                MoewWarning,
                stacklevel=2,
            )
    finally:
        lock.release()


def _database(url: str) -> BaseStorage:
    """Optuna's storage in a database.

    If several processes open an empty database, each tries to create the tables and all but one fail; so
    they try again.
    """
    from sqlalchemy.exc import DatabaseError, IntegrityError, SQLAlchemyError

    for wait in (0.2, 1.0, 5.0):
        try:
            return optuna.storages.get_storage(url)
        except (SQLAlchemyError, ImportError, ValueError) as error:
            made = isinstance(error, IntegrityError) or "already exists" in str(error)
            if not (isinstance(error, DatabaseError) and made):
                reason = getattr(error, "orig", None) or error
                raise InvalidInputError(
                    f"storage {url.split('://')[0]}://… cannot be opened: {reason}. It must be a path, or "
                    "a URL of SQLAlchemy such as 'sqlite:///study.db' or 'postgresql+psycopg://user@host/name'.",
                    argument="storage",
                ) from error
            time.sleep(wait)
    return optuna.storages.get_storage(url)


@contextlib.contextmanager
def _quiet_optuna() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
