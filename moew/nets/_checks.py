"""What the networks accept: rows, labels, weightings and seeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    assert_all_finite,
    check_array,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from moew.exceptions import InvalidInputError
from moew.nets._spec import is_count
from moew.protocols import FloatArray, IntArray, Labels, Rows


def check_rows(estimator: Any, X: Rows, *, reset: bool) -> Rows:
    """X checked against what `estimator` saw (or, with `reset`, noted on it); data frames stay frames."""
    if hasattr(X, "columns"):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return X
    return validate_data(estimator, X, reset=reset, dtype="numeric", ensure_all_finite="allow-nan")


def check_rows_and_labels(estimator: Any, X: Rows, y: Labels) -> tuple[Rows, Labels]:
    """X and y (n,) for training: same length, at least one row."""
    rows = check_rows(estimator, X, reset=True)
    if y is None:
        raise InvalidInputError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    labels = column_or_1d(y, warn=True)
    check_consistent_length(rows, labels)
    if len(labels) < 1:
        raise InvalidInputError("X has no rows; at least one is needed to train.")
    return rows, labels


def class_labels(y: Labels) -> Any:
    """y (n,) of a classifier, without missing values."""
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    return y


def numeric_targets(y: Labels) -> FloatArray:
    """y (n,) of a regressor as finite float64."""
    return np.asarray(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"))


def weighting_matrix(weights: Any, n: int, n_seeds: int) -> FloatArray:
    """weights as float64 (K, n)."""
    matrix = np.asarray(weights, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape != (n_seeds, n):
        raise InvalidInputError(
            f"weights must have shape (K, n), a row for each of the {n_seeds} seeds and a column for each "
            f"of the {n} training rows; got {matrix.shape}."
        )
    return matrix


def bad_weightings(weights: FloatArray) -> Iterator[tuple[int, InvalidInputError]]:
    """(k, what is wrong) for each row of weights (K, n) that nothing can be trained with."""
    for k, row in enumerate(weights):
        if not np.isfinite(row).all():
            yield k, InvalidInputError("sample weights must be finite numbers; some are NaN or infinite.")
        elif (row < 0).any():
            yield k, InvalidInputError(f"sample weights must not be negative; the least is {row.min():g}.")
        elif not (row > 0).any():
            yield k, InvalidInputError("all sample weights are zero; at least one must be positive.")


def bad_shares(
    weights: FloatArray, kept: IntArray, held: IntArray
) -> Iterator[tuple[int, InvalidInputError]]:
    """(k, what is wrong) for each row of weights (K, n) that is zero on all rows kept or all held out."""
    for k, row in enumerate(weights):
        for rows, purpose in ((kept, "to train on"), (held, "held out for early stopping")):
            if not row[rows].any():
                yield (
                    k,
                    InvalidInputError(
                        f"the sample weights of all {len(rows)} rows {purpose} are zero; "
                        "set early_stopping=False, or another share."
                    ),
                )
                break


def check_warm_start(warm_start: Any, warm_steps: Any) -> None:
    """Raise unless these settings of a network can be used."""
    if not (warm_start is False or (isinstance(warm_start, str) and warm_start == "uniform")):
        raise InvalidInputError(f"warm_start must be False or 'uniform', got {warm_start!r}.")
    if not (warm_steps is None or is_count(warm_steps, 1)):
        raise InvalidInputError(
            "warm_steps must be a whole number of 1 or more, or None for a fifth of steps; "
            f"got {warm_steps!r}."
        )


def draw_seed(random_state: Any) -> int:
    """A seed of 0 or more from an int (itself), None (fresh entropy) or a RandomState (its next number)."""
    if isinstance(random_state, int | np.integer):
        if random_state < 0:
            raise InvalidInputError(f"a seed must be 0 or more, got {random_state}.")
        return int(random_state)
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
