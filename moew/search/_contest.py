"""Ways to weight, on the same data, through the same search: same seed, as many trained models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from moew._util.seeds import generator, integer_seed
from moew.data._problem import Part
from moew.metrics._observation import Observation
from moew.search._loop import train_folds
from moew.search._prepare import Given, Setup, fit_weighting, set_up, tested_part
from moew.types import FloatArray
from moew.weighting import CovariateShift

METHODS = ("uniform", "random", "importance", "moew")
_RANDOM_WEIGHTS = (0.1, 1.9)  # the paper's random weighting, uniform on this range for each row


@dataclass(frozen=True)
class Answer:
    """A method's choice in one contest; `fitted` is the search that made it."""

    fitted: Any
    n_models: int
    test: float
    on_test: Observation
    note: str = ""


class Contest:
    """All methods on the same data, with the same seed and budget, through the same search."""

    def __init__(self, search: Any, training: Given, validation: Given, test: Given) -> None:
        self.search = search
        self.setup: Setup = set_up(search, training, validation)
        evaluator, task = self.setup.evaluator, self.setup.problem.task
        self.test: Part = tested_part(test, evaluator, task)
        evaluator.check_test(self.test, self.setup.problem, generator(self.setup.seed, "rehearsal"))

    def answer(self, method: str) -> Answer:
        """The choice of one of METHODS."""
        problem, seed = self.setup.problem, self.setup.seed
        if method == "moew":
            return self._search(fit_weighting(self.search, problem, seed))
        if method == "random":
            return self._search(RandomWeights(problem.training, seed))
        weights: FloatArray = np.ones(len(problem.training))
        note = ""
        if method == "importance" and not problem.given_validation:
            note = "no validation rows were given, so there is no shift to weight for: uniform."
        elif method == "importance" and hasattr(problem.training.X, "tocsr"):
            note = "a shift of sparse rows is not estimated: uniform."
        elif method == "importance":
            weights = self._importance()
        return self.answer_fixed(weights, note)

    def answer_fixed(self, weights: FloatArray, note: str = "") -> Answer:
        """The best of as many models, all trained with the same weights (n,)."""
        fixed = FixedWeights(self.setup.problem.training, weights)
        if self._is_deterministic(fixed):
            note = " ".join([note, "the model is deterministic, so one stands for all."]).strip()
            return self._search(fixed, note, n_batches=1, batch_size=1)
        return self._search(fixed, note)

    def _search(self, weighting: Any, note: str = "", **budget: int) -> Answer:
        searching = clone(self.search).set_params(**budget)
        fitted = searching.fit_prepared(self.setup, weighting, beside_unweighted=False)
        evaluator = self.setup.evaluator
        on_test = evaluator.observe_on(fitted.best_estimator_, fitted.decision_, self.test)
        value = evaluator.value(on_test, self.test)
        n_models = 1 if budget else len(fitted.result_.candidates)
        return Answer(fitted, n_models, value, on_test, note)

    def _importance(self) -> FloatArray:
        problem = self.setup.problem
        shift = CovariateShift(random_state=integer_seed(self.setup.seed, "baseline"))
        training, validation = problem.training, problem.validation
        shift.fit(training.X, training.y, validation.X, validation.y, task=problem.task)
        weights = shift.training_weights_
        return np.asarray(weights / weights.mean())

    def _is_deterministic(self, fixed: FixedWeights) -> bool:
        """Whether two seeds give the same answers, so that training again gives nothing new."""
        setup, evaluator = self.setup, self.setup.evaluator
        seeds = [integer_seed(setup.seed, "twin", k) for k in (0, 1)]
        twins = train_folds(setup.trainer, setup.problem, fixed.training_weights(np.zeros((2, 1))), seeds)
        answers = [evaluator.observe(m, setup.problem) for _, m in twins if not isinstance(m, Exception)]
        return len(answers) == 2 and answers[0].equals(answers[1])


class FixedWeights:
    """The same weights whatever alpha is; stands where an ExampleWeighting does."""

    n_dims = 1

    def __init__(self, training: Part, weights: FloatArray) -> None:
        user = training.sample_weight
        self.weights = weights if user is None else weights * user

    def training_weights(self, alphas: FloatArray) -> FloatArray:
        return np.tile(self.weights, (len(alphas), 1))

    def weight_function(self, alpha: FloatArray) -> None:
        return None


class RandomWeights(FixedWeights):
    """The paper's random weighting: alpha, a random number, and the seed are the seeds of the weights."""

    def __init__(self, training: Part, seed: int) -> None:
        super().__init__(training, np.ones(len(training)))
        self.seed = seed

    def training_weights(self, alphas: FloatArray) -> FloatArray:
        bits = np.ascontiguousarray(alphas).view(np.uint32)
        rngs = [np.random.default_rng([self.seed, *row.tolist()]) for row in bits]
        return np.stack([rng.uniform(*_RANDOM_WEIGHTS, len(self.weights)) for rng in rngs]) * self.weights
