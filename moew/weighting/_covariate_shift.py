"""Base weights for covariate shift, π(x) = p_V(x) / p_T(x): Shimodaira's importance weights."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from moew._util.seeds import draw_seed
from moew._util.state import State, has_state, pack_array, unpack_array
from moew.data import TabularEncoder
from moew.types import FloatArray, Labels, Rows, Task
from moew.weighting._base_weights import BaseWeightsEstimator, check_limit, need_validation
from moew.weighting._density_ratio import fit_density_ratio, spline_features, spline_knots

_MOST_SPLINE_COLUMNS = 64  # with more, no splines: they would fill the memory
_MOST_PAIRED_COLUMNS = 16


@has_state
class CovariateShift(BaseWeightsEstimator):
    """π(x) = p_V(x) / p_T(x), from the odds of a classifier between validation and training rows.

    The classifier is a calibrated logistic regression on the encoded columns, cubic splines of the
    numeric ones (up to 64) and products of pairs (up to 16 columns), so it has no interactions of three
    columns. The odds are corrected for the numbers of rows, clipped to 1/limit … limit and divided by
    their mean over the training rows.

    `training_weights_` (n,) are the weights of the training rows, each from a classifier that did not
    see it; `weights` of any rows are from the average of the folds' classifiers.
    """

    def __init__(self, limit: float = 10.0, n_folds: int = 5, random_state: Any = None) -> None:
        self.limit = limit
        self.n_folds = n_folds
        self.random_state = random_state

    def fit(self, X: Rows, y: Labels, X_val: Rows, y_val: Labels, *, task: Task) -> Self:
        """Learn from the features of the training and of the validation rows."""
        need_validation(X_val, "X_val", "CovariateShift")
        check_limit(self.limit)
        self.encoder_ = TabularEncoder().fit(X)
        encoded = self.encoder_.transform(X)
        self.knots_ = self._find_knots(encoded)
        training = self._features(encoded)
        validation = self._features(self.encoder_.transform(X_val))
        seed = draw_seed(check_random_state(self.random_state))
        ratio = fit_density_ratio(training, validation, self.n_folds, seed)
        self.intercept_, self.coef_ = ratio.intercept, ratio.coef
        clipped = self._clipped(ratio.training_log_ratio)
        self.mean_ = float(clipped.mean())
        self.training_weights_ = clipped / self.mean_
        return self

    def fit_weights(self, X: Rows, y: Labels, X_val: Rows, y_val: Labels, *, task: Task) -> FloatArray:
        """Fit, and return `training_weights_` (n,): each row's from a classifier that did not see it."""
        return self.fit(X, y, X_val, y_val, task=task).training_weights_

    def weights(self, X: Rows, y: Labels) -> FloatArray:
        """π (n,) for any rows."""
        check_is_fitted(self)
        log_ratio = self.intercept_ + self._features(self.encoder_.transform(X)) @ self.coef_
        return self._clipped(log_ratio) / self.mean_

    def _clipped(self, log_ratio: FloatArray) -> FloatArray:
        edge = np.log(self.limit)
        return np.exp(np.clip(log_ratio, -edge, edge))

    def _find_knots(self, encoded: FloatArray) -> list[list[float]]:
        """Spline knots of each numeric column; none if there are too many columns."""
        numeric = [block.start for block in self.encoder_.blocks_ if block.kind == "numeric"]
        if len(numeric) > _MOST_SPLINE_COLUMNS:
            return [[] for _ in numeric]
        return [spline_knots(encoded[:, j]) for j in numeric]

    def _features(self, encoded: FloatArray) -> FloatArray:
        """The classifier's features (n, F) of encoded rows (n, D)."""
        bounded = np.clip(encoded, -4, 4)  # an outlier must not dominate
        numeric = [block.start for block in self.encoder_.blocks_ if block.kind == "numeric"]
        splines = [spline_features(encoded[:, j], k) for j, k in zip(numeric, self.knots_, strict=True)]
        pairs = []
        if encoded.shape[1] <= _MOST_PAIRED_COLUMNS:
            pairs = [bounded[:, [i]] * bounded[:, [j]] for i, j in combinations(range(encoded.shape[1]), 2)]
        return np.hstack([bounded, *splines, *pairs])

    def _content(self) -> State:
        check_is_fitted(self)
        return {
            "limit": float(self.limit),
            "n_folds": int(self.n_folds),
            "encoder": self.encoder_.state(),
            "knots": self.knots_,
            "intercept": self.intercept_,
            "coef": pack_array(self.coef_),
            "mean": self.mean_,
        }

    @classmethod
    def from_state(cls, state: State, objects: Mapping[str, Any]) -> Self:
        """The base weights that `state()` described."""
        self = cls(limit=state["limit"], n_folds=state["n_folds"])
        self.encoder_ = TabularEncoder.from_state(state["encoder"])
        self.knots_, self.intercept_ = state["knots"], state["intercept"]
        self.coef_, self.mean_ = unpack_array(state["coef"]), state["mean"]
        return self
