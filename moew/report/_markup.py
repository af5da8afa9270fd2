"""Markup that all sections share, and tables that can be sorted, by mouse and by keyboard."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Sequence
from html import escape
from typing import Any

from moew._util.numbers import DASH, alike

_MARKED = ' class="marked"'
Cell = Any  # a text, a number, None, or (number, text shown)


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
    name: str,
    caption: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    marked: Sequence[int] = (),
    quiet: Sequence[tuple[int, int]] = (),
) -> str:
    """A table whose heads are buttons; a column of numbers is set to the right and sorted as numbers. The
    rows numbered in `marked` stand out, cells (row, column) in `quiet` stand back."""
    numeric = [
        all(_value(row[j]) is not None or _is_empty(row[j]) for row in rows) for j in range(len(heads))
    ]
    head = "".join(
        f'<th scope="col"{_right(right)}><button type="button">{escape(words)}</button></th>'
        for words, right in zip(heads, numeric, strict=True)
    )
    columns = [
        _column([row[j] for row in rows], right, {k for k, column in quiet if column == j})
        for j, right in enumerate(numeric)
    ]
    body = "".join(
        f"<tr{_MARKED if k in marked else ''}>{''.join(cells)}</tr>"
        for k, cells in enumerate(zip(*columns, strict=True))
    )
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
    pairs_of = [[(value, next(texts)) for value in row] for row in rows]
    return [[None if _is_empty(pair[0]) else pair for pair in row] for row in pairs_of]


def _column(cells: Sequence[Cell], right: bool, quiet: Container[int]) -> list[str]:
    texts = alike([cell if isinstance(cell, float) else None for cell in cells])
    written = enumerate(zip(cells, texts, strict=True))
    return [_cell(cell, words, _right(right, k in quiet)) for k, (cell, words) in written]


def _cell(cell: Cell, words: str, style: str) -> str:
    """`words` are how the cell is written if it is a float."""
    value = _value(cell)
    if isinstance(cell, tuple):
        words = cell[1]
    elif not isinstance(cell, float):
        words = DASH if cell is None else f"{cell:,}" if value is not None else str(cell)
    sorted_by = "" if value is None else f' data-value="{value!r}"'
    return f"<td{style}{sorted_by}>{escape(words)}</td>"


def _value(cell: Cell) -> float | int | None:
    if isinstance(cell, tuple):
        cell = cell[0]
    is_number = isinstance(cell, int | float) and not isinstance(cell, bool)
    return cell if is_number and not _is_empty(cell) else None


def _is_empty(cell: Cell) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def _right(right: bool, quiet: bool = False) -> str:
    names = " ".join(["number"] * right + ["quiet"] * quiet)
    return f' class="{names}"' if names else ""
