"""Plots of the learned weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from moew._util.numbers import number
from moew.exceptions import InvalidInputError
from moew.inspection import groups_by_label, slices_of, table_columns, trained_rows
from moew.plotting._axes import BLUE, GREY, ORANGE, axes_or_new, legend_above
from moew.search import ExampleWeightSearch, FittedSearch, fitted_search
from moew.types import Labels, Rows


def weights_by_class(
    search: ExampleWeightSearch | FittedSearch,
    X: Rows,
    y: Labels,
    X_val: Rows = None,
    y_val: Labels = None,
    *,
    metadata: Mapping[str, Any] | None = None,
    metadata_val: Mapping[str, Any] | None = None,
    ax: Any = None,
) -> Any:
    """Mean weight of each class, beside the validation error that the unweighted model makes on it.

    A numeric target is cut into bins of equally many rows. X and y are the rows that the search was fitted
    with; errors are seen on the validation rows given here, or on those the search held out of X. Without
    such rows there are the weights alone. `metadata` and `metadata_val` are columns the decision needs.
    """
    found = groups_by_label(
        fitted_search(search), X, y, X_val, y_val, metadata=metadata, metadata_val=metadata_val
    )
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
    search: ExampleWeightSearch | FittedSearch, X: Rows, y: Labels, column: Any, *, ax: Any = None
) -> Any:
    """Mean weight by slices of a column: its name or place in X, or its values (n,).

    Numbers are cut into bins of equally many rows, categories shown each by itself.
    """
    rows = trained_rows(fitted_search(search), X, y)
    if np.ndim(column) == 0:
        named = dict(table_columns(rows.X))
        name = str(column) if hasattr(rows.X, "columns") else f"column {column}"
        if name not in named and isinstance(column, int | np.integer) and 0 <= column < len(named):
            name = list(named)[column]
        if name not in named:
            raise InvalidInputError(
                f"X has no column {column!r}; it has {', '.join(list(named)[:20])}.", argument="column"
            )
        values = named[name]
    else:
        name, values = "value", np.asarray(column)
        if len(values) != len(y):
            raise InvalidInputError(
                f"the column has {len(values)} values, and there are {len(y)} rows.", argument="column"
            )
        values = values[rows.numbers]
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
    search: ExampleWeightSearch | FittedSearch,
    X: Rows,
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
    frame = grid
    names = [f"x{j + 1}" for j in range(2)]
    if hasattr(rows.X, "columns"):
        names = [str(name) for name in rows.X.columns]
        frame = type(rows.X)(dict(zip(rows.X.columns, grid.T, strict=True)))
    weigh = fitted.weight_function
    weights = weigh(frame, np.full(len(grid), label, dtype=rows.y.dtype))
    ax = axes_or_new(ax, (5.4, 4.6))
    ax.scatter(*features[chosen].T, s=6, color=GREY, alpha=0.2, linewidth=0)
    ax.set(xlabel=names[0], ylabel=names[1], title=f"weight of rows of class {label}")
    lowest, highest = float(weights.min()), float(weights.max())
    if highest < 1.001 * lowest:
        ax.set_title(f"all rows of class {label} have the weight {number(highest, 3)}")
        return ax
    # Weights are ratios: from 0.1 to 0.2 is as far as from 1 to 2.
    at = np.geomspace(lowest, highest, levels + 2)[1:-1] if isinstance(levels, int) else levels
    lines = ax.contour(*sides, weights.reshape(points, points), levels=at, norm="log", cmap="viridis")
    ax.clabel(lines, fmt=lambda weight: number(weight, 2), fontsize=9)
    return ax
