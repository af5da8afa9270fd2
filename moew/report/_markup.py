"""Markup that all sections share, and tables that can be sorted, by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from moew._util.numbers import DASH, alike, is_number

Cell = Any  # a text, a number, None, or (number, text shown), or (number, text shown, style)


def paragraphs(*lines: str) -> str:
    """A paragraph for each line that says something."""
    return "".join(f"<p>{escape(line)}</p>" for line in lines if line)


def small(words: str) -> str:
    """A remark in small letters, or nothing where there is none."""
    return f'<p class="small">{escape(words)}</p>' if words else ""


def beside(*parts: str) -> str:
    """Parts that stand side by side where there is room."""
    return f'<div class="beside">{"".join(parts)}</div>'


def figure(picture: str, words: str = "") -> str:
    """A picture with words under it, or nothing where there is none."""
    if not picture:
        return ""
    caption = f"<figcaption>{escape(words)}</figcaption>" if words else ""
    return f"<figure>{picture}{caption}</figure>"


def section(name: str, title: str, body: str) -> str:
    """A section of the page under a heading."""
    return f'<section id="{name}"><h2>{escape(title)}</h2>{body}</section>'


def pairs(rows: Sequence[tuple[str, str]]) -> str:
    """Names and texts, not to be sorted."""
    body = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in rows)
    return f'<dl class="pairs">{body}</dl>'


def table(
    name: str, caption: str, heads: Sequence[str], rows: Sequence[Sequence[Cell]], marked: Sequence[int] = ()
) -> str:
    """A table whose heads are buttons; a column of numbers is set to the right and sorted as numbers. The
    rows numbered in `marked` stand out."""
    head = ""
    lines = [""] * len(rows)
    for j, words in enumerate(heads):
        cells = _written([row[j] for row in rows])
        style = "number" if all(value is not None or text == DASH for value, text, _ in cells) else ""
        head += f'<th scope="col"{_class(style)}><button type="button">{escape(words)}</button></th>'
        for k, (value, text, more) in enumerate(cells):
            sorted_by = "" if value is None else f' data-value="{value!r}"'
            lines[k] += f"<td{_class(style, more)}{sorted_by}>{escape(text)}</td>"
    body = "".join(f"<tr{_class('marked' * (k in marked))}>{line}</tr>" for k, line in enumerate(lines))
    # The caption stands outside, so that it does not scroll away with a wide table.
    named = f'aria-labelledby="{name}-caption"'
    return (
        f'<p class="caption" id="{name}-caption">{escape(caption)}</p>'
        f'<div class="scroll" tabindex="0" role="region" {named}><table id="{name}" {named}>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def score_cells(rows: Sequence[Sequence[float | None]], errors: Iterable[float | None]) -> list[list[Cell]]:
    """Rows of scores as cells that all have as many decimals; `errors` say how many."""
    texts = iter(alike([value for row in rows for value in row], errors=errors))
    return [[(value, next(texts)) for value in row] for row in rows]


def _written(column: Sequence[Cell]) -> list[tuple[float | None, str, str]]:
    """Of each cell the number that it is sorted by, if it is one, its text and its style."""
    texts = alike([cell if isinstance(cell, float) else None for cell in column])
    cells = []
    for cell, text in zip(column, texts, strict=True):
        if isinstance(cell, tuple):
            value, words, *style = cell
            cells.append((value if is_number(value) else None, words, "".join(style)))
        elif cell is None or isinstance(cell, float):
            cells.append((cell if is_number(cell) else None, text, ""))
        else:
            cells.append((cell, f"{cell:,}", "") if is_number(cell) else (None, str(cell), ""))
    return cells


def _class(*names: str) -> str:
    return f' class="{" ".join(filter(None, names))}"' if any(names) else ""
