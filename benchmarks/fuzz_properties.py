"""What must hold of every finished search, computed again by other means."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from fuzz_cases import checking, expect, expect_close, expect_same
from fuzz_further import check_further
from fuzz_models import Answers, AnswersNumbers
from fuzz_rows import Problem
from scipy.special import expit
from sklearn.base import clone
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.utils import _safe_indexing

from moew import MetricSearch
from moew.data import two_dimensional
from moew.models import ModelEnsemble
from moew.training import weight_name_of, with_seed
from moew.types import FloatArray
from moew.weighting import AveragedWeights, CovariateShift, ExampleWeighting, WeightFunction

_MOST_TRAINED = 3  # candidates that are trained again


def check_result(search: MetricSearch, problem: Problem) -> None:
    """Raise a finding unless scores, weights, trials and predictions of a fitted search belong together."""
    with checking("the properties of a finished search"):
        _check_trials(search, problem)
        _check_predictions(search, problem)
        _check_weights(search, problem)
        _check_score(search, problem)
        repeatable = problem.sound and not search.result_.cut_off
        check_further(search, _evaluation_rows(search, problem) if repeatable else None)
        if problem.sound:
            _check_trained_again(search, problem)
        expect(isinstance(str(search.result_), str), "the result has no text")


def _check_trials(search: MetricSearch, problem: Problem) -> None:
    result = search.result_
    values = np.array([trial.value for trial in result.trials])
    finite = np.isfinite(values)
    expect(finite.any(), "a search without a single value ended well")
    better = values if result.greater_is_better else -values
    best = int(np.argmax(np.where(finite, better, -np.inf)))
    expect(
        result.trials[best].number == result.best_number, f"trial {best} is best, not {result.best_number}"
    )
    expect_same(search.best_alpha_, result.trials[best].alpha, "best_alpha_")
    expect(
        all((trial.error is None) == math.isfinite(trial.value) for trial in result.trials),
        "a trial has both a value and an error, or neither",
    )
    alphas = np.stack([trial.alpha for trial in result.trials])
    settings = search.settings
    radius = 4.0 if settings.radius is None else float(settings.radius)
    expect((np.linalg.norm(alphas, axis=1) <= radius * (1 + 1e-9)).all(), "an alpha lies outside of the ball")
    expect_same(alphas[0], np.zeros(alphas.shape[1]), "the first alpha")
    budget = settings.n_candidates + settings.alpha_zero_repeats
    expect(len(values) <= budget, f"{len(values)} candidates with a budget of {budget}")
    strategies = {strategy.name: strategy for strategy in result.strategies}
    expect(search.selected_ in strategies, f"what was chosen, {search.selected_!r}, is no strategy")
    expect_same(
        strategies[search.selected_].apparent, search.best_score_, "the best score of the chosen strategy"
    )
    repeatable = _is_repeatable(search, problem)  # else another call may have given another value
    expect(math.isfinite(search.best_score_) or not repeatable, "the selected model has no score")
    if search.honest is None:
        expect(math.isnan(search.honest_score_), "an honest score that nobody asked for")


def _check_predictions(search: MetricSearch, problem: Problem) -> None:
    X = problem.rows["X"]
    if search.decision_ is not None and search.decision_.columns:
        return  # it needs columns
    if isinstance(search.estimator, Answers | AnswersNumbers):
        return  # a metric of scores does not see what it predicts
    found = search.predict(X)
    n = two_dimensional(X).shape[0]
    expect(np.shape(found) == (n,), f"predictions of {n} rows have the shape {np.shape(found)}")
    if problem.task == "classification" and problem.sound:
        known = set(search.classes_.tolist())
        expect(set(np.asarray(found).tolist()) <= known, "a prediction is none of the classes")
        if hasattr(search, "predict_proba"):
            shares = search.predict_proba(X)
            expect(shares.shape == (n, len(search.classes_)), f"probabilities have the shape {shares.shape}")
            expect_close(shares.sum(axis=1), np.ones(n), "probabilities do not add up to one", rtol=1e-6)


def recomputed_weights(weighting: ExampleWeighting, alpha: FloatArray) -> FloatArray:
    """Eq. 3 in plain terms: w = c·π·σ(zᵀα)·u, whose mean, each row counted by the user's u, is one."""
    own = np.ones(len(weighting.pi_)) if weighting.sample_weight_ is None else weighting.sample_weight_
    plain = weighting.pi_ * expit(weighting.Z_ @ alpha)
    share = own / own.max()  # the user's weights may be as small as 5e-324
    return np.asarray(plain * own * (share.sum() / (plain * share).sum()))


