"""Plots of a finished search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from moew._util.colours import COLOURS
from moew._util.margins import TWO_SIDED
from moew._util.numbers import number
from moew.data import Rows
from moew.exceptions import InvalidInputError
from moew.inspection import (
    Landscape,
    groups_by_label,
    pareto_front,
    reliability,
    slices_of,
    table_columns,
    threshold_curve,
    trace,
    trained_rows,
)
from moew.inspection import landscape as make_landscape
from moew.search import FittedSearch, MetricSearch, SearchResult, fitted_search, undominated
from moew.types import Features, Labels

BLUE, ORANGE, GREEN = COLOURS[:3]
GREY = "0.45"


def axes_or_new(ax: Any, size: tuple[float, float] = (6.0, 4.0)) -> Any:
    """The user's axes, or those of a new figure; without the frame's upper and right line."""
    if ax is None:
        try:
            import matplotlib.pyplot as plt
        except ModuleNotFoundError as missing:
            raise ModuleNotFoundError(
                "plots need matplotlib; install it with: pip install 'moew[plot]'", name="matplotlib"
            ) from missing
        _, ax = plt.subplots(figsize=size, layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def legend_above(ax: Any, beside: Any = None, ncols: int = 2) -> None:
    """A legend at the top of the axes, over which the vertical axis is lengthened, so that the legend covers
    nothing that is drawn; `beside` are axes that share the horizontal one."""
    both = [ax] if beside is None else [ax, beside]
    handles = [handle for one in both for handle in one.get_legend_handles_labels()[0]]
    names = [handle.get_label() for handle in handles]
    ends = [one.get_ylim() for one in both]
    legend = ax.legend(handles, names, loc="upper center", ncols=ncols, frameon=False)
    ax.figure.draw_without_rendering()  # the legend's size is known only then
    share = legend.get_window_extent().height / ax.get_window_extent().height
    share = min(1.2 * share + 0.02, 0.6)  # a little room between
    for one, (low, high) in zip(both, ends, strict=True):
        one.set_ylim(low, high + (high - low) * share / (1 - share))


def metric_label(result: SearchResult, rows: str = "validation") -> str:
    """The label of an axis: the metric's name and its direction."""
    return f"{result.metric}, {rows} ({'higher' if result.greater_is_better else 'lower'} is better)"


def star(ax: Any, place: Any, label: str = "winner", colour: str = ORANGE, size: float = 110) -> None:
    """The model that counts, at its place (2,), above all others."""
    ax.scatter(
        *place, s=size, marker="*", color=colour, edgecolor="white", linewidth=0.7, zorder=3, label=label
    )


def legend_below(ax: Any) -> None:
    """A legend under the horizontal axis, for pictures that have no room of their own for it."""
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2, frameon=False)


def history(search: MetricSearch | FittedSearch, *, ax: Any = None) -> Any:
    """Every candidate's validation score, the best so far, the unweighted model's and the honest score.

    A star marks the winner.
    """
    fitted = fitted_search(search)
    seen, result = trace(fitted), fitted.result
    ax = axes_or_new(ax)
    ax.scatter(seen.numbers, seen.values, s=14, color=GREY, linewidth=0, label="candidates")
    ax.step(seen.numbers, seen.best_so_far, where="post", color=BLUE, label="best so far")
    if np.isfinite(result.unweighted.apparent):
        ax.axhline(result.unweighted.apparent, color=ORANGE, linestyle="--", label="unweighted")
    if np.isfinite(result.honest.value):
        ax.axhline(result.honest.value, color=BLUE, linestyle=":", label="the winner's honest score")
    if len(seen.failed):
        low = ax.get_ylim()[0]
        ax.plot(seen.failed, np.full(len(seen.failed), low), "x", color=GREY, clip_on=False, label="failed")
    best = result.best_trial
    star(ax, (best.number, best.value))
    ax.set(xlabel="candidate", ylabel=metric_label(result))
    legend_above(ax)
    return ax


def landscape(
    search: MetricSearch | FittedSearch, dims: Sequence[int] | None = None, *, ax: Any = None
) -> Any:
    """The validation score over two dimensions of alpha: the candidates, and a GP's mean between them.

    The GP is fitted to all candidates for the picture; it is not the one that the search went by.

    `dims` are two dimensions from 0 (or one, for a curve with a 95 % band); None takes the two that
    matter most. Where alpha has more dimensions, the surface is a cut through the winner.
    """
    fitted = fitted_search(search)
    seen = make_landscape(fitted, dims)
    ax = axes_or_new(ax, (5.6, 4.6))
    draw = _curve if len(seen.dims) == 1 else _surface
    draw(fitted.result, seen, ax)
    title = "GP mean and candidates"
    ax.set_title(title if seen.n_dims <= 2 else f"{title}; other dimensions as in the winner")
    return ax


