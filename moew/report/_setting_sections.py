"""The decision rule and the settings of the search."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import Any

from moew._util.numbers import count, number
from moew.report._html import section
from moew.report._tables import pairs, table

Data = Mapping[str, Any]


def decision(data: Data) -> str:
    """How what is handed out decides, in words and with its thresholds or offsets."""
    rule = data["decision"]
    if rule["kind"] == "thresholds":
        return _thresholds(rule)
    shown = ""
    if rule["kind"] == "own":
        words = "The model's own predict decides; no threshold was set."
    elif rule["kind"] == "constant":
        what = (
            f"predicted {number(rule['constant'])}"
            if data["task"] == "regression"
            else "decided " + (f"“{rule['constant']}”")
        )
        words = f"Every row is {what}; the model is not asked."
    elif rule["kind"] == "adjusted":
        words = _adjusted(rule)
    else:
        words = (
            "Tuned for the metric on the judged rows: a row gets the class with the highest sum of score and "
            "offset. The higher a class's offset above the others', the more rows get it than by the model "
            "alone."
        )
        rows = [[entry["class"], entry["offset"]] for entry in rule["offsets"]]
        shown = table("offsets-table", "Offsets of the classes", ["class", "offset"], rows)
    return section("decision", "Decision", f"<p>{escape(words)}</p>{shown}")


def _adjusted(rule: Data) -> str:
    offset, factor = rule["offset"], rule["factor"]
    if offset == 0 and factor == 1:
        return "Tuning found nothing better than the model's own predictions, which stay as they are."
    how = (
        f"{number(math.exp(offset))} · ŷ^{number(factor)}"
        if rule["log"]
        else (f"{number(offset)} + {number(factor)} · ŷ")
    )
    return f"Tuned for the metric on the judged rows: where the model predicts ŷ, the prediction is {how}."


def _tuned_threshold(rule: Data) -> str:
    (only,) = rule["thresholds"]
    if isinstance(only["threshold"], str):
        which = "every" if only["threshold"].startswith("-") else "no"
        return f"Tuned for the metric on the judged rows: {which} row is decided “{rule['positive']}”."
    own = rule["own"]
    if only["threshold"] == own:
        return f"Tuning found nothing better than the model's own threshold, {number(own)}."
    than = "more" if only["threshold"] < own else "fewer"
    return (
        f"Tuned for the metric on the judged rows: a row is decided “{rule['positive']}” where its score "
        f"lies above {number(only['threshold'])}, where the model itself would take {number(own)}; so {than} "
        "rows are."
    )


def _thresholds(rule: Data) -> str:
    if rule["tuned"] and rule["by"] is None:
        return section("decision", "Decision", f"<p>{escape(_tuned_threshold(rule))}</p>")
    rows = [[entry["group"], entry["threshold"]] for entry in rule["thresholds"]]
    if rule["tuned"]:
        words = (
            f"Tuned for the metric on the judged rows: a row is decided “{rule['positive']}” where its score "
            f"lies above the threshold of its {rule['by']}; the model itself would take "
            f"{number(rule['own'])} for all."
        )
        shown = table("thresholds-table", "Decision thresholds", [rule["by"], "threshold"], rows)
        return section("decision", "Decision", f"<p>{escape(words)}</p>{shown}")
    fitted = {"train": "fitted on the training rows", "validation": "fitted on the judged rows"}
    how = fitted.get(rule["fit_on"], "not fitted")
    words = (
        f"{rule['rule']}, {how}. A row is decided “{rule['positive']}” where its "
        f"{rule['of']} lies above the threshold."
    )
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
        ("Judged out of fold", f"{facts['n_out_of_fold']:,} training rows"),
        ("Fingerprint of the data", facts["fingerprint"]),
        ("moew", data["moew"]),
    ]
    chosen = [(name, text) for name, text in data["settings"]]
    body = f'<div class="beside"><div><h3>Data</h3>{pairs(about)}</div>'
    return section(
        "settings", "Settings and data", f"{body}<div><h3>Settings</h3>{pairs(chosen)}</div></div>"
    )
