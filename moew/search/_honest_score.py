"""Honest scores: what was chosen as the best of much is worth less on new rows than where it was chosen.

In the order of docs/honest-score.md: which rows a score is from (`Origins`, `OnBothKinds`), how it is made
(`score_strategies`, `StrategyScore`, `luck_of_selection`), how sure a gain is (`gain_error`), and what is
reported, from halves or from rows set aside (`HonestScore`). Nothing is trained for that. Then whether the
metric on the validation rows contradicts the training rows (`look_at_unweighted`). At the end the selection
rule: the best honest score, or the simplest strategy that is as good (`select`)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from moew._printable import shortened
from moew._util.margins import TWO_SIDED, is_beyond_chance
from moew._util.numbers import alike, number, with_margin
from moew._util.progress import stage
from moew._util.seeds import generator, integer_seed
from moew.data import LabelledRows, count_groups, strata_of, stratified_halves
from moew.exceptions import InvalidInputError, MoewWarning, SearchFailedError
from moew.metrics import Predictions
from moew.search._choices import EFFORTS, Choice, Chooser, Part
from moew.search._constraints import Bounds
from moew.search._evaluate import Evaluator, FinalModel
from moew.search._loop import train_all
from moew.search._prepare import Prepared
from moew.search._strategies import CONSTANT, TUNED, UNWEIGHTED, Variant, list_variants
from moew.types import FloatArray, IntArray, Training

TRUST = 1 / 3  # see `Origins`; chosen on the problems of DEVELOPMENT in benchmarks/shifted_problems.py
CONTRADICTION = 2.5  # standard errors; chosen there, too
# The loss of the rule with this and other numbers: benchmarks/selection_rule.py, docs/decisions.md.
NEAR = 0.25  # a simpler strategy is as good as the best one if it is behind by no more standard errors
_ROUNDING = 1e-9  # relative difference of values that are the same
ALONE = "no other strategy was asked for"
AHEAD = "ahead of every simpler strategy beyond chance"
LEADS = "the best honest score, though not ahead of every simpler strategy beyond chance"
AS_GOOD = "as good as the best, and simpler"
SIMPLEST = "no strategy has a better honest score"
NO_GAIN = (
    "the best honest score, though not ahead of the unweighted model once the luck of the choice is taken off"
)
NO_SCORE = "the best on the evaluation rows, as no strategy has an honest score"
CLOSE = 1.0  # standard errors: strategies that are nearer are said to be close
_FEWEST_HALVES = 10  # that show whether training rows are of another kind
_GAIN_PAIRS, _SLOW_PAIRS = 50, 10  # pairs of halves for the standard error of fixed models
_SLOW_EFFORT = replace(EFFORTS[-1], pairs=_FEWEST_HALVES // 2)


@dataclass(frozen=True)
class Origins:
    """Which evaluation rows are validation rows, and what they count for in the level of a score.

    Training rows may be off the rows that matter by more than chance lets the validation rows show. So they
    count for `TRUST` of what their number would give them: the best weight if what they are off by has a
    variance of 1 / TRUST − 1 times that of the difference between both kinds.
    """

    n_given: int  # the first rows are the validation rows
    n: int

    @property
    def shares(self) -> FloatArray:
        """The weights of validation and training rows; (1,) where all rows are of one kind."""
        if self.n_given in (0, self.n):
            return np.ones(1)
        training = TRUST * (1 - self.n_given / self.n)
        return np.array([1 - training, training])

    @property
    def codes(self) -> IntArray:
        """The kind (n,) of each row, which halves are stratified by."""
        return (np.arange(self.n) < self.n_given).astype(np.intp)

    def split(self, part: Part) -> list[Part]:
        """The validation and the training rows among these; all of them where there is one kind."""
        given = part.numbers < self.n_given
        return [part] if len(self.shares) == 1 else [part.where(given), part.where(~given)]


@dataclass(frozen=True)
class OnBothKinds:
    """A choice on validation rows and on training rows out of fold."""

    on_given: float
    on_training: float
    given_share: float  # of the validation rows in the level
    apart: FloatArray  # (2E,) on halves of the validation rows less on halves of the training rows

    @property
    def level(self) -> float:
        """The value of both."""
        return self.given_share * self.on_given + (1 - self.given_share) * self.on_training

    @property
    def doubt(self) -> FloatArray:
        """What training rows may be off without contradicting the validation rows, as it moves the level."""
        return (1 - self.given_share) * math.sqrt(1 / TRUST - 1) * self.apart

    @property
    def difference(self) -> float:
        """The value on validation rows less that on training rows, without the biases of their numbers."""
        return 2 * (self.on_given - self.on_training) - _mean(self.apart)

    @property
    def surprise(self) -> float:
        """The difference in its standard errors; NaN where these are unknown, or from too few halves."""
        known = len(self.apart) >= _FEWEST_HALVES and self.error > 0
        return self.difference / self.error if known else math.nan

    @property
    def error(self) -> float:
        """Standard error of the difference."""
        return _spread(self.apart)


@dataclass(frozen=True)
class StrategyScore:
    """What a strategy is worth; signed so that higher is better, NaN where undefined."""

    variant: Variant
    choice: Choice  # made on all evaluation rows, with the predictions of the finalists' folds
    apparent: float  # its value on all evaluation rows
    crossed: FloatArray  # (2J,) on each half, of what the other half chose
    chosen: FloatArray  # (2J,) on each half, of what all rows chose; both by the search's predictions
    own: FloatArray  # (2E,) on other halves, of what all rows chose, by the finalists' predictions
    failure: Exception | None = None  # the first failure of the metric on a half, of any strategy
    moves: FloatArray | None = None  # on halves less on all rows, of what other halves chose
    values: Mapping[str, float] = field(default_factory=dict)  # all metrics on all rows, in their directions
    corrections: Mapping[str, float] = field(default_factory=dict)  # honest less `values`, of other metrics
    bounds: Bounds | None = None  # how it stands to the constraints; None: there are none
    both: OnBothKinds | None = None  # None: all evaluation rows are of one kind

    @property
    def optimism(self) -> float:
        """How much the choice makes its value look better than it is."""
        return _mean(self.chosen - self.crossed)

    @property
    def size_bias(self) -> float:
        """Bias of the metric itself from being computed on few rows: a worst class looks worse on few.

        On half the rows it is twice as large if it falls like 1/n, so the difference is that of all rows. It
        is measured on what other halves chose: what is best on all rows is worse on halves by its luck, too.
        """
        return _mean(self.own) - self._level if self.moves is None else _mean(self.moves)

    @property
    def row_bias(self) -> float:
        """How much the training rows among the evaluation rows make the value look better."""
        return self.apparent - self._level

    @property
    def honest(self) -> float:
        """The value on new rows."""
        return self.corrected(self.optimism)

    def corrected(self, optimism: float) -> float:
        """The value on new rows if choices flatter it by so much."""
        return self._level - optimism - self.size_bias

    @property
    def error(self) -> float:
        """Standard error of the level, of a fixed choice: the delete-half jackknife's, and the doubt."""
        return math.hypot(_spread(self.own), _spread(self.doubt))

    @property
    def doubt(self) -> FloatArray:
        """(2E,), whose spread is the error of the level that training rows may bring in unseen."""
        return np.zeros_like(self.own) if self.both is None else self.both.doubt

    @property
    def _level(self) -> float:
        return self.apparent if self.both is None else self.both.level


