"""The page's pictures; each is markup, or nothing where there is nothing to see."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from moew._util.colours import viridis
from moew._util.margins import TWO_SIDED
from moew._util.numbers import count, ends, number, signed, with_margin
from moew.inspection import ColumnSlices, Group, Landscape, Slice, ThresholdCurve
from moew.report._record import (
    Front,
    Labels,
    MetricFacts,
    Number,
    Probabilities,
    Report,
    Strategy,
    Verdict,
    Weights,
)
from moew.report._svg import (
    LETTER,
    WIDTH,
    Picture,
    Scale,
    horizontal_axis,
    padded,
    room_for_ticks,
    shortened,
    vertical_axis,
)
from moew.report._words import selected_score
from moew.types import FloatArray

MOST_BARS = 24  # of classes; the table has the others
_LEFT, _RIGHT, _TOP = 56.0, WIDTH - 12, 24.0
_LONG_NAME = 27  # characters of a strategy's name
_ROW = 24.0  # height of a bar with its room
_LONGEST, _WIDE = 22, 164.0  # characters of a bar's name, and their room: the longest range of numbers fits
_FAR = 3.0  # candidates this many times as far behind the median as it is behind the best stand at the edge


class Interval(NamedTuple):
    """A dot with its interval, and hollow the score as it was chosen; None is not shown."""

    name: str
    value: Number
    margin: Number
    apparent: Number = None
    style: str = "c"
    hint: str = ""


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
    horizontal_axis(picture, scale, 50, 14, "gain, better →")
    picture.line(scale(0), 8, scale(0), 50, "zero")
    picture.line(scale(low), 30, scale(high), 30, "whisker a")
    picture.dot(scale(gain), 30, 7, "a", words)
    return str(picture)


def differences(strategies: Sequence[Strategy]) -> str:
    """How far each strategy's honest score is from that of the selected model, with its interval."""
    rows, told = [], []
    for one in strategies:
        shown = with_margin(one.difference, one.margin, sign=True)
        if one.difference is not None:
            told.append(f"{one.name} {shown}")
        hint, style = ("selected", "a") if one.selected else (f"{one.name}: {shown}", "c")
        margin = None if one.selected else one.margin
        rows.append(Interval(one.name, one.difference, margin, style=style, hint=hint))
    words = f"{'; '.join(told)}."
    return _dots("differences", "Difference to the selected model", words, rows, "better →", with_zero=True)


def intervals(name: str, title: str, rows: Sequence[Interval], metric: MetricFacts) -> str:
    """Scores by method. Intervals end at the metric's bounds, where it has any."""
    told = [(row.name, with_margin(row.value, row.margin)) for row in rows]
    words = f"{metric.name}: {'; '.join(f'{of} {shown}' for of, shown in told)}."
    hinted = [row._replace(hint=f"{of}: {shown}") for row, (of, shown) in zip(rows, told, strict=True)]
    axis = f"{metric.name}, better →" if metric.greater_is_better else f"← better, {metric.name}"
    return _dots(name, title, words, hinted, axis, metric.bounds)


def _dots(
    name: str,
    title: str,
    words: str,
    rows: Sequence[Interval],
    axis: str,
    bounds: Sequence[Number] | None = None,
    with_zero: bool = False,
) -> str:
    """A dot in each row with its interval, within the bounds."""
    least, most = bounds or (None, None)

    def ends_of(value: float, margin: Number) -> tuple[float, float]:
        low, high = value - (margin or 0), value + (margin or 0)
        return low if least is None else max(low, least), high if most is None else min(high, most)

    numbers = [end for row in rows if row.value is not None for end in ends_of(row.value, row.margin)]
    numbers += [row.apparent for row in rows if row.apparent is not None]
    if not numbers:
        return ""
    height = 26.0 if with_zero else 30.0
    bottom = 14 + height * len(rows)
    picture = Picture(name, title, words, bottom + 40)
    shown = shortened([row.name for row in rows], _LONG_NAME)
    longest = max(map(len, shown), default=0)
    left = 92.0 if longest <= 11 else min(16 + LETTER * longest, 205.0)
    scale = Scale(*padded([0.0, *numbers] if with_zero else numbers), left, _RIGHT)
    horizontal_axis(picture, scale, bottom, 8, axis, about=4 if with_zero else 5)
    if with_zero:
        picture.line(scale(0), 8, scale(0), bottom, "zero")
    for place, row in enumerate(rows):
        y = 9 + height / 2 + height * place
        picture.name_of(left - 8, y + 4, row.name, shown[place])
        if row.apparent is not None:
            hint = f"as chosen: {number(row.apparent)}"
            picture.dot(scale(row.apparent), y, 4.5, f"hollow {row.style}", hint)
        if row.value is None:
            continue
        if row.margin is not None:
            low, high = map(scale, ends_of(row.value, row.margin))
            picture.line(low, y, high, y, f"whisker {row.style}")
        picture.dot(scale(row.value), y, 6, row.style, row.hint)
    return str(picture)


