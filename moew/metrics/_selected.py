"""Metrics of what was selected (decided positive): value saved per harm done, mean graded score."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from moew.exceptions import InvalidInputError, UndefinedMetricError
from moew.metrics._labels import is_positive, shown_labels, shown_positive
from moew.metrics._metric import FunctionMetric


@dataclass(frozen=True)
class _ValuePerHarm:
    def __call__(self, y_true: Any, decision: Any, value: Any, harm: Any, *, pos_label: Any = None) -> float:
        positive = is_positive(y_true, pos_label)
        selected = is_positive(decision, pos_label)
        harm = np.asarray(harm, dtype=np.float64)
        if not harm.min(initial=0.0) >= 0:  # a NaN fails here too
            raise InvalidInputError("harm must be 0 or more in every row, none missing.")
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


def value_per_harm(pos_label: Any = None) -> FunctionMetric:
    """Value saved by right alarms over harm done by false ones, higher is better:
    Σ value over selected positives / Σ harm over selected negatives.

    The paper's metric for spam: costs saved by blocking spam over impressions of good results blocked,
    with the columns `value` and `harm` for each row; use it with `ShareSelected(0.05)`. Where no harm
    was done the denominator is the smallest harm above 0 of any negative row: the value stays finite,
    and doing no harm counts at least as much as doing the least that could be done. Nothing selected is
    worth 0.

    Examples
    --------
    >>> labels, blocked = [1, 1, 0, 0], [1, 0, 1, 0]
    >>> value_per_harm()(labels, blocked, {"value": [60.0, 10.0, 0.0, 0.0], "harm": [0.0, 0.0, 20.0, 5.0]})
    3.0
    """
    bounds = (0.0, math.inf)
    return FunctionMetric(_ValuePerHarm(), "decision", True, "value per harm", pos_label, True, bounds)


@dataclass(frozen=True)
class _MeanOfSelected:
    def __call__(
        self, y_true: Any, decision: Any, *, pos_label: Any = None, sample_weight: Any = None
    ) -> float:
        selected = is_positive(decision, pos_label)
        grades = np.asarray(y_true)
        if grades.dtype.kind not in "biuf":
            raise InvalidInputError(
                f"the mean of the selected needs y in numbers, such as a graded quality, got {grades.dtype}."
            )
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


def mean_of_selected(pos_label: Any = None) -> FunctionMetric:
    """The mean of y over the rows decided positive: E[y | ŷ = +]. Higher is better.

    The paper's metric for web pages: y is a graded quality in [0, 1], while the model is trained on
    binary labels and selects 40 %; use it with `ShareSelected(0.4)`. Undefined when nothing is selected.

    Examples
    --------
    >>> mean_of_selected(pos_label=1)([0.9, 0.2, 0.5], [1, 0, 1])
    0.7
    """
    return FunctionMetric(_MeanOfSelected(), "decision", True, "mean of the selected", pos_label, True)
