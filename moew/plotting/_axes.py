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


def metric_label(result: SearchResult, rows: str = "validation") -> str:
    """The label of an axis: the metric's name and its direction."""
    return f"{result.metric}, {rows} ({'higher' if result.greater_is_better else 'lower'} is better)"


def best_is_bright(result: SearchResult) -> str:
    """The colour map in which better scores are brighter."""
    return "viridis" if result.greater_is_better else "viridis_r"
