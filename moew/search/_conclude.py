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

from moew._printable import shortened
from moew._util.numbers import number
from moew._util.seeds import generator
from moew.data import LabelledRows, SearchData
from moew.data._splits import strata_of
from moew.exceptions import MoewWarning, SearchFailedError
from moew.metrics import Predictions
from moew.models import ModelEnsemble
from moew.search._calibrate import JudgedPredictions, Members, calibrate
from moew.search._constrained import judge_of
from moew.search._evaluate import FinalModel, constant_model
from moew.search._guard import Verdict, WayScore, decide, gain_error, keeping_constraints, score_ways
from moew.search._honest_score import HonestScore, gain_error_on, no_honest_score
from moew.search._judge import EFFORTS, Choice, Effort, Judge
from moew.search._loop import Outcome, Search, train_folds, train_one
from moew.search._pareto import ParetoFront, TriedModel, with_front
from moew.search._prepare import Prepared
from moew.search._result import FittedSearch, JudgedDecisions, SearchResult, WayResult
from moew.search._searches import simple_name, unweighted_function, zero_is_unweighted
from moew.search._select import select
from moew.search._study import Trial, WeightStudy
from moew.search._ways import CONSTANT, TUNED, UNWEIGHTED, WEIGHTS, best_way, list_ways
from moew.types import FloatArray
from moew.weighting import AveragedWeights

_TIMING = 0.5  # seconds of calls of the metric that show how slow it is
_SLOW = (0.003, 0.015, 0.06)  # seconds of a call of the metric from which on the next of EFFORTS is made
_EXAMPLE_ROWS = 200  # that stay with the result


@dataclass(frozen=True)
class Candidate:
    """A trained weighting: the study and trial it comes from, and what it predicted on the judged rows."""

    study: WeightStudy
    trial: Trial
    predictions: Predictions
    value: float

    @property
    def weights(self) -> FloatArray:
        """The weights (n,) of the training rows."""
        return self.study.training_weights(self.trial)


def conclude(
    prepared: Prepared, searches: Mapping[str, Search], outcomes: Mapping[str, Outcome]
) -> FittedSearch:
    """The record of finished searches: what is handed out, what it is worth, and what else was possible."""
    main, study = outcomes[WEIGHTS], searches[WEIGHTS].study
    best = select(main)
    pool, numbers = _pool(prepared, searches, outcomes)
    notes = list(prepared.notes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # metrics warn where some rows lack a class
        effort = _effort(prepared, pool, notes)
        judge = _judge(prepared, pool, effort, list(numbers.values()))
        ways = list_ways(judge, numbers, averages=_averages(prepared, notes))
        finalists = _Finalists(prepared, pool, judge, notes)
        strata = strata_of(prepared.data.validation.y, prepared.data.task)
        scores = score_ways(ways, judge, finalists, strata, generator(prepared.seed, "honest"))
        tried = _tried_by_all_metrics(prepared, pool, numbers, judge)
    verdict = _verdict(prepared, scores, notes)
    by_name = {score.way.name: score for score in scores}
    final = _final(prepared, pool, verdict.chosen.choice)
    final, judged = _with_probabilities(prepared, pool, verdict.chosen.choice, final, judge.rows, notes)
    unweighted = by_name.get(UNWEIGHTED)
    plain: FinalModel | None = final.model
    if verdict.chosen is not unweighted:
        try:
            if unweighted is None:
                raise SearchFailedError(_unweighted_error(prepared, searches, outcomes))
            plain = _final(prepared, pool, unweighted.choice).model
        except Exception as error:  # must not lose the result of the search
            notes.append(f"there is no unweighted model to set beside the winner: {error}")
            plain = None
    honest, plain_score, spread = _honest_scores(prepared, verdict, unweighted, final.model, plain)
    zero = _alpha_zero(pool, numbers)
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
        ways=tuple(_way_result(score, verdict, prepared) for score in scores),
        chosen=verdict.chosen.way.name,
        reason=verdict.reason,
        n_models=sum(len(outcome.trials) for outcome in outcomes.values()),
        best_parameters=_searched_parameters(prepared, pool, verdict.chosen.choice),
        stopped=main.stopped,
        cut_off=main.cut_off,
        pareto=_pareto(prepared, tried, scores, verdict.chosen),
    )
    notes += _notes(main, study, result) + _undefined(prepared, pool, result.pareto)
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


