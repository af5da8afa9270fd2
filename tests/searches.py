"""Small fitted searches that several tests look at; fitted once in a process, so look but do not touch.

Their arguments are further settings: `guard=False` for one that hands out example weights.
"""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from problems import Rows, mixed_frame, shifted_classes, skewed_target
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge

from moew import ExampleWeightSearch
from moew.decision import MostAccurate
from moew.metrics import worst_class_error
from moew.search import Comparison, Row

SETTINGS = {"n_batches": 3, "batch_size": 4, "random_state": 0}
PAPER = {"validation": None, "final": "best", "guard": False}  # one best candidate on the validation rows


def _fit(estimator: Any, rows: Rows, **more: Any) -> ExampleWeightSearch:
    search = ExampleWeightSearch(estimator, **{**SETTINGS, **more})
    return search.fit(rows.X, rows.y, X_val=rows.X_val, y_val=rows.y_val)


@cache
def multiclass(**more: Any) -> tuple[ExampleWeightSearch, Rows]:
    """Three classes, weights by class alone, a metric where smaller is better."""
    rows = shifted_classes(240, 3)
    search = _fit(
        LogisticRegression(),
        rows,
        metric=worst_class_error(),
        embedding="label",
        base_weights="uniform",
        **more,
    )
    return search, rows


@cache
def binary(**more: Any) -> tuple[ExampleWeightSearch, Rows]:
    """Two classes, a decision rule, weights by two columns and the label (three dimensions)."""
    rows = shifted_classes(240, 2)
    settings = {"metric": "balanced_accuracy", "embedding": [0, 1], "decision": MostAccurate()}
    return _fit(LogisticRegression(), rows, **settings, **more), rows


@cache
def regression(**more: Any) -> tuple[ExampleWeightSearch, Rows]:
    """A numeric target, and one dimension of alpha."""
    rows = skewed_target(200)
    settings = {"metric": "neg_mean_absolute_error", "embedding": lambda X, y: X[:, :1]}
    return _fit(Ridge(), rows, **settings, **more), rows


@cache
def frame(**more: Any) -> tuple[ExampleWeightSearch, tuple[pd.DataFrame, np.ndarray]]:
    """A data frame of mixed columns with missing values, and no validation rows."""
    X, y = mixed_frame(240)
    estimator = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
    search = ExampleWeightSearch(estimator, embedding=["number", "kind"], **{**SETTINGS, **more})
    return search.fit(X, y), (X, y)


def comparison_of(gain: float, noise: float = 0.01, greater_is_better: bool = True) -> Comparison:
    """A made-up comparison whose moew is better than uniform by `gain`."""
    rng = np.random.default_rng(0)
    sign = 1 if greater_is_better else -1

    def row(method: str, test: float) -> Row:
        chance = rng.standard_normal(6)
        scores = test + noise * (chance - chance.mean())
        return Row(method, 13, scores + 0.02, scores + 0.01, scores, "a <note>" if method == "random" else "")

    rows = [row(method, 0.5) for method in ("uniform", "random", "importance")]
    rows.append(row("moew", 0.5 + sign * gain))
    return Comparison("a metric", greater_is_better, tuple(rows), 6, 480, noise)
