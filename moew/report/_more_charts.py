"""Pictures of several metrics, of the threshold and of probabilities."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from moew._util.numbers import number
from moew.report._svg import WIDTH, Picture, Scale, horizontal_axis, padded, vertical_axis

Data = Mapping[str, Any]
_LEFT, _RIGHT, _TOP = 56.0, WIDTH - 12, 24.0


def front(found: Data) -> str:
    """Every tried model by the second metric and the first, with their front."""
    across, up = found["metrics"][1], found["metrics"][0]
    known = [m for m in found["models"] if m["values"][0] is not None and m["values"][1] is not None]
    if not known:
        return ""
    chosen = next(m for m in found["models"] if m["handed_out"])
    words = f"{len(known)} models; handed out is {up} {number(chosen['values'][0])} with {across} " + number(
        chosen["values"][1]
    )
    picture = Picture("front-picture", f"{up} against {across}", f"{words}.", 320)
    xs, ys = [m["values"][1] for m in known], [m["values"][0] for m in known]
    bounds = dict(zip(found["bounded"], found["bounds"], strict=True))
    x = Scale(*padded([*xs, *([bounds[across]] if across in bounds else [])]), _LEFT, _RIGHT)
    y = Scale(*padded([*ys, *([bounds[up]] if up in bounds else [])]), 270, _TOP)
    better = ["→" if up_ else "←" for up_ in found["greater_is_better"][:2]]
    horizontal_axis(picture, x, 270, _TOP, f"{across}; better {better[1]}")
    vertical_axis(picture, y, _LEFT, _RIGHT)
    picture.text(_LEFT - 44, 12, f"{up}; better {'↑' if found['greater_is_better'][0] else '↓'}", "axis")
    if across in bounds:
        picture.line(x(bounds[across]), _TOP, x(bounds[across]), 270, "level b")
    if up in bounds:
        picture.line(_LEFT, y(bounds[up]), _RIGHT, y(bounds[up]), "level b")
    corners = _undominated(known, found["greater_is_better"])
    for model in known:
        style = "a" if model in corners else "c faint"
        hint = f"{model['name']}: {number(model['values'][0])}, {number(model['values'][1])}"
        picture.dot(x(model["values"][1]), y(model["values"][0]), 3.5, style, hint)
    if len(corners) > 1:
        picture.lines([(x(m["values"][1]), y(m["values"][0])) for m in corners], "trend")
    if chosen in known:
        place = x(chosen["values"][1]), y(chosen["values"][0])
        picture.star(*place, 9, "winner", f"handed out: {chosen['name']}")
    return str(picture)


def _undominated(known: list[Any], greater: Any) -> list[Any]:
    """The models that no other beats by the first two metrics, by the second."""
    signs = [1 if up else -1 for up in greater[:2]]

    def worth(model: Any) -> tuple[float, float]:
        return signs[1] * model["values"][1], signs[0] * model["values"][0]

    best, found = -math.inf, []
    for model in sorted(known, key=worth, reverse=True):  # the best by the second metric first
        if worth(model)[1] > best:
            best = worth(model)[1]
            found.append(model)
    return found


def threshold(one: Data, metric: str, place: int) -> str:
    """The metric over the threshold, with a star at the one that is handed out."""
    known = [(t, v) for t, v in zip(one["thresholds"], one["values"], strict=True) if v is not None]
    if len(known) < 2:
        return ""
    marked = one["chosen"] is not None and one["value"] is not None
    words = f"{metric} goes from {number(known[0][1])} to {number(known[-1][1])}"
    words += f"; at the threshold that is handed out it is {number(one['value'])}." if marked else "."
    picture = Picture(f"threshold-{place}", f"{metric} over the threshold, {one['rows']}", words, 264)
    ts, values = zip(*known, strict=True)
    x = Scale(*padded([*ts, *([one["chosen"]] if marked else [])], 0.03), _LEFT, _RIGHT)
    y = Scale(*padded([*values, *([one["value"]] if marked else [])]), 214, _TOP)
    horizontal_axis(picture, x, 214, _TOP, f"threshold of the {one['of']}; few rows selected →")
    vertical_axis(picture, y, _LEFT, _RIGHT)
    picture.text(_LEFT - 44, 12, metric, "axis")
    picture.lines([(x(t), y(v)) for t, v in known], "trend")
    if marked:
        picture.line(x(one["chosen"]), _TOP, x(one["chosen"]), 214, "zero")
        hint = f"handed out: {number(one['value'])} at {number(one['chosen'])}"
        picture.star(x(one["chosen"]), y(one["value"]), 9, "winner", hint)
    return str(picture)


def reliability(found: Data) -> str:
    """The share of rows of the class over the probability, before and after calibration."""
    curves = [
        (found[name], style, words)
        for name, style, words in (("before", "b", "the model's own"), ("after", "a", "calibrated"))
        if found[name] is not None
    ]
    told = "; ".join(f"{words}: Brier score {number(curve['brier'], 3)}" for curve, _, words in curves)
    picture = Picture("reliability", "Share of rows of the class by probability", f"{told}.", 400)
    x, y = Scale(0.0, 1.0, _LEFT, _RIGHT), Scale(0.0, 1.0, 350, _TOP + 14)
    horizontal_axis(picture, x, 350, _TOP + 14, "probability")
    vertical_axis(picture, y, _LEFT, _RIGHT)
    picture.text(_LEFT - 44, 12, "share of rows of the class", "axis")
    picture.line(x(0), y(0), x(1), y(1), "zero")
    most = max(one["n_rows"] for curve, _, _ in curves for one in curve["bins"])
    for k, (curve, style, words) in enumerate(curves):
        points = [(x(one["predicted"]), y(one["observed"])) for one in curve["bins"]]
        if len(points) > 1:
            picture.lines(points, f"whisker {style} faint")
        for one, point in zip(curve["bins"], points, strict=True):
            hint = (
                f"{words}: {number(one['observed'], 3)} of {one['n_rows']:,} rows at a probability of "
                f"{number(one['predicted'], 3)}"
            )
            picture.dot(*point, round(2.5 + 6 * math.sqrt(one["n_rows"] / most), 1), style, hint)
        picture.dot(_LEFT + 10 + 130 * k, 27, 5, style)
        picture.text(_LEFT + 20 + 130 * k, 31, words, "label")
    return str(picture)
