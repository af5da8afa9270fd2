"""Problems whose training rows differ from the rows that matter, with a known truth.

Each draws rows of two kinds: those that matter (validation and test rows) and training rows. Problems of
DEVELOPMENT were looked at while the rules about evaluation rows were chosen; those of REPORTED were not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import expit

from moew.metrics import make_metric, mean_of_selected, precision_at_recall, worst_class_error

N_TRAINING = 1000
Model = Literal["logistic", "boosting", "ridge"]


class Drawn(NamedTuple):
    """Features (n, D), labels (n,), and columns that the metric reads, by name."""

    X: np.ndarray
    y: np.ndarray
    columns: dict[str, np.ndarray] | None = None


@dataclass(frozen=True)
class ShiftedProblem:
    """A difference between training rows and rows that matter, with a model and a metric."""

    name: str
    draw: Callable[[int, bool, np.random.Generator], Drawn]  # (n, whether they matter, generator) → rows
    metric: Any
    model: Model = "logistic"

    def estimator(self) -> Any:
        if self.model == "logistic":
            from sklearn.linear_model import LogisticRegression

            return LogisticRegression()
        if self.model == "ridge":
            from sklearn.linear_model import Ridge

            return Ridge()
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_estimators=25, num_leaves=7, n_jobs=1, verbose=-1, random_state=0)


def _cost(y_true: Any, decision: Any) -> float:
    y, d = np.asarray(y_true), np.asarray(decision)
    return float(np.mean(5.0 * ((y == 1) & (d == 0)) + ((y == 0) & (d == 1))))


def _charged(y_true: Any, decision: Any, cost: Any) -> float:
    return float(np.mean((np.asarray(y_true) != np.asarray(decision)) * np.asarray(cost)))


def _worst_recall(y_true: Any, decision: Any) -> float:
    y, right = np.asarray(y_true), np.asarray(y_true) == np.asarray(decision)
    return min(float(right[y == one].mean()) for one in (0, 1))


def _absolute(y_true: Any, prediction: Any) -> float:
    return float(np.mean(np.abs(np.asarray(y_true) - np.asarray(prediction))))


def _upper_error(y_true: Any, prediction: Any) -> float:
    y = np.asarray(y_true)
    error, above = np.abs(y - np.asarray(prediction)), y > 0.5
    return float(max(error[above].mean(), error[~above].mean()))


cost = make_metric(_cost, greater_is_better=False, name="cost 5:1")
charged = make_metric(_charged, greater_is_better=False, name="mean cost")
worst_recall = make_metric(_worst_recall, name="worst recall", bounds=(0.0, 1.0))
absolute = make_metric(_absolute, greater_is_better=False, name="mean absolute error")
upper_error = make_metric(_upper_error, greater_is_better=False, name="worse half's error")


def _features(n: int, rng: np.random.Generator, d: int = 5) -> np.ndarray:
    return rng.standard_normal((n, d))


def _flip(y: np.ndarray, chance: Any, rng: np.random.Generator) -> np.ndarray:
    return np.asarray(np.where(rng.random(len(y)) < chance, 1 - y, y))


def _two(X: np.ndarray, rng: np.random.Generator, shift: float = 0.0) -> np.ndarray:
    """Labels of a logistic model."""
    chance = expit(1.5 * X[:, 0] - X[:, 1] + 0.5 * X[:, 2] + shift)
    return np.asarray(rng.random(len(X)) < chance, dtype=int)


def _several(X: np.ndarray, rng: np.random.Generator, region: bool = False) -> np.ndarray:
    """Labels of three classes; in a `region` two of them change places."""
    logits = np.column_stack([1.2 * X[:, 0], 1.2 * X[:, 1], -X[:, 0] + 0.5 * X[:, 2] - 0.5])
    y = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
    swapped = np.where(y == 0, 1, np.where(y == 1, 0, y))
    return np.where(region & (X[:, 3] > 0.3), swapped, y)


def alike_two(n: int, _matters: bool, rng: np.random.Generator, shift: float = 0.0) -> Drawn:
    X = _features(n, rng)
    return Drawn(X, _two(X, rng, shift))


def alike_rare(n: int, matters: bool, rng: np.random.Generator) -> Drawn:
    return alike_two(n, matters, rng, -2.0)


def alike_several(n: int, _matters: bool, rng: np.random.Generator) -> Drawn:
    X = _features(n, rng)
    return Drawn(X, _several(X, rng))


def alike_numbers(n: int, _matters: bool, rng: np.random.Generator) -> Drawn:
    X = _features(n, rng)
    return Drawn(X, X[:, 0] + 0.4 * X[:, 1] ** 2 + rng.standard_normal(n))


def agreeing(in_training: float, where_it_matters: float) -> Any:
    """A feature agrees with the label in other shares of the rows."""

    def draw(n: int, matters: bool, rng: np.random.Generator) -> Drawn:
        X = _features(n, rng)
        y = (rng.random(n) < expit(X[:, 0])).astype(int)
        agrees = rng.random(n) < (where_it_matters if matters else in_training)
        X[:, 1] = np.where(agrees, 2 * y - 1, 1 - 2 * y) + 0.3 * rng.standard_normal(n)
        return Drawn(X, y)

    return draw


def spread(n: int, matters: bool, rng: np.random.Generator, sds: tuple[float, float] = (2.0, 0.4)) -> Drawn:
    X = _features(n, rng) * (sds[1] if matters else sds[0])
    return Drawn(X, _two(X, rng))


def dearer(n: int, matters: bool, rng: np.random.Generator) -> Drawn:
    """The column that the metric reads is ten times as high where it matters."""
    X, y = alike_two(n, matters, rng)[:2]
    return Drawn(X, y, {"cost": (10.0 if matters else 1.0) * rng.lognormal(0.0, 0.3, n)})


def sources(n: int, matters: bool, rng: np.random.Generator) -> Drawn:
    """Three sources: clean, a third of the labels wrong, most positives missed."""
    X, y = alike_two(n, matters, rng, -1.2)[:2]
    if not matters:
        source = rng.integers(3, size=n)
        y = _flip(y, np.where(source == 1, 0.33, 0.0), rng)
        y = np.where((source == 2) & (rng.random(n) < 0.8), 0, y)
    return Drawn(X, y)


def annotators(n: int, matters: bool, rng: np.random.Generator) -> Drawn:
    X, y = alike_two(n, matters, rng, -0.5)[:2]
    right = np.array([0.97, 0.9, 0.75, 0.6, 0.45])[rng.integers(5, size=n)]
    return Drawn(X, y if matters else _flip(y, 1 - right, rng))


def laxer(n: int, matters: bool, rng: np.random.Generator) -> Drawn:
    """Most training rows are labelled by a laxer standard, which follows another feature."""
    X = _features(n, rng)
    noise = rng.logistic(size=n)
    strict = (1.5 * X[:, 0] + X[:, 1] - 1.5 + noise > 0).astype(int)
    lax = (1.0 * X[:, 0] + 1.5 * X[:, 3] + 0.5 + noise > 0).astype(int)
    return Drawn(X, strict if matters else np.where(rng.random(n) < 0.7, lax, strict))


def under_reported(n: int, matters: bool, rng: np.random.Generator) -> Drawn:
    """Positives of one region are mostly missed."""
    X, y = alike_two(n, matters, rng, -1.0)[:2]
    missed = (rng.random(n) < expit(2 * X[:, 3])) & (not matters)
    return Drawn(X, np.where(missed, 0, y))


def changed_region(n: int, matters: bool, rng: np.random.Generator) -> Drawn:
    X = _features(n, rng)
    return Drawn(X, _several(X, rng, region=matters))


def drifting(n: int, matters: bool, rng: np.random.Generator) -> Drawn:
    """What the label follows turns with time; only the last tenth of it matters."""
    X = _features(n, rng)
    time = rng.uniform(0.9 if matters else 0.0, 1.0, n)
    angle = 0.5 * np.pi * time
    logit = 2 * (np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1]) - 1.0
    return Drawn(X, (rng.random(n) < expit(logit)).astype(int))


def other_prior(n: int, matters: bool, rng: np.random.Generator) -> Drawn:
    y = (rng.random(n) < (0.08 if matters else 0.35)).astype(int)
    X = _features(n, rng)
    X[:, :2] += y[:, None]
    return Drawn(X, y)


def elsewhere(n: int, matters: bool, rng: np.random.Generator, by: float = 1.2) -> Drawn:
    """Features lie elsewhere, where a linear model of all rows is wrong."""
    X = _features(n, rng)
    X[:, 1] += by if matters else 0.0
    return Drawn(X, X[:, 0] + 0.4 * X[:, 1] ** 2 + 0.5 * rng.standard_normal(n))


def other_instrument(n: int, matters: bool, rng: np.random.Generator) -> Drawn:
    """Most training targets were read by an instrument that is off and less exact."""
    X = _features(n, rng)
    y = X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.standard_normal(n)
    off = (rng.random(n) < 0.6) & (not matters)
    return Drawn(X, np.where(off, 0.6 * y + 0.7 + 0.7 * rng.standard_normal(n), y))


REPORTED = (
    ShiftedProblem("alike, accuracy", alike_two, "accuracy"),
    ShiftedProblem("alike, top 10 %", alike_rare, mean_of_selected(0.1)),
    ShiftedProblem("alike, worst of three classes", alike_several, worst_class_error()),
    ShiftedProblem("alike, numbers", alike_numbers, upper_error, "ridge"),
    ShiftedProblem("feature agrees 90 % / 50 %", agreeing(0.9, 0.5), "accuracy"),
    ShiftedProblem("feature agrees 90 % / 10 %", agreeing(0.9, 0.1), "accuracy"),
    ShiftedProblem("spread 2 / 0.4", spread, "accuracy"),
    ShiftedProblem("cost column 1 / 10", dearer, charged),
    ShiftedProblem("three sources, F1", sources, "f1"),
    ShiftedProblem("three sources, F1, boosting", sources, "f1", "boosting"),
    ShiftedProblem("five annotators, worst recall", annotators, worst_recall),
    ShiftedProblem("laxer standard, top 5 %", laxer, mean_of_selected(0.05)),
    ShiftedProblem("under-reported region, F1", under_reported, "f1"),
    ShiftedProblem("changed region, worst of three classes", changed_region, worst_class_error()),
    ShiftedProblem("drift, precision at 80 % recall", drifting, precision_at_recall(0.8)),
    ShiftedProblem("prior 35 % / 8 %, F1", other_prior, "f1"),
    ShiftedProblem("elsewhere, numbers", elsewhere, upper_error, "ridge"),
    ShiftedProblem("other instrument, numbers", other_instrument, absolute, "ridge"),
)


def _noisy(chance: float) -> Any:
    def draw(n: int, matters: bool, rng: np.random.Generator) -> Drawn:
        X, y = alike_two(n, matters, rng, -0.7)[:2]
        return Drawn(X, y if matters else _flip(y, chance, rng))

    return draw


def _weaker(n: int, matters: bool, rng: np.random.Generator) -> Drawn:
    """A feature says less of the label where it matters."""
    X = _features(n, rng)
    logit = X[:, 0] + (0.7 if matters else 1.5) * X[:, 1] - 1.0
    return Drawn(X, (rng.random(n) < expit(logit)).astype(int))


def _missed(n: int, matters: bool, rng: np.random.Generator) -> Drawn:
    X, y = alike_two(n, matters, rng, -1.0)[:2]
    return Drawn(X, y if matters else np.where(rng.random(n) < 0.4, 0, y))


def _less_spread(n: int, matters: bool, rng: np.random.Generator) -> Drawn:
    return spread(n, matters, rng, (1.5, 1.0))


def _near(n: int, matters: bool, rng: np.random.Generator) -> Drawn:
    return elsewhere(n, matters, rng, 0.5)


def _less_exact(n: int, matters: bool, rng: np.random.Generator) -> Drawn:
    X = _features(n, rng)
    return Drawn(X, X[:, 0] + (0.7 if matters else 1.0) * rng.standard_normal(n))


def _shifted_classes(n: int, matters: bool, rng: np.random.Generator) -> Drawn:
    y = rng.choice(3, size=n, p=(0.33, 0.33, 0.34) if matters else (0.6, 0.3, 0.1))
    X = _features(n, rng)
    X[np.arange(n), y] += 1.3
    return Drawn(X, y)


DEVELOPMENT = (
    ShiftedProblem("dev alike, cost", lambda n, m, r: alike_two(n, m, r, -1.0), cost),
    ShiftedProblem("dev alike, F1, boosting", lambda n, m, r: alike_two(n, m, r, -1.0), "f1", "boosting"),
    ShiftedProblem("dev alike, at 80 %", lambda n, m, r: alike_two(n, m, r, -1.0), precision_at_recall(0.8)),
    ShiftedProblem("dev alike, numbers", alike_numbers, absolute, "ridge"),
    ShiftedProblem("dev 10 % wrong labels, F1", _noisy(0.1), "f1"),
    ShiftedProblem("dev 30 % wrong labels, cost", _noisy(0.3), cost),
    ShiftedProblem("dev weaker feature, accuracy", _weaker, "accuracy"),
    ShiftedProblem("dev missed positives, top 10 %", _missed, mean_of_selected(0.1)),
    ShiftedProblem("dev spread 1.5 / 1, worst recall", _less_spread, worst_recall),
    ShiftedProblem("dev near, numbers", _near, upper_error, "ridge"),
    ShiftedProblem("dev less exact, numbers", _less_exact, absolute, "ridge"),
    ShiftedProblem("dev shares of classes", _shifted_classes, worst_class_error()),
)
PROBLEMS = {problem.name: problem for problem in (*REPORTED, *DEVELOPMENT)}
