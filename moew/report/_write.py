"""From a fitted search to a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moew.protocols import Labels, Rows
from moew.report._collect import collect
from moew.report._page import render


def write_report(
    search: Any,
    X: Rows,
    y: Labels,
    path: str | Path,
    *,
    X_val: Rows = None,
    y_val: Labels = None,
    columns: Mapping[str, Any] | None = None,
    row_ids: Any = None,
    comparison: Any = None,
    settings: Mapping[str, Any] | None = None,
) -> Path:
    """Write the report of a fitted search to `path`, an HTML file, and return its path; see `collect`."""
    data = collect(
        search,
        X,
        y,
        X_val=X_val,
        y_val=y_val,
        columns=columns,
        row_ids=row_ids,
        comparison=comparison,
        settings=settings,
    )
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(data), encoding="utf-8")
    return path
