"""What becomes of the candidates of one search: the single best, averages, or a choice by posterior mean.

The last is the remedy for small validation sets of a remark in the paper's source that was not printed. The
metrics of `radius.py` count as slow, so that no decisions are tuned, and a search would then average nothing:
here the averages are made of its candidates: "ensemble" as `final="ensemble"` makes it, and "average", one
model trained with the average of the members' weights, which a search does not offer: it was not better.
"""

from __future__ import annotations

from typing import Any

import checkout  # noqa: F401  # finds experiments/, beside this folder
import numpy as np
from paper_way import PAPER
from radius import PROBLEMS, Part
from sklearn.base import clone

from experiments._posterior_choice import ARGMAX, BEST_TRIAL, best_by_posterior_mean
from moew import MetricSearch
from moew.data import Rows
from moew.models import ModelEnsemble
from moew.samplers import GpBucb
from moew.search._choices import Chooser, Effort
from moew.search._honest_score import select_best
from moew.search._loop import Budget, Outcome, search_side_by_side
from moew.search._prepare import Prepared, prepare
from moew.search._strategies import WEIGHTS, list_searches
from moew.types import FloatArray

SINGLE_BEST = "single best"
FINALS = (SINGLE_BEST, "average", "ensemble", BEST_TRIAL, ARGMAX)
FEWEST = 50  # validation rows


def run_repeat(name: str, number: int, rows: float, common: dict[str, Any]) -> list[float]:
    """Test scores of FINALS of one search, evaluated on a share of the problem's validation rows, or on so
    many of them if it is a whole number."""
    problem = PROBLEMS[name]
    training, (X_val, y_val, columns), test = problem.draw(np.random.default_rng(number))
    # The first rows: their order is random.
    n = rows if isinstance(rows, int) else max(FEWEST, round(rows * len(y_val)))
    validation = X_val[:n], y_val[:n], {column: values[:n] for column, values in columns.items()}
    search = MetricSearch.from_settings(**problem.settings() | PAPER | common | {"random_state": number})
    scores = final_scores(search, training, validation, test, np.random.default_rng(number))
    return [scores[final] for final in FINALS]


def final_scores(
    search: MetricSearch, training: Part, validation: Part, test: Part, rng: np.random.Generator
) -> dict[str, float]:
    """The metric on the test rows of each of FINALS, from one run of a search with GP-BUCB."""
    parts = prepare(search.settings, Rows(*training[:2]), _rows(validation), _rows(test))
    main = list_searches(parts)[WEIGHTS]
    budget = Budget(parts.settings.n_candidates, parts.settings.batch_size)
    (outcome,) = search_side_by_side([main], budget)
    alphas = np.stack([trial.alpha for trial in outcome.trials])
    values = np.array([trial.value for trial in outcome.trials])
    sampler, sign = main.study.sampler, 1.0 if main.study.greater_is_better else -1.0
    assert isinstance(sampler, GpBucb)
    by_mean, argmax = best_by_posterior_mean(sampler, alphas, sign * values, main.study.domain, rng)
    members, votes = _greedy_ensemble(parts, outcome)
    weights = main.weighting.training_weights(alphas[members])

    def score_at(alpha: FloatArray) -> float:
        return score_on_test(parts, model_with(parts, main.weighting.training_weights(alpha[None])[0]))

    return {
        SINGLE_BEST: score_at(alphas[select_best(values, main.study.greater_is_better)]),
        "average": score_on_test(parts, model_with(parts, votes @ weights)),
        "ensemble": score_on_test(parts, ModelEnsemble([model_with(parts, w) for w in weights], votes)),
        BEST_TRIAL: score_at(alphas[by_mean]),
        ARGMAX: score_at(argmax),
    }


def model_with(parts: Prepared, weights: FloatArray) -> Any:
    """The problem's estimator, trained with weights (n,) of the training rows."""
    rows = parts.data.training
    return clone(parts.settings.estimator).fit(rows.X, rows.y, sample_weight=weights)


def score_on_test(parts: Prepared, model: Any) -> float:
    """The metric on the test rows; the decision rule is fitted on the rows that a search fits it on."""
    assert parts.test is not None
    predictions = parts.evaluator.predictions([model], parts.data)
    return parts.evaluator.value_on(parts.evaluator.final_model(model, predictions, parts.data), parts.test)


def _greedy_ensemble(parts: Prepared, outcome: Outcome) -> tuple[list[int], FloatArray]:
    """The numbers of the candidates that a search with a quick metric averages, and their votes."""
    numbers = sorted(outcome.predictions)
    predictions = [outcome.predictions[number] for number in numbers]
    values = np.array([trial.value for trial in outcome.trials if trial.number in outcome.predictions])
    chooser = Chooser(parts.evaluator, parts.data.validation, parts.data.task, predictions, values, Effort())
    choice = chooser.ensemble(range(len(numbers)), chooser.every)
    return [numbers[k] for k in choice.members], choice.votes


def _rows(part: Part) -> Rows:
    return Rows(part[0], part[1], columns=part[2])
