"""The honest score: the winner's score, corrected for the choice of the best among many candidates.

The best of many validation scores is too good, because it was chosen for being the best. The predictions of
all candidates on the validation rows are kept, so the choice can be repeated on halves of those rows without
training anything. docs/honest-score.md explains why it is done this way and what bias remains.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from moew.data import LabelledRows, SearchData
from moew.data._splits import check_strata, strata_of, stratified_halves
from moew.exceptions import InvalidInputError, UndefinedMetricError
from moew.metrics import Predictions
from moew.search._evaluate import Evaluator
from moew.search._select import select_best
from moew.types import FloatArray, IntArray, Task

_HALVES_KEPT = 4  # subsets of the validation rows kept in memory at a time
_GAIN_PAIRS, _SLOW_PAIRS = 50, 10  # pairs of halves for the gain's standard error
_MOST_STACKED = 2**23  # most predictions, of all candidates together, to score in one call
_PILOT_PAIRS = 10  # pairs of halves on which every candidate is measured
_HOPELESS = 4.0  # candidates this many standard deviations behind on the pilot halves are then left out
_SIZE_CHECKS = 3  # other pairs whose winners each pair measures, for the size bias

Evaluate = Callable[[int, IntArray, IntArray], float]
"""(candidate, rows, fit_rows) → the metric on validation `rows`, its decision rule refitted on `fit_rows`."""
EvaluateAll = Callable[[IntArray, IntArray], FloatArray | None]
"""(candidates (m,), rows) → the metric (m,) of each on validation `rows`, or None for one by one."""


@dataclass(frozen=True)
class HonestScore:
    """The winner's score, corrected for the choice.

    `optimism` and `size_bias` are in the metric's units and positive where they make the winner
    look better, so `value` = `best` − (`optimism` + `size_bias`) if greater is better, and + if smaller is.
    """

    value: float  # NaN if it is undefined; see `reason`
    best: float  # the winner's score as it was chosen
    optimism: float  # from the choice among candidates and from fitting the decision rule
    size_bias: float  # bias of the metric itself from being computed on few rows
    standard_error: float  # of a score on as many rows, for a fixed model (delete-half jackknife)
    n_halves: int
    n_redrawn: int  # halves on which the metric was undefined
    reason: str | None = None


def honest_score(
    evaluate: Evaluate,
    scores: FloatArray,
    strata: IntArray,
    *,
    greater_is_better: bool,
    n_halves: int = 200,
    rng: np.random.Generator,
    evaluate_all: EvaluateAll | None = None,
    groups: IntArray | None = None,
) -> HonestScore:
    """Estimate the score on new rows of the candidate with the best of `scores` (n_candidates,).

    `strata` (n_rows,) are integer codes of the validation rows (classes, or bins of a numeric target); halves
    keep their shares. `scores[k]` is `evaluate(k, all rows, all rows)`, non-finite where a candidate failed.
    `evaluate` may raise UndefinedMetricError or return a non-finite number where the metric is undefined:
    a candidate cannot win such a half. If none can, or the chosen one has no value on the other half, the
    pair is drawn again; if more pairs are redrawn than asked for, the value is NaN and `reason` says so.
    `evaluate_all`, for candidates without a rule to refit, gives the same values faster, or None.
    `groups` (n_rows,) are integer codes: a half holds a group whole, or not at all.
    """
    scores = np.asarray(scores, dtype=float)
    winner = select_best(scores, greater_is_better)
    strata = check_strata(strata)
    if n_halves < 2:
        raise InvalidInputError(
            f"n_halves must be at least 2, got {n_halves}; 200 is a good number.", argument="n_halves"
        )
    sign = 1.0 if greater_is_better else -1.0

    def measure(candidates: IntArray, rows: IntArray, fit_rows: IntArray) -> FloatArray:
        values = evaluate_all(candidates, rows) if evaluate_all is not None else None
        if values is None:
            values = np.array([_defined(evaluate, int(k), rows, fit_rows) for k in candidates])
        return sign * np.where(np.isfinite(values), values, np.nan)

    halves = _Halves(measure, sign * scores, strata, rng, refits=evaluate_all is None, groups=groups)
    n_pairs = (n_halves + 1) // 2
    while len(halves.pairs) < n_pairs and halves.n_undefined <= n_pairs:
        halves.draw()
    best, done = float(scores[winner]), len(halves.pairs)
    reason = None
    optimism = size_bias = standard_error = float("nan")
    if done == n_pairs:
        optimism, (size_bias, standard_error) = halves.optimism(), halves.size_effect()
    if not math.isfinite(optimism + size_bias):
        reason = (
            f"the metric was undefined on {halves.n_undefined} of {halves.n_undefined + done} pairs of "
            "halves of the validation rows, or everywhere on halves with the decision rule of all rows; give "
            "more validation rows (of the rarest class), or set rows aside (a holdout) for the honest score."
        )
    value = best - sign * (optimism + size_bias)
    n_redrawn = 2 * halves.n_undefined
    return HonestScore(value, best, optimism, size_bias, standard_error, 2 * done, n_redrawn, reason)


class _Halves:
    """Repeats the choice on pairs of halves (A, B): each half chooses one candidate. Higher is better."""

    def __init__(
        self,
        measure: Callable[[IntArray, IntArray, IntArray], FloatArray],
        scores: FloatArray,
        strata: IntArray,
        rng: np.random.Generator,
        refits: bool,
        groups: IntArray | None,
    ) -> None:
        self.measure, self.scores, self.rng, self.refits = measure, scores, rng, refits
        self.groups = groups
        _, codes = np.unique(strata, return_inverse=True)
        self.strata = codes.astype(np.min_scalar_type(codes.max()))  # small types sort faster
        self.contenders = np.flatnonzero(np.isfinite(scores))
        self.pairs: list[tuple[IntArray, IntArray]] = []
        self.chosen: list[tuple[int, int]] = []  # by A and by B
        self.on_own: list[FloatArray] = []  # (2, n_candidates) for each pair, NaN where not measured
        self.drops: list[float] = []  # M_A(k_A) − M_B(k_A), and the same with A and B exchanged
        self.pilot_spread: list[float] = []
        self.pilot: list[FloatArray] = []
        self.n_undefined = 0

    def draw(self) -> None:
        """Draw a pair; count it as undefined if a half cannot choose or its choice has no value on the other.

        Both halves of a pair are used, so that for a mean of rows (accuracy) the average over halves is
        exactly the score on all rows, and only the effect of the choice remains.
        """
        pair = stratified_halves(self.strata, self.rng, self.groups)
        on_own = np.stack([self.measure(self.contenders, half, half) for half in pair])  # (2, m)
        if np.isnan(on_own).all(axis=1).any():
            self.n_undefined += 1
            return
        # Contenders are in the order of their numbers, so ties go to the lowest, as in select_best.
        picks = np.nanargmax(on_own, axis=1)
        chosen = self.contenders[picks]
        on_other = on_own[[1, 0], picks]
        if self.refits:
            on_other = np.array([self.measure(chosen[i : i + 1], pair[1 - i], pair[i])[0] for i in (0, 1)])
        if np.isnan(on_other).any():
            self.n_undefined += 1
            return
        self.pairs.append(pair)
        self.on_own.append(np.full((2, len(self.scores)), np.nan))
        self.on_own[-1][:, self.contenders] = on_own
        self.chosen.append((int(chosen[0]), int(chosen[1])))
        self.drops.extend(on_own[[0, 1], picks] - on_other)
        if len(self.pairs) <= _PILOT_PAIRS:
            self.pilot.extend(on_own)
            self.pilot_spread.extend(_upper_spread(row) for row in on_own)
            if len(self.pairs) == _PILOT_PAIRS:
                self.contenders = self.contenders[self._can_win(np.array(self.pilot))]

    def _can_win(self, pilot: FloatArray) -> IntArray:
        """Indices of the contenders to measure on further halves, from their scores (20, m) so far.

        Left out are those that are always far behind the best, and duplicates of an earlier candidate.
        """
        behind = np.nanmax(pilot, axis=1, keepdims=True) - np.nan_to_num(pilot, nan=-np.inf)
        measured = np.where(np.isfinite(behind), behind, np.nan)
        defined = np.isfinite(measured).any(axis=0)
        mean, spread = np.full(pilot.shape[1], np.inf), np.zeros(pilot.shape[1])
        mean[defined] = np.nanmean(measured[:, defined], axis=0)
        spread[defined] = np.nanstd(measured[:, defined], axis=0)
        keep = (mean <= _HOPELESS * spread) | (behind.min(axis=0) == 0)
        everything = np.vstack([pilot, self.scores[self.contenders]])
        first = np.zeros(pilot.shape[1], dtype=bool)
        first[np.unique(everything, axis=1, return_index=True)[1]] = True
        return np.flatnonzero(keep & first)

    def optimism(self) -> float:
        """The optimism of the choice on all rows, from the mean drop D of the candidates that halves chose.

        For a mean of rows M_A − M_B is twice A's deviation from all rows, and that deviation is as large as
        the deviation of all rows from the truth: so D/2 is the optimism of a choice made on half the rows.
        For a choice on all rows it is multiplied by the ratio of the spread of the candidates' scores on
        halves to that on all rows: √2 if they differ only by noise (so D/√2), 1 if they truly differ.
        """
        on_all = _upper_spread(self.scores[np.isfinite(self.scores)])
        growth = np.mean(self.pilot_spread) / on_all if on_all > 0 else math.sqrt(2)
        return float(np.mean(self.drops) / 2 * np.clip(growth, 1, math.sqrt(2)))

    def size_effect(self) -> tuple[float, float]:
        """For a fixed model: the metric's bias on n rows, and its standard error.

        The worst of ten classes looks worse on few rows, whatever the model: (M on a half) − (M on all rows)
        is the bias on all rows if it falls like 1/n. The standard deviation of the same difference is the
        delete-half jackknife's standard error: a half is as far from the whole as the whole from the truth.
        Each pair measures what other pairs chose, so the choice has no effect; rules are fitted on all rows.
        """
        all_rows = np.arange(len(self.strata))
        moves: list[FloatArray] = []
        for place, pair in enumerate(self.pairs):
            others = [self.chosen[(place + 1 + step) % len(self.pairs)] for step in range(_SIZE_CHECKS)]
            candidates = np.array(others).ravel()
            # A winner is never left out later, so every half has measured it.
            measured = self.on_own[place][:, candidates]
            if self.refits:
                measured = np.stack([self.measure(candidates, half, all_rows) for half in pair])
            moves.extend(measured - self.scores[candidates])
        moved = np.concatenate(moves)
        moved = moved[np.isfinite(moved)]
        if len(moved) == 0:
            return float("nan"), float("nan")
        return float(moved.mean()), float(moved.std())


def _defined(evaluate: Evaluate, candidate: int, rows: IntArray, fit_rows: IntArray) -> float:
    """The metric, NaN where it is undefined."""
    try:
        value = float(evaluate(candidate, rows, fit_rows))
    except UndefinedMetricError:
        return float("nan")
    return value if math.isfinite(value) else float("nan")


def _upper_spread(scores: FloatArray) -> float:
    """By how much the mean of the best fifth of `scores` (m,) exceeds the median; ignores bad outliers."""
    ordered = np.sort(np.where(np.isnan(scores), np.nanmin(scores), scores))
    return float(ordered[-math.ceil(len(ordered) / 5) :].mean() - np.median(ordered))


def honest_from_halves(
    predictions: Mapping[int, Predictions],
    values: Mapping[int, float],
    data: SearchData,
    evaluator: Evaluator,
    rng: np.random.Generator,
) -> HonestScore:
    """The honest score of the best candidate, from halves of the validation rows; see docs/honest-
    score.md."""
    numbers = sorted(predictions)
    validation = _as_judged(data.validation, evaluator)
    parts: dict[int, tuple[IntArray, LabelledRows]] = {}
    first_failure = ""

    def part_of(rows: IntArray) -> LabelledRows:  # all candidates use the same few halves
        taken = parts.get(id(rows))
        if taken is None:
            if len(parts) == _HALVES_KEPT:
                parts.clear()
            taken = parts[id(rows)] = rows, validation.take(rows)  # keeping `rows` keeps its id valid
        return taken[1]

    def evaluate(k: int, rows: IntArray, fit_rows: IntArray) -> float:
        nonlocal first_failure
        predicted = predictions[numbers[k]]
        fit_on = None
        if predicted.scores is not None:
            fit_on = predicted.scores[fit_rows], part_of(fit_rows)
        try:
            return evaluator.value(predicted.take(rows), part_of(rows), fit_on)
        except Exception as error:  # it has a value on all rows, so it is undefined on this half
            first_failure = first_failure or f"{type(error).__name__}: {error}"
            raise UndefinedMetricError(str(error)) from error

    kept = [predictions[number] for number in numbers]
    ruled = any(predicted.scores is not None for predicted in kept)
    outputs = None if ruled else _stacked(kept, evaluator)

    def evaluate_all(candidates: IntArray, rows: IntArray) -> FloatArray | None:
        if outputs is None:
            return None
        weight = None if validation.sample_weight is None else validation.sample_weight[rows]
        try:
            asked = outputs[candidates][:, rows]  # faster than both at once
            return evaluator.metric.values(asked, validation.y[rows], sample_weight=weight)
        except Exception:
            return None  # undefined for some candidates: score them one by one

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # metrics warn where a half lacks a class
        honest = honest_score(
            evaluate,
            np.array([values[number] for number in numbers]),
            strata_of(validation.y, data.task),
            greater_is_better=evaluator.metric.greater_is_better,
            rng=rng,
            evaluate_all=None if ruled else evaluate_all,
            groups=validation.groups,
        )
    if honest.reason is not None and first_failure:
        honest = replace(honest, reason=f"{honest.reason} The first failure: {first_failure}")
    low, high = evaluator.metric.bounds or (-math.inf, math.inf)
    return honest if math.isnan(honest.value) else replace(honest, value=min(max(honest.value, low), high))


def _as_judged(rows: LabelledRows, evaluator: Evaluator) -> LabelledRows:
    """The rows, without X if the metric does not use it, since X takes the most memory."""
    return rows if evaluator.metric.uses_features else replace(rows, X=np.empty((len(rows), 0)))


def _stacked(predictions: Sequence[Predictions], evaluator: Evaluator) -> np.ndarray[Any, Any] | None:
    """The predictions (m, n) of all candidates, if the metric can score them in one call, else None.

    None for many rows, too: then one call for each candidate is no slower, and the copy takes memory.
    """
    metric = evaluator.metric
    if not metric.takes_many or metric.response is None:
        return None
    outputs = [predicted.arrays[metric.response] for predicted in predictions]
    alike = len({(array.shape, array.dtype) for array in outputs}) == 1 and outputs[0].ndim == 1
    few = sum(array.size for array in outputs) <= _MOST_STACKED
    return np.stack(outputs) if alike and few else None


def honest_from_holdout(best: float, value: float, evaluator: Evaluator) -> HonestScore:
    """The honest score from the winner's metric `value` on rows that the search did not use."""
    sign = 1.0 if evaluator.metric.greater_is_better else -1.0
    return HonestScore(value, best, sign * (best - value), 0.0, math.nan, 0, 0)


