"""From the user's settings and data to the parts of a search, checked before anything is trained."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import check_random_state

from moew._util.fingerprint import fingerprint
from moew._util.seeds import generator, integer_seed
from moew.data._problem import (
    Part,
    Problem,
    check_training_labels,
    given_problem,
    make_part,
    set_aside,
    split_problem,
)
from moew.decision import resolve_decision
from moew.embedding import resolve_embedding
from moew.exceptions import InvalidInputError, MoewWarning, UnsupportedEstimatorError
from moew.metrics import AnyMetric, Metric, accuracy, r_squared, resolve_metric
from moew.search._evaluate import Evaluator, column_names, columns_from
from moew.training import resolve_trainer, with_seed
from moew.types import Columns, DecisionRule, Labels, Rows, Task, Trainer
from moew.weighting import ExampleWeighting, resolve_base_weights

_HOLDOUT_SHARE = 0.3


@dataclass(frozen=True)
class Given:
    """Rows as the user gave them."""

    X: Rows
    y: Labels
    sample_weight: Any = None
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Setup:
    """What is trained on, how, and how it is judged."""

    problem: Problem
    trainer: Trainer
    evaluator: Evaluator
    seed: int


def set_up(search: Any, training: Given, validation: Given) -> Setup:
    """The parts of an `ExampleWeightSearch` on its data; raises on anything that cannot work."""
    _check_settings(search)
    seed = _seed(search.random_state)
    task = task_of(search.estimator)
    trainer = resolve_trainer(search.estimator, search.sample_weight_name, search.n_jobs)
    default = accuracy() if task == "classification" else r_squared()
    metric = resolve_metric(default if search.metric is None else search.metric)
    rule = resolve_decision(search.decision)
    problem = _problem(search, task, training, validation, column_names(metric, rule), seed)
    _warn_of_unused_columns(problem.validation.columns, metric, rule)
    classes = np.unique(problem.training.y) if task == "classification" else None
    evaluator = Evaluator(metric, rule, classes)
    evaluator.check(problem, generator(seed, "rehearsal"))
    return Setup(problem, trainer, evaluator, seed)


def fit_weighting(search: Any, problem: Problem, seed: int) -> ExampleWeighting:
    """The search's embedding and base weights, fitted on the training rows."""
    embedding = _seeded(resolve_embedding(search.embedding), integer_seed(seed, "embedding"))
    # Rows split off the training rows are distributed like them: there is no shift, and π = 1.
    chosen = search.base_weights if problem.given_validation else "uniform"
    base_weights = _seeded(resolve_base_weights(chosen), integer_seed(seed, "baseline"))
    training, validation = problem.training, problem.validation
    return ExampleWeighting(embedding, base_weights).fit(
        training.X,
        training.y,
        validation.X,
        validation.y,
        task=problem.task,
        sample_weight=training.sample_weight,
    )


def fingerprint_of(search: Any, setup: Setup, weighting: ExampleWeighting) -> str:
    """What a stored study must agree with to be continued: the data, the model, the metric, the rule."""
    problem, evaluator = setup.problem, setup.evaluator
    training, validation = problem.training, problem.validation
    settings = {
        "estimator": search.estimator,
        "metric": evaluator.metric,
        "rule": evaluator.rule,
        "weight name": search.sample_weight_name,
    }
    folds = [rows for fold in problem.folds for rows in (fold.train, fold.scored) if rows is not None]
    of_rows = [
        array
        for part in (training, validation)
        for array in (part.y, part.sample_weight, *(part.columns[name] for name in sorted(part.columns)))
        if array is not None
    ]
    return fingerprint(settings, [weighting.Z_, weighting.pi_, *folds, *of_rows], [training.X, validation.X])


def task_of(estimator: Any) -> Task:
    """Whether the estimator classifies or regresses."""
    if is_classifier(estimator):
        return "classification"
    if is_regressor(estimator):
        return "regression"
    raise UnsupportedEstimatorError(
        f"{estimator!r} is neither a classifier nor a regressor; moew needs an estimator that says which."
    )


def part_of(given: Given, task: Task, what: str, names: tuple[str, ...]) -> Part:
    """The user's rows, checked, with those of the columns `names` that X itself holds."""
    columns = columns_from(given.metadata, given.X, names)
    return make_part(given.X, given.y, given.sample_weight, columns, task, what)


def tested_part(given: Given, evaluator: Evaluator, task: Task) -> Part:
    """The user's test rows, checked."""
    if given.X is None or given.y is None:
        raise InvalidInputError("test rows need both X_test and y_test.")
    return part_of(given, task, "test", column_names(evaluator.metric, evaluator.rule))


def _problem(
    search: Any, task: Task, training: Given, validation: Given, names: tuple[str, ...], seed: int
) -> Problem:
    rows = part_of(training, task, "training", names)
    check_training_labels(rows, task)
    if (validation.X is None) != (validation.y is None):
        raise InvalidInputError("X_val and y_val go together: pass both, or neither.")
    if validation.X is not None:
        problem = given_problem(task, rows, part_of(validation, task, "validation", names))
    elif validation.sample_weight is not None or validation.metadata is not None:
        raise InvalidInputError("sample_weight_val and metadata_val need X_val and y_val, too.")
    else:
        problem = split_problem(task, rows, search.validation, generator(seed, "split"))
    if search.honest in (None, "halves"):
        return problem
    share = _HOLDOUT_SHARE if search.honest == "holdout" else float(search.honest)
    return set_aside(problem, share, generator(seed, "holdout"))


def _warn_of_unused_columns(columns: Columns, metric: AnyMetric, rule: DecisionRule | None) -> None:
    """A misspelt optional column would be ignored without a word."""
    if not isinstance(metric, Metric):
        return  # what a scorer takes is scikit-learn's business
    used = {*column_names(metric, rule), *metric.optional_columns}
    if unused := sorted(set(columns) - used):
        warnings.warn(
            f"neither the metric nor the decision takes the columns {unused}; they take {sorted(used)}.",
            MoewWarning,
            stacklevel=5,
        )


def _check_settings(search: Any) -> None:
    for name in ("n_batches", "batch_size", "alpha_zero_repeats"):
        value = getattr(search, name)
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise InvalidInputError(f"{name} must be a whole number of at least 1, got {value!r}.")
    if search.radius is not None and not (np.isfinite(search.radius) and search.radius > 0):
        raise InvalidInputError(f"radius must be a positive number, got {search.radius!r}.")
    if search.storage is not None and not isinstance(search.random_state, Integral):
        raise InvalidInputError(
            "with a storage, random_state must be an integer, so that the search can be continued."
        )
    honest = search.honest
    is_share = isinstance(honest, float) and 0 < honest < 1
    if not (is_share or honest is None or honest in ("halves", "holdout")):
        raise InvalidInputError(
            f"honest must be 'halves', 'holdout', a share between 0 and 1 or None, got {honest!r}."
        )


def _seeded(part: Any, seed: int) -> Any:
    """A user's own part need not be a scikit-learn estimator; then its randomness is its own."""
    return with_seed(part, seed) if hasattr(part, "get_params") else part


def _seed(random_state: Any) -> int:
    if isinstance(random_state, Integral):
        if random_state < 0:
            raise InvalidInputError(f"random_state must not be negative, got {random_state!r}.")
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
