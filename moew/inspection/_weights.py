"""Weights by what is in the rows: slices of a column, and classes with the errors on them (figure 3b)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from moew._util.numbers import level
from moew.data import LabelledRows, Rows, are_numbers, is_missing
from moew.exceptions import MoewError
from moew.inspection._trained import held_rows, trained_rows
from moew.search import FittedSearch
from moew.types import Array, FloatArray, IntArray

BINS = 5  # slices of a column of numbers
LEVELS = 8  # slices of a column of categories; the rarest go together


@dataclass(frozen=True)
class Slice:
    """Some rows: what they have in common, how many they are, and their mean weight."""

    name: str
    n_rows: int
    mean_weight: float


@dataclass(frozen=True)
class ColumnSlices:
    """A column's slices; `explained` is the share of the weights' variance that they account for."""

    column: str
    explained: float
    slices: tuple[Slice, ...]


def slices_of(column: str, values: Any, weights: FloatArray) -> ColumnSlices | None:
    """The slices of a column (n,) of anything; None where nearly every row has a value of its own."""
    cut = _cut(np.asarray(values))
    if cut is None:
        return None
    names, codes = cut
    counts = np.bincount(codes, minlength=len(names))
    sums = np.bincount(codes, weights, minlength=len(names))
    kept = np.flatnonzero(counts)
    slices = tuple(Slice(names[k], int(counts[k]), float(sums[k] / counts[k])) for k in kept)
    return ColumnSlices(column, _explained(codes, weights), slices)


def quantile_slices(values: FloatArray) -> tuple[list[str], IntArray, FloatArray]:
    """Names of quantile bins of ordered values (n,), each row's bin (n,), and the edges between bins."""
    ordered = np.sort(values)
    places = np.ceil(np.arange(1, BINS) * len(ordered) / BINS).astype(int) - 1
    edges = np.unique(ordered[np.maximum(places, 0)])
    edges = edges[edges < ordered[-1]]  # else the last bin would be empty
    codes = np.searchsorted(edges, values, side="left")
    return _bin_names(edges, ordered[0], ordered[-1]), codes, edges


def _cut(values: Array) -> tuple[list[str], IntArray] | None:
    """The names of a column's slices, and each row's slice (n,)."""
    missing = np.isnat(values) if values.dtype.kind == "M" else is_missing(values)
    there = values[~missing]
    is_ordered = there.dtype.kind == "M" or are_numbers(there, is_category=False)
    if is_ordered and there.dtype.kind == "O":
        there = there.astype(np.float64)
    codes = np.zeros(len(values), dtype=np.intp)
    if is_ordered and len(np.unique(there)) > LEVELS:
        names, codes[~missing], _ = quantile_slices(there)
    else:
        by = there if is_ordered else np.array([str(value) for value in there.tolist()])
        levels, places, counts = np.unique(by, return_inverse=True, return_counts=True)
        names = [level(value) for value in levels.tolist()]
        if len(levels) > LEVELS:
            if len(levels) > len(there) / 2:
                return None
            frequent = np.sort(np.argsort(-counts, kind="stable")[: LEVELS - 1])
            new = np.full(len(levels), LEVELS - 1)
            new[frequent] = np.arange(LEVELS - 1)
            places = new[places]
            names = [*(names[k] for k in frequent), f"{len(levels) - LEVELS + 1} others"]
        codes[~missing] = places
    codes[missing] = len(names)
    return [*names, *["missing"] * bool(missing.any())], codes


def _explained(codes: IntArray, weights: FloatArray) -> float:
    """η² with the slices' number taken off, so that many small slices of pure chance count for nothing."""
    n, k = len(weights), len(np.unique(codes))
    centred = weights - weights.mean()
    total = float((centred**2).sum())
    if k < 2 or n <= k or total <= 1e-24 * max(float((weights**2).sum()), 1e-300):
        return 0.0
    counts, sums = np.bincount(codes), np.bincount(codes, centred)
    between = float((sums[counts > 0] ** 2 / counts[counts > 0]).sum())
    return float(max(0.0, 1 - (1 - min(between / total, 1.0)) * (n - 1) / (n - k)))


def _bin_names(edges: Array, lowest: Any, highest: Any) -> list[str]:
    bounds = [lowest, *edges.tolist(), highest] if edges.dtype.kind != "M" else [lowest, *edges, highest]
    for digits in (3, 5, 17):
        words = [_number(bound, digits) for bound in bounds]
        if len(set(words[1:-1])) == len(edges):
            break
    first, last = f"up to {words[1]}", f"above {words[-2]}"
    if len(edges) == 0:
        return [f"{words[0]} to {words[-1]}"]
    return [first, *(f"{a} to {b}" for a, b in pairwise(words[1:-1])), last]


def _number(value: Any, digits: int) -> str:
    if isinstance(value, np.datetime64):
        return str(value.astype("datetime64[s]" if digits == 17 else "datetime64[D]"))
    if 1e-4 <= abs(value) < 1e9:
        return np.format_float_positional(value, digits, unique=False, fractional=False, trim="-")
    return f"{value:.{digits}g}"


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


def groups_by_label(fitted: FittedSearch, training: Rows, validation: Rows | None = None) -> LabelGroups:
    """Mean weight by class or bin of the target, and the errors of the unweighted model and of the winner.

    Errors are of the validation rows given here, or those the search held out of the training rows; both
    have the columns that the decision needs, as `fit` got them.
    """
    rows = trained_rows(fitted, training.X, training.y)
    is_classes = fitted.task == "classification"
    levels: Any
    codes: IntArray
    if is_classes:
        levels, codes = np.unique(rows.y, return_inverse=True)
        names = [str(level) for level in levels.tolist()]
    else:
        names, codes, levels = quantile_slices(np.asarray(rows.y, dtype=np.float64))
    k = len(names)
    counts = np.bincount(codes, minlength=k)
    weights = np.bincount(codes, rows.weights, minlength=k) / counts
    errors: Sequence[Array] = np.zeros(k, dtype=int), np.full(k, np.nan), np.full(k, np.nan)
    reason = "no rows were kept out of training to see errors on"
    try:
        held = held_rows(fitted, training, validation)
        if held is not None:
            errors, reason = _errors(fitted, held, levels, k), ""
    except MoewError as problem:  # such as a column the rule needs: the weights are worth showing alone
        reason = str(problem)
    parts = (part.tolist() for part in (counts, weights, *errors))
    groups = tuple(Group(*group) for group in zip(names, *parts, strict=True))
    return LabelGroups(groups, is_classes, reason)


def _errors(fitted: FittedSearch, validation: LabelledRows, levels: Any, k: int) -> list[Array]:
    """For each of k groups the number of validation rows (k,), and both models' mean errors on them (k,)."""
    labels, is_classes = validation.y, fitted.task == "classification"
    known = np.isin(labels, levels) if is_classes else np.ones(len(labels), dtype=bool)
    codes = np.searchsorted(levels, labels[known])
    seen = np.bincount(codes, minlength=k)
    found: list[Array] = [seen]
    for model in (fitted.unweighted, fitted.winner):
        found.append(np.full(k, np.nan))
        if model is not None:
            decided = model.decide(validation.X, validation.columns)
            wrong = np.asarray(
                decided != labels if is_classes else np.abs(decided - labels), dtype=np.float64
            )
            np.divide(np.bincount(codes, wrong[known], minlength=k), seen, out=found[-1], where=seen > 0)
    return found