def no_honest_score(best: float, reason: str = "not asked for") -> HonestScore:
    """A record of the score `best` only, with the reason why there is no honest score."""
    nan = math.nan
    return HonestScore(nan, best, nan, nan, nan, 0, 0, reason)


def gain_error(
    winner: Predictions,
    unweighted: Predictions,
    rows: LabelledRows,
    evaluator: Evaluator,
    task: Task,
    rng: np.random.Generator,
) -> float:
    """Standard error of (the winner's metric − the unweighted model's) on `rows`, for fixed models.

    By the delete-half jackknife, as `HonestScore.standard_error`, but of the difference on the same rows:
    errors that both models share cancel. NaN if the metric is undefined on most halves.
    """
    judged = _as_judged(rows, evaluator)

    def gain(some: IntArray) -> float:
        taken = judged.take(some)
        values = []
        for predicted in (winner, unweighted):
            fit_on = None if predicted.scores is None else (predicted.scores, judged)
            values.append(evaluator.value(predicted.take(some), taken, fit_on))
        return values[0] - values[1]

    strata = strata_of(judged.y, task)
    n_pairs = _SLOW_PAIRS if evaluator.metric.slow else _GAIN_PAIRS
    moves = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # metrics warn where a half lacks a class
        for _ in range(n_pairs):
            try:
                halves = [gain(half) for half in stratified_halves(strata, rng, judged.groups)]
            except Exception:  # undefined on a half, such as one without a class
                continue
            moves += halves if np.isfinite(halves).all() else []
        if len(moves) < n_pairs:
            return math.nan
        on_all = gain(np.arange(len(judged)))
    return float(np.sqrt(np.mean((np.array(moves) - on_all) ** 2)))
