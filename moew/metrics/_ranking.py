"""Metrics of scores: precision at a recall."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from moew.exceptions import InvalidInputError, UndefinedMetricError
from moew.metrics._labels import is_positive, shown_labels, shown_positive
from moew.metrics._metric import FunctionMetric, of_moew


@dataclass(frozen=True)
class _PrecisionAtRecall:
    recall: float

    def __call__(self, y_true: Any, score: Any, *, pos_label: Any = None, sample_weight: Any = None) -> float:
        positive = is_positive(y_true, pos_label)
        score = np.asarray(score)
        if score.ndim != 1:
            raise InvalidInputError(
                f"precision at recall needs one score for each row (two classes), got shape {score.shape}."
            )
        if np.isnan(score).any():
            raise InvalidInputError("precision at recall cannot rank rows whose score is NaN.")
        of_positives = score[positive]
        n_positive = len(of_positives)
        if not n_positive:
            raise UndefinedMetricError(
                f"precision at recall needs a positive row: {score.size} rows, none is "
                f"{shown_positive(y_true, pos_label)}; the labels are {shown_labels(y_true)}."
            )
        if sample_weight is not None:
            return self._weighted(positive, score, np.asarray(sample_weight, dtype=np.float64))
        # The threshold is the score of the k-th best positive, with the smallest k for which k / P ≥ recall:
        # no sorting of all rows is needed, and rows of equal score are selected together.
        k = min(n_positive, int(self.recall * n_positive) + 1)
        while k > 1 and (k - 1) / n_positive >= self.recall:
            k -= 1
        threshold = np.partition(of_positives, n_positive - k)[n_positive - k]
        return float(np.count_nonzero(of_positives >= threshold) / np.count_nonzero(score >= threshold))

    def _weighted(self, positive: Any, score: Any, weight: Any) -> float:
        order = np.argsort(-score[positive], kind="stable")
        reached = np.cumsum(weight[positive][order])
        if not reached[-1] > 0:
            raise UndefinedMetricError("precision at recall needs a positive row with weight above 0.")
        # With a tolerance for rounding: four of five weights of 0.3 are a recall of 0.8.
        needed = self.recall * reached[-1] * (1 - 1e-12)
        threshold = score[positive][order][np.searchsorted(reached, needed)]
        taken = score >= threshold
        return float(weight[taken & positive].sum() / weight[taken].sum())


@of_moew
def precision_at_recall(recall: float = 0.95, pos_label: Any = None) -> FunctionMetric:
    """Precision at the highest threshold whose recall is at least `recall`. Higher is better.

    TP(θ) / (TP(θ) + FP(θ)) with θ = max {θ : TP(θ) / P ≥ recall}, where the rows with score ≥ θ are
    selected, so that rows of equal score are selected together. This is the paper's metric in Figure 1: as
    few false alarms as possible when nearly all positives must be found. Undefined without positives.

    Examples
    --------
    >>> precision_at_recall(1.0)([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1])  # the first three must be selected
    0.6666666666666666
    >>> precision_at_recall(0.5)([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1])
    1.0
    """
    if isinstance(recall, bool) or not isinstance(recall, Real) or not 0 < float(recall) <= 1:
        raise InvalidInputError(
            f"recall must be a number above 0 and at most 1, got {recall!r}.", argument="recall"
        )
    name = f"precision at {100 * float(recall):g}% recall"
    return FunctionMetric(
        _PrecisionAtRecall(float(recall)),
        "score",
        True,
        name,
        pos_label,
        True,
        (0.0, 1.0),
    )
