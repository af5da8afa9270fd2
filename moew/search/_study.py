"""Candidates are asked for, trained anywhere, and told: trials of an Optuna study.

A trial is one candidate alpha. Its number is drawn first and its alpha second, in the order of the
numbers, whoever asks: a process waits until every lower number has its alpha, and takes those that are
still out for training as pretended observations (Algorithm 2). So several processes on one storage never
propose blindly beside each other, and what a number gets depends on numbers and values alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from optuna.distributions import FloatDistribution
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, Trial, TrialState

from moew._util.seeds import generator, integer_seed
from moew._util.state import State
from moew.exceptions import InvalidInputError, SearchFailedError
from moew.samplers import resolve_sampler
from moew.search._storage import Storage, open_study
from moew.types import Domain, FloatArray, Labels, Rows, Sampler

_ALPHA = "alpha"  # trial attribute: the whole alpha in one write, so that nobody sees half of it
_RUN = "run"  # trial attribute: the alphas of this and the next numbers, in one write
_KEPT = "kept"  # trial attribute: what the candidate's owner wants to find again
_ERROR = "error"  # trial attribute: why a candidate failed
_PATIENCE = 60.0  # seconds to wait for the alpha of a lower number before its process counts as dead


@dataclass(frozen=True)
class Candidate:
    """One alpha to train: `seed` derives from the study's seed and the number, nothing else."""

    number: int
    alpha: FloatArray
    seed: int
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Told:
    """What is known of one candidate: a value, or the reason there is none, or neither yet."""

    candidate: Candidate
    value: float = math.nan
    error: str | None = None
    pending: bool = False


