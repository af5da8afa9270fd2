"""Which candidate wins, and its honest score: what is left when the luck of being chosen is taken off.

The best of many validation scores is too good, because it was chosen for being the best. The outputs
of all candidates on the validation rows are kept, so the choice can be played again on halves of those rows
without training anything. docs/honest-score.md tells why it is done this way and what bias remains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from moew.exceptions import InvalidInputError, SearchFailedError, UndefinedMetricError
from moew.types import FloatArray, IntArray

Evaluate = Callable[[int, IntArray, IntArray], float]
"""(candidate, rows, fit_rows) → the metric on validation `rows`, its decision rule refitted on `fit_rows`."""
EvaluateAll = Callable[[IntArray, IntArray], FloatArray | None]
"""(candidates (m,), rows) → the metric (m,) of each on validation `rows`, or None for one by one."""

_PILOT_PAIRS = 10  # pairs of halves on which every candidate is measured
_HOPELESS = 4.0  # a candidate this many standard deviations behind on the pilot halves is left out after
_SIZE_CHECKS = 3  # pairs whose winners are measured on another pair, to see how the metric moves with size


@dataclass(frozen=True)
class HonestScore:
    """The winner's score with the luck of the choice taken off.

    `optimism` and `size_bias` are in the metric's units and positive where they flatter the winner, so
    `value` = `best` − (`optimism` + `size_bias`) where greater is better, and + where smaller is.
    """

    value: float  # NaN where `reason` says why
    best: float  # the winner's score as it was chosen
    optimism: float  # from the choice among candidates and from fitting the decision rule
    size_bias: float  # what the metric itself gains by being computed on so few rows
    standard_error: float  # of such a score on so many rows, for a fixed model (delete-half jackknife)
    n_halves: int
    n_redrawn: int  # halves on which the metric was undefined
    reason: str | None = None


def select_best(scores: FloatArray, greater_is_better: bool) -> int:
    """The number of the best finite score in `scores` (n,); among equals the lowest number."""
    scores = np.asarray(scores, dtype=float)
    if scores.ndim != 1 or len(scores) == 0:
        raise InvalidInputError(f"scores must be a list of at least one score, got shape {scores.shape}.")
    finite = np.isfinite(scores)
    if not finite.any():
        raise SearchFailedError(
            f"none of the {len(scores)} candidates has a finite score; look at their messages for the cause."
        )
    return int(np.argmax(np.where(finite, scores if greater_is_better else -scores, -np.inf)))


def honest_score(
    evaluate: Evaluate,
    scores: FloatArray,
    strata: IntArray,
    *,
    greater_is_better: bool,
    n_halves: int = 200,
    rng: np.random.Generator,
    evaluate_all: EvaluateAll | None = None,
) -> HonestScore:
    """Estimate what the best of `scores` (n_candidates,) is worth on new rows.

    `strata` (n_rows,) are integer codes of the validation rows (classes, or bins of a numeric target); halves
    keep their shares. `scores[k]` is `evaluate(k, all rows, all rows)`, non-finite where a candidate failed.
    `evaluate` may raise UndefinedMetricError or return a non-finite number where the metric is undefined:
    a candidate cannot win such a half, and where none can, or the choice cannot be judged, the pair of halves
    is drawn again; when more pairs are redrawn than asked for, the value is NaN and `reason` says so.
    `evaluate_all`, for candidates without a rule to refit, gives the same values sooner, or None.
    """
    scores = np.asarray(scores, dtype=float)
    winner = select_best(scores, greater_is_better)
    strata = _check_strata(strata)
    if n_halves < 2:
        raise InvalidInputError(f"n_halves must be at least 2, got {n_halves}; 200 is a good number.")
    sign = 1.0 if greater_is_better else -1.0

    def measure(candidates: IntArray, rows: IntArray, fit_rows: IntArray) -> FloatArray:
        values = evaluate_all(candidates, rows) if evaluate_all is not None else None
        if values is None:
            values = np.array([_defined(evaluate, int(k), rows, fit_rows) for k in candidates])
        return sign * np.where(np.isfinite(values), values, np.nan)

    halves = _Halves(measure, sign * scores, strata, rng, refits=evaluate_all is None)
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
            'more validation rows (of the rarest class), or set rows aside with honest="holdout".'
        )
    value = best - sign * (optimism + size_bias)
    n_redrawn = 2 * halves.n_undefined
    return HonestScore(value, best, optimism, size_bias, standard_error, 2 * done, n_redrawn, reason)


class _Halves:
    """The choice played again on pairs of halves (A, B), each half choosing once. Higher is better."""

    def __init__(
        self,
        measure: Callable[[IntArray, IntArray, IntArray], FloatArray],
        scores: FloatArray,
        strata: IntArray,
        rng: np.random.Generator,
        refits: bool,
    ) -> None:
        self.measure, self.scores, self.rng, self.refits = measure, scores, rng, refits
        _, codes = np.unique(strata, return_inverse=True)
        self.strata = codes.astype(np.min_scalar_type(codes.max()))  # the smaller, the sooner sorted
        self.contenders = np.flatnonzero(np.isfinite(scores))
        self.pairs: list[tuple[IntArray, IntArray]] = []
        self.chosen: list[tuple[int, int]] = []  # by A and by B
        self.on_own: list[FloatArray] = []  # (2, n_candidates) for each pair, NaN where not measured
        self.drops: list[float] = []  # M_A(k_A) − M_B(k_A), and the same with A and B exchanged
        self.pilot_spread: list[float] = []
        self.pilot: list[FloatArray] = []
        self.n_undefined = 0

    def draw(self) -> None:
        """Draw one pair; count it as undefined where a half cannot choose or its choice cannot be judged.

        Both halves of a pair are used, so that for a mean of rows (accuracy) the average over halves is
        exactly the score on all rows, and nothing but the choice is left to see.
        """
        pair = stratified_halves(self.strata, self.rng)
        on_own = np.stack([self.measure(self.contenders, half, half) for half in pair])  # (2, m)
        if np.isnan(on_own).all(axis=1).any():
            self.n_undefined += 1
            return
        # Contenders are in the order of their numbers, so that ties go to the lowest, as in select_best.
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
        """Places of the contenders worth measuring on further halves, from their scores (20, m) so far.

        Left out are those far behind the half's best each time, and copies of an earlier candidate.
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
        """The optimism of the choice on all rows, from the mean drop D of the halves' choices.

        For a mean of rows M_A − M_B is twice A's deviation from all rows, and that deviation is as large as
        the deviation of all rows from the truth: so D/2 is the optimism of a choice made on half the rows.
        A choice on all rows is luckier by as much as the candidates' scores spread wider on halves: √2
        times if they differ by noise alone (then D/√2 is right), not at all if they truly differ.
        """
        on_all = _upper_spread(self.scores[np.isfinite(self.scores)])
        growth = np.mean(self.pilot_spread) / on_all if on_all > 0 else math.sqrt(2)
        return float(np.mean(self.drops) / 2 * np.clip(growth, 1, math.sqrt(2)))

    def size_effect(self) -> tuple[float, float]:
        """For a fixed model: the metric's bias on n rows, and its standard error.

        The worst of ten classes looks worse on few rows, whatever the model: (M on a half) − (M on all rows)
        is the bias on all rows if it falls like 1/n. The standard deviation of the same difference is the
        delete-half jackknife's standard error: a half is as far from the whole as the whole from the truth.
        Each pair measures what other pairs chose, so the choice plays no part; rules are fitted on all rows.
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


def stratified_halves(strata: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Two random halves (A, B) of the rows with the same share of every code in `strata` (n,).

    The odd rows of the strata are dealt out in turn, so that the halves differ by one row at most.
    """
    order = rng.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]  # shuffled inside each stratum
    _, counts = np.unique(strata, return_counts=True)
    place = np.arange(len(strata)) - np.repeat(np.cumsum(counts) - counts, counts)  # inside the stratum
    odd = place == np.repeat(counts, counts) - np.repeat(counts % 2, counts)
    in_a = place % 2 == 0
    dealt = (np.arange(odd.sum()) + rng.integers(2)) % 2 == 0
    in_a[odd] = rng.permutation(dealt)
    is_a = np.zeros(len(strata), dtype=bool)
    is_a[order[in_a]] = True
    return np.flatnonzero(is_a), np.flatnonzero(~is_a)


