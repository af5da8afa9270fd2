"""What separates the cells of a text table: found by looking at its first lines, or told."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from moew.exceptions import InvalidInputError

NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
_LOOKED_FOR = ",;\t|"
_LINES = 200  # that are looked at
# A number with a decimal comma, perhaps with dots between thousands.
_DECIMAL_COMMA = r"\s*[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?([eE][+-]?\d+)?\s*"


def separator_from(text: str | None) -> str | None:
    """The separator of an option's text: one character, or its name; None where it is to be found."""
    if text is None:
        return None
    found = NAMES.get(text, text)
    if len(found) != 1 or found.isalnum() or found in "\"'.\n\r\0":
        raise InvalidInputError(
            f"--separator is one character, such as ';', or {', '.join(n for n in NAMES if n.isalpha())}; "
            f"got {text!r}.",
            argument="separator",
        )
    return found


def separator_in(path: Path, given: str | None = None) -> str:
    """What separates the cells of a file: as given, a tab in .tsv, or as its first lines show.

    Of the characters that cut every line into as many cells as the first, it is the one that makes the most
    columns; where none does, as lines of different length have it, the one that cuts the first line most.
    """
    if given is not None:
        return given
    if Path(path.stem if path.suffix == ".gz" else path.name).suffix.lower() == ".tsv":
        return "\t"
    widths = {separator: _widths(path, separator) for separator in _LOOKED_FOR}
    even = {s: of[0] for s, of in widths.items() if of and of[0] > 1 and len(set(of)) == 1}
    columns = even or {s: of[0] for s, of in widths.items() if of}
    most = max(columns.values(), default=0)
    likely = [separator for separator, n in columns.items() if n == most]
    if most > 1 and len(likely) > 1:
        raise InvalidInputError(
            f"{path}: its first line has {most} columns with {' as with '.join(map(repr, likely))} between "
            f"them. Say which it is: --separator '{likely[0]}'.",
            argument="separator",
        )
    return likely[0] if likely else ","


def header_of(path: Path, separator: str) -> list[str]:
    """The names in the first line of a file; none of an empty one."""
    return next(iter(_lines(path, separator, 1)), [])


def with_decimal_commas(frame: Any, texts: Sequence[Any]) -> Any:
    """The frame with numbers in columns of which every text is a number with a decimal comma; those in
    `texts` stay."""
    from pandas import to_numeric

    changed = {}
    for name in frame.columns:
        values = frame[name].dropna()
        if name in texts or values.dtype.kind in "biufc" or not len(values):
            continue
        if not (isinstance(values.iloc[0], str) and re.fullmatch(_DECIMAL_COMMA, values.iloc[0])):
            continue  # most columns end here
        if values.str.fullmatch(_DECIMAL_COMMA).all() and values.str.contains(",", regex=False).any():
            plain = frame[name].str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
            changed[name] = to_numeric(plain.astype(object)).astype(float)
    return frame.assign(**changed) if changed else frame


def _widths(path: Path, separator: str) -> list[int]:
    """How many cells the first lines have; blank lines are no rows."""
    try:
        return [len(cells) for cells in _lines(path, separator, _LINES) if cells]
    except csv.Error:  # such as a cell that is too long
        return []


def _lines(path: Path, separator: str, n: int) -> list[list[str]]:
    open_text: Callable[..., Any] = partial(gzip.open, mode="rt") if path.suffix == ".gz" else Path.open
    with open_text(path, encoding="utf-8-sig", newline="") as file:
        return list(islice(csv.reader(file, delimiter=separator), n))
