"""The page's pictures; each is markup, or nothing where there is nothing to see."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from moew._util.colours import viridis
from moew._util.margins import TWO_SIDED
from moew._util.numbers import count, ends, number, signed, with_margin
from moew.inspection import ColumnSlices, Group, LabelGroups, Landscape, Reliability, Slice, ThresholdCurve
from moew.report._record import Number, Report, Strategy, Verdict, Weights
from moew.report._svg import LETTER, WIDTH, Picture, Scale, padded, plot, shortened
from moew.search import UNWEIGHTED, ParetoFront, undominated
from moew.types import FloatArray

MOST_BARS = 24  # of classes; the table has the others
_RIGHT = WIDTH - 12
_LONG_NAME = 27  # characters of a strategy's name
_ROW = 24.0  # height of a bar with its room
_LONGEST, _WIDE = 22, 164.0  # characters of a bar's name, and their room: the longest range of numbers fits
_FAR = 3.0  # candidates this many times as far behind the median as it is behind the best stand at the edge


class Interval(NamedTuple):
    """A dot with its interval; None is not shown."""

    name: str
    value: Number
    margin: Number
    style: str = "c"


def gain_interval(verdict: Verdict) -> str:
    """The gain and its 95 % interval, with zero in sight."""
    gain, low, high = verdict.gain, verdict.low, verdict.high
    if gain is None or low is None or high is None or low == high == 0:
        return ""
    first, last = ends(low, high)
    shown = signed(gain, error=(high - low) / 2)
    words = f"The gain is {shown}, its 95 % interval goes from {first} to {last}."
    picture = Picture("gain", "Gain over the unweighted model", words, 92)
    scale = Scale(*padded([0.0, low, high], 0.12), 16, WIDTH - 16)
    picture.axis_below(scale, 50, 14, "gain, better →")
    picture.upright(0, "zero")
    picture.lines([(low, 30), (high, 30)], "whisker a")
    picture.dot(gain, 30, 7, "a", words)
    return str(picture)


def differences(strategies: Sequence[Strategy]) -> str:
    """How far each strategy's honest score is from that of the selected model, with its interval."""
    rows = [
        Interval(one.name, one.difference, *((None, "a") if one.selected else (one.margin, "c")))
        for one in strategies
    ]
    return intervals("differences", "Difference to the selected model", rows, "better →", with_zero=True)


def intervals(
    name: str,
    title: str,
    rows: Sequence[Interval],
    axis: str,
    bounds: Sequence[Number] | None = None,
    with_zero: bool = False,
) -> str:
    """A dot in each row with its interval, which ends at the bounds."""
    lowest, highest = bounds or (None, None)
    least, most = -math.inf if lowest is None else lowest, math.inf if highest is None else highest

    def ends_of(value: float, margin: Number) -> tuple[float, float]:
        return max(value - (margin or 0), least), min(value + (margin or 0), most)

    numbers = [end for row in rows if row.value is not None for end in ends_of(row.value, row.margin)]
    if not numbers:
        return ""
    told = [f"{row.name}: {with_margin(row.value, row.margin, sign=with_zero)}" for row in rows]
    bottom = 14 + 26.0 * len(rows)
    picture = Picture(name, title, f"{'; '.join(told)}.", bottom + 40)
    shown = shortened([row.name for row in rows], _LONG_NAME)
    left = min(max(92.0, 16 + LETTER * max(map(len, shown))), 205.0)
    scale = Scale(*padded([0.0, *numbers] if with_zero else numbers), left, _RIGHT)
    picture.axis_below(scale, bottom, 8, axis, about=4)
    if with_zero:
        picture.upright(0, "zero")
    for place, row in enumerate(rows):
        y = 22 + 26.0 * place
        picture.name_of(left - 8, y + 4, row.name, shown[place])
        if row.value is None:
            continue
        if row.margin is not None:
            low, high = ends_of(row.value, row.margin)
            picture.lines([(low, y), (high, y)], f"whisker {row.style}")
        picture.dot(row.value, y, 6, row.style, told[place])
    return str(picture)


