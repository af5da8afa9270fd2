"""The end of a search: every strategy chooses, one is selected, and its models are trained on all training
rows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from moew._printable import shortened
from moew._util.seeds import generator
from moew.data import strata_of
from moew.exceptions import MoewWarning, SearchFailedError
from moew.metrics import Predictions
from moew.models import ModelEnsemble
from moew.samplers import GpBucb
from moew.search._calibrate import calibrate
from moew.search._choices import Choice, Chooser, Effort, effort_of
from moew.search._evaluate import FinalModel, constant_model
from moew.search._front import ParetoFront, front_of, undefined_metrics
from moew.search._honest_score import (
    HonestScore,
    StrategyScore,
    Verdict,
    gain_error,
    honest_of,
    honest_scores,
    no_honest_score,
    score_strategies,
    select,
    select_best,
    without_contradicted_rows,
)
from moew.search._loop import Outcome, Search, train_all, train_folds, trainings_of
from moew.search._prepare import Prepared
from moew.search._result import (
    EvaluationDecisions,
    EvaluationPredictions,
    FittedSearch,
    SearchResult,
    StrategyResult,
)
from moew.search._strategies import (
    CONSTANT,
    TUNED,
    UNWEIGHTED,
    WEIGHTS,
    Choose,
    Variant,
    list_variants,
    strategy_names,
    unweighted_function,
    with_tuned_decisions,
)
from moew.search._study import Trial, WeightStudy
from moew.types import FloatArray, Training
from moew.weighting import AveragedWeights

_EXAMPLE_ROWS = 200  # that stay with the result when the rest is forgotten


@dataclass(frozen=True)
class _Compared:
    """Finished searches, and the scores of the strategies that chose among their candidates."""

    searches: Mapping[str, Search]
    outcomes: Mapping[str, Outcome]
    pool: Pool  # perhaps with the validation rows alone
    chooser: Chooser
    scores: Mapping[str, StrategyScore]
    notes: list[str]

    @property
    def prepared(self) -> Prepared:
        """The search that was finished."""
        return self.pool.prepared


def conclude(
    prepared: Prepared, searches: Mapping[str, Search], outcomes: Mapping[str, Outcome]
) -> FittedSearch:
    """The record of finished searches: what is selected, what it is worth, and what else was possible."""
    end = _compared(prepared, searches, outcomes)
    prepared, chooser, notes, data = end.prepared, end.chooser, end.notes, end.prepared.data
    verdict = select(list(end.scores.values()), prepared.settings.selects, prepared.evaluator, notes)
    selected, unweighted = verdict.selected, end.scores.get(UNWEIGHTED)
    final = end.pool.train(chooser.with_rule(selected.choice))
    evaluated = EvaluationPredictions(chooser.rows, selected.choice.predictions)
    if prepared.settings.calibrate is not None:
        final, evaluated = end.pool.calibrated(selected.choice, final, evaluated, notes)
    plain = final.model if selected is unweighted else _unweighted_model(end)
    front = None
    if prepared.evaluator.others:
        trials = [candidate.trial for candidate in end.pool.candidates]
        front = front_of(chooser, end.pool.numbers, trials, list(end.scores.values()), selected)
    decisions = None
    if unweighted is not None:
        before, after = (chooser.decisions(score.choice) for score in (unweighted, selected))
        if before is not None and after is not None:
            decisions = EvaluationDecisions(chooser.rows.y, before, after)
    return FittedSearch(
        prepared.settings,
        data.task,
        prepared.evaluator,
        searches[WEIGHTS].study,
        _result(end, verdict, final.model, plain, front),
        final.model,
        final.weights,
        data.training_rows,
        plain,
        final.weight_function,
        data.training.take(np.arange(min(_EXAMPLE_ROWS, len(data.training)))).X,
        fit_params=prepared.fit_params,
        evaluation_predictions=evaluated,
        evaluation_decisions=decisions,
        simple_models=_simple_models(end, plain),
    )


def conclude_alone(
    prepared: Prepared, search: Search, outcome: Outcome, *, tuned: bool = False
) -> tuple[HonestScore, FinalModel]:
    """The single best candidate of one search, with its decisions tuned if `tuned`, and nothing beside it:
    its score and its model."""
    pool = Pool.of(prepared, {search.name: search}, {search.name: outcome})
    effort, _ = effort_of(prepared.evaluator, prepared.data.validation, pool.candidates[0].predictions)
    if prepared.settings.honest is None or prepared.data.holdout is not None:
        effort = effort.without_halves
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # metrics warn where some rows lack a class
        chooser = pool.chooser(effort)
        best: Choose = partial(chooser.best, range(len(pool.candidates)))
        best = with_tuned_decisions(chooser, best) if tuned else best
        (score,) = pool.scores(chooser, [Variant(search.strategy, True, best)], [])
    final = pool.train(chooser.with_rule(score.choice)).model
    honest, _, _ = honest_scores(prepared, (score, score), (final, final), score.optimism)
    return honest, final


def _compared(
    prepared: Prepared, searches: Mapping[str, Search], outcomes: Mapping[str, Outcome]
) -> _Compared:
    """Let every strategy choose; if the training rows are contradicted, all choose again without them."""
    pool = Pool.of(prepared, searches, outcomes)
    study, settings, rule = searches[WEIGHTS].study, prepared.settings, prepared.evaluator.rule
    asked = settings.strategy_names if settings.selects else strategy_names()
    averages = settings.final == "ensemble"
    chooses = settings.selects or averages or prepared.evaluator.constraints or settings.honest is not None
    first = pool.candidates[0].predictions if chooses else None
    effort, notes = effort_of(prepared.evaluator, prepared.data.validation, first)
    if not chooses:  # only apparent scores are looked at
        effort, notes = effort.without_halves, []
    if averages and rule is not None and rule.fit_on == "train":
        averages = False
        why = "a rule fitted on training rows decides for each by itself."
        notes = [*notes, f"the best model is taken alone: {why}"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # metrics warn where some rows lack a class
        for _ in range(2):
            told: list[str] = []
            chooser = pool.chooser(effort)
            smoothed = _smoothed(pool, chooser, study) if settings.final == "smoothed" else None
            strategies = list_variants(chooser, pool.numbers, asked, averages, smoothed)
            scores = pool.scores(chooser, strategies, told)
            looked = without_contradicted_rows(prepared, scores)
            if looked is prepared:
                break
            # The models of the search's folds have chosen; those that are scored learn from all rows.
            prepared = replace(looked, data=replace(looked.data, finalist_folds=looked.data.folds))
            pool = pool.on_given_rows(prepared)
    by_name = {score.variant.name: score for score in scores}
    return _Compared(searches, outcomes, pool, chooser, by_name, [*prepared.notes, *notes, *told])


def _smoothed(pool: Pool, chooser: Chooser, study: WeightStudy) -> Choose:
    """The choice among the candidates of the study by the posterior mean of its sampler's Gaussian process,
    or of a default one."""
    process = study.sampler if isinstance(study.sampler, GpBucb) else GpBucb()
    own = [k for k, candidate in enumerate(pool.candidates) if candidate.study is study]
    points = np.stack([pool.candidates[k].trial.point for k in own])
    smooth = partial(process.posterior_mean, points, domain=study.domain)
    return partial(chooser.smoothed, own, smooth)


def _unweighted_model(end: _Compared) -> FinalModel | None:
    """The unweighted model on all training rows; None, and a note, if there is none."""
    try:
        if UNWEIGHTED not in end.scores:
            outcome = end.outcomes.get(UNWEIGHTED, end.outcomes[WEIGHTS])
            raise SearchFailedError(outcome.trials[0].error or "its metric is undefined")
        return end.pool.train(end.chooser.with_rule(end.scores[UNWEIGHTED].choice)).model
    except Exception as error:  # must not lose the result of the search
        end.notes.append(f"there is no unweighted model to set beside the winner: {error}")
        return None


def _simple_models(end: _Compared, unweighted: FinalModel | None) -> dict[str, FinalModel]:
    """The constant, and the unweighted model with tuned decisions, where these strategies exist."""
    found = {}
    if (constant := end.scores.get(CONSTANT)) is not None:
        found[CONSTANT] = constant_choice(end.prepared, constant.choice).model
    tuned = end.scores.get(TUNED)
    if tuned is not None and tuned.choice.tuned is not None and unweighted is not None:
        found[TUNED] = replace(unweighted, rule=tuned.choice.tuned)
    return found


def _result(
    end: _Compared, verdict: Verdict, final: FinalModel, plain: FinalModel | None, front: ParetoFront | None
) -> SearchResult:
    """What the searches found, in the metric's own units."""
    prepared, main, study = end.prepared, end.outcomes[WEIGHTS], end.searches[WEIGHTS].study
    evaluator, data, selected = prepared.evaluator, prepared.data, verdict.selected
    both = selected, end.scores.get(UNWEIGHTED)
    honest, unweighted, error = honest_scores(prepared, both, (final, plain), verdict.optimism)
    is_same = UNWEIGHTED not in end.searches  # it is a search of its own where α = 0 is another model
    ours = [candidate for candidate in end.pool.candidates if candidate.study is study]
    own = {one.trial.number: one.trial for one in ours}  # with values on the rows that count
    best = ours[select_best(np.array([one.value for one in ours]), study.greater_is_better)].trial
    alpha_zero = unweighted if is_same else no_honest_score(math.nan, "it has no value")
    if not is_same and ours[0].trial.number == 0:  # nothing was chosen, so it is honest
        alpha_zero = HonestScore(ours[0].value, ours[0].value, 0.0, 0.0, math.nan, 0, 0)
    end.notes.extend(_notes(main, study, best, honest))
    if front is not None:
        first = end.pool.candidates[0].predictions
        end.notes.extend(undefined_metrics(evaluator, front, first, data.validation))
    n_others = len(data.validation) - data.n_given_rows
    n_worth = min(data.n_worth, n_others) if data.n_given_rows else n_others
    strategies = []
    for name, score in end.scores.items():
        alone, n_members = honest_of(evaluator, score), len(score.choice.members)
        values = alone.apparent, alone.value, gain_error(score, selected)
        strategies.append(StrategyResult(name, score.variant.simple, *values, n_members))
    parameters = {}
    if prepared.space is not None and selected.choice.members:
        most = selected.choice.members[int(np.argmax(selected.choice.votes))]  # votes; the first of equals
        parameters = {**prepared.space.own, **end.pool.candidates[most].trial.parameters}
    return SearchResult(
        metric=evaluator.metric.name,
        greater_is_better=evaluator.metric.greater_is_better,
        trials=tuple(own.get(trial.number, trial) for trial in main.trials),
        best_number=best.number,
        honest=honest,
        alpha_zero=alpha_zero,
        unweighted=unweighted,
        alpha_zero_is_unweighted=is_same,
        n_validation=data.n_given_rows,
        n_out_of_fold=n_others,
        n_effective=float(data.n_given_rows + n_worth),
        n_holdout=0 if data.holdout is None else len(data.holdout),
        notes=tuple(end.notes),
        gain_error=error,
        strategies=tuple(strategies),
        selected=selected.variant.name,
        reason=verdict.reason,
        n_models=sum(len(outcome.trials) for outcome in end.outcomes.values()),
        best_parameters=parameters,
        stopped=main.stopped,
        cut_off=main.cut_off,
        pareto=front,
    )


