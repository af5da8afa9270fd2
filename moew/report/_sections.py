"""Sections on what was found: the verdict, all strategies, all metrics, the scores, the search."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from moew._util.numbers import DASH, alike, count, number
from moew.report import _charts as charts
from moew.report import _words as say
from moew.report._markup import beside, figure, pairs, paragraphs, score_cells, section, small, table
from moew.report._record import Report, Strategy
from moew.search import ParetoFront

_MOST_ROWS = 30  # of the table of the front
_STYLES = {"moew": "a", "unweighted": "b"}  # of a picture's dots; others are "c"


def verdict(report: Report) -> str:
    """The verdict, at the top of the page."""
    kind = report.verdict.kind
    told = paragraphs(say.how_much(report), say.how_sure(report), say.why(report))
    drawn = _before_and_after(report) + figure(charts.gain_interval(report.verdict))
    left = (
        f'{told}<p class="advice">{escape(say.next_step(report))}</p>'
        f'<p class="small">{escape(say.from_what(report))}</p>'
    )
    right = drawn + paragraphs(say.over_repeats(report), *say.remarks(report))
    return (
        f'<section id="verdict" class="verdict {kind}"><p class="question">{say.QUESTION}</p>'
        f'<h1><span class="mark" aria-hidden="true">{say.MARKS[kind]}</span>'
        f"{escape(say.headline(report))}</h1>"
        f"{beside(f'<div>{left}</div>', f'<div>{right}</div>')}</section>"
    )


def _before_and_after(report: Report) -> str:
    verdict = report.verdict
    if verdict.before is None or verdict.after is None or verdict.kind == "none":
        return ""
    without, learned = say.before_and_after(report)
    return (
        f'<p class="figures"><span><b>{without}</b><br>unweighted</span><span aria-hidden="true">→</span>'
        f'<span class="with"><b>{learned}</b><br>{escape(report.selected.name)}</span></p>'
    )


def strategies(report: Report) -> str:
    """All strategies, and how far each is from the selected model."""
    listed, metric, members = report.strategies, report.metric, report.selected.members
    if not listed:
        return ""
    margins = [one.margin for one in listed]
    scores = {  # the strongest evidence first: a phone shows the first columns
        "test": [one.test for one in listed],
        "set aside": [one.set_aside for one in listed],
        "honest": [one.honest for one in listed],
        "apparent": [one.apparent for one in listed],
    }
    shown = {name: column for name, column in scores.items() if set(column) != {None}}
    cells = score_cells(list(zip(*shown.values(), strict=True)), margins)
    rows = [
        [f"✓ {one.name}" if one.selected else say.marked_name(one), *of_scores, difference]
        for one, of_scores, difference in zip(listed, cells, _differences(listed), strict=True)
    ]
    where = f"on {metric.evaluation}"
    if metric.n_holdout:
        where += f"; set aside: on {count(metric.n_holdout, 'row')} that no search saw"
    if report.tested is not None:
        where += f"; test: on {count(report.tested.n_rows, 'test row')}"
    caption = f"{metric.name} of all strategies {where}; {metric.better} is better"
    marked = [k for k, one in enumerate(listed) if one.selected]
    heads = ["strategy", *shown, "difference ±\u00a095\u00a0%"]
    drawn = figure(
        charts.differences(listed),
        "Each strategy's honest score against that of the selected model, with its 95 % interval. Right of "
        "zero is better.",
    )
    averages = f"The selected model averages {members} models. " if members > 1 else ""
    words = (
        "Apparent is the score as it was chosen, honest the same without the luck of that choice. "
        "Differences are of honest scores; they are positive where a strategy is better than the selected "
        f"model. {averages}{_corrected(report)}{say.about_marks(listed)}"
    )
    listing = table("strategies-table", caption, heads, rows, marked) + small(words.strip())
    return section("strategies", "All strategies", beside(drawn, f"<div>{listing}</div>"))


def _differences(listed: Sequence[Strategy]) -> list[Any]:
    """Each strategy's difference and margin as one cell, sorted by the difference."""
    margins = [one.margin for one in listed]
    words = alike([*(one.difference for one in listed), *margins], 3, errors=margins)
    cells: list[Any] = []
    for one, difference, margin in zip(listed, words, words[len(listed) :], strict=False):
        sign = "+" if (one.difference or 0) > 0 else ""
        text = DASH if one.difference is None else f"{sign}{difference} ± {margin}"
        cells.append((0.0, "selected") if one.selected else (one.difference, text))
    return cells


def _corrected(report: Report) -> str:
    """That the verdict's score is corrected for the choice among the strategies, too, where that is
    another."""
    after, selected = report.selected.honest, say.selected_strategy(report)
    if selected is None or after is None or report.metric.honest != "halves":
        return ""
    own, whole = alike([selected.honest, after], errors=[one.margin for one in report.strategies])
    if own == whole:
        return ""
    return f"Without the luck of the choice among the strategies, too, the selected model scores {whole}. "


def notes(report: Report) -> str:
    """Warnings about the result."""
    if not report.notes:
        return ""
    texts = [note if note.endswith((".", "!", "?", "…")) else f"{note}." for note in report.notes]
    items = "".join(f"<li>{escape(say.capital(text))}</li>" for text in texts)
    return f'<section id="notes" class="notes"><h2>Notes</h2><ul>{items}</ul></section>'


