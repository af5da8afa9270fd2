"""The page's pictures of weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moew._util.numbers import count, number
from moew.report._svg import WIDTH, Picture, Scale, horizontal_axis, padded, shortened, vertical_axis

Data = Mapping[str, Any]
MOST_BARS = 24  # of classes; the table has the others
_ROW = 24.0
_LONGEST, _WIDE = 22, 164.0  # characters of a name, and their room: the longest range of numbers fits


def by_label(labels: Data, weighted: bool = True) -> str:
    """Figure 3b: a bar of weight for each class, and beside it its error by the unweighted model and by what
    is handed out; without bars where no weights are learned."""
    groups = _extremes(labels["groups"], weighted)
    errors = [e for g in groups for e in (g["unweighted_error"], g["winner_error"]) if e is not None]
    bottom = 30 + _ROW * len(groups)
    kind = "class" if labels["is_classes"] else "target"
    if weighted:
        described = "; ".join(f"{g['name']} {number(g['mean_weight'], 3)}" for g in groups)
        picture = Picture("by-label", f"Mean weight by {kind}", f"Mean weights: {described}.", bottom + 40)
    else:
        described = "; ".join(
            f"{g['name']} {number(g['unweighted_error'], 3)} → {number(g['winner_error'], 3)}" for g in groups
        )
        picture = Picture("by-label", f"Error by {kind}", f"Errors: {described}.", bottom + 40)
    end = 246.0 if errors else WIDTH - 14
    shown = shortened([group["name"] for group in groups], _LONGEST)
    left = 92.0 if max(map(len, shown)) <= 11 else _WIDE
    weight = Scale(0, max([*(g["mean_weight"] for g in groups), 1.0]) * 1.04, left, end)
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
        picture.name_of(left - 6, y + 12, group["name"], shown[place])
        if weighted:
            hint = f"{group['name']}: weight {number(group['mean_weight'])}, {count(group['n_rows'], 'row')}"
            picture.bar(left, y, weight(group["mean_weight"]) - left, 15, "a", hint)
        before, after = group["unweighted_error"], group["winner_error"]
        if before is not None and after is not None:
            hint = f"{group['name']}: error {number(before, 3)} before, {number(after, 3)} after"
            picture.line(error(before), y + 7.5, error(after), y + 7.5, "link")
            picture.diamond(error(before), y + 7.5, 5.5, "b", hint)
            picture.dot(error(after), y + 7.5, 4.5, "a", hint)
    return str(picture)


def by_slice(name: str, column: Data, most: float) -> str:
    """Bars of the mean weight of a column's slices, on the scale that all columns share."""
    slices = column["slices"]
    bottom = 10 + _ROW * len(slices)
    described = "; ".join(f"{s['name']} {number(s['mean_weight'], 3)}" for s in slices)
    title = f"Mean weight by {column['column']}"
    picture = Picture(name, title, f"Mean weights: {described}.", bottom + 22)
    scale = Scale(0, most * 1.04, _WIDE, WIDTH - 46)
    for value, words in scale.ticks(4):
        picture.line(scale(value), 4, scale(value), bottom, "grid")
        picture.text(scale(value), bottom + 15, words, "tick", "middle")
    picture.line(scale(1), 4, scale(1), bottom, "zero")
    shown = shortened([part["name"] for part in slices], _LONGEST)
    for place, part in enumerate(slices):
        y = 8 + _ROW * place
        picture.name_of(_WIDE - 6, y + 12, part["name"], shown[place])
        hint = f"{part['name']}: weight {number(part['mean_weight'])}, {count(part['n_rows'], 'row')}"
        width = scale(part["mean_weight"]) - _WIDE
        picture.bar(_WIDE, y, width, 15, "a" if part["mean_weight"] >= 1 else "a faint", hint)
        picture.text(_WIDE + width + 5, y + 12, number(part["mean_weight"], 3), "tick")
    return str(picture)


def histogram(weights: Data) -> str:
    """How many rows have which weight."""
    edges, counts = weights["edges"], weights["counts"]
    described = f"Weights go from {number(edges[0])} to {number(edges[-1])}."
    picture = Picture("histogram", "Distribution of the weights", described, 230)
    across = Scale(min(edges[0], 0.0), padded([edges[0], edges[-1], 1.0], 0.02)[1], 50, WIDTH - 12)
    up = Scale(0, max(counts) * 1.05, 178, 12)
    vertical_axis(picture, up, 46, WIDTH - 12, about=4)
    horizontal_axis(picture, across, 182, 12, "weight of a training row", grid=False)
    for k, n in enumerate(counts):
        left, right = across(edges[k]), across(edges[k + 1])
        hint = f"{number(edges[k], 3)} to {number(edges[k + 1], 3)}: {count(n, 'row')}"
        picture.bar(left, up(n), max(right - left - 1, 0.8), 178 - up(n), "a", hint)
    picture.line(across(1), 12, across(1), 178, "zero")
    return str(picture)


def _extremes(groups: Sequence[Data], weighted: bool) -> list[Data]:
    """All groups, or those of most and least weight, or change of error, in their order."""
    if len(groups) <= MOST_BARS:
        return list(groups)

    def place(k: int) -> float:
        group = groups[k]
        if weighted:
            return float(group["mean_weight"])
        return float((group["winner_error"] or 0.0) - (group["unweighted_error"] or 0.0))

    order = sorted(range(len(groups)), key=place)
    half = MOST_BARS // 2
    return [groups[k] for k in sorted([*order[:half], *order[-half:]])]
