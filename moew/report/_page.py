"""The whole page as one HTML file, with a policy that forbids the browser any network access."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from moew.exceptions import InvalidInputError
from moew.report._collect import FORMAT
from moew.report._more_sections import front, probabilities, thresholds
from moew.report._score_sections import comparison, notes, search, verdict, ways
from moew.report._setting_sections import decision, settings
from moew.report._weight_sections import labels, slices, weights

_PARTS = (
    verdict,
    ways,
    notes,
    front,
    comparison,
    decision,
    thresholds,
    probabilities,
    labels,
    slices,
    weights,
    search,
    settings,
)
_LINKS = (
    ("ways", "All ways"),
    ("front", "All metrics"),
    ("comparison", "Scores"),
    ("decision", "Decision"),
    ("thresholds", "Threshold"),
    ("probabilities", "Probabilities"),
    ("labels", "By label"),
    ("slices", "Which rows"),
    ("weights", "Weights"),
    ("search", "Search"),
    ("settings", "Settings"),
)


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
    body = "".join(part(data) for part in _PARTS)
    links = "".join(
        f'<a href="#{name}">{words}</a>' for name, words in _LINKS if f'<section id="{name}"' in body
    )
    metric = escape(data["metric"]["name"])
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>{metric}: moew report</title><style>{style}</style></head><body>"
        f'<header><p class="brand">moew</p><p class="metric">{metric}</p></header>'
        f'<nav aria-label="Sections">{links}</nav><main>{body}</main>'
        f"<script>{script}</script></body></html>\n"
    )


@cache
def _asset(name: str) -> str:
    return files("moew.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