def holdout_split(
    strata: IntArray, share: float, rng: np.random.Generator, names: Sequence[Any] | None = None
) -> tuple[IntArray, IntArray]:
    """(search_rows, holdout_rows): a `share` of every code in `strata` (n,), at least one row each.

    `names` are what an error calls the codes 0, 1, …
    """
    strata = _check_strata(strata)
    if not 0 < share < 1:
        raise InvalidInputError(f"the share of rows to hold out must lie between 0 and 1, got {share!r}.")
    codes, counts = np.unique(strata, return_counts=True)
    if (counts < 2).any():
        alone = [code if names is None else names[code] for code in codes[counts < 2].tolist()]
        raise InvalidInputError(
            f"cannot hold out rows: of {alone[:5]} there is one row each, which cannot be on both sides. "
            "Give more rows of them, or hold nothing out (pass validation rows, do without honest='holdout')."
        )
    held = []
    for code, count in zip(codes, counts, strict=True):
        n_held = min(max(round(share * count), 1), count - 1)
        held.append(rng.permutation(np.flatnonzero(strata == code))[:n_held])
    holdout_rows = np.sort(np.concatenate(held))
    return np.setdiff1d(np.arange(len(strata)), holdout_rows), holdout_rows


def _defined(evaluate: Evaluate, candidate: int, rows: IntArray, fit_rows: IntArray) -> float:
    """The metric, NaN where it is undefined."""
    try:
        value = float(evaluate(candidate, rows, fit_rows))
    except UndefinedMetricError:
        return float("nan")
    return value if math.isfinite(value) else float("nan")


def _upper_spread(scores: FloatArray) -> float:
    """How far the best fifth of `scores` (m,) lies above the median; bad outliers do not count."""
    ordered = np.sort(np.where(np.isnan(scores), np.nanmin(scores), scores))
    return float(ordered[-math.ceil(len(ordered) / 5) :].mean() - np.median(ordered))


def _check_strata(strata: IntArray) -> IntArray:
    strata = np.asarray(strata)
    if strata.ndim != 1 or strata.dtype.kind not in "iu":
        raise InvalidInputError(
            f"strata must be integer codes, one for each row, got shape {strata.shape} of {strata.dtype}."
        )
    if len(strata) < 2:
        raise InvalidInputError(f"at least two validation rows are needed, got {len(strata)}.")
    return strata
