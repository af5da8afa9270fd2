"""Tables that can be sorted, by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from html import escape
from typing import Any

from moew._util.numbers import DASH, alike

_MARKED = ' class="marked"'
Cell = Any  # a text, a number, None, or (number, text shown)


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
    numeric = [all(_value(row[j]) is not None or row[j] is None for row in rows) for j in range(len(heads))]
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
    numbers = [value for row in rows for value in row]
    texts = iter(alike(numbers, errors=errors))
    pairs_of = [[(value, next(texts)) for value in row] for row in rows]
    return [[None if pair[0] is None else pair for pair in row] for row in pairs_of]


def pairs(rows: Sequence[tuple[str, str]]) -> str:
    """Names and texts, not to be sorted."""
    body = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in rows)
    return f'<dl class="pairs">{body}</dl>'


def _column(cells: Sequence[Cell], right: bool, quiet: Container[int]) -> list[str]:
    floats = [cell if isinstance(cell, float) else None for cell in cells]
    written = zip(cells, alike(floats), strict=True)
    return [_cell(cell, words, right, k in quiet) for k, (cell, words) in enumerate(written)]


def _cell(cell: Cell, words: str, right: bool, quiet: bool) -> str:
    """`words` are how the cell is written if it is a float."""
    value = _value(cell)
    if isinstance(cell, tuple):
        words = cell[1]
    elif not isinstance(cell, float):
        words = DASH if cell is None else f"{cell:,}" if value is not None else str(cell)
    sorted_by = "" if value is None else f' data-value="{value!r}"'
    return f"<td{_right(right, quiet)}{sorted_by}>{escape(words)}</td>"


def _value(cell: Cell) -> float | int | None:
    if isinstance(cell, tuple):
        cell = cell[0]
    return cell if isinstance(cell, int | float) and not isinstance(cell, bool) else None


def _right(right: bool, quiet: bool = False) -> str:
    names = " ".join(["number"] * right + ["quiet"] * quiet)
    return f' class="{names}"' if names else ""
