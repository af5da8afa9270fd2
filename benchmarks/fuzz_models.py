"""Generated models and metrics: sound ones, and odd ones."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np
from fuzz_cases import chance, odd_value, pick
from fuzz_rows import Rng
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.cluster import KMeans
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier
from sklearn.metrics import make_scorer, median_absolute_error, zero_one_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from moew import make_metric
from moew.metrics import fpr_gap, precision_at_recall, worst_band_relative_error, worst_class_error


class Raises(LogisticRegression):
    """Fails for some weights."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        if sample_weight is not None and int(1e6 * float(np.max(sample_weight))) % 2:
            raise RuntimeError("the disk is full")
        return super().fit(X, y, sample_weight)


class AlwaysRaises(ClassifierMixin, BaseEstimator):
    """Fails for all weights, without a message."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        raise KeyError

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X))


class Answers(ClassifierMixin, BaseEstimator):
    """Answers in an odd way."""

    def __init__(self, how: str = "nan") -> None:
        self.how = how

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        n = np.shape(X)[0]
        return {
            "nan": np.full(n, np.nan),
            "short": np.repeat(self.classes_[:1], max(0, n - 1)),
            "strange label": np.full(n, "strange"),
            "two columns": np.repeat(self.classes_[:1], 2 * n).reshape(n, 2),
            "None": None,
            "scalar": 1.0,
            "text": "cat",
            "list": [self.classes_[0]] * n,
        }.get(self.how, np.repeat(self.classes_[:1], n))

    def predict_proba(self, X: Any) -> Any:
        n, k = np.shape(X)[0], len(self.classes_)
        if self.how == "nan":
            return np.full((n, k), np.nan)
        if self.how == "no classes":
            return np.zeros((n, 0))
        if self.how == "negative":
            return np.full((n, k), -3.0)
        return np.full((n, k), 1 / k)


class AnswersNumbers(RegressorMixin, BaseEstimator):
    """The same for regression."""

    def __init__(self, how: str = "nan") -> None:
        self.how = how

    fit = Answers.fit
    predict = Answers.predict


class Meddles(LogisticRegression):
    """Changes what it is given."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        X *= 2
        if sample_weight is not None:
            sample_weight *= 0
        return super().fit(X, y, sample_weight)


def sound_model(rng: Rng, task: str) -> tuple[Any, dict[str, Any]]:
    """A model that takes sound rows, and settings that it needs."""
    if task == "regression":
        return pick(
            rng, [Ridge(), Ridge(), LinearRegression(), DecisionTreeRegressor(max_depth=3), DummyRegressor()]
        ), {}
    if chance(rng, 0.15):
        scaled = make_pipeline(StandardScaler(), LogisticRegression())
        return scaled, {"sample_weight_name": "logisticregression__sample_weight"}
    return pick(
        rng,
        [
            *[LogisticRegression(max_iter=50)] * 4,
            LogisticRegression(C=0.01),
            DecisionTreeClassifier(max_depth=2),
            DecisionTreeClassifier(max_depth=3, random_state=0),
            GaussianNB(),
            DummyClassifier(),
            SGDClassifier(loss="log_loss", max_iter=5, tol=None),
            RandomForestClassifier(n_estimators=2, max_depth=2),
        ],
    ), {}


def odd_model(rng: Rng, task: str) -> tuple[Any, dict[str, Any]]:
    """A model that fails, answers in odd ways, or is none."""
    how = pick(
        rng, ["nan", "short", "strange label", "two columns", "None", "scalar", "text", "list", "negative"]
    )
    return pick(
        rng,
        [
            Raises(), Raises(), AlwaysRaises(), Answers(how), Answers(how), Answers("no classes"),
            AnswersNumbers(how),
            Meddles(), KNeighborsClassifier(), KMeans(2), LogisticRegression, None, "LogisticRegression",
            StandardScaler(),
            make_pipeline(StandardScaler(), LogisticRegression()), LogisticRegression(C=-1.0),
            Ridge(alpha="x"),
            HistGradientBoostingClassifier(max_iter=2), HistGradientBoostingRegressor(max_iter=2), Ridge(),
            GaussianNB(), DecisionTreeClassifier(max_depth=2), odd_value(rng),
        ],
    ), {}  # fmt: skip


# Metrics


def share_right(y_true: Any, decision: Any) -> float:
    """A function of a user's: the share of equal labels."""
    return float(np.mean(np.asarray(y_true) == np.asarray(decision)))


def mean_distance(y_true: Any, decision: Any) -> float:
    """A function of a user's: minus the mean distance."""
    return -float(np.mean(np.abs(np.asarray(y_true, dtype=float) - np.asarray(decision, dtype=float))))


def with_column(y_true: Any, decision: Any, *, group: Any) -> float:
    """Needs a column."""
    return float(np.mean(np.asarray(y_true)[np.asarray(group) == "a"] == np.asarray(decision)[group == "a"]))


SOUND_METRICS: dict[int, list[Any]] = {
    0: [
        None, "r2", "neg_mean_absolute_error", "neg_root_mean_squared_error", "r_squared", mean_distance,
        worst_band_relative_error((17, 23)), make_scorer(median_absolute_error, greater_is_better=False),
    ],
    2: [
        None, "accuracy", "balanced_accuracy", "worst_class_error", "g_mean", "q_mean", "roc_auc",
        "neg_log_loss",
        "matthews_corrcoef", share_right, worst_class_error(),
        make_scorer(zero_one_loss, greater_is_better=False),
        precision_at_recall(0.9), make_metric(share_right, name="mine"),
    ],
    3: [
        None, "accuracy", "balanced_accuracy", "f1_macro", "worst_class_error", "g_mean", share_right,
        "matthews_corrcoef",
    ],
}  # fmt: skip


def odd_metric(rng: Rng) -> Any:
    """A metric that is none, fails or gives odd values."""
    value = odd_value(rng)
    values = cycle([0.5, np.nan, np.inf, 0.7])
    return pick(
        rng,
        [
            value, lambda y, d: value, lambda y, d: np.nan, lambda y, d: np.inf, lambda y: 1.0, lambda: 1.0,
            lambda y, d: 1 / 0, lambda y, d: d, lambda y, d: next(values), with_column, fpr_gap(),
            "no such metric",
            "precision_at_recall=2", "precision_at_recall=x", "worst_band_relative_error=3,1", "accuracy=3",
            "f1",
            lambda y, d: np.float32(0.5), lambda y, d: np.array([[0.5]]), lambda y, d: True, lambda y,
            d: 1e308,
            make_metric(share_right, response="score"), make_metric(share_right, response="proba"),
            make_metric(share_right, pos_label="none"), "r2", "roc_auc", "explained_variance", "f1_samples",
            "average_precision",
            "top_k_accuracy", "jaccard", "v_measure_score",
            make_scorer(share_right, response_method="predict_proba"),
        ],
    )  # fmt: skip