def _notes(outcome: Outcome, study: WeightStudy, best: Trial, honest: HonestScore) -> list[str]:
    notes = [str(why) for why in (outcome.stopped, outcome.cut_off) if why is not None]
    if best.number < study.alpha_zero_repeats:
        notes.append("no example weights that were tried beat the weights that the search began with.")
    arrays = outcome.predictions[best.number].arrays
    decisions = arrays.get("decision", arrays.get("predict"))
    if decisions is not None and len(np.unique(decisions)) == 1:  # some metrics score that as perfect
        notes.append("the best candidate decides the same for every evaluation row.")
    failed = [trial for trial in outcome.trials if trial.error is not None]
    if failed:
        first = failed[0]
        notes.append(f"{len(failed)} candidates failed; the first, number {first.number}: {first.error}")
    if honest.reason is not None:
        notes.append(f"no honest score: {honest.reason}")
    return notes


_BY_FEWER_FOLDS = "the finalists are evaluated by the search's folds"


@dataclass(frozen=True)
class Candidate:
    """A trained weighting: the study and trial it comes from, and what it predicted on the evaluation
    rows."""

    study: WeightStudy
    trial: Trial
    predictions: Predictions
    value: float

    @property
    def training(self) -> Training:
        """How its models are trained."""
        (training,) = trainings_of(self.study.weighting, [self.trial])
        return training


