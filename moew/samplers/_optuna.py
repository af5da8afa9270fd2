"""Samplers of Optuna's, for alphas; loaded only where Optuna is.

What is known is replayed into a new study in memory each time, and the sampler's random numbers begin anew
with the candidate's, so that a proposal depends on nothing else.
"""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from moew.exceptions import InvalidInputError
from moew.samplers._checks import check_known
from moew.samplers._cube import from_cube, to_cube
from moew.samplers._domains import Ball, BallAndBox, Box
from moew.types import Domain, FloatArray

try:
    import optuna
    from optuna.distributions import BaseDistribution, FloatDistribution
    from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
    from optuna.trial import TrialState, create_trial
except ImportError as error:
    raise InvalidInputError(
        "samplers of Optuna's need Optuna, which is not installed: pip install 'moew[storage]'.",
        argument="sampler",
    ) from error

# These look only at parameters and values, so that known trials can be added without asking for them.
_WITHOUT_STATE = (TPESampler, GPSampler, RandomSampler)


def is_optuna_sampler(sampler: Any) -> bool:
    """Whether it is an instance of one of Optuna's samplers, or of a subclass."""
    return isinstance(sampler, BaseSampler)


@dataclass(frozen=True)
class OptunaSampler:
    """Proposes alphas by any sampler of Optuna's; `sampler=optuna.samplers.TPESampler()` is short for it.

    Parameters
    ----------
    sampler
        TPESampler, CmaEsSampler (needs the package cmaes), QMCSampler, GPSampler (needs PyTorch), … Its own
        seed is not used, but for the scrambling of QMCSampler: candidates derive from the search's seed.

    Notes
    -----
    Optuna sees numbers from 0 to 1, as many as α has entries. A ball gets them by α = R·g/‖g‖·F(‖g‖)^(1/d)
    with g = Φ⁻¹(u), where F is the distribution of the χ with d degrees of freedom; so uniform numbers are
    uniform alphas. For TPE and Gaussian processes, candidates that failed or are pending count as the worst
    that was seen; other samplers see them as failed and as running.
    """

    sampler: BaseSampler

    def __post_init__(self) -> None:
        if not is_optuna_sampler(self.sampler):
            raise InvalidInputError(
                "sampler must be an instance of one of Optuna's samplers, such as "
                f"optuna.samplers.TPESampler(); got {self.sampler!r}.",
                argument="sampler",
            )

    def __repr__(self) -> str:
        """Its settings, the same in every process: a stored study is compared by them."""
        return f"OptunaSampler({_settings(self.sampler)})"

    def check_domain(self, domain: Domain) -> None:
        """Raise unless the domain is a ball, a box or both, and the sampler can search it."""
        if not isinstance(domain, Ball | Box | BallAndBox):
            raise InvalidInputError(
                f"samplers of Optuna's search a Ball, a Box or a BallAndBox; got {domain!r}.",
                argument="sampler",
            )
        if getattr(self.sampler, "_with_margin", False):
            raise InvalidInputError(
                "CmaEsSampler(with_margin=True) is for whole numbers, and alphas are not; leave it out.",
                argument="sampler",
            )
        # A rehearsal: some samplers need a package or a search space of their own.
        rng = np.random.default_rng(0)
        known = domain.sample(rng, 3)
        try:
            self.propose(known, np.arange(3.0), pending=known[:0], k=1, domain=domain, rng=rng)
        except Exception as error:
            name = type(self.sampler).__name__
            if isinstance(error, ImportError):
                raise InvalidInputError(
                    f"Optuna's {name} needs a package that cannot be imported: {error}. Install it with "
                    f"pip install {error.name}.",
                    argument="sampler",
                ) from error
            raise InvalidInputError(
                f"Optuna's {name} cannot search {domain.n_dims} numbers from 0 to 1: "
                f"{type(error).__name__}: {error}",
                argument="sampler",
            ) from error

    def propose(
        self,
        alphas: FloatArray,
        scores: FloatArray,
        *,
        pending: FloatArray,
        k: int,
        domain: Domain,
        rng: np.random.Generator,
    ) -> FloatArray:
        """The next `k` alphas (k, d); random ones while nothing has a score."""
        alphas, scores, pending, k = check_known(alphas, scores, pending, k, domain)
        if not np.isfinite(scores).any():
            return domain.sample(rng, k)
        names = [f"u{i}" for i in range(domain.n_dims)]
        shares = np.clip(to_cube(np.concatenate([alphas, pending]), domain), 0.0, 1.0)
        asked = ask_optuna(
            reseeded(self.sampler, int(rng.integers(2**31))),
            dict.fromkeys(names, FloatDistribution(0.0, 1.0)),
            [dict(zip(names, row, strict=True)) for row in shares.tolist()],
            scores,
            k,
        )
        return from_cube(np.array([[parameters[name] for name in names] for parameters in asked]), domain)


