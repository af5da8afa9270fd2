"""The experiments' figures: colours that colour-blind people can tell apart, bands of 95 % margins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from moew._util.colours import COLOURS as COLOURS
from moew._util.margins import margin
from moew.types import FloatArray


def new_figure(rows: int, columns: int, size: tuple[float, float], **more: Any) -> tuple[Any, Any]:
    """A figure and its axes; `more` as matplotlib's `subplots` takes it."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from cycler import cycler

    plt.rcParams["axes.prop_cycle"] = cycler(color=COLOURS)
    return plt.subplots(rows, columns, figsize=size, layout="constrained", **more)


def band(axis: Any, x: Sequence[float], values: Sequence[FloatArray], label: str, **style: Any) -> None:
    """Draw a line through the means over the repeats, in a band of their 95 % margins."""
    means, margins = means_and_margins(values)
    (line,) = axis.plot(list(x), means, marker="o", markersize=4, label=label, **style)
    axis.fill_between(
        list(x), means - margins, means + margins, color=line.get_color(), alpha=0.2, linewidth=0
    )


def means_and_margins(values: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """The mean and its 95 % margin of each of `values`; the margin of one repeat is 0."""
    margins = [margin(v) if len(v) > 1 else 0.0 for v in values]
    return np.array([np.mean(v) for v in values]), np.array(margins)


def save(figure: Any, path: Path) -> None:
    """Write the figure to `path` and close it."""
    import matplotlib.pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
