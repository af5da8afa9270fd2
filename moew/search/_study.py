"""The study: ask for candidates, train them anywhere, tell their values.

A candidate gets its number first and its alpha second, in the order of the numbers, whichever process asks:
before a number gets its alpha, every lower number has one, and those still in training count as pretended
observations (Algorithm 2). An alpha depends only on lower numbers and their values, and every random choice
derives from (seed, purpose, number). So results do not depend on how many models are trained at a time or on
an interruption.

A study is a plain object in memory. With a storage, Optuna keeps the same records in files and databases, for
several processes and dashboards; see `_storage`.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from moew._util.seeds import generator, integer_seed
from moew._util.state import State
from moew.exceptions import Argument, InPython, InvalidInputError, SearchFailedError
from moew.samplers import resolve_sampler
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
    """What a store holds for one number; `alpha` is None until the number gets its alpha. With a space, it is
    the whole point: alpha and the coordinates of the parameters."""

    number: int
    alpha: FloatArray | None
    value: float = math.nan
    error: str | None = None
    finished: bool = False


class TrialStore(Protocol):
    """Stores a study's records: in memory, or through Optuna."""

    patience: float  # seconds to wait for a lower number's alpha before its process counts as dead
    keeps_predictions: bool
    optuna_study: Any  # None in memory

    def asking(self) -> contextlib.AbstractContextManager[Any]:
        """Context in which a process draws numbers and writes their alphas."""

    def draw_numbers(self, k: int) -> list[int]:
        """Draw the next k numbers, which no other process gets."""

    def records(self) -> Sequence[TrialRecord]:
        """The records of all numbers so far, in order."""

    def written_alphas(self, first: int, k: int) -> FloatArray | None:
        """Alphas (k, d) that an interrupted process wrote for the k numbers from `first` on, None if there
        are none."""

    def write_alphas(self, first: int, alphas: FloatArray, domain: Domain) -> None:
        """Write the alphas (k, d) of the k numbers from `first` on, all or none of them."""

    def finish(self, number: int, value: float | None, error: str | None) -> None:
        """End a trial with a finite value, or with the error that prevented one."""

    def keep(self, number: int, content: State) -> None:
        """Keep a JSON-able dict with a trial."""

    def kept(self) -> dict[int, State]:
        """What was kept with `keep`, by number."""

    def close(self) -> None:
        """Release connections; they are opened again when needed."""