def _with_probabilities(
    prepared: Prepared,
    pool: Sequence[Candidate],
    choice: Choice,
    final: _Final,
    rows: LabelledRows,
    notes: list[str],
) -> tuple[_Final, JudgedPredictions]:
    """What is handed out with calibrated probabilities where they are asked for; and its predictions on the
    judged rows, `rows`."""
    method, judged = prepared.settings.calibrate, JudgedPredictions(rows, choice.predictions)
    if method is None:
        return final, judged
    chosen = [pool[k] for k in choice.members]
    votes = choice.votes
    weights, parameters = [m.weights for m in chosen], [m.trial.parameters for m in chosen]
    if len(chosen) > 1 and prepared.settings.final == "average":
        weights, parameters = [mean_weights(pool, choice)], [main_parameters(pool, choice)]
        chosen, votes = chosen[:1], np.ones(1)
    members = Members(weights, [m.trial.seed for m in chosen], parameters, votes)
    try:
        fitted, raw, calibrated = calibrate(
            method,
            prepared.evaluator,
            prepared.trainer,
            prepared.data.for_finalists,
            members,
            final.model.model,
            prepared.seed,
        )
    except Exception as error:  # must not lose the result of the search
        told = shortened(f"the probabilities could not be calibrated: {error}")
        notes.append(told)
        warnings.warn(MoewWarning(told, argument="calibrate"), stacklevel=5)
        return final, judged
    model = replace(final.model, calibration=fitted)
    return replace(final, model=model), replace(judged, raw=raw, calibrated=calibrated)


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


def _tried_by_all_metrics(
    prepared: Prepared, pool: Sequence[Candidate], numbers: Mapping[str, Sequence[int]], judge: Judge
) -> list[TriedModel]:
    """The candidates of all searches by all metrics; none if there is only one metric."""
    if not prepared.evaluator.others:
        return []
    way_of = {k: way for way, places in numbers.items() for k in places}
    return [
        TriedModel(
            way_of[k],
            pool[k].trial.number,
            tuple(judge.values_of_all(judge.single(k, judge.every), judge.every).values()),
        )
        for k in range(len(pool))
    ]


def _pareto(
    prepared: Prepared, tried: Sequence[TriedModel], scores: Sequence[WayScore], chosen: WayScore
) -> ParetoFront | None:
    """All that was tried, and what the ways chose, by all metrics; None if there is only one metric."""
    evaluator = prepared.evaluator
    if not evaluator.others:
        return None
    greater = [metric.greater_is_better for metric in evaluator.metrics.values()]
    ways = [
        TriedModel(
            score.way.name,
            None,
            tuple(score.values.values()),
            (
                honest_of(prepared, score, score.optimism).value,  # as in the table of ways
                *(score.values[name] + score.corrections.get(name, math.nan) for name in evaluator.others),
            ),
            () if score.bounds is None else tuple(score.bounds.limits[c.name] for c in evaluator.constraints),
            None if score.bounds is None else score.bounds.kept,
            handed_out=score is chosen,
        )
        for score in scores
    ]
    models = [*ways, *tried]
    front = with_front(models, greater)
    return ParetoFront(
        tuple(evaluator.metrics),
        tuple(greater),
        tuple(map(str, evaluator.constraints)),
        tuple(one.name for one in evaluator.constraints),
        tuple(one.bound for one in evaluator.constraints),
        tuple(replace(model, on_front=bool(on)) for model, on in zip(models, front, strict=True)),
    )


def _undefined(prepared: Prepared, pool: Sequence[Candidate], found: ParetoFront | None) -> list[str]:
    """Which metrics have no value for what is handed out, and why, as far as the first candidate tells."""
    told = []
    for name, value in [] if found is None else zip(found.metrics, found.handed_out.values, strict=True):
        if math.isnan(value):
            why = ""
            try:
                prepared.evaluator.defined_value_of(name, pool[0].predictions, prepared.data.validation)
            except Exception as error:
                why = f": {type(error).__name__}: {error}"
            told.append(shortened(f"{name} of what is handed out has no value{why}"))
    return told


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
        found[CONSTANT] = _constant(prepared, constant.choice).model
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
        finalists = _Finalists(prepared, pool, judge, [])
        strata = strata_of(prepared.data.validation.y, prepared.data.task)
        (score,) = score_ways([way], judge, finalists, strata, generator(prepared.seed, "honest"))
    final = _final(prepared, pool, score.choice).model
    honest = honest_of(prepared, score, score.optimism)
    if prepared.settings.honest is None:
        return Alone(honest.best, math.nan, final)
    if prepared.data.holdout is not None:
        honest, _, _ = _on_holdout(prepared, score, score, final, final)
    return Alone(honest.best, honest.value, final)


