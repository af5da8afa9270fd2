"""The study: ask for candidates, train them anywhere, tell their values.

Candidates have numbers, and alphas in the order of the numbers, whichever process asks: an alpha depends only
on lower numbers and their values, where those still in training count as pretended observations (Algorithm
2), and every random choice derives from (seed, purpose, number). So results do not depend on how many models
are trained at a time or on an interruption.

A study is a plain object in memory. With a storage, Optuna keeps the same records in files and databases, for
several processes and dashboards; see `_storage`.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from moew._printable import shortened
from moew._util.seeds import generator, integer_seed
from moew.exceptions import InvalidInputError, SearchFailedError
from moew.samplers import resolve_sampler
from moew.search._settings import check_storage
from moew.search._workers import Crew, MarkStore, WorkerRecord
from moew.types import Domain, FloatArray, Labels, Outlook, Rows, Sampler, SamplerWithModel

if TYPE_CHECKING:
    from pathlib import Path

    from optuna.storages import BaseStorage

    from moew.search._space import ParameterSpace

    Storage = str | Path | BaseStorage | None


@dataclass(frozen=True)
class Trial:
    """The record of one candidate: its number, alpha (d,), the seed of its model, its value or its error, and
    its hyper-parameters where they are searched, too."""

    number: int
    alpha: FloatArray
    seed: int  # derived only from the study's seed and the number
    value: float = math.nan
    error: str | None = None  # why there is no value
    pending: bool = False  # asked for and not yet told
    parameters: Mapping[str, Any] = field(default_factory=dict)  # empty: the estimator's own
    coordinates: FloatArray = field(default_factory=partial(np.empty, 0), repr=False)  # (p,), theirs

    @property
    def point(self) -> FloatArray:
        """Alpha and the coordinates of the parameters (d + p,), as the domain of the study has them."""
        return np.concatenate([self.alpha, self.coordinates])


@dataclass(frozen=True)
class TrialRecord:
    """What a store holds for one number. With a space, `alpha` is the whole point: alpha and the coordinates
    of the parameters."""

    number: int
    alpha: FloatArray
    value: float = math.nan
    error: str | None = None
    finished: bool = False
    worker: str = ""  # who trains it, where that is recorded


@dataclass(frozen=True)
class Told:
    """The end of a trial: its finite value, or the error that prevented one; and content to keep with it."""

    number: int
    value: float | None = None
    error: str | None = None
    content: bytes | None = None


class TrialStore(MarkStore, Protocol):
    """Stores a study's records: in memory, or through Optuna."""

    keeps_predictions: bool
    optuna_study: Any  # None in memory

    def records(self) -> Sequence[TrialRecord]:
        """The records of all numbers so far: record i is that of number i."""

    def append(self, first: int, alphas: FloatArray, domain: Domain, worker: str = "") -> bool:
        """Make candidates of the alphas (k, d), with the numbers from `first` on, all or none of them, that
        `worker` trains. False if there is a candidate `first`, because another process was faster."""

    def claim(
        self, numbers: Sequence[int], worker: str, marks: MarkStore, dead: Collection[str], most: int
    ) -> list[int]:
        """Let `worker` train those of the numbers that are not finished, but no more than `most`; returns
        them. Numbers stay with another worker that has a mark in `marks` and is not among the `dead`."""

    def finish(self, told: Sequence[Told]) -> list[int]:
        """End trials, each as a whole; if some have ended otherwise, end none and return their numbers."""

    def kept(self, numbers: Sequence[int] | None = None) -> dict[int, bytes]:
        """The contents that trials were ended with, by number: of these numbers, or of all."""

    def tidy(self) -> None:
        """Remove files that no record refers to."""

    def close(self) -> None:
        """Release connections; they are opened again when needed."""