def _curve(result: SearchResult, seen: Landscape, ax: Any) -> None:
    band = TWO_SIDED * seen.deviation
    ax.fill_between(seen.sides, seen.mean - band, seen.mean + band, color=BLUE, alpha=0.15, linewidth=0)
    ax.plot(seen.sides, seen.mean, color=BLUE, label="GP mean")
    ax.scatter(seen.alphas[:, 0], seen.values, s=14, color=GREY, label="candidates")
    star(ax, (seen.alphas[seen.winner, 0], seen.values[seen.winner]))
    ax.set(xlabel=seen.names[0], ylabel=metric_label(result))
    legend_above(ax, ncols=3)


def _surface(result: SearchResult, seen: Landscape, ax: Any) -> None:
    from matplotlib.patches import Circle

    best_is_bright = "viridis" if result.greater_is_better else "viridis_r"
    colours = {"cmap": best_is_bright, "vmin": seen.values.min(), "vmax": seen.values.max()}
    mesh = ax.pcolormesh(seen.sides, seen.sides, seen.mean, shading="gouraud", rasterized=True, **colours)
    mesh.set_clip_path(Circle((0, 0), seen.radius, transform=ax.transData))
    ax.scatter(
        *seen.alphas.T, c=seen.values, s=22, edgecolor="white", linewidth=0.7, label="candidates", **colours
    )
    star(ax, seen.alphas[seen.winner], size=190)
    ax.set(aspect="equal", xlabel=seen.names[0], ylabel=seen.names[1])
    ax.figure.colorbar(mesh, ax=ax, label=metric_label(result), shrink=0.85)
    legend_below(ax)


def pareto(
    search: MetricSearch | FittedSearch, x: str | None = None, y: str | None = None, *, ax: Any = None
) -> Any:
    """All tried models by two metrics, the front as a line, the selected model as a star.

    `x` and `y` are names of metrics; by default the second and the first. Of more than two metrics, the line
    joins models that are on the front of these two.
    """
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
    star(ax, [found.selected.values[k] for k in columns], "selected", size=150)
    for text, name, bound in zip(found.constraints, found.bounded, found.bounds, strict=True):
        if name in names:
            line = ax.axvline if name == names[0] else ax.axhline
            line(bound, color=GREEN, linestyle="--", label=text)
    better = [f"({'higher' if found.greater_is_better[k] else 'lower'} is better)" for k in columns]
    ax.set(xlabel=f"{names[0]} {better[0]}", ylabel=f"{names[1]} {better[1]}")
    legend_below(ax)
    return ax


