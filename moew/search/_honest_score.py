"""Records of honest scores, and standard errors of fixed models and of their differences.

The best of many scores is too good, because it was chosen for being the best. How a score is corrected for
that is in `_guard`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from moew.data import LabelledRows
from moew.data._splits import stratified_halves
from moew.metrics import Predictions
from moew.search._evaluate import Evaluator
from moew.types import IntArray

_GAIN_PAIRS, _SLOW_PAIRS = 50, 10  # pairs of halves for the gain's standard error


@dataclass(frozen=True)
class HonestScore:
    """A score, corrected for all choices that were made on the same rows.

    `optimism` and `size_bias` are in the metric's units and positive where they make the model look better,
    so `value` = `best` − (`optimism` + `size_bias`) if greater is better, and + if smaller is.
    """

    value: float  # NaN if it is undefined; see `reason`
    best: float  # the score on the rows that it was chosen on
    optimism: float  # from the choice among candidates and ways, and from fitting decisions
    size_bias: float  # bias of the metric itself from being computed on few rows
    standard_error: float  # of a score on as many rows, for a fixed model (delete-half jackknife)
    n_halves: int
    n_undefined: int  # halves on which the metric was undefined
    reason: str | None = None


def no_honest_score(best: float, reason: str = "not asked for") -> HonestScore:
    """A record of the score `best` only, with the reason why there is no honest score."""
    nan = math.nan
    return HonestScore(nan, best, nan, nan, nan, 0, 0, reason)


def gain_error_on(
    winner: Predictions,
    unweighted: Predictions,
    rows: LabelledRows,
    evaluator: Evaluator,
    rng: np.random.Generator,
) -> float:
    """Standard error of (the winner's metric − the unweighted model's) on `rows`, for fixed models whose
    decisions are made.

    By the delete-half jackknife of the difference on the same rows: errors that both models share cancel.
    NaN if the metric is undefined on most halves.
    """

    def gain(some: IntArray, taken: LabelledRows) -> float:
        values = [evaluator.value_as_decided(p.take(some), taken) for p in (winner, unweighted)]
        return values[0] - values[1]

    return _error_over_halves(gain, rows, evaluator, rng)


def value_error_on(
    predictions: Predictions, rows: LabelledRows, evaluator: Evaluator, rng: np.random.Generator
) -> float:
    """Standard error of the metric of one such model on `rows`."""

    def value(some: IntArray, taken: LabelledRows) -> float:
        return evaluator.value_as_decided(predictions.take(some), taken)

    return _error_over_halves(value, rows, evaluator, rng)


def _error_over_halves(
    statistic: Callable[[IntArray, LabelledRows], float],
    rows: LabelledRows,
    evaluator: Evaluator,
    rng: np.random.Generator,
) -> float:
    """The delete-half jackknife's standard error of statistic(numbers of some rows, these rows)."""
    judged = rows if evaluator.metric.uses_features else replace(rows, X=np.empty((len(rows), 0)))

    def value(some: IntArray) -> float:
        return statistic(some, judged.take(some))

    # New rows have other shares of the classes, so the halves are not stratified.
    alike = np.zeros(len(judged), dtype=np.intp)
    n_pairs = _SLOW_PAIRS if evaluator.metric.slow else _GAIN_PAIRS
    moves = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # metrics warn where a half lacks a class
        for _ in range(n_pairs):
            try:
                halves = [value(half) for half in stratified_halves(alike, rng, judged.groups)]
            except Exception:  # undefined on a half, such as one without a class
                continue
            moves += halves if np.isfinite(halves).all() else []
        if len(moves) < n_pairs:
            return math.nan
        on_all = value(np.arange(len(judged)))
    return float(np.sqrt(np.mean((np.array(moves) - on_all) ** 2)))
