"""Figure 3b: the weight of each class beside the error that the model makes on it without weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from moew.exceptions import MoewError
from moew.insight._again import GivenRows, answers_of, given_rows, rule_of, train_again
from moew.insight._rows import trained_rows
from moew.insight._slices import quantile_slices
from moew.protocols import FloatArray, IntArray, Labels, Rows
from moew.setup import task_of


@dataclass(frozen=True)
class Group:
    """A class, or a quantile bin of a numeric target. Errors are NaN where there are no validation rows."""

    name: str
    n_rows: int
    mean_weight: float
    n_validation: int
    baseline_error: float
    winner_error: float


@dataclass(frozen=True)
class LabelGroups:
    """All groups; `reason` says why there are no errors, where there are none."""

    groups: tuple[Group, ...]
    is_classes: bool  # else bins of a target, and errors are mean absolute ones
    reason: str = ""


def groups_by_label(
    search: Any, X: Rows, y: Labels, X_val: Rows = None, y_val: Labels = None, *, errors: bool = True
) -> LabelGroups:
    """Mean weight by class or bin of the target; with `errors` also those of baseline and winner.

    Errors are of the validation rows given here, or those the search held out of X. For them the baseline's
    model (α = 0) is trained once again, because the search has kept the winner's only.
    """
    rows = trained_rows(search, X, y)
    is_classes = task_of(search.estimator) == "classification"
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
    before, after, reason = missing, missing, "not asked for"
    if errors:
        try:
            seen, before, after, reason = _errors(search, X, y, X_val, y_val, is_classes, levels, len(names))
        except MoewError as problem:  # such as a column the rule needs: the weights are worth showing alone
            reason = str(problem)
    groups = zip(names, counts, weights, seen, before, after, strict=True)
    return LabelGroups(
        tuple(Group(g[0], int(g[1]), float(g[2]), int(g[3]), float(g[4]), float(g[5])) for g in groups),
        is_classes,
        reason,
    )


def _errors(
    search: Any, X: Rows, y: Labels, X_val: Rows, y_val: Labels, is_classes: bool, levels: Any, k: int
) -> tuple[IntArray, FloatArray, FloatArray, str]:
    given: GivenRows = given_rows(search, X, y, X_val, y_val)
    if given.validation is None:
        missing = np.full(k, np.nan)
        return np.zeros(k, dtype=int), missing, missing, "no rows were kept out of training to see errors on"
    labels = given.validation.y
    if is_classes:
        known = np.isin(labels, levels)
        codes = np.searchsorted(levels, labels[known])
    else:
        known = np.ones(len(labels), dtype=bool)
        codes = np.searchsorted(levels, labels, side="left")
    seen = np.bincount(codes, minlength=k)
    ((_, baseline),) = train_again(search, [0], given.training.X, given.training.y)
    pairs = [(baseline, rule_of(search, baseline, given)), (search.best_estimator_, search.decision_)]
    found = []
    for model, rule in pairs:
        answers = answers_of(search, model, rule, given.validation)
        wrong = (answers != labels) if is_classes else np.abs(answers - labels)
        sums = np.bincount(codes, np.asarray(wrong, dtype=np.float64)[known], minlength=k)
        found.append(np.divide(sums, seen, out=np.full(k, np.nan), where=seen > 0))
    return seen, found[0], found[1], ""
