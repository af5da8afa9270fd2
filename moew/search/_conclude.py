"""The result of a finished search: the winner, the α = 0 model and the unweighted model, with honest
scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from moew._util.numbers import number
from moew._util.seeds import generator
from moew.exceptions import SearchFailedError
from moew.metrics import Predictions
from moew.search._evaluate import FinalModel
from moew.search._honest_score import (
    HonestScore,
    gain_error,
    honest_from_halves,
    honest_from_holdout,
    no_honest_score,
)
from moew.search._loop import Outcome, train_one
from moew.search._prepare import Prepared
from moew.search._result import FittedSearch, SearchResult
from moew.search._study import Trial, WeightStudy
from moew.types import FloatArray

_EDGE = 0.02  # a winner this close to the edge of the ball, as a share of the radius, is reported
_SAME = 1e-9  # weights with a smaller relative difference count as the same


def conclude(
    prepared: Prepared, study: WeightStudy, outcome: Outcome, best: Trial, *, beside_unweighted: bool = True
) -> FittedSearch:
    """The record of a finished search with the scores of its winner `best`, of the α = 0 model and, with
    `beside_unweighted`, of the unweighted model, which is trained with the user's own weights only."""
    trials = {trial.number: trial for trial in outcome.trials}
    winner = _judged(prepared, study, outcome, best)
    score = _honest(winner, outcome.predictions, outcome.values)
    alpha_zero, alpha_zero_score = winner, score
    if best.number != 0:
        alpha_zero = _judged(prepared, study, outcome, trials[0])
        alpha_zero_score = _honest(alpha_zero)
    own = prepared.data.training.own_weights
    is_same = bool(np.allclose(alpha_zero.weights, own, rtol=_SAME, atol=0))
    unweighted, unweighted_score = alpha_zero, alpha_zero_score  # the same model if π = 1
    if not is_same:
        unweighted = _Judged(prepared, own, alpha_zero.seed, reason="not asked for")
        if beside_unweighted:
            unweighted = _trained(unweighted)
        unweighted_score = _honest(unweighted)
    data, metric = prepared.data, prepared.evaluator.metric
    result = SearchResult(
        metric=metric.name,
        greater_is_better=metric.greater_is_better,
        trials=tuple(outcome.trials),
        best_number=best.number,
        honest=score,
        alpha_zero=alpha_zero_score,
        unweighted=unweighted_score,
        alpha_zero_is_unweighted=is_same,
        n_validation=len(data.validation),
        n_holdout=0 if data.holdout is None else len(data.holdout),
        gain_error=_gain_error(winner, unweighted, score) if beside_unweighted else math.nan,
    )
    notes, final_unweighted = _notes(outcome, study, result), None
    if beside_unweighted:
        try:
            final_unweighted = unweighted.final
        except Exception as error:  # must not lose the result of the search
            notes.append(f"there is no unweighted model to set beside the winner: {error}")
    return FittedSearch(
        prepared.settings,
        data.task,
        prepared.evaluator,
        study,
        replace(result, notes=tuple(notes)),
        winner.final,
        winner.weights,
        data.training_rows,
        final_unweighted,
    )


@dataclass
class _Judged:
    """A model to score: its weights (n,) and seed, its metric and predictions on the validation rows, and its
    fitted models, one for each fold, if they were kept. Without predictions, `reason` says why."""

    prepared: Prepared
    weights: FloatArray
    seed: int
    value: float = math.nan
    predictions: Predictions | None = None
    models: list[Any] | None = None
    reason: str = "it has no value"
    on_holdout: Predictions | None = None  # on the rows set aside

    @cached_property
    def final(self) -> FinalModel:
        """The model for new rows; trained now if no model trained on all training rows was kept."""
        data, models = self.prepared.data, self.models
        if self.predictions is None:
            raise SearchFailedError(self.reason)
        if models is None or data.cross_validated:
            models = train_one(self.prepared.trainer, data.without_folds(), self.weights, self.seed)
        return self.prepared.evaluator.final_model(models[0], self.predictions, data)