class WeightStudy:
    """Ask for alphas, train with their weights wherever you like, tell the metric.

    Parameters
    ----------
    weighting : fitted ExampleWeighting, or None
        Makes weights of an alpha; only `weights` needs it.
    domain : Ball or Box
        Where alpha lives.
    sampler : "gp_bucb", "random", "cover" or an object with `propose`
    greater_is_better : bool
        Direction of the told values.
    n_initial : int
        How many candidates after those of α = 0 are random: the paper's first batch of K.
    alpha_zero_repeats : int
        The first numbers, whose alpha is 0: the unweighted model, repeated to learn the metric's noise.
    storage : None, a path, a URL or an Optuna storage
        None is memory; a path is a journal file; a URL such as "sqlite:///run.db" a database.
    name : str
        The study's name in the storage; an existing study of that name is continued.
    seed : int
    fingerprint : str
        Of data and settings that a stored study must have been made with; another one is refused.

    Examples
    --------
    Any training will do; here its score is a formula.

    >>> from moew.samplers import Ball
    >>> study = WeightStudy(None, Ball(2, 3.0), n_initial=10, seed=0)
    >>> for _ in range(3):
    ...     for candidate in study.ask(10):
    ...         study.tell(candidate.number, -float(((candidate.alpha - 1.0) ** 2).sum()))
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
    ) -> None:
        if n_initial < 1 or alpha_zero_repeats < 1:
            raise InvalidInputError(
                f"n_initial and alpha_zero_repeats must be at least 1, got {n_initial} and {alpha_zero_repeats}."
            )
        self.weighting = weighting
        self.domain = domain
        self.sampler = resolve_sampler(sampler)
        if hasattr(self.sampler, "check_domain"):  # before anything is trained
            self.sampler.check_domain(domain)
        self.greater_is_better = greater_is_better
        self.n_initial = int(n_initial)  # NumPy's integers are none to JSON
        self.alpha_zero_repeats = int(alpha_zero_repeats)
        self.seed = int(seed)
        self.persistent = storage is not None
        settings = {
            "fingerprint of data, model and metric": fingerprint,
            "greater_is_better": greater_is_better,
            "seed": self.seed,
            "domain": repr(domain),
            "sampler": repr(self.sampler),
            "n_initial": self.n_initial,
            "alpha_zero_repeats": self.alpha_zero_repeats,
        }
        self.optuna_study = open_study(storage, name, greater_is_better, settings)

    def ask(self, k: int = 1) -> list[Candidate]:
        """The next `k` candidates; number 0 is α = 0."""
        if k < 1:
            raise InvalidInputError(f"ask for at least one candidate, got k={k}.")
        trials = [self.optuna_study.ask() for _ in range(k)]
        return [candidate for run in _consecutive(trials) for candidate in self._fill(run)]

    def tell(self, number: int, value: float | None = None, *, error: str | None = None) -> None:
        """Record the metric of a candidate, or why it has none. A value that is not finite is a failure."""
        if (value is None) == (error is None):
            raise InvalidInputError(
                f"tell candidate {number} either a value or an error, not both or neither."
            )
        trial = self._trial(number)
        if trial.state.is_finished():
            raise InvalidInputError(f"candidate {number} was already told {trial.value}; tell it once.")
        if value is not None:
            values = np.asarray(value, dtype=np.float64).reshape(-1).tolist()
            if len(values) != 1:
                raise InvalidInputError(f"candidate {number} needs one value, got {len(values)}: {value!r}.")
            if math.isfinite(values[0]):
                self._finish(trial, TrialState.COMPLETE, values)
                return
            error = f"the metric is {values[0]}, not a finite number"
        self._storage.set_trial_user_attr(trial._trial_id, _ERROR, error)
        self._finish(trial, TrialState.FAIL)

    def ask_until(self, end: int) -> list[Candidate]:
        """Every untold candidate below the number `end`, asking for those that nobody asked for.

        For the one owner of a study: after an interruption, at whatever moment, it gets the candidates it
        would have got without. Others that work on the study would train the same candidates again.
        """
        asked = self._trials()[:end]  # later ones belong to a later batch, and get their alphas with it
        orphans = [t for t in asked if not t.state.is_finished() and _ALPHA not in t.user_attrs]
        trials = [Trial(self.optuna_study, orphan._trial_id) for orphan in orphans]
        trials += [self.optuna_study.ask() for _ in range(end - self.n_asked)]
        for run in _consecutive(trials):
            self._fill(run)
        return [candidate for candidate in self.pending() if candidate.number < end]

    def close(self) -> None:
        """Give back connections to a database; they are taken again when needed."""
        self._storage.remove_session()
        backend = getattr(self._storage, "_backend", self._storage)
        if hasattr(backend, "engine"):
            backend.engine.dispose()

    @property
    def n_asked(self) -> int:
        """How many candidates were asked for so far, by anyone."""
        return len(self._trials())

    def keep(self, number: int, content: Callable[[], State]) -> None:
        """Keep a JSON-able dict with a candidate that is not yet told; memory needs no such copy."""
        if not self.persistent:
            return
        trial = self._trial(number)
        if trial.state.is_finished():
            raise InvalidInputError(
                f"candidate {number} was told by another process: only one fit at a time may use a study. "
                "Use another study_name or storage, or share the study through WeightStudy."
            )
        self._storage.set_trial_user_attr(trial._trial_id, _KEPT, content())

    def kept(self) -> dict[int, State]:
        """What was kept with `keep`, by candidate number."""
        return {t.number: t.user_attrs[_KEPT] for t in self._trials() if _KEPT in t.user_attrs}

    def told(self) -> list[Told]:
        """Every candidate that has its alpha, in the order of the numbers."""
        return [self._told(trial) for trial in self._trials() if _ALPHA in trial.user_attrs]

    def pending(self) -> list[Candidate]:
        """Candidates asked for and not yet told."""
        return [told.candidate for told in self.told() if told.pending]

    def best(self) -> Told:
        """The candidate with the best value, the lowest number among equals."""
        done = [told for told in self.told() if math.isfinite(told.value)]
        if not done:
            raise SearchFailedError("no candidate has a value yet: tell at least one.")
        sign = self._sign
        return max(done, key=lambda told: (sign * told.value, -told.candidate.number))

    def weights(self, candidate: Candidate, X: Rows, y: Labels) -> FloatArray:
        """The candidate's weights (n,) of any rows, eq. 3, with the training rows' constant c."""
        weights: FloatArray = self._fitted_weighting.weight_function(candidate.alpha)(X, y)
        return weights

    def training_weights(self, candidate: Candidate) -> FloatArray:
        """The candidate's weights (n,) of the training rows, as `ExampleWeightSearch` trains with them."""
        weights: FloatArray = self._fitted_weighting.training_weights(candidate.alpha[None])[0]
        return weights

    @property
    def _fitted_weighting(self) -> Any:
        if self.weighting is None:
            raise InvalidInputError("this study was made without a weighting; pass a fitted one.")
        return self.weighting

    @property
    def _sign(self) -> float:
        return 1.0 if self.greater_is_better else -1.0

    @property
    def _storage(self) -> BaseStorage:
        return self.optuna_study._storage

    def _trials(self) -> list[FrozenTrial]:
        return self.optuna_study.get_trials(deepcopy=False)

    def _trial(self, number: int) -> FrozenTrial:
        trials = self._trials()
        if not 0 <= number < len(trials):
            raise InvalidInputError(f"there is no candidate {number}; {len(trials)} were asked for.")
        return trials[number]

    def _finish(self, trial: FrozenTrial, state: TrialState, values: list[float] | None = None) -> None:
        # What optuna_study.tell comes down to; it also makes a deep copy of the trial, at ten times the cost.
        self._storage.set_trial_state_values(trial._trial_id, state, values)

    def _told(self, trial: FrozenTrial) -> Told:
        return Told(
            self._candidate(trial.number, np.asarray(trial.user_attrs[_ALPHA], dtype=np.float64)),
            trial.value if trial.state == TrialState.COMPLETE and trial.value is not None else math.nan,
            trial.user_attrs.get(_ERROR),
            not trial.state.is_finished(),
        )

    def _candidate(self, number: int, alpha: FloatArray) -> Candidate:
        return Candidate(number, alpha, integer_seed(self.seed, "model", number))

    def _fill(self, run: list[Trial]) -> list[Candidate]:
        """Give alphas to trials with consecutive numbers, once every lower number has one."""
        first = run[0].number
        known = self._wait_for_lower_numbers(first)
        alphas = self._written(run)
        if alphas is None:
            alphas = self._alphas(first, len(run), known)
            run[0].set_user_attr(_RUN, alphas.tolist())
        for trial, alpha in zip(run, alphas, strict=True):
            trial.set_user_attr(_ALPHA, alpha.tolist())
        allowed = FloatDistribution(-self.domain.size, self.domain.size)
        for trial, alpha in zip(run, alphas.tolist(), strict=True):
            for i, value in enumerate(alpha):  # for dashboards
                self._storage.set_trial_param(trial._trial_id, f"{_ALPHA}_{i}", value, allowed)
        return [self._candidate(trial.number, alpha) for trial, alpha in zip(run, alphas, strict=True)]

    def _written(self, run: list[Trial]) -> FloatArray | None:
        """Alphas of a run whose asking was interrupted after they were known, None if they are not."""
        for trial in self._trials()[: run[0].number + 1]:
            alphas = trial.user_attrs.get(_RUN, [])
            start = run[0].number - trial.number
            if start + len(run) <= len(alphas):
                return np.asarray(alphas[start : start + len(run)], dtype=np.float64)
        return None

    def _wait_for_lower_numbers(self, first: int) -> list[Told]:
        deadline = time.monotonic() + _PATIENCE
        while True:
            lower = [trial for trial in self._trials() if trial.number < first]
            waiting = [t for t in lower if _ALPHA not in t.user_attrs and not t.state.is_finished()]
            if not waiting:
                return [self._told(trial) for trial in lower if _ALPHA in trial.user_attrs]
            if time.monotonic() > deadline:
                for trial in waiting:
                    self.tell(trial.number, error=f"asked for, but got no alpha within {_PATIENCE:.0f} s")
            time.sleep(0.01)

    def _alphas(self, first: int, k: int, known: list[Told]) -> FloatArray:
        """Alphas (k, d) of the numbers first … first + k − 1, given the lower numbers."""
        zeros = min(k, max(0, self.alpha_zero_repeats - first))
        n_random = min(k - zeros, max(0, self.alpha_zero_repeats + self.n_initial - first - zeros))
        n_proposed = k - zeros - n_random
        parts: list[FloatArray] = [np.zeros((zeros, self.domain.n_dims))]
        numbers = range(first + zeros, first + zeros + n_random)
        parts += [self.domain.sample(generator(self.seed, "alpha", number), 1) for number in numbers]
        if n_proposed:
            ahead = [part for part in parts if len(part)]
            parts.append(self._propose(first + zeros + n_random, n_proposed, known, ahead))
        return np.concatenate(parts)

    def _propose(self, first: int, k: int, known: list[Told], ahead: list[FloatArray]) -> FloatArray:
        none = np.empty((0, self.domain.n_dims))
        done = [told for told in known if not told.pending]
        out = [told.candidate.alpha[None] for told in known if told.pending] + ahead
        return self.sampler.propose(
            np.concatenate([none, *(told.candidate.alpha[None] for told in done)]),
            self._sign * np.array([told.value for told in done], dtype=np.float64),
            pending=np.concatenate([none, *out]),
            k=k,
            domain=self.domain,
            rng=generator(self.seed, "alpha", first),
        )


def _consecutive(trials: list[Trial]) -> Iterator[list[Trial]]:
    """Split into runs of consecutive numbers: other processes may hold the numbers in between."""
    breaks = [i for i, (a, b) in enumerate(pairwise(trials), 1) if b.number != a.number + 1]
    for start, stop in pairwise([0, *breaks, len(trials)]):
        if start < stop:
            yield trials[start:stop]
