"""Which candidate is best, and which strategy is selected: that with the best honest score, or the simplest
that is as good."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from moew._util.margins import TWO_SIDED, is_beyond_chance
from moew._util.numbers import number, with_margin
from moew.exceptions import InvalidInputError, MoewWarning, SearchFailedError
from moew.search._evaluate import Evaluator
from moew.search._honest_score import StrategyScore, gain_error, luck_of_selection
from moew.search._strategies import CONSTANT, UNWEIGHTED
from moew.types import FloatArray

# The loss of the rule with this and other numbers: benchmarks/selection_rule.py, docs/decisions.md.
NEAR = 0.25  # a simpler strategy is as good as the best one if it is behind by no more standard errors
_ROUNDING = 1e-9  # relative difference of values that are the same


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


def decide(scores: Sequence[StrategyScore], selects: bool) -> Verdict:
    """Select the strategy with the best honest value, or the simplest that is as good; unless `selects`, only
    example weights may be selected. The strategies come in the order of their simplicity."""
    eligible = _eligible(scores) if selects else [score for score in scores if not score.variant.simple]
    best = _best(eligible)
    chosen = next(score for score in eligible if _is_as_good(score, best))
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
    else:
        luck = optimism - chosen.optimism  # its error is as in the gain's interval: see `honest_scores`
        errors = (gain_error(chosen, other, luck) for other in simpler)
        ahead = (is_beyond_chance(honest - o.honest, e) for o, e in zip(simpler, errors, strict=True))
        reason = AHEAD if all(ahead) else LEADS
        if any(o.variant.name == UNWEIGHTED and honest <= o.honest for o in simpler):
            reason = NO_GAIN  # selected all the same: large gains from few rows would be given away
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
    apart, error = abs(chosen.honest - best.honest), gain_error(chosen, best)
    return best if apart <= CLOSE * error < math.inf else None


def _eligible(scores: Sequence[StrategyScore]) -> list[StrategyScore]:
    """The strategies that may be selected: a constant, which looks at no feature, only if it is ahead of the
    unweighted model beyond chance."""
    plain = next((score for score in scores if score.variant.name == UNWEIGHTED), None)

    def may_be_selected(score: StrategyScore) -> bool:
        if plain is None or score.variant.name != CONSTANT:
            return True
        return is_beyond_chance(score.honest - plain.honest, gain_error(score, plain))

    return list(filter(may_be_selected, scores))


def _is_as_good(score: StrategyScore, best: StrategyScore) -> bool:
    """Whether a strategy is as good as the best one."""
    behind = best.honest - score.honest
    return score is best or _is_equal(score, best) or behind <= NEAR * gain_error(best, score)


def _is_equal(one: StrategyScore, other: StrategyScore) -> bool:
    return math.isclose(one.honest, other.honest, rel_tol=_ROUNDING)


def _best(scores: Sequence[StrategyScore]) -> StrategyScore:
    """The strategy with the highest honest value, the simplest among equals; without any, that with the
    highest value on the evaluation rows."""
    if finite := [score for score in scores if math.isfinite(score.honest)]:
        return max(finite, key=lambda score: score.honest)
    known = [score for score in scores if math.isfinite(score.apparent)]
    return max(known, key=lambda score: score.apparent, default=scores[0])
