"""The page's pictures of scores and of the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moew._util.colours import viridis
from moew._util.margins import TWO_SIDED
from moew._util.numbers import number, signed, with_margin
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
from moew.report._ways import handed_out_score

Data = Mapping[str, Any]
Bounds = Sequence[float | None] | None  # lowest and highest value; None: no bound
_RIGHT = WIDTH - 12
_LONG_NAME = 27  # characters of a way's name
_FAR = 3.0  # candidates this many times as far behind the median as it is behind the best stand at the edge


def gain_interval(verdict: Data) -> str:
    """The gain and its 95 % interval, with zero in sight."""
    gain, low, high = verdict["gain"], verdict["low"], verdict["high"]
    if gain is None or low is None or high is None or low == high == 0:
        return ""
    shown = [signed(value, error=(high - low) / 2) for value in (gain, low, high)]
    words = f"The gain is {shown[0]}, its 95 % interval goes from {shown[1]} to {shown[2]}."
    picture = Picture("gain", "Gain over the unweighted model", words, 92)
    scale = Scale(*padded([0.0, low, high], 0.12), 16, WIDTH - 16)
    horizontal_axis(picture, scale, 50, 14, "gain, better →")
    picture.line(scale(0), 8, scale(0), 50, "zero")
    picture.line(scale(low), 30, scale(high), 30, "whisker a")
    picture.dot(scale(gain), 30, 7, "a", words)
    return str(picture)


def differences(ways: Sequence[Data]) -> str:
    """How far each way's honest score is from that of what is handed out, with its interval."""
    known = [way for way in ways if way["difference"] is not None]
    if not known:
        return ""
    ends = [way["difference"] + side * (way["margin"] or 0) for way in known for side in (-1, 1)]
    bottom = 14 + 26.0 * len(ways)
    described = "; ".join(
        f"{way['name']} {with_margin(way['difference'], way['margin'], sign=True)}" for way in known
    )
    picture = Picture("differences", "Difference to what is handed out", f"{described}.", bottom + 40)
    shown = shortened([way["name"] for way in ways], _LONG_NAME)
    left = _room(shown)
    scale = Scale(*padded([0.0, *ends]), left, _RIGHT)
    horizontal_axis(picture, scale, bottom, 8, "better →", about=4)
    picture.line(scale(0), 8, scale(0), bottom, "zero")
    for place, way in enumerate(ways):
        y = 22 + 26.0 * place
        picture.name_of(left - 8, y + 4, way["name"], shown[place])
        if way["difference"] is None:
            continue
        style = "a" if way["handed_out"] else "c"
        if way["margin"] is not None and not way["handed_out"]:
            low, high = (scale(way["difference"] + side * way["margin"]) for side in (-1, 1))
            picture.line(low, y, high, y, f"whisker {style}")
        hint = f"{way['name']}: {with_margin(way['difference'], way['margin'], sign=True)}"
        picture.dot(scale(way["difference"]), y, 6, style, "handed out" if way["handed_out"] else hint)
    return str(picture)


def _room(shown: Sequence[str]) -> float:
    """Where a picture begins beside these names."""
    longest = max(map(len, shown), default=0)
    return 92.0 if longest <= 11 else min(16 + LETTER * longest, 205.0)


def better_arrow(words: str, greater_is_better: bool) -> str:
    """The title of a horizontal axis of scores, with an arrow that points to the better ones."""
    return f"{words}, better →" if greater_is_better else f"← better, {words}"


