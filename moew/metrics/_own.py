"""Moew's own metrics: for each a function that computes it, and one that makes the metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from itertools import pairwise
from typing import Any, Literal, NamedTuple, ParamSpec

import numpy as np

from moew._util.checks import FRACTION, refusing
from moew.exceptions import Argument, InPython, InvalidInputError, UndefinedMetricError
from moew.metrics._metric import FunctionMetric, as_weights, first_line
from moew.types import Array, BoolArray, FloatArray, IntArray

P = ParamSpec("P")

_SMALL_RANGE = 4096  # integers within this range are counted without sorting


def is_positive(labels: Any, pos_label: Any) -> BoolArray:
    """Whether each label (n,) is the positive one; without `pos_label` that is 1, others being 0 or −1."""
    values: Array = np.asarray(labels)
    if pos_label is None:
        if values.dtype.kind == "b":
            return values
        if values.dtype.kind not in "iuf" or not ((values == 1) | (values == 0) | (values == -1)).all():
            raise InvalidInputError(
                "which label is positive is not clear from the labels; give the metric a ",
                Argument("pos_label"),
                InPython("=…"),
                argument="pos_label",
            )
        pos_label = 1
    same: Any = values == pos_label
    # NumPy returns a single False if the types cannot be compared.
    return same if isinstance(same, np.ndarray) else np.zeros(values.shape, dtype=np.bool_)


def codes_of(labels: Any) -> tuple[Array, IntArray]:
    """Distinct labels (C,), and the index (n,) of each row's label among them.

    For small integers the distinct labels are the whole range between the smallest and the largest, some
    of which may not occur.
    """
    labels = np.asarray(labels)
    if labels.dtype.kind in "iu" and labels.size:
        low, high = int(labels.min()), int(labels.max())
        if high - low < _SMALL_RANGE:
            return np.arange(low, high + 1), labels.astype(np.int64, copy=False) - low
    try:
        distinct, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise InvalidInputError(f"labels or groups of mixed kinds cannot be ordered: {error}.") from error
    return distinct, codes


def shown_positive(labels: Any, pos_label: Any) -> str:
    """The positive label as a message shows it."""
    if pos_label is None:
        pos_label = np.asarray(labels).dtype.kind == "b" or 1
    return repr(pos_label.item() if isinstance(pos_label, np.generic) else pos_label)


def shown_labels(labels: Any) -> str:
    """The first few distinct labels as a message shows them."""
    distinct = list(dict.fromkeys(np.asarray(labels).tolist()))
    return ", ".join(map(repr, distinct[:5])) + (", …" if len(distinct) > 5 else "") or "none"


def of_moew(factory: Callable[P, FunctionMetric]) -> Callable[P, FunctionMetric]:
    """Decorator of the functions in METRICS: the metrics that they make know their name there."""

    @wraps(factory)
    def make(*args: P.args, **kwargs: P.kwargs) -> FunctionMetric:
        made = factory(*args, **kwargs)
        return replace(made, registry_name=factory.__name__, description=first_line(factory))

    return make


def _of_classes(
    function: Callable[..., FloatArray], name: str, greater_is_better: bool = True
) -> FunctionMetric:
    """A metric of decisions between classes, whose function takes those of many candidates at once."""
    return FunctionMetric(
        function,
        "decision",
        greater_is_better,
        name,
        bounds=(0.0, 1.0),
        needs_classes=True,
        takes_many=True,
    )


def accuracies(y_true: Any, decisions: Array, *, sample_weight: Any = None) -> FloatArray:
    """The shares (m,) of labels (n,) that decisions (m, n) are equal to."""
    y, weight = np.asarray(y_true), as_weights(sample_weight)
    right = y == decisions
    if not (y.size if weight is None else weight.any()):
        return np.full(len(right), np.nan)
    if weight is None:
        return np.asarray(np.count_nonzero(right, axis=1) / y.size)
    return np.asarray(np.where(right, weight, 0.0).sum(axis=1) / weight.sum())


@of_moew
def accuracy() -> FunctionMetric:
    """The share of rows decided correctly: mean of 1[ŷ = y]. Higher is better.

    Examples
    --------
    >>> accuracy()(["cat", "dog", "dog"], ["cat", "dog", "cat"], sample_weight=[1.0, 1.0, 2.0])
    0.5
    """
    return _of_classes(accuracies, "accuracy")


def _class_errors(y_true: Any, decisions: Array, sample_weight: Any, name: str) -> FloatArray:
    """The error (m, C) of each class that occurs in y, for decisions (m, n)."""
    y, weight = np.asarray(y_true), as_weights(sample_weight)
    _, codes = codes_of(y)
    if weight is None or not y.size:
        n_rows = np.bincount(codes)
        n_wrong = np.array([np.bincount(codes, wrong, len(n_rows)) for wrong in y != decisions])
    else:
        order = np.argsort(codes, kind="stable")  # rows grouped by class
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        n_rows = np.add.reduceat(weight[order], starts)
        n_wrong = np.add.reduceat(((y != decisions) * weight)[:, order], starts, axis=1)
    present = n_rows > 0
    if not present.any():
        raise UndefinedMetricError(f"the {name} needs at least one row (with weight).")
    return np.asarray(n_wrong[:, present] / n_rows[present])


def _worst_class_errors(y_true: Any, decisions: Array, *, sample_weight: Any = None) -> FloatArray:
    return np.asarray(_class_errors(y_true, decisions, sample_weight, "worst class error").max(axis=1))


@of_moew
def worst_class_error() -> FunctionMetric:
    """The highest error rate of any class: max over classes c in y of P(ŷ ≠ c | y = c). Lower is better.

    The paper's metric for MNIST: no digit may be recognised badly, however well the others are. Classes
    that do not occur in y are left out.

    Examples
    --------
    >>> worst_class_error()([0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0])  # one in four zeros, one in two ones
    0.5
    """
    return _of_classes(_worst_class_errors, "worst class error", greater_is_better=False)


def _g_means(y_true: Any, decisions: Array, *, sample_weight: Any = None) -> FloatArray:
    recalls = 1 - _class_errors(y_true, decisions, sample_weight, "G-mean")
    return np.asarray(np.maximum(recalls, 0.0).prod(axis=1) ** (1 / recalls.shape[1]))


@of_moew
def g_mean() -> FunctionMetric:
    """The geometric mean of the classes' recalls: (Π P(ŷ = c | y = c))^(1/C). Higher is better.

    It is 0 as soon as one class is never recognised. Classes that do not occur in y are left out.

    Examples
    --------
    >>> round(g_mean()([0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 0]), 3)  # all zeros, half of the ones
    0.707
    """
    return _of_classes(_g_means, "G-mean")


def _q_means(y_true: Any, decisions: Array, *, sample_weight: Any = None) -> FloatArray:
    errors = _class_errors(y_true, decisions, sample_weight, "Q-mean")
    return np.asarray(1 - np.sqrt((errors**2).mean(axis=1)))


@of_moew
def q_mean() -> FunctionMetric:
    """One less the quadratic mean of the classes' errors: 1 − √(mean of P(ŷ ≠ c | y = c)²). Higher is better.

    Classes that do not occur in y are left out.

    Examples
    --------
    >>> round(q_mean()([0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 0]), 3)
    0.646
    """
    return _of_classes(_q_means, "Q-mean")


def _fpr_gap(y_true: Any, decision: Any, group: Any, *, pos_label: Any = None) -> float:
    negative = ~is_positive(y_true, pos_label)
    wrong = negative & is_positive(decision, pos_label)
    names, codes = codes_of(group)
    n_rows, n_negative, n_wrong = (
        np.bincount(codes[rows], minlength=len(names)) for rows in (slice(None), negative, wrong)
    )
    occurs = n_rows > 0
    if (empty := names[occurs & (n_negative == 0)]).size:
        raise UndefinedMetricError(
            f"no false-positive rate for group {shown_labels(empty)}: no negative rows, all "
            f"are {shown_positive(y_true, pos_label)}."
        )
    if not occurs.any():
        raise UndefinedMetricError("the gap of false-positive rates needs at least one row.")
    rates = n_wrong[occurs] / n_negative[occurs]
    return float(rates.max() - rates.min())


@of_moew
def fpr_gap(pos_label: Any = None) -> FunctionMetric:
    """The gap between groups: max_g FPR_g − min_g FPR_g, FPR_g = P(ŷ = + | y = −, g). Lower is better.

    The paper's fairness violation. Needs the per-row column `group`. A group that has rows but no
    negatives has no rate: the metric is undefined there.

    A model that decides the same for every row has a gap of 0, the best possible value. Use the metric with a
    decision rule that fixes how many are selected, `EqualFalsePositiveRates` or `ShareSelected`.

    Examples
    --------
    >>> labels, decisions = [0, 0, 0, 0, 1, 1], [1, 0, 0, 0, 1, 1]
    >>> fpr_gap()(labels, decisions, {"group": ["a", "a", "b", "b", "a", "b"]})  # one in two against none
    0.5
    """
    name = "false-positive rate gap"
    return FunctionMetric(_fpr_gap, "decision", False, name, pos_label, True, (0.0, 1.0))


def _precision_at_recall(
    y_true: Any, score: Any, *, recall: float, pos_label: Any = None, sample_weight: Any = None
) -> float:
    positive = is_positive(y_true, pos_label)
    score = np.asarray(score)
    if score.ndim != 1:
        raise InvalidInputError(
            f"precision at recall needs one score for each row (two classes), got shape {score.shape}."
        )
    if np.isnan(score).any():
        raise InvalidInputError("precision at recall cannot rank rows whose score is NaN.")
    of_positives = score[positive]
    n_positive = len(of_positives)
    if not n_positive:
        raise UndefinedMetricError(
            f"precision at recall needs a positive row: {score.size} rows, none is "
            f"{shown_positive(y_true, pos_label)}; the labels are {shown_labels(y_true)}."
        )
    weight = as_weights(sample_weight)
    if weight is None:
        # The threshold is the score of the k-th best positive, with the smallest k for which k / P ≥ recall:
        # no sorting of all rows is needed, and rows of equal score are selected together.
        k = min(n_positive, int(recall * n_positive) + 1)
        while k > 1 and (k - 1) / n_positive >= recall:
            k -= 1
        threshold = np.partition(of_positives, n_positive - k)[n_positive - k]
        return float(np.count_nonzero(of_positives >= threshold) / np.count_nonzero(score >= threshold))
    order = np.argsort(-of_positives, kind="stable")
    reached = np.cumsum(weight[positive][order])
    if not reached[-1] > 0:
        raise UndefinedMetricError("precision at recall needs a positive row with weight above 0.")
    # With a tolerance for rounding: four of five weights of 0.3 are a recall of 0.8.
    needed = recall * reached[-1] * (1 - 1e-12)
    taken = score >= of_positives[order][np.searchsorted(reached, needed)]
    return float(weight[taken & positive].sum() / weight[taken].sum())


@of_moew
def precision_at_recall(recall: float = 0.95, pos_label: Any = None) -> FunctionMetric:
    """Precision at the highest threshold whose recall is at least `recall`. Higher is better.

    TP(θ) / (TP(θ) + FP(θ)) with θ = max {θ : TP(θ) / P ≥ recall}, where the rows with score ≥ θ are
    selected, so that rows of equal score are selected together. This is the paper's metric in Figure 1: as
    few false alarms as possible when nearly all positives must be found. Undefined without positives.

    Examples
    --------
    >>> precision_at_recall(1.0)([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1])  # the first three must be selected
    0.6666666666666666
    >>> precision_at_recall(0.5)([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1])
    1.0
    """
    FRACTION.check("recall", recall)
    settings = {"recall": float(recall)}
    name = f"precision at {100 * float(recall):g}% recall"
    bounds = (0.0, 1.0)
    return FunctionMetric(
        _precision_at_recall, "score", True, name, pos_label, True, bounds, settings=settings
    )


_ROUNDINGS = 4  # units in the last place that two logarithms of one number may be apart


def r_squared_of(y_true: Any, prediction: Any, *, sample_weight: Any = None) -> float:
    y = np.asarray(y_true, dtype=np.float64)
    residual = y - np.asarray(prediction, dtype=np.float64)
    if y.size < 2:
        return float("nan")
    weight = as_weights(sample_weight)
    if weight is not None and weight.sum() == 0:
        raise UndefinedMetricError("R² needs a row with weight above 0.")
    spread = y - np.average(y, weights=weight)
    left, total = ((float(e @ e) if weight is None else float(e * weight @ e)) for e in (residual, spread))
    if total == 0:
        return 1.0 if left == 0 else 0.0
    return 1 - left / total


@of_moew
def r_squared() -> FunctionMetric:
    """The share of the variance explained: 1 − Σ(y − ŷ)² / Σ(y − ȳ)². Higher is better.

    The same as scikit-learn's R², computed many times faster. NaN on fewer than two rows.

    Examples
    --------
    >>> r_squared()([1.0, 2.0, 3.0], [1.0, 2.0, 2.0])
    0.5
    """
    return FunctionMetric(r_squared_of, "decision", True, "R²", bounds=(-math.inf, 1.0))


def _worst_band_relative_error(
    y_true: Any,
    prediction: Any,
    *,
    thresholds: tuple[float, ...],
    inverse: Literal["exp"] | None,
    sample_weight: Any = None,
) -> float:
    y = np.asarray(y_true, dtype=np.float64)
    predicted = np.asarray(prediction, dtype=np.float64)
    edges = np.asarray(thresholds, dtype=np.float64)
    if inverse == "exp":
        # exp(log(42)) is above 42, so a row at a threshold would change its band if labels were transformed.
        # Logarithms are known up to rounding in the labels' precision, and equal ones count as such.
        logs = np.log(np.maximum(edges, np.finfo(np.float64).tiny))
        given = np.asarray(y_true).dtype
        precision = np.finfo(given if given.kind == "f" else np.float64).eps
        edges = logs + _ROUNDINGS * precision * np.maximum(np.abs(logs), 1)
    band = np.searchsorted(edges, y)  # 0 for y ≤ the first threshold, …
    if not y.size:
        raise UndefinedMetricError("the worst-band relative error needs at least one row.")
    with np.errstate(over="ignore", invalid="ignore"):  # a diverged model has an infinite error
        if inverse == "exp":
            y, predicted = np.exp(y), np.exp(predicted)
        if not y.all():
            raise InvalidInputError(
                "the relative error |ŷ/y − 1| has no value where y is 0; leave those rows out.", argument="y"
            )
        error = np.abs(predicted / y - 1)
    weight = as_weights(sample_weight)
    size = np.bincount(band, weights=weight)
    total = np.bincount(band, weights=error if weight is None else error * weight)
    present = size > 0
    if not present.any():
        raise UndefinedMetricError("the worst-band relative error needs a row with weight above 0.")
    return float((total[present] / size[present]).max())


@of_moew
def worst_band_relative_error(
    thresholds: Sequence[float] = (17.0, 25.0, 42.0), inverse: Literal["exp"] | None = None
) -> FunctionMetric:
    """The highest mean relative error of any band of y. Lower is better.

    ``max_i E[|ŷ/y − 1| : y in band i]``.

    The paper's metric for wine prices, whose quartiles are 17, 25 and 42 dollars: bands y ≤ 17, ≤ 25,
    ≤ 42 and above. A model that is good only for common prices does badly. Bands without rows are left
    out. inverse="exp" is for a target that is the logarithm: errors are those of exp(y) and exp(ŷ), and
    thresholds are in the original units. A row at a threshold belongs to the band below it.

    Examples
    --------
    >>> worst_band_relative_error(thresholds=(15.0,))([10.0, 20.0], [11.0, 10.0])  # 10 % and 50 % off
    0.5
    """
    with refusing(lambda _: f"thresholds must be numbers, got {thresholds!r}.", "thresholds"):
        cuts = tuple(float(t) for t in thresholds)
    if not np.isfinite(cuts).all() or any(a >= b for a, b in pairwise(cuts)):
        raise InvalidInputError(
            f"thresholds must be finite and rising, got {thresholds!r}.", argument="thresholds"
        )
    if inverse not in (None, "exp"):
        raise InvalidInputError(f"inverse must be None or 'exp', got {inverse!r}.", argument="inverse")
    name, bounds = "worst-band relative error", (0.0, math.inf)
    settings = {"thresholds": cuts, "inverse": inverse}
    return FunctionMetric(
        _worst_band_relative_error, "decision", False, name, bounds=bounds, settings=settings
    )


def _value_per_harm(y_true: Any, decision: Any, value: Any, harm: Any, *, pos_label: Any = None) -> float:
    positive = is_positive(y_true, pos_label)
    selected = is_positive(decision, pos_label)
    harm = np.asarray(harm, dtype=np.float64)
    if not harm.min(initial=0.0) >= 0:  # also raises on NaN
        raise InvalidInputError("harm must be 0 or more in every row, none missing.", argument="harm")
    if not selected.any():
        return 0.0
    saved = float(np.asarray(value, dtype=np.float64)[selected & positive].sum())
    done = float(harm[selected & ~positive].sum())
    if done == 0:
        possible = harm[~positive & (harm > 0)]
        if not possible.size:
            raise UndefinedMetricError("value per harm has no scale: no negative row can be harmed.")
        done = float(possible.min())
    return saved / done


@of_moew
def value_per_harm(pos_label: Any = None) -> FunctionMetric:
    """Value saved by right alarms over harm done by false ones, higher is better:
    Σ value over selected positives / Σ harm over selected negatives.

    The paper's metric for spam: costs saved by blocking spam over impressions of good results blocked,
    with the columns `value` and `harm` for each row; use it with `ShareSelected(0.05)`. If no harm
    was done the denominator is the smallest harm above 0 of any negative row: the value stays finite,
    and doing no harm counts at least as much as doing the least possible harm. With nothing selected the
    value is 0.

    Examples
    --------
    >>> labels, blocked = [1, 1, 0, 0], [1, 0, 1, 0]
    >>> value_per_harm()(labels, blocked, {"value": [60.0, 10.0, 0.0, 0.0], "harm": [0.0, 0.0, 20.0, 5.0]})
    3.0
    """
    bounds = (0.0, math.inf)
    return FunctionMetric(_value_per_harm, "decision", True, "value per harm", pos_label, True, bounds)


def _mean_of_selected(
    y_true: Any, decision: Any, *, pos_label: Any = None, sample_weight: Any = None
) -> float:
    selected = is_positive(decision, pos_label)
    grades = np.asarray(y_true)
    _check_grades(grades)
    chosen = grades[selected]
    if not chosen.size:
        raise UndefinedMetricError(
            f"nothing was selected among {selected.size} rows, so there is no mean: none is decided "
            f"{shown_positive(decision, pos_label)}, the decisions are {shown_labels(decision)}."
        )
    if sample_weight is None:
        return float(chosen.mean())
    weight = np.asarray(sample_weight, dtype=np.float64)[selected]
    if not weight.sum() > 0:
        raise UndefinedMetricError("the selected rows have no weight, so there is no mean.")
    return float(chosen @ weight / weight.sum())


def _mean_of_top(y_true: Any, score: Any, *, share: float) -> float:
    grades, scores = np.asarray(y_true), np.asarray(score)
    _check_grades(grades)
    n = len(scores)
    count = max(1, int(np.floor(share * n + 0.5)))
    threshold = np.partition(scores, n - count)[n - count]
    above, level = scores > threshold, scores == threshold
    if not level.any():
        return float("nan")  # the threshold is NaN: the model has diverged
    of_level = grades[level].sum() / level.sum()
    return float((grades[above].sum() + (count - above.sum()) * of_level) / count)


@of_moew
def mean_of_selected(share: float | None = None, pos_label: Any = None) -> FunctionMetric:
    """The mean of y over the rows decided positive: E[y | ŷ = +]. Higher is better.

    The paper's metric for web pages: y is a graded quality in [0, 1], while the model is trained on
    binary labels and selects 40 %. With `share` it is the mean over that share of the rows with the highest
    scores, where rows that tie at the threshold count by their mean, as a random choice among them gives on
    average. Without it, a decision rule such as `ShareSelected(0.4)` selects; undefined when nothing is
    selected.

    Examples
    --------
    >>> mean_of_selected(pos_label=1)([0.9, 0.2, 0.5], [1, 0, 1])
    0.7
    >>> mean_of_selected(share=0.5)([0.9, 0.2, 0.5, 0.1], [3.0, 2.0, 2.0, 1.0])  # two rows tie
    0.625
    """
    if share is None:
        return FunctionMetric(_mean_of_selected, "decision", True, "mean of the selected", pos_label, True)
    FRACTION.check("share", share)
    name = f"mean of the top {100 * float(share):g} %"
    settings = {"share": float(share)}
    return FunctionMetric(_mean_of_top, "score", True, name, pos_label, True, settings=settings)


def _check_grades(grades: Array) -> None:
    if grades.dtype.kind not in "biuf":
        kind = "texts" if grades.dtype.kind in "USO" else str(grades.dtype)
        raise InvalidInputError(
            f"the mean of the selected needs y in numbers, such as a graded quality, got {kind}.",
            argument="y",
        )


class MetricFactory(NamedTuple):
    """A function that makes a metric, and an example of the numbers that can follow its name and "="."""

    make: Callable[..., FunctionMetric]
    example: str = ""


METRICS = {
    "accuracy": MetricFactory(accuracy),
    "fpr_gap": MetricFactory(fpr_gap),
    "g_mean": MetricFactory(g_mean),
    "mean_of_selected": MetricFactory(mean_of_selected, "0.4"),
    "precision_at_recall": MetricFactory(precision_at_recall, "0.95"),
    "q_mean": MetricFactory(q_mean),
    "r_squared": MetricFactory(r_squared),
    "value_per_harm": MetricFactory(value_per_harm),
    "worst_band_relative_error": MetricFactory(worst_band_relative_error, "17,25,42"),
    "worst_class_error": MetricFactory(worst_class_error),
}
