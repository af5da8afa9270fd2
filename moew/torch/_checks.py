"""What the estimators accept: settings, rows, labels, weightings and seeds; all looked at before training."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from moew.exceptions import InvalidInputError, MoewError
from moew.protocols import FloatArray, Labels, Rows


class TrainingDivergedError(MoewError, FloatingPointError):
    """Training ended with parameters that are not finite."""


def check_settings(estimator: Any) -> None:
    """Raise on settings that cannot be used, whatever the data."""
    for name, may_be_none in (
        ("steps", False),
        ("batch_size", True),
        ("models_at_once", True),
        ("n_threads", False),
    ):
        value = getattr(estimator, name)
        whole = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1
        if not (whole or (value is None and may_be_none)):
            raise InvalidInputError(f"{name} must be a whole number of 1 or more, got {value!r}.")
    for name in ("loss", "optimizer", "schedule"):
        value = getattr(estimator, name)
        if value is not None and not callable(value):
            raise InvalidInputError(f"{name} must be None or something to call, got {value!r}.")
    module_device(estimator.device)


def module_device(device: Any) -> torch.device:
    """Where to compute; None is the first GPU where PyTorch finds one, else the CPU."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        raise InvalidInputError(
            f"device {device!r} cannot be used here; choose 'cpu', 'cuda' on a machine with a GPU, or None: "
            f"{first_line(error)}."
        ) from error
    return chosen


def first_line(error: Exception) -> str:
    """What an error says first, without a full stop; PyTorch's go on for pages."""
    return (str(error).splitlines() or [""])[0].rstrip(".")


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


def draw_seed(random_state: Any) -> int:
    """A seed of 0 or more from an int (itself), None (fresh entropy) or a RandomState (its next number)."""
    if isinstance(random_state, int | np.integer):
        if random_state < 0:
            raise InvalidInputError(f"a seed must be 0 or more, got {random_state}.")
        return int(random_state)
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
