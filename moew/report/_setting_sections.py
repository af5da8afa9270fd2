"""The decision rule and the settings of the search."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from moew._util.numbers import count
from moew.report._html import section
from moew.report._tables import pairs, table

Data = Mapping[str, Any]


def decision(data: Data) -> str:
    """The thresholds that the winner decides with."""
    rule = data["decision"]
    if rule is None:
        words = "The model's own predict decides; there is no threshold to set."
        return section("decision", "Decision", f"<p>{words}</p>")
    fitted = {"train": "fitted on the training rows", "validation": "fitted on the validation rows"}
    how = fitted.get(rule["fit_on"], "not fitted")
    words = (
        f"{rule['rule']}, {how}. A row is decided “{rule['positive']}” where its "
        f"{rule.get('of', 'score')} lies above the threshold."
    )
    rows = [[entry["group"], entry["threshold"]] for entry in rule["thresholds"]]
    if rows[0][1] is None:
        return section("decision", "Decision", f"<p>{escape(words)} It is set anew for each set of rows.</p>")
    shown = table("thresholds-table", "Decision thresholds", ["rows", "threshold"], rows)
    return section("decision", "Decision", f"<p>{escape(words)}</p>{shown}")


def settings(data: Data) -> str:
    """The settings and the versions of the search."""
    facts = data["data"]
    about = [
        ("Training rows", f"{facts['n_training']:,} with {count(facts['n_columns'], 'column')}"),
        ("Validation rows", f"{facts['n_validation']:,}"),
        ("Fingerprint of the data", facts["fingerprint"]),
        ("moew", data["moew"]),
    ]
    chosen = [(name, text) for name, text in data["settings"]]
    body = f'<div class="beside"><div><h3>Data</h3>{pairs(about)}</div>'
    return section(
        "settings", "Settings and data", f"{body}<div><h3>Settings</h3>{pairs(chosen)}</div></div>"
    )
