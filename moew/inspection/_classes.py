"""Figure 3b: the weight of each class beside the error that the model makes on it without weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from moew.exceptions import MoewError
from moew.inspection._again import GivenRows, given_rows
from moew.inspection._rows import trained_rows
from moew.inspection._slices import quantile_slices
from moew.search import FittedSearch
from moew.search._evaluate import FinalModel
from moew.types import FloatArray, IntArray, Labels, Rows


@dataclass(frozen=True)
class Group:
    """A class, or a quantile bin of a numeric target. Errors are NaN where there are no validation rows."""

    name: str
    n_rows: int
    mean_weight: float
    n_validation: int
    unweighted_error: float
    winner_error: float


@dataclass(frozen=True)
class LabelGroups:
    """All groups; `reason` says why there are no errors, where there are none."""

    groups: tuple[Group, ...]
    is_classes: bool  # else bins of a target, and errors are mean absolute ones
    reason: str = ""


def groups_by_label(
    fitted: FittedSearch,
    X: Rows,
    y: Labels,
    X_val: Rows = None,
    y_val: Labels = None,
    *,
    metadata: Mapping[str, Any] | None = None,
    metadata_val: Mapping[str, Any] | None = None,
) -> LabelGroups:
    """Mean weight by class or bin of the target, and the errors of the unweighted model and of the winner.

    Errors are of the validation rows given here, or those the search held out of X. `metadata` and
    `metadata_val` are the columns that the decision needs, as `fit` got them.
    """
    rows = trained_rows(fitted, X, y)
    is_classes = fitted.task == "classification"
    levels: Any = None
    codes: IntArray
    if is_classes:
        levels, codes = np.unique(rows.y, return_inverse=True)
        names = [str(level) for level in levels.tolist()]
    else:
        names, codes, levels = quantile_slices(np.asarray(rows.y, dtype=np.float64))
    counts = np.bincount(codes, minlength=len(names))
    weights = np.bincount(codes, rows.weights, minlength=len(names)) / counts
    missing = np.full(len(names), np.nan)
    seen: IntArray = np.zeros(len(names), dtype=int)
    before, after, reason = missing, missing, ""
    try:
        given = given_rows(fitted, X, y, X_val, y_val, metadata=metadata, metadata_val=metadata_val)
        seen, before, after, reason = _errors(fitted, given, is_classes, levels, len(names))
    except MoewError as problem:  # such as a column the rule needs: the weights are worth showing alone
        reason = str(problem)
    groups = zip(names, counts, weights, seen, before, after, strict=True)
    return LabelGroups(
        tuple(Group(g[0], int(g[1]), float(g[2]), int(g[3]), float(g[4]), float(g[5])) for g in groups),
        is_classes,
        reason,
    )


def _errors(
    fitted: FittedSearch, given: GivenRows, is_classes: bool, levels: Any, k: int
) -> tuple[IntArray, FloatArray, FloatArray, str]:
    missing = np.full(k, np.nan)
    if given.validation is None:
        return np.zeros(k, dtype=int), missing, missing, "no rows were kept out of training to see errors on"
    validation, labels = given.validation, given.validation.y
    if is_classes:
        known = np.isin(labels, levels)
        codes = np.searchsorted(levels, labels[known])
    else:
        known = np.ones(len(labels), dtype=bool)
        codes = np.searchsorted(levels, labels, side="left")
    seen = np.bincount(codes, minlength=k)

    def errors_of(final: FinalModel) -> FloatArray:
        decided = final.decide(validation.X, validation.columns)
        wrong = (decided != labels) if is_classes else np.abs(decided - labels)
        sums = np.bincount(codes, np.asarray(wrong, dtype=np.float64)[known], minlength=k)
        return np.asarray(np.divide(sums, seen, out=np.full(k, np.nan), where=seen > 0))

    unweighted = missing if fitted.unweighted is None else errors_of(fitted.unweighted)
    return seen, unweighted, errors_of(fitted.winner), ""
