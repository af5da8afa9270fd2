"""The whole page as one HTML file, with a policy that forbids the browser any network access."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from moew.data import Rows
from moew.report import _row_sections as of_rows
from moew.report import _sections as of_search
from moew.report._collect import collect
from moew.report._record import Report, from_json
from moew.search import FittedSearch, MetricSearch
from moew.types import Features, Labels

# The sections in the order of a reader's questions: id, words of the link or "", and the function that gives
# the markup, which is empty where there is nothing to say. A further section is one line here.
_SECTIONS: tuple[tuple[str, str, Callable[[Report], str]], ...] = (
    ("verdict", "", of_search.verdict),
    ("strategies", "All strategies", of_search.strategies),
    ("notes", "", of_search.notes),
    ("changes", "What changes", of_rows.changes),
    ("labels", "Who gains, who pays", of_rows.labels),
    ("decision", "Decision", of_rows.decision),
    ("thresholds", "Threshold", of_rows.thresholds),
    ("probabilities", "Probabilities", of_rows.probabilities),
    ("slices", "Which rows", of_rows.slices),
    ("weights", "Weights", of_rows.weights),
    ("front", "All metrics", of_search.front),
    ("comparison", "Other seeds", of_search.comparison),
    ("search", "Search", of_search.search),
    ("settings", "Settings", of_search.settings),
)
_MONTHS = "January February March April May June July August September October November December"


def render(data: Mapping[str, Any]) -> str:
    """The report as one self-contained HTML page, from what `collect` gave."""
    report = from_json(data)
    style, script = _asset("page.css"), _asset("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {name: part(report) for name, _, part in _SECTIONS}
    links = "".join(f'<a href="#{name}">{words}</a>' for name, words, _ in _SECTIONS if words and parts[name])
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>{escape(_title(report))}</title><style>{style}</style></head><body>{_header(report)}"
        f'<nav aria-label="Sections">{links}</nav><main>{"".join(parts.values())}</main>'
        f"<script>{script}</script></body></html>\n"
    )


def write_report(
    search: MetricSearch | FittedSearch,
    X: Features,
    y: Labels,
    path: str | Path,
    *,
    columns: Mapping[str, Any] | None = None,
    **more: Any,
) -> Path:
    """Write the report of a fitted search to `path`, an HTML file, and return its path.

    X, y and `columns` are what it was fitted with, `more` are the further arguments of `collect`, by name.
    """
    data = collect(search, Rows(X, y, columns=columns), **more)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(data), encoding="utf-8")
    return path


def _title(report: Report) -> str:
    about = report.about
    of = f"{about.data}: " if about.data else ""
    return f"{of}{report.metric.name} of {about.model}, {_day(about.date)} – moew"


def _header(report: Report) -> str:
    """What the page is about: data, model, day and the metric in words."""
    about, metric = report.about, report.metric
    first = " · ".join(filter(None, (about.data, about.model, _day(about.date))))
    meaning = f": {metric.description}" if metric.description else ""
    return (
        f'<header><p class="brand">moew</p><div><p class="about">{escape(first)}</p>'
        f'<p class="metric"><b>{escape(metric.name)}</b>{escape(meaning)}</p></div></header>'
    )


def _day(iso: str) -> str:
    """2026-11-17 as 17 November 2026, whatever language the machine speaks."""
    year, month, day = map(int, iso.split("-"))
    return f"{day} {_MONTHS.split()[month - 1]} {year}"


@cache
def _asset(name: str) -> str:
    return files("moew.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
