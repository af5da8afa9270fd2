"""Scores in the metric's own units, as they are reported: of what is handed out, and of every way."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from moew._printable import shortened
from moew._util.seeds import generator
from moew.exceptions import SearchFailedError
from moew.metrics import Predictions
from moew.search._evaluate import FinalModel
from moew.search._guard import Verdict, WayScore, gain_error
from moew.search._honest_score import HonestScore, gain_error_on, no_honest_score
from moew.search._pool import Candidate
from moew.search._prepare import Prepared
from moew.search._result import WayResult
from moew.search._ways import WEIGHTS


def honest_of(prepared: Prepared, score: WayScore, optimism: float) -> HonestScore:
    """A way's score in the metric's own units."""
    metric = prepared.evaluator.metric
    sign = 1.0 if metric.greater_is_better else -1.0
    if prepared.evaluator.constraints:
        # Halves may choose what all rows would not allow, and so score better: no reason to expect more.
        optimism = max(optimism, 0.0)
    value, reason = sign * (score.best - optimism - score.size_bias), None
    n_undefined = int(np.count_nonzero(~np.isfinite(score.crossed)))
    if not math.isfinite(value):
        halves = len(score.crossed)
        reason = (
            f"the metric was undefined on {n_undefined} of {halves} halves of the judged rows; give more "
            "validation rows (of the rarest class), or set rows aside (a holdout) for the honest score."
            if halves
            else "the judged rows are one row, or one group, and have no halves; give more validation rows."
        )
        if score.failure is not None:
            reason += shortened(f" The first failure: {type(score.failure).__name__}: {score.failure}")
    low, high = metric.bounds or (-math.inf, math.inf)
    value = value if math.isnan(value) else min(max(value, low), high)
    return HonestScore(
        value,
        sign * score.best,
        optimism,
        score.size_bias,
        score.error,
        len(score.crossed),
        n_undefined,
        reason,
    )


def honest_scores(
    prepared: Prepared,
    verdict: Verdict,
    unweighted: WayScore | None,
    final: FinalModel,
    plain: FinalModel | None,
) -> tuple[HonestScore, HonestScore, float]:
    """Honest scores of what is handed out and of the unweighted model, and the standard error of the gain."""
    sign = 1.0 if prepared.evaluator.metric.greater_is_better else -1.0
    chosen = verdict.chosen
    if prepared.settings.honest is None:
        nothing = [math.nan if score is None else sign * score.best for score in (chosen, unweighted)]
        return no_honest_score(nothing[0]), no_honest_score(nothing[1]), math.nan
    if prepared.data.holdout is not None:
        return on_holdout(prepared, chosen, unweighted, final, plain)
    if chosen is unweighted:
        alone = honest_of(prepared, chosen, chosen.optimism)
        return alone, alone, 0.0
    whole = honest_of(prepared, chosen, verdict.optimism)
    if unweighted is None:
        return whole, no_honest_score(math.nan, "it has no value"), math.nan
    return whole, honest_of(prepared, unweighted, unweighted.optimism), gain_error(chosen, unweighted)


def on_holdout(
    prepared: Prepared,
    chosen: WayScore,
    unweighted: WayScore | None,
    final: FinalModel,
    plain: FinalModel | None,
) -> tuple[HonestScore, HonestScore, float]:
    """The same from rows that the search did not use."""
    evaluator, rows = prepared.evaluator, prepared.data.holdout
    assert rows is not None
    sign = 1.0 if evaluator.metric.greater_is_better else -1.0
    scored: list[HonestScore] = []
    there: list[Predictions] = []
    for score, model in ((chosen, final), (unweighted, plain)):
        best = math.nan if score is None else sign * score.best
        try:
            if model is None:
                raise SearchFailedError("there is no unweighted model")
            there.append(evaluator.predictions_on(model, rows))
            value = evaluator.value_as_decided(there[-1], rows)
            scored.append(HonestScore(value, best, sign * (best - value), 0.0, math.nan, 0, 0))
        except Exception as error:  # must not lose the result of the search
            scored.append(no_honest_score(best, shortened(f"undefined on the rows set aside: {error}")))
    spread = 0.0 if chosen is unweighted else math.nan
    if chosen is not unweighted and len(there) == 2:
        rng = generator(prepared.seed, "gain")
        spread = gain_error_on(there[0], there[1], rows, evaluator, rng)
    return scored[0], scored[1], spread


def alpha_zero(pool: Sequence[Candidate], numbers: Mapping[str, Sequence[int]]) -> HonestScore:
    """The α = 0 model's score, which is honest: nothing was chosen."""
    for k in numbers.get(WEIGHTS, ()):
        if pool[k].trial.number == 0:
            return HonestScore(pool[k].value, pool[k].value, 0.0, 0.0, math.nan, 0, 0)
    return no_honest_score(math.nan, "it has no value")


def way_result(score: WayScore, verdict: Verdict, prepared: Prepared) -> WayResult:
    honest = honest_of(prepared, score, score.optimism)
    return WayResult(
        score.way.name,
        score.way.simple,
        honest.best,
        honest.value,
        gain_error(score, verdict.chosen),
        len(score.choice.members),
    )
