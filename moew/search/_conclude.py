"""What a finished search amounts to: the winner and the unweighted model side by side, honestly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from moew._util.seeds import generator
from moew.exceptions import SearchFailedError
from moew.metrics._observation import Observation
from moew.search._honesty import gain_error, honest_from_halves, honest_from_holdout, no_honest_score
from moew.search._loop import Outcome, train_one
from moew.search._prepare import Setup
from moew.search._result import SearchResult
from moew.search._selection import HonestScore
from moew.search._study import WeightStudy
from moew.types import DecisionRule, FloatArray

_EDGE = 0.02  # a winner this close to the edge of the ball, as a share of the radius, is reported
_SAME = 1e-9  # relative difference of weights below which they train the same model


@dataclass(frozen=True)
class Delivered:
    """A model for new rows, trained on all training rows, and the rule that it decides with."""

    model: Any
    rule: DecisionRule | None


@dataclass(frozen=True)
class Conclusion:
    """The winner, the unweighted model (None where it failed or was not asked for) and the record."""

    winner: Delivered
    weights: FloatArray  # (n,), the winner's, of the training rows
    unweighted: Delivered | None
    result: SearchResult


def conclude(
    outcome: Outcome, setup: Setup, weighting: Any, study: WeightStudy, honest: Any, beside_unweighted: bool
) -> Conclusion:
    """Judge the winner, and beside it two models that nobody chose: that of α = 0, and, with
    `beside_unweighted`, the one that is trained without any weights but the user's."""
    judge = _Judge(setup, honest)
    number = outcome.best.candidate.number
    winner = _candidate(number, outcome, setup, weighting)
    score = judge.score(winner, outcome.observations, outcome.values)
    alpha_zero, alpha_zero_score = winner, score
    if number != 0:
        alpha_zero = _candidate(0, outcome, setup, weighting)
        alpha_zero_score = judge.score(alpha_zero)
    own = _own_weights(setup)
    is_same = bool(np.allclose(alpha_zero.weights, own, rtol=_SAME, atol=0))
    plain, plain_score = alpha_zero, alpha_zero_score  # one and the same, where π = 1
    if not is_same:
        plain = _Contender(setup, own, alpha_zero.seed, reason="not asked for")
        if beside_unweighted:
            plain = _trained(plain)
        plain_score = judge.score(plain)
    result = SearchResult(
        metric=setup.evaluator.metric.name,
        greater_is_better=setup.evaluator.metric.greater_is_better,
        candidates=tuple(outcome.candidates),
        best_number=number,
        honest=score,
        alpha_zero=alpha_zero_score,
        unweighted=plain_score,
        alpha_zero_is_unweighted=is_same,
        n_validation=len(setup.problem.validation),
        n_holdout=0 if setup.problem.holdout is None else len(setup.problem.holdout),
        gain_error=judge.gain_error(winner, plain, score) if beside_unweighted else math.nan,
    )
    notes, delivered = _notes(outcome, study, result), None
    if beside_unweighted:
        try:
            delivered = plain.delivered
        except Exception as error:  # what the search found is worth more than this model
            notes.append(f"there is no unweighted model to set beside the winner: {error}")
    return Conclusion(winner.delivered, winner.weights, delivered, replace(result, notes=tuple(notes)))


@dataclass
class _Contender:
    """A model to be judged: its weights (n,) and seed, its metric and answers on the validation rows, and
    its models, one a fold, where they are at hand. Without an observation, `reason` says why."""

    setup: Setup
    weights: FloatArray
    seed: int
    value: float = math.nan
    observation: Observation | None = None
    models: list[Any] | None = None
    reason: str = "it has no value"
    on_holdout: Observation | None = None  # its answers on rows set aside

    @cached_property
    def delivered(self) -> Delivered:
        """The model for new rows; trained now if there is none that was trained on all training rows."""
        problem, models = self.setup.problem, self.models
        if self.observation is None:
            raise SearchFailedError(self.reason)
        if models is None or problem.cross_validated:
            models = train_one(self.setup.trainer, problem.without_folds(), self.weights, self.seed)
        return Delivered(models[0], self.setup.evaluator.final_rule(models[0], self.observation, problem))


def _candidate(number: int, outcome: Outcome, setup: Setup, weighting: Any) -> _Contender:
    told = outcome.candidates[number]
    weights = weighting.training_weights(told.candidate.alpha[None])[0]
    models = outcome.first_models if number == 0 else None
    if number == outcome.best.candidate.number:
        models = outcome.best_models
    observation = outcome.observations.get(number)
    contender = _Contender(setup, weights, told.candidate.seed, told.value, observation, models)
    return contender if told.error is None else replace(contender, reason=told.error)


