"""Plots of the candidates of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from moew._util.margins import TWO_SIDED
from moew.exceptions import InvalidInputError
from moew.inspection import Landscape, given_rows, trace, values_again
from moew.inspection import landscape as make_landscape
from moew.plotting._axes import (
    BLUE,
    GREY,
    ORANGE,
    axes_or_new,
    best_is_bright,
    legend_above,
    metric_label,
)
from moew.search import ExampleWeightSearch, FittedSearch, SearchResult, fitted_search
from moew.types import Labels, Rows


def history(search: ExampleWeightSearch | FittedSearch, *, ax: Any = None) -> Any:
    """Every candidate's validation score, the best so far, the unweighted model's and the honest score.

    A star marks the winner.
    """
    fitted = fitted_search(search)
    seen, result = trace(fitted), fitted.result
    ax = axes_or_new(ax)
    ax.scatter(seen.numbers, seen.values, s=14, color=GREY, linewidth=0, label="candidates")
    ax.step(seen.numbers, seen.best_so_far, where="post", color=BLUE, label="best so far")
    if np.isfinite(result.unweighted_score):
        ax.axhline(result.unweighted_score, color=ORANGE, linestyle="--", label="unweighted")
    if np.isfinite(result.honest_score):
        ax.axhline(result.honest_score, color=BLUE, linestyle=":", label="the winner's honest score")
    if len(seen.failed):
        low = ax.get_ylim()[0]
        ax.plot(seen.failed, np.full(len(seen.failed), low), "x", color=GREY, clip_on=False, label="failed")
    best = result.best_trial
    ax.scatter(best.number, best.value, s=110, marker="*", color=ORANGE, zorder=3, label="winner")
    ax.set(xlabel="candidate", ylabel=metric_label(result))
    legend_above(ax)
    return ax


def landscape(
    search: ExampleWeightSearch | FittedSearch, dims: Sequence[int] | None = None, *, ax: Any = None
) -> Any:
    """The validation score over two dimensions of alpha: the candidates, and a GP's mean between them.

    The GP is fitted to all candidates for the picture; it is not the one that the search went by.

    `dims` are two dimensions from 0 (or one, for a curve with a 95 % band); None takes the two that
    matter most. Where alpha has more dimensions, the surface is a cut through the winner.
    """
    fitted = fitted_search(search)
    seen = make_landscape(fitted, dims)
    ax = axes_or_new(ax, (5.6, 4.6))
    if len(seen.dims) == 1:
        _curve(fitted.result, seen, ax)
    else:
        _surface(fitted.result, seen, ax)
    title = "GP mean and candidates"
    ax.set_title(title if seen.n_dims <= 2 else f"{title}; other dimensions as in the winner")
    return ax


def validation_against_test(
    search: ExampleWeightSearch | FittedSearch,
    X: Rows,
    y: Labels,
    X_test: Rows,
    y_test: Labels,
    *,
    X_val: Rows = None,
    y_val: Labels = None,
    metadata: Mapping[str, Any] | None = None,
    metadata_val: Mapping[str, Any] | None = None,
    metadata_test: Mapping[str, Any] | None = None,
    n_candidates: int = 20,
    ax: Any = None,
) -> Any:
    """How far the validation score tells the test score, with the correlation in the title.

    A search keeps only the winner's model, so about `n_candidates` are trained again on the rows X and y
    that it was fitted with: the winner, the model of α = 0, and others spread evenly over the ranks of the
    validation scores. A decision rule is fitted again, too, and may need the validation rows and `metadata`.
    """
    fitted = fitted_search(search)
    seen, result = trace(fitted), fitted.result
    if n_candidates < 3:
        raise InvalidInputError(
            f"n_candidates must be at least 3, got {n_candidates}.", argument="n_candidates"
        )
    by_score = seen.numbers[np.argsort(seen.values, kind="stable")]
    places = np.linspace(0, len(by_score) - 1, min(n_candidates - 1, len(by_score))).round().astype(int)
    winner = result.best_number
    chosen = sorted({winner, 0} & set(seen.numbers.tolist()) | set(by_score[places].tolist()))
    rows = given_rows(fitted, X, y, X_val, y_val, metadata=metadata, metadata_val=metadata_val)
    on_test = values_again(fitted, chosen, rows, X_test, y_test, metadata_test)
    on_validation = dict(zip(seen.numbers.tolist(), seen.values.tolist(), strict=True))
    pairs = np.array([(on_validation[number], on_test[number]) for number in chosen])
    ax = axes_or_new(ax, (4.8, 4.6))
    ax.scatter(*pairs.T, s=20, color=GREY, linewidth=0, label="candidates")
    if 0 in on_test:
        ax.scatter(*pairs[chosen.index(0)], s=60, marker="s", color=ORANGE, label="α = 0")
    ax.scatter(*pairs[chosen.index(winner)], s=110, marker="*", color=BLUE, label="winner")
    varied = bool((np.ptp(pairs, axis=0) > 0).all())
    if varied:
        ax.set_title(f"correlation {np.corrcoef(pairs.T)[0, 1]:.2f} over {len(pairs)} candidates")
    ax.axline((pairs[:, 0].mean(),) * 2, slope=1, color=GREY, linewidth=0.8, linestyle=":")
    ax.set(xlabel=metric_label(result), ylabel=f"{result.metric}, test")
    legend_above(ax, ncols=3)
    return ax


def _curve(result: SearchResult, seen: Landscape, ax: Any) -> None:
    band = TWO_SIDED * seen.deviation
    ax.fill_between(seen.sides, seen.mean - band, seen.mean + band, color=BLUE, alpha=0.15, linewidth=0)
    ax.plot(seen.sides, seen.mean, color=BLUE, label="GP mean")
    ax.scatter(seen.alphas[:, 0], seen.values, s=14, color=GREY, label="candidates")
    best = seen.alphas[seen.winner, 0], seen.values[seen.winner]
    ax.scatter(*best, s=110, marker="*", color=ORANGE, zorder=3, label="winner")
    ax.set(xlabel=seen.names[0], ylabel=metric_label(result))
    legend_above(ax, ncols=3)


def _surface(result: SearchResult, seen: Landscape, ax: Any) -> None:
    from matplotlib.patches import Circle

    colours = {"cmap": best_is_bright(result), "vmin": seen.values.min(), "vmax": seen.values.max()}
    mesh = ax.pcolormesh(seen.sides, seen.sides, seen.mean, shading="gouraud", rasterized=True, **colours)
    mesh.set_clip_path(Circle((0, 0), seen.radius, transform=ax.transData))
    ax.scatter(
        *seen.alphas.T, c=seen.values, s=22, edgecolor="white", linewidth=0.7, label="candidates", **colours
    )
    best = seen.alphas[seen.winner]
    ax.scatter(*best, s=190, marker="*", color=ORANGE, edgecolor="white", zorder=3, label="winner")
    ax.set(aspect="equal", xlabel=seen.names[0], ylabel=seen.names[1])
    ax.figure.colorbar(mesh, ax=ax, label=metric_label(result), shrink=0.85)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, frameon=False)
