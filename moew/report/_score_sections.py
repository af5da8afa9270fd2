"""What was found: the verdict, the scores, the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from moew.report import _charts as charts
from moew.report._html import figure, section
from moew.report._tables import table
from moew.report._words import HEADLINES, MARKS, advice, alike, count, from_what, how_much, how_sure

Data = Mapping[str, Any]
_ERROR_MARGIN = 1.96  # standard errors on each side of a 95 % interval


def verdict(data: Data) -> str:
    """The answer, before anything else."""
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
    """What to be wary of, near the top."""
    if not data["notes"]:
        return ""
    items = "".join(f"<li>{escape(_sentence(note))}</li>" for note in data["notes"])
    return f'<section id="notes" class="notes"><h2>Mind this</h2><ul>{items}</ul></section>'


def comparison(data: Data) -> str:
    """Scores of the models, and of all methods on test rows where they were compared."""
    metric, tested = data["metric"]["name"], data["tested"]
    own = [
        {
            "name": row["name"].removesuffix(" (alpha = 0)"),
            "value": row["honest"],
            "margin": None if row["error"] is None else _ERROR_MARGIN * row["error"],
            "best": row["best"],
        }
        for row in data["scores"]
    ]
    drawn = figure(
        charts.intervals("scores", "Honest validation scores", f"{metric}, validation", own), _caption(own)
    )
    heads, where = ["model", "as chosen", "honest"], "on validation rows"
    rows = [[row["name"], row["best"], row["value"]] for row in own]
    if any(row["margin"] is not None for row in own):
        heads.append("± 95 %")
        rows = [[*cells, row["margin"]] for cells, row in zip(rows, own, strict=True)]
    if tested is not None:
        heads.append("test")
        where = f"on validation rows and on {count(tested['n_rows'], 'test row')}"
        rows = [[*cells, tested.get(cells[0])] for cells in rows]
    shown = table("scores-table", f"{metric} {where}", heads, rows) + _zero(data)
    if data["comparison"] is None:
        return section("comparison", "The models", f'<div class="beside">{drawn}<div>{shown}</div></div>')
    body = f'<div class="beside">{_tested_methods(data)}{drawn}</div>{_by_method(data)}{shown}'
    return section("comparison", "Against other weights", body)


def _caption(own: Sequence[Data]) -> str:
    if any(row["margin"] is not None for row in own):
        return (
            "Filled: honest score with its 95 % interval. Hollow: the score as it was chosen. The models are "
            "judged on the same rows, so their gain is surer than these intervals look."
        )
    return "Filled: honest score. Hollow: the score as it was chosen."


def _zero(data: Data) -> str:
    """What the third model is, where there is one."""
    if len(data["scores"]) < 3:
        return ""
    words = "baseline: weights for the shift between training and validation rows alone, where alpha is 0."
    return f'<p class="small">{words}</p>'


def _tested_methods(data: Data) -> str:
    compared, metric = data["comparison"], data["metric"]["name"]
    drawn = [
        {"name": name, "value": _mean(row["test"]), "margin": row["margin"], "best": None}
        for name, row in compared["methods"].items()
    ]
    return figure(
        charts.intervals("tested", "Test scores by method", f"{metric}, test", drawn),
        f"Every method may train as many models; {count(compared['repeats'], 'repeat')}, "
        f"{count(compared['n_test'], 'test row')}. Lines are 95 % intervals over the repeats.",
    )


def _by_method(data: Data) -> str:
    methods, metric = data["comparison"]["methods"], data["metric"]["name"]
    rows = [
        [name, row["models"], *(_mean(row[of]) for of in ("best", "honest", "test")), row["margin"]]
        for name, row in methods.items()
    ]
    heads = ["weights", "models", "as chosen", "honest", "test", "± 95 %"]
    caption = f"{metric} by kind of weights; as chosen and honest: on validation rows"
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
        "without weights. Dotted: the winner's honest score.",
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
