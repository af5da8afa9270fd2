"""The comparison the paper always makes: every weighting at the same number of trained models."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from moew.evaluation import Observation
from moew.exceptions import InvalidInputError
from moew.loop import train_folds
from moew.margins import TWO_SIDED, margin
from moew.problem import Part
from moew.protocols import FloatArray, Labels, Rows
from moew.result import shown
from moew.seeds import generator, integer_seed
from moew.setup import Given, Setup, fit_weighting, set_up, tested_part
from moew.weighting import CovariateShift

METHODS = ("uniform", "random", "importance", "moew")
_BOOTSTRAPS, _SLOW_BOOTSTRAPS = 200, 20
_RANDOM_WEIGHTS = (0.1, 1.9)  # the paper's random weighting, uniform on this range for each row


@dataclass(frozen=True)
class Row:
    """One method: its scores (repeats,) on the validation rows, corrected for the choice, and on test."""

    method: str
    n_models: int  # trained in each repeat
    best: FloatArray
    honest: FloatArray
    test: FloatArray
    note: str = ""

    @property
    def margin(self) -> float:
        """Half the width of the 95 % interval of the mean test score over the repeats."""
        return margin(self.test)


@dataclass(frozen=True)
class Comparison:
    """The table of `compare`; print it. Scores are in the metric's own units."""

    metric: str
    greater_is_better: bool
    rows: tuple[Row, ...]
    repeats: int
    n_test: int
    test_rows_margin: float  # of moew − uniform on test, from resampling the test rows

    def __getitem__(self, method: str) -> Row:
        for row in self.rows:
            if row.method == method:
                return row
        raise KeyError(f"{method!r} is not one of {', '.join(METHODS)}")

    @property
    def difference(self) -> FloatArray:
        """moew − uniform on the test rows, repeat by repeat (repeats,)."""
        return np.asarray(self["moew"].test - self["uniform"].test)

    @property
    def gain(self) -> FloatArray:
        """The same, positive where moew is better, whatever the metric's direction."""
        return self.difference if self.greater_is_better else -self.difference

    @property
    def record(self) -> dict[str, Any]:
        """Everything as JSON can hold it; scores and gains repeat by repeat."""
        return {
            "metric": self.metric,
            "greater_is_better": self.greater_is_better,
            "repeats": self.repeats,
            "n_test": self.n_test,
            "gain": self.gain.tolist(),
            "gain_margin": margin(self.gain),
            "test_rows_margin": self.test_rows_margin,
            "methods": {
                row.method: {
                    "models": row.n_models,
                    "best": row.best.tolist(),
                    "honest": row.honest.tolist(),
                    "test": row.test.tolist(),
                    "margin": row.margin,
                    "note": row.note,
                }
                for row in self.rows
            },
        }

    def __str__(self) -> str:
        better = "higher" if self.greater_is_better else "lower"
        lines = [
            f"{self.metric}, {better} is better; {self.repeats} repeats, {self.n_test:,} test rows",
            f"{'weights':12}{'models':>8}{'best':>11}{'honest':>11}{'test':>11}{'± 95 %':>11}",
        ]
        lines += [
            f"{row.method:12}{row.n_models:>8}{shown(row.best.mean(), 11)}{shown(row.honest.mean(), 11)}"
            f"{row.test.mean():>11.4g}{row.margin:>11.2g}"
            for row in self.rows
        ]
        lines.append(
            f"moew − uniform on test: {self.difference.mean():+.4g} ± {margin(self.gain):.2g} over the "
            f"repeats, ± {self.test_rows_margin:.2g} over the choice of test rows."
        )
        lines.append("best and honest are validation scores: as chosen, and corrected for the choice.")
        return "\n".join([*lines, *(f"{row.method}: {row.note}" for row in self.rows if row.note)])


