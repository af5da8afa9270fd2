"""Metrics of decided classes: accuracy, the worst class, the gap between groups.

Each is a frozen record that can be called, so that it can be pickled, copied and compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from moew.exceptions import UndefinedMetricError
from moew.metrics._labels import codes_of, is_positive, shown_positive
from moew.metrics._metric import Metric


@dataclass(frozen=True)
class _Accuracy:
    def __call__(self, y_true: Any, decision: Any, *, sample_weight: Any = None) -> float:
        right = np.asarray(y_true) == np.asarray(decision)
        if sample_weight is None:
            return float(np.count_nonzero(right) / right.size) if right.size else float("nan")
        weight = np.asarray(sample_weight, dtype=np.float64)
        return float(weight[right].sum() / weight.sum()) if weight.any() else float("nan")


def accuracy() -> Metric:
    """The share of rows decided rightly: mean of 1[ŷ = y]. Higher is better."""
    return Metric(_Accuracy(), "decision", True, "accuracy", bounds=(0.0, 1.0))


@dataclass(frozen=True)
class _WorstClassError:
    def __call__(self, y_true: Any, decision: Any, *, sample_weight: Any = None) -> float:
        labels = np.asarray(y_true)
        wrong = labels != np.asarray(decision)
        _, codes = codes_of(labels)
        if sample_weight is None:
            n_rows = np.bincount(codes)
            n_wrong = np.bincount(codes[wrong], minlength=len(n_rows))
        else:
            weight = np.asarray(sample_weight, dtype=np.float64)
            n_rows = np.bincount(codes, weights=weight)
            n_wrong = np.bincount(codes[wrong], weights=weight[wrong], minlength=len(n_rows))
        present = n_rows > 0
        if not present.any():
            raise UndefinedMetricError("the worst class error needs at least one row (with weight).")
        return float((n_wrong[present] / n_rows[present]).max())


def worst_class_error() -> Metric:
    """The highest error rate of any class: max over classes c in y of P(ŷ ≠ c | y = c). Lower is better.

    The paper's metric for MNIST: no digit may be recognised badly, however well the others are. Classes
    that do not occur in y are left out.
    """
    return Metric(_WorstClassError(), "decision", False, "worst class error", bounds=(0.0, 1.0))


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
                raise UndefinedMetricError(
                    f"no false-positive rate for group {', '.join(map(repr, empty))}: no negative rows, all "
                    f"are {shown_positive(y_true, pos_label)}."
                )
        n_wrong = np.bincount(codes[wrong], minlength=n_groups)
        occurs = n_negative > 0
        if not occurs.any():
            raise UndefinedMetricError("the gap of false-positive rates needs at least one row.")
        rates = n_wrong[occurs] / n_negative[occurs]
        return float(rates.max() - rates.min())


def fpr_gap(pos_label: Any = None) -> Metric:
    """The gap between groups: max_g FPR_g − min_g FPR_g, FPR_g = P(ŷ = + | y = −, g). Lower is better.

    The paper's fairness violation. Needs the per-row column `group`. A group that has rows but no
    negatives has no rate: the metric is undefined there.

    A model that decides the same for every row has a gap of 0, the best there is. Use the metric with a
    decision rule that fixes how many are selected, `EqualFalsePositiveRates` or `ShareSelected`.
    """
    return Metric(_FprGap(), "decision", False, "false-positive rate gap", pos_label, True, (0.0, 1.0))