@dataclass(frozen=True)
class TrainedChoice:
    """The model of a choice for new rows, and the weights that it was trained with."""

    model: FinalModel
    weights: FloatArray
    weight_function: Any


@dataclass(frozen=True)
class Pool:
    """The candidates of all searches of a fit that have a value, the unweighted model first if it has one,
    and the models of what is chosen among them."""

    prepared: Prepared
    candidates: Sequence[Candidate]
    numbers: Mapping[str, Sequence[int]]  # of the candidates, by strategy

    @classmethod
    def of(cls, prepared: Prepared, searches: Mapping[str, Search], outcomes: Mapping[str, Outcome]) -> Pool:
        """The candidates of finished searches."""
        found: list[Candidate] = []
        numbers: dict[str, list[int]] = {UNWEIGHTED: []}
        holder = UNWEIGHTED if UNWEIGHTED in searches else WEIGHTS  # its first is the unweighted model
        for name in sorted(outcomes, key=lambda name: name != holder):
            study, outcome = searches[name].study, outcomes[name]
            for trial in outcome.trials:
                if trial.number in outcome.predictions:
                    is_unweighted = trial.number == 0 and name == holder
                    strategy = UNWEIGHTED if is_unweighted else searches[name].strategy
                    numbers.setdefault(strategy, []).append(len(found))
                    found.append(Candidate(study, trial, outcome.predictions[trial.number], trial.value))
        return cls(prepared, found, numbers)

    def on_given_rows(self, prepared: Prepared) -> Pool:
        """The candidates as they predicted and scored on the given validation rows, which come first."""
        rows, found = prepared.data.validation, []
        for candidate in self.candidates:
            predictions = candidate.predictions.take(np.arange(len(rows)))
            try:
                value = prepared.evaluator.value(predictions, rows)
            except Exception:  # undefined on these rows
                value = math.nan
            trial = replace(candidate.trial, value=value)
            found.append(replace(candidate, predictions=predictions, value=value, trial=trial))
        return replace(self, prepared=prepared, candidates=found)

    def chooser(self, effort: Effort) -> Chooser:
        """A chooser among the candidates."""
        data, predictions = self.prepared.data, [one.predictions for one in self.candidates]
        values, families = np.array([one.value for one in self.candidates]), list(self.numbers.values())
        evaluator = self.prepared.evaluator
        return Chooser(evaluator, data.validation, data.task, predictions, values, effort, families)

    def scores(
        self, chooser: Chooser, strategies: Sequence[Variant], notes: list[str]
    ) -> list[StrategyScore]:
        """What the strategies are worth."""
        data, finalists = self.prepared.data, partial(self.finalists, chooser, notes)
        strata, rng = strata_of(data.validation.y, data.task), generator(self.prepared.seed, "honest")
        return score_strategies(strategies, chooser, finalists, strata, rng, data.n_given_rows)

    def finalists(
        self, chooser: Chooser, notes: list[str], chosen: Mapping[str, Choice]
    ) -> tuple[Chooser, Mapping[str, Choice]]:
        """What the strategies chose with the predictions of models of more folds, which are nearer to the
        final ones, and who evaluates them; as they are if there are no more folds, or the models fail."""
        if not self.prepared.data.finalist_folds:
            return chooser, chosen
        data, evaluator = self.prepared.data.for_finalists, self.prepared.evaluator
        members = sorted({k for choice in chosen.values() for k in choice.members})
        trainings, predictions = [self.candidates[k].training for k in members], {}
        for place, models in train_folds(self.prepared.trainer, data, trainings):
            try:
                if isinstance(models, Exception):
                    raise models
                predictions[members[place]] = evaluator.predictions(models, data).compact()
            except Exception as error:  # must not lose the result of the search
                notes.append(f"{_BY_FEWER_FOLDS}: {error}")
                return chooser, chosen
        final = Chooser(evaluator, data.validation, data.task, predictions, None, chooser.effort)
        moved = {name: _moved(final, choice) for name, choice in chosen.items()}
        for name, choice in chosen.items():  # what is selected must have a score
            has_value = not math.isnan(chooser.value(choice, chooser.every))
            if has_value and math.isnan(final.value(moved[name], final.every)):
                why = f"by theirs, the metric of {name!r} is no finite number."
                notes.append(f"{_BY_FEWER_FOLDS}: {why}")
                return chooser, chosen
        return final, moved

    def train(self, choice: Choice) -> TrainedChoice:
        """Train the choice's models on all training rows."""
        prepared = self.prepared
        if not choice.members:
            return constant_choice(prepared, choice)
        chosen = [self.candidates[k] for k in choice.members]
        trainings = [one.training for one in chosen]
        models = [one for (one,) in train_all(prepared.trainer, prepared.data.without_folds(), trainings)]
        functions = [one.study.weight_function(one.trial) for one in chosen]
        model, function, votes = models[0], functions[0], choice.votes.tolist()
        if len(models) > 1:
            model = ModelEnsemble(models, choice.votes)
            function = AveragedWeights(tuple(functions), tuple(votes))
        mean = sum((vote * one.weights for vote, one in zip(votes, trainings, strict=True)), np.zeros(1))
        final = prepared.evaluator.final_model(model, choice.predictions, prepared.data, choice.tuned)
        return TrainedChoice(final, mean, function)

    def calibrated(
        self, choice: Choice, trained: TrainedChoice, evaluated: EvaluationPredictions, notes: list[str]
    ) -> tuple[TrainedChoice, EvaluationPredictions]:
        """The choice's model with calibrated probabilities, and those of the evaluation rows."""
        try:
            trainings = [self.candidates[k].training for k in choice.members]
            fitted, raw, told = calibrate(self.prepared, trainings, choice.votes, trained.model.model)
        except Exception as error:  # must not lose the result of the search
            note = shortened(f"the probabilities could not be calibrated: {error}")
            notes.append(note)
            warnings.warn(MoewWarning(note, argument="calibrate"), stacklevel=5)
            return trained, evaluated
        model = replace(trained.model, calibration=fitted)
        return replace(trained, model=model), replace(evaluated, raw=raw, calibrated=told)


def _moved(final: Chooser, choice: Choice) -> Choice:
    """The choice among the predictions of `final`."""
    if not choice.members:
        return replace(choice, part=final.every)
    moved = final.joint(choice.members, choice.votes, final.every)
    return moved if choice.tuned is None else final.tuned(moved) or moved


def constant_choice(prepared: Prepared, choice: Choice) -> TrainedChoice:
    """A model that predicts a constant."""
    training, evaluator = prepared.data.training, prepared.evaluator
    classifies = prepared.data.task == "classification"
    model = constant_model(choice.constant, training.X, training.y, classifies=classifies)
    final = FinalModel(model, None, evaluator.classes, evaluator.pos_label)
    return TrainedChoice(final, training.own_weights, unweighted_function(prepared))
