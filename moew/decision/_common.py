"""Shared by the decision rules: checks of their input, and thresholds between scores."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from moew.exceptions import InPython, InvalidInputError
from moew.types import BoolArray, Columns, FloatArray, IntArray


def check_fraction(value: Any, name: str) -> None:
    """Raise unless `value` is a number in (0, 1]."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) <= 1:
        raise InvalidInputError(
            f"{name} must be a number above 0 and at most 1, got {value!r}.", argument=name
        )


def check_choice(value: Any, name: str, choices: Sequence[str]) -> None:
    """Raise unless `value` is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise InvalidInputError(
            f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}.", argument=name
        )


def check_scores(score: Any) -> FloatArray:
    """The scores (n,) as float64; raise unless they are finite numbers in one dimension."""
    try:
        scores = np.asarray(score, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"scores must be numbers: {error}.") from error
    if scores.ndim != 1:
        raise InvalidInputError(f"scores must have one dimension (rows), got shape {scores.shape}.")
    if not np.isfinite(scores).all():
        bad = int((~np.isfinite(scores)).sum())
        raise InvalidInputError(
            f"{bad} of {len(scores)} scores are NaN or infinite, so no decision can be made; "
            "the model has probably diverged."
        )
    return scores


def check_some_scores(score: Any) -> FloatArray:
    """As `check_scores`, and raise where there are no rows to fit on."""
    scores = check_scores(score)
    if not len(scores):
        raise InvalidInputError("a decision rule cannot be fitted on no rows.")
    return scores


def check_positive(positive: Any, n_rows: int) -> BoolArray:
    """The labels (n,) as booleans; raise unless they are booleans (or 0 and 1), one for each score."""
    labels = np.asarray(positive)
    if labels.shape != (n_rows,):
        raise InvalidInputError(
            f"positive must have the shape of the scores ({n_rows},), got {labels.shape}."
        )
    if labels.dtype != np.bool_:
        if labels.dtype.kind not in "iuf" or not np.isin(labels, (0, 1)).all():
            raise InvalidInputError("positive must be True or False for each row; compare y with the label.")
        labels = labels.astype(np.bool_)
    return labels


def threshold_between(low: float, high: float) -> float:
    """A threshold that `high` lies strictly above and `low` does not: their midpoint where floats allow."""
    middle = low / 2 + high / 2  # halves first: the sum of two large scores may overflow
    return middle if low <= middle < high else low


def threshold_at_edge(descending: FloatArray, count: int) -> float:
    """The highest score (n,), sorted downwards, that is not among the first `count`; −inf where all are."""
    return float(descending[count]) if count < len(descending) else float("-inf")


def threshold_selecting(descending: FloatArray, count: int) -> float:
    """The threshold that selects the first `count` of the scores (n,), which are in descending order.

    It is +inf for none and −inf for all, so that it selects none or all of any new rows, too.
    """
    if count <= 0:
        return float("inf")
    if count >= len(descending):
        return float("-inf")
    return threshold_between(float(descending[count]), float(descending[count - 1]))


def count_of_share(share: float, n_rows: int) -> int:
    """The number of rows in a `share` of `n_rows`, rounded to the nearest (halves up), at least one."""
    return min(n_rows, max(1, int(np.floor(share * n_rows + 0.5))))


def nearest_cut(is_cut: BoolArray, count: int) -> int:
    """The number of first rows nearest to `count` after which sorted rows may be cut, the lower in a tie.

    `is_cut` (n−1,): whether rows i and i+1 may be separated; after all n rows a cut is always possible.
    """
    cuts: IntArray = np.append(np.flatnonzero(is_cut) + 1, len(is_cut) + 1)
    return int(cuts[np.argmin(np.abs(cuts - count))])


def groups_of_rows(columns: Columns, column: str, n_rows: int) -> tuple[list[Any], IntArray]:
    """The groups that occur in a column, in a fixed order, and the index (n,) of each row's group."""
    if column not in columns:
        raise InvalidInputError(
            f"the decision needs the column {column!r}, but got {sorted(columns)!r}.",
            InPython(
                f" Take it from a column of X (a data frame with a column named {column!r}) or pass "
                f"it: predict(X, metadata={{{column!r}: …}}), and in fit as metadata={{…}} and "
                f"metadata_val={{…}}."
            ),
            argument="metadata",
        )
    values = np.asarray(columns[column])
    if values.shape != (n_rows,):
        raise InvalidInputError(
            f"column {column!r} must have one group for each of {n_rows} rows, got shape {values.shape}.",
            argument="metadata",
        )
    return _group_codes(values, column)


def _group_codes(values: np.ndarray[Any, Any], column: str) -> tuple[list[Any], IntArray]:
    """Distinct groups as Python values and each row's index (n,) among them."""
    if values.dtype.kind in "biuU":
        names, codes = np.unique(values, return_inverse=True)
        return names.tolist(), codes
    plain = [v.item() if isinstance(v, np.generic) else v for v in values.tolist()]
    distinct = set(plain)
    if bad := [v for v in distinct if not isinstance(v, bool | int | float | str) or v != v]:
        raise InvalidInputError(
            f"column {column!r} must hold numbers or strings as groups, none missing, got {bad[0]!r}.",
            argument="metadata",
        )
    ordered = sorted(distinct, key=lambda v: (type(v).__name__, v))
    place = {name: code for code, name in enumerate(ordered)}
    return ordered, np.array([place[v] for v in plain], dtype=np.intp)


def number_to_json(value: float) -> float | str:
    """A float for JSON, which has no infinities: they become strings that float() reads."""
    return float(value) if np.isfinite(value) else str(float(value))
