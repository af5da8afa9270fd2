"""Metrics of predicted classes: accuracy, the worst class's error, means of classes, the gap between groups.

Each function is a callable frozen record, so that it can be pickled, copied and compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from moew.exceptions import UndefinedMetricError
from moew.metrics._labels import codes_of, is_positive, shown_positive
from moew.metrics._metric import FunctionMetric, ManyAtOnce, of_moew
from moew.types import Array, FloatArray


@dataclass(frozen=True)
class _Accuracy(ManyAtOnce):
    def __call__(self, y_true: Any, decision: Any, *, sample_weight: Any = None) -> float:
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return float(self.many(np.asarray(y_true), np.asarray(decision)[None], sample_weight=weight)[0])

    def many(self, y_true: Array, outputs: Array, *, sample_weight: FloatArray | None) -> FloatArray:
        right = y_true == outputs
        if not (y_true.size if sample_weight is None else sample_weight.any()):
            return np.full(len(right), np.nan)
        if sample_weight is None:
            return np.asarray(np.count_nonzero(right, axis=1) / y_true.size)
        return np.asarray(np.where(right, sample_weight, 0.0).sum(axis=1) / sample_weight.sum())


@of_moew
def accuracy() -> FunctionMetric:
    """The share of rows decided correctly: mean of 1[ŷ = y]. Higher is better.

    Examples
    --------
    >>> accuracy()(["cat", "dog", "dog"], ["cat", "dog", "cat"], sample_weight=[1.0, 1.0, 2.0])
    0.5
    """
    return FunctionMetric(
        _Accuracy(),
        "decision",
        True,
        "accuracy",
        bounds=(0.0, 1.0),
        needs_classes=True,
    )


@dataclass(frozen=True)
class _WorstClassError(ManyAtOnce):
    def __call__(self, y_true: Any, decision: Any, *, sample_weight: Any = None) -> float:
        y, decided = np.asarray(y_true), np.asarray(decision)
        if sample_weight is not None or not y.size:
            weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
            return float(self.many(y, decided[None], sample_weight=weight)[0])
        _, codes = codes_of(y)
        n_rows = np.bincount(codes)
        n_wrong = np.bincount(codes[y != decided], minlength=len(n_rows))
        return float((n_wrong / np.maximum(n_rows, 1)).max())

    def many(self, y_true: Array, outputs: Array, *, sample_weight: FloatArray | None) -> FloatArray:
        worst: FloatArray = _class_errors(y_true, outputs, sample_weight, "the worst class error").max(axis=1)
        return worst


def _class_errors(y_true: Array, outputs: Array, sample_weight: FloatArray | None, name: str) -> FloatArray:
    """The error (m, C) of each class that occurs in y, for outputs (m, n)."""
    _, codes = codes_of(y_true)
    order = np.argsort(codes, kind="stable")  # rows grouped by class
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    weight = np.ones(len(order)) if sample_weight is None else sample_weight[order]
    n_rows = np.add.reduceat(weight, starts) if len(starts) else np.zeros(0)
    present = n_rows > 0
    if not present.any():
        raise UndefinedMetricError(f"{name} needs at least one row (with weight).")
    n_wrong = np.add.reduceat((y_true != outputs)[:, order] * weight, starts, axis=1)
    errors: FloatArray = n_wrong[:, present] / n_rows[present]
    return errors


@of_moew
def worst_class_error() -> FunctionMetric:
    """The highest error rate of any class: max over classes c in y of P(ŷ ≠ c | y = c). Lower is better.

    The paper's metric for MNIST: no digit may be recognised badly, however well the others are. Classes
    that do not occur in y are left out.

    Examples
    --------
    >>> worst_class_error()([0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0])  # one in four zeros, one in two ones
    0.5
    """
    return FunctionMetric(
        _WorstClassError(),
        "decision",
        False,
        "worst class error",
        bounds=(0.0, 1.0),
        needs_classes=True,
    )


@dataclass(frozen=True)
class _MeanOfClasses(ManyAtOnce):
    """A mean of the classes' recalls, or of their errors."""

    name: str

    def __call__(self, y_true: Any, decision: Any, *, sample_weight: Any = None) -> float:
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return float(self.many(np.asarray(y_true), np.asarray(decision)[None], sample_weight=weight)[0])

    def many(self, y_true: Array, outputs: Array, *, sample_weight: FloatArray | None) -> FloatArray:
        errors = _class_errors(y_true, outputs, sample_weight, f"the {self.name}")
        if self.name == "G-mean":
            return np.asarray(np.maximum(1 - errors, 0.0).prod(axis=1) ** (1 / errors.shape[1]))
        return np.asarray(1 - np.sqrt((errors**2).mean(axis=1)))