def history(report: Report) -> str:
    """Every candidate, the best so far, the unweighted model and the honest score of the selected model."""
    search, greater_is_better = report.search, report.metric.greater_is_better
    values, numbers, best = search.values.tolist(), search.numbers.tolist(), search.best_so_far.tolist()
    unweighted, honest = report.scores[0].apparent, selected_score(report).honest
    also = [value for value in (unweighted, honest) if value is not None]
    words = f"{len(values)} candidates; the best score went from {number(best[0])} to {number(best[-1])}."
    picture = Picture("history", "The search over time", words, 306)
    up, left = _upwards(picture, [*_without_far_ones(values, greater_is_better), *also], greater_is_better)
    across = Scale(0, max([*numbers, *search.failed, 1]), left + 6, _RIGHT - 6)
    horizontal_axis(picture, across, 258, 30, "candidate", grid=False)
    for level, style in ((unweighted, "level b"), (honest, "level a")):
        if level is not None:
            picture.line(left, up(level), _RIGHT, up(level), style)
    for n, value in zip(numbers, values, strict=True):
        style = "dim" if up.low <= value <= up.high else "hollow dim"
        picture.dot(across(n), up(value), 2.6, style, f"candidate {n}: {number(value)}")
    for n in search.failed:
        picture.text(across(n), 256, "×", "tick", "middle")
    steps: list[tuple[float, float]] = []
    for n, value in zip(numbers, best, strict=True):
        if steps:
            steps.append((across(n), steps[-1][1]))
        steps.append((across(n), up(value)))
    picture.lines(steps, "trend a")
    won = values[numbers.index(search.winner)]
    picture.star(across(search.winner), up(won), 9, "winner", f"best: candidate {search.winner}")
    return str(picture)


def _upwards(picture: Picture, values: Sequence[float], greater_is_better: bool) -> tuple[Scale, float]:
    """A vertical axis of scores, with an arrow that points to the better ones; its scale, and where it is."""
    up = Scale(*padded(values), 254, 30)
    left = room_for_ticks(up)
    vertical_axis(picture, up, left, _RIGHT)
    picture.text(6, 14, "↑ better" if greater_is_better else "↓ better", "axis")
    return up, left


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
    low, high = min(values), max(values)

    def colour(value: float) -> str:
        share = 0.5 if high == low else (value - low) / (high - low)
        return viridis(share if greater_is_better else 1 - share)

    a, b = seen.names
    best = values[seen.winner]
    words = f"The best candidate scores {number(best)}."
    picture = Picture("landscape", f"Score over {a} and {b}", words, 354)
    across, up = Scale(-radius, radius, 52, 332), Scale(-radius, radius, 312, 32)
    centre = f'cx="{across(0):.1f}" cy="{up(0):.1f}" r="{across(radius) - across(0):.1f}"'
    picture.add(f'<clipPath id="ball"><circle {centre}/></clipPath>')
    picture.add('<g clip-path="url(#ball)" shape-rendering="crispEdges">')
    width = across(sides[1]) - across(sides[0])
    size = f'width="{width + 0.6:.1f}" height="{width + 0.6:.1f}"'  # a little larger: no lines show between
    for y, row in zip(sides, seen.mean, strict=True):
        for x, value in zip(sides, row, strict=True):
            place = f'x="{across(x) - width / 2:.1f}" y="{up(y) - width / 2:.1f}"'
            picture.add(f'<rect {place} {size} fill="{colour(value)}"/>')
    picture.add(f'</g><circle class="edge" {centre}/>')
    for n, (x, y), value in zip(seen.numbers, seen.alphas, values, strict=True):
        picture.dot(across(x), up(y), 3.4, "candidate", f"candidate {n}: {number(value)}", colour(value))
    x, y = seen.alphas[seen.winner]
    picture.star(across(x), up(y), 10, "winner on-colour", f"best: {number(best)}")
    vertical_axis(picture, up, 46, 332, grid=False)
    across_name, up_name = shortened([a, b], _LONG_NAME)
    horizontal_axis(picture, across, 316, 12, f"{across_name} →", grid=False)
    picture.text(6, 14, f"{up_name} ↑", "axis")
    _colour_bar(picture, colour, Scale(low, high, 312, 32))
    return str(picture)