def score_strategies(
    strategies: Sequence[Variant],
    chooser: Chooser,
    finalists: Callable[[Mapping[str, Choice]], tuple[Chooser, Mapping[str, Choice]]],
    strata: IntArray,
    rng: np.random.Generator,
    n_given: int = 0,
) -> list[StrategyScore]:
    """The scores of all strategies that exist; `finalists` gives what was chosen on all rows the predictions
    that it is finally evaluated by. The first `n_given` rows are validation rows, the others training
    rows."""
    origins, effort, groups = Origins(n_given, len(strata)), chooser.effort, chooser.rows.groups
    tried = [(strategy, strategy.choose(chooser.every)) for strategy in strategies]
    whole = {strategy.name: choice for strategy, choice in tried if choice is not None}
    there = [strategy for strategy, choice in tried if choice is not None]
    final_chooser, final = finalists(whole)
    can_be_halved = len(strata) > 1 and (groups is None or count_groups(groups) > 1)  # a group is not cut
    n_pairs, n_error_pairs = (effort.pairs, effort.error_pairs) if can_be_halved else (0, 0)
    drawn = _drawn(2 * strata + origins.codes, n_pairs, rng, groups)
    # New rows have other shares of the classes, so the halves that show the error are not stratified by them.
    drawn_for_errors = _drawn(origins.codes, n_error_pairs, rng, groups) or drawn
    halves = _Halves(chooser, origins, [chooser.part(half) for half in drawn])
    # All strategies in turn on each half: a tuned variant needs the last choice of the plain one again.
    on_halves = [{strategy.name: strategy.choose(half) for strategy in there} for half in halves.parts]
    parts: Iterable[Part] = map(final_chooser.part, drawn_for_errors)
    if final_chooser is chooser and drawn_for_errors is drawn:
        parts = halves.parts  # whose values are known
    own = _apart(final_chooser, final, parts, origins)
    on_all = _apart(final_chooser, final, [final_chooser.every], origins)

    def score(strategy: Variant) -> StrategyScore:
        name = strategy.name
        choices, last, evaluator = [one[name] for one in on_halves], final[name], chooser.evaluator
        found = StrategyScore(
            strategy,
            last,
            apparent=final_chooser.value(last, final_chooser.every),
            crossed=halves.crossed(choices),
            chosen=halves.crossed([whole[name]] * len(choices)),
            own=own[name] @ origins.shares,
            failure=chooser.failure or final_chooser.failure,
            moves=halves.moves(choices),
        )
        if len(origins.shares) > 1:
            (given, training), share = on_all[name][0].tolist(), float(origins.shares[0])
            apart = own[name][:, 0] - own[name][:, 1]
            found = replace(found, both=OnBothKinds(given, training, share, apart))
        if evaluator.others or evaluator.constraints:
            values = final_chooser.values_of_all(last, final_chooser.every)
            corrections = halves.corrections(choices, whole[name])
            bounds = final_chooser.bounds(last)
            found = replace(found, values=values, corrections=corrections, bounds=bounds)
        return found

    return [score(strategy) for strategy in there]


