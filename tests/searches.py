"""Small fitted searches that several tests look at; fitted once in a process, so look but do not touch.

Their arguments are further settings: `strategies="example weights"` for one that selects example weights;
`simple` gives one that leaves all rows their weight.
"""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from problems import Rows, mixed_frame, shifted_classes, skewed_target
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge

from moew import MetricSearch
from moew.decision import MostAccurate
from moew.metrics import worst_class_error
from moew.search import Comparison, FittedSearch, Row, trainings_of
from moew.training import EstimatorTrainer, resolve_trainer

SETTINGS = {"n_candidates": 12, "batch_size": 4, "random_state": 0}
SIMPLE = {  # with these settings every row counts the same in the selected model
    "binary": {},
    "multiclass": {"random_state": 3},
    "regression": {"n_candidates": 4, "batch_size": 2},
    "frame": {"random_state": 3},
}
PAPER = {
    "evaluate_on": "validation",
    "final": "best",
    "strategies": "example weights",
}  # one best candidate on the validation rows


def _fit(estimator: Any, rows: Rows, **more: Any) -> MetricSearch:
    search = MetricSearch.from_settings(estimator, **{**SETTINGS, **more})
    return search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))


@cache
def multiclass(**more: Any) -> tuple[MetricSearch, Rows]:
    """Three classes, weights by class alone, a metric where smaller is better."""
    rows = shifted_classes(240, 3)
    search = _fit(
        LogisticRegression(C=0.1),
        rows,
        metric=worst_class_error(),
        embedding="label",
        base_weights="uniform",
        **more,
    )
    return search, rows


@cache
def binary(**more: Any) -> tuple[MetricSearch, Rows]:
    """Two classes, a decision rule, weights by two columns and the label (three dimensions)."""
    rows = shifted_classes(240, 2)
    settings = {"metric": "balanced_accuracy", "embedding": [0, 1], "decision": MostAccurate()}
    return _fit(LogisticRegression(), rows, **settings, **more), rows


@cache
def regression(**more: Any) -> tuple[MetricSearch, Rows]:
    """A numeric target, and one dimension of alpha."""
    rows = skewed_target(200)
    settings = {"metric": "neg_mean_absolute_error", "embedding": lambda X, y: X[:, :1]}
    return _fit(Ridge(), rows, **settings, **more), rows


@cache
def frame(**more: Any) -> tuple[MetricSearch, tuple[pd.DataFrame, np.ndarray]]:
    """A data frame of mixed columns with missing values, and no validation rows."""
    X, y = mixed_frame(240)
    estimator = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
    search = MetricSearch.from_settings(estimator, embedding=["number", "kind"], **{**SETTINGS, **more})
    return search.fit(X, y), (X, y)


def simple(name: str) -> tuple[MetricSearch, Any]:
    """The search of that name that selects a strategy without learned weights."""
    found: tuple[MetricSearch, Any] = globals()[name](strategies="auto", **SIMPLE[name])
    return found


def comparison_of(gain: float, noise: float = 0.01, greater_is_better: bool = True) -> Comparison:
    """A made-up comparison whose moew is better than uniform by `gain`."""
    rng = np.random.default_rng(0)
    sign = 1 if greater_is_better else -1

    def row(method: str, test: float) -> Row:
        chance = rng.standard_normal(6)
        scores = test + noise * (chance - chance.mean())
        note = "a <note>" if method == "random weights" else ""
        return Row(method, 13, scores + 0.02, scores + 0.01, scores, note)

    rows = [row(method, 0.5) for method in ("unweighted", "random weights", "importance weights")]
    rows.append(row("moew", 0.5 + sign * gain))
    return Comparison("a metric", greater_is_better, tuple(rows), 6, 480, noise)


def trained_again(fitted: FittedSearch, number: int, X: Any, y: Any) -> Any:
    """The model of a candidate, trained again on the rows that were trained on."""
    settings = fitted.settings
    trainer = resolve_trainer(settings.estimator, settings.sample_weight_name, settings.n_jobs)
    if fitted.fit_params and isinstance(trainer, EstimatorTrainer):
        trainer = replace(trainer, fit_params=fitted.fit_params)
    trials = [trial for trial in fitted.result.trials if trial.number == number]
    ((_, model),) = trainer.train(X, np.asarray(y), trainings_of(fitted.weighting, trials))
    assert not isinstance(model, Exception), model
    return model
