"""Plots of several metrics, of probabilities and of thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np

from moew._util.numbers import number
from moew.exceptions import InvalidInputError
from moew.inspection import pareto_front, reliability, threshold_curve
from moew.plotting._axes import BLUE, GREEN, GREY, ORANGE, axes_or_new, metric_label
from moew.search import ExampleWeightSearch, FittedSearch, fitted_search
from moew.types import Labels, Rows


def pareto(
    search: ExampleWeightSearch | FittedSearch,
    x: str | None = None,
    y: str | None = None,
    *,
    ax: Any = None,
) -> Any:
    """All tried models by two metrics, the front as a line, what is handed out as a star.

    `x` and `y` are names of metrics; by default the second and the first. Of more than two metrics, the line
    joins models that are on the front of these two.
    """
    from moew.search._pareto import undominated

    found = pareto_front(fitted_search(search))
    names = [found.metrics[1] if x is None else x, found.metrics[0] if y is None else y]
    for name in names:
        if name not in found.metrics:
            raise InvalidInputError(
                f"{name!r} is none of the metrics {', '.join(map(repr, found.metrics))}.", argument="metric"
            )
    columns = [found.metrics.index(name) for name in names]
    values = np.array([[model.values[k] for k in columns] for model in found.models], dtype=np.float64)
    signs = np.where([found.greater_is_better[k] for k in columns], 1.0, -1.0)
    front = values[undominated(values * signs)]
    front = front[np.argsort(front[:, 0], kind="stable")]
    ax = axes_or_new(ax)
    ax.scatter(*values.T, s=16, color=GREY, linewidth=0, label="tried models")
    ax.plot(*front.T, color=BLUE, marker="o", markersize=4, label="front")
    chosen = [found.handed_out.values[k] for k in columns]
    ax.scatter(*chosen, s=150, marker="*", color=ORANGE, edgecolor="white", zorder=3, label="handed out")
    for text, name, bound in zip(found.constraints, found.bounded, found.bounds, strict=True):
        if name in names:
            line = ax.axvline if name == names[0] else ax.axhline
            line(bound, color=GREEN, linestyle="--", label=text)
    better = [f"({'higher' if found.greater_is_better[k] else 'lower'} is better)" for k in columns]
    ax.set(xlabel=f"{names[0]} {better[0]}", ylabel=f"{names[1]} {better[1]}")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2, frameon=False)
    return ax


def reliability_curve(
    search: ExampleWeightSearch | FittedSearch,
    X: Rows = None,
    y: Labels = None,
    sample_weight: Any = None,
    *,
    label: Any = None,
    ax: Any = None,
) -> Any:
    """How often a class comes where a probability is given, before and after calibration.

    On rows X, y that the model was not trained on, or on the judged rows of a search with `calibrate`. A
    point's size shows the number of its rows.
    """
    fitted = fitted_search(search)
    found = reliability(fitted, X, y, sample_weight, label=label)
    ax = axes_or_new(ax, (5.0, 5.0))
    ax.plot([0, 1], [0, 1], color=GREY, linestyle=":", label="as it should be")
    for curve, colour, name in ((found.before, ORANGE, "the model's own"), (found.after, BLUE, "calibrated")):
        if curve is None:
            continue
        places = [(one.predicted, one.observed) for one in curve.bins]
        sizes = [12 + 160 * one.n_rows / found.n_rows for one in curve.bins]
        named = f"{name} (Brier score {number(curve.brier, 3)})"
        ax.plot(*zip(*places, strict=True), color=colour, label=named)
        ax.scatter(*zip(*places, strict=True), s=sizes, color=colour, linewidth=0)
    of = "each class" if found.label is None else repr(found.label)
    ax.set(xlabel=f"probability of {of}", ylabel="share of rows that are", xlim=(0, 1), ylim=(0, 1))
    ax.set_aspect("equal")
    ax.legend(loc="upper left", frameon=False)
    return ax


def metric_over_threshold(
    search: ExampleWeightSearch | FittedSearch,
    X: Rows = None,
    y: Labels = None,
    sample_weight: Any = None,
    *,
    metadata: Any = None,
    ax: Any = None,
) -> Any:
    """The metric over the threshold of the score, with the one that is handed out as a star.

    On rows X, y that the model was not trained on, or on the judged rows.
    """
    fitted = fitted_search(search)
    seen = threshold_curve(fitted, X, y, sample_weight, metadata)
    ax = axes_or_new(ax)
    ax.plot(seen.thresholds, seen.values, color=BLUE, label=fitted.result.metric)
    if np.isfinite(seen.chosen):
        ax.axvline(seen.chosen, color=GREY, linestyle="--", linewidth=1)
        ax.scatter(seen.chosen, seen.value, s=150, marker="*", color=ORANGE, zorder=3, label="handed out")
    ax.set(xlabel=f"threshold of the {seen.of}", ylabel=metric_label(fitted.result, seen.rows))
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2, frameon=False)
    return ax