def _check_weights(search: MetricSearch, problem: Problem) -> None:
    weights, rows = search.sample_weight_, search.training_rows_
    expect(weights.shape == rows.shape, f"{weights.shape} weights of {rows.shape} rows")
    expect(np.isfinite(weights).all() and (weights >= 0).all(), "a weight is negative or not finite")
    given = problem.rows.get("sample_weight")
    own = np.ones(len(rows)) if given is None else np.asarray(given, dtype=float)[rows]
    expect_close(weights.sum(), own.sum(), "the total weight is not that of the user", rtol=1e-6)
    weighting = search.study_.weighting
    if not isinstance(weighting, ExampleWeighting) or float(np.abs(weighting.Z_).max()) > 50:
        return  # the plain formula would underflow
    for trial in search.result_.trials[:_MOST_TRAINED]:
        if float(np.abs(weighting.Z_ @ trial.alpha).max()) < 300:
            found = search.study_.training_weights(trial)
            expect_close(found, recomputed_weights(weighting, trial.alpha), "weights by eq. 3", rtol=1e-6)
    function = search.weight_function_
    alone = function if isinstance(function, WeightFunction) else None
    if alone is not None and alone.embedding is weighting.embedding:
        known = [trial.alpha.tolist() for trial in search.result_.trials]
        expect(alone.alpha.tolist() in known, "the alpha of the selected model was never tried")
        if float(np.abs(weighting.Z_ @ alone.alpha).max()) < 300:
            wanted = recomputed_weights(weighting, alone.alpha)
            expect_close(weights, wanted, "sample_weight_ by eq. 3", rtol=1e-6)
    if problem.sound and not _cross_fitted(function):
        X, y = _taken(problem.rows["X"], rows), _taken(problem.rows["y"], rows)
        expect_close(
            search.example_weights(X, y) * own, weights, "example_weights of the training rows", rtol=1e-6
        )
    if isinstance(function, AveragedWeights):
        expect(isinstance(search.best_estimator_, ModelEnsemble), "no ensemble")


def _cross_fitted(function: Any) -> bool:
    """Whether a weight function has base weights that are others for the training rows than for new ones:
    those of a covariate shift, which importance weights are, too."""
    parts = function.functions if isinstance(function, AveragedWeights) else [function]
    return any(isinstance(getattr(part, "base_weights", None), CovariateShift) for part in parts)


def _taken(values: Any, rows: Any) -> Any:
    return _safe_indexing(np.asarray(values) if isinstance(values, list) else values, rows)


def _evaluation_rows(search: MetricSearch, problem: Problem) -> dict[str, Any] | None:
    """The rows that the winner's score is from, where its final model is the one that was scored: the given
    validation rows alone, or rows that were held out. None after folds, where it was trained again, and where
    some were drawn by their weights."""
    evaluated = None if search.result_.n_holdout else _given_or_held_out(search, problem)
    if evaluated is None:
        return None
    weights = evaluated["sample_weight"]
    n = len(evaluated["y"]) if weights is None else np.count_nonzero(np.asarray(weights, dtype=float))
    return evaluated if n == search.result_.n_validation else None