def reliability_curve(
    search: MetricSearch | FittedSearch,
    X: Features = None,
    y: Labels = None,
    sample_weight: Any = None,
    *,
    label: Any = None,
    ax: Any = None,
) -> Any:
    """How often a class comes where a probability is given, before and after calibration.

    On rows X, y that the model was not trained on, or on the evaluation rows of a search with `calibrate`. A
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
    search: MetricSearch | FittedSearch,
    X: Features = None,
    y: Labels = None,
    sample_weight: Any = None,
    *,
    columns: Any = None,
    ax: Any = None,
) -> Any:
    """The metric over the threshold of the score, with the one that is selected as a star.

    On rows X, y that the model was not trained on, or on the evaluation rows.
    """
    fitted = fitted_search(search)
    seen = threshold_curve(fitted, X, y, sample_weight, columns)
    ax = axes_or_new(ax)
    ax.plot(seen.thresholds, seen.values, color=BLUE, label=fitted.result.metric)
    if np.isfinite(seen.chosen):
        ax.axvline(seen.chosen, color=GREY, linestyle="--", linewidth=1)
        star(ax, (seen.chosen, seen.value), "selected", size=150)
    ax.set(xlabel=f"threshold of the {seen.of}", ylabel=metric_label(fitted.result, seen.rows))
    legend_below(ax)
    return ax


def weights_by_class(
    search: MetricSearch | FittedSearch, training: Rows, validation: Rows | None = None, *, ax: Any = None
) -> Any:
    """Mean weight of each class, beside the validation error that the unweighted model makes on it.

    A numeric target is cut into bins of equally many rows. The rows are those that the search was fitted
    with, and have the columns that the decision needs; errors are seen on the validation rows given here, or
    on those the search held out of the training rows. Without such rows there are the weights alone.
    """
    found = groups_by_label(fitted_search(search), training, validation)
    ax = axes_or_new(ax)
    places = np.arange(len(found.groups))
    ax.bar(places, [group.mean_weight for group in found.groups], color=BLUE, width=0.6, label="mean weight")
    ax.axhline(1, color=GREY, linewidth=0.8)
    ax.set_xticks(places, [group.name for group in found.groups])
    ax.set(xlabel="class" if found.is_classes else "target", ylabel="mean weight")
    errors = np.array([group.unweighted_error for group in found.groups])
    if np.isfinite(errors).any():
        beside = ax.twinx()
        beside.spines["top"].set_visible(False)
        beside.plot(places, errors, "D", color=ORANGE, label="unweighted model's validation error")
        beside.set_ylim(bottom=0)
        beside.set_ylabel("validation error" if found.is_classes else "mean absolute error, validation")
        legend_above(ax, beside)
    return ax


def weights_by_column(
    search: MetricSearch | FittedSearch, X: Features, y: Labels, column: Any, *, ax: Any = None
) -> Any:
    """Mean weight by slices of a column: its name or place in X, or its values (n,).

    Numbers are cut into bins of equally many rows, categories shown each by itself.
    """
    rows = trained_rows(fitted_search(search), X, y)
    if np.ndim(column) == 0:
        named = dict(table_columns(rows.X))
        name = str(column)
        if name not in named and isinstance(column, int | np.integer) and 0 <= column < len(named):
            name = list(named)[column]
        if name not in named:
            raise InvalidInputError(
                f"X has no column {column!r}; it has {', '.join(list(named)[:20])}.", argument="column"
            )
        values = named[name]
    elif len(column) != len(y):
        raise InvalidInputError(
            f"the column has {len(column)} values, and there are {len(y)} rows.", argument="column"
        )
    else:
        name, values = "value", np.asarray(column)[rows.numbers]
    cut = slices_of(name, values, rows.weights)
    if cut is None:
        raise InvalidInputError(
            f"{name} has a value of its own in nearly every row, and cannot be cut.", argument="column"
        )
    ax = axes_or_new(ax)
    places = np.arange(len(cut.slices))
    ax.barh(places, [part.mean_weight for part in cut.slices], color=BLUE, height=0.6)
    ax.axvline(1, color=GREY, linewidth=0.8)
    ax.set_yticks(places, [f"{part.name} ({part.n_rows:,})" for part in cut.slices])
    ax.invert_yaxis()
    ax.set(xlabel="mean weight", ylabel=f"{name} (rows)")
    return ax


def weight_contours(
    search: MetricSearch | FittedSearch,
    X: Features,
    y: Labels,
    label: Any,
    *,
    points: int = 101,
    levels: int | Sequence[float] = 8,
    ax: Any = None,
) -> Any:
    """Contours of the weight over two features, for rows of one class, on top of those rows.

    X (n, 2) are the rows that the search was fitted with, numbers only. `levels` says how many contours, or
    of which weights.
    """
    fitted = fitted_search(search)
    rows = trained_rows(fitted, X, y)
    features = np.asarray(rows.X, dtype=np.float64)
    if features.shape[1] != 2:
        raise InvalidInputError(f"contours need two features, and X has {features.shape[1]}.", argument="X")
    chosen = rows.y == label
    if not np.any(chosen):
        raise InvalidInputError(f"no training row has the label {label!r}.", argument="label")
    low, high = features.min(axis=0), features.max(axis=0)
    sides = [np.linspace(a, b, points) for a, b in zip(low, high, strict=True)]
    grid = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    names, frame = ("x1", "x2"), grid
    if hasattr(rows.X, "columns"):
        names, frame = rows.X.columns, type(rows.X)(dict(zip(rows.X.columns, grid.T, strict=True)))
    weights = fitted.weight_function(frame, np.full(len(grid), label, dtype=rows.y.dtype))
    ax = axes_or_new(ax, (5.4, 4.6))
    ax.scatter(*features[chosen].T, s=6, color=GREY, alpha=0.2, linewidth=0)
    ax.set(xlabel=str(names[0]), ylabel=str(names[1]), title=f"weight of rows of class {label}")
    lowest, highest = float(weights.min()), float(weights.max())
    if highest < 1.001 * lowest:
        ax.set_title(f"all rows of class {label} have the weight {number(highest, 3)}")
        return ax
    # Weights are ratios: from 0.1 to 0.2 is as far as from 1 to 2.
    at = np.geomspace(lowest, highest, levels + 2)[1:-1] if isinstance(levels, int) else levels
    lines = ax.contour(*sides, weights.reshape(points, points), levels=at, norm="log", cmap="viridis")
    ax.clabel(lines, fmt=lambda weight: number(weight, 2), fontsize=9)
    return ax