def _drawn(
    strata: IntArray, n_pairs: int, rng: np.random.Generator, groups: IntArray | None
) -> list[IntArray]:
    """Halves of all rows; those of a pair follow each other."""
    return [half for _ in range(n_pairs) for half in stratified_halves(strata, rng, groups)]


def _apart(
    chooser: Chooser, choices: Mapping[str, Choice], parts: Iterable[Part], origins: Origins
) -> dict[str, FloatArray]:
    """The values (m, 1 or 2) of each choice on m parts, on their validation and training rows."""
    values: dict[str, list[list[float]]] = {name: [] for name in choices}
    for part in parts:
        kinds = origins.split(part)
        for name, choice in choices.items():
            values[name].append([chooser.value(choice, kind) for kind in kinds])
    return {name: np.array(found).reshape(-1, len(origins.shares)) for name, found in values.items()}


@dataclass(frozen=True)
class _Halves:
    """The halves that strategies choose on, and what their `choices`, one for each, are worth on others."""

    chooser: Chooser
    origins: Origins
    parts: Sequence[Part]

    def crossed(self, choices: Sequence[Choice | None]) -> FloatArray:
        """The value (2J,) on each half of what was chosen on its partner."""
        return np.array(
            [
                math.nan if choice is None else self.chooser.value(choice, self.parts[k ^ 1])
                for k, choice in enumerate(choices)
            ]
        )

    def corrections(self, choices: Sequence[Choice | None], whole: Choice) -> dict[str, float]:
        """What honest values of other metrics are above those on all rows; `whole` was chosen there."""
        several = self.chooser.values_of_all
        found = [
            (several(choice, self.parts[k ^ 1]), several(whole, self.parts[k ^ 1]))
            for k, choice in enumerate(choices)
            if choice is not None
        ]
        others = self.chooser.evaluator.others if found else ()
        return {name: _mean(np.array([one[name] - fixed[name] for one, fixed in found])) for name in others}

    def moves(self, choices: Sequence[Choice | None]) -> FloatArray | None:
        """The value on a half less that on all rows, of each choice on the halves of another pair; None where
        there is no other pair, or no time."""
        n_pairs, value = len(self.parts) // 2, self.chooser.value
        if n_pairs < 2 or not self.chooser.effort.error_pairs:
            return None
        moves, every = [], self.origins.split(self.chooser.every)
        for place, choice in enumerate(choices):
            if choice is None:
                continue
            on_all = np.array([value(choice, kind) for kind in every])
            first = 2 * ((place // 2 + 1) % n_pairs)
            for half in self.kinds[first : first + 2]:
                on_half = np.array([value(choice, kind) for kind in half])
                moves.append(float((on_half - on_all) @ self.origins.shares))
        return np.array(moves)

    @cached_property
    def kinds(self) -> list[list[Part]]:
        """The validation and the training rows of each half."""
        return [self.origins.split(part) for part in self.parts]


def luck_of_selection(scores: Sequence[StrategyScore], chosen: StrategyScore) -> float:
    """How much the choice among the strategies flatters the selected one: what it scores more on halves than
    those that are best on the other halves. Nothing where that is unknown."""
    own = np.array([score.own - score.optimism for score in scores])  # (strategies, 2E)
    if own.shape[1] < 2 or np.isnan(chosen.optimism):
        return 0.0
    partner = np.arange(own.shape[1]) ^ 1  # halves come in pairs
    worth = np.where(np.isfinite(own), own, -np.inf)[:, partner]
    crossed = own[np.argmax(worth, axis=0), np.arange(own.shape[1])]
    luck = _mean(chosen.own - chosen.optimism - crossed)
    return luck if math.isfinite(luck) else 0.0


def gain_error(one: StrategyScore, other: StrategyScore, luck: float = 0.0) -> float:
    """Standard error of the difference of two honest values, for what was chosen, on the same rows; `luck` is
    how much lower the first is because it was selected.

    Errors that both share cancel. The corrections for the choice are estimates, whose errors are taken to be
    as large as their difference, and so is that for the selection.
    """
    if one is other:
        return 0.0
    doubt = _spread(one.doubt - other.doubt)
    error = math.hypot(_spread(one.own - other.own), doubt, one.optimism - other.optimism)
    return math.hypot(error, luck if math.isfinite(luck) else 0.0)


@dataclass(frozen=True)
class HonestScore:
    """A score, corrected for the choices among what was trained; not for candidates proposed by scores.

    `optimism`, `size_bias` and `row_bias` are in the metric's units and positive where they make the model
    look better, so `value` = `apparent` − their sum if greater is better, and + if smaller is.
    """

    value: float  # NaN if it is undefined; see `reason`
    apparent: float  # the score on the rows that it was chosen on
    optimism: float  # from the choice among candidates and strategies, and from fitting decisions
    size_bias: float  # bias of the metric itself from being computed on few rows
    standard_error: float  # of a score on as many rows, for a fixed model (delete-half jackknife)
    n_halves: int
    n_undefined: int  # halves on which the metric was undefined
    reason: str | None = None
    row_bias: float = 0.0  # from training rows among the evaluation rows, for which it is easier or harder


def no_honest_score(value: float, reason: str = "not asked for") -> HonestScore:
    """A record of the apparent score only, with the reason why there is no honest score."""
    nan = math.nan
    return HonestScore(nan, value, nan, nan, nan, 0, 0, reason)


def honest_of(evaluator: Evaluator, score: StrategyScore, optimism: float | None = None) -> HonestScore:
    """A score in the metric's own units, with the optimism of the strategy's own choice, or with another."""
    metric = evaluator.metric
    sign = 1.0 if metric.greater_is_better else -1.0
    optimism = score.optimism if optimism is None else optimism
    if evaluator.constraints:
        # Halves may choose what all rows would not allow, and so score better: no reason to expect more.
        optimism = max(optimism, 0.0)
    n_halves, n_undefined = len(score.crossed), int(np.count_nonzero(~np.isfinite(score.crossed)))
    value, reason = sign * score.corrected(optimism), None
    if math.isfinite(value):
        low, high = metric.bounds or (-math.inf, math.inf)
        value = min(max(value, low), high)
    else:
        reason = _why_undefined(n_halves, n_undefined, score.failure)
    corrections = optimism, score.size_bias, score.error
    apparent = sign * score.apparent
    return HonestScore(value, apparent, *corrections, n_halves, n_undefined, reason, score.row_bias)


def _why_undefined(n_halves: int, n_undefined: int, failure: Exception | None) -> str:
    if not n_halves:
        why = "the evaluation rows are one row, or one group, and have no halves; give more validation rows."
    else:
        why = (
            f"the metric was undefined on {n_undefined} of {n_halves} halves of the evaluation rows; give "
            "more validation rows (of the rarest class), or set rows aside (a holdout) for the honest score."
        )
    first = "" if failure is None else f" The first failure: {type(failure).__name__}: {failure}"
    return why + shortened(first)


def honest_scores(
    prepared: Prepared,
    scores: tuple[StrategyScore, StrategyScore | None],
    models: tuple[FinalModel, FinalModel | None],
    optimism: float,
) -> tuple[HonestScore, HonestScore, float]:
    """Honest scores of what is selected, whose selection made its optimism, and of the unweighted model; and
    the standard error of the gain."""
    evaluator, (selected, unweighted) = prepared.evaluator, scores
    sign = 1.0 if evaluator.metric.greater_is_better else -1.0
    apparent = [math.nan if score is None else sign * score.apparent for score in scores]
    if prepared.settings.honest is None:
        return no_honest_score(apparent[0]), no_honest_score(apparent[1]), math.nan
    if prepared.data.holdout is not None:
        return _on_holdout(prepared, prepared.data.holdout, apparent, models)
    if selected is unweighted:
        alone = honest_of(evaluator, selected)
        return alone, alone, 0.0
    whole = honest_of(evaluator, selected, optimism)
    if unweighted is None:
        return whole, no_honest_score(math.nan, "it has no value"), math.nan
    error = gain_error(selected, unweighted, optimism - selected.optimism)
    return whole, honest_of(evaluator, unweighted), error


def _on_holdout(
    prepared: Prepared, rows: LabelledRows, apparent: Sequence[float], models: Sequence[FinalModel | None]
) -> tuple[HonestScore, HonestScore, float]:
    """The same from rows that the search did not use, by the final models."""
    evaluator, scored, there = prepared.evaluator, [], []
    sign = 1.0 if evaluator.metric.greater_is_better else -1.0
    for best, model in zip(apparent, models, strict=True):
        try:
            if model is None:
                raise SearchFailedError("there is no unweighted model")
            there.append(evaluator.predictions_on(model, rows))
            value = evaluator.value_as_decided(there[-1], rows)
            scored.append(HonestScore(value, best, sign * (best - value), 0.0, math.nan, 0, 0))
        except Exception as error:  # must not lose the result of the search
            scored.append(no_honest_score(best, shortened(f"undefined on the rows set aside: {error}")))
    spread = math.nan
    if models[0] is models[1]:
        spread = 0.0
    elif len(there) == 2:
        spread = gain_error_on(there[0], there[1], rows, evaluator, generator(prepared.seed, "gain"))
    return scored[0], scored[1], spread


def gain_error_on(
    winner: Predictions,
    other: Predictions | None,
    rows: LabelledRows,
    evaluator: Evaluator,
    rng: np.random.Generator,
) -> float:
    """Standard error of (the winner's metric − the other model's) on `rows`, for fixed models whose decisions
    are made; without another model, of the winner's metric alone.

    By the delete-half jackknife of the difference on the same rows: errors that both models share cancel.
    NaN if the metric is undefined on most halves.
    """
    evaluated = rows if evaluator.metric.uses_features else replace(rows, X=np.empty((len(rows), 0)))

    def value(some: IntArray) -> float:
        taken = evaluated.take(some)
        first = evaluator.value_as_decided(winner.take(some), taken)
        return first if other is None else first - evaluator.value_as_decided(other.take(some), taken)

    # New rows have other shares of the classes, so the halves are not stratified.
    alike = np.zeros(len(evaluated), dtype=np.intp)
    n_pairs = _SLOW_PAIRS if evaluator.metric.slow else _GAIN_PAIRS
    moves = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # metrics warn where a half lacks a class
        for _ in range(n_pairs):
            try:
                halves = [value(half) for half in stratified_halves(alike, rng, evaluated.groups)]
            except Exception:  # undefined on a half, such as one without a class
                continue
            moves += halves if np.isfinite(halves).all() else []
        if len(moves) < n_pairs:
            return math.nan
        on_all = value(np.arange(len(evaluated)))
    return float(np.sqrt(np.mean((np.array(moves) - on_all) ** 2)))


def _spread(values: FloatArray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.std()) if len(finite) else math.nan


def _mean(values: FloatArray) -> float:
    """The mean of the finite values; NaN unless they are more than half of them.

    A metric that is defined on one half of every pair only has no value there that was chosen on the other.
    """
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) * 2 > len(values) else math.nan


def look_at_unweighted(prepared: Prepared) -> Prepared:
    """The search as it is, or with the validation rows alone if the unweighted model's scores contradict the
    training rows. The model is trained in the folds of the search for that.

    Training rows that look like the validation rows may still be of another kind: their labels may mean
    something else, or what the metric reads may differ where no ratio of densities shows it.
    """
    data = prepared.data
    if not 0 < data.n_given_rows < len(data.validation):
        return prepared
    told = "comparing training rows with validation rows"
    with stage(told, prepared.settings.verbose), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # metrics warn where some rows lack a class
        try:
            seed = integer_seed(prepared.seed, "first look")
            training = Training(data.training.own_weights, seed)
            (models,) = train_all(prepared.trainer, data, [training])
            predictions = prepared.evaluator.predictions(models, data).compact()
        except Exception:  # the search trains it again, and says why it fails
            return prepared
        effort = _SLOW_EFFORT if prepared.evaluator.chooses_slowly else EFFORTS[0]
        chooser = Chooser(prepared.evaluator, data.validation, data.task, [predictions], None, effort)
        strategies = list_variants(chooser, {UNWEIGHTED: [0]}, (UNWEIGHTED, TUNED), averages=False)
        strata, rng = strata_of(data.validation.y, data.task), generator(prepared.seed, "first look")
        scores = score_strategies(
            strategies, chooser, lambda chosen: (chooser, chosen), strata, rng, data.n_given_rows
        )
    return without_contradicted_rows(prepared, scores)


def without_contradicted_rows(prepared: Prepared, scores: Sequence[StrategyScore]) -> Prepared:
    """The search as it is, or with the validation rows alone if one of these scores contradicts the training
    rows; a note says so."""
    known = [(abs(score.both.surprise), score.variant.name, score.both) for score in scores if score.both]
    against = [one for one in known if one[0] > CONTRADICTION]
    if not against:
        return prepared
    _, strategy, both = max(against, key=lambda one: one[0])
    sign = 1.0 if prepared.evaluator.metric.greater_is_better else -1.0
    values = [sign * both.on_given, sign * both.on_training]
    on_given, on_training = alike(values, errors=[both.error])
    name = "the unweighted model" if strategy == UNWEIGHTED else f"{strategy!r}"
    note = (
        f"training rows are not used for evaluation: {name} scores {on_training} on them and {on_given} on "
        f"the {prepared.data.n_given_rows:,} validation rows."
    )
    # What was said of the evaluation rows before is no longer true.
    notes = [*(note for note in prepared.notes if not note.startswith("evaluated on")), note]
    return replace(prepared, data=prepared.data.on_given_rows(), notes=tuple(notes))


def select_best(scores: FloatArray, greater_is_better: bool) -> int:
    """The index of the best finite score in `scores` (n,), the first among equals."""
    scores = np.asarray(scores, dtype=float)
    if scores.ndim != 1 or len(scores) == 0:
        raise InvalidInputError(f"scores must be a list of at least one score, got shape {scores.shape}.")
    finite = np.isfinite(scores)
    if not finite.any():
        raise SearchFailedError(
            f"none of the {len(scores)} candidates has a finite score; look at their messages for the cause."
        )
    return int(np.argmax(np.where(finite, scores if greater_is_better else -scores, -np.inf)))


@dataclass(frozen=True)
class Verdict:
    """Which strategy is selected, and why."""

    selected: StrategyScore
    reason: str
    honest: float  # the honest value of what is selected, the selection included; signed
    optimism: float  # of the choices among what was trained, the selection included


def decide(scores: Sequence[StrategyScore], selects: bool) -> Verdict:
    """Select the strategy with the best honest value, or the simplest that is as good; unless `selects`, only
    example weights may be selected. The strategies come in the order of their simplicity."""
    eligible = _eligible(scores) if selects else [score for score in scores if not score.variant.simple]
    finite = [score for score in eligible if math.isfinite(score.honest)]
    known = [score for score in eligible if math.isfinite(score.apparent)]
    best = max(known, key=lambda score: score.apparent, default=eligible[0])
    if finite:
        best = max(finite, key=lambda score: score.honest)

    def is_as_good(score: StrategyScore) -> bool:
        behind = best.honest - score.honest
        return score is best or _is_equal(score, best) or behind <= NEAR * gain_error(best, score)

    chosen = next(filter(is_as_good, eligible))
    optimism = chosen.optimism + max(0.0, luck_of_selection(eligible, chosen))
    honest, simpler = chosen.corrected(optimism), eligible[: eligible.index(chosen)]
    if not selects:
        reason = ALONE
    elif not math.isfinite(chosen.honest):
        reason = NO_SCORE
    elif chosen is not best:
        reason = AS_GOOD
    elif not simpler:
        reason = SIMPLEST
    elif any(o.variant.name == UNWEIGHTED and honest <= o.honest for o in simpler):
        reason = NO_GAIN  # selected all the same: large gains from few rows would be given away
    else:
        luck = optimism - chosen.optimism  # its error is as in the gain's interval: see `honest_scores`
        errors = (gain_error(chosen, other, luck) for other in simpler)
        ahead = (is_beyond_chance(honest - o.honest, e) for o, e in zip(simpler, errors, strict=True))
        reason = AHEAD if all(ahead) else LEADS
    return Verdict(chosen, reason, honest, optimism)


def select(scores: Sequence[StrategyScore], selects: bool, evaluator: Evaluator, notes: list[str]) -> Verdict:
    """Which strategy is selected, of those that keep the constraints; what there is to say of it joins the
    notes."""
    if evaluator.constraints:
        return _select_bounded(scores, selects, evaluator, notes)
    verdict = decide(scores, selects)
    chosen, other = verdict.selected, close_to(scores, verdict.selected) if selects else None
    if other is not None:
        apart = chosen.honest - other.honest
        where = "behind" if apart >= 0 else "ahead"
        by = with_margin(abs(apart), TWO_SIDED * gain_error(chosen, other))
        notes.append(
            f"the choice was close: {other.variant.name!r} is {where} by {by}; other rows or another seed "
            "may select it."
        )
    return verdict


def _select_bounded(
    scores: Sequence[StrategyScore], selects: bool, evaluator: Evaluator, notes: list[str]
) -> Verdict:
    """The same of the strategies that keep the constraints; else what comes closest, the simplest among
    equals."""
    told = " and ".join(map(str, evaluator.constraints))
    ours = [(one, one.bounds) for one in scores if one.bounds and (selects or not one.variant.simple)]
    kept = [score for score, bounds in ours if bounds.kept]
    if not kept:
        closest, _ = min(ours, key=lambda pair: pair[1].violation)
        note = f"nothing that was tried keeps {told} with its margin; what comes closest is selected."
        notes.append(note)
        warnings.warn(MoewWarning(note, argument="constraints"), stacklevel=6)  # where `fit` was called
        return replace(decide([closest], selects), reason=f"nothing keeps {told}, and it comes closest")
    verdict = decide(kept, selects)
    chosen = verdict.selected
    for one in evaluator.constraints:
        honest = chosen.values[one.name] + chosen.corrections.get(one.name, 0.0)
        if one.excess(honest) > 0:
            notes.append(
                f"corrected for the choice, {one.name} of the selected model is {number(honest)}: on new "
                f"rows it is expected not to keep {one}."
            )
    return replace(verdict, reason=f"{verdict.reason}, of those that keep {told}")


def close_to(scores: Sequence[StrategyScore], chosen: StrategyScore) -> StrategyScore | None:
    """The best other strategy if it is within a standard error of the chosen one, so that other rows or seeds
    may choose it; not one that has chosen the same."""

    def is_same(score: StrategyScore) -> bool:
        by_rounding = gain_error(score, chosen) <= _ROUNDING * abs(chosen.honest)
        return _is_equal(score, chosen) and by_rounding

    others = [one for one in _eligible(scores) if math.isfinite(one.honest) and not is_same(one)]
    best = max(others, key=lambda score: score.honest, default=None)
    if best is None or not math.isfinite(chosen.honest):
        return None
    return best if abs(chosen.honest - best.honest) <= CLOSE * gain_error(chosen, best) < math.inf else None


def _eligible(scores: Sequence[StrategyScore]) -> list[StrategyScore]:
    """The strategies that may be selected: a constant, which looks at no feature, only if it is ahead of the
    unweighted model beyond chance."""
    plain = next((score for score in scores if score.variant.name == UNWEIGHTED), None)
    return [
        score
        for score in scores
        if plain is None
        or score.variant.name != CONSTANT
        or is_beyond_chance(score.honest - plain.honest, gain_error(score, plain))
    ]


def _is_equal(one: StrategyScore, other: StrategyScore) -> bool:
    return math.isclose(one.honest, other.honest, rel_tol=_ROUNDING)