@of_moew
def g_mean() -> FunctionMetric:
    """The geometric mean of the classes' recalls: (Π P(ŷ = c | y = c))^(1/C). Higher is better.

    It is 0 as soon as one class is never recognised. Classes that do not occur in y are left out.

    Examples
    --------
    >>> round(g_mean()([0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 0]), 3)  # all zeros, half of the ones
    0.707
    """
    return FunctionMetric(
        _MeanOfClasses("G-mean"), "decision", True, "G-mean", bounds=(0.0, 1.0), needs_classes=True
    )


@of_moew
def q_mean() -> FunctionMetric:
    """One less the quadratic mean of the classes' errors: 1 − √(mean of P(ŷ ≠ c | y = c)²). Higher is better.

    Classes that do not occur in y are left out.

    Examples
    --------
    >>> round(q_mean()([0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 0]), 3)
    0.646
    """
    return FunctionMetric(
        _MeanOfClasses("Q-mean"), "decision", True, "Q-mean", bounds=(0.0, 1.0), needs_classes=True
    )


@dataclass(frozen=True)
class _FprGap:
    def __call__(self, y_true: Any, decision: Any, group: Any, *, pos_label: Any = None) -> float:
        negative = ~is_positive(y_true, pos_label)
        wrong = negative & is_positive(decision, pos_label)
        names, codes = codes_of(group)
        n_groups = len(names)
        n_negative = np.bincount(codes[negative], minlength=n_groups)
        if not n_negative.all():
            occurring = np.bincount(codes, minlength=n_groups) > 0
            if empty := names[occurring & (n_negative == 0)].tolist():
                shown = f"{', '.join(map(repr, empty[:5]))}{', …' if len(empty) > 5 else ''}"
                raise UndefinedMetricError(
                    f"no false-positive rate for group {shown}: no negative rows, all "
                    f"are {shown_positive(y_true, pos_label)}."
                )
        n_wrong = np.bincount(codes[wrong], minlength=n_groups)
        occurs = n_negative > 0
        if not occurs.any():
            raise UndefinedMetricError("the gap of false-positive rates needs at least one row.")
        rates = n_wrong[occurs] / n_negative[occurs]
        return float(rates.max() - rates.min())


@of_moew
def fpr_gap(pos_label: Any = None) -> FunctionMetric:
    """The gap between groups: max_g FPR_g − min_g FPR_g, FPR_g = P(ŷ = + | y = −, g). Lower is better.

    The paper's fairness violation. Needs the per-row column `group`. A group that has rows but no
    negatives has no rate: the metric is undefined there.

    A model that decides the same for every row has a gap of 0, the best possible value. Use the metric with a
    decision rule that fixes how many are selected, `EqualFalsePositiveRates` or `ShareSelected`.

    Examples
    --------
    >>> labels, decisions = [0, 0, 0, 0, 1, 1], [1, 0, 0, 0, 1, 1]
    >>> fpr_gap()(labels, decisions, {"group": ["a", "a", "b", "b", "a", "b"]})  # one in two against none
    0.5
    """
    name = "false-positive rate gap"
    return FunctionMetric(
        _FprGap(),
        "decision",
        False,
        name,
        pos_label,
        True,
        (0.0, 1.0),
    )
