"""Write the report of a fitted search to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from moew.report._collect import collect
from moew.report._page import render
from moew.search import ExampleWeightSearch, FittedSearch
from moew.types import Labels, Rows


def write_report(
    search: ExampleWeightSearch | FittedSearch,
    X: Rows,
    y: Labels,
    path: str | Path,
    **more: Any,
) -> Path:
    """Write the report of a fitted search to `path`, an HTML file, and return its path.

    `more` are the further arguments of `collect`, by name.
    """
    data = collect(search, X, y, **more)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(data), encoding="utf-8")
    return path
