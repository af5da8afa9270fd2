"""Probabilities and thresholds: how often a class comes, and the metric as a function of the threshold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from moew.data import Rows, labelled_rows, read_only
from moew.exceptions import InvalidInputError
from moew.metrics import decided_labels, decision_basis
from moew.search import LABEL_ARRAYS, FittedSearch, checked_test_rows, rule_score
from moew.types import Array, Features, FloatArray, Labels

BINS = 10
POINTS = 41
_SLOW_POINTS = 11


@dataclass(frozen=True)
class ReliabilityBin:
    """The rows whose probability lies between `low` and `high`; there are some."""

    low: float
    high: float
    predicted: float  # the mean probability
    observed: float  # the share of the class
    n_rows: int


@dataclass(frozen=True)
class ReliabilityCurve:
    """The bins that have rows, and the mean squared error of the probabilities (Brier score)."""

    bins: tuple[ReliabilityBin, ...]
    brier: float


@dataclass(frozen=True)
class Reliability:
    """Probabilities of the selected model, before and after calibration.

    `label` is the class that they are of; None: each class against the rest, all in one curve.
    """

    label: Any
    rows: str  # in words: which
    n_rows: int
    before: ReliabilityCurve | None  # None if the model has no probabilities of its own
    after: ReliabilityCurve | None  # None without calibration
    method: str | None  # of the calibration


def reliability(
    fitted: FittedSearch,
    X: Features = None,
    y: Labels = None,
    sample_weight: Any = None,
    *,
    label: Any = None,
    rows: str = "rows given",
    n_bins: int = BINS,
) -> Reliability:
    """The reliability of the probabilities of the selected model.

    On rows X, y that it was not trained on; `rows` is what to call them. Without them on the evaluation rows,
    which needs `calibrate`: before by models that were not trained on them, after by curves that were fitted
    on the other half of them. `label` is the class; None is the positive one of two, or all of more.
    """
    classes = fitted.evaluator.classes
    if classes is None:
        raise InvalidInputError("a regressor has no probabilities.", argument="search")
    if label is None and len(classes) == 2:
        label = fitted.evaluator.pos_label
    elif label is not None and label not in classes.tolist():
        raise InvalidInputError(
            f"label must be one of the classes {classes.tolist()[:10]!r}, got {label!r}.", argument="label"
        )
    before: Array | None
    after: Array | None
    if X is None:
        evaluated = fitted.evaluation_predictions
        if evaluated is None or (evaluated.raw is None and evaluated.calibrated is None):
            raise InvalidInputError(
                "probabilities of the evaluation rows are recorded with calibrate= alone, and not saved; "
                "give rows X and y that the model was not trained on.",
                argument="X",
            )
        before, after = evaluated.raw, evaluated.calibrated
        labels, weight, rows = evaluated.rows.y, evaluated.rows.sample_weight, "evaluation rows"
    else:
        given = labelled_rows(Rows(X, y, sample_weight), fitted.task, "given", ())
        labels, weight = given.y, given.sample_weight
        winner = fitted.winner
        has_own = hasattr(winner.model, "predict_proba")
        before = np.asarray(winner.model.predict_proba(given.X)) if has_own else None
        after = None if winner.calibration is None else winner.probabilities(given.X)
    if before is None and after is None:
        raise InvalidInputError("the model has no probabilities; see calibrate=.", argument="search")
    first, second = (
        None if shares is None else _curve(shares, labels, classes, label, weight, n_bins)
        for shares in (before, after)
    )
    label = label.item() if isinstance(label, np.generic) else label
    return Reliability(label, rows, len(labels), first, second, fitted.settings.calibrate)


def _curve(
    shares: Array, y: Array, classes: Array, label: Any, weight: FloatArray | None, n_bins: int
) -> ReliabilityCurve:
    chosen = range(len(classes)) if label is None else [classes.tolist().index(label)]
    predicted = np.concatenate([shares[:, k] for k in chosen])
    happened = np.concatenate([np.asarray(y == classes[k], dtype=np.float64) for k in chosen])
    weights = np.tile(np.ones(len(y)) if weight is None else weight, len(chosen))
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    place = np.searchsorted(edges[1:-1], predicted)
    bins = []
    for k in range(n_bins):
        inside = place == k
        if weights[inside].sum() > 0:
            mean, share = (np.average(of[inside], weights=weights[inside]) for of in (predicted, happened))
            low, high, n = float(edges[k]), float(edges[k + 1]), int(np.count_nonzero(inside))
            bins.append(ReliabilityBin(low, high, float(mean), float(share), n))
    brier = float(np.average((predicted - happened) ** 2, weights=weights))
    return ReliabilityCurve(tuple(bins), brier)


@dataclass(frozen=True)
class ThresholdCurve:
    """The metric at thresholds of the score, from few selected rows to many."""

    thresholds: FloatArray  # (m,), ascending
    values: FloatArray  # (m,), the metric; NaN where it is undefined
    selected: FloatArray  # (m,), the share of rows above the threshold
    chosen: float  # the threshold of the selected model
    value: float  # the metric there, on these rows
    share: float  # of rows above it
    rows: str  # in words: which
    n_rows: int
    of: str  # "probability" or "score"
    label: Any  # the class of the rows above it


def threshold_curve(
    fitted: FittedSearch,
    X: Features = None,
    y: Labels = None,
    sample_weight: Any = None,
    columns: Mapping[str, Any] | None = None,
    *,
    rows: str = "rows given",
    points: int = POINTS,
) -> ThresholdCurve:
    """The metric over the threshold: two classes, a metric of decisions, one threshold for all rows.

    On rows X, y that the model was not trained on; `rows` is what to call them. Without them on the
    evaluation rows, from the predictions of models that were not trained on them."""
    evaluator, winner = fitted.evaluator, fitted.winner
    rule, evaluated = winner.rule, fitted.evaluation_predictions
    classes = evaluator.classes
    if classes is None or len(classes) != 2:
        raise _none("it is for two classes")
    scores: FloatArray | None
    own = 0.0
    if X is None:
        if evaluated is None:
            raise _none("predictions of the evaluation rows are not saved; give rows X and y")
        given, known, rows = evaluated.rows, evaluated.predictions, "evaluation rows"
        scores, own = known.scores, known.own_threshold
    else:
        given = checked_test_rows(Rows(X, y, sample_weight, columns), evaluator, fitted.task)
        known = evaluator.predictions_on(winner, given)
        if rule is None:
            scores, own = decision_basis(winner.model, read_only(given.X), winner.pos_label)
        else:
            scores = (
                rule_score(winner.model, rule, given.X, winner.pos_label) if hasattr(rule, "of") else None
            )
    if not set(known.arrays) <= LABEL_ARRAYS:
        raise _none(f"the metric {evaluator.metric.name!r} looks at scores, not at decisions")
    if scores is None or scores.ndim != 1:
        raise _none("the selected model does not decide by a score")
    chosen = own if rule is None else getattr(rule, "threshold_", None)
    if chosen is None:
        raise _none("there is no single threshold")
    by_probability = own > 0 if rule is None else rule.of == "probability"
    has_score = hasattr(winner.model, "decision_function") and not by_probability
    points = min(points, _SLOW_POINTS) if evaluator.metric.slow else points
    thresholds = np.unique(np.quantile(scores, np.linspace(0.0, 1.0, points + 2)[1:-1]))
    name = next(iter(evaluator.metrics))
    values, shares = [], []
    for threshold in (*thresholds, chosen):
        above = scores > threshold
        decided = decided_labels(above, classes, evaluator.pos_label)
        values.append(evaluator.value_of(name, known, given, decided))
        shares.append(float(np.mean(above)))
    return ThresholdCurve(
        thresholds,
        np.array(values[:-1]),
        np.array(shares[:-1]),
        float(chosen),
        values[-1],
        shares[-1],
        rows,
        len(given),
        "score" if has_score else "probability",
        evaluator.pos_label,
    )


def _none(why: str) -> InvalidInputError:
    return InvalidInputError(f"there is no curve over the threshold: {why}.", argument="search")