def _colour_bar(picture: Picture, colour: Callable[[float], str], scale: Scale) -> None:
    for k in range(40):
        value = scale.low + (k + 0.5) / 40 * (scale.high - scale.low)
        y = scale(scale.low + (k + 1) / 40 * (scale.high - scale.low))
        picture.add(f'<rect x="348" y="{y:.1f}" width="12" height="7.6" fill="{colour(value)}"/>')
    for value, words in scale.ticks():
        picture.text(364, scale(value) + 4, words, "tick")


def _curve(seen: Landscape, greater_is_better: bool) -> str:
    (name,) = seen.names
    picture = Picture("landscape", f"Score over {name}", f"{len(seen.values)} candidates.", 306)
    up, left = _upwards(picture, [*seen.values, *seen.mean], greater_is_better)
    across = Scale(-seen.radius, seen.radius, left, _RIGHT)
    horizontal_axis(picture, across, 258, 30, f"{shortened([name], _LONG_NAME)[0]} →", grid=False)

    def line(heights: FloatArray) -> list[tuple[float, float]]:
        return [(across(x), up(y)) for x, y in zip(seen.sides, heights, strict=True)]

    half = TWO_SIDED * seen.deviation
    picture.area([*line(seen.mean - half), *reversed(line(seen.mean + half))], "band a")
    picture.lines(line(seen.mean), "trend a")
    for n, (x,), value in zip(seen.numbers, seen.alphas, seen.values, strict=True):
        picture.dot(across(x), up(value), 2.6, "dim", f"candidate {n}: {number(value)}")
    (x,) = seen.alphas[seen.winner]
    picture.star(across(x), up(seen.values[seen.winner]), 9, "winner", "best candidate")
    return str(picture)


def front(found: Front) -> str:
    """Every tried model by the second metric and the first, with their front."""
    across, up = found.metrics[1], found.metrics[0]
    known = [(m, m.values[1], m.values[0]) for m in found.models if not any(map(math.isnan, m.values[:2]))]
    if not known:
        return ""
    chosen, bounds = found.selected, dict(zip(found.bounded, found.bounds, strict=True))
    first, second = map(number, chosen.values[:2])
    words = f"{len(known)} models; selected is {up} {first} with {across} {second}."
    picture = Picture("front-picture", f"{up} against {across}", words, 320)
    x = Scale(*padded([*(right for _, right, _ in known), *_of(bounds, across)]), _LEFT, _RIGHT)
    y = Scale(*padded([*(high for _, _, high in known), *_of(bounds, up)]), 270, _TOP)
    upwards, rightwards = found.greater_is_better[:2]
    horizontal_axis(picture, x, 270, _TOP, f"{across}; better {'→' if rightwards else '←'}")
    vertical_axis(picture, y, _LEFT, _RIGHT)
    picture.text(_LEFT - 44, 12, f"{up}; better {'↑' if upwards else '↓'}", "axis")
    for bound in _of(bounds, across):
        picture.line(x(bound), _TOP, x(bound), 270, "level b")
    for bound in _of(bounds, up):
        picture.line(_LEFT, y(bound), _RIGHT, y(bound), "level b")
    signs = 1 if upwards else -1, 1 if rightwards else -1
    corners: list[Any] = []  # that no other beats by these two metrics
    for one in sorted(known, key=lambda one: (signs[1] * one[1], signs[0] * one[2]), reverse=True):
        if not corners or signs[0] * one[2] > signs[0] * corners[-1][2]:
            corners.append(one)
    for model, right, high in known:
        style = "a" if any(model is corner for corner, _, _ in corners) else "c faint"
        picture.dot(x(right), y(high), 3.5, style, f"{model.name}: {number(high)}, {number(right)}")
    if len(corners) > 1:
        picture.lines([(x(right), y(high)) for _, right, high in corners], "trend")
    for model, right, high in known:
        if model.selected:
            picture.star(x(right), y(high), 9, "winner", f"selected: {chosen.name}")
    return str(picture)