def _trained(plain: _Contender) -> _Contender:
    """The same with its models, its answers and its metric, or with the reason why it has none."""
    setup = plain.setup
    try:
        models = train_one(setup.trainer, setup.problem, plain.weights, plain.seed)
        observation = setup.evaluator.observe(models, setup.problem)
        value = setup.evaluator.value(observation, setup.problem.validation)
    except Exception as error:  # what the search found is worth more than this model
        return replace(plain, reason=f"{type(error).__name__}: {error}")
    if not math.isfinite(value):
        return replace(plain, value=value, reason="its metric is no finite number")
    return replace(plain, value=value, observation=observation, models=models)


def _own_weights(setup: Setup) -> FloatArray:
    """The user's weights of the training rows, or ones."""
    own = setup.problem.training.sample_weight
    return np.ones(len(setup.problem.training)) if own is None else own


class _Judge:
    """Honest scores, all in the same way."""

    def __init__(self, setup: Setup, honest: Any) -> None:
        self.setup, self.honest = setup, honest

    def score(
        self,
        contender: _Contender,
        rivals: Mapping[int, Observation] | None = None,
        values: Mapping[int, float] | None = None,
    ) -> HonestScore:
        """The honest score of a model that was chosen among `rivals`, or was not chosen at all."""
        if contender.observation is None:
            return no_honest_score(contender.value, contender.reason)
        if self.honest is None:
            return no_honest_score(contender.value)
        problem, evaluator = self.setup.problem, self.setup.evaluator
        if problem.holdout is None:
            rng = generator(self.setup.seed, "honest")
            alone = {0: contender.observation}, {0: contender.value}
            observations, scores = alone if rivals is None or values is None else (rivals, values)
            return honest_from_halves(observations, scores, problem, evaluator, rng)
        try:
            model = contender.delivered
            answers = evaluator.observe_on(model.model, model.rule, problem.holdout)
            value = evaluator.value(answers, problem.holdout)
        except Exception as error:  # what the search found is worth more than this number
            return no_honest_score(contender.value, f"undefined on the rows set aside: {error}")
        contender.on_holdout = answers
        return honest_from_holdout(contender.value, value, evaluator)

    def gain_error(self, winner: _Contender, plain: _Contender, score: HonestScore) -> float:
        """Standard error of the winner's gain, on the rows that the honest scores are from.

        Beside the chance of the rows, what was taken off for the luck of the choice is an estimate, too.
        That its error is about as large as itself is what benchmarks/gain_interval.py shows to be needed;
        rows set aside need no such thing.
        """
        if winner is plain:
            return 0.0
        problem = self.setup.problem
        part, one, other = problem.validation, winner.observation, plain.observation
        if problem.holdout is not None:
            part, one, other = problem.holdout, winner.on_holdout, plain.on_holdout
        if one is None or other is None or self.honest is None:
            return math.nan
        rng = generator(self.setup.seed, "gain")
        error = gain_error(one, other, part, self.setup.evaluator, problem.task, rng)
        return math.hypot(error, score.optimism) if problem.holdout is None else error


def _notes(outcome: Outcome, study: WeightStudy, result: SearchResult) -> list[str]:
    notes = []
    best = outcome.best.candidate
    if best.number < study.alpha_zero_repeats:
        notes.append("no weighting beat alpha = 0; the winner is the model of alpha = 0 itself.")
    elif float(study.domain.edge_distance(best.alpha)) < _EDGE:
        notes.append(
            f"the winner lies at the edge of the domain (radius {study.domain.size:g}); "
            "a larger radius may find better weights."
        )
    if result.is_below_unweighted:
        notes.append(
            f"the unweighted model scores better than the winner on these rows, {result.unweighted.best:.4g} "
            f'against {result.honest.best:.4g}: try base_weights="uniform".'
        )
    if _always_the_same(outcome.observations[best.number]):
        notes.append("the winner decides the same for every validation row.")
    failed = [told for told in outcome.candidates if told.error is not None]
    if failed:
        number, error = failed[0].candidate.number, failed[0].error
        notes.append(f"{len(failed)} candidates failed; the first, number {number}: {error}")
    if result.honest.reason is not None:
        notes.append(f"no honest score: {result.honest.reason}")
    return notes


def _always_the_same(observation: Observation) -> bool:
    """Whether recorded decisions of classes hold one value only: some metrics call that perfect."""
    arrays = observation.outputs.arrays
    decisions = arrays.get("decision", arrays.get("predict"))
    return observation.scores is None and decisions is not None and len(np.unique(decisions)) == 1
