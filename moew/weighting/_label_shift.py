"""Base weights for label shift, π(y) = p_V(y) / p_T(y): the paper's base weights."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from moew._util.state import State, has_state, pack_array, unpack_array
from moew.data import label_levels, label_positions, number_labels
from moew.exceptions import Argument, InvalidInputError, MoewWarning
from moew.types import FloatArray, Labels, Rows, Task
from moew.weighting._base_weights import BaseWeightsEstimator, check_limit, need_validation
from moew.weighting._density_ratio import fit_density_ratio, spline_features, spline_knots

_TABLE_SIZE = 257


@has_state
class LabelShift(BaseWeightsEstimator):
    """π(y) = p_V(y) / p_T(y), estimated from the labels only.

    Classification: class frequencies, `smoothing` counts added to each. Regression: a density ratio from
    the odds of a cross-fitted logistic regression on a cubic spline of y (knots at quantiles), corrected
    for the numbers of rows and clipped to 1/limit … limit; it is stored as a table over y, interpolated
    linearly in its logarithm and constant beyond the ends. `limit` and `n_folds` are for regression.
    """

    def __init__(self, limit: float = 10.0, n_folds: int = 5, smoothing: float = 0.5) -> None:
        self.limit = limit
        self.n_folds = n_folds
        self.smoothing = smoothing

    def fit(self, X: Rows, y: Labels, X_val: Rows, y_val: Labels, *, task: Task) -> Self:
        """Learn from the labels of the training and of the validation rows."""
        need_validation(y_val, "y_val", "LabelShift")
        check_limit(self.limit)
        self.task_ = task
        if task == "classification":
            self.levels_ = label_levels(y)
            self.table_ = _class_ratios(y, y_val, self.levels_, self.smoothing)
        else:
            y, y_val = number_labels(y), number_labels(y_val)
            self.levels_, self.table_ = _log_ratio_table(y, y_val, self.limit, self.n_folds)
        return self

    def weights(self, X: Rows, y: Labels) -> FloatArray:
        """π (n,) for any labels."""
        check_is_fitted(self)
        if self.task_ == "classification":
            return np.asarray(self.table_[label_positions(y, self.levels_)])
        return np.exp(np.interp(number_labels(y), self.levels_, self.table_))

    def _content(self) -> State:
        check_is_fitted(self)
        return {
            "limit": float(self.limit),
            "n_folds": int(self.n_folds),
            "smoothing": float(self.smoothing),
            "task": self.task_,
            "levels": self.levels_,
            "table": pack_array(self.table_),
        }

    @classmethod
    def from_state(cls, state: State, objects: Mapping[str, Any]) -> Self:
        """The base weights that `state()` described."""
        self = cls(limit=state["limit"], n_folds=state["n_folds"], smoothing=state["smoothing"])
        self.task_, self.levels_ = state["task"], state["levels"]
        self.table_ = unpack_array(state["table"])
        return self


def _class_ratios(y: Labels, y_val: Labels, levels: list[Any], smoothing: float) -> FloatArray:
    """p_V / p_T (C,) of the classes in `levels`."""
    if unseen := [level for level in label_levels(y_val) if level not in levels]:
        raise InvalidInputError(
            f"the validation labels {unseen[:10]!r} are not among the training labels {levels[:10]!r}, so "
            "p_V(y)/p_T(y) has no value. If the validation labels are of another kind (such as grades "
            "against yes/no), use ",
            Argument("base_weights", "uniform"),
            " or ",
            Argument("base_weights", "covariate_shift"),
            "; else drop those validation rows.",
            argument="base_weights",
        )
    in_training, in_validation = (
        np.bincount(label_positions(labels, levels), minlength=len(levels)) for labels in (y, y_val)
    )
    if absent := [level for level, count in zip(levels, in_validation, strict=True) if count == 0]:
        warning = MoewWarning(
            f"the training classes {absent!r} do not occur in the validation set: their base weight is "
            "that of half a validation row, close to zero. Use ",
            Argument("base_weights", "uniform"),
            " if the validation set is only small.",
            argument="base_weights",
        )
        warnings.warn(warning, stacklevel=3)
    smooth_training, smooth_validation = in_training + smoothing, in_validation + smoothing
    return np.asarray(
        (smooth_validation / smooth_validation.sum()) / (smooth_training / smooth_training.sum())
    )


def _log_ratio_table(
    y: FloatArray, y_val: FloatArray, limit: float, n_folds: int
) -> tuple[list[float], FloatArray]:
    """Targets in increasing order, and log p_V/p_T at each of them."""
    pooled = np.r_[y, y_val]
    knots = spline_knots(pooled)
    # Half the entries are evenly spaced and half at quantiles, so that a long tail stays smooth.
    shares = np.linspace(0, 1, _TABLE_SIZE)
    grid = np.unique(np.r_[np.quantile(pooled, shares), np.linspace(pooled.min(), pooled.max(), _TABLE_SIZE)])
    if len(knots) < 2:
        return grid.tolist(), np.zeros(len(grid))
    ratio = fit_density_ratio(spline_features(y, knots), spline_features(y_val, knots), n_folds, seed=0)
    log_ratio = ratio.intercept + spline_features(grid, knots) @ ratio.coef
    return grid.tolist(), np.clip(log_ratio, -np.log(limit), np.log(limit))