def history(report: Report) -> str:
    """Every candidate, the best so far, the unweighted model and the honest score of the selected model."""
    seen, metric = report.search, report.metric
    numbers, values, best = (part.tolist() for part in (seen.numbers, seen.values, seen.best_so_far))
    unweighted = next((one.apparent for one in report.strategies if one.name == UNWEIGHTED), None)
    levels = [(unweighted, "level b"), (report.selected.honest, "level a")]
    known = [(value, style) for value, style in levels if value is not None]
    low, high = padded([*_without_far_ones(values, metric.greater_is_better), *(v for v, _ in known)])
    words = f"{len(values)} candidates; the best score went from {number(best[0])} to {number(best[-1])}."
    across = 0, max(*numbers, *seen.failed.tolist(), 1)
    axes = "candidate", _arrow(metric.greater_is_better)
    picture = plot("history", "The search over time", words, 306, across, (low, high), axes)
    for value, style in known:
        picture.level(value, style)
    for n, value in zip(numbers, values, strict=True):
        style = "dim" if low <= value <= high else "hollow dim"
        picture.dot(n, value, 2.6, style, f"candidate {n}: {number(value)}")
    for n in seen.failed.tolist():
        picture.text(picture.x(n), picture.bottom - 2, "×", "tick", "middle")
    steps = zip(numbers, [best[0], *best], best, strict=False)
    picture.lines([(n, value) for n, before, now in steps for value in (before, now)], "trend a")
    picture.star(seen.winner, values[numbers.index(seen.winner)], f"best: candidate {seen.winner}")
    return str(picture)


def _arrow(greater_is_better: bool) -> str:
    return "↑ better" if greater_is_better else "↓ better"


