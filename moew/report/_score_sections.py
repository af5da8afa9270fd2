"""What was found: the verdict, the scores, the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from moew._util.margins import TWO_SIDED
from moew._util.numbers import alike, count
from moew.report import _charts as charts
from moew.report._html import figure, section
from moew.report._tables import table
from moew.report._words import HEADLINES, MARKS, advice, from_what, how_much, how_sure

Data = Mapping[str, Any]


def verdict(data: Data) -> str:
    """The verdict, at the top of the page."""
    kind = data["verdict"]["kind"]
    lines = [how_much(data), how_sure(data)]
    told = "".join(f"<p>{escape(line)}</p>" for line in lines if line)
    return (
        f'<section id="verdict" class="verdict {kind}"><p class="question">Is the weighted model better?</p>'
        f'<h1><span class="mark" aria-hidden="true">{MARKS[kind]}</span>{escape(HEADLINES[kind])}</h1>'
        f'<div class="beside"><div>{told}<p class="advice">{escape(advice(data))}</p>'
        f'<p class="small">{escape(from_what(data))}</p></div>'
        f"<div>{_before_and_after(data)}{figure(charts.gain_interval(data['verdict']))}</div></div></section>"
    )


def _before_and_after(data: Data) -> str:
    before, after = data["verdict"]["before"], data["verdict"]["after"]
    if before is None or after is None or data["verdict"]["kind"] == "none":
        return ""
    without, learned = alike([before, after])
    return (
        f'<p class="figures"><span><b>{without}</b><br>unweighted</span><span aria-hidden="true">→</span>'
        f'<span class="with"><b>{learned}</b><br>with learned weights</span></p>'
    )


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
        }
        for row in data["scores"]
    ]
    held = data["metric"]["n_holdout"]
    axis = f"{metric}, validation" + (" and rows set aside" if held else "")
    drawn = figure(
        charts.intervals("scores", "Honest scores", axis, own, data["metric"].get("bounds")),
        _caption(own, held),
    )
    heads, rows = ["model", "honest", "best"], [[row["name"], row["value"], row["best"]] for row in own]
    if any(row["margin"] is not None for row in own):
        heads.insert(2, "± 95 %")
        rows = [[*cells[:2], row["margin"], cells[2]] for cells, row in zip(rows, own, strict=True)]
    if tested is not None:  # the strongest evidence first: a phone shows the first columns
        heads.insert(1, "test")
        rows = [[name, tested.get(name), *cells] for name, *cells in rows]
    shown = table("scores-table", f"{metric}, {_where(data)}", heads, rows) + _zero(data)
    if data["comparison"] is None:
        return section("comparison", "The models", f'<div class="beside">{drawn}<div>{shown}</div></div>')
    body = f'<div class="beside">{_tested_methods(data)}{drawn}</div>{_by_method(data)}{shown}'
    return section("comparison", "Against other weights", body)


def _caption(own: Sequence[Data], n_holdout: int) -> str:
    if n_holdout:
        return f"Filled: honest, on {count(n_holdout, 'row')} set aside. Hollow: best, on validation rows."
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
        f"honest: on {count(held, 'row')} set aside; best: on validation rows"
        if held
        else "on validation rows"
    ]
    if tested is not None:
        parts.append(f"test: on {count(tested['n_rows'], 'test row')}")
    return "; ".join(parts)


def _zero(data: Data) -> str:
    """What the third model is, where there is one."""
    if len(data["scores"]) < 3:
        return ""
    words = "alpha = 0: weights for the shift between training and validation rows alone."
    return f'<p class="small">{words}</p>'


def _tested_methods(data: Data) -> str:
    compared, metric = data["comparison"], data["metric"]["name"]
    drawn = [
        {"name": name, "value": _mean(row["test"]), "margin": row["margin"], "best": None}
        for name, row in compared["methods"].items()
    ]
    return figure(
        charts.intervals(
            "tested", "Test scores by method", f"{metric}, test", drawn, data["metric"].get("bounds")
        ),
        f"Every method may train as many models; {count(compared['repeats'], 'repeat')}, "
        f"{count(compared['n_test'], 'test row')}. Lines are 95 % intervals over the repeats.",
    )


def _by_method(data: Data) -> str:
    methods, metric = data["comparison"]["methods"], data["metric"]["name"]
    rows = [
        [name, _mean(row["test"]), row["margin"], _mean(row["honest"]), _mean(row["best"]), row["models"]]
        for name, row in methods.items()
    ]
    heads = ["weights", "test", "± 95 %", "honest", "best", "models"]
    caption = f"{metric} by kind of weights; honest and best: on validation rows"
    remarks = "".join(
        f'<p class="small">{escape(name)}: {escape(row["note"])}</p>'
        for name, row in methods.items()
        if row["note"]
    )
    return table("comparison-table", caption, heads, rows) + remarks


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean over the repeats; none where one has none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) and known else None


def search(data: Data) -> str:
    """The search over time and the landscape it went through."""
    seen = data["landscape"]
    over_time = figure(
        charts.history(data),
        "Grey: candidates. Blue line: best so far; star: the winner. Dashed: the model "
        "without weights. Dotted: the winner's honest score"
        + (", on rows set aside." if data["metric"]["n_holdout"] else "."),
    )
    if seen is None:
        return section("search", "The search", over_time)
    others = "" if seen["n_dims"] <= 2 else f" All {seen['n_dims']} dimensions but these are the winner's."
    kind = "The line is" if len(seen["dims"]) == 1 else "Bright is better. Between the candidates stands"
    over_alpha = figure(
        charts.landscape(data), f"Score over alpha. {kind} the mean of a Gaussian process.{others}"
    )
    return section("search", "The search", f'<div class="beside">{over_time}{over_alpha}</div>')


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
