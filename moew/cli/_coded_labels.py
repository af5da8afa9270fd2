"""A classifier that only takes classes 0 … C−1, such as XGBoost's, for classes of any name."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import Tags, get_tags

from moew.types import Features, FloatArray, Labels


class CodedLabels(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Trains `estimator` on the numbers of the classes and answers with the classes."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(
        self,
        X: Features,
        y: Labels,
        sample_weight: Any = None,
        eval_set: Any = None,
        sample_weight_eval_set: Any = None,
    ) -> Self:
        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        more = {}
        if eval_set is not None:  # rows to stop by
            coded = [(rows, np.searchsorted(self.classes_, labels)) for rows, labels in eval_set]
            more = {"eval_set": coded, "sample_weight_eval_set": sample_weight_eval_set, "verbose": False}
        self.estimator_ = clone(self.estimator).fit(X, codes, sample_weight=sample_weight, **more)
        return self

    def predict(self, X: Features) -> Any:
        return self.classes_[np.asarray(self.estimator_.predict(X), dtype=np.intp)]

    def predict_proba(self, X: Features) -> FloatArray:
        return np.asarray(self.estimator_.predict_proba(X))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags
