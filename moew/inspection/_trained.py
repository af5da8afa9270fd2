"""The rows that a search was trained on, and those that it held out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from moew.data import LabelledRows, Rows, labelled_rows, two_dimensional
from moew.exceptions import InvalidInputError
from moew.search import FittedSearch
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


def held_rows(fitted: FittedSearch, training: Rows, validation: Rows | None = None) -> LabelledRows | None:
    """The validation rows of a search, or the training rows that it held out; None where it trained on all.

    Rows set aside for the honest score are among those held out.
    """
    X, labels = training.X, np.asarray(training.y)
    rows, names, task = trained_rows(fitted, X, labels), fitted.evaluator.column_names, fitted.task
    if validation is not None and validation.X is not None:
        given = Rows(validation.X, np.asarray(validation.y), None, validation.columns)
        return labelled_rows(given, task, "validation", names)
    held = np.setdiff1d(np.arange(len(labels)), rows.numbers)
    whole = Rows(X, labels, None, training.columns)
    return labelled_rows(whole, task, "training", names).take(held) if len(held) else None
