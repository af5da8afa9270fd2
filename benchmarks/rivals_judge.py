"""How benchmarks/rivals.py scores raw outputs of models, and how it tunes decisions on them.

Raw outputs are log-odds or the decision function (n,) for two classes, log-probabilities (n, C) for more,
and predictions (n,) in regression. A rule changes raw outputs before they are decided on: it subtracts a
threshold, adds offsets, or moves predictions. So tuned and plain decisions are scored in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeVar

import numpy as np
from scipy.special import logit

from moew.data import LabelledRows
from moew.exceptions import UndefinedMetricError
from moew.metrics import FunctionMetric, Predictions, resolve_metric

Columns = Mapping[str, np.ndarray]
Rule = Callable[[np.ndarray, Columns], np.ndarray]  # raw outputs and columns → raw outputs
R = TypeVar("R", bound=Rule)
LEAST = 1e-12  # probabilities are kept this far from 0 and 1


def plain(raw: np.ndarray, _columns: Columns) -> np.ndarray:
    """The rule that changes nothing."""
    return raw


def raw_outputs(probabilities: np.ndarray) -> np.ndarray:
    """Raw outputs of probabilities (n, C) of all classes."""
    kept = np.clip(probabilities, LEAST, 1 - LEAST)
    return np.asarray(logit(kept[:, 1]) if kept.shape[1] == 2 else np.log(kept))


@dataclass(frozen=True)
class Judge:
    """A problem's metric as a function of raw outputs; `classes` (C,) is None in regression."""

    metric: Any
    classes: np.ndarray | None

    @classmethod
    def of(cls, metric: Any, y: np.ndarray, task: str) -> Judge:
        return cls(resolve_metric(metric), None if task == "regression" else np.unique(y))

    @property
    def sign(self) -> float:
        return 1.0 if self.metric.greater_is_better else -1.0

    @property
    def ranks(self) -> bool:
        """Whether the metric takes scores, so that no decision can be tuned."""
        return isinstance(self.metric, FunctionMetric) and self.metric.response != "decision"

    def outputs(self, model: Any, X: np.ndarray) -> np.ndarray:
        """The raw outputs of a fitted model; classes it has not seen are very improbable."""
        if self.classes is None:
            return np.asarray(model.predict(X), dtype=float)
        if len(self.classes) == 2 and hasattr(model, "decision_function"):
            return np.asarray(model.decision_function(X), dtype=float)
        probabilities = np.zeros((len(X), len(self.classes)))
        probabilities[:, np.searchsorted(self.classes, model.classes_)] = model.predict_proba(X)
        return raw_outputs(probabilities)

    def decisions(self, raw: np.ndarray) -> np.ndarray:
        """Labels or predictions (n,), as the model itself decides."""
        if self.classes is None:
            return raw
        return np.asarray(self.classes[(raw > 0).astype(int) if raw.ndim == 1 else raw.argmax(axis=1)])

    def value(self, y: np.ndarray, raw: np.ndarray, columns: Columns) -> float:
        """The metric in its own units; NaN where it is undefined."""
        output = raw if self.ranks else self.decisions(raw)
        try:
            if isinstance(self.metric, FunctionMetric):
                positive = self.classes[1] if self.classes is not None and len(self.classes) == 2 else None
                return float(self.metric(y, output, columns, pos_label=positive))
            kind = "regressor" if self.classes is None else "classifier"
            predictions = Predictions({"predict": output}, self.classes, kind)
            return float(
                self.metric.value(predictions, LabelledRows(np.empty((len(y), 1)), y, columns=columns))
            )
        except UndefinedMetricError:
            return float("nan")

    def score(self, y: np.ndarray, raw: np.ndarray, columns: Columns) -> float:
        """The metric with the sign that makes higher better; −∞ where it is undefined."""
        value = self.sign * self.value(y, raw, columns)
        return value if np.isfinite(value) else -np.inf

    def tuned(self, y: np.ndarray, raw: np.ndarray, columns: Columns, for_groups: bool = False) -> Rule:
        """The best rule on these rows; the plain one unless another is better."""
        if self.ranks:
            return plain

        def of(rule: Rule) -> float:
            return self.score(y, rule(raw, columns), columns)

        if self.classes is None:
            return _moved_predictions(of, y)
        if raw.ndim == 2:
            return _offsets(of, raw.shape[1])
        return _group_thresholds(of, raw, columns) if for_groups else _threshold(of, raw)


