"""Sections about several metrics, the threshold and the probabilities."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import Any

from moew._util.numbers import count, number
from moew.report import _more_charts as charts
from moew.report._html import figure, section
from moew.report._tables import table
from moew.search._ways import CONSTANT

Data = Mapping[str, Any]
_MOST_ROWS = 30  # of the table of the front
_FAR = 0.05  # a Brier score that calibration lowers by this share was worth calibrating


def front(data: Data) -> str:
    """All tried models by all metrics: the front, and what is handed out."""
    found = data.get("pareto")
    if not found:
        return ""
    models, names = found["models"], found["metrics"]
    sign = 1 if found["greater_is_better"][0] else -1
    on_front = [m for m in models if m["on_front"] or m["handed_out"]]
    on_front.sort(key=lambda m: -sign * (m["values"][0] if m["values"][0] is not None else -sign * math.inf))
    shown = [m for k, m in enumerate(on_front) if k < _MOST_ROWS or m["handed_out"]]
    rows = [[f"✓ {m['name']}" if m["handed_out"] else m["name"], *m["values"]] for m in shown]
    better = [
        f"{name}, {'higher' if up else 'lower'} is better"
        for name, up in zip(names, found["greater_is_better"], strict=True)
    ]
    n_front = sum(m["on_front"] for m in models)
    caption = f"{n_front} of {count(found['n_models'], 'model')} that no other beats by all metrics"
    marked = [k for k, m in enumerate(shown) if m["handed_out"]]
    listed = table("front-table", caption, ["model", *better], rows, marked)
    chosen = next(m for m in models if m["handed_out"])
    words = [
        "The first metric is the one that was optimised. Candidates are judged by the models of the search's "
        "folds, what the ways chose by those of more folds."
    ]
    for text, name, limit in zip(found["constraints"], found["bounded"], chosen["limits"], strict=True):
        how = "is kept" if chosen["keeps"] else "is not kept for certain"
        words.append(
            f"The bound {text} {how}: with its margin, from resamples of the judged rows, {name} is "
            f"{number(limit)}."
        )
    drawn = figure(
        charts.front(found),
        f"Every tried model by {names[1]} and {names[0]}. The line is the front of these two; the star is "
        "handed out." + (" Dashed: the bound." if found["constraints"] else ""),
    )
    body = "".join(f'<p class="small">{escape(line)}</p>' for line in words)
    return section("front", "All metrics", f'<div class="beside">{drawn}<div>{listed}{body}</div></div>')


def thresholds(data: Data) -> str:
    """The metric over the threshold."""
    found = data.get("threshold_curve")
    if not found:
        return ""
    metric = data["metric"]
    better = "higher" if metric["greater_is_better"] else "lower"
    drawn = "".join(
        figure(
            charts.threshold(one, metric["name"], place),
            f"{metric['name']} on {one['n_rows']:,} {one['rows']}; {better} is better. "
            + _where_it_is(one, found["positive"]),
        )
        for place, one in enumerate(found["curves"])
    )
    words = (
        "A flat curve around the star means that the exact threshold hardly counts, a sharp peak that it "
        "does, and that it may lie elsewhere on other rows."
    )
    return section(
        "thresholds",
        "The metric over the threshold",
        f'<div class="beside">{drawn}</div><p class="small">{escape(words)}</p>',
    )


def _where_it_is(one: Data, positive: str) -> str:
    if one["chosen"] is None:  # ±∞, which JSON has not
        return "What is handed out decides the same for every row."
    return (
        f"What is handed out decides “{positive}” above {number(one['chosen'])}, which are "
        f"{100 * one['share']:.3g} % of these rows."
    )


def probabilities(data: Data) -> str:
    """The reliability of the probabilities, before and after calibration."""
    found = data.get("reliability")
    if not found or data["chosen"]["name"] == CONSTANT:
        return ""
    curves = {name: found[name] for name in ("before", "after") if found[name] is not None}
    of = "each class against the rest" if found["label"] is None else f"“{found['label']}”"
    drawn = figure(
        charts.reliability(found),
        f"How often a row is of the class where its probability is given, on {found['n_rows']:,} "
        f"{found['rows']}. On the dotted line it is as often as it is said. Larger points have more rows.",
    )
    heads = ["probability", *(_HEADS[name] for name in curves), *(f"rows, {_SHORT[name]}" for name in curves)]
    edges = sorted({(one["low"], one["high"]) for curve in curves.values() for one in curve["bins"]})
    rows = []
    for low, high in edges:
        bins = [next((one for one in curve["bins"] if one["low"] == low), None) for curve in curves.values()]
        rows.append(
            [
                (low, f"{low:.1f} to {high:.1f}"),
                *(None if one is None else (one["observed"], f"{one['observed']:.3f}") for one in bins),
                *(0 if one is None else one["n_rows"] for one in bins),
            ]
        )
    listed = table("reliability-table", f"Share of rows that are of {of}, by probability", heads, rows)
    lines = "".join(f"<p>{escape(line)}</p>" for line in _told(found, data["weights"]["learned"]))
    body = f'{lines}<div class="beside">{drawn}<div>{listed}</div></div>'
    return section("probabilities", "Probabilities", body)


_HEADS = {"before": "own", "after": "calibrated"}
_SHORT = {"before": "own", "after": "calibrated"}


def _told(found: Data, weighted: bool) -> list[str]:
    before, after = found["before"], found["after"]
    lines = [
        "A model that was trained with weights gives probabilities of the weighted rows. Decisions are not "
        "concerned: they are judged by the metric as they are."
    ]
    lines = lines if weighted else []
    if after is None:
        lines.append(
            f"The mean squared error of the probabilities (Brier score) is {number(before['brier'], 3)}. If "
            'you use them as numbers and the points are far from the line, fit with calibrate="sigmoid" '
            "(--calibrate sigmoid)."
        )
    elif before is None:
        lines.append(
            "The model has scores and no probabilities of its own; calibrated ones have a Brier score of "
            f"{number(after['brier'], 3)}."
        )
    else:
        change = (before["brier"] - after["brier"]) / before["brier"] if before["brier"] else 0.0
        verdict = "lowers" if change > _FAR else "hardly changes" if change > -_FAR else "raises"
        lines.append(
            f"Calibration ({found['method']}) {verdict} the mean squared error of the probabilities (Brier "
            f"score): {number(before['brier'], 3)} before, {number(after['brier'], 3)} after."
        )
    return lines
