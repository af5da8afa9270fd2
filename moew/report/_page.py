"""The whole page as one HTML file, with a policy that forbids the browser any network access."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from moew.exceptions import InvalidInputError
from moew.report._change_sections import changes
from moew.report._collect import FORMAT
from moew.report._more_sections import front, probabilities, thresholds
from moew.report._score_sections import comparison, notes, search, verdict, ways
from moew.report._setting_sections import decision, settings
from moew.report._weight_sections import labels, slices, weights

# The sections in the order of the page: id, words of the link or "", and the function that gives the markup,
# which is empty where there is nothing to say. A further section is one line here.
_SECTIONS: tuple[tuple[str, str, Callable[[Mapping[str, Any]], str]], ...] = (
    ("verdict", "", verdict),
    ("ways", "All ways", ways),
    ("notes", "", notes),
    ("front", "All metrics", front),
    ("comparison", "Scores", comparison),
    ("decision", "Decision", decision),
    ("thresholds", "Threshold", thresholds),
    ("probabilities", "Probabilities", probabilities),
    ("changes", "What changes", changes),
    ("labels", "Who gains, who pays", labels),
    ("slices", "Which rows", slices),
    ("weights", "Weights", weights),
    ("search", "Search", search),
    ("settings", "Settings", settings),
)
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


def render(data: Mapping[str, Any]) -> str:
    """The report as one self-contained HTML page, from what `collect` gave."""
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        got = data.get("format") if isinstance(data, Mapping) else type(data).__name__
        raise InvalidInputError(
            f"render needs what moew.report.collect gave, of format {FORMAT}; got {got!r}. Collect it again "
            "with this version of moew.",
            argument="data",
        )
    style, script = _asset("page.css"), _asset("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {name: part(data) for name, _, part in _SECTIONS}
    links = "".join(f'<a href="#{name}">{words}</a>' for name, words, _ in _SECTIONS if words and parts[name])
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>{escape(_title(data))}</title><style>{style}</style></head><body>{_header(data)}"
        f'<nav aria-label="Sections">{links}</nav><main>{"".join(parts.values())}</main>'
        f"<script>{script}</script></body></html>\n"
    )


def _title(data: Mapping[str, Any]) -> str:
    about = data["about"]
    of = f"{about['data']}: " if about["data"] else ""
    return f"{of}{data['metric']['name']} of {about['model']}, {_day(about['date'])} – moew"


def _header(data: Mapping[str, Any]) -> str:
    """What the page is about: data, model, day and the metric in words."""
    about, metric = data["about"], data["metric"]
    first = " · ".join(filter(None, (about["data"], about["model"], _day(about["date"]))))
    meaning = f": {metric['description']}" if metric["description"] else ""
    return (
        f'<header><p class="brand">moew</p><div><p class="about">{escape(first)}</p>'
        f'<p class="metric"><b>{escape(metric["name"])}</b>{escape(meaning)}</p></div></header>'
    )


def _day(iso: str) -> str:
    """2026-11-17 as 17 November 2026, whatever language the machine speaks."""
    year, month, day = map(int, iso.split("-"))
    return f"{day} {_MONTHS[month - 1]} {year}"


@cache
def _asset(name: str) -> str:
    return files("moew.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
