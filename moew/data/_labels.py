"""Labels and targets: checked, and as values that JSON can hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from moew.data._column import in_order, is_missing, plain
from moew.data._numeric import Column
from moew.exceptions import InvalidInputError
from moew.types import FloatArray, IntArray, Labels


def label_levels(y: Labels) -> list[Any]:
    """The different labels in y, sorted, as values that JSON can hold."""
    return list(in_order(set(_distinct_labels(y)[0])))


def label_column(levels: tuple[Any, ...]) -> Column:
    """How labels are encoded: one 0/1 column for two of them, one-hot for more."""
    return Column("binary" if len(levels) <= 2 else "categorical", levels)


def label_positions(y: Labels, levels: list[Any]) -> IntArray:
    """Where each label of y (n,) stands in `levels`; an error on a label that is not there."""
    distinct, inverse = _distinct_labels(y)
    place = {level: position for position, level in enumerate(levels)}
    if unseen := set(distinct) - set(place):
        raise InvalidInputError(
            f"labels {sorted(unseen, key=str)!r} were not in the training rows, which have {levels!r}.",
            argument="y",
        )
    return np.array([place[label] for label in distinct], dtype=np.intp)[inverse]


def number_labels(y: Labels) -> FloatArray:
    """The targets of a regression as float64 (n,); an error where one is not a finite number."""
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"the targets of a regression must be numbers: {error}.", argument="y"
        ) from error
    _check_one_dimension(values)
    if not np.isfinite(values).all():
        raise InvalidInputError(
            "the targets hold missing or infinite values; drop those rows first.", argument="y"
        )
    return values


def _distinct_labels(y: Labels) -> tuple[list[Any], IntArray]:
    """The different labels, as values that JSON can hold, and which of them each row (n,) has."""
    values = np.asarray(y)
    _check_one_dimension(values)
    if is_missing(values).any():
        raise InvalidInputError("the labels hold missing values; drop those rows first.", argument="y")
    if values.dtype.kind != "O":
        found, inverse = np.unique(values, return_inverse=True)
        return [plain(value) for value in found.tolist()], inverse
    labels = [plain(value) for value in values.tolist()]  # of types that may have no order
    distinct = list(dict.fromkeys(labels))
    place = {label: position for position, label in enumerate(distinct)}
    return distinct, np.array([place[label] for label in labels], dtype=np.intp)


def _check_one_dimension(values: np.ndarray[Any, Any]) -> None:
    if values.ndim != 1 or len(values) == 0:
        raise InvalidInputError(f"y must be one label for each row, got shape {values.shape}.", argument="y")
