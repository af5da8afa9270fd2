"""Axes and their style, for all plots."""

from __future__ import annotations

from typing import Any

from moew._util.colours import COLOURS
from moew.search import SearchResult

BLUE, ORANGE, GREEN, PINK = COLOURS[:4]
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


def best_is_bright(result: SearchResult) -> str:
    """The colour map in which better scores are brighter."""
    return "viridis" if result.greater_is_better else "viridis_r"
