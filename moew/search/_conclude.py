"""The end of a search: every way chooses, the guard decides which is handed out, and its models are trained
on all training rows."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from moew._util.numbers import number
from moew._util.seeds import generator
from moew.data import LabelledRows
from moew.data._splits import strata_of
from moew.exceptions import MoewWarning, SearchFailedError
from moew.metrics import Predictions
from moew.search._all_metrics import pareto_of, tried_by_all_metrics, undefined_metrics
from moew.search._constrained import judge_of
from moew.search._evaluate import FinalModel
from moew.search._finalists import Finalists
from moew.search._guard import Verdict, WayScore, decide, keeping_constraints, score_ways
from moew.search._handed_out import hand_out, hand_out_constant, with_probabilities
from moew.search._judge import EFFORTS, Choice, Effort, Judge
from moew.search._loop import Outcome, Search
from moew.search._pool import Candidate, main_parameters, pool_of, unweighted_error
from moew.search._prepare import Prepared
from moew.search._reported_scores import alpha_zero, honest_of, honest_scores, on_holdout, way_result
from moew.search._result import FittedSearch, JudgedDecisions, SearchResult
from moew.search._searches import zero_is_unweighted
from moew.search._select import select
from moew.search._study import WeightStudy
from moew.search._ways import CONSTANT, TUNED, UNWEIGHTED, WEIGHTS, best_way, list_ways

_TIMING = 0.5  # seconds of calls of the metric that show how slow it is
_SLOW = (0.003, 0.015, 0.06)  # seconds of a call of the metric from which on the next of EFFORTS is made
_EXAMPLE_ROWS = 200  # that stay with the result


def conclude(
    prepared: Prepared, searches: Mapping[str, Search], outcomes: Mapping[str, Outcome]
) -> FittedSearch:
    """The record of finished searches: what is handed out, what it is worth, and what else was possible."""
    main, study = outcomes[WEIGHTS], searches[WEIGHTS].study
    best = select(main)
    pool, numbers = pool_of(prepared, searches, outcomes)
    notes = list(prepared.notes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # metrics warn where some rows lack a class
        effort = _effort(prepared, pool, notes)
        judge = _judge(prepared, pool, effort, list(numbers.values()))
        ways = list_ways(judge, numbers, averages=_averages(prepared, notes))
        finalists = Finalists(prepared, pool, judge, notes)
        strata = strata_of(prepared.data.validation.y, prepared.data.task)
        scores = score_ways(ways, judge, finalists, strata, generator(prepared.seed, "honest"))
        tried = tried_by_all_metrics(prepared, pool, numbers, judge)
    verdict = _verdict(prepared, scores, notes)
    by_name = {score.way.name: score for score in scores}
    final = hand_out(prepared, pool, verdict.chosen.choice)
    final, judged = with_probabilities(prepared, pool, verdict.chosen.choice, final, judge.rows, notes)
    unweighted = by_name.get(UNWEIGHTED)
    plain: FinalModel | None = final.model
    if verdict.chosen is not unweighted:
        try:
            if unweighted is None:
                raise SearchFailedError(unweighted_error(prepared, searches, outcomes))
            plain = hand_out(prepared, pool, unweighted.choice).model
        except Exception as error:  # must not lose the result of the search
            notes.append(f"there is no unweighted model to set beside the winner: {error}")
            plain = None
    honest, plain_score, spread = honest_scores(prepared, verdict, unweighted, final.model, plain)
    zero = alpha_zero(pool, numbers)
    is_same = zero_is_unweighted(prepared, searches[WEIGHTS].weighting)
    result = SearchResult(
        metric=prepared.evaluator.metric.name,
        greater_is_better=prepared.evaluator.metric.greater_is_better,
        trials=tuple(main.trials),
        best_number=best.number,
        honest=honest,
        alpha_zero=plain_score if is_same else zero,
        unweighted=plain_score,
        alpha_zero_is_unweighted=is_same,
        n_validation=prepared.data.n_given_rows,
        n_out_of_fold=len(prepared.data.validation) - prepared.data.n_given_rows,
        n_holdout=0 if prepared.data.holdout is None else len(prepared.data.holdout),
        gain_error=spread,
        ways=tuple(way_result(score, verdict, prepared) for score in scores),
        chosen=verdict.chosen.way.name,
        reason=verdict.reason,
        n_models=sum(len(outcome.trials) for outcome in outcomes.values()),
        best_parameters=_searched_parameters(prepared, pool, verdict.chosen.choice),
        stopped=main.stopped,
        cut_off=main.cut_off,
        pareto=pareto_of(prepared, tried, scores, verdict.chosen),
    )
    notes += _notes(main, study, result) + undefined_metrics(prepared, pool, result.pareto)
    return FittedSearch(
        prepared.settings,
        prepared.data.task,
        prepared.evaluator,
        study,
        replace(result, notes=tuple(notes)),
        final.model,
        final.weights,
        prepared.data.training_rows,
        plain,
        final.weight_function,
        _example_rows(prepared.data.training),
        fit_params=prepared.fit_params,
        judged_predictions=judged,
        judged_decisions=_judged_decisions(judge, unweighted, verdict.chosen),
        simple_models=_simple_models(prepared, by_name, plain),
    )


def _verdict(prepared: Prepared, scores: Sequence[WayScore], notes: list[str]) -> Verdict:
    """Which way is handed out, of those that keep the constraints."""
    guard, evaluator = prepared.settings.guard, prepared.evaluator
    if not evaluator.constraints:
        return decide(scores, guard)
    allowed, kept = keeping_constraints(scores, guard)
    verdict, bounds = decide(allowed, guard), " and ".join(map(str, evaluator.constraints))
    if kept:
        verdict = replace(verdict, reason=f"{verdict.reason}, of those that keep {bounds}")
    else:
        told = f"nothing that was tried keeps {bounds} with its margin; what comes closest is handed out."
        notes.append(told)
        warnings.warn(MoewWarning(told, argument="constraint"), stacklevel=5)
        verdict = replace(verdict, reason=f"nothing keeps {bounds}, and it comes closest")
    for one in evaluator.constraints:
        chosen = verdict.chosen
        honest = chosen.values[one.name] + chosen.corrections.get(one.name, 0.0)
        if kept and one.excess(honest) > 0:
            notes.append(
                f"corrected for the choice, {one.name} of what is handed out is {number(honest)}: on new "
                f"rows it is expected not to keep {one}."
            )
    return verdict


def _judged_decisions(judge: Judge, unweighted: WayScore | None, chosen: WayScore) -> JudgedDecisions | None:
    """The decisions of both models on the judged rows, where they are recorded."""
    if unweighted is None:
        return None
    before, after = (judge.decisions(score.choice) for score in (unweighted, chosen))
    return None if before is None or after is None else JudgedDecisions(judge.rows.y, before, after)


def _simple_models(
    prepared: Prepared, scores: Mapping[str, WayScore], unweighted: FinalModel | None
) -> dict[str, FinalModel]:
    """The constant, and the unweighted model with tuned decisions, where these ways exist."""
    found = {}
    if (constant := scores.get(CONSTANT)) is not None:
        found[CONSTANT] = hand_out_constant(prepared, constant.choice).model
    tuned = scores.get(TUNED)
    if tuned is not None and tuned.choice.tuned is not None and unweighted is not None:
        found[TUNED] = replace(unweighted, rule=tuned.choice.tuned)
    return found


def _example_rows(rows: LabelledRows) -> Any:
    """A few rows of X, which stay when the rest is forgotten."""
    return rows.take(np.arange(min(_EXAMPLE_ROWS, len(rows)))).X


@dataclass(frozen=True)
class Alone:
    """What one search chose by itself: the best model, and its scores in the metric's own units."""

    best: float
    honest: float
    model: FinalModel