def compare(
    search: Any,
    X: Rows,
    y: Labels,
    sample_weight: Any = None,
    *,
    X_val: Rows = None,
    y_val: Labels = None,
    X_test: Rows,
    y_test: Labels,
    sample_weight_val: Any = None,
    sample_weight_test: Any = None,
    metadata: Mapping[str, Any] | None = None,
    metadata_val: Mapping[str, Any] | None = None,
    metadata_test: Mapping[str, Any] | None = None,
    repeats: int = 10,
    random_state: int = 0,
) -> Comparison:
    """Compare uniform, random, importance and metric-optimized weights at equal budget.

    Every method trains as many models as `search`, an `ExampleWeightSearch` that is not fitted here,
    picks the one that is best on the validation rows, and is then evaluated once on the test rows. The
    data stay the same in all repeats; seeds differ.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from moew import ExampleWeightSearch
    >>> X, y = make_classification(600, weights=[0.9], flip_y=0.05, random_state=0)
    >>> search = ExampleWeightSearch(
    ...     LogisticRegression(), metric="balanced_accuracy", embedding="label", n_batches=1, batch_size=4
    ... )
    >>> table = compare(
    ...     search, X[:200], y[:200], X_val=X[200:400], y_val=y[200:400],
    ...     X_test=X[400:], y_test=y[400:], repeats=2,
    ... )
    >>> [(row.method, row.n_models) for row in table.rows]  # one model where training again changes nothing
    [('uniform', 1), ('random', 5), ('importance', 1), ('moew', 5)]
    >>> table.gain.shape
    (2,)
    """
    if repeats < 2:
        raise InvalidInputError(f"an error margin needs at least 2 repeats, got {repeats}.")
    if not hasattr(search, "fit_prepared"):
        raise InvalidInputError(f"compare needs an ExampleWeightSearch, got {type(search).__name__}.")
    if search.storage is not None:
        raise InvalidInputError("compare runs many searches of its own: pass a search without a storage.")
    training = Given(X, y, sample_weight, metadata)
    validation = Given(X_val, y_val, sample_weight_val, metadata_val)
    test = Given(X_test, y_test, sample_weight_test, metadata_test)
    seeds = [integer_seed(random_state, "repeat", repeat) for repeat in range(repeats)]
    runs = [
        Contest(clone(search).set_params(random_state=seed), training, validation, test) for seed in seeds
    ]
    answers = {method: [run.answer(method) for run in runs] for method in METHODS}
    metric = runs[0].setup.evaluator.metric
    return Comparison(
        metric.name,
        metric.greater_is_better,
        tuple(_row(method, got) for method, got in answers.items()),
        repeats,
        len(runs[0].test),
        _bootstrap_margin(runs[0], answers, generator(random_state, "bootstrap")),
    )


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
            return self._search(_RandomWeights(problem.training, seed))
        weights: FloatArray = np.ones(len(problem.training))
        note = ""
        if method == "importance" and problem.given_validation:
            weights = self._importance()
        elif method == "importance":
            note = "no validation rows were given, so there is no shift to weight for: uniform."
        return self.answer_fixed(weights, note)

    def answer_fixed(self, weights: FloatArray, note: str = "") -> Answer:
        """The best of as many models, all trained with the same weights (n,)."""
        fixed = _FixedWeights(self.setup.problem.training, weights)
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

    def _is_deterministic(self, fixed: _FixedWeights) -> bool:
        """Whether two seeds give the same answers, so that training again gives nothing new."""
        setup, evaluator = self.setup, self.setup.evaluator
        seeds = [integer_seed(setup.seed, "twin", k) for k in (0, 1)]
        twins = train_folds(setup.trainer, setup.problem, fixed.training_weights(np.zeros((2, 1))), seeds)
        answers = [evaluator.observe(m, setup.problem) for _, m in twins if not isinstance(m, Exception)]
        return len(answers) == 2 and answers[0].equals(answers[1])


class _FixedWeights:
    """The same weights whatever alpha is; stands where an ExampleWeighting does."""

    n_dims = 1

    def __init__(self, training: Part, weights: FloatArray) -> None:
        user = training.sample_weight
        self.weights = weights if user is None else weights * user

    def training_weights(self, alphas: FloatArray) -> FloatArray:
        return np.tile(self.weights, (len(alphas), 1))

    def weight_function(self, alpha: FloatArray) -> None:
        return None


class _RandomWeights(_FixedWeights):
    """The paper's random weighting: alpha, a random number, and the seed are the seeds of the weights."""

    def __init__(self, training: Part, seed: int) -> None:
        super().__init__(training, np.ones(len(training)))
        self.seed = seed

    def training_weights(self, alphas: FloatArray) -> FloatArray:
        bits = np.ascontiguousarray(alphas).view(np.uint32)
        rngs = [np.random.default_rng([self.seed, *row.tolist()]) for row in bits]
        return np.stack([rng.uniform(*_RANDOM_WEIGHTS, len(self.weights)) for rng in rngs]) * self.weights


def _row(method: str, answers: list[Answer]) -> Row:
    return Row(
        method,
        answers[0].n_models,
        np.array([answer.fitted.best_score_ for answer in answers]),
        np.array([answer.fitted.honest_score_ for answer in answers]),
        np.array([answer.test for answer in answers]),
        answers[0].note,
    )


def _bootstrap_margin(run: Contest, answers: Mapping[str, list[Answer]], rng: np.random.Generator) -> float:
    """Half the 95 % width of mean(moew − uniform) when the test rows are drawn again."""
    evaluator, n = run.setup.evaluator, len(run.test)
    gains = []
    n_draws = _SLOW_BOOTSTRAPS if evaluator.metric.slow else _BOOTSTRAPS
    for _ in range(n_draws):
        rows = rng.integers(n, size=n)
        part = run.test.take(rows)
        try:
            moew, uniform = (
                np.mean([evaluator.value(answer.on_test.take(rows), part) for answer in answers[method]])
                for method in ("moew", "uniform")
            )
        except Exception:  # undefined on these rows, such as a group without negatives
            continue
        gains.append(moew - uniform)
    finite = np.isfinite(gains)
    return float(TWO_SIDED * np.std(np.array(gains)[finite])) if finite.sum() > n_draws / 2 else math.nan