def ask_optuna(
    sampler: BaseSampler,
    distributions: Mapping[str, BaseDistribution],
    known: Sequence[Mapping[str, Any]],
    scores: FloatArray,
    k: int,
) -> list[dict[str, Any]]:
    """The parameters of the next `k` candidates, given those of known ones, in order. Their scores (n,), at
    least one of them finite, are those of the first n; the others are pending."""
    with _quiet():
        study = optuna.create_study(direction="maximize", sampler=sampler)
        if isinstance(sampler, _WITHOUT_STATE):
            return _ask_with_worst(study, dict(distributions), known, scores, k)
        return _ask_after_replay(study, dict(distributions), known, scores, k)


def _ask_with_worst(
    study: Any, distributions: dict[str, Any], known: Sequence[Mapping[str, Any]], scores: FloatArray, k: int
) -> list[dict[str, Any]]:
    """What failed, what is pending and what is asked here counts as the worst score, so that the next ones
    lie elsewhere."""
    finite = np.isfinite(scores)
    worst = float(scores[finite].min())
    told = np.append(np.where(finite, scores, worst), np.full(len(known) - len(scores), worst))
    for parameters, value in zip(known, told.tolist(), strict=True):
        study.add_trial(create_trial(params=dict(parameters), distributions=distributions, value=value))
    asked = []
    for _ in range(k):
        trial = study.ask(distributions)
        asked.append(dict(trial.params))
        study.tell(trial, worst)
    return asked


def _ask_after_replay(
    study: Any, distributions: dict[str, Any], known: Sequence[Mapping[str, Any]], scores: FloatArray, k: int
) -> list[dict[str, Any]]:
    """The sampler is asked for every known candidate, too, and each is given its known parameters: samplers
    such as CMA-ES and QMC keep their generation, or their place in a sequence, with the trials they gave."""
    for number, parameters in enumerate(known):
        study.enqueue_trial(dict(parameters))
        trial = study.ask(distributions)
        _ = trial.relative_params  # makes the sampler go on; Optuna leaves it out for given parameters
        if number < len(scores):
            value = float(scores[number])
            if np.isfinite(value):
                study.tell(trial, value)
            else:
                study.tell(trial, state=TrialState.FAIL)
    return [dict(study.ask(distributions).params) for _ in range(k)]


def reseeded(sampler: BaseSampler, seed: int) -> BaseSampler:
    """A copy of the sampler whose random numbers, and those of samplers inside it, derive from the seed."""
    made = copy.deepcopy(sampler)
    seeds = np.random.SeedSequence(seed)
    seen: set[int] = set()

    def reseed(part: Any) -> None:
        if id(part) in seen or not hasattr(part, "__dict__"):
            return
        seen.add(id(part))
        for name, value in sorted(vars(part).items()):
            if isinstance(getattr(value, "rng", value), np.random.RandomState):
                if id(value) not in seen:
                    seen.add(id(value))
                    getattr(value, "rng", value).seed(_next_seed(seeds))
            elif isinstance(value, np.random.Generator):
                setattr(part, name, np.random.default_rng(_next_seed(seeds)))
            elif isinstance(value, BaseSampler) or type(value).__module__.startswith("optuna."):
                reseed(value)

    reseed(made)
    return made


def _next_seed(seeds: np.random.SeedSequence) -> int:
    return int(seeds.spawn(1)[0].generate_state(1)[0])


def _settings(part: Any) -> str:
    """A sampler with those of its settings that are plain values, or samplers."""
    plain = (bool, int, float, str, tuple, list, dict, type(None))
    shown = []
    for name, value in sorted(vars(part).items()):
        if name == "_seed" and not getattr(part, "_scramble", True):
            continue  # of a QMCSampler that does not use it, and draws one if none is given
        if isinstance(value, BaseSampler):
            shown.append(f"{name.lstrip('_')}={_settings(value)}")
        elif isinstance(value, plain) and " at 0x" not in repr(value):
            shown.append(f"{name.lstrip('_')}={value!r}")
    return f"{type(part).__name__}({', '.join(shown)})"


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without Optuna's log lines, and its warnings of experimental features, for every candidate."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)
