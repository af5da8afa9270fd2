"""Generated settings beyond those of one metric and one model: several metrics and bounds, calibration,
limits of candidates and of time, arguments of the model's `fit`, rows to stop early by, callbacks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from fuzz_cases import chance, expect, expect_close, pick
from fuzz_rows import Problem, Rng
from sklearn.linear_model import LogisticRegression, Ridge

from moew import MetricSearch
from moew.data import two_dimensional
from moew.search import SearchCallback

# Metrics that are looked at beside the one to optimise, with bounds that some models keep, or all, or none.
_ALSO: dict[int, list[tuple[str, list[str]]]] = {
    0: [("r_squared", [">= 0.1", ">= -9"]), ("neg_mean_absolute_error", [">= -3.5", ">= 0"])],
    2: [
        ("accuracy", [">= 0.7", ">= 0", ">= 2"]),
        ("worst_class_error", ["<= 0.5", "<= 0"]),
        ("roc_auc", [">= 0.6"]),
        ("g_mean", [">= 0.4", ">= 1e9"]),
    ],
    3: [("accuracy", [">= 0.5", ">= 2"]), ("worst_class_error", ["<= 0.9", "<= 0"])],
}


class Counts(SearchCallback):
    """A callback that counts what it is told."""

    def __init__(self) -> None:
        self.begun = self.ended = 0
        self.numbers: dict[str, list[int]] = {}

    def on_begin(self, settings: Any, metric: Any) -> None:
        self.begun += 1

    def on_trial(self, strategy: str, trial: Any) -> None:
        self.numbers.setdefault(strategy, []).append(trial.number)

    def on_end(self, fitted: Any, training: Any, validation: Any) -> None:
        self.ended += 1


class RaisesWhenTold(SearchCallback):
    """A callback that fails in every method after the first."""

    def on_trial(self, strategy: str, trial: Any) -> None:
        raise RuntimeError("no connection")

    def on_end(self, fitted: Any, training: Any, validation: Any) -> None:
        raise KeyError("run")


class _ChecksRows:
    """Takes an argument with a value for each row, and fails where it does not belong to the rows."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, first_column: Any = None) -> Any:
        if first_column is not None and not np.array_equal(np.asarray(X, dtype=float)[:, 0], first_column):
            raise RuntimeError("the argument of fit belongs to other rows")
        return super().fit(X, y, sample_weight)  # type: ignore[misc]


class RowCheckingClassifier(_ChecksRows, LogisticRegression):
    """Logistic regression that looks whether its argument belongs to its rows."""


class RowCheckingRegressor(_ChecksRows, Ridge):
    """Ridge regression that looks whether its argument belongs to its rows."""


class _StopsEarly:
    """Takes rows to stop early by, and fails where they are among those that it is trained on."""

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, eval_set: Any = None, eval_sample_weight: Any = None
    ) -> Any:
        ((X_eval, y_eval),) = eval_set
        if len(X_eval) != len(y_eval) or not len(X_eval):
            raise RuntimeError("the rows to stop by are not whole")
        if eval_sample_weight is not None and len(eval_sample_weight[0]) != len(y_eval):
            raise RuntimeError("the rows to stop by have other weights")
        return super().fit(X, y, sample_weight)  # type: ignore[misc]


class EarlyClassifier(_StopsEarly, LogisticRegression):
    """Logistic regression with rows to stop early by."""


class EarlyRegressor(_StopsEarly, Ridge):
    """Ridge regression with rows to stop early by."""


def further_settings(rng: Rng, problem: Problem, metric: Any) -> tuple[Any, dict[str, Any]]:
    """A model, or None for any, and settings that work with sound rows of the problem; arguments of `fit` are
    put among its rows."""
    settings: dict[str, Any] = {}
    model = None
    classes = problem.n_classes
    if chance(rng, 0.15):
        named = getattr(metric, "registry_name", "") or metric
        others = [one for one in _ALSO[classes] if one[0] != named and chance(rng, 0.7)] or _ALSO[classes][:1]
        settings["metric"] = [metric, *(name for name, _ in others)]
        if named in (name for name, _ in others) or metric is None:
            settings["metric"] = settings["metric"][1:]
        if chance(rng, 0.3):
            settings["metric"] = {f"my {k}": one for k, one in enumerate(settings["metric"])}
        elif chance(rng, 0.6):
            settings["constraints"] = [f"{name} {pick(rng, bounds)}" for name, bounds in others]
    if classes and chance(rng, 0.08):
        settings["calibrate"] = pick(rng, ["sigmoid", "isotonic"])
    if chance(rng, 0.08):
        settings["n_candidates"] = int(rng.integers(1, 7))
    if chance(rng, 0.05):
        settings["timeout"] = pick(rng, [1e-9, 1e6])
    if chance(rng, 0.08):
        settings["callbacks"] = pick(rng, [[Counts()], [Counts(), RaisesWhenTold()], []])
    if chance(rng, 0.06):
        if chance(rng, 0.5) and problem.sound:
            model = RowCheckingClassifier() if classes else RowCheckingRegressor()
            X = two_dimensional(problem.rows["X"])
            problem.rows["fit_params"] = {"first_column": np.asarray(X, dtype=float)[:, 0]}
        else:
            model = EarlyClassifier() if classes else EarlyRegressor()
            settings["eval_share"] = pick(rng, [0.2, 0.4])
    return model, settings


