"""How often a class comes where a probability is given: the reliability of probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from moew.data import UserRows, labelled_rows
from moew.exceptions import InvalidInputError
from moew.search import FittedSearch
from moew.types import Array, FloatArray, Labels, Rows

BINS = 10


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
    """Probabilities of what is handed out, before and after calibration.

    `label` is the class that they are of; None: each class against the rest, all in one curve.
    """

    label: Any
    rows: str  # in words: which
    n_rows: int
    before: ReliabilityCurve | None  # None if the model has no probabilities of its own
    after: ReliabilityCurve | None  # None without calibration


def reliability(
    fitted: FittedSearch,
    X: Rows = None,
    y: Labels = None,
    sample_weight: Any = None,
    *,
    label: Any = None,
    rows: str = "rows given",
    n_bins: int = BINS,
) -> Reliability:
    """The reliability of the probabilities of what is handed out.

    On rows X, y that it was not trained on; `rows` is what to call them. Without them on the judged rows,
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
        judged = fitted.judged_predictions
        if judged is None or (judged.raw is None and judged.calibrated is None):
            raise InvalidInputError(
                "probabilities of the judged rows are recorded with calibrate= alone, and not saved; give "
                "rows X and y that the model was not trained on.",
                argument="X",
            )
        before, after = judged.raw, judged.calibrated
        labels, weight, rows = judged.rows.y, judged.rows.sample_weight, "judged rows"
    else:
        given = labelled_rows(UserRows(X, y, sample_weight), fitted.task, "given", ())
        labels, weight = given.y, given.sample_weight
        winner = fitted.winner
        has_own = hasattr(winner.model, "predict_proba")
        before = np.asarray(winner.model.predict_proba(given.X)) if has_own else None
        after = None if winner.calibration is None else winner.probabilities(given.X)
    if before is None and after is None:
        raise InvalidInputError("the model has no probabilities; see calibrate=.", argument="search")
    curves = [
        None if shares is None else _curve(shares, labels, classes, label, weight, n_bins)
        for shares in (before, after)
    ]
    label = label.item() if isinstance(label, np.generic) else label
    return Reliability(label, rows, len(labels), *curves)


def _curve(
    shares: Array, y: Array, classes: Array, label: Any, weight: FloatArray | None, n_bins: int
) -> ReliabilityCurve:
    chosen = range(len(classes)) if label is None else [classes.tolist().index(label)]
    predicted = np.concatenate([shares[:, k] for k in chosen])
    happened = np.concatenate([np.asarray(y == classes[k], dtype=np.float64) for k in chosen])
    weights = np.tile(np.ones(len(y)) if weight is None else weight, len(chosen))
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    place = np.searchsorted(edges[1:-1], predicted)
    bins = [_bin(edges, k, place == k, predicted, happened, weights) for k in range(n_bins)]
    brier = float(np.average((predicted - happened) ** 2, weights=weights))
    return ReliabilityCurve(tuple(one for one in bins if one is not None), brier)


def _bin(
    edges: FloatArray,
    k: int,
    inside: Any,
    predicted: FloatArray,
    happened: FloatArray,
    weights: FloatArray,
) -> ReliabilityBin | None:
    if not weights[inside].sum() > 0:
        return None
    mean, share = (float(np.average(of[inside], weights=weights[inside])) for of in (predicted, happened))
    return ReliabilityBin(float(edges[k]), float(edges[k + 1]), mean, share, int(np.count_nonzero(inside)))