@dataclass
class MemoryTrials:
    """A `TrialStore` in memory."""

    patience: float = 0.0
    keeps_predictions: bool = False
    optuna_study: None = None
    _records: list[TrialRecord] = field(default_factory=list)
    _lock: Any = field(default_factory=threading.RLock)

    def asking(self) -> contextlib.AbstractContextManager[Any]:
        lock: contextlib.AbstractContextManager[Any] = self._lock
        return lock

    def draw_numbers(self, k: int) -> list[int]:
        return list(range(len(self._records), len(self._records) + k))

    def records(self) -> Sequence[TrialRecord]:
        return self._records

    def written_alphas(self, first: int, k: int) -> FloatArray | None:
        return None

    def write_alphas(self, first: int, alphas: FloatArray, domain: Domain) -> None:
        self._records += [TrialRecord(first + i, alpha) for i, alpha in enumerate(alphas)]

    def finish(self, number: int, value: float | None, error: str | None) -> None:
        ended = math.nan if value is None else value
        self._records[number] = replace(self._records[number], value=ended, error=error, finished=True)

    def keep(self, number: int, content: State) -> None:
        """Does nothing: the owner of a study in memory has the content."""

    def kept(self) -> dict[int, State]:
        return {}

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
        fingerprint: str = "",
        space: ParameterSpace | None = None,
    ) -> None:
        if n_initial < 0:
            raise InvalidInputError(f"n_initial must be at least 0, got {n_initial}.", argument="n_initial")
        if alpha_zero_repeats < 0:
            raise InvalidInputError(
                f"alpha_zero_repeats must be at least 0, got {alpha_zero_repeats}.",
                argument="alpha_zero_repeats",
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
        self._store: TrialStore = MemoryTrials()
        if storage is not None:
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
        if k < 1:
            raise InvalidInputError(f"ask for at least one candidate, got k={k}.", argument="k")
        with self._store.asking():
            return self._fill(self._store.draw_numbers(k))

    def ask_until(self, end: int) -> list[Trial]:
        """Every pending trial below the number `end`, asking for those not asked for yet.

        For a study with a single owner: after an interruption at any moment, it gets the candidates it would
        have got without it. Other processes on the same study would train the same candidates again.
        """
        with self._store.asking():
            asked = self._store.records()[:end]  # later ones get their alphas with a later batch
            without = [record.number for record in asked if record.alpha is None and not record.finished]
            self._fill(without + self._store.draw_numbers(max(0, end - self.n_asked)))
        return [trial for trial in self.pending() if trial.number < end]

    def suggest(self, first: int, alphas: FloatArray) -> None:
        """Let the numbers from `first` on have these alphas (k, d), if they are not asked for yet; those of
        the sampler move behind them. Like every alpha they must depend on lower numbers alone."""
        self._suggested.update({first + k: point for k, point in enumerate(self.domain.project(alphas))})

    def tell(self, number: int, value: float | None = None, *, error: str | None = None) -> None:
        """Record the metric of a candidate, or the error why it has none. A non-finite value is a failure."""
        if (value is None) == (error is None):
            raise InvalidInputError(
                f"tell candidate {number} either a value or an error, not both or neither.", argument="value"
            )
        record = self._record(number)
        if record.finished:
            raise InvalidInputError(
                f"candidate {number} was already told {record.value}; tell it once.", argument="number"
            )
        if value is None:
            self._store.finish(number, None, error)
            return
        values = np.asarray(value, dtype=np.float64).reshape(-1).tolist()
        if len(values) != 1:
            raise InvalidInputError(
                f"candidate {number} needs one value, got {len(values)}: {value!r}.", argument="value"
            )
        if math.isfinite(values[0]):
            self._store.finish(number, values[0], None)
        else:
            self._store.finish(number, None, f"the metric is {values[0]}, not a finite number")

    def next_alphas(self, k: int) -> FloatArray:
        """The alphas (k, d) that the next k numbers would get, with a space the whole points; nothing is
        recorded."""
        return self._alphas(self.n_asked, k, self.trials())

    def ask_with(self, alphas: FloatArray) -> list[Trial]:
        """The next trials, with given alphas (k, d), or with a space whole points."""
        given = np.asarray(alphas, dtype=np.float64)
        with self._store.asking():
            numbers = self._store.draw_numbers(len(given))
            alpha_of = dict(zip(numbers, given, strict=True))
            for run in _consecutive(numbers):
                self._store.write_alphas(run[0], np.stack([alpha_of[n] for n in run]), self.domain)
        return self._trials_of(numbers)

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
        """All trials that have an alpha, in the order of their numbers."""
        return [self._trial(r, r.alpha) for r in self._store.records() if r.alpha is not None]

    def pending(self) -> list[Trial]:
        """Trials asked for and not yet told."""
        records = self._store.records()
        return [self._trial(r, r.alpha) for r in records if r.alpha is not None and not r.finished]

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

    def keep(self, number: int, content: Callable[[], State]) -> None:
        """Store a JSON-able dict with a candidate that is not yet told; does nothing in memory."""
        if not self._store.keeps_predictions:
            return
        if self._record(number).finished:
            raise InvalidInputError(
                f"candidate {number} was told by another process: only one fit at a time may use a study. "
                "Use another ",
                InPython("study_name or "),
                Argument("storage"),
                InPython(", or share the study through WeightStudy"),
                ".",
                argument="storage",
            )
        self._store.keep(number, content())

    def kept(self) -> dict[int, State]:
        """What `keep` stored, by candidate number."""
        return self._store.kept()

    def close(self) -> None:
        """Release connections to a database; they are opened again when needed."""
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
        if not 0 <= number < len(records):
            raise InvalidInputError(
                f"there is no candidate {number}; {len(records)} were asked for.", argument="number"
            )
        return records[number]

    def _trial(self, record: TrialRecord, point: FloatArray) -> Trial:
        seed = integer_seed(self.seed, "model", record.number)
        trial = Trial(record.number, point, seed, record.value, record.error, not record.finished)
        if self.space is None:
            return trial
        alpha, coordinates = np.split(point, [len(point) - self.space.n_dims])
        is_own = record.number < self.alpha_zero_repeats  # they may lie outside the space
        parameters = dict(self.space.own) if is_own else self.space.values(coordinates)
        return replace(trial, alpha=alpha, parameters=parameters, coordinates=coordinates)

    def _fill(self, numbers: list[int]) -> list[Trial]:
        """Give these numbers alphas, a run of consecutive ones at a time, once every lower number has one."""
        for run in _consecutive(numbers):
            known = self._wait_for_lower_numbers(run[0])
            alphas = self._store.written_alphas(run[0], len(run))
            if alphas is None:
                alphas = self._alphas(run[0], len(run), known)
            self._store.write_alphas(run[0], alphas, self.domain)
        return self._trials_of(numbers)

    def _trials_of(self, numbers: list[int]) -> list[Trial]:
        records = self._store.records()
        return [self._trial(records[n], np.asarray(records[n].alpha)) for n in numbers]

    def _wait_for_lower_numbers(self, first: int) -> list[Trial]:
        """All trials with lower numbers. A number that gets no alpha in time is a failure."""
        deadline = time.monotonic() + self._store.patience
        while True:
            lower = self._store.records()[:first]
            waiting = [record for record in lower if record.alpha is None and not record.finished]
            if not waiting:
                return [self._trial(record, record.alpha) for record in lower if record.alpha is not None]
            if time.monotonic() > deadline:
                reason = f"asked for, but got no alpha within {self._store.patience:.0f} s"
                for record in waiting:
                    self._store.finish(record.number, None, reason)
            time.sleep(0.01)

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
        return self.sampler.propose(
            *self._known([trial for trial in known if not trial.pending]),
            pending=np.concatenate([none, *out]),
            k=k,
            domain=self.domain,
            rng=generator(self.seed, "alpha", first),
        )

    def _known(self, done: list[Trial]) -> tuple[FloatArray, FloatArray]:
        """The points (n, d) of finished trials and their scores (n,), of which higher ones are better."""
        none = np.empty((0, self.domain.n_dims))
        points = np.concatenate([none, *(trial.point[None] for trial in done)])
        return points, self._sign * np.array([trial.value for trial in done], dtype=np.float64)


def _consecutive(numbers: list[int]) -> Iterator[list[int]]:
    """Split into runs of consecutive numbers: other processes may hold the numbers in between."""
    breaks = [i for i, (a, b) in enumerate(pairwise(numbers), 1) if b != a + 1]
    for start, stop in pairwise([0, *breaks, len(numbers)]):
        if start < stop:
            yield numbers[start:stop]