def conclude_alone(prepared: Prepared, search: Search, outcome: Outcome, *, tuned: bool = False) -> Alone:
    """The single best candidate of one search, with its decisions tuned if `tuned`, and nothing beside it."""
    pool = [
        Candidate(search.study, trial, outcome.predictions[trial.number], trial.value)
        for trial in outcome.trials
        if trial.number in outcome.predictions
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # metrics warn where some rows lack a class
        effort = _effort(prepared, pool, [])
        judge = _judge(prepared, pool, effort)
        way = best_way(judge, range(len(pool)), tuned)
        finalists = Finalists(prepared, pool, judge, [])
        strata = strata_of(prepared.data.validation.y, prepared.data.task)
        (score,) = score_ways([way], judge, finalists, strata, generator(prepared.seed, "honest"))
    final = hand_out(prepared, pool, score.choice).model
    honest = honest_of(prepared, score, score.optimism)
    if prepared.settings.honest is None:
        return Alone(honest.best, math.nan, final)
    if prepared.data.holdout is not None:
        honest, _, _ = on_holdout(prepared, score, score, final, final)
    return Alone(honest.best, honest.value, final)


def _effort(prepared: Prepared, pool: Sequence[Candidate], notes: list[str]) -> Effort:
    """How many calls of the metric the choice may take.

    The steps are wide, so that the same search is concluded with the same effort on the same machine;
    `slow=True` or a faster metric is always on one side of them.
    """
    evaluator, rows = prepared.evaluator, prepared.data.validation
    seconds, takes, spent = math.inf, "is slow", 0.0
    # Single calls are slow by chance, or because other processes are at work: the fastest of many counts.
    while seconds >= _SLOW[0] and spent < _TIMING and not evaluator.chooses_slowly:
        took = _timed(evaluator.value, pool[0].predictions, rows)
        for one in evaluator.constraints:
            took += _timed(evaluator.value_of, one.name, pool[0].predictions, rows)
        seconds, spent = min(seconds, took), spent + took
        takes = f"takes {seconds:.2g} s"
    effort = EFFORTS[sum(seconds >= slow for slow in _SLOW)]
    if effort is not EFFORTS[0]:
        notes.append(
            f"the metric {takes}, so honest scores are from {2 * effort.pairs} halves"
            f"{'' if effort.tuning else ', and no decisions are tuned'}."
        )
    return effort


def _timed(function: Any, *arguments: Any) -> float:
    begun = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - begun


def _averages(prepared: Prepared, notes: list[str]) -> bool:
    rule = prepared.evaluator.rule
    if prepared.settings.final == "best":
        return False
    if rule is not None and rule.fit_on == "train":
        notes.append(
            "the best model is taken alone: a rule fitted on training rows decides for each by itself."
        )
        return False
    return True


def _judge(
    prepared: Prepared, pool: Sequence[Candidate], effort: Effort, families: Sequence[Sequence[int]] = ()
) -> Judge:
    data, predictions = prepared.data, [c.predictions for c in pool]
    values = np.array([c.value for c in pool])
    return judge_of(prepared.evaluator, data.validation, data.task, predictions, values, effort, families)


def _searched_parameters(prepared: Prepared, pool: Sequence[Candidate], choice: Choice) -> Mapping[str, Any]:
    """The parameters of the choice, of those that were searched, also where they are the estimator's own."""
    if prepared.space is None or not choice.members:
        return {}
    return {**prepared.space.own, **main_parameters(pool, choice)}


def _notes(outcome: Outcome, study: WeightStudy, result: SearchResult) -> list[str]:
    notes = [str(end) for end in (result.stopped, result.cut_off) if end is not None]
    best = result.best_trial
    if best.number < study.alpha_zero_repeats:
        notes.append("no example weights that were tried beat the weights that the search began with.")
    if _always_the_same(outcome.predictions[best.number]):
        notes.append("the best candidate decides the same for every judged row.")
    failed = [trial for trial in outcome.trials if trial.error is not None]
    if failed:
        notes.append(
            f"{len(failed)} candidates failed; the first, number {failed[0].number}: {failed[0].error}"
        )
    if result.honest.reason is not None:
        notes.append(f"no honest score: {result.honest.reason}")
    return notes


def _always_the_same(predictions: Predictions) -> bool:
    """Whether all recorded decisions are the same, which some metrics score as perfect."""
    decisions = predictions.arrays.get("decision", predictions.arrays.get("predict"))
    return decisions is not None and len(np.unique(decisions)) == 1