@dataclass
class MemoryTrials:
    """A `TrialStore` in memory."""

    keeps_predictions: bool = False
    can_be_shared: bool = False
    optuna_study: None = None
    _records: list[TrialRecord] = field(default_factory=list)
    _lock: Any = field(default_factory=threading.RLock)

    def records(self) -> Sequence[TrialRecord]:
        return self._records

    def append(self, first: int, alphas: FloatArray, domain: Domain, worker: str = "") -> bool:
        with self._lock:
            if len(self._records) != first:
                return False
            self._records += [TrialRecord(first + i, alpha) for i, alpha in enumerate(alphas)]
            return True

    def claim(
        self, numbers: Sequence[int], worker: str, marks: MarkStore, dead: Collection[str], most: int
    ) -> list[int]:
        return [number for number in numbers if not self._records[number].finished][:most]

    def finish(self, told: Sequence[Told]) -> list[int]:
        with self._lock:
            if ended := [one.number for one in told if self._records[one.number].finished]:
                return ended
            for one in told:
                value = math.nan if one.value is None else one.value
                record = replace(self._records[one.number], value=value, error=one.error, finished=True)
                self._records[one.number] = record
            return []

    def kept(self, numbers: Sequence[int] | None = None) -> dict[int, bytes]:
        return {}  # the owner of a study in memory has the contents

    def workers(self) -> dict[str, WorkerRecord]:
        return {}

    def register(self, name: str, record: WorkerRecord, beside: set[str] | None) -> bool:
        return True

    def renew(self, name: str, record: WorkerRecord) -> bool:
        return True

    def forget(self, names: Sequence[str]) -> None:
        """Does nothing."""

    def refuse(self, what: str) -> InvalidInputError:
        return InvalidInputError(f"{what}.")

    def tidy(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock())