def intervals(
    name: str,
    title: str,
    metric: str,
    rows: Sequence[Data],
    bounds: Bounds = None,
    greater_is_better: bool = True,
) -> str:
    """Scores by method: a dot with its interval, and hollow the score as it was chosen.

    rows: name, value, margin (None: no interval), best (None: not shown) and style. Intervals end at the
    metric's bounds, where it has any.
    """
    least, most = bounds or (None, None)

    def ends_of(row: Data) -> tuple[float, float]:
        low, high = (row["value"] + way * (row["margin"] or 0) for way in (-1, 1))
        return low if least is None else max(low, least), high if most is None else min(high, most)

    numbers = [end for row in rows if row["value"] is not None for end in ends_of(row)]
    numbers += [row["best"] for row in rows if row["best"] is not None]
    if not numbers:
        return ""
    bottom = 14 + 30.0 * len(rows)
    told = "; ".join(f"{row['name']} {with_margin(row['value'], row['margin'])}" for row in rows)
    picture = Picture(name, title, f"{metric}: {told}.", bottom + 40)
    shown = shortened([row["name"] for row in rows], _LONG_NAME)
    left = _room(shown)
    scale = Scale(*padded(numbers), left, _RIGHT)
    horizontal_axis(picture, scale, bottom, 8, better_arrow(metric, greater_is_better))
    for place, row in enumerate(rows):
        y, style = 24 + 30.0 * place, row["style"]
        picture.name_of(left - 8, y + 4, row["name"], shown[place])
        if row["best"] is not None:
            picture.dot(scale(row["best"]), y, 4.5, f"hollow {style}", f"as chosen: {number(row['best'])}")
        if row["value"] is None:
            continue
        if row["margin"] is not None:
            low, high = map(scale, ends_of(row))
            picture.line(low, y, high, y, f"whisker {style}")
        hint = f"{row['name']}: {with_margin(row['value'], row['margin'])}"
        picture.dot(scale(row["value"]), y, 6, style, hint)
    return str(picture)


def history(data: Data) -> str:
    """Every candidate, the best so far, the unweighted model and the honest score of what is handed out."""
    search, metric = data["search"], data["metric"]
    values, numbers = search["values"], search["numbers"]
    unweighted, honest = data["scores"][0]["best"], handed_out_score(data)["honest"]
    shown = _without_far_ones(values, metric["greater_is_better"])
    also = [value for value in (unweighted, honest) if value is not None]
    picture = Picture(
        "history",
        "The search over time",
        f"{len(values)} candidates; the best score went from {number(search['best_so_far'][0])} to "
        f"{number(search['best_so_far'][-1])}.",
        306,
    )
    up = Scale(*padded([*shown, *also]), 254, 30)
    left = room_for_ticks(up)
    across = Scale(0, max([*numbers, *search["failed"], 1]), left + 6, _RIGHT - 6)
    vertical_axis(picture, up, left, _RIGHT)
    _better_upwards(picture, metric["greater_is_better"])
    horizontal_axis(picture, across, 258, 30, "candidate", grid=False)
    for level, style in ((unweighted, "level b"), (honest, "level a")):
        if level is not None:
            picture.line(left, up(level), _RIGHT, up(level), style)
    for n, value in zip(numbers, values, strict=True):
        outside = not up.low <= value <= up.high
        hint = f"candidate {n}: {number(value)}"
        picture.dot(across(n), up(value), 2.6, "hollow dim" if outside else "dim", hint)
    for n in search["failed"]:
        picture.text(across(n), 256, "×", "tick", "middle")
    steps: list[tuple[float, float]] = []
    for n, value in zip(numbers, search["best_so_far"], strict=True):
        if steps:
            steps.append((across(n), steps[-1][1]))
        steps.append((across(n), up(value)))
    picture.lines(steps, "trend a")
    won = numbers.index(search["winner"])
    picture.star(across(numbers[won]), up(values[won]), 9, "winner", f"best: candidate {numbers[won]}")
    return str(picture)


def _better_upwards(picture: Picture, greater_is_better: bool) -> None:
    """An arrow on a vertical axis of scores that points to the better ones."""
    picture.text(6, 14, "↑ better" if greater_is_better else "↓ better", "axis")


def landscape(data: Data) -> str:
    """The GP's mean over one or two dimensions of alpha, with the candidates."""
    seen = data["landscape"]
    return "" if seen is None else _curve(data) if len(seen["dims"]) == 1 else _surface(data)


