"""Scores of models from what they answered: honest ones, and how sure the gain of one over another is."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from moew.data._problem import Part, Problem, strata_of
from moew.exceptions import UndefinedMetricError
from moew.metrics import Metric
from moew.metrics._observation import Observation
from moew.search._evaluate import Evaluator
from moew.search._selection import HonestScore, honest_score, stratified_halves
from moew.types import FloatArray, IntArray, Task

_HALVES_KEPT = 4  # parts of the validation rows that the honest score keeps while it looks at them
_GAIN_PAIRS, _SLOW_PAIRS = 50, 10  # pairs of halves from which the gain's standard error is found
_MOST_STACKED = 2**23  # answers of all candidates together that are scored in one call


def honest_from_halves(
    observations: Mapping[int, Observation],
    values: Mapping[int, float],
    problem: Problem,
    evaluator: Evaluator,
    rng: np.random.Generator,
) -> HonestScore:
    """Play the choice again on halves of the validation rows; see docs/honest-score.md."""
    numbers = sorted(observations)
    validation = _as_judged(problem.validation, evaluator)
    parts: dict[int, tuple[IntArray, Part]] = {}
    first_failure = ""

    def part_of(rows: IntArray) -> Part:  # every candidate is asked for the same few halves in turn
        taken = parts.get(id(rows))
        if taken is None:
            if len(parts) == _HALVES_KEPT:
                parts.clear()
            taken = parts[id(rows)] = rows, validation.take(rows)  # rows live on, so the id stays theirs
        return taken[1]

    def evaluate(k: int, rows: IntArray, fit_rows: IntArray) -> float:
        nonlocal first_failure
        observation = observations[numbers[k]]
        fit_on = None
        if observation.scores is not None:
            fit_on = observation.scores[fit_rows], part_of(fit_rows)
        try:
            return evaluator.value(observation.take(rows), part_of(rows), fit_on)
        except Exception as error:  # it has a value on all rows, so on this half it is undefined
            first_failure = first_failure or f"{type(error).__name__}: {error}"
            raise UndefinedMetricError(str(error)) from error

    kept = [observations[number] for number in numbers]
    ruled = any(observation.scores is not None for observation in kept)
    answers = None if ruled else _stacked(kept, evaluator)

    def evaluate_all(candidates: IntArray, rows: IntArray) -> FloatArray | None:
        if answers is None or not isinstance(evaluator.metric, Metric):
            return None
        weight = None if validation.sample_weight is None else validation.sample_weight[rows]
        try:
            asked = answers[candidates][:, rows]  # faster than both at once
            return evaluator.metric.values(asked, validation.y[rows], sample_weight=weight)
        except Exception:
            return None  # undefined for some candidates or for all: one by one tells

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # metrics warn where a half lacks a class
        honest = honest_score(
            evaluate,
            np.array([values[number] for number in numbers]),
            strata_of(validation.y, problem.task),
            greater_is_better=evaluator.metric.greater_is_better,
            rng=rng,
            evaluate_all=None if ruled else evaluate_all,
        )
    if honest.reason is not None and first_failure:
        honest = replace(honest, reason=f"{honest.reason} The first failure: {first_failure}")
    low, high = evaluator.metric.bounds or (-math.inf, math.inf)
    return honest if math.isnan(honest.value) else replace(honest, value=min(max(honest.value, low), high))


def _as_judged(part: Part, evaluator: Evaluator) -> Part:
    """The rows without X, the largest there is, for a metric that looks at recorded answers alone."""
    is_scorer = not isinstance(evaluator.metric, Metric)  # which may look at X
    return part if is_scorer else replace(part, X=np.empty((len(part), 0)))


def _stacked(observations: Sequence[Observation], evaluator: Evaluator) -> np.ndarray[Any, Any] | None:
    """The answers (m, n) of all candidates, where the metric can score them in one call, else None.

    With many rows a call takes so long that one for each candidate costs nothing, and a copy of all
    answers does.
    """
    metric = evaluator.metric
    if not (isinstance(metric, Metric) and metric.takes_many):
        return None
    answers = [observation.outputs.arrays[metric.response] for observation in observations]
    alike = len({(array.shape, array.dtype) for array in answers}) == 1 and answers[0].ndim == 1
    few = sum(array.size for array in answers) <= _MOST_STACKED
    return np.stack(answers) if alike and few else None


def honest_from_holdout(best: float, value: float, evaluator: Evaluator) -> HonestScore:
    """`value` is the winner's metric on rows that no search saw."""
    sign = 1.0 if evaluator.metric.greater_is_better else -1.0
    return HonestScore(value, best, sign * (best - value), 0.0, math.nan, 0, 0)


def no_honest_score(best: float, reason: str = "not asked for (honest=None)") -> HonestScore:
    """Only the score as it was chosen."""
    nan = math.nan
    return HonestScore(nan, best, nan, nan, nan, 0, 0, reason)


def gain_error(
    winner: Observation,
    unweighted: Observation,
    part: Part,
    evaluator: Evaluator,
    task: Task,
    rng: np.random.Generator,
) -> float:
    """Standard error of (the winner's metric − the unweighted model's) on rows, both models fixed.

    By the delete-half jackknife, as `HonestScore.standard_error`, but of the difference on the same rows:
    what both models find hard on these rows cancels. NaN where the metric has no value on most halves.
    """

    part = _as_judged(part, evaluator)

    def gain(rows: IntArray) -> float:
        taken = part.take(rows)
        values = []
        for observation in (winner, unweighted):
            fit_on = None if observation.scores is None else (observation.scores, part)
            values.append(evaluator.value(observation.take(rows), taken, fit_on))
        return values[0] - values[1]

    strata = strata_of(part.y, task)
    n_pairs = _SLOW_PAIRS if evaluator.metric.slow else _GAIN_PAIRS
    moves = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # metrics warn where a half lacks a class
        for _ in range(n_pairs):
            try:
                halves = [gain(half) for half in stratified_halves(strata, rng)]
            except Exception:  # undefined on a half, such as one without a class
                continue
            moves += halves if np.isfinite(halves).all() else []
        if len(moves) < n_pairs:
            return math.nan
        on_all = gain(np.arange(len(part)))
    return float(np.sqrt(np.mean((np.array(moves) - on_all) ** 2)))