def _pool(
    prepared: Prepared, searches: Mapping[str, Search], outcomes: Mapping[str, Outcome]
) -> tuple[list[Candidate], dict[str, list[int]]]:
    """All candidates that have a value, the unweighted model first if it has one, and their places by way."""
    pool: list[Candidate] = []
    numbers: dict[str, list[int]] = {UNWEIGHTED: []}
    holder = _holder_of_unweighted(prepared, searches)
    for name, outcome in sorted(outcomes.items(), key=lambda item: item[0] != holder):
        study = searches[name].study
        for trial in outcome.trials:
            if trial.number not in outcome.predictions:
                continue
            way = name
            if trial.number == 0 and name == holder:
                way = UNWEIGHTED
            numbers.setdefault(way, []).append(len(pool))
            pool.append(Candidate(study, trial, outcome.predictions[trial.number], trial.value))
    return pool, numbers


def _unweighted_error(
    prepared: Prepared, searches: Mapping[str, Search], outcomes: Mapping[str, Outcome]
) -> str:
    """Why the unweighted model has no value."""
    first = outcomes[_holder_of_unweighted(prepared, searches)].trials[0]
    return first.error or "its metric is undefined"


def _holder_of_unweighted(prepared: Prepared, searches: Mapping[str, Search]) -> str:
    """The search whose first candidate is the unweighted model; see `list_searches`."""
    if zero_is_unweighted(prepared, searches[WEIGHTS].weighting):
        return WEIGHTS
    return simple_name(prepared)


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


@dataclass
class _Finalists:
    """Judges what the ways chose by models of more folds, which are nearer to the final ones."""

    prepared: Prepared
    pool: Sequence[Candidate]
    judge: Judge
    notes: list[str]

    def __call__(self, chosen: Mapping[str, Choice]) -> tuple[Judge, dict[str, Choice]]:
        data, judge = self.prepared.data.for_finalists, self.judge
        average = self.prepared.settings.final == "average"
        joint = [c for c in chosen.values() if average and len(c.members) > 1]
        if not self.prepared.data.finalist_folds and not joint:
            return judge, dict(chosen)
        members = sorted({member for choice in chosen.values() for member in choice.members})
        weights = [self.pool[k].weights for k in members]
        seeds = [self.pool[k].trial.seed for k in members]
        parameters = [self.pool[k].trial.parameters for k in members]
        for choice in joint[:1]:  # both ways of example weights have the same members
            weights.append(mean_weights(self.pool, choice))
            seeds.append(self.pool[choice.members[0]].trial.seed)
            parameters.append(main_parameters(self.pool, choice))
        predictions = self._trained(data, weights, seeds, parameters)
        if predictions is None:
            return judge, dict(chosen)
        evaluator = self.prepared.evaluator
        final = judge_of(evaluator, data.validation, data.task, predictions, None, judge.effort)
        place = {member: k for k, member in enumerate(members)}
        moved = {name: self._moved(final, choice, place) for name, choice in chosen.items()}
        for name, choice in chosen.items():  # what is handed out must have a score
            if math.isnan(final.value(moved[name], final.every)) and self._has_value(choice):
                self.notes.append(
                    f"the finalists are judged by the search's folds: by theirs, the metric of {name!r} is "
                    "no finite number."
                )
                return judge, dict(chosen)
        return final, moved

    def _has_value(self, choice: Choice) -> bool:
        return not math.isnan(self.judge.value(choice, self.judge.every))

    def _moved(self, final: Judge, choice: Choice, place: Mapping[int, int]) -> Choice:
        if not choice.members:
            return replace(choice, rows=final.every)
        if len(choice.members) > 1 and self.prepared.settings.final == "average":
            moved = final.single(len(place), final.every)
        else:
            moved = final.joint(tuple(place[k] for k in choice.members), choice.votes, final.every)
        moved = moved if choice.tuned is None else final.tuned(moved) or moved
        return replace(moved, members=choice.members, votes=choice.votes)

    def _trained(
        self,
        data: SearchData,
        weights: Sequence[FloatArray],
        seeds: Sequence[int],
        parameters: Sequence[Mapping[str, Any]],
    ) -> list[Predictions] | None:
        evaluator, trainer = self.prepared.evaluator, self.prepared.trainer
        found: dict[int, Predictions] = {}
        for k, models in train_folds(trainer, data, np.stack(weights), seeds, parameters):
            try:
                if isinstance(models, Exception):
                    raise models
                found[k] = evaluator.predictions(models, data).compact()
            except Exception as error:  # must not lose the result of the search
                self.notes.append(f"the finalists are judged by the search's folds: {error}")
                return None
        return [found[k] for k in range(len(seeds))]


