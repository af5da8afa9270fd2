"""Cases of `WeightStudy`: asking and telling in any order, with odd values, domains and samplers."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral
from typing import Any

import checkout  # noqa: F401  # finds experiments/, beside this folder
import numpy as np
from fuzz_cases import chance, checking, expect, expect_same, odd_value, pick
from fuzz_rows import Rng

from experiments.samplers import Annealing, CoverSampler, DifferentialEvolution, GridSampler, Swarm
from moew import WeightStudy
from moew.exceptions import MoewError
from moew.samplers import Ball, BallAndBox, Box, GpBucb, Halving, RandomSampler

_NAMES = ("gp_bucb", "random", Annealing(), Swarm(), DifferentialEvolution())


def study_case(rng: Rng) -> None:
    """A study that is asked and told; its alphas lie in the domain, and its best trial is the best."""
    odd = chance(rng, 0.4)
    domain = _domain(rng, odd)
    settings: dict[str, Any] = {
        "sampler": _sampler(rng, odd),
        "greater_is_better": chance(rng, 0.5),
        "n_initial": int(rng.integers(0, 5)),
        "alpha_zero_repeats": int(rng.integers(0, 3)),
        "seed": int(rng.integers(10)),
    }
    if odd and chance(rng, 0.3):
        name = pick(rng, ["n_initial", "alpha_zero_repeats", "seed", "name", "fingerprint"])
        settings[name] = pick(rng, [-1, 2.5, "x", None, math.nan, np.int64(2)])
    study = WeightStudy(None, domain, **settings)
    told = _use(rng, study, odd)
    with checking("the properties of a study"):
        _check(study, domain, told)
    if not odd and chance(rng, 0.3):
        _check_replayed(study, domain, settings)


def _domain(rng: Rng, odd: bool) -> Any:
    d = int(rng.integers(1, 5))
    ball, box = Ball(d, float(rng.choice([0.01, 1.0, 4.0]))), Box(d, 2.0)
    if odd and chance(rng, 0.3):
        kind = pick(rng, [Ball, Box])
        size: Any = pick(rng, [0, -1.0, math.nan, math.inf, 1e-300, 1e300, "x", None, 1j, True])
        n_dims: Any = pick(rng, [d, 0, -1, 1.5, "2", None, True, np.int64(2)])
        return kind(n_dims, size)
    return pick(rng, [ball, ball, box, BallAndBox(Ball(d, 1.0), Box(2, 3.0))])


def _sampler(rng: Rng, odd: bool) -> Any:
    if not odd:
        return pick(rng, [*_NAMES, GpBucb(width="domain"), GpBucb(p=99, q=1), Swarm(n_particles=2)])
    number: Any = pick(rng, [0, -1, 1, 2, 0.5, math.nan, math.inf, 1e300, "x", None, 101])
    made: list[Callable[[], Any]] = [
        lambda: GpBucb(p=number),
        lambda: GpBucb(q=number),
        lambda: GpBucb(width=number),
        lambda: GpBucb(noise=number),
        lambda: GpBucb(targets=number),
        lambda: GpBucb(noise_floor=number),
        lambda: Annealing(cooling=number),
        lambda: Annealing(heat=number),
        lambda: Annealing(step=number),
        lambda: Swarm(n_particles=number),
        lambda: Swarm(n_informants=number),
        lambda: DifferentialEvolution(population=number),
        lambda: DifferentialEvolution(crossover=number),
        lambda: DifferentialEvolution(scale=number),
        lambda: GridSampler(n_points=number),
        lambda: CoverSampler(epsilon=number),
        lambda: CoverSampler(limit=number),
        Halving,
        RandomSampler,
        GridSampler,
        CoverSampler,
        lambda: odd_value(rng),
    ]
    return pick(rng, made)()


def _value(rng: Rng, odd: bool, alpha: Any) -> Any:
    plain = -float(np.sum((alpha - 0.3) ** 2))
    if not odd:
        return plain + float(rng.normal() * 0.01)
    extreme = [0.0, 1e308, -1e308, 5e-324, math.nan, math.inf, 10**400]
    return pick(rng, [*[plain] * 4, *extreme, np.float32(0.1), np.array([0.2]), odd_value(rng)])


def _use(rng: Rng, study: WeightStudy, odd: bool) -> dict[int, float]:
    """Ask and tell; refusals of odd values must leave the study as it was."""
    told: dict[int, float] = {}
    for _ in range(int(rng.integers(1, 5))):
        k: Any = int(rng.integers(1, 4))
        if odd and chance(rng, 0.15):
            k = odd_value(rng)
            if isinstance(k, Integral) and int(k) > 1000:
                continue  # it would be done
        before = study.n_asked
        try:
            trials = study.ask(k)
        except MoewError:
            expect(study.n_asked == before, "asking was refused, and yet there are more candidates")
            if not odd:
                raise
            continue
        for trial in trials:
            if chance(rng, 0.15):
                continue  # stays pending
            if chance(rng, 0.1):
                study.tell(trial.number, error=pick(rng, ["it failed", "", "x" * 10_000, "\x00"]))
                continue
            value = _value(rng, odd, trial.alpha)
            try:
                study.tell(trial.number, value)
            except MoewError:
                still = {one.number for one in study.pending()}
                expect(trial.number in still, "a value was refused, and yet the candidate is told")
                continue
            number = float(np.asarray(value, dtype=float).reshape(-1)[0])
            if math.isfinite(number):
                told[trial.number] = number
        if odd and chance(rng, 0.3):
            _misuse(rng, study)
        if chance(rng, 0.2):
            study.outlook()
    return told


def _misuse(rng: Rng, study: WeightStudy) -> None:
    number: Any = pick(rng, [0, -1, 10**6, 0.0, "0", None, np.int64(0), True])
    value: Any = pick(rng, [None, 0.5, "x"])
    points: Any = pick(rng, [np.zeros((1, 99)), np.full((1, study.domain.n_dims), np.nan), []])
    calls: list[Callable[[], Any]] = [
        lambda: study.tell(number, value, error=pick(rng, [None, "e"])),
        lambda: study.ask_with(points),
        lambda: study.next_alphas(pick(rng, [1, 2])),
        lambda: study.ask_until(pick(rng, [0, -3, 2])),
        study.best,
        lambda: study.to_optuna(3),
        lambda: study.training_weights(study.trials()[0]) if study.trials() else None,
    ]
    call, before = pick(rng, calls), [trial.number for trial in study.trials()]
    try:
        call()
    except MoewError:
        after = [trial.number for trial in study.trials()]
        expect(after == before, "a call was refused, and yet it changed the study")


def _check(study: WeightStudy, domain: Any, told: dict[int, float]) -> None:
    trials = study.trials()
    expect([trial.number for trial in trials] == list(range(len(trials))), "numbers are not 0, 1, 2, …")
    known = {trial.number: trial.value for trial in trials if math.isfinite(trial.value)}
    for number, value in told.items():
        expect(known.get(number) == value, f"candidate {number} was told {value} and has {known.get(number)}")
    if trials:
        points = np.stack([trial.point for trial in trials])
        expect(np.isfinite(points).all(), "an alpha is not finite")
        expect(np.allclose(domain.project(points), points, rtol=1e-9, atol=1e-9 * domain.size), "outside")
    if known:
        sign = 1 if study.greater_is_better else -1
        best = max(known, key=lambda number: (sign * known[number], -number))
        expect(study.best().number == best, f"{study.best().number} is said to be best, not {best}")


def _check_replayed(study: WeightStudy, domain: Any, settings: dict[str, Any]) -> None:
    """A study that is told the same, one candidate at a time, gives the next alphas as the first one does."""
    again = WeightStudy(None, domain, **settings)
    with checking("a study told the same"):
        trials = study.trials()
        for trial in again.ask_with(np.stack([trial.point for trial in trials])):
            first = trials[trial.number]
            if first.error is not None:
                again.tell(trial.number, error=first.error)
            elif not first.pending:
                again.tell(trial.number, first.value)
        expect_same(again.next_alphas(2), study.next_alphas(2), "the next alphas of studies told the same")