def _surface(data: Data) -> str:
    seen, up_is_good = data["landscape"], data["metric"]["greater_is_better"]
    values, sides, radius = seen["values"], seen["sides"], seen["radius"]
    low, high = min(values), max(values)

    def colour(value: float) -> str:
        share = 0.5 if high == low else (value - low) / (high - low)
        return viridis(share if up_is_good else 1 - share)

    a, b = seen["names"]
    best = values[seen["winner"]]
    picture = Picture(
        "landscape", f"Score over {a} and {b}", f"The best candidate scores {number(best)}.", 354
    )
    across, up = Scale(-radius, radius, 52, 332), Scale(-radius, radius, 312, 32)
    centre = f'cx="{across(0):.1f}" cy="{up(0):.1f}" r="{across(radius) - across(0):.1f}"'
    picture.add(f'<clipPath id="ball"><circle {centre}/></clipPath>')
    picture.add('<g clip-path="url(#ball)" shape-rendering="crispEdges">')
    width = across(sides[1]) - across(sides[0])
    for y, row in zip(sides, seen["mean"], strict=True):
        for x, value in zip(sides, row, strict=True):
            # A little larger than the grid, so that no lines show between.
            place = f'x="{across(x) - width / 2:.1f}" y="{up(y) - width / 2:.1f}"'
            picture.add(
                f'<rect {place} width="{width + 0.6:.1f}" height="{width + 0.6:.1f}" fill="{colour(value)}"/>'
            )
    picture.add(f'</g><circle class="edge" {centre}/>')
    for n, (x, y), value in zip(seen["numbers"], seen["alphas"], values, strict=True):
        picture.dot(across(x), up(y), 3.4, "candidate", f"candidate {n}: {number(value)}", colour(value))
    x, y = seen["alphas"][seen["winner"]]
    picture.star(across(x), up(y), 10, "winner on-colour", f"best: {number(best)}")
    vertical_axis(picture, up, 46, 332, grid=False)
    (across_name, up_name) = shortened([a, b], _LONG_NAME)
    horizontal_axis(picture, across, 316, 12, f"{across_name} →", grid=False)
    picture.text(6, 14, f"{up_name} ↑", "axis")
    _colour_bar(picture, colour, low, high)
    return str(picture)


def _colour_bar(picture: Picture, colour: Any, low: float, high: float) -> None:
    scale = Scale(low, high, 312, 32)
    for k in range(40):
        value = scale.low + (k + 0.5) / 40 * (scale.high - scale.low)
        y = scale(scale.low + (k + 1) / 40 * (scale.high - scale.low))
        picture.add(f'<rect x="348" y="{y:.1f}" width="12" height="7.6" fill="{colour(value)}"/>')
    for value, words in scale.ticks():
        picture.text(364, scale(value) + 4, words, "tick")


def _curve(data: Data) -> str:
    seen = data["landscape"]
    (name,) = seen["names"]
    picture = Picture("landscape", f"Score over {name}", f"{len(seen['values'])} candidates.", 306)
    bands = [
        [
            (x, m + way * TWO_SIDED * s)
            for x, m, s in zip(seen["sides"], seen["mean"], seen["deviation"], strict=True)
        ]
        for way in (-1, 1)
    ]
    up = Scale(*padded([*seen["values"], *(m for m in seen["mean"])]), 254, 30)
    left = room_for_ticks(up)
    across = Scale(-seen["radius"], seen["radius"], left, _RIGHT)
    vertical_axis(picture, up, left, _RIGHT)
    _better_upwards(picture, data["metric"]["greater_is_better"])
    horizontal_axis(picture, across, 258, 30, f"{shortened([name], _LONG_NAME)[0]} →", grid=False)
    around = [*bands[0], *reversed(bands[1])]
    picture.area([(across(x), up(y)) for x, y in around], "band a")
    picture.lines([(across(x), up(y)) for x, y in zip(seen["sides"], seen["mean"], strict=True)], "trend a")
    for n, (x,), value in zip(seen["numbers"], seen["alphas"], seen["values"], strict=True):
        picture.dot(across(x), up(value), 2.6, "dim", f"candidate {n}: {number(value)}")
    (x,) = seen["alphas"][seen["winner"]]
    picture.star(across(x), up(seen["values"][seen["winner"]]), 9, "winner", "best candidate")
    return str(picture)


def _without_far_ones(values: Sequence[float], greater_is_better: bool) -> list[float]:
    """The values that set the scale, without a few far worse ones that would flatten all others."""
    ordered = sorted(values, reverse=greater_is_better)  # best first
    median = ordered[len(ordered) // 2]
    farthest = abs(median - ordered[0]) * (1 + _FAR)
    return [value for value in ordered if abs(value - ordered[0]) <= farthest] if farthest > 0 else ordered
