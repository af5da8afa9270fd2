"""Metrics of the rows decided positive: value saved per harm done, mean grade."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from moew.exceptions import InvalidInputError, UndefinedMetricError
from moew.metrics._labels import is_positive, shown_labels, shown_positive
from moew.metrics._metric import FunctionMetric, of_moew
from moew.types import Array


@dataclass(frozen=True)
class _ValuePerHarm:
    def __call__(self, y_true: Any, decision: Any, value: Any, harm: Any, *, pos_label: Any = None) -> float:
        positive = is_positive(y_true, pos_label)
        selected = is_positive(decision, pos_label)
        harm = np.asarray(harm, dtype=np.float64)
        if not harm.min(initial=0.0) >= 0:  # also raises on NaN
            raise InvalidInputError("harm must be 0 or more in every row, none missing.", argument="harm")
        if not selected.any():
            return 0.0
        saved = float(np.asarray(value, dtype=np.float64)[selected & positive].sum())
        done = float(harm[selected & ~positive].sum())
        if done == 0:
            possible = harm[~positive & (harm > 0)]
            if not possible.size:
                raise UndefinedMetricError("value per harm has no scale: no negative row can be harmed.")
            done = float(possible.min())
        return saved / done


@of_moew
def value_per_harm(pos_label: Any = None) -> FunctionMetric:
    """Value saved by right alarms over harm done by false ones, higher is better:
    Σ value over selected positives / Σ harm over selected negatives.

    The paper's metric for spam: costs saved by blocking spam over impressions of good results blocked,
    with the columns `value` and `harm` for each row; use it with `ShareSelected(0.05)`. If no harm
    was done the denominator is the smallest harm above 0 of any negative row: the value stays finite,
    and doing no harm counts at least as much as doing the least possible harm. With nothing selected the
    value is 0.

    Examples
    --------
    >>> labels, blocked = [1, 1, 0, 0], [1, 0, 1, 0]
    >>> value_per_harm()(labels, blocked, {"value": [60.0, 10.0, 0.0, 0.0], "harm": [0.0, 0.0, 20.0, 5.0]})
    3.0
    """
    bounds = (0.0, math.inf)
    return FunctionMetric(
        _ValuePerHarm(),
        "decision",
        True,
        "value per harm",
        pos_label,
        True,
        bounds,
    )


@dataclass(frozen=True)
class _MeanOfSelected:
    def __call__(
        self, y_true: Any, decision: Any, *, pos_label: Any = None, sample_weight: Any = None
    ) -> float:
        selected = is_positive(decision, pos_label)
        grades = np.asarray(y_true)
        _check_grades(grades)
        chosen = grades[selected]
        if not chosen.size:
            raise UndefinedMetricError(
                f"nothing was selected among {selected.size} rows, so there is no mean: none is decided "
                f"{shown_positive(decision, pos_label)}, the decisions are {shown_labels(decision)}."
            )
        if sample_weight is None:
            return float(chosen.mean())
        weight = np.asarray(sample_weight, dtype=np.float64)[selected]
        if not weight.sum() > 0:
            raise UndefinedMetricError("the selected rows have no weight, so there is no mean.")
        return float(chosen @ weight / weight.sum())


@dataclass(frozen=True)
class _MeanOfTop:
    share: float

    def __call__(self, y_true: Any, score: Any) -> float:
        grades, scores = np.asarray(y_true), np.asarray(score)
        _check_grades(grades)
        n = len(scores)
        count = max(1, int(np.floor(self.share * n + 0.5)))
        threshold = np.partition(scores, n - count)[n - count]
        above, level = scores > threshold, scores == threshold
        if not level.any():
            return float("nan")  # the threshold is NaN: the model has diverged
        of_level = grades[level].sum() / level.sum()
        return float((grades[above].sum() + (count - above.sum()) * of_level) / count)


@of_moew
def mean_of_selected(share: float | None = None, pos_label: Any = None) -> FunctionMetric:
    """The mean of y over the rows decided positive: E[y | ŷ = +]. Higher is better.

    The paper's metric for web pages: y is a graded quality in [0, 1], while the model is trained on
    binary labels and selects 40 %. With `share` it is the mean over that share of the rows with the highest
    scores, where rows that tie at the threshold count by their mean, as a random choice among them gives on
    average. Without it, a decision rule such as `ShareSelected(0.4)` selects; undefined when nothing is
    selected.

    Examples
    --------
    >>> mean_of_selected(pos_label=1)([0.9, 0.2, 0.5], [1, 0, 1])
    0.7
    >>> mean_of_selected(share=0.5)([0.9, 0.2, 0.5, 0.1], [3.0, 2.0, 2.0, 1.0])  # two rows tie
    0.625
    """
    if share is None:
        return FunctionMetric(
            _MeanOfSelected(),
            "decision",
            True,
            "mean of the selected",
            pos_label,
            True,
        )
    if isinstance(share, bool) or not isinstance(share, Real) or not 0 < float(share) <= 1:
        raise InvalidInputError(
            f"share must be a number above 0 and at most 1, got {share!r}.", argument="share"
        )
    name = f"mean of the top {100 * float(share):g} %"
    return FunctionMetric(
        _MeanOfTop(float(share)),
        "score",
        True,
        name,
        pos_label,
        True,
    )


def _check_grades(grades: Array) -> None:
    if grades.dtype.kind not in "biuf":
        kind = "texts" if grades.dtype.kind in "USO" else str(grades.dtype)
        raise InvalidInputError(
            f"the mean of the selected needs y in numbers, such as a graded quality, got {kind}.",
            argument="y",
        )
