"""Checks of the networks' labels, example weights and warm start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    assert_all_finite,
    check_array,
)

from moew.exceptions import InvalidInputError
from moew.models.networks._spec import is_count
from moew.types import FloatArray, IntArray, Labels


def class_labels(y: Labels) -> Any:
    """y (n,) of a classifier, checked: classes, without missing values."""
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    return y


def numeric_targets(y: Labels) -> FloatArray:
    """y (n,) of a regressor as finite float64."""
    return np.asarray(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"))


def bad_shares(
    weights: FloatArray, kept: IntArray, held: IntArray
) -> Iterator[tuple[int, InvalidInputError]]:
    """Yield (k, error) for each row of weights (K, n) that is zero on all rows kept or all held out."""
    for k, row in enumerate(weights):
        for rows, purpose in ((kept, "to train on"), (held, "held out for early stopping")):
            if not row[rows].any():
                yield (
                    k,
                    InvalidInputError(
                        f"the sample weights of all {len(rows)} rows {purpose} are zero; "
                        "set early_stopping=False, or another share.",
                        argument="early_stopping",
                    ),
                )
                break


def check_warm_start(warm_start: Any, warm_steps: Any) -> None:
    """Raise unless these two settings of a network can be used."""
    if not (warm_start is False or (isinstance(warm_start, str) and warm_start == "uniform")):
        raise InvalidInputError(
            f"warm_start must be False or 'uniform', got {warm_start!r}.", argument="warm_start"
        )
    if not (warm_steps is None or is_count(warm_steps, 1)):
        raise InvalidInputError(
            "warm_steps must be a whole number of 1 or more, or None for a fifth of steps; "
            f"got {warm_steps!r}.",
            argument="warm_steps",
        )
