"""Studies in SQLite and PostgreSQL, for several processes at once, with few statements for many trials.

Optuna writes trials one by one, with several statements each. This writes into Optuna's tables, with one
transaction for what belongs together. A transaction first takes the study's row, so that no other process
writes to the study before it ends. Predictions that do not lie in a folder have a table of moew's, as bytes:
as text among the attributes they take half as much again, and Optuna reads all attributes with a trial.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import numpy as np
import optuna
import sqlalchemy as sql
from optuna.distributions import FloatDistribution, distribution_to_json
from optuna.storages import BaseStorage
from optuna.storages._rdb import models
from optuna.trial import FrozenTrial, TrialState

from moew.search._storage._checks import checksum
from moew.search._storage._patience import patiently
from moew.search._storage._trials import (
    ALPHAS,
    HOLDER,
    TOLD,
    WORKER,
    OptunaTrials,
    parameters,
    state_of,
)
from moew.search._study import Told
from moew.search._workers import MarkStore, WorkerRecord
from moew.types import Domain, FloatArray

_Written = TypeVar("_Written")
_studies: Any = models.StudyModel.__table__
_study_notes: Any = models.StudyUserAttributeModel.__table__
_trials: Any = models.TrialModel.__table__
_trial_notes: Any = models.TrialUserAttributeModel.__table__
_trial_values: Any = models.TrialValueModel.__table__
_trial_parameters: Any = models.TrialParamModel.__table__
_trial_contents = sql.Table(
    "moew_contents",
    sql.MetaData(),
    sql.Column("trial_id", sql.ForeignKey(_trials.c.trial_id, ondelete="CASCADE"), primary_key=True),
    sql.Column("content", sql.LargeBinary, nullable=False),
)


def writes_many(storage: BaseStorage) -> bool:
    """Whether `DatabaseTrials` can write to the storage: a database that returns the ids of new rows."""
    engine = getattr(getattr(storage, "_backend", None), "engine", None)
    return getattr(getattr(engine, "dialect", None), "name", "") in ("sqlite", "postgresql")


@dataclass
class DatabaseTrials(OptunaTrials):
    """A `TrialStore` in SQLite or PostgreSQL."""

    can_be_shared: bool = True

    @patiently
    def append(self, first: int, alphas: FloatArray, domain: Domain, worker: str = "") -> bool:
        rows = alphas.tolist()
        content = {"alphas": rows, "worker": worker, "checksum": checksum(first, rows, worker)}
        allowed = distribution_to_json(FloatDistribution(-domain.size, domain.size))

        def write(session: Any) -> bool:
            of_study = _trials.c.study_id == self._id
            n_trials = session.execute(sql.select(sql.func.count()).where(of_study)).scalar_one()
            if n_trials < planned:  # alphas and their trials are written in one transaction
                gone = list(range(n_trials, planned))
                raise self.refuse(f"the records of candidates {gone} are gone or confused")
            if n_trials != first:
                return False
            started = {"study_id": self._id, "state": TrialState.RUNNING, "datetime_start": _now()}
            new = [{**started, "number": first + i} for i in range(len(rows))]
            insert = _trials.insert().returning(_trials.c.trial_id, sort_by_parameter_order=True)
            ids = session.execute(insert, new).scalars().all()
            self._set_note(session, f"{ALPHAS}{first}", content)
            shown = [
                {"trial_id": i, "param_name": name, "param_value": value, "distribution_json": allowed}
                for i, alpha in zip(ids, rows, strict=True)
                for name, value in parameters(alpha).items()
            ]
            if shown:
                session.execute(_trial_parameters.insert(), shown)
            return True

        with self._reading():
            planned = max(self._alphas(), default=-1) + 1
            if self._written(write):
                self._known.update((first + i, (np.asarray(row), worker)) for i, row in enumerate(rows))
                return True
            return self._is_there(first, alphas, worker)

    @patiently
    def claim(
        self, numbers: Sequence[int], worker: str, marks: MarkStore, dead: Collection[str], most: int
    ) -> list[int]:
        assert isinstance(marks, DatabaseTrials)
        known = self._known if all(n in self._known for n in numbers) else self._alphas()

        def write(session: Any) -> list[int]:
            running = {n: i for n, (i, s) in self._ids(session, numbers).items() if not s.is_finished()}
            notes = _trial_notes.c.trial_id.in_(running.values()) & (_trial_notes.c.key == HOLDER)
            held = sql.select(_trial_notes.c.trial_id, _trial_notes.c.value_json).where(notes)
            holders = {i: json.loads(text) for i, text in session.execute(held)}
            holder = {n: holders.get(i, known.get(n, (None, ""))[1]) for n, i in running.items()}
            others = marks.names(session) - set(dead) - {worker}
            mine = [n for n in running if holder[n] not in others][:most]
            new = [running[n] for n in mine if holder[n] != worker]
            if new:
                old = _trial_notes.c.trial_id.in_(new) & (_trial_notes.c.key == HOLDER)
                session.execute(_trial_notes.delete().where(old))
                content = {"key": HOLDER, "value_json": json.dumps(worker)}
                session.execute(_trial_notes.insert(), [{"trial_id": i, **content} for i in new])
            return mine

        with self._reading():
            return self._written(write)

    @patiently
    def register(self, name: str, record: WorkerRecord, beside: set[str] | None) -> bool:
        def write(session: Any) -> bool:
            if beside is not None and not self.names(session) <= beside:
                return False
            self._set_note(session, f"{WORKER}{name}", vars(record))
            return True

        return self._written(write)

    def names(self, session: Any) -> set[str]:
        """The names of all workers that have a mark."""
        of_workers = (_study_notes.c.study_id == self._id) & _study_notes.c.key.startswith(WORKER)
        there = of_workers & (_study_notes.c.value_json != "null")  # as `OptunaTrials.forget` leaves them
        keys = session.execute(sql.select(_study_notes.c.key).where(there)).scalars()
        return {key.removeprefix(WORKER) for key in keys}

    def renew(self, name: str, record: WorkerRecord) -> bool:
        this = (_study_notes.c.study_id == self._id) & (_study_notes.c.key == f"{WORKER}{name}")
        update = _study_notes.update().where(this).values(value_json=json.dumps(vars(record)))
        return bool(self._written(lambda session: session.execute(update).rowcount, alone=False))

    def forget(self, names: Sequence[str]) -> None:
        keys = [f"{WORKER}{name}" for name in names]
        these = (_study_notes.c.study_id == self._id) & _study_notes.c.key.in_(keys)
        self._written(lambda session: session.execute(_study_notes.delete().where(these)), alone=False)

    @patiently
    def settle(self, key: str, settings: Mapping[str, Any]) -> Any:
        def write(session: Any) -> Any:
            this = (_study_notes.c.study_id == self._id) & (_study_notes.c.key == key)
            found = session.execute(sql.select(_study_notes.c.value_json).where(this)).scalar_one_or_none()
            if found is not None:
                return json.loads(found)
            of_study = _trials.c.study_id == self._id
            if session.execute(sql.select(sql.func.count()).where(of_study)).scalar_one():
                raise self.refuse("this study was not made by moew")
            self._set_note(session, key, settings)
            return settings

        with self._reading():
            if self.folder is None:
                _made_by_someone(lambda: self._written(_make_table, alone=False))
            return self._written(write)

    def _finish(self, told: Sequence[Told], ends: Sequence[dict[str, Any]]) -> list[int]:
        finite = models.TrialValueModel.TrialValueType.FINITE

        def write(session: Any) -> list[int]:
            ids = self._ids(session, [one.number for one in told])
            finished = [one.number for one in told if ids[one.number][1].is_finished()]
            if ended := self._ended_otherwise(session, ids, finished, told, ends):
                return ended
            states, scores, notes, contents = [], [], [], []
            for one, end in zip(told, ends, strict=True):
                if one.number in finished:
                    continue
                i = ids[one.number][0]
                states.append({"id": i, "state": state_of(one), "datetime_complete": _now()})
                if one.value is not None:
                    scores.append({"trial_id": i, "objective": 0, "value": one.value, "value_type": finite})
                notes.append({"trial_id": i, "key": TOLD, "value_json": json.dumps(end)})
                if one.content is not None and end["place"] is None:
                    contents.append({"trial_id": i, "content": one.content})
            if states:
                of_id = _trials.update().where(_trials.c.trial_id == sql.bindparam("id"))
                session.execute(of_id, states)
                session.execute(_trial_notes.insert(), notes)
            if scores:
                session.execute(_trial_values.insert(), scores)
            if contents:
                session.execute(_trial_contents.insert(), contents)
            return []

        return self._written(write)

    def _inside(self, trials: Sequence[FrozenTrial]) -> dict[int, bytes | str]:
        if not trials:  # in a folder, without a table
            return {}
        number = {trial._trial_id: trial.number for trial in trials}
        these = sql.select(_trial_contents).where(_trial_contents.c.trial_id.in_(number))
        rows = self._written(lambda session: session.execute(these).all(), alone=False)
        written = {number[trial_id]: content for trial_id, content in rows}
        return {**super()._inside(trials), **written}  # attributes: those of a study begun before the table

    def _ended_otherwise(
        self,
        session: Any,
        ids: Mapping[int, tuple[int, TrialState]],
        finished: Sequence[int],
        told: Sequence[Told],
        ends: Sequence[dict[str, Any]],
    ) -> list[int]:
        """The numbers of finished trials that ended otherwise than they are told to."""
        if not finished:
            return []
        these = _trial_notes.c.trial_id.in_([ids[n][0] for n in finished]) & (_trial_notes.c.key == TOLD)
        notes = sql.select(_trial_notes.c.trial_id, _trial_notes.c.value_json).where(these)
        there = {i: json.loads(text) for i, text in session.execute(notes)}
        of_number = {one.number: end for one, end in zip(told, ends, strict=True)}
        return [n for n in finished if there.get(ids[n][0]) != of_number[n]]

    def _ids(self, session: Any, numbers: Sequence[int]) -> dict[int, tuple[int, TrialState]]:
        """The ids and states of trials, by number."""
        these = (_trials.c.study_id == self._id) & _trials.c.number.in_(numbers)
        found = (
            sql.select(_trials.c.number, _trials.c.trial_id, _trials.c.state)
            .where(these)
            .order_by(_trials.c.number)
        )
        return {number: (trial_id, state) for number, trial_id, state in session.execute(found)}

    def _set_note(self, session: Any, key: str, content: Any) -> None:
        """Write an attribute of the study."""
        this = (_study_notes.c.study_id == self._id) & (_study_notes.c.key == key)
        new = {"value_json": json.dumps(content)}
        if not session.execute(_study_notes.update().where(this).values(new)).rowcount:
            session.execute(_study_notes.insert(), [{"study_id": self._id, "key": key, **new}])

    @property
    def _id(self) -> int:
        return self.optuna_study._study_id

    def _written(self, write: Callable[[Any], _Written], *, alone: bool = True) -> _Written:
        """What `write` gives in a transaction, which is `alone` in writing to the study."""
        session = self._storage._backend.scoped_session()  # type: ignore[attr-defined]
        try:
            if alone:
                same = {"study_name": _studies.c.study_name}
                session.execute(_studies.update().where(_studies.c.study_id == self._id).values(same))
            found = write(session)
            session.commit()
            return found
        except BaseException:
            session.rollback()
            raise
        finally:
            session.close()


def open_database(url: str) -> BaseStorage:
    """Optuna's storage in a database."""
    return _made_by_someone(lambda: optuna.storages.get_storage(url))


def _make_table(session: Any) -> None:
    _trial_contents.create(session.connection(), checkfirst=True)


def _made_by_someone(make: Callable[[], _Written]) -> _Written:
    """What `make` gives, which creates tables where there are none.

    If several processes open an empty database, each tries to create the tables and all but one fail; so
    they try again.
    """
    for wait in (0.2, 1.0, 5.0):
        try:
            return make()
        except sql.exc.DatabaseError as error:
            made = isinstance(error, sql.exc.IntegrityError) or "already exists" in str(error)
            if not made and "locked" not in str(error):
                raise
            time.sleep(wait)
    return make()


def _now() -> datetime:
    """The time as Optuna's tables have it: universal time, in versions before 5 local time."""
    universal = hasattr(models.TrialModel, "_datetime_start_utc")
    return datetime.now(UTC).replace(tzinfo=None) if universal else datetime.now()