ODD_FURTHER: dict[str, list[Any]] = {
    "constraints": [
        "", "accuracy", "accuracy >= x", "no >= 1", 3, "accuracy >= nan", ["accuracy >= 0"] * 2,
        "accuracy = 1", "accuracy >= 0.5", ">= 1",
    ],
    "metric": [
        [], ["accuracy"] * 2, [None, "accuracy"], {"a": "accuracy", "b": 3}, {1: "accuracy"}, [["accuracy"]],
        {"a": "r2"}, ["accuracy", "fpr_gap"], {"": "accuracy", "\x1b[31m": "g_mean"},
    ],
    "calibrate": ["no", True, 1, "Sigmoid", ["sigmoid"], "isotonic", "sigmoid"],
    "n_candidates": [0, -1, 2.5, "3", None, True, np.int64(2), np.array(1), 1],
    "timeout": [0, -1, math.nan, "x", [1], 1e-9],
    "eval_share": [0, 1, -1, 0.5, "x", math.nan, True, 1e-9, 0.999],
    "callbacks": [3, "x", [3], [None], [RaisesWhenTold()], Counts(), [Counts]],
    "join": [True, 1, None],
    "verbose": [1, "x"],
}  # fmt: skip


def odd_fit_params(rng: Rng) -> Any:
    """Arguments for the model's `fit` that it may not have."""
    return pick(
        rng,
        [
            {}, {"no_such": 1}, {"sample_weight": np.ones(3)}, {"X": 1}, 3, "x", [1], {3: 1},
            {"coef_init": "x"}, {"eval_set": []}, {"logisticregression__no": 1}, {"no_such": np.ones(24)},
        ],
    )  # fmt: skip


def check_further(search: MetricSearch, evaluated: dict[str, Any] | None) -> None:
    """What must hold of several metrics, bounds, callbacks and limits; `evaluated` are the rows that what is
    selected was scored on, None if there are none."""
    front = search.result_.pareto
    several = isinstance(search.metric, list | dict) and len(search.metric) > 1
    expect((front is not None) == several, "a front is there for several metrics, and for them alone")
    if front is not None:
        chosen = front.selected
        expect_close(chosen.values[0], search.best_score_, "the front's first value of the selected model")
        signs = np.where(front.greater_is_better, 1.0, -1.0)
        values = signs * np.array([model.values for model in front.models])
        for model, value in zip(front.models, values, strict=True):
            beaten = ((values >= value).all(axis=1) & (values > value).any(axis=1)).any()
            wanted = not beaten and bool(np.isfinite(value).all())
            expect(model.on_front == wanted, f"{model.name} is on the front: {model.on_front}")
        if evaluated is not None:
            rows = (evaluated["X"], evaluated["y"], evaluated["sample_weight"])
            now = search.metric_values(*rows, columns=evaluated["columns"])
            slack = 0.25 if hasattr(search.best_estimator_, "votes") else 1e-9
            expect_close(
                list(now.values()), chosen.values, "all metrics of the selected model", rtol=1e-7, atol=slack
            )
        for k, (name, bound) in enumerate(zip(front.bounded, front.bounds, strict=True)):
            place = front.metrics.index(name)
            at_most = "<=" in front.constraints[k]
            margin = chosen.limits[k] - chosen.values[place]
            expect(margin >= -1e-12 if at_most else margin <= 1e-12, f"the margin of {name} helps")
            inside = chosen.limits[k] <= bound if at_most else chosen.limits[k] >= bound
            expect(inside or not chosen.keeps, f"{name} is kept, and {chosen.limits[k]} is beyond {bound}")
    for callback in search.callbacks or ():
        if isinstance(callback, Counts):
            expect(callback.begun == callback.ended, "a callback was told of another number of ends")
            told = callback.numbers.get("example weights", [])
            expect(len(set(told)) == len(told) == len(search.result_.trials), f"callbacks were told {told}")