class WeightStudy:
    """Ask for alphas, train with their weights wherever you like, tell the metric.

    Parameters
    ----------
    weighting : fitted ExampleWeighting, or None
        Gives the weights for an alpha; only `weights` and `training_weights` need it.
    domain : Ball, Box or BallAndBox
        The set that alphas are searched in.
    sampler : "gp_bucb", "random", "annealing", "swarm", "differential_evolution", "grid", "cover", Sampler \
or one of Optuna's
        Where the next alphas come from.
    greater_is_better : bool
        Direction of the told values.
    n_initial : int
        How many candidates after those of α = 0 are random: the paper's first batch of K.
    alpha_zero_repeats : int
        How many of the first candidates have α = 0; two or more show the metric's noise.
    storage : None, a path, a URL or an Optuna storage
        None is memory; a path is a journal file; a URL such as "sqlite:///run.db" is a database. All but
        None need Optuna.
    name : str
        The study's name in the storage; an existing study of that name is continued.
    seed : int
    leases : bool
        Whether a candidate is given out again by `ask` when the process that asked for it has ended without
        a `tell`; only with a journal, SQLite or PostgreSQL. False if candidates outlive who asks for them,
        as with a queue of jobs.
    fingerprint : str
        Of the data and settings; a stored study with another fingerprint is refused.
    space : ParameterSpace or None
        Hyper-parameters that are searched together with alpha; the last dimensions of the domain are their
        coordinates. Candidates of α = 0 have the estimator's own.

    Examples
    --------
    Any training can be used; here the score is a formula.

    >>> from moew.samplers import Ball
    >>> study = WeightStudy(None, Ball(2, 3.0), n_initial=10, seed=0)
    >>> for _ in range(3):
    ...     for trial in study.ask(10):
    ...         study.tell(trial.number, -float(((trial.alpha - 1.0) ** 2).sum()))
    >>> study.n_asked, study.best().value > -0.1  # within about 0.3 of the best alpha
    (30, True)
    """

    def __init__(
        self,
        weighting: Any,
        domain: Domain,
        *,
        sampler: str | Sampler = "gp_bucb",
        greater_is_better: bool = True,
        n_initial: int = 20,
        alpha_zero_repeats: int = 1,
        storage: Storage = None,
        name: str = "moew",
        seed: int = 0,
        leases: bool = True,
        fingerprint: str = "",
        space: ParameterSpace | None = None,
    ) -> None:
        counts = {"n_initial": n_initial, "alpha_zero_repeats": alpha_zero_repeats, "seed": seed}
        for argument, count in counts.items():
            if not isinstance(count, Integral) or isinstance(count, bool) or count < 0:
                raise InvalidInputError(
                    f"{argument} must be a whole number of at least 0, got {count!r}.", argument=argument
                )
        self.weighting = weighting
        self.domain = domain
        self.space = space
        self.sampler = resolve_sampler(sampler)
        self.sampler.check_domain(domain)
        self.greater_is_better = greater_is_better
        self.n_initial = int(n_initial)  # json cannot serialise NumPy integers
        self.alpha_zero_repeats = int(alpha_zero_repeats)
        self.seed = int(seed)
        self._suggested: dict[int, FloatArray] = {}
        self._leases = bool(leases)
        self._crew: Crew | None = None
        self._store: TrialStore = MemoryTrials()
        if storage is not None:
            check_storage(storage)
            from moew.search._storage import open_trials  # loads Optuna

            settings: dict[str, Any] = {
                "fingerprint of data, model and metric": fingerprint,
                "greater_is_better": greater_is_better,
                "seed": self.seed,
                "domain": repr(domain),
                "sampler": repr(self.sampler),
                "n_initial": self.n_initial,
                "alpha_zero_repeats": self.alpha_zero_repeats,
            }
            if space is not None:
                settings["search space"] = {name: repr(d) for name, d in space.distributions.items()}
            self._store = open_trials(storage, name, greater_is_better, settings)

    def ask(self, k: int = 1) -> list[Trial]:
        """The next `k` trials; the first ones have α = 0."""
        if not isinstance(k, Integral) or isinstance(k, bool) or k < 1:
            raise InvalidInputError(
                f"ask for at least one candidate, as a whole number; got k={k!r}.", argument="k"
            )
        crew = self._entered_crew()
        trials = [] if crew is None else self._left_by_the_dead(k, crew)
        while len(trials) < k:
            records = self._store.records()
            first, n_new = len(records), k - len(trials)
            alphas = self._alphas(first, n_new, [self._trial(record) for record in records])
            if self._store.append(first, alphas, self.domain, "" if crew is None else crew.name):
                trials += self._trials_of(range(first, first + n_new))
        return trials

    def ask_until(self, end: int) -> list[Trial]:
        """Every pending trial below the number `end`, asking for those not asked for yet.

        For a search that asks when all lower numbers are told: after an interruption at any moment, and
        whichever process asks, it gets the candidates it would have got without.
        """
        while len(records := self._store.records()) < end:
            first = len(records)
            alphas = self._alphas(first, end - first, [self._trial(record) for record in records])
            self._store.append(first, alphas, self.domain)
        return [trial for trial in self._pending(records) if trial.number < end]

    def suggest(self, first: int, alphas: FloatArray) -> None:
        """Let the numbers from `first` on have these alphas (k, d), if they are not asked for yet; those of
        the sampler move behind them. Like every alpha they must depend on lower numbers alone."""
        self._suggested.update({first + k: point for k, point in enumerate(self.domain.project(alphas))})

    def tell(self, number: int, value: float | None = None, *, error: str | None = None) -> None:
        """Record the metric of a candidate, or the error why it has none. A non-finite value is a failure.

        Of an error of more than 4,000 characters the beginning and the end are kept.
        """
        if (value is None) == (error is None):
            raise InvalidInputError(
                f"tell candidate {number} either a value or an error, not both or neither.", argument="value"
            )
        record = self._record(number)
        if record.finished or self._store.finish([_told(number, value, error)]):
            raise InvalidInputError(
                f"candidate {number} was already told {record.value}; tell it once.", argument="number"
            )

    def tell_all(self, told: Sequence[Told], *, joined: bool = False) -> list[int]:
        """Record several candidates at once, with what is to be kept with them. In a search that others have
        `joined`, those that another process has told in the meantime stay as they are, and are returned."""
        checked = [_told(t.number, t.value, t.error, t.content) for t in told]
        told_by_others: list[int] = []
        while checked and (ended := self._store.finish(checked)):
            if not joined:
                raise self.refuse(f"candidate {ended[0]} was told by another process at the same time")
            told_by_others += ended
            checked = [one for one in checked if one.number not in ended]
        return told_by_others

    def next_alphas(self, k: int) -> FloatArray:
        """The alphas (k, d) that the next k numbers would get, with a space the whole points; nothing is
        recorded."""
        return self._alphas(self.n_asked, k, self.trials())

    def ask_with(self, alphas: FloatArray) -> list[Trial]:
        """The next trials, with given alphas (k, d), or with a space whole points."""
        given = np.asarray(alphas, dtype=np.float64)
        if given.ndim != 2 or given.shape[1] != self.domain.n_dims or not np.isfinite(given).all():
            raise InvalidInputError(
                f"alphas must be finite numbers of shape (k, {self.domain.n_dims}), got shape {given.shape}.",
                argument="alphas",
            )
        while True:
            first = self.n_asked
            if self._store.append(first, given, self.domain):
                return self._trials_of(range(first, first + len(given)))

    def outlook(self) -> Outlook | None:
        """What the sampler's model promises of alphas that were not tried, in units of the told values; None
        if too little was told, or if the sampler has no model.

        A pure function of the told values: training can stop where `outlook().gain` is small.
        """
        if not isinstance(self.sampler, SamplerWithModel):
            return None
        done = [trial for trial in self.trials() if not trial.pending]
        return self.sampler.outlook(
            *self._known(done), domain=self.domain, rng=generator(self.seed, "outlook", len(done))
        )

    def trials(self) -> list[Trial]:
        """All trials, in the order of their numbers."""
        return [self._trial(record) for record in self._store.records()]

    def pending(self) -> list[Trial]:
        """Trials asked for and not yet told."""
        return self._pending(self._store.records())

    def _pending(self, records: Sequence[TrialRecord]) -> list[Trial]:
        return [self._trial(record) for record in records if not record.finished]

    def best(self) -> Trial:
        """The trial with the best value; among equals the one with the lowest number."""
        done = [trial for trial in self.trials() if math.isfinite(trial.value)]
        if not done:
            raise SearchFailedError("no candidate has a value yet: tell at least one.")
        sign = self._sign
        return max(done, key=lambda trial: (sign * trial.value, -trial.number))

    @property
    def n_asked(self) -> int:
        """How many candidates were asked for so far, by all processes."""
        return len(self._store.records())

    @property
    def optuna_study(self) -> Any:
        """The Optuna study behind this one, for dashboards; only with a storage."""
        if self._store.optuna_study is None:
            raise InvalidInputError(
                "the study is in memory; pass a storage to have an Optuna study.", argument="storage"
            )
        return self._store.optuna_study

    @property
    def keeps_predictions(self) -> bool:
        """Whether contents that are told are kept: with a storage."""
        return self._store.keeps_predictions

    def kept(self, numbers: Sequence[int] | None = None) -> dict[int, bytes]:
        """The contents that candidates were told with, by number: of these numbers, or of all."""
        return self._store.kept(numbers)

    def refuse(self, what: str) -> InvalidInputError:
        """The error for stored records that cannot be used; it names the storage and what to do."""
        return self._store.refuse(what)

    def close(self) -> None:
        """Release connections to a database, which are opened again when needed, and let others have the
        candidates that were asked for here and not told."""
        if self._crew is not None:
            self._crew.leave()
            self._crew = None
        self._store.close()

    def weights(
        self, trial: Trial, X: Rows, y: Labels, *, metadata: Mapping[str, Any] | None = None
    ) -> FloatArray:
        """The candidate's weights (n,) for any rows, eq. 3, with the training rows' constant c.

        `metadata` are columns for an embedding that takes them, as in `ExampleWeightSearch.example_weights`.
        """
        function = self._fitted_weighting.weight_function(trial.alpha)
        weights: FloatArray = function(X, y) if metadata is None else function(X, y, metadata)
        return weights

    def weight_function(self, trial: Trial) -> Any:
        """The candidate's weights as a function of any rows; None if they are not one, as random weights."""
        make = getattr(self._fitted_weighting, "weight_function", None)
        return None if make is None else make(trial.alpha)

    def training_weights(self, trial: Trial) -> FloatArray:
        """The candidate's weights (n,) of the training rows, as `ExampleWeightSearch` trains with them."""
        weights: FloatArray = self._fitted_weighting.training_weights(trial.alpha[None])[0]
        return weights

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_crew": None}  # another process is another member of the crew

    @property
    def _fitted_weighting(self) -> Any:
        if self.weighting is None:
            raise InvalidInputError(
                "this study was made without a weighting; pass a fitted one.", argument="weighting"
            )
        return self.weighting

    @property
    def _sign(self) -> float:
        return 1.0 if self.greater_is_better else -1.0

    def _record(self, number: int) -> TrialRecord:
        records = self._store.records()
        if not isinstance(number, Integral) or not 0 <= number < len(records):
            raise InvalidInputError(
                f"there is no candidate {number!r}; {len(records)} were asked for.", argument="number"
            )
        return records[number]

    def _trial(self, record: TrialRecord) -> Trial:
        point = record.alpha
        if point.shape != (self.domain.n_dims,):
            raise self.refuse(
                f"the stored alpha of candidate {record.number} has the shape {point.shape}, not "
                f"({self.domain.n_dims},)"
            )
        seed = integer_seed(self.seed, "model", record.number)
        trial = Trial(record.number, point, seed, record.value, record.error, not record.finished)
        if self.space is None:
            return trial
        alpha, coordinates = np.split(point, [len(point) - self.space.n_dims])
        is_own = record.number < self.alpha_zero_repeats  # they may lie outside the space
        parameters = dict(self.space.own) if is_own else self.space.values(coordinates)
        return replace(trial, alpha=alpha, parameters=parameters, coordinates=coordinates)

    def _trials_of(self, numbers: Iterable[int]) -> list[Trial]:
        records = self._store.records()
        return [self._trial(records[n]) for n in numbers]

    def crew(self, *, joins: bool) -> Crew:
        """The processes on this study, of which this one works together with others or must be alone."""
        return Crew(self._store, joins)

    def claim(self, numbers: Sequence[int], crew: Crew, most: int) -> list[int]:
        """Those of the numbers, at most so many, that this process of the crew is to train."""
        if not numbers:
            return []
        return self._store.claim(numbers, crew.name, crew.store, crew.dead(), most)

    def tidy(self) -> None:
        """Remove files that processes which died have left; for a study of which all candidates are told."""
        self._store.tidy()

    def _entered_crew(self) -> Crew | None:
        """The processes that ask this study, if candidates have leases: this one belongs to them from its
        first question on."""
        if not self._leases or not self._store.can_be_shared:
            return None
        if self._crew is None or not self._crew.is_of_this_process:
            self._crew = Crew(self._store, joins=True)
            self._crew.enter()
            weakref.finalize(self, self._crew.leave)
        return self._crew

    def _left_by_the_dead(self, k: int, crew: Crew) -> list[Trial]:
        """Up to k trials that processes asked for which have ended."""
        alive = crew.alive()
        held = [record for record in self._store.records() if not record.finished and record.worker]
        left = [record.number for record in held if record.worker not in alive]
        return self._trials_of(self.claim(left, crew, k)) if left else []

    def _alphas(self, first: int, k: int, known: list[Trial]) -> FloatArray:
        """Points (k, d) of the numbers first … first + k − 1, given the lower numbers."""
        points = [self._point_without_sampler(number) for number in range(first, first + k)]
        ahead = [point[None] for point in points if point is not None]
        if len(ahead) < k:
            behind = first + next(k for k, point in enumerate(points) if point is None)
            proposed = iter(self._propose(behind, k - len(ahead), known, ahead))
            points = [next(proposed) if point is None else point for point in points]
        return np.stack([point for point in points if point is not None])

    def _point_without_sampler(self, number: int) -> FloatArray | None:
        """The point (d,) of a number whose alpha is 0, suggested or random; None: the sampler proposes it."""
        if number < self.alpha_zero_repeats:
            return self._origin
        if number in self._suggested:
            return self._suggested[number]
        if number < self.alpha_zero_repeats + self.n_initial:
            return np.asarray(self.domain.sample(generator(self.seed, "alpha", number), 1)[0])
        return None

    @property
    def _origin(self) -> FloatArray:
        """α = 0, with the estimator's own parameters."""
        origin = np.zeros(self.domain.n_dims)
        if self.space is not None:
            origin[-self.space.n_dims :] = self.space.start
        return origin

    def _propose(self, first: int, k: int, known: list[Trial], ahead: list[FloatArray]) -> FloatArray:
        none = np.empty((0, self.domain.n_dims))
        out = [trial.point[None] for trial in known if trial.pending] + ahead
        proposed = self.sampler.propose(
            *self._known([trial for trial in known if not trial.pending]),
            pending=np.concatenate([none, *out]),
            k=k,
            domain=self.domain,
            rng=generator(self.seed, "alpha", first),
        )
        points = np.asarray(proposed, dtype=np.float64)
        if points.shape != (k, self.domain.n_dims) or not np.isfinite(points).all():
            raise InvalidInputError(
                f"the sampler {self.sampler!r} must propose finite numbers of shape ({k}, "
                f"{self.domain.n_dims}), got shape {points.shape}.",
                argument="sampler",
            )
        inside = np.asarray(self.domain.project(points))
        return points if np.allclose(inside, points, rtol=1e-9, atol=1e-9 * self.domain.size) else inside

    def _known(self, done: list[Trial]) -> tuple[FloatArray, FloatArray]:
        """The points (n, d) of finished trials and their scores (n,), of which higher ones are better."""
        none = np.empty((0, self.domain.n_dims))
        points = np.concatenate([none, *(trial.point[None] for trial in done)])
        return points, self._sign * np.array([trial.value for trial in done], dtype=np.float64)


def _told(number: int, value: Any, error: str | None, content: bytes | None = None) -> Told:
    """The end of a trial, whose value must be one number; one that is not finite is an error."""
    if value is None:
        return Told(number, error=shortened(str(error)))
    try:
        if isinstance(value, str | bytes) or np.iscomplexobj(value):
            raise TypeError(f"{type(value).__name__} is no number")
        values = np.asarray(value, dtype=np.float64).reshape(-1).tolist()
    except (TypeError, ValueError, OverflowError) as wrong:
        raise InvalidInputError(
            f"candidate {number} needs a real number as its value, got {value!r}.", argument="value"
        ) from wrong
    if len(values) != 1:
        raise InvalidInputError(
            f"candidate {number} needs one value, got {len(values)}: {value!r}.", argument="value"
        )
    if math.isfinite(values[0]):
        return Told(number, values[0], content=content)
    return Told(number, error=f"the metric is {values[0]}, not a finite number")
