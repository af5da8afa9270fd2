"""Scores divided by the mean score of uniform weights, as in the paper's spam table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments._beside_paper import Line, table
from experiments._experiment import PAPER_ARM
from moew._util.margins import margin
from moew.types import FloatArray

Scores = Mapping[str, FloatArray]  # test scores (repeats,) of each arm, "uniform" first
Figures = Mapping[str, tuple[float, float]]  # the paper's, with their margins


def lines(scores: Scores, paper: Figures, unit: float = 1.0) -> list[Line]:
    """Every arm divided by the mean of uniform in the same repeats, times `unit`; higher is better.

    "We have normalized the reported scores so that the average uniformly weighted test metric is 1.0": the
    ratio of the means, with the margin of the arm's own mean, so that uniform has a margin, too.
    """
    return [
        Line(name, unit * values / _same(scores, values).mean(), True, *paper.get(name, (None, 0.0)))
        for name, values in scores.items()
    ]


def _same(scores: Scores, values: FloatArray) -> FloatArray:
    """The scores of uniform in the repeats of `values`: second settings have only the first repeats."""
    return scores["uniform"][: len(values)]


def ratio(values: FloatArray, uniform: FloatArray) -> tuple[float, float]:
    """The ratio of the means of `values` (R,) and `uniform` (R,), and its margin by the delta method.

    Both come from the same repeats, so the effect of their common splits cancels.
    """
    quotient = float(values.mean() / uniform.mean())
    return quotient, margin((values - quotient * uniform) / uniform.mean())


def section(title: str, scores: Scores, paper: Figures, unit: float = 1.0) -> str:
    """One table, the raw means, and each arm's ratio to uniform within the repeats."""
    parts = [table(title, lines(scores, paper, unit), "paper, own data")]
    parts += [f"{name}: {values.mean():.4g} ± {margin(values):.2g}, raw" for name, values in scores.items()]
    pairs = [(name, "uniform") for name in scores if name != "uniform"]
    for name, other in [*pairs, ("moew", PAPER_ARM)]:
        values, rival = scores[name], scores[other][: len(scores[name])]
        quotient, within = ratio(values, rival)
        better = int((values > rival).sum())
        parts.append(f"{name} / {other}: {quotient:.4f} ± {within:.4f}, better in {better} of {len(values)}")
    return "\n".join([*parts, ""])


def draw(
    path: Path, titles: Sequence[str], all_lines: Sequence[list[Line]], label: str, n_rows: int = 1
) -> None:
    """Draw a panel for each table: our means with margins, and the paper's as hollow diamonds."""
    from experiments._figures import COLOURS, new_figure, save

    n_columns = len(titles) // n_rows
    figure, axes = new_figure(n_rows, n_columns, (2.2 + 3.2 * n_columns, 0.4 + 3.0 * n_rows))
    first = np.ravel(axes)[::n_columns]
    for axis, title, rows in zip(np.ravel(axes), titles, all_lines, strict=True):
        places = np.arange(len(rows))[::-1]
        means, margins = [row.mean for row in rows], [row.margin for row in rows]
        axis.errorbar(means, places, xerr=margins, fmt="o", color=COLOURS[0], capsize=3, label="ours")
        for mean, place in zip(means, places, strict=True):
            axis.annotate(
                f"{mean:.2f}", (mean, place), (0, -12), textcoords="offset points", ha="center", fontsize=8
            )
        known = [(row.paper, row.paper_margin, place + 0.2) for row, place in zip(rows, places, strict=True)]
        shown = [point for point in known if point[0] is not None]
        if shown:
            values, errors, heights = zip(*shown, strict=True)
            style = {"fmt": "D", "mfc": "white", "color": COLOURS[1], "capsize": 3}
            axis.errorbar(values, heights, xerr=errors, label="paper, its own data", **style)
        axis.axvline(rows[0].mean, color="grey", linewidth=1, linestyle="--")
        axis.set(title=title, xlabel=label, ylim=(-0.6, len(rows) - 0.3))
        axis.set_yticks(places, [row.name for row in rows] if axis in first else [])
    handles, labels = np.ravel(axes)[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    save(figure, path)
