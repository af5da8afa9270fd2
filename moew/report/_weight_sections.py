"""Weights and errors by class, weights by slice and row by row, and how uneven they are.

Where no weights are learned, one sentence says so, and errors by class stand alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from moew._util.numbers import number, percent
from moew.report import _weight_charts as charts
from moew.report._html import figure, section
from moew.report._tables import pairs, table
from moew.report._ways import best_learned
from moew.report._words import way_in_words

Data = Mapping[str, Any]
_PICTURES = 6  # columns whose slices are drawn; the table has the others


def labels(data: Data) -> str:
    """Weights and errors by class (Figure 3b of the paper); errors alone where no weights are learned."""
    found, learned = data["labels"], data["weights"]["learned"]
    if not found["groups"]:
        return ""
    errors = any(group["unweighted_error"] is not None for group in found["groups"])
    if not (errors or learned) or data["verdict"]["kind"] == "none":
        return ""
    kind = "class" if found["is_classes"] else "target"
    bars = "Blue bars: mean weight. " if learned else ""
    words = (
        f"{bars}Diamond: the unweighted model's error on validation rows; dot: that of what is handed out."
        + _of_scores(data)
        if errors
        else f"Errors are not shown: {found['reason'].rstrip('.')}."
    )
    if len(found["groups"]) > charts.MOST_BARS:
        half = charts.MOST_BARS // 2
        which = (
            f"the {half} of least weight and the {half} of most"
            if learned
            else f"the {half} that gain most and the {half} that lose most"
        )
        words += f" Drawn are {which}; the table has the others."
    heads = [kind, "weight", "error before", "after", "rows", "valid. rows"]
    rows = [
        [
            g["name"],
            g["mean_weight"],
            _error(g["unweighted_error"], found["is_classes"]),
            _error(g["winner_error"], found["is_classes"]),
            g["n_rows"],
            g["n_validation"],
        ]
        for g in found["groups"]
    ]
    if not (errors and learned):
        kept = (0, 1, 4) if learned else (0, 2, 3, 5)
        heads, rows = [heads[i] for i in kept], [[row[i] for i in kept] for row in rows]
    cut = len(found["groups"]) < found["n_groups"]
    more = f'<p class="small">The first {len(found["groups"])} of {found["n_groups"]}.</p>' if cut else ""
    unit = "share wrong" if found["is_classes"] else "mean absolute error"
    what = "weight and error" if learned else "error"
    title = f"Who gains, who pays: {what} by {kind}" if errors else f"Weight by {kind}"
    caption = f"Weight by {kind}; errors: {unit}" if learned and errors else f"Weight by {kind}"
    caption = caption if learned else f"Error by {kind}: {unit}"
    body = f'<div class="beside">{figure(charts.by_label(found, learned), words)}'
    return section(
        "labels", title, f"{body}<div>{table('labels-table', caption, heads, rows)}{more}</div></div>"
    )


def _of_scores(data: Data) -> str:
    if data["metric"]["response"] not in ("score", "proba"):
        return ""
    return " These errors are those of the models' decisions; the metric looks at their scores instead."


def slices(data: Data) -> str:
    """Weights by slices of columns, and the rows with the most and the least weight."""
    if not data["weights"]["learned"]:
        return ""
    columns = data["slices"]["columns"]
    looked, there = data["slices"]["n_looked_at"], data["slices"]["n_columns"]
    limit = "" if looked == there else f" Only the first {looked:,} of {there:,} columns were looked at."
    if not columns:
        words = f"No column's slices differ in weight more than by chance.{limit}"
        return section("slices", "Which rows count more", f"<p>{words}</p>{_examples(data)}")
    most = max(max(part["mean_weight"] for part in column["slices"]) for column in columns)
    drawn = "".join(
        f"<div><h3>{escape(column['column'])}</h3>"
        f"{figure(charts.by_slice(f'slice-{k}', column, max(most, 1.0)))}</div>"
        for k, column in enumerate(columns[:_PICTURES])
    )
    words = (
        "Mean weight of the training rows, cut by the columns whose slices differ most; 1 is the average "
        f"row. Faint bars count less than average.{limit}"
    )
    heads = ["column", "slice", "rows", "mean weight", "accounts for"]
    rows = [
        [c["column"], s["name"], s["n_rows"], s["mean_weight"], (c["explained"], percent(c["explained"]))]
        for c in columns
        for s in c["slices"]
    ]
    caption = "Weight by slice; “accounts for”: so much of how the weights differ goes with this column"
    listed = table("slices-table", caption, heads, rows)
    folded = f"<details><summary>All {len(rows)} slices as a table</summary>{listed}</details>"
    body = f'<p>{escape(words)}</p><div class="cards">{drawn}</div>{folded}{_examples(data)}'
    return section("slices", "Which rows count more", body)


def weights(data: Data) -> str:
    """How uneven the weights are, or that none are learned."""
    found = data["weights"]
    if not found["learned"]:
        return section("weights", "Weights", f"<p>{escape(_without_weights(data))}</p>")
    share = found["effective"] / found["n"] if found["n"] else None
    low, _, _, median, _, _, high = found["quantiles"]
    facts = [
        ("Training rows", f"{found['n']:,}"),
        ("They tell as much as", f"{found['effective']:,.0f} rows of equal weight ({percent(share)})"),
        ("Before learning, as much as", f"{found['effective_before']:,.0f} rows of equal weight"),
        ("Lowest, median, highest weight", " · ".join(number(v, 3) for v in (low, median, high))),
    ]
    words = (
        "The fewer rows of equal weight tell as much, (Σw)² / Σw², the more the model depends on single rows."
    )
    own = " The weights include your own sample weights." if found["with_own"] else ""
    body = (
        f'<div class="beside">{figure(charts.histogram(found))}'
        f'<div>{pairs(facts)}<p class="small">{escape(words + own)}</p></div></div>'
    )
    return section("weights", "How much the weights differ", body)


def _without_weights(data: Data) -> str:
    own = "as much as your own sample weights say" if data["weights"]["with_own"] else "the same"
    learned = best_learned(data)
    words = f"No weights are learned here: every row counts {own}."
    return words if learned is None else f"{words} {way_in_words(learned)}"


def _examples(data: Data) -> str:
    found = data["rows"]
    parts = []
    for name, title in (("up", "Rows with the most weight"), ("down", "Rows with the least weight")):
        kind = "class" if data["task"] == "classification" else "target"
        heads = ["row", kind, "weight", *found["columns"]]
        rows = [[_id(r["id"]), _id(r["label"]), r["weight"], *r["cells"]] for r in found[name]["rows"]]
        alike = found[name]["n_alike"]
        more = f'<p class="small">{alike:,} rows share this weight.</p>' if alike > len(rows) else ""
        parts.append(f"{table(f'rows-{name}', title, heads, rows)}{more}")
    return "".join(parts)


def _error(error: float | None, is_share: bool) -> Any:
    return (error, percent(error)) if is_share and error is not None else error


def _id(value: Any) -> Any:
    # A number that names something is written as it is, without commas.
    return (value, str(value)) if isinstance(value, int) and not isinstance(value, bool) else value
