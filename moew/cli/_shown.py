"""Show results on a terminal; texts from files are neither obeyed as escape sequences nor read as markup."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

from moew._printable import printable
from moew._util.numbers import alike, count
from moew._util.whole_files import writing

if TYPE_CHECKING:
    from moew.search import SearchResult

_NARROWEST = 40  # columns of a terminal that lines are made for
_WORDS = {
    "report.html": "look here first",
    "result.json": "the numbers above, for programs",
    "settings.toml": "all settings, for --config",
    "weights.parquet": "row id and weight of each training row, as the model was trained",
    "study.db": "every candidate and what it predicted, for `moew resume` (a file of SQLite)",
    "search.moew": "the model, its decision and weights: for `moew predict`, or `moew.load` in Python",
    "report.json": "what the report is made from",
}


def show(text: str) -> None:
    """Write text for a person to standard output; on a terminal lines are broken between words."""
    _write(wrapped(printable(text), sys.stdout))


def wrapped(text: str, stream: Any, indent: str = "") -> str:
    """The text with lines that fit the terminal, broken between words; as it is where there is no terminal.

    Further lines begin with `indent`, or as far in as what the line begins with.
    """
    if not stream.isatty():
        return text
    width = _width(stream)

    def fit(line: str) -> str:
        if len(line) <= width:
            return line
        own = line[: len(line) - len(line.lstrip())]
        return fill(
            line,
            width,
            subsequent_indent=own + indent,
            break_long_words=False,  # paths and names stay whole
            break_on_hyphens=False,
        )

    return "\n".join(map(fit, text.split("\n")))


def _width(stream: Any) -> int:
    """How long lines may be on the terminal that a stream shows."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError, AttributeError):
        columns = get_terminal_size().columns  # from the environment, else 80
    return max(columns - 1, _NARROWEST - 1)


def _write(text: str, **how: Any) -> None:
    with writing("standard output"):
        click.echo(text, **how)


def show_csv(text: str) -> None:
    """Write a CSV to standard output: as it is for a program, with escapes on a terminal."""
    # click.echo would take escape sequences out of what a program reads.
    _write(printable(text) if sys.stdout.isatty() else text, nl=False, color=True)


def show_json(content: Any) -> None:
    """Write one JSON object to standard output."""
    from moew._util.state import plain

    text = json.dumps(plain(content), ensure_ascii=False, allow_nan=False)
    _write("".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text))


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1) -> None:
    """Show a table; the first `texts` columns are words, the others numbers."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for place, name in enumerate(header):
        cells = [name, *(row[place] for row in rows if place < len(row))]
        widest = max(len(word) for cell in cells for word in printable(cell).split() or [""])
        is_text = place < texts
        table.add_column(
            Text(printable(name)),
            justify="left" if is_text else "right",
            no_wrap=not is_text,
            min_width=widest if is_text else max(map(len, cells)),
        )
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    least = sum(column.min_width or 0 for column in table.columns) + 2 * (len(table.columns) - 1)
    console = Console(highlight=False)
    if sys.stdout.isatty() and least > console.width:
        _show_as_list(header, rows)
        return
    console.width = max(console.width, least)  # words are never cut
    with console.capture() as captured:
        console.print(table)
    # Not through `show`: rich's own styles are escape sequences.
    _write("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _show_as_list(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Show the rows of a table one after the other, on a terminal that is too narrow for it."""
    for row in rows:
        cells = [f"{name}: {cell}" for name, cell in zip(header[1:], row[1:], strict=False) if cell.strip()]
        show(f"{row[0]}\n  {', '.join(cells)}")


def show_result(result: SearchResult, data: Mapping[str, Any]) -> None:
    """Show all strategies with their scores, and which of them is selected."""
    from moew.report import about_marks, from_json, marked_name

    report = from_json(data)
    metric, tested, listed = report.metric, report.tested, report.strategies
    held = f", {metric.n_holdout:,} set aside" if metric.n_holdout else ""
    test = "" if tested is None else f", {tested.n_rows:,} test rows"
    show(f"\n{result.metric} on {result.evaluated_on}{held}{test} ({metric.better} is better)\n")
    scores: list[float | None] = []
    for one in listed:
        scores += [one.apparent, one.honest, one.difference, one.margin, one.test]
    texts = iter(alike(scores, errors=[one.margin for one in listed]))
    rows = []
    for one in listed:
        apparent, honest, gain, margin, test_score = (next(texts) for _ in range(5))
        gain = f"+{gain}" if (one.difference or 0) > 0 else gain
        told = ["selected", ""] if one.selected else [gain, margin]
        rows.append([marked_name(one), apparent, honest, *told, *([] if tested is None else [test_score])])
    heads = ("strategy", "apparent", "honest", "gain", "± 95 %", *([] if tested is None else ["test"]))
    show_table(heads, rows)
    aside = ""
    if metric.honest == "holdout":  # where the strategies are not evaluated
        held_out = [one for one in listed if one.set_aside is not None]
        values = alike([one.set_aside for one in held_out])
        words = ", ".join(f"{one.name} {text}" for one, text in zip(held_out, values, strict=True))
        aside = f"\nOn {metric.n_holdout:,} rows set aside: {words}."
    show(
        f"\n{count(result.n_models, 'candidate')} trained ({result.n_failed} failed). Selected: "
        f"{result.selected}, {result.reason}.\n"
        f"apparent: as selected; honest: corrected for the choice; gain: against the selected model.{aside}"
    )
    if marks := about_marks(listed):
        show(marks)
    for line in [] if result.pareto is None else result.pareto.lines():
        show(line)
    for note in report.notes:
        show(f"Note: {note}")


def show_verdict(report: Mapping[str, Any]) -> None:
    """Show the report's verdict in words."""
    from moew.report import advice, told

    headline, *more = told(report)
    width = min(80, _width(sys.stdout))
    # A number and its % sign stay together.
    texts = [text.replace(" %", "\N{NO-BREAK SPACE}%") for text in (" ".join(more), advice(report))]
    lines = [fill(text, width, break_long_words=False, break_on_hyphens=False) for text in texts]
    show("\n".join(["", headline, *lines]).replace("\N{NO-BREAK SPACE}", " "))


def show_comparison(comparison: Any) -> None:
    """Show the table of a comparison."""
    better = "higher" if comparison.greater_is_better else "lower"
    show(
        f"\n{comparison.metric}, {better} is better; {comparison.repeats} repeats, "
        f"{comparison.n_test:,} test rows\n"
    )
    texts = zip(comparison.rows, comparison.texts, strict=True)
    rows = [(row.method, str(row.n_models), *shown) for row, shown in texts]
    show_table(("strategy", "models", "apparent", "honest", "test", "± 95 %"), rows)
    show(f"\nmoew − unweighted on test: {comparison.difference_in_words}.")
    for row in comparison.rows:
        if row.note:
            show(f"{row.method}: {row.note}")


def show_files(folder: Any, names: Sequence[str]) -> None:
    """List the files of the run folder."""
    show(f"\nEverything is in {folder}:")
    width = max(map(len, names))
    for name, words in _WORDS.items():
        if name not in names:
            continue
        if _width(sys.stdout) < 2 * width:
            show(f"  {name}\n    {words}")
        else:
            _write(wrapped(printable(f"  {name:{width}}  {words}"), sys.stdout, " " * (width + 2)))
