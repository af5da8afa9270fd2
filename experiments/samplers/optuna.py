"""Samplers of Optuna's, for alphas.

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
import optuna
from optuna.distributions import FloatDistribution
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from optuna.trial import TrialState, create_trial
from scipy.special import gammainc, gammaincinv, ndtr, ndtri

from moew.exceptions import InvalidInputError
from moew.samplers import Ball, BallAndBox, Box, check_known
from moew.types import Domain, FloatArray, Rng

# These look only at parameters and values, so that known trials can be added without asking for them.
_WITHOUT_STATE = (TPESampler, GPSampler, RandomSampler)
_Domain = Ball | Box | BallAndBox
_TAIL = 1e-15  # nearer to 0 or 1 the normal quantiles would be infinite
_EDGE = 1e-6  # so much of the volume counts as outside the edge, which would need infinitely long vectors
_ALMOST_ZERO = 1e-300


@dataclass(frozen=True)
class OptunaSampler:
    """Proposes alphas by any sampler of Optuna's, as in `OptunaSampler(optuna.samplers.TPESampler())`.

    Parameters
    ----------
    sampler
        TPESampler, CmaEsSampler (needs the package cmaes), QMCSampler, GPSampler (needs PyTorch), … Its own
        seed is used only by QMCSampler's scrambling: candidates derive from the search's seed.

    Notes
    -----
    Optuna sees numbers from 0 to 1, as many as α has entries. A ball gets them by α = R·g/‖g‖·F(‖g‖)^(1/d)
    with g = Φ⁻¹(u), where F is the distribution of the χ with d degrees of freedom; so uniform numbers are
    uniform alphas. TPE and Gaussian processes see candidates that failed or are pending with the worst score
    there is; other samplers see them as failed and as running.
    """

    sampler: BaseSampler

    def __post_init__(self) -> None:
        if not isinstance(self.sampler, BaseSampler):
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
        if not isinstance(domain, _Domain):
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
            why = (
                f"needs a package that cannot be imported: {error}. Install it with pip install {error.name}."
                if isinstance(error, ImportError)
                else f"cannot search {domain.n_dims} numbers from 0 to 1: {type(error).__name__}: {error}"
            )
            raise InvalidInputError(
                f"Optuna's {type(self.sampler).__name__} {why}", argument="sampler"
            ) from error

    def propose(
        self, alphas: FloatArray, scores: FloatArray, *, pending: FloatArray, k: int, domain: Domain, rng: Rng
    ) -> FloatArray:
        """The next `k` alphas (k, d); random ones while nothing has a score."""
        assert isinstance(domain, _Domain)
        alphas, scores, pending, k = check_known(alphas, scores, pending, k, domain)
        if not np.isfinite(scores).any():
            return domain.sample(rng, k)
        names = [f"u{i}" for i in range(domain.n_dims)]
        shares = to_cube(np.concatenate([alphas, pending]), domain)
        distributions = dict.fromkeys(names, FloatDistribution(0.0, 1.0))
        known = [dict(zip(names, row, strict=True)) for row in shares.tolist()]
        ask = _ask_with_worst if isinstance(self.sampler, _WITHOUT_STATE) else _ask_after_replay
        with _quiet():
            sampler = reseeded(self.sampler, int(rng.integers(2**31)))
            study = optuna.create_study(direction="maximize", sampler=sampler)
            asked = ask(study, distributions, known, scores, k)
        return from_cube(np.array([[parameters[name] for name in names] for parameters in asked]), domain)


def from_cube(shares: FloatArray, domain: _Domain) -> FloatArray:
    """The points (n, d) of the domain at shares (n, d) from 0 to 1; uniform if those are."""
    if isinstance(domain, BallAndBox):
        d = domain.ball.n_dims
        return np.hstack([from_cube(shares[:, :d], domain.ball), from_cube(shares[:, d:], domain.box)])
    if isinstance(domain, Box):
        return domain.project(domain.half_width * (2 * shares - 1))
    # Directions of normal vectors are uniform, and F of their lengths is.
    normal = ndtri(np.clip(shares, _TAIL, 1 - _TAIL))
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    inside = gammainc(domain.n_dims / 2, length**2 / 2) ** (1 / domain.n_dims)
    return domain.project(domain.radius * inside * normal / np.maximum(length, _ALMOST_ZERO))


def to_cube(points: FloatArray, domain: _Domain) -> FloatArray:
    """The shares (n, d) of points (n, d): the inverse of `from_cube`, up to rounding."""
    if isinstance(domain, BallAndBox):
        d = domain.ball.n_dims
        return np.hstack([to_cube(points[:, :d], domain.ball), to_cube(points[:, d:], domain.box)])
    if isinstance(domain, Box):
        return np.clip((points / domain.half_width + 1) / 2, 0.0, 1.0)
    length = np.linalg.norm(points, axis=1, keepdims=True)
    inside = np.minimum((length / domain.radius) ** domain.n_dims, 1 - _EDGE)
    normal = np.sqrt(2 * gammaincinv(domain.n_dims / 2, inside)) * points / np.maximum(length, _ALMOST_ZERO)
    return np.asarray(ndtr(normal))


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
        if number < len(scores) and np.isfinite(scores[number]):
            study.tell(trial, float(scores[number]))
        elif number < len(scores):
            study.tell(trial, state=TrialState.FAIL)
    return [dict(study.ask(distributions).params) for _ in range(k)]


def reseeded(sampler: BaseSampler, seed: int) -> BaseSampler:
    """A copy of the sampler whose random numbers, and those of samplers inside it, derive from the seed."""
    made = copy.deepcopy(sampler)
    seeds = np.random.SeedSequence(seed)
    seen: set[int] = set()

    def next_seed() -> int:
        return int(seeds.spawn(1)[0].generate_state(1)[0])

    def reseed(part: Any) -> None:
        if id(part) in seen or not hasattr(part, "__dict__"):
            return
        seen.add(id(part))
        for name, value in sorted(vars(part).items()):
            if isinstance(getattr(value, "rng", value), np.random.RandomState):
                if id(value) not in seen:
                    seen.add(id(value))
                    getattr(value, "rng", value).seed(next_seed())
            elif isinstance(value, np.random.Generator):
                setattr(part, name, np.random.default_rng(next_seed()))
            elif isinstance(value, BaseSampler) or type(value).__module__.startswith("optuna."):
                reseed(value)

    reseed(made)
    return made


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