@dataclass(frozen=True)
class _Final:
    """What is handed out: the model for new rows, and the weights it was trained with."""

    model: FinalModel
    weights: FloatArray
    weight_function: Any


def mean_weights(pool: Sequence[Candidate], choice: Choice) -> FloatArray:
    """The members' weights (n,), averaged by their votes."""
    mean: FloatArray = sum(
        (vote * pool[k].weights for k, vote in zip(choice.members, choice.votes.tolist(), strict=True)),
        start=np.zeros(1),
    )
    return mean


def main_parameters(pool: Sequence[Candidate], choice: Choice) -> Mapping[str, Any]:
    """The hyper-parameters of the member with the most votes, the first of equals."""
    return pool[choice.members[int(np.argmax(choice.votes))]].trial.parameters


def _searched_parameters(prepared: Prepared, pool: Sequence[Candidate], choice: Choice) -> Mapping[str, Any]:
    """The parameters of the choice, of those that were searched, also where they are the estimator's own."""
    if prepared.space is None or not choice.members:
        return {}
    return {**prepared.space.own, **main_parameters(pool, choice)}


def _final(prepared: Prepared, pool: Sequence[Candidate], choice: Choice) -> _Final:
    """Train the choice's models on all training rows."""
    data, evaluator = prepared.data, prepared.evaluator
    whole = data.without_folds()
    if not choice.members:
        return _constant(prepared, choice)
    members = [pool[k] for k in choice.members]
    weights = mean_weights(pool, choice) if len(members) > 1 else members[0].weights
    functions = tuple(m.study.weight_function(m.trial) for m in members)
    function = functions[0] if len(members) == 1 else AveragedWeights(functions, tuple(choice.votes.tolist()))
    if len(members) == 1 or prepared.settings.final == "average":
        parameters = main_parameters(pool, choice)
        model = train_one(prepared.trainer, whole, weights, members[0].trial.seed, parameters)[0]
    else:
        stacked, seeds = np.stack([m.weights for m in members]), [m.trial.seed for m in members]
        trained: dict[int, Any] = {}
        each = [m.trial.parameters for m in members]
        for k, found in train_folds(prepared.trainer, whole, stacked, seeds, each):
            if isinstance(found, Exception):
                raise SearchFailedError(f"the model could not be trained: {found}") from found
            trained[k] = found[0]
        model = ModelEnsemble([trained[k] for k in range(len(members))], choice.votes)
    return _Final(evaluator.final_model(model, choice.predictions, data, choice.tuned), weights, function)


def _constant(prepared: Prepared, choice: Choice) -> _Final:
    """A model that predicts a constant."""
    training, evaluator = prepared.data.training, prepared.evaluator
    classifies = prepared.data.task == "classification"
    model = constant_model(choice.constant, training.X, training.y, classifies=classifies)
    ones = unweighted_function(prepared)
    return _Final(FinalModel(model, None, evaluator.classes, evaluator.pos_label), training.own_weights, ones)


def _honest_scores(
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
        return _on_holdout(prepared, chosen, unweighted, final, plain)
    if chosen is unweighted:
        alone = honest_of(prepared, chosen, chosen.optimism)
        return alone, alone, 0.0
    whole = honest_of(prepared, chosen, verdict.optimism)
    if unweighted is None:
        return whole, no_honest_score(math.nan, "it has no value"), math.nan
    return whole, honest_of(prepared, unweighted, unweighted.optimism), gain_error(chosen, unweighted)


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


def _on_holdout(
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


def _alpha_zero(pool: Sequence[Candidate], numbers: Mapping[str, Sequence[int]]) -> HonestScore:
    """The α = 0 model's score, which is honest: nothing was chosen."""
    for k in numbers.get(WEIGHTS, ()):
        if pool[k].trial.number == 0:
            return HonestScore(pool[k].value, pool[k].value, 0.0, 0.0, math.nan, 0, 0)
    return no_honest_score(math.nan, "it has no value")


def _way_result(score: WayScore, verdict: Verdict, prepared: Prepared) -> WayResult:
    honest = honest_of(prepared, score, score.optimism)
    return WayResult(
        score.way.name,
        score.way.simple,
        honest.best,
        honest.value,
        gain_error(score, verdict.chosen),
        len(score.choice.members),
    )


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
