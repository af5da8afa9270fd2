"""Train candidates' models again, with the same result: a search keeps only the winner's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from moew.data import LabelledRows, UserRows, labelled_rows
from moew.data._splits import given_validation
from moew.exceptions import InvalidInputError, SearchFailedError
from moew.inspection._rows import trained_rows
from moew.search import FittedSearch
from moew.search._evaluate import FinalModel
from moew.training import EstimatorTrainer, resolve_trainer
from moew.types import Labels, Rows


@dataclass(frozen=True)
class GivenRows:
    """Training and validation rows as the search saw them, but for rows set aside for the honest score."""

    training: LabelledRows
    validation: LabelledRows | None  # None where every row was trained on, as in cross-validation


def given_rows(
    fitted: FittedSearch,
    X: Rows,
    y: Labels,
    X_val: Rows = None,
    y_val: Labels = None,
    *,
    metadata: Mapping[str, Any] | None = None,
    metadata_val: Mapping[str, Any] | None = None,
) -> GivenRows:
    """From the rows that the search was fitted with: those trained on, and those scored on.

    Without validation rows they are the rows of X that were held out, if any.
    """
    if (X_val is None) != (y_val is None):
        raise InvalidInputError("X_val and y_val go together: pass both, or neither.", argument="X_val")
    rows, names, task = trained_rows(fitted, X, y), fitted.evaluator.column_names, fitted.task
    labels = np.asarray(y)
    whole = labelled_rows(UserRows(X, labels, None, metadata), task, "training", names)
    if X_val is not None:
        given = UserRows(X_val, np.asarray(y_val), None, metadata_val)
        return GivenRows(whole, labelled_rows(given, task, "validation", names))
    held = np.setdiff1d(np.arange(len(labels)), rows.numbers)
    if len(held) == 0:
        return GivenRows(whole, None)
    return GivenRows(whole.take(rows.numbers), whole.take(held))


def train_again(
    fitted: FittedSearch, numbers: Sequence[int], X: Rows, y: Labels
) -> Iterator[tuple[int, Any]]:
    """Yield (number, model) of candidates, trained again on the rows X and y that were trained on."""
    by_number = {trial.number: trial for trial in fitted.result.trials}
    trials = [by_number[number] for number in numbers]
    weights = fitted.weighting.training_weights(np.stack([trial.alpha for trial in trials]))
    settings = fitted.settings
    trainer = resolve_trainer(settings.estimator, settings.sample_weight_name, settings.n_jobs)
    if fitted.fit_params and isinstance(trainer, EstimatorTrainer):
        trainer = replace(trainer, fit_params=fitted.fit_params)
    seeds, parameters = zip(*((trial.seed, trial.parameters) for trial in trials), strict=True)
    for k, model in trainer.train(X, np.asarray(y), weights, seeds, parameters=parameters):
        if isinstance(model, Exception):
            raise SearchFailedError(f"candidate {numbers[k]} could not be trained again: {model}") from model
        yield numbers[k], model


def final_model_of(fitted: FittedSearch, model: Any, rows: GivenRows) -> FinalModel:
    """A candidate's model with the decision rule as the search fits it."""
    evaluator = fitted.evaluator
    if evaluator.rule is None and not evaluator.always_tuned:
        return FinalModel(model, None, evaluator.classes, evaluator.pos_label)
    if rows.validation is None:
        raise InvalidInputError(
            "the decision rule is fitted again on validation rows: pass X_val and y_val.", argument="X_val"
        )
    data = given_validation(fitted.task, rows.training, rows.validation)
    return evaluator.final_model(model, evaluator.predictions([model], data), data)


def values_again(
    fitted: FittedSearch,
    numbers: Sequence[int],
    rows: GivenRows,
    X_new: Rows,
    y_new: Labels,
    metadata_new: Any = None,
) -> dict[int, float]:
    """The metric of candidates on new rows, by number."""
    evaluator = fitted.evaluator
    given = UserRows(X_new, np.asarray(y_new), None, metadata_new)
    new = labelled_rows(given, fitted.task, "test", evaluator.column_names)
    return {
        number: evaluator.value_on(final_model_of(fitted, model, rows), new)
        for number, model in train_again(fitted, numbers, rows.training.X, rows.training.y)
    }