def _judged(prepared: Prepared, study: WeightStudy, outcome: Outcome, trial: Trial) -> _Judged:
    weights = study.training_weights(trial)
    predictions, models = outcome.predictions.get(trial.number), outcome.models.get(trial.number)
    judged = _Judged(prepared, weights, trial.seed, trial.value, predictions, models)
    return judged if trial.error is None else replace(judged, reason=trial.error)


def _trained(judged: _Judged) -> _Judged:
    """Train and score the model; if that fails, the reason is recorded."""
    prepared = judged.prepared
    try:
        models = train_one(prepared.trainer, prepared.data, judged.weights, judged.seed)
        predictions = prepared.evaluator.predictions(models, prepared.data)
        value = prepared.evaluator.value(predictions, prepared.data.validation)
    except Exception as error:  # must not lose the result of the search
        return replace(judged, reason=f"{type(error).__name__}: {error}")
    if not math.isfinite(value):
        return replace(judged, value=value, reason="its metric is no finite number")
    return replace(judged, value=value, predictions=predictions, models=models)


def _honest(
    judged: _Judged,
    rivals: Mapping[int, Predictions] | None = None,
    values: Mapping[int, float] | None = None,
) -> HonestScore:
    """The honest score of a model that was chosen among `rivals` (None: that was not chosen)."""
    prepared = judged.prepared
    data, evaluator = prepared.data, prepared.evaluator
    if judged.predictions is None:
        return no_honest_score(judged.value, judged.reason)
    if prepared.settings.honest is None:
        return no_honest_score(judged.value)
    if data.holdout is None:
        rng = generator(prepared.seed, "honest")
        alone = {0: judged.predictions}, {0: judged.value}
        predictions, scores = alone if rivals is None or values is None else (rivals, values)
        return honest_from_halves(predictions, scores, data, evaluator, rng)
    try:
        predictions_there = evaluator.predictions_on(judged.final, data.holdout)
        value = evaluator.value(predictions_there, data.holdout)
    except Exception as error:  # must not lose the result of the search
        return no_honest_score(judged.value, f"undefined on the rows set aside: {error}")
    judged.on_holdout = predictions_there
    return honest_from_holdout(judged.value, value, evaluator)


def _gain_error(winner: _Judged, unweighted: _Judged, score: HonestScore) -> float:
    """Standard error of the winner's gain, on the rows that the honest scores are from.

    Besides the sampling error of the rows, the correction for the choice (`optimism`) is itself an estimate.
    Its error is taken to be as large as the correction, as benchmarks/gain_interval.py shows to be needed.
    On rows set aside there is no such correction.
    """
    if winner is unweighted:
        return 0.0
    prepared = winner.prepared
    data = prepared.data
    rows, one, other = data.validation, winner.predictions, unweighted.predictions
    if data.holdout is not None:
        rows, one, other = data.holdout, winner.on_holdout, unweighted.on_holdout
    if one is None or other is None or prepared.settings.honest is None:
        return math.nan
    error = gain_error(one, other, rows, prepared.evaluator, data.task, generator(prepared.seed, "gain"))
    return math.hypot(error, score.optimism) if data.holdout is None else error


def _notes(outcome: Outcome, study: WeightStudy, result: SearchResult) -> list[str]:
    notes = []
    best = result.best_trial
    if best.number < study.alpha_zero_repeats:
        notes.append("no weighting beat alpha = 0; the winner is the model of alpha = 0 itself.")
    elif float(study.domain.edge_distance(best.alpha)) < _EDGE:
        notes.append(
            f"the winner lies at the edge of the domain (radius {study.domain.size:g}); "
            "a larger radius may find better weights."
        )
    if result.is_below_unweighted:
        notes.append(
            f"the unweighted model scores better than the winner on these rows, "
            f"{number(result.unweighted.best)} against {number(result.honest.best)}: try uniform base "
            "weights."
        )
    if _always_the_same(outcome.predictions[best.number]):
        notes.append("the winner decides the same for every validation row.")
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
    return predictions.scores is None and decisions is not None and len(np.unique(decisions)) == 1