def _without_far_ones(values: Sequence[float], greater_is_better: bool) -> list[float]:
    """The values that set the scale, without a few far worse ones that would flatten all others."""
    ordered = sorted(values, reverse=greater_is_better)  # best first
    median = ordered[len(ordered) // 2]
    farthest = abs(median - ordered[0]) * (1 + _FAR)
    return [value for value in ordered if abs(value - ordered[0]) <= farthest] if farthest > 0 else ordered


def landscape(seen: Landscape, greater_is_better: bool) -> str:
    """The GP's mean over one or two dimensions of alpha, with the candidates."""
    draw = _curve if len(seen.dims) == 1 else _surface
    return draw(seen, greater_is_better)


def _surface(seen: Landscape, greater_is_better: bool) -> str:
    values, sides, radius = seen.values, seen.sides, seen.radius
    shades = Scale(min(values), max(values), *((0, 1) if greater_is_better else (1, 0)))
    best = f"best: {number(values[seen.winner])}"
    picture = Picture("landscape", f"Score over {' and '.join(seen.names)}", f"{best}.", 354)
    across, up = Scale(-radius, radius, 52, 332), Scale(-radius, radius, 312, 32)
    below, left = shortened(seen.names, _LONG_NAME)
    picture.axis_left(up, 46, 332, f"{left} ↑", grid=False)
    picture.axis_below(across, 316, 12, f"{below} →", grid=False)
    centre = f'cx="{across(0):.1f}" cy="{up(0):.1f}" r="{across(radius) - across(0):.1f}"'
    picture.add(f'<clipPath id="ball"><circle {centre}/></clipPath>')
    picture.add('<g clip-path="url(#ball)" shape-rendering="crispEdges">')
    width = across(sides[1]) - across(sides[0])
    size = f'width="{width + 0.6:.1f}" height="{width + 0.6:.1f}"'  # a little larger: no lines show between
    for y, row in zip(sides, seen.mean, strict=True):
        for x, value in zip(sides, row, strict=True):
            place = f'x="{across(x) - width / 2:.1f}" y="{up(y) - width / 2:.1f}"'
            picture.add(f'<rect {place} {size} fill="{viridis(shades(value))}"/>')
    picture.add(f'</g><circle class="edge" {centre}/>')
    for n, (x, y), value in zip(seen.numbers, seen.alphas, values, strict=True):
        hint = f"candidate {n}: {number(value)}"
        picture.dot(x, y, 3.4, "candidate", hint, viridis(shades(value)))
    x, y = seen.alphas[seen.winner]
    picture.star(x, y, best, "winner on-colour")
    bar = Scale(shades.low, shades.high, 312, 32)
    for value in np.linspace(bar.low, bar.high, 40):
        place = f'x="348" y="{bar(value) - 7:.1f}" width="12" height="7.6"'
        picture.add(f'<rect {place} fill="{viridis(shades(value))}"/>')
    for value, words in bar.ticks():
        picture.text(364, bar(value) + 4, words, "tick")
    return str(picture)


def _curve(seen: Landscape, greater_is_better: bool) -> str:
    (name,) = shortened(seen.names, _LONG_NAME)
    words, axes = f"{len(seen.values)} candidates.", (f"{name} →", _arrow(greater_is_better))
    across, up = (-seen.radius, seen.radius), padded([*seen.values, *seen.mean])
    picture = plot("landscape", f"Score over {seen.names[0]}", words, 306, across, up, axes)

    def line(heights: FloatArray) -> list[tuple[float, float]]:
        return list(zip(seen.sides.tolist(), heights.tolist(), strict=True))

    half = TWO_SIDED * seen.deviation
    picture.lines([*line(seen.mean - half), *reversed(line(seen.mean + half))], "band a", "Z")
    picture.lines(line(seen.mean), "trend a")
    for n, (x,), value in zip(seen.numbers, seen.alphas, seen.values, strict=True):
        picture.dot(x, value, 2.6, "dim", f"candidate {n}: {number(value)}")
    (x,) = seen.alphas[seen.winner]
    picture.star(x, seen.values[seen.winner], "best candidate")
    return str(picture)


def front(found: ParetoFront) -> str:
    """Every tried model by the second metric and the first, with the front of these two."""
    names, better = found.metrics[1::-1], found.greater_is_better[1::-1]
    values = np.array([model.values[1::-1] for model in found.models])
    known = np.isfinite(values).all(axis=1)
    if not known.any():
        return ""
    bounds = [[b for name, b in zip(found.bounded, found.bounds, strict=True) if name == of] for of in names]
    best = undominated(values * np.where(better, 1, -1))
    across, up = (padded([*values[known, k], *bounds[k]]) for k in (0, 1))
    words = "; ".join(
        f"{name} of the selected model: {number(value)}"
        for name, value in zip(names, found.selected.values[1::-1], strict=True)
    )
    axes = (
        f"{names[0]}; better {'→' if better[0] else '←'}",
        f"{names[1]}; better {'↑' if better[1] else '↓'}",
    )
    picture = plot("front-picture", f"{names[1]} against {names[0]}", f"{words}.", 320, across, up, axes)
    for draw, of_axis in zip((picture.upright, picture.level), bounds, strict=True):
        for bound in of_axis:
            draw(bound, "level b")
    stars = []
    for model, (x, y), is_known, is_best in zip(found.models, values.tolist(), known, best, strict=True):
        if is_known:
            picture.dot(x, y, 3.5, "a" if is_best else "c faint", f"{model.name}: {number(y)}, {number(x)}")
            stars += [(x, y, f"selected: {model.name}")] if model.selected else []
    picture.lines(sorted(zip(*values[best].T.tolist(), strict=True)), "trend")
    for x, y, hint in stars:
        picture.star(x, y, hint)
    return str(picture)


def threshold(one: ThresholdCurve, metric: str, place: int) -> str:
    """The metric over the threshold, with a star at the one that is selected."""
    known = [(t, v) for t, v in zip(one.thresholds, one.values, strict=True) if not math.isnan(v)]
    if len(known) < 2:
        return ""
    star = [] if math.isnan(one.chosen) or math.isnan(one.value) else [(one.chosen, one.value)]
    chosen = f"selected: {number(one.value)} at {number(one.chosen)}" if star else "none is selected"
    words = f"{metric} goes from {number(known[0][1])} to {number(known[-1][1])}; {chosen}."
    across, up = (padded(ends, 0.03) for ends in zip(*known, *star, strict=True))
    title, axes = (
        f"{metric} over the threshold, {one.rows}",
        (f"threshold of the {one.of}; few rows selected →", metric),
    )
    picture = plot(f"threshold-{place}", title, words, 264, across, up, axes)
    picture.lines(known, "trend")
    for t, value in star:
        picture.upright(t, "zero")
        picture.star(t, value, chosen)
    return str(picture)


def reliability(found: Reliability) -> str:
    """The share of rows of the class over the probability, before and after calibration."""
    both = ((found.before, "b", "the model's own"), (found.after, "a", "calibrated"))
    curves = [(curve, style, words) for curve, style, words in both if curve is not None]
    told = "; ".join(f"{words}: Brier score {number(curve.brier, 3)}" for curve, _, words in curves)
    title, axes = "Share of rows of the class by probability", ("probability", "share of rows of the class")
    picture = plot("reliability", title, f"{told}.", 400, (0.0, 1.0), (0.0, 1.0), axes)
    picture.lines([(0, 0), (1, 1)], "zero")
    most = max(one.n_rows for curve, _, _ in curves for one in curve.bins)
    for k, (curve, style, words) in enumerate(curves):
        picture.lines([(one.predicted, one.observed) for one in curve.bins], f"whisker {style} faint")
        for one in curve.bins:
            share, at = number(one.observed, 3), number(one.predicted, 3)
            hint = f"{words}: {share} of {one.n_rows:,} rows at a probability of {at}"
            radius = round(2.5 + 6 * math.sqrt(one.n_rows / most), 1)
            picture.dot(one.predicted, one.observed, radius, style, hint)
        picture.dot(0.03, 0.97 - 0.06 * k, 5, style)
        picture.text(picture.x(0.06), picture.y(0.97 - 0.06 * k) + 4, words)
    return str(picture)


def by_label(labels: LabelGroups, weighted: bool = True) -> str:
    """Figure 3b: a bar of weight for each class, and beside it its error by the unweighted model and by what
    is selected; without bars where no weights are learned."""
    groups = _extremes(labels.groups, weighted)
    changes = [(group.unweighted_error, group.winner_error) for group in groups]
    errors = [error for both in changes for error in both if not math.isnan(error)]
    arrows = [f"{number(before, 3)} → {number(after, 3)}" for before, after in changes]
    shown = [number(group.mean_weight, 3) for group in groups] if weighted else arrows
    described = "; ".join(f"{group.name} {value}" for group, value in zip(groups, shown, strict=True))
    what, kind = "Mean weight" if weighted else "Error", "class" if labels.is_classes else "target"
    bottom = 30 + _ROW * len(groups)
    picture = Picture("by-label", f"{what} by {kind}", f"{what}s: {described}.", bottom + 40)
    names = shortened([group.name for group in groups], _LONGEST)
    left, end = 92.0 if max(map(len, names)) <= 11 else _WIDE, 246.0 if errors else WIDTH - 14
    for place, group in enumerate(groups):
        picture.name_of(left - 6, 42 + _ROW * place, group.name, names[place])
    if weighted:
        picture.text(left, 14, "mean weight", "head")
        scale = Scale(0, max([*(group.mean_weight for group in groups), 1.0]) * 1.04, left, end)
        picture.axis_below(scale, bottom, 22, "1 is the average row", about=3)
        for place, group in enumerate(groups):
            _weight_bar(picture, group, 30 + _ROW * place)
        picture.upright(1, "zero")
        left = 276.0
    if errors:
        picture.text(left, 14, "validation error", "head")
        scale = Scale(0, max(errors) * 1.06, left, WIDTH - 14)
        picture.axis_below(scale, bottom, 22, "← better", about=3)
    for place, (group, both, arrow) in enumerate(zip(groups, changes, arrows, strict=True)):
        if not any(map(math.isnan, both)):
            y, hint = 37.5 + _ROW * place, f"{group.name}: error {arrow}"
            picture.lines([(error, y) for error in both], "link")
            picture.diamond(both[0], y, 5.5, "b", hint)
            picture.dot(both[1], y, 4.5, "a", hint)
    return str(picture)


def by_slice(name: str, column: ColumnSlices, most: float) -> str:
    """Bars of the mean weight of a column's slices, on the scale that all columns share."""
    bottom = 10 + _ROW * len(column.slices)
    described = "; ".join(f"{part.name} {number(part.mean_weight, 3)}" for part in column.slices)
    title = f"Mean weight by {column.column}"
    picture = Picture(name, title, f"Mean weights: {described}.", bottom + 22)
    picture.axis_below(Scale(0, most * 1.04, _WIDE, WIDTH - 46), bottom, 4, about=4)
    picture.upright(1, "zero")
    shown = shortened([part.name for part in column.slices], _LONGEST)
    for place, part in enumerate(column.slices):
        y = 8 + _ROW * place
        picture.name_of(_WIDE - 6, y + 12, part.name, shown[place])
        _weight_bar(picture, part, y, "a" if part.mean_weight >= 1 else "a faint")
        picture.text(picture.x(part.mean_weight) + 5, y + 12, number(part.mean_weight, 3), "tick")
    return str(picture)


def _weight_bar(picture: Picture, part: Group | Slice, y: float, style: str = "a") -> None:
    hint = f"{part.name}: weight {number(part.mean_weight)}, {count(part.n_rows, 'row')}"
    picture.bar((0, part.mean_weight), (y, y + 15), style, hint)


def histogram(weights: Weights) -> str:
    """How many rows have which weight."""
    edges, counts = weights.edges, weights.counts
    described = f"Weights go from {number(edges[0])} to {number(edges[-1])}."
    across = min(edges[0], 0.0), padded([edges[0], edges[-1], 1.0], 0.02)[1]
    axes = "weight of a training row", "rows"
    title, up = "Distribution of the weights", (0, max(counts) * 1.05)
    picture = plot("histogram", title, described, 230, across, up, axes)
    for (low, high), n in zip(pairwise(edges), counts, strict=True):
        hint = f"{number(low, 3)} to {number(high, 3)}: {count(n, 'row')}"
        picture.bar((low, low + 0.93 * (high - low)), (0, n), "a", hint)
    picture.upright(1, "zero")
    return str(picture)


def _extremes(groups: Sequence[Group], weighted: bool) -> Sequence[Group]:
    """All groups, or those of most and least weight, or change of error, in their order."""
    if len(groups) <= MOST_BARS:
        return groups

    def place(k: int) -> float:
        group = groups[k]
        change = group.winner_error - group.unweighted_error
        return group.mean_weight if weighted else 0.0 if math.isnan(change) else change

    order = sorted(range(len(groups)), key=place)
    half = MOST_BARS // 2
    return [groups[k] for k in sorted([*order[:half], *order[-half:]])]