def front(report: Report) -> str:
    """All tried models by all metrics: the front, and the selected model."""
    found = report.pareto
    if found is None:
        return ""
    drawn = figure(
        charts.front(found),
        f"Every tried model by {found.metrics[1]} and {found.metrics[0]}. The line is the front of these "
        "two; the star is selected." + (" Dashed: the bound." if found.constraints else ""),
    )
    words = [
        "The first metric is the one that was optimised. Candidates are evaluated by the models of the "
        "search's folds, what the strategies chose by those of more folds."
    ]
    chosen = found.selected
    how = "is kept" if chosen.keeps else "is not kept for certain"
    for text, name, limit in zip(found.constraints, found.bounded, chosen.limits, strict=True):
        words.append(
            f"The bound {text} {how}: with its margin, from resamples of the evaluation rows, {name} is "
            f"{number(limit)}."
        )
    body = beside(drawn, f"<div>{_front_table(found)}{''.join(map(small, words))}</div>")
    return section("front", "All metrics", body)


def _front_table(found: ParetoFront) -> str:
    n_front, chosen = len(found.front), found.selected
    shown = [model for k, model in enumerate(found.front) if k < _MOST_ROWS or model is chosen]
    shown += [] if chosen in shown else [chosen]
    rows = [[f"✓ {model.name}" if model.selected else model.name, *model.values] for model in shown]
    better = [
        f"{name}, {'higher' if up else 'lower'} is better"
        for name, up in zip(found.metrics, found.greater_is_better, strict=True)
    ]
    caption = f"{count(n_front, 'model')} that no other beats by all metrics"
    return table("front-table", caption, ["model", *better], rows, [shown.index(chosen)])


def comparison(report: Report) -> str:
    """The scores of all methods over the repeats of the whole search."""
    compared, metric = report.comparison, report.metric
    if compared is None:
        return ""
    methods = {say.method_name(key): row for key, row in compared["methods"].items()}
    means = [[_mean(row[kind]) for kind in ("test", "honest", "apparent")] for row in methods.values()]
    margins = [row["margin"] for row in methods.values()]
    styles = [_STYLES.get(key, "c") for key in compared["methods"]]
    dots = [
        charts.Interval(name, test, margin, style)
        for name, (test, *_), margin, style in zip(methods, means, margins, styles, strict=True)
    ]
    axis = f"{metric.name}, better →" if metric.greater_is_better else f"← better, {metric.name}"
    drawn = figure(
        charts.intervals("tested", "Test scores by method", dots, axis, metric.bounds),
        f"Averages of {count(compared['repeats'], 'repeat')}, on {count(compared['n_test'], 'test row')}: "
        "every method may train as many models. Lines are 95 % intervals over the repeats.",
    )
    scores = [(test, margin, *rest) for (test, *rest), margin in zip(means, margins, strict=True)]
    cells = score_cells(scores, margins)
    rows = [[name, *of_row, methods[name]["models"]] for name, of_row in zip(methods, cells, strict=True)]
    heads = ["method", "test", "± 95 %", "honest", "apparent", "models"]
    caption = f"{metric.name} on average over the repeats; honest and apparent: on evaluation rows"
    listed = table("comparison-table", caption, heads, rows)
    listed += "".join(small(f"{name}: {row['note']}") for name, row in methods.items() if row["note"])
    words = paragraphs(
        "All methods over the repeats of the whole search, which need not end with the same model."
    )
    body = f"{words}{beside(drawn, f'<div>{listed}</div>')}"
    return section("comparison", "Other searches like this one", body)


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean over the repeats; none where one has none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) and known else None


def search(report: Report) -> str:
    """The search of example weights over time, and the landscape it went through."""
    seen = report.landscape
    over_time = figure(
        charts.history(report),
        "Grey: candidates of example weights. Blue line: best so far; star: the best one. Dashed: the "
        "unweighted model. Dotted: the honest score of the selected model"
        + (", on rows set aside." if report.metric.n_holdout else "."),
    )
    if report.search.shift_alone is not None:
        alone = number(report.search.shift_alone)
        over_time += small(f"Weights that undo the shift of the validation rows, and no more, score {alone}.")
    over_time = f"<div>{over_time}</div>"
    if seen is None:
        return section("search", "The search of example weights", over_time)
    axes = " and ".join(seen.names)
    more = "further right or up" if len(seen.names) == 2 else "further right"
    others = "" if seen.n_dims <= 2 else f" Of {seen.n_dims} such axes, the others are the best one's."
    kind = "The line is" if len(seen.dims) == 1 else "Bright is better. Between the candidates stands"
    over_alpha = figure(
        charts.landscape(seen, report.metric.greater_is_better),
        f"Score by how much weight goes with {axes}: more of it {more}. {kind} an estimate from all "
        f"candidates.{others}",
    )
    return section("search", "The search of example weights", beside(over_time, over_alpha))


def settings(report: Report) -> str:
    """The settings and the versions of the search."""
    facts = report.data
    about = [
        ("Training rows", f"{facts['n_training']:,} with {count(facts['n_columns'], 'column')}"),
        ("Validation rows", f"{facts['n_validation']:,}"),
        ("Evaluated out of fold", f"{facts['n_out_of_fold']:,} training rows"),
        ("Fingerprint of the data", facts["fingerprint"]),
        ("moew", report.moew),
    ]
    parts = (("Data", about), ("Settings", report.settings))
    body = beside(*(f"<div><h3>{title}</h3>{pairs(rows)}</div>" for title, rows in parts))
    return section("settings", "Settings and data", body)