def _given_or_held_out(search: MetricSearch, problem: Problem) -> dict[str, Any] | None:
    result, rows = search.result_, problem.rows
    if rows.get("X_val") is not None and result.n_out_of_fold == 0:
        return {
            "X": rows["X_val"],
            "y": rows["y_val"],
            "sample_weight": rows.get("sample_weight_val"),
            "columns": rows.get("columns_val"),
        }
    if rows.get("X_val") is None and isinstance(search.evaluate_on, float):
        held = np.setdiff1d(np.arange(len(rows["y"])), search.training_rows_)
        weights = rows.get("sample_weight")
        if rows.get("columns") is not None:
            return None
        return {
            "X": _taken(two_dimensional(rows["X"]), held),
            "y": _taken(rows["y"], held),
            "sample_weight": None if weights is None else np.asarray(weights)[held],
            "columns": None,
        }
    return None


def _check_score(search: MetricSearch, problem: Problem) -> None:
    """The metric of the returned model on the evaluation rows is the best score.

    Decisions of an ensemble are made from scores that were rounded before they were averaged, so that a row
    at the threshold can fall to the other side.
    """
    evaluated = _evaluation_rows(search, problem)
    if evaluated is None or not _is_repeatable(search, problem):
        return
    now = search.metric_value(
        evaluated["X"], evaluated["y"], evaluated["sample_weight"], columns=evaluated["columns"]
    )
    rounded = isinstance(search.best_estimator_, ModelEnsemble)
    of_decisions = problem.task == "classification"
    slack = 0.25 if rounded and of_decisions else 1e-9
    expect_close(
        now, search.best_score_, "the returned model's metric and best_score_", rtol=1e-7, atol=slack
    )


def _is_repeatable(search: MetricSearch, problem: Problem) -> bool:
    """Whether model and metric give the same again."""
    return problem.sound or (search.metric is None or isinstance(search.metric, str))


def _check_trained_again(search: MetricSearch, problem: Problem) -> None:
    """Candidates that are trained here with their weights get the value that the search recorded."""
    settings = search.settings
    alone = str(settings.evaluate_on) == "validation"
    if "X_val" in problem.rows and alone and search.honest in (None, "halves"):
        folds = [(search.training_rows_, None)]
    elif "X_val" not in problem.rows and isinstance(search.evaluate_on, list):
        folds = search.evaluate_on
    else:
        return
    if search.decision is not None or not (search.metric is None or search.metric in get_scorer_names()):
        return
    if settings.eval_share is not None:
        return  # which rows it sets aside is not known here
    if "sample_weight_val" in problem.rows or "sample_weight" in problem.rows:
        return  # whether the metric is weighted by them depends on the metric
    name = search.metric or ("accuracy" if problem.task == "classification" else "r2")
    scorer: Any = get_scorer(name)
    X, y = two_dimensional(problem.rows["X"]), np.asarray(problem.rows["y"])
    for trial in search.result_.trials[:_MOST_TRAINED]:
        if trial.error is not None:
            continue
        weights = search.study_.training_weights(trial)
        evaluated: list[Any] = []
        models: list[Any] = []
        for train, test in folds:
            model = with_seed(clone(search.estimator), trial.seed)
            # A product, as in the search: a quotient has other last digits, and two splits of a tree that are
            # equally good would be told apart by them.
            of_fold = weights[train] if test is None else weights[train] * (1.0 / weights[train].mean())
            name = weight_name_of(search.estimator, settings.sample_weight_name)
            model.fit(_safe_indexing(X, train), y[train], **{name: of_fold})
            models.append(model)
            evaluated.append(test)
        if evaluated[0] is None:
            value = scorer(
                models[0], two_dimensional(problem.rows["X_val"]), np.asarray(problem.rows["y_val"])
            )
        else:
            truth = np.concatenate([y[test] for test in evaluated])
            found = np.concatenate(
                [m.predict(_safe_indexing(X, test)) for m, test in zip(models, evaluated, strict=True)]
            )
            value = scorer._score_func(truth, found)
        expect_close(
            trial.value, value, f"the value of trial {trial.number}, trained again", rtol=1e-6, atol=1e-9
        )