@dataclass(frozen=True)
class Threshold:
    value: float

    def __call__(self, raw: np.ndarray, columns: Columns) -> np.ndarray:
        return np.asarray(raw - self.value)


@dataclass(frozen=True)
class GroupThresholds:
    groups: tuple[Any, ...]
    values: tuple[float, ...]

    def __call__(self, raw: np.ndarray, columns: Columns) -> np.ndarray:
        each = dict(zip(self.groups, self.values, strict=True))
        thresholds = np.array([each.get(group, 0.0) for group in columns["group"].tolist()])
        return np.asarray(raw - thresholds)


@dataclass(frozen=True)
class Offsets:
    values: tuple[float, ...]

    def __call__(self, raw: np.ndarray, columns: Columns) -> np.ndarray:
        return np.asarray(raw + np.array(self.values))


@dataclass(frozen=True)
class MovedPredictions:
    """Predictions, or their logarithms after `low` is subtracted, stretched about a centre and shifted."""

    factor: float
    offset: float
    centre: float
    low: float | None = None  # None: the plain scale

    def __call__(self, raw: np.ndarray, columns: Columns) -> np.ndarray:
        seen = raw if self.low is None else np.log(np.maximum(raw - self.low, LEAST))
        moved = self.centre + self.factor * (seen - self.centre) + self.offset
        return moved if self.low is None else self.low + np.exp(np.minimum(moved, 50.0))


def lower_end(y: np.ndarray) -> float:
    """What is subtracted from targets to make them positive: nothing where they are positive already."""
    return 0.0 if y.min() > 0 else float(y.min() - 0.1 * y.std())


def _best(rules: Sequence[R], of: Callable[[Rule], float]) -> R:
    """The first of the rules with the highest score."""
    return rules[int(np.argmax([of(rule) for rule in rules]))]


def _quantiles(raw: np.ndarray, n: int) -> list[float]:
    """n thresholds between the raw outputs, and both ends, at which all rows are alike."""
    inner = np.quantile(raw, (np.arange(n) + 0.5) / n)
    return [0.0, float(raw.min()) - 1.0, *map(float, inner), float(raw.max())]


def _threshold(of: Callable[[Rule], float], raw: np.ndarray) -> Rule:
    return _best([Threshold(value) for value in _quantiles(raw, 100)], of)


def _group_thresholds(of: Callable[[Rule], float], raw: np.ndarray, columns: Columns) -> Rule:
    """A coarse grid of all pairs, then one group after another on a fine grid."""
    groups = tuple(np.unique(columns["group"]).tolist())
    members = [raw[columns["group"] == group] for group in groups]
    coarse = product(*(_quantiles(rows, 20 if len(groups) == 2 else 5) for rows in members))
    best = _best([GroupThresholds(groups, values) for values in coarse], of)
    for k in (*range(len(groups)), *range(len(groups))):
        values = best.values
        tried = [
            GroupThresholds(groups, (*values[:k], new, *values[k + 1 :]))
            for new in _quantiles(members[k], 100)
        ]
        best = _best([best, *tried], of)
    return best


def _offsets(of: Callable[[Rule], float], n_classes: int) -> Rule:
    """Coordinate ascent, class after class, with ever smaller steps."""
    best = Offsets((0.0,) * n_classes)
    for reach in (3.0, 1.0, 0.3):
        for k in range(n_classes):
            values = best.values
            steps = np.linspace(-reach, reach, 13)
            tried = [
                Offsets((*values[:k], values[k] + float(step), *values[k + 1 :])) for step in steps if step
            ]
            best = _best([best, *tried], of)
    return best


def _moved_predictions(of: Callable[[Rule], float], y: np.ndarray) -> Rule:
    """The best factor and offset on the plain scale and on the logarithmic one."""
    found: list[Rule] = [plain]
    for low in (None, lower_end(y)):
        seen = y if low is None else np.log(y - low)
        centre, spread = float(np.median(seen)), float(seen.std())
        best = MovedPredictions(1.0, 0.0, centre, low)
        for reach in (1.0, 0.3, 0.1):
            around = product(
                best.factor + 0.8 * reach * np.linspace(-1, 1, 7),
                best.offset + spread * reach * np.linspace(-1, 1, 11),
            )
            moved = [MovedPredictions(float(a), float(b), centre, low) for a, b in around]
            best = _best([best, *moved], of)
        found.append(best)
    return _best(found, of)