def _of(bounds: dict[str, float], metric: str) -> list[float]:
    """The bound of a metric, if it has one."""
    return [bounds[metric]] if metric in bounds else []


def threshold(one: ThresholdCurve, metric: str, place: int) -> str:
    """The metric over the threshold, with a star at the one that is selected."""
    known = [(t, v) for t, v in zip(one.thresholds, one.values, strict=True) if not math.isnan(v)]
    if len(known) < 2:
        return ""
    marked = not (math.isnan(one.chosen) or math.isnan(one.value))
    words = f"{metric} goes from {number(known[0][1])} to {number(known[-1][1])}"
    words += f"; at the threshold that is selected it is {number(one.value)}." if marked else "."
    picture = Picture(f"threshold-{place}", f"{metric} over the threshold, {one.rows}", words, 264)
    ts, values = zip(*known, strict=True)
    x = Scale(*padded([*ts, *([one.chosen] if marked else [])], 0.03), _LEFT, _RIGHT)
    y = Scale(*padded([*values, *([one.value] if marked else [])]), 214, _TOP)
    horizontal_axis(picture, x, 214, _TOP, f"threshold of the {one.of}; few rows selected →")
    vertical_axis(picture, y, _LEFT, _RIGHT)
    picture.text(_LEFT - 44, 12, metric, "axis")
    picture.lines([(x(t), y(v)) for t, v in known], "trend")
    if marked:
        picture.line(x(one.chosen), _TOP, x(one.chosen), 214, "zero")
        hint = f"selected: {number(one.value)} at {number(one.chosen)}"
        picture.star(x(one.chosen), y(one.value), 9, "winner", hint)
    return str(picture)


def reliability(found: Probabilities) -> str:
    """The share of rows of the class over the probability, before and after calibration."""
    both = ((found.before, "b", "the model's own"), (found.after, "a", "calibrated"))
    curves = [(curve, style, words) for curve, style, words in both if curve is not None]
    told = "; ".join(f"{words}: Brier score {number(curve.brier, 3)}" for curve, _, words in curves)
    picture = Picture("reliability", "Share of rows of the class by probability", f"{told}.", 400)
    x, y = Scale(0.0, 1.0, _LEFT, _RIGHT), Scale(0.0, 1.0, 350, _TOP + 14)
    horizontal_axis(picture, x, 350, _TOP + 14, "probability")
    vertical_axis(picture, y, _LEFT, _RIGHT)
    picture.text(_LEFT - 44, 12, "share of rows of the class", "axis")
    picture.line(x(0), y(0), x(1), y(1), "zero")
    most = max(one.n_rows for curve, _, _ in curves for one in curve.bins)
    for k, (curve, style, words) in enumerate(curves):
        points = [(x(one.predicted), y(one.observed)) for one in curve.bins]
        if len(points) > 1:
            picture.lines(points, f"whisker {style} faint")
        for one, point in zip(curve.bins, points, strict=True):
            hint = (
                f"{words}: {number(one.observed, 3)} of {one.n_rows:,} rows at a probability of "
                f"{number(one.predicted, 3)}"
            )
            picture.dot(*point, round(2.5 + 6 * math.sqrt(one.n_rows / most), 1), style, hint)
        picture.dot(_LEFT + 10 + 130 * k, 27, 5, style)
        picture.text(_LEFT + 20 + 130 * k, 31, words, "label")
    return str(picture)


