"""Shared by estimators that train many weightings at once: checks, order of mini-batches, memory size."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from moew.exceptions import InvalidInputError
from moew.types import FloatArray, Labels, Rows

_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
BATCH_SEED = 0  # not the candidate's: all candidates see the same mini-batches, as in the paper's programs


def check_rows(estimator: Any, X: Rows, *, reset: bool) -> Rows:
    """Check X against the columns that `estimator` knows (with `reset`: note them); data frames stay so."""
    if hasattr(X, "columns"):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return X
    return validate_data(estimator, X, reset=reset, dtype="numeric", ensure_all_finite="allow-nan")


def check_rows_and_labels(estimator: Any, X: Rows, y: Labels) -> tuple[Rows, Labels]:
    """X and y (n,) for training, checked: same length, at least one row."""
    rows = check_rows(estimator, X, reset=True)
    if y is None:
        raise InvalidInputError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None.", argument="y"
        )
    labels = column_or_1d(y, warn=True)
    check_consistent_length(rows, labels)
    if len(labels) < 1:
        raise InvalidInputError("X has no rows; at least one is needed to train.", argument="X")
    return rows, labels


def weighting_matrix(weights: Any, n: int, n_seeds: int) -> FloatArray:
    """Weights as float64 (K, n), one weighting for each seed."""
    matrix = np.asarray(weights, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape != (n_seeds, n):
        raise InvalidInputError(
            f"weights must have shape (K, n), a row for each of the {n_seeds} seeds and a column for each "
            f"of the {n} training rows; got {matrix.shape}."
        )
    return matrix


def bad_weightings(weights: FloatArray) -> Iterator[tuple[int, InvalidInputError]]:
    """Yield (k, error) for each row of weights (K, n) that cannot be used for training."""
    for k, row in enumerate(weights):
        if not np.isfinite(row).all():
            yield (
                k,
                InvalidInputError(
                    "sample weights must be finite numbers; some are NaN or infinite.",
                    argument="sample_weight",
                ),
            )
        elif (row < 0).any():
            yield (
                k,
                InvalidInputError(
                    f"sample weights must not be negative; the least is {row.min():g}.",
                    argument="sample_weight",
                ),
            )
        elif not (row > 0).any():
            yield (
                k,
                InvalidInputError(
                    "all sample weights are zero; at least one must be positive.", argument="sample_weight"
                ),
            )


def batch_rows(n: int, batch_size: int | None, steps: int, seed: int) -> NDArray[np.int32] | None:
    """The rows (steps, batch_size) of every mini-batch, or None where each step takes all n rows.

    The rows are shuffled, cut into mini-batches without replacement and shuffled again when fewer than
    `batch_size` are left; so every mini-batch by itself is a uniform draw without replacement.
    """
    if batch_size is None or batch_size >= n:
        return None
    rng = np.random.default_rng([seed, n, batch_size])
    per_epoch = n // batch_size
    epochs = -(-steps // per_epoch)
    rows = np.empty((epochs, per_epoch * batch_size), dtype=np.int32)
    order = np.arange(n, dtype=np.int32)
    for epoch in rows:
        rng.shuffle(order)
        epoch[:] = order[: epoch.size]
    return rows.reshape(-1, batch_size)[:steps]


def machine_bytes() -> float:
    """Bytes of memory of this machine, or of the container of this process; infinite where unknown."""
    try:
        physical = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):  # not available on this system
        physical = float("inf")
    try:
        return min(physical, float(_CGROUP_LIMIT.read_text()))
    except (OSError, ValueError):  # no container, or "max"
        return physical
