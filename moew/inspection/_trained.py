"""The rows that a search was trained on, and its candidates, trained again with the same result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from moew.data import LabelledRows, Rows, given_validation, labelled_rows, two_dimensional
from moew.exceptions import Argument, InvalidInputError, SearchFailedError
from moew.search import FinalModel, FittedSearch, trainings_of
from moew.training import EstimatorTrainer, resolve_trainer
from moew.types import Array, Features, FloatArray, IntArray, Labels


@dataclass(frozen=True)
class TrainedRows:
    """The rows that the winner was trained on, out of those the user gave."""

    X: Features
    y: Labels  # (n,)
    weights: FloatArray  # (n,), of the winner
    numbers: IntArray  # (n,), their places among the rows that were given


def trained_rows(fitted: FittedSearch, X: Features, y: Labels) -> TrainedRows:
    """The training rows of a finished search, from the X and y it was fitted with."""
    X, labels = two_dimensional(X), np.asarray(y)
    check_row_count(fitted, _num_samples(X), "X")
    check_row_count(fitted, len(labels), "y")
    numbers, weights = fitted.training_rows, fitted.weights
    if len(numbers) == len(labels):
        return TrainedRows(X, labels, weights, numbers)
    return TrainedRows(_safe_indexing(X, numbers), labels[numbers], weights, numbers)


def check_row_count(fitted: FittedSearch, got: int, what: str) -> None:
    """Raise unless `what` has a value for each row that the search was fitted with."""
    numbers = fitted.training_rows
    # Where rows were held out in between, their number is not known, only the last one trained on.
    all_trained = bool(np.array_equal(numbers, np.arange(len(numbers))))
    expected = int(numbers.max()) + 1
    if got < expected or (all_trained and got > expected):
        least = "" if all_trained else "at least "
        raise InvalidInputError(
            f"{what} must have the rows that the search was fitted with, {least}{expected}, got {got}.",
            argument=what,
        )


def effective_size(weights: FloatArray) -> float:
    """How many rows of equal weight tell as much: (Σw)² / Σw² of weights (n,)."""
    largest = float(np.max(weights))
    if not largest > 0:
        return 0.0
    scaled = weights / largest  # so that no square overflows
    return float(scaled.sum() ** 2 / (scaled**2).sum())


def table_columns(
    X: Features, more: Mapping[str, Any] | None = None, most: int | None = None
) -> Iterator[tuple[str, Array]]:
    """(name, values (n,)) of `more` and then of the columns of X, the first `most` of them."""
    more = {} if more is None else more
    for name in more:
        yield str(name), np.asarray(more[name])
    if hasattr(X, "columns"):
        for name in list(X.columns)[:most]:
            if name not in more:
                yield str(name), np.asarray(X[name])
        return
    is_sparse = hasattr(X, "tocsc")
    values: Any = X.tocsc() if is_sparse else np.asarray(X)
    for j in range(values.shape[1])[:most]:
        yield f"column {j}", values[:, [j]].toarray().ravel() if is_sparse else values[:, j]


@dataclass(frozen=True)
class GivenRows:
    """Training and validation rows as the search saw them, but for rows set aside for the honest score."""

    training: LabelledRows
    validation: LabelledRows | None  # None where every row was trained on, as in cross-validation


def given_rows(fitted: FittedSearch, training: Rows, validation: Rows | None = None) -> GivenRows:
    """From the rows that the search was fitted with: those trained on, and those scored on.

    Without validation rows they are the training rows that were held out, if any.
    """
    X, labels = training.X, np.asarray(training.y)
    rows, names, task = trained_rows(fitted, X, labels), fitted.evaluator.column_names, fitted.task
    whole = labelled_rows(Rows(X, labels, None, training.columns), task, "training", names)
    if validation is not None and validation.X is not None:
        given = Rows(validation.X, np.asarray(validation.y), None, validation.columns)
        return GivenRows(whole, labelled_rows(given, task, "validation", names))
    held = np.setdiff1d(np.arange(len(labels)), rows.numbers)
    return GivenRows(whole.take(rows.numbers), whole.take(held)) if len(held) else GivenRows(whole, None)


def train_again(
    fitted: FittedSearch, numbers: Sequence[int], X: Features, y: Labels
) -> Iterator[tuple[int, Any]]:
    """Yield (number, model) of candidates, trained again on the rows X and y that were trained on."""
    by_number = {trial.number: trial for trial in fitted.result.trials}
    trials = [by_number[number] for number in numbers]
    settings = fitted.settings
    trainer = resolve_trainer(settings.estimator, settings.sample_weight_name, settings.n_jobs)
    if fitted.fit_params and isinstance(trainer, EstimatorTrainer):
        trainer = replace(trainer, fit_params=fitted.fit_params)
    for k, model in trainer.train(X, np.asarray(y), trainings_of(fitted.weighting, trials)):
        if isinstance(model, Exception):
            raise SearchFailedError(f"candidate {numbers[k]} could not be trained again: {model}") from model
        yield numbers[k], model


def values_again(
    fitted: FittedSearch, numbers: Sequence[int], rows: GivenRows, test: Rows
) -> dict[int, float]:
    """The metric of candidates on test rows, by number; decision rules are fitted again, as in the search."""
    evaluator = fitted.evaluator
    given = Rows(test.X, np.asarray(test.y), None, test.columns)
    new = labelled_rows(given, fitted.task, "test", evaluator.column_names)
    data = None
    if evaluator.rule is not None or evaluator.always_tuned:
        if rows.validation is None:
            raise InvalidInputError(
                "the decision rule is fitted again on validation rows: pass ",
                Argument("validation"),
                ".",
                argument="validation",
            )
        data = given_validation(fitted.task, rows.training, rows.validation)
    values = {}
    for number, model in train_again(fitted, numbers, rows.training.X, rows.training.y):
        final = FinalModel(model, None, evaluator.classes, evaluator.pos_label)
        if data is not None:
            final = evaluator.final_model(model, evaluator.predictions([model], data), data)
        values[number] = evaluator.value_on(final, new)
    return values