def by_label(labels: Labels, weighted: bool = True) -> str:
    """Figure 3b: a bar of weight for each class, and beside it its error by the unweighted model and by what
    is selected; without bars where no weights are learned."""
    groups = _extremes(labels.groups, weighted)
    errors = [e for g in groups for e in (g.unweighted_error, g.winner_error) if not math.isnan(e)]
    bottom = 30 + _ROW * len(groups)
    kind = "class" if labels.is_classes else "target"
    what = "Mean weight" if weighted else "Error"
    shown = [
        number(g.mean_weight, 3)
        if weighted
        else f"{number(g.unweighted_error, 3)} → {number(g.winner_error, 3)}"
        for g in groups
    ]
    described = "; ".join(f"{g.name} {value}" for g, value in zip(groups, shown, strict=True))
    picture = Picture("by-label", f"{what} by {kind}", f"{what}s: {described}.", bottom + 40)
    end = 246.0 if errors else WIDTH - 14
    names = shortened([group.name for group in groups], _LONGEST)
    left = 92.0 if max(map(len, names)) <= 11 else _WIDE
    weight = Scale(0, max([*(g.mean_weight for g in groups), 1.0]) * 1.04, left, end)
    if weighted:
        picture.text(left, 14, "mean weight", "head")
        horizontal_axis(picture, weight, bottom, 22, "1 is the average row", about=3)
        picture.line(weight(1), 22, weight(1), bottom, "zero")
    start = 276.0 if weighted else left
    error = Scale(0, max(errors, default=1.0) * 1.06, start, WIDTH - 14)
    if errors:
        picture.text(start, 14, "validation error", "head")
        horizontal_axis(picture, error, bottom, 22, "← better", about=3)
    for place, group in enumerate(groups):
        y = 30 + _ROW * place
        picture.name_of(left - 6, y + 12, group.name, names[place])
        if weighted:
            picture.bar(left, y, weight(group.mean_weight) - left, 15, "a", _weight_hint(group))
        before, after = group.unweighted_error, group.winner_error
        if not (math.isnan(before) or math.isnan(after)):
            hint = f"{group.name}: error {number(before, 3)} before, {number(after, 3)} after"
            picture.line(error(before), y + 7.5, error(after), y + 7.5, "link")
            picture.diamond(error(before), y + 7.5, 5.5, "b", hint)
            picture.dot(error(after), y + 7.5, 4.5, "a", hint)
    return str(picture)


def by_slice(name: str, column: ColumnSlices, most: float) -> str:
    """Bars of the mean weight of a column's slices, on the scale that all columns share."""
    bottom = 10 + _ROW * len(column.slices)
    described = "; ".join(f"{part.name} {number(part.mean_weight, 3)}" for part in column.slices)
    title = f"Mean weight by {column.column}"
    picture = Picture(name, title, f"Mean weights: {described}.", bottom + 22)
    scale = Scale(0, most * 1.04, _WIDE, WIDTH - 46)
    for value, words in scale.ticks(4):
        picture.line(scale(value), 4, scale(value), bottom, "grid")
        picture.text(scale(value), bottom + 15, words, "tick", "middle")
    picture.line(scale(1), 4, scale(1), bottom, "zero")
    shown = shortened([part.name for part in column.slices], _LONGEST)
    for place, part in enumerate(column.slices):
        y = 8 + _ROW * place
        picture.name_of(_WIDE - 6, y + 12, part.name, shown[place])
        width = scale(part.mean_weight) - _WIDE
        style = "a" if part.mean_weight >= 1 else "a faint"
        picture.bar(_WIDE, y, width, 15, style, _weight_hint(part))
        picture.text(_WIDE + width + 5, y + 12, number(part.mean_weight, 3), "tick")
    return str(picture)


def _weight_hint(part: Group | Slice) -> str:
    return f"{part.name}: weight {number(part.mean_weight)}, {count(part.n_rows, 'row')}"


def histogram(weights: Weights) -> str:
    """How many rows have which weight."""
    edges, counts = weights.edges, weights.counts
    described = f"Weights go from {number(edges[0])} to {number(edges[-1])}."
    picture = Picture("histogram", "Distribution of the weights", described, 230)
    across = Scale(min(edges[0], 0.0), padded([edges[0], edges[-1], 1.0], 0.02)[1], 50, _RIGHT)
    up = Scale(0, max(counts) * 1.05, 178, 12)
    vertical_axis(picture, up, 46, _RIGHT, about=4)
    horizontal_axis(picture, across, 182, 12, "weight of a training row", grid=False)
    for low, high, n in zip(edges, edges[1:], counts, strict=False):
        left, right = across(low), across(high)
        hint = f"{number(low, 3)} to {number(high, 3)}: {count(n, 'row')}"
        picture.bar(left, up(n), max(right - left - 1, 0.8), 178 - up(n), "a", hint)
    picture.line(across(1), 12, across(1), 178, "zero")
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
