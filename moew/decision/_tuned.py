"""Decisions tuned for the metric itself: thresholds, class offsets, or adjusted predictions.

`tune` knows the metric only as a function of decisions, asks it a limited number of times, and never twice
for the same decisions. Equal input gives equal rules; nothing is drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Any, ClassVar, Literal, NoReturn

import numpy as np

from moew._util.checks import COLUMN, FLAG, POSITIVE, Wanted, at_least, one_of
from moew._util.numbers import is_number
from moew._util.rounding import rounded_scores
from moew._util.state import has_state
from moew.decision._rules import (
    FINITE,
    NUMBER,
    SCORE_OR_PROBABILITY,
    FitOn,
    GivenThreshold,
    Of,
    Rule,
    ThresholdOfGroup,
    Thresholds,
    check_scores,
    cuts_of,
    groups_of_rows,
    threshold_between,
    threshold_selecting,
)
from moew.exceptions import Argument, InvalidInputError, UndefinedMetricError
from moew.types import Array, BoolArray, Columns, FloatArray, IntArray

TunedTask = Literal["binary", "classes", "regression"]

FEWEST_CALLS = 8
CALLS_FOR_A_GROUP = 6  # fewer tell nothing about a group's threshold
EQUAL = 1e-12  # values that differ by no more are equal
NEAR = 0.05  # cuts that differ by a larger share of the rows are different decisions, not luck
WINDOW = 3  # neighbours on either side that a value is averaged with
PRIOR_POWERS = (0.25, 0.5, 1.0, 2.0)
LARGEST_STEP, SMALLEST_STEP = 1.0, 0.1  # of a class's log odds of being decided
LARGEST_CHANGE, SMALLEST_CHANGE = 0.5, 0.005  # of predictions: in their spreads, and of the log factor
DIRECTIONS = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]])  # of offset and log factor

_COLUMN_OR_NONE = Wanted(f"{COLUMN.words}, or None for one threshold", COLUMN.or_none().fits)


@has_state
@dataclass(frozen=True)
class Tuned(Rule):
    """Decides in the way that is best for the metric on the validation rows.

    Two classes get a threshold, with `by` one for each group of that per-row column; several classes an
    offset each; a regressor's predictions an offset and a factor. The model's own decision is kept unless
    the metric is better without it.
    """

    by: str | None = None

    wanted: ClassVar[Mapping[str, Wanted]] = {"by": _COLUMN_OR_NONE}
    needs_labels: ClassVar[bool] = True

    @property
    def fit_on(self) -> FitOn:
        """The validation rows, by `tune`."""
        return "validation"

    @property
    def columns(self) -> tuple[str, ...]:
        """The column of groups, if there is one."""
        return () if self.by is None else (self.by,)

    def tune(
        self,
        scores: Any,
        value: Callable[[Array], float],
        columns: Columns,
        *,
        task: TunedTask,
        own_threshold: float = 0.0,
        most_calls: int = 120,
        values: Callable[[Array], Any] | None = None,
        undefined_is_lowest: bool = True,
    ) -> TunedRule:
        """The rule fitted for a metric on some rows; on them it is never worse than the model's own decision.

        Parameters
        ----------
        scores : "binary": scores (n,) of the positive class; "classes": scores (n, C), such as
            log-probabilities; "regression": predictions (n,)
        value : the metric of decisions, higher is better: booleans (n,), codes of classes (n,) or floats
            (n,). An `UndefinedMetricError`, NaN or an infinity means that they have no value.
        columns : per-row columns, with the one that `by` names
        own_threshold : the score above which the model itself decides for the positive class
        most_calls : the number of calls of `value` that are never exceeded
        values : the metric (m,) of many decisions (m, n) in one call; None where it cannot
        undefined_is_lowest : whether thresholds near undefined ones are worth less; False where they are
            undefined because they are not allowed
        """
        one_of("binary", "classes", "regression").check("task", task)
        at_least(FEWEST_CALLS).check("most_calls", most_calls)
        if self.by is not None and task != "binary":
            raise InvalidInputError(
                Argument("by", self.by),
                " gives thresholds by group, which need two classes.",
                argument="decision",
            )
        asked = _Asked(value, values, undefined_is_lowest, int(most_calls))
        if task == "classes":
            return _tune_classes(check_scores(scores, 2, to_fit=True), asked)
        checked = check_scores(scores, to_fit=True)
        if task == "regression":
            return _tune_predictions(checked, asked)
        NUMBER.check("own_threshold", own_threshold)
        own = float(own_threshold)
        if self.by is not None:
            thresholds, common = _tune_groups(self.by, checked, own, asked, columns)
            return GroupThresholds(self.by, thresholds, common, self.of)
        return TunedThreshold(asked.best_threshold(checked, own, asked.left), self.of)

    def fit(self, score: FloatArray, positive: BoolArray, columns: Columns) -> NoReturn:
        """Raise: labels alone do not say what the metric values."""
        raise InvalidInputError(
            f"{self!r} needs the metric, not only labels, to be fitted; call tune(scores, value, …).",
            argument="decision",
        )

    def decide(self, score: FloatArray, columns: Columns) -> NoReturn:
        """Raise: the rule is not tuned."""
        raise InvalidInputError(
            f"{self!r} is not tuned yet; call tune and use what it returns.", argument="decision"
        )


@has_state
@dataclass(frozen=True)
class TunedThreshold(GivenThreshold):
    """Decides positive above the threshold that `tune` found; ±inf decides the same for all rows."""

    wanted: ClassVar[Mapping[str, Wanted]] = {"threshold": NUMBER, "of": SCORE_OR_PROBABILITY}
    may_be_infinite: ClassVar[tuple[str, ...]] = ("threshold",)


@has_state
@dataclass(frozen=True)
class GroupThresholds(ThresholdOfGroup):
    """Decides positive above the threshold of the row's group, found by `tune`.

    `thresholds_by_group` holds (group, threshold) pairs; the rows of any other group are decided by
    `common`, the best threshold for all rows together.
    """

    column: str
    thresholds_by_group: tuple[tuple[Any, float], ...]
    common: float
    of: Of = "score"

    wanted: ClassVar[Mapping[str, Wanted]] = {"column": COLUMN, "common": NUMBER, "of": SCORE_OR_PROBABILITY}
    may_be_infinite: ClassVar[tuple[str, ...]] = ("thresholds_by_group", "common")

    def __post_init__(self) -> None:
        super().__post_init__()
        for _, threshold in self.thresholds_by_group:
            NUMBER.check("thresholds_by_group", threshold)
        pairs = tuple((group, float(threshold)) for group, threshold in self.thresholds_by_group)
        object.__setattr__(self, "thresholds_by_group", pairs)

    @property
    def columns(self) -> tuple[str, ...]:
        """The column of groups."""
        return (self.column,)

    @property
    def thresholds(self) -> Thresholds:
        """The threshold of each group."""
        return self.thresholds_by_group


@has_state
@dataclass(frozen=True)
class ClassOffsets(Rule):
    """Decides for the class with the highest sum of score and offset (C,), found by `tune`."""

    offsets: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.offsets) < 2 or not all(map(is_number, self.offsets)):
            raise InvalidInputError(
                f"offsets must be finite numbers, one for each of the classes, got {self.offsets!r}.",
                argument="offsets",
            )
        object.__setattr__(self, "offsets", tuple(map(float, self.offsets)))

    def decide(self, scores: FloatArray, columns: Columns) -> IntArray:
        """The index (n,) of the class decided by scores (n, C); of equal sums the first."""
        checked = check_scores(scores, 2)
        if checked.shape[1] != len(self.offsets):
            raise InvalidInputError(
                f"the decision has offsets for {len(self.offsets)} classes, got scores of "
                f"{checked.shape[1]}.",
                argument="decision",
            )
        # Offsets are tuned on rounded scores, where rows of a small tree or forest are often tied.
        return _decided_classes(rounded_scores(checked), np.asarray(self.offsets))


@has_state
@dataclass(frozen=True)
class AdjustedPredictions(Rule):
    """Predicts offset + factor·ŷ, or exp(offset + factor·log ŷ) with `log`, as found by `tune`.

    With `log` a negative prediction keeps its sign and is adjusted by its size; zero stays zero.
    """

    offset: float = 0.0
    factor: float = 1.0
    log: bool = False

    wanted: ClassVar[Mapping[str, Wanted]] = {"offset": FINITE, "factor": POSITIVE, "log": FLAG}

    def decide(self, predictions: FloatArray, columns: Columns) -> FloatArray:
        """The adjusted predictions (n,)."""
        return self._adjusted(check_scores(predictions))

    def _adjusted(self, predictions: FloatArray) -> FloatArray:
        if self.offset == 0 and self.factor == 1:
            return predictions.copy()  # exact, which exp(log ŷ) is not
        with np.errstate(over="ignore", divide="ignore"):
            if not self.log:
                return self.offset + self.factor * predictions
            size = np.exp(self.offset + self.factor * np.log(np.abs(predictions)))
        return np.copysign(size, predictions)


TunedRule = TunedThreshold | GroupThresholds | ClassOffsets | AdjustedPredictions


@dataclass
class _Asked:
    """The metric as a function of decisions, called once for each and at most as often as calls are left."""

    value: Callable[[Array], float]
    values: Callable[[Array], Any] | None
    undefined_is_lowest: bool
    left: int
    known: dict[bytes, float] = field(default_factory=dict)

    def __call__(self, decisions: Array) -> float:
        """The metric; −inf where it is undefined, or where no call is left."""
        key = blake2b(np.ascontiguousarray(decisions).data, digest_size=16).digest()
        if key not in self.known and self.left:
            self.left -= 1
            try:
                self.known[key] = _or_lowest(self.value(decisions))
            except UndefinedMetricError:
                self.known[key] = -np.inf
        return self.known.get(key, -np.inf)

    def above(self, scores: FloatArray, thresholds: Sequence[float]) -> list[float]:
        """The metric of "above the threshold" at each of the thresholds."""
        if self.values is not None and 1 < len(thresholds) <= self.left:
            found = self.values(scores > np.asarray(thresholds)[:, None])
            if found is not None:
                self.left -= len(thresholds)
                return [_or_lowest(value) for value in found]
        return [self(scores > threshold) for threshold in thresholds]

    def best_threshold(
        self,
        scores: FloatArray,
        start: float,
        n_calls: int,
        values_at: Callable[[Sequence[float]], list[float]] | None = None,
    ) -> float:
        """The threshold of scores (n,) with the highest smoothed value; `start` unless another is better.

        Three quarters of the calls go over all rows, the others between the neighbours of the best of these.
        """
        values_at = values_at or partial(self.above, scores)
        descending, n_rows = np.sort(scores)[::-1], len(scores)
        possible = cuts_of(descending)
        own = int(np.count_nonzero(scores > start))
        values = {own: values_at([start])[0]}  # by the number of selected rows

        def ask(cuts: Sequence[int]) -> None:
            new = [m for m in cuts if m not in values]
            values.update(zip(new, values_at([threshold_selecting(descending, m) for m in new]), strict=True))

        n_fine = n_calls // 4
        ask(_cuts_over_all(possible, n_calls - 1 - n_fine))
        best = self._peak(values, own, n_rows, 0, n_rows)
        if best != own:
            known = sorted(values)
            place = known.index(best)
            low, high = known[max(place - 1, 0)], known[min(place + 1, len(known) - 1)]
            between = possible[(possible > low) & (possible < high)]
            if len(between):
                ask(_nearest(between, np.linspace(between[0], between[-1], n_fine + 2)[1:-1]))
            best = self._peak(values, best, n_rows, low, high)
        # A peak of the smoothed values may itself be lower than where the search began.
        return start if best == own or values[best] < values[own] else threshold_selecting(descending, best)

    def _peak(self, values: Mapping[int, float], own: int, n_rows: int, low: int, high: int) -> int:
        """The number of selected rows from `low` to `high` with the highest smoothed value.

        It is `own` if that has it, else the middle of the longest run that has it.
        """
        cuts = np.array(sorted(values))
        raw = np.array([values[int(m)] for m in cuts])
        defined = np.isfinite(raw)
        if not defined.any():
            return own
        filled = np.where(defined, raw, raw[defined].min())
        if not self.undefined_is_lowest:
            filled = np.interp(cuts, cuts[defined], raw[defined])
        smoothed = _smoothed(cuts, filled, max(WINDOW, NEAR * n_rows))
        smoothed[~defined | (cuts < low) | (cuts > high)] = -np.inf
        highest = smoothed.max()
        at_top = smoothed >= highest - _tolerance(float(highest))
        if at_top[np.searchsorted(cuts, own)]:
            return own
        edges = np.flatnonzero(np.diff(np.concatenate(([False], at_top, [False])).astype(np.int8)))
        runs = zip(edges[::2], edges[1::2], strict=True)
        first, end = max(runs, key=lambda run: (run[1] - run[0], -run[0]))
        return int(cuts[(first + end - 1) // 2])


def _or_lowest(value: float) -> float:
    return float(value) if np.isfinite(value) else -np.inf


def _cuts_over_all(possible: IntArray, n_cuts: int) -> list[int]:
    """At most `n_cuts` of the numbers of selected rows (p,) that thresholds can separate.

    Half of them are evenly spaced shares of the rows, half have evenly spaced log odds, so that a rare class
    has thresholds among the few rows of the highest scores.
    """
    if len(possible) <= n_cuts:
        return [int(m) for m in possible]
    n_rows = int(possible[-1])
    n_even = n_cuts // 2 + 1
    log_odds = np.linspace(-1.0, 1.0, n_cuts - n_even) * np.log(n_rows)
    shares = np.concatenate((np.linspace(0.0, 1.0, n_even), 1 / (1 + np.exp(-log_odds))))
    return _nearest(possible, shares * n_rows)


def _nearest(possible: IntArray, wanted: FloatArray) -> list[int]:
    """The distinct entries of `possible`, ascending, that are nearest to the wanted numbers."""
    middles = (possible[1:] + possible[:-1]) / 2
    return [int(m) for m in np.unique(possible[np.searchsorted(middles, wanted)])]


def _smoothed(cuts: IntArray, values: FloatArray, reach: float) -> FloatArray:
    """Means (m,) of each value and its neighbours within `reach` rows, which weigh less the further off.

    Equal weights would move a sharp peak to its gentler side.
    """
    weight = WINDOW + 1.0
    total, weights = weight * values, np.full(len(values), weight)
    for step in range(1, WINDOW + 1):
        near = np.where(cuts[step:] - cuts[:-step] <= reach, weight - step, 0.0)
        total[:-step] += near * values[step:]
        total[step:] += near * values[:-step]
        weights[:-step] += near
        weights[step:] += near
    return np.asarray(total / weights)


def _tune_groups(
    column: str, scores: FloatArray, own: float, asked: _Asked, columns: Columns
) -> tuple[tuple[tuple[Any, float], ...], float]:
    """Thresholds by group, and the common one, which a coordinate ascent begins with: two sweeps over the
    groups, the largest first."""
    names, codes = groups_of_rows(columns, column, len(scores))
    common = asked.best_threshold(scores, own, asked.left // 2)
    thresholds = np.full(len(names), common)

    def values_at(rows: BoolArray, tried: Sequence[float]) -> list[float]:
        others = thresholds[codes]
        return [asked(scores > np.where(rows, threshold, others)) for threshold in tried]

    largest_first = np.argsort(-np.bincount(codes, minlength=len(names)), kind="stable")
    for sweeps_left in (2, 1):
        n_calls = asked.left // sweeps_left
        n_tuned = min(len(names), n_calls // CALLS_FOR_A_GROUP)
        for group in largest_first[:n_tuned]:
            rows, start = codes == group, float(thresholds[group])
            thresholds[group] = asked.best_threshold(
                scores[rows], start, n_calls // n_tuned, partial(values_at, rows)
            )
    return tuple(zip(names, thresholds.tolist(), strict=True)), common


def _tune_classes(scores: FloatArray, asked: _Asked) -> ClassOffsets:
    """Offsets from zero, or from a power of the inverse shares of the classes decided, then one by one.

    A step changes the log odds of a class's share of the rows, whatever the scale of its scores.
    """
    scores = np.asfortranarray(scores)  # sums and maxima over few classes are faster by column
    n_rows, n_classes = scores.shape

    def value_at(offsets: FloatArray) -> float:
        return asked(_decided_classes(scores, offsets))

    best: FloatArray = np.zeros(n_classes)
    best_value = value_at(best)
    counts = np.bincount(_decided_classes(scores, best), minlength=n_classes)
    inverse_shares = -np.log((counts + 1) / (n_rows + n_classes))
    for power in PRIOR_POWERS:
        tried = power * (inverse_shares - inverse_shares.mean())
        if (tried_value := value_at(tried)) > best_value + _tolerance(best_value):
            best, best_value = tried, tried_value
    most_frequent_first = np.argsort(-counts, kind="stable").tolist()
    moves = [partial(_with_other_share, scores, which) for which in most_frequent_first]
    best, _ = _climb(best, value_at, moves, (LARGEST_STEP, SMALLEST_STEP), asked)
    return ClassOffsets(tuple(best.tolist()))


def _with_other_share(scores: FloatArray, which: int, offsets: FloatArray, step: float) -> FloatArray | None:
    """Offsets (C,) at which a class is decided for more or fewer rows, by `step` of its log odds."""
    sums = scores + offsets
    own = sums[:, which].copy()
    sums[:, which] = -np.inf
    with np.errstate(invalid="ignore"):
        lead = own - sums.max(axis=1)  # the class is decided where its lead is positive
    always, never = int(np.sum(lead == np.inf)), int(np.sum(lead == -np.inf))
    finite = lead[np.isfinite(lead)]
    if not len(finite):
        return None
    n_rows = len(lead)
    now = int(np.count_nonzero(lead > 0))
    odds = (now + 0.5) / (n_rows - now + 0.5) * np.exp(step)
    wanted = round((n_rows + 1) * odds / (1 + odds) - 0.5)
    wanted = int(np.clip(max(wanted, now + 1) if step > 0 else min(wanted, now - 1), always, n_rows - never))
    if wanted == now:
        return None
    margin = 2e-3 * (float(np.ptp(finite)) or 1.0)  # beyond all rows
    leads = np.concatenate(([finite.max() + margin], np.sort(finite)[::-1], [finite.min() - margin]))
    high, low = leads[wanted - always], leads[wanted - always + 1]
    if high - low <= _tolerance(low):  # tied rows move together: at their tie, the last digits would decide
        below, above = leads[leads < low - _tolerance(low)], leads[leads > high + _tolerance(low)]
        if step > 0:
            low = below[0] if len(below) else leads[-1]
        else:
            high = above[-1] if len(above) else leads[0]
    moved = offsets.copy()
    moved[which] -= threshold_between(float(low), float(high))
    return moved


def _tune_predictions(predictions: FloatArray, asked: _Asked) -> AdjustedPredictions:
    """Offset and factor by steps from the identity, for predictions and, where positive, their logarithms."""
    best = AdjustedPredictions()
    best_value = asked(best._adjusted(predictions))
    scales = [False, True] if (predictions > 0).all() else [False]
    for log in scales:
        reserve = 0 if log is scales[-1] else asked.left // 2
        tried, value = _climb_on_scale(log, predictions, asked, reserve)
        if value > best_value + _tolerance(best_value):
            best, best_value = tried, value
    return best


def _climb_on_scale(
    log: bool, predictions: FloatArray, asked: _Asked, reserve: int
) -> tuple[AdjustedPredictions, float]:
    line = np.log(predictions) if log else predictions
    # Around the centre offset and factor hardly depend on each other.
    centre = float(np.median(line))
    spread = 1.0 if log else float(np.std(line)) or abs(centre) or 1.0

    def adjusted(point: FloatArray) -> AdjustedPredictions:
        factor = float(np.exp(point[1]))
        return AdjustedPredictions(centre * (1 - factor) + spread * float(point[0]), factor, log)

    def value_at(point: FloatArray) -> float:
        tried = adjusted(point)._adjusted(predictions)
        return asked(tried) if np.isfinite(tried).all() else -np.inf

    moves = [partial(_shifted, direction) for direction in DIRECTIONS]
    steps = (LARGEST_CHANGE, SMALLEST_CHANGE)
    point, value = _climb(np.zeros(2), value_at, moves, steps, asked, reserve)
    return adjusted(point), value


def _shifted(direction: FloatArray, point: FloatArray, step: float) -> FloatArray:
    return np.asarray(point + step * direction)


def _climb(
    start: FloatArray,
    value_at: Callable[[FloatArray], float],
    moves: Sequence[Callable[[FloatArray, float], FloatArray | None]],
    steps: tuple[float, float],
    asked: _Asked,
    reserve: int = 0,
) -> tuple[FloatArray, float]:
    """The best point and value by steps of each of the moves, which are halved where neither sign is better.

    It ends when all steps are below the smallest, or when `reserve` calls are left.
    """
    point, value = start, value_at(start)
    largest, smallest = steps
    step_of = [largest] * len(moves)  # with the sign that was better last
    while max(map(abs, step_of)) >= smallest:
        for k, move in enumerate(moves):
            if abs(step_of[k]) < smallest:
                continue
            for step in (step_of[k], -step_of[k]):
                if asked.left <= reserve:
                    return point, value
                tried = move(point, step)
                tried_value = -np.inf if tried is None else value_at(tried)
                if tried is not None and tried_value > value + _tolerance(value):
                    point, value, step_of[k] = tried, tried_value, step
                    break
            else:
                step_of[k] /= 2
    return point, value


def _tolerance(value: float) -> float:
    return EQUAL * max(1.0, abs(value)) if np.isfinite(value) else 0.0


def _decided_classes(scores: FloatArray, offsets: FloatArray) -> IntArray:
    return np.asarray(np.argmax(scores + offsets, axis=1))
