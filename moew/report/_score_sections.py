"""What was found: the verdict, all ways, the scores, the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from moew._util.margins import TWO_SIDED
from moew._util.numbers import alike, count
from moew.report import _charts as charts
from moew.report._html import figure, section
from moew.report._repeats import method_name, over_repeats, remarks
from moew.report._tables import score_cells, table
from moew.report._ways import about_marks, handed_out, handed_out_score, marked_name
from moew.report._words import (
    MARKS,
    QUESTION,
    advice,
    before_and_after,
    from_what,
    headline,
    how_much,
    how_sure,
    why,
)

Data = Mapping[str, Any]


def verdict(data: Data) -> str:
    """The verdict, at the top of the page."""
    kind = data["verdict"]["kind"]
    told = _paragraphs(how_much(data), how_sure(data), why(data))
    beside = _paragraphs(over_repeats(data), *remarks(data))
    return (
        f'<section id="verdict" class="verdict {kind}"><p class="question">{QUESTION}</p>'
        f'<h1><span class="mark" aria-hidden="true">{MARKS[kind]}</span>{escape(headline(data))}</h1>'
        f'<div class="beside"><div>{told}<p class="advice">{escape(advice(data))}</p>'
        f'<p class="small">{escape(from_what(data))}</p></div>'
        f"<div>{_before_and_after(data)}{figure(charts.gain_interval(data['verdict']))}{beside}</div></div>"
        "</section>"
    )


def _paragraphs(*lines: str) -> str:
    return "".join(f"<p>{escape(line)}</p>" for line in lines if line)


def _before_and_after(data: Data) -> str:
    before, after = data["verdict"]["before"], data["verdict"]["after"]
    if before is None or after is None or data["verdict"]["kind"] == "none":
        return ""
    without, learned = before_and_after(data)
    return (
        f'<p class="figures"><span><b>{without}</b><br>unweighted</span><span aria-hidden="true">→</span>'
        f'<span class="with"><b>{learned}</b><br>{escape(data["chosen"]["name"])}</span></p>'
    )


def ways(data: Data) -> str:
    """All ways to the metric, and how far each is from what is handed out."""
    listed = data["ways"]
    if not listed:
        return ""
    better = "higher" if data["metric"]["greater_is_better"] else "lower"
    cells = score_cells([(way["best"], way["honest"]) for way in listed], [way["margin"] for way in listed])
    rows = [
        [f"✓ {way['name']}" if way["handed_out"] else marked_name(way), *scores, difference]
        for way, scores, difference in zip(listed, cells, _differences(listed), strict=True)
    ]
    heads = ["way", "best", "honest", "difference ±\u00a095\u00a0%"]
    caption = f"{data['metric']['name']} of all ways on {data['metric']['judged']}; {better} is better"
    marked = [k for k, way in enumerate(listed) if way["handed_out"]]
    shown = table("ways-table", caption, heads, rows, marked)
    drawn = figure(
        charts.differences(listed),
        "Each way's honest score against that of what is handed out, with its 95 % interval. Right of zero "
        "is better.",
    )
    words = (
        "Best is the score as it was chosen, honest the same without the luck of that choice. Differences "
        "are of honest scores; they are positive where a way is better than what is handed out. "
    )
    words += _members(data) + _corrected(data) + about_marks(listed)
    body = f'<div class="beside">{drawn}<div>{shown}<p class="small">{escape(words.strip())}</p></div></div>'
    return section("ways", "All ways to the metric", body)


def _differences(listed: Sequence[Data]) -> list[Any]:
    """Each way's difference and margin as one cell, sorted by the difference."""
    numbers = [way["difference"] for way in listed] + [way["margin"] for way in listed]
    words = alike(numbers, 3, errors=[way["margin"] for way in listed])
    cells: list[Any] = []
    for k, way in enumerate(listed):
        if way["handed_out"]:
            cells.append((0.0, "handed out"))
        elif way["difference"] is None:
            cells.append(None)
        else:
            sign = "+" if way["difference"] > 0 else ""
            cells.append((way["difference"], f"{sign}{words[k]} ± {words[len(listed) + k]}"))
    return cells


def _members(data: Data) -> str:
    members = data["chosen"]["members"]
    return f"What is handed out averages {members} models. " if members > 1 else ""


def _corrected(data: Data) -> str:
    """That the verdict's score is corrected for the choice among the ways, too, where that is another."""
    after, handed = handed_out_score(data)["honest"], handed_out(data)
    if handed is None or after is None or data["metric"]["honest"] != "halves":
        return ""
    own, whole = alike([handed["honest"], after], errors=[way["margin"] for way in data["ways"]])
    if own == whole:
        return ""
    return f"Without the luck of the choice among the ways, too, what is handed out scores {whole}."


def notes(data: Data) -> str:
    """Warnings about the result."""
    if not data["notes"]:
        return ""
    items = "".join(f"<li>{escape(_sentence(note))}</li>" for note in data["notes"])
    return f'<section id="notes" class="notes"><h2>Mind this</h2><ul>{items}</ul></section>'


