"""The study: ask for candidates, train them anywhere, tell their values.

Candidates have numbers, and alphas in the order of the numbers, whichever process asks: an alpha depends only
on lower numbers and their values, where those still in training count as pretended observations (Algorithm
2), and every random choice derives from (seed, purpose, number). So results do not depend on how many models
are trained at a time or on an interruption.

A study is a plain object in memory. With a storage, a database has the same records, which outlive the
process and which several processes share; see `moew.storage`.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from moew._printable import shortened
from moew._util.checks import at_least
from moew._util.numbers import is_whole
from moew._util.seeds import generator, integer_seed
from moew.exceptions import InvalidInputError, SearchFailedError
from moew.samplers import resolve_sampler
from moew.storage import Crew, Storage, Store, TrialRecord, open_store
from moew.storage import Told as Told
from moew.types import Domain, Features, FloatArray, Labels, Outlook, Sampler, SamplerWithModel
from moew.weighting import TrainingRowsOnly

if TYPE_CHECKING:
    from moew.search._optuna import ParameterSpace


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


class WeightStudy:
    """Ask for alphas, train with their weights wherever you like, tell the metric.

    Parameters
    ----------
    weighting : fitted ExampleWeighting, or None
        Gives the weights for an alpha; only `weights` and `training_weights` need it.
    domain : Ball, Box or BallAndBox, in which alphas are searched
    sampler : "gp_bucb", "random" or Sampler, which proposes the next alphas
    greater_is_better : bool, the direction of the told values
    n_initial : int
        How many candidates after those of α = 0 are random: the paper's first batch of K.
    alpha_zero_repeats : int
        How many of the first candidates have α = 0; two or more show the metric's noise.
    storage : None, a path or a URL
        None is memory; a path, or a URL such as "sqlite:///run.db", is a file of SQLite; a URL such as
        "postgresql://user@host/name" is a database of PostgreSQL.
    name : str, of the study in the storage; an existing one of that name is continued
    seed : int
    leases : bool
        Whether, with a storage, `ask` gives a candidate out again when the process that asked for it has
        ended without a `tell`. False if candidates outlive who asks for them, as with a queue of jobs.
    fingerprint : str, of the data and settings; a stored study with another one is refused
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

    def __init__(  # noqa: PLR0913 (the public face)
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
            at_least(0).check(argument, count)
        self.weighting = weighting
        self.domain = domain
        self.space = space
        self.sampler = resolve_sampler(sampler)
        self.sampler.check_domain(domain)
        self.greater_is_better = greater_is_better
        self._sign = 1.0 if greater_is_better else -1.0
        self.n_initial = int(n_initial)  # json cannot serialise NumPy integers
        self.alpha_zero_repeats = int(alpha_zero_repeats)
        self.seed = int(seed)
        self._suggested: dict[int, FloatArray] = {}
        self._leases = bool(leases)
        self._crew: Crew | None = None
        self.name = name
        self.store = Store()
        if storage is not None:
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
            self.store = open_store(storage, name, settings)

    def ask(self, k: int = 1) -> list[Trial]:
        """The next `k` trials; the first ones have α = 0."""
        if not is_whole(k, 1):
            raise InvalidInputError(
                f"ask for at least one candidate, as a whole number; got k={k!r}.", argument="k"
            )
        crew = self._entered_crew()
        trials = [] if crew is None else self._left_by_the_dead(k, crew)
        while len(trials) < k:
            records = self._records()
            first, n_new = len(records), k - len(trials)
            if self.store.append(first, self._alphas(records, n_new), "" if crew is None else crew.name):
                trials += self._trials_of(range(first, first + n_new))
        return trials

    def ask_until(self, end: int) -> list[Trial]:
        """Every pending trial below the number `end`, asking for those not asked for yet.

        For a search that asks when all lower numbers are told: after an interruption at any moment, and
        whichever process asks, it gets the candidates it would have got without.
        """
        while len(records := self._records()) < end:
            self.store.append(len(records), self._alphas(records, end - len(records)))
        return [self._trial(record) for record in records[:end] if not record.finished]

    def suggest(self, first: int, alphas: FloatArray) -> None:
        """Let the numbers from `first` on have these alphas (k, d), if they are not asked for yet; those of
        the sampler, and those suggested before, move behind them. Like every alpha they must depend on lower
        numbers alone. What is suggested again stays where it is."""
        new = {first + k: point for k, point in enumerate(self.domain.project(alphas))}
        if all(np.array_equal(self._suggested.get(number, ()), point) for number, point in new.items()):
            return
        moved = {number + len(new) * (number >= first): point for number, point in self._suggested.items()}
        self._suggested = {**moved, **new}

    def tell(self, number: int, value: float | None = None, *, error: str | None = None) -> None:
        """Record the metric of a candidate, or the error why it has none. A non-finite value is a failure.

        Of an error of more than 4,000 characters the beginning and the end are kept.
        """
        if (value is None) == (error is None):
            raise InvalidInputError(
                f"tell candidate {number} either a value or an error, not both or neither.", argument="value"
            )
        records = self._records()
        if not isinstance(number, Integral) or not 0 <= number < len(records):
            raise InvalidInputError(
                f"there is no candidate {number!r}; {len(records)} were asked for.", argument="number"
            )
        record = records[number]
        if record.finished or self.store.finish([_told(number, value, error)]):
            raise InvalidInputError(
                f"candidate {number} was already told {record.value}; tell it once.", argument="number"
            )

    def tell_all(self, told: Sequence[Told], *, joined: bool = False) -> list[int]:
        """Record several candidates at once, with what is to be kept with them. In a search that others have
        `joined`, those that another process has told in the meantime stay as they are, and are returned."""
        checked = [_told(t.number, t.value, t.error, t.content) for t in told]
        told_by_others: list[int] = []
        while checked and (ended := self.store.finish(checked)):
            if not joined:
                raise self.store.refuse(f"candidate {ended[0]} was told by another process at the same time")
            told_by_others += ended
            checked = [one for one in checked if one.number not in ended]
        return told_by_others

    def next_alphas(self, k: int) -> FloatArray:
        """The alphas (k, d) that the next k numbers would get, with a space the whole points; nothing is
        recorded."""
        return self._alphas(self._records(), k)

    def ask_with(self, alphas: FloatArray) -> list[Trial]:
        """The next trials, with given alphas (k, d), or with a space whole points."""
        given = np.asarray(alphas, dtype=np.float64)
        if given.ndim != 2 or given.shape[1] != self.domain.n_dims or not np.isfinite(given).all():
            raise InvalidInputError(
                f"alphas must be finite numbers of shape (k, {self.domain.n_dims}), got shape {given.shape}.",
                argument="alphas",
            )
        while not self.store.append(first := self.n_asked, given):
            continue  # another process was faster
        return self._trials_of(range(first, first + len(given)))

    def outlook(self) -> Outlook | None:
        """What the sampler's model promises of alphas that were not tried, in units of the told values; None
        if too little was told, or if the sampler has no model.

        A pure function of the told values: training can stop where `outlook().gain` is small.
        """
        if not isinstance(self.sampler, SamplerWithModel):
            return None
        done = [record for record in self._records() if record.finished]
        return self.sampler.outlook(
            *self._known(done), domain=self.domain, rng=generator(self.seed, "outlook", len(done))
        )

    def trials(self) -> list[Trial]:
        """All trials, in the order of their numbers."""
        return [self._trial(record) for record in self._records()]

    def pending(self) -> list[Trial]:
        """Trials asked for and not yet told."""
        return [trial for trial in self.trials() if trial.pending]

    def best(self) -> Trial:
        """The trial with the best value; among equals the one with the lowest number."""
        done = [trial for trial in self.trials() if math.isfinite(trial.value)]
        if not done:
            raise SearchFailedError("no candidate has a value yet: tell at least one.")
        return max(done, key=lambda trial: (self._sign * trial.value, -trial.number))

    @property
    def n_asked(self) -> int:
        """How many candidates were asked for so far, by all processes."""
        return len(self.store.records())

    def to_optuna(self, storage: Any = None) -> Any:
        """An Optuna study of the candidates so far, for dashboards: in memory, or in a storage of Optuna's
        such as "sqlite:///shown.db", which must not have one of this study's name. Needs Optuna."""
        from moew.search._optuna import to_optuna

        return to_optuna(self, storage)

    def close(self) -> None:
        """Let others have the candidates that were asked for here and not told."""
        if self._crew is not None:
            self._crew.leave()
            self._crew = None

    def weights(
        self, trial: Trial, X: Features, y: Labels, *, columns: Mapping[str, Any] | None = None
    ) -> FloatArray:
        """The candidate's weights (n,) for any rows, eq. 3, with the training rows' constant c.

        `columns` are columns for an embedding that takes them, as in `MetricSearch.example_weights`.
        """
        function = self._fitted_weighting.weight_function(trial.alpha)
        weights: FloatArray = function(X, y) if columns is None else function(X, y, columns)
        return weights

    def weight_function(self, trial: Trial) -> Any:
        """The candidate's weights as a function of any rows; one that raises if only training rows have
        weights, as random ones."""
        make = getattr(self._fitted_weighting, "weight_function", None)
        return TrainingRowsOnly() if make is None else make(trial.alpha)

    def training_weights(self, trial: Trial) -> FloatArray:
        """The candidate's weights (n,) of the training rows, as `MetricSearch` trains with them."""
        weights: FloatArray = self._fitted_weighting.training_weights(trial.alpha[None])[0]
        return weights

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_crew": None}  # another process is another member of the crew

    @property
    def _fitted_weighting(self) -> Any:
        if self.weighting is None:
            why = "this study was made without a weighting; pass a fitted one."
            raise InvalidInputError(why, argument="weighting")
        return self.weighting

    def _records(self) -> Sequence[TrialRecord]:
        """What the store holds now, whose points (d,) must be of the domain; other threads may go on."""
        records, shape = list(self.store.records()), (self.domain.n_dims,)
        for record in records:
            if record.point.shape != shape:
                raise self.store.refuse(
                    f"the stored alpha of candidate {record.number} has the shape {record.point.shape}, not "
                    f"{shape}"
                )
        return records

    def _trial(self, record: TrialRecord) -> Trial:
        point, seed = record.point, integer_seed(self.seed, "model", record.number)
        trial = Trial(record.number, point, seed, record.value, record.error, not record.finished)
        if self.space is None:
            return trial
        alpha, coordinates = np.split(point, [len(point) - self.space.n_dims])
        is_own = record.number < self.alpha_zero_repeats  # they may lie outside the space
        parameters = dict(self.space.own) if is_own else self.space.values(coordinates)
        return replace(trial, alpha=alpha, parameters=parameters, coordinates=coordinates)

    def _trials_of(self, numbers: Iterable[int]) -> list[Trial]:
        records = self._records()
        return [self._trial(records[n]) for n in numbers]

    def crew(self, *, joins: bool) -> Crew:
        """The processes on this study, of which this one works together with others or must be alone."""
        return Crew(self.store, joins)

    def claim(self, numbers: Sequence[int], crew: Crew, most: int) -> list[int]:
        """Those of the numbers, at most so many, that this process of the crew is to train."""
        if not numbers:
            return []
        return self.store.claim(numbers, crew.name, crew.store, crew.dead(), most)

    def _entered_crew(self) -> Crew | None:
        """The processes that ask this study, if candidates have leases: this one belongs to them from its
        first question on."""
        if not self._leases or not self.store.is_stored:
            return None
        if self._crew is None or not self._crew.is_of_this_process:
            self._crew = Crew(self.store, joins=True)
            self._crew.enter()
            weakref.finalize(self, self._crew.leave)
        return self._crew

    def _left_by_the_dead(self, k: int, crew: Crew) -> list[Trial]:
        """Up to k trials that processes asked for which have ended."""
        alive = crew.alive()
        held = [record for record in self._records() if not record.finished and record.worker]
        left = [record.number for record in held if record.worker not in alive]
        return self._trials_of(self.claim(left, crew, k)) if left else []

    def _alphas(self, records: Sequence[TrialRecord], k: int) -> FloatArray:
        """The points (k, d) of the next k numbers, given the records of all lower ones."""
        first = len(records)
        points = [self._point_without_sampler(number) for number in range(first, first + k)]
        ahead = [point[None] for point in points if point is not None]
        if len(ahead) < k:
            behind = first + next(k for k, point in enumerate(points) if point is None)
            proposed = iter(self._propose(behind, k - len(ahead), records, ahead))
            points = [next(proposed) if point is None else point for point in points]
        return np.stack([point for point in points if point is not None])

    def _point_without_sampler(self, number: int) -> FloatArray | None:
        """The point (d,) of a number whose alpha is 0, suggested or random; None: the sampler proposes it."""
        if number < self.alpha_zero_repeats:
            origin = np.zeros(self.domain.n_dims)
            if self.space is not None:
                origin[-self.space.n_dims :] = self.space.start  # the estimator's own parameters
            return origin
        if number in self._suggested:
            return self._suggested[number]
        if number < self.alpha_zero_repeats + self.n_initial:
            return np.asarray(self.domain.sample(generator(self.seed, "alpha", number), 1)[0])
        return None

    def _propose(
        self, first: int, k: int, records: Sequence[TrialRecord], ahead: list[FloatArray]
    ) -> FloatArray:
        none = np.empty((0, self.domain.n_dims))
        out = [record.point[None] for record in records if not record.finished] + ahead
        proposed = self.sampler.propose(
            *self._known([record for record in records if record.finished]),
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

    def _known(self, done: Sequence[TrialRecord]) -> tuple[FloatArray, FloatArray]:
        """The points (n, d) of finished candidates and their scores (n,), of which higher ones are better."""
        none = np.empty((0, self.domain.n_dims))
        points = np.concatenate([none, *(record.point[None] for record in done)])
        return points, self._sign * np.array([record.value for record in done], dtype=np.float64)


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
        return Told(number, values[0] + 0.0, content=content)  # SQLite has no -0.0
    return Told(number, error=f"the metric is {values[0]}, not a finite number")