def comparison(data: Data) -> str:
    """Scores of the models, and of all methods on test rows where they were compared."""
    metric, tested = data["metric"]["name"], data["tested"]
    own = [
        {
            "name": row["name"],
            "value": row["honest"],
            "margin": None if row["error"] is None else TWO_SIDED * row["error"],
            "best": row["best"],
            "style": {"moew": "a", "unweighted": "b"}.get(row["key"], "c"),
        }
        for row in data["scores"]
    ]
    held = data["metric"]["n_holdout"]
    upwards = data["metric"]["greater_is_better"]
    drawn = figure(
        charts.intervals("scores", "Honest scores", metric, own, data["metric"].get("bounds"), upwards),
        _caption(own, held),
    )
    heads, scores = ["model", "honest", "best"], [[row["value"], row["best"]] for row in own]
    if any(row["margin"] is not None for row in own):
        heads.insert(2, "± 95 %")
        scores = [[value, row["margin"], best] for (value, best), row in zip(scores, own, strict=True)]
    if tested is not None:  # the strongest evidence first: a phone shows the first columns
        heads.insert(1, "test")
        scores = [[tested.get(row["key"]), *cells] for row, cells in zip(data["scores"], scores, strict=True)]
    errors = [row["error"] for row in data["scores"]]
    rows = [[row["name"], *cells] for row, cells in zip(own, score_cells(scores, errors), strict=True)]
    shown = table("scores-table", f"{metric}, {_where(data)}", heads, rows) + _zero(data)
    if data["comparison"] is None:
        return section("comparison", "The models", f'<div class="beside">{drawn}<div>{shown}</div></div>')
    words = (
        "The models that this page is about, and all methods over the repeats of the whole search, which "
        "need not end with the same model."
    )
    body = f'<p>{words}</p><div class="beside">{drawn}{_tested_methods(data)}</div>{shown}{_by_method(data)}'
    return section("comparison", "The models, and other searches like this one", body)


def _caption(own: Sequence[Data], n_holdout: int) -> str:
    if n_holdout:
        return f"Filled: honest, on {count(n_holdout, 'row')} set aside. Hollow: best, on judged rows."
    if any(row["margin"] is not None for row in own):
        return (
            "Filled: honest score with its 95 % interval. Hollow: best, the score as it was chosen. The "
            "models are judged on the same rows, so their gain is surer than these intervals look."
        )
    return "Filled: honest score. Hollow: best, the score as it was chosen."


def _where(data: Data) -> str:
    """Which rows the columns of the table of scores are from."""
    held, tested = data["metric"]["n_holdout"], data["tested"]
    parts = [
        f"honest: on {count(held, 'row')} set aside; best: on {data['metric']['judged']}"
        if held
        else f"on {data['metric']['judged']}"
    ]
    if tested is not None:
        parts.append(f"test: on {count(tested['n_rows'], 'test row')}")
    return "; ".join(parts)


def _zero(data: Data) -> str:
    """What the model at alpha = 0 is, where there is one."""
    if all(row["key"] != "alpha = 0" for row in data["scores"]):
        return ""
    words = "shift alone: weights that undo the shift between training and validation rows, and no more."
    return f'<p class="small">{words}</p>'


def _tested_methods(data: Data) -> str:
    compared, metric = data["comparison"], data["metric"]["name"]
    drawn = [
        {
            "name": method_name(name),
            "value": _mean(row["test"]),
            "margin": row["margin"],
            "best": None,
            "style": {"moew": "a", "uniform": "b"}.get(name, "c"),
        }
        for name, row in compared["methods"].items()
    ]
    return figure(
        charts.intervals(
            "tested",
            "Test scores by method",
            metric,
            drawn,
            data["metric"].get("bounds"),
            data["metric"]["greater_is_better"],
        ),
        f"Averages of {count(compared['repeats'], 'repeat')}, on {count(compared['n_test'], 'test row')}: "
        "every method may train as many models. Lines are 95 % intervals over the repeats.",
    )


def _by_method(data: Data) -> str:
    methods, metric = data["comparison"]["methods"], data["metric"]["name"]
    scores = [
        (_mean(row["test"]), row["margin"], _mean(row["honest"]), _mean(row["best"]))
        for row in methods.values()
    ]
    cells = score_cells(scores, [row["margin"] for row in methods.values()])
    rows = [
        [method_name(name), *shown, row["models"]]
        for (name, row), shown in zip(methods.items(), cells, strict=True)
    ]
    heads = ["method", "test", "± 95 %", "honest", "best", "models"]
    caption = f"{metric} on average over the repeats; honest and best: on judged rows"
    said = "".join(
        f'<p class="small">{escape(method_name(name))}: {escape(row["note"])}</p>'
        for name, row in methods.items()
        if row["note"]
    )
    return table("comparison-table", caption, heads, rows) + said


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean over the repeats; none where one has none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) and known else None


def search(data: Data) -> str:
    """The search of example weights over time, and the landscape it went through."""
    seen = data["landscape"]
    over_time = figure(
        charts.history(data),
        "Grey: candidates of example weights. Blue line: best so far; star: the best one. Dashed: the "
        "unweighted model. Dotted: the honest score of what is handed out"
        + (", on rows set aside." if data["metric"]["n_holdout"] else "."),
    )
    if seen is None:
        return section("search", "The search of example weights", over_time)
    axes = " and ".join(seen["names"])
    more = "further right or up" if len(seen["names"]) == 2 else "further right"
    others = "" if seen["n_dims"] <= 2 else f" Of {seen['n_dims']} such axes, the others are the best one's."
    kind = "The line is" if len(seen["dims"]) == 1 else "Bright is better. Between the candidates stands"
    over_alpha = figure(
        charts.landscape(data),
        f"Score by how much weight goes with {axes}: more of it {more}. {kind} an estimate from all "
        f"candidates.{others}",
    )
    body = f'<div class="beside">{over_time}{over_alpha}</div>'
    return section("search", "The search of example weights", body)


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
