"""Sections on rows: how the selected model decides, which decisions change, who gains and who pays, and
which rows count more. Where no weights are learned, one sentence says so, and errors by class stand alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from moew._util.numbers import count, number, percent
from moew.inspection import ChangedDecisions, ColumnSlices, Reliability, ThresholdCurve
from moew.report import _charts as charts
from moew.report._markup import beside, figure, pairs, paragraphs, section, small, table
from moew.report._record import Report
from moew.report._words import without_weights
from moew.search import CONSTANT

_FAR = 0.05  # a Brier score that calibration lowers by this share was worth calibrating
_MOST_CLASSES = 10  # of a matrix; of more the most frequent changes are listed
_MOST_CHANGES = 15
_PICTURES = 6  # columns whose slices are drawn; the table has the others
_MOST_GROUPS = 200  # classes in the table


def decision(report: Report) -> str:
    """How the selected model decides."""
    found = report.decision
    listed = table("decision-table", found.caption, found.heads, found.rows) if found.rows else ""
    return section("decision", "Decision", paragraphs(found.words) + listed)


def thresholds(report: Report) -> str:
    """The metric over the threshold."""
    metric = report.metric
    drawn = [
        figure(
            charts.threshold(one, metric.name, place),
            f"{metric.name} on {one.n_rows:,} {one.rows}; {metric.better} is better. {_where_it_is(one)}",
        )
        for place, one in enumerate(report.threshold_curves)
    ]
    if not drawn:
        return ""
    words = (
        "A flat curve around the star means that the exact threshold hardly counts, a sharp peak that it "
        "does, and that it may lie elsewhere on other rows."
    )
    return section("thresholds", "The metric over the threshold", beside(*drawn) + small(words))


def _where_it_is(one: ThresholdCurve) -> str:
    if math.isnan(one.chosen):  # ±∞, which JSON has not
        return "The selected model decides the same for every row."
    at, share = number(one.chosen), percent(one.share)
    return f"The selected model decides “{one.label}” above {at}, which are {share} of these rows."


def probabilities(report: Report) -> str:
    """The reliability of the probabilities, before and after calibration."""
    found = report.reliability
    if found is None or report.selected.name == CONSTANT:
        return ""
    drawn = figure(
        charts.reliability(found),
        f"How often a row is of the class where its probability is given, on {found.n_rows:,} "
        f"{found.rows}. On the dotted line it is as often as it is said. Larger points have more rows.",
    )
    both = {"own": found.before, "calibrated": found.after}
    bins = {name: {one.low: one for one in curve.bins} for name, curve in both.items() if curve is not None}
    rows: list[list[Any]] = []
    for low, high in sorted({(one.low, one.high) for of in bins.values() for one in of.values()}):
        there = [of.get(low) for of in bins.values()]
        shares = [None if one is None else (one.observed, f"{one.observed:.3f}") for one in there]
        counts = [0 if one is None else one.n_rows for one in there]
        rows.append([(low, f"{low:.1f} to {high:.1f}"), *shares, *counts])
    heads = ["probability", *bins, *(f"rows, {name}" for name in bins)]
    of = "each class against the rest" if found.label is None else f"“{found.label}”"
    listed = table("reliability-table", f"Share of rows that are of {of}, by probability", heads, rows)
    words = [_about_probabilities(found)]
    if report.weights.learned:
        words.insert(
            0,
            "A model that was trained with weights gives probabilities of the weighted rows. Decisions are "
            "not concerned: they are evaluated by the metric as they are.",
        )
    body = paragraphs(*words) + beside(drawn, f"<div>{listed}</div>")
    return section("probabilities", "Probabilities", body)


def _about_probabilities(found: Reliability) -> str:
    before, after = (math.nan if curve is None else curve.brier for curve in (found.before, found.after))
    if found.after is None:
        return (
            f"The mean squared error of the probabilities (Brier score) is {number(before, 3)}. If "
            'you use them as numbers and the points are far from the line, fit with calibrate="sigmoid" '
            "(--set calibrate=sigmoid)."
        )
    if found.before is None:
        return (
            "The model has scores and no probabilities of its own; calibrated ones have a Brier score of "
            f"{number(after, 3)}."
        )
    change = (before - after) / before if before else 0.0
    verdict = "lowers" if change > _FAR else "hardly changes" if change > -_FAR else "raises"
    return (
        f"Calibration ({found.method}) {verdict} the mean squared error of the probabilities (Brier "
        f"score): {number(before, 3)} before, {number(after, 3)} after."
    )


def changes(report: Report) -> str:
    """How many decisions change, from which class to which, and whether that is right."""
    found = report.changes
    if found is None or report.verdict.kind == "none":
        return ""
    what = "decisions" if report.task == "classification" else "predictions"
    words = []
    if found.seen_on == "evaluation":
        words.append(
            "Evaluation rows are those that the choice was made on; test rows would be the stronger evidence."
        )
    if report.metric.response in ("score", "proba"):
        words.append("The metric looks at scores, not at these decisions.")
    body = paragraphs(_changes_in_words(found, report.task)) + _change_tables(found) + small(" ".join(words))
    return section("changes", f"Which {what} change", body)


def _changes_in_words(found: ChangedDecisions, task: str) -> str:
    changed, right, wrong = found.n_changed, found.n_right, found.n_wrong
    where = f"Of {count(found.n_rows, f'{found.seen_on} row')}"
    if changed == 0:
        return f"{where} no decision differs from the unweighted model's."
    share = percent(changed / found.n_rows)
    if task == "regression":
        return (
            f"{where}, {changed:,} get another prediction than by the unweighted model ({share}): "
            f"{right:,} one that is nearer to the target, {wrong:,} one that is further away."
        )
    verb = "is" if changed == 1 else "are"
    both_wrong = changed - right - wrong
    rest = f", and {both_wrong:,} go from one wrong class to another" if both_wrong else ""
    return (
        f"{where}, {changed:,} {verb} decided differently from the unweighted model ({share}): {right:,} "
        f"become right, {wrong:,} become wrong{rest}."
    )


def _change_tables(found: ChangedDecisions) -> str:
    """A matrix of before against after, or the most frequent changes where there are many classes."""
    classes, counts, right, wrong = found.classes, found.counts, found.right, found.wrong
    if not classes or not found.n_changed or counts is None or right is None or wrong is None:
        return ""
    moves = [
        (int(counts[i, j]), int(right[i, j]), int(wrong[i, j]), i, j)
        for i in range(len(classes))
        for j in range(len(classes))
        if i != j and counts[i, j]
    ]
    moves.sort(key=lambda move: -move[0])
    heads = ["before", "now", "rows", "become right", "become wrong"]
    rows = [[(i, classes[i]), (j, classes[j]), *numbers] for *numbers, i, j in moves[:_MOST_CHANGES]]
    caption = "Changes of class, the most frequent first"
    if len(moves) > _MOST_CHANGES:
        caption += f" ({_MOST_CHANGES} of {len(moves)})"
    listed = table("changes-table", caption, heads, rows)
    if len(classes) > _MOST_CLASSES:
        return listed
    matrix: list[list[Any]] = [
        [(i, name), *((n, f"{n:,}" if n else "·", "quiet" * (i == j)) for j, n in enumerate(of_class))]
        for i, (name, of_class) in enumerate(zip(classes, counts.tolist(), strict=True))
    ]
    caption = "Rows by class, before (down) and now (across); those on the diagonal stay"
    shown = table("matrix-table", caption, ["before \\ now", *classes], matrix)
    return beside(f"<div>{shown}</div>", f"<div>{listed}</div>")


def labels(report: Report) -> str:
    """Weights and errors by class (Figure 3b of the paper); errors alone where no weights are learned."""
    found, learned = report.labels, report.weights.learned
    errors = any(not math.isnan(group.unweighted_error) for group in found.groups)
    if not found.groups or not (errors or learned) or report.verdict.kind == "none":
        return ""
    kind, unit = ("class", "share wrong") if found.is_classes else ("target", "mean absolute error")
    what = " and ".join(["weight"] * learned + ["error"] * errors)
    title = f"Who gains, who pays: {what} by {kind}" if errors else f"Weight by {kind}"
    caption = f"{what.capitalize()} by {kind}{f'; error: {unit}' if errors else ''}"
    heads = [kind, *["weight", "rows"] * learned, *["error before", "after", "valid. rows"] * errors]
    rows = []
    for group in found.groups[:_MOST_GROUPS]:
        both = group.unweighted_error, group.winner_error
        cells = [(error, percent(error)) if found.is_classes else error for error in both]
        of_weight = [group.mean_weight, group.n_rows] * learned
        rows.append([group.name, *of_weight, *[*cells, group.n_validation] * errors])
    listed = table("labels-table", caption, heads, rows)
    if len(rows) < len(found.groups):
        listed += small(f"The first {len(rows)} of {len(found.groups)}.")
    drawn = figure(charts.by_label(found, learned), _about_labels(report, errors))
    return section("labels", title, beside(drawn, f"<div>{listed}</div>"))


def _about_labels(report: Report, errors: bool) -> str:
    """What the picture of classes shows."""
    found, learned = report.labels, report.weights.learned
    words = f"Errors are not shown: {found.reason.rstrip('.')}."
    if errors:
        bars = "Blue bars: mean weight. " if learned else ""
        model = "the unweighted model's error on validation rows; dot: that of the selected model."
        words = f"{bars}Diamond: {model}"
    if errors and report.metric.response in ("score", "proba"):
        words += " These errors are those of the models' decisions; the metric looks at their scores instead."
    if len(found.groups) > charts.MOST_BARS:
        half = charts.MOST_BARS // 2
        ends = ("of least weight", "of most") if learned else ("that gain most", "that lose most")
        words += f" Drawn are the {half} {ends[0]} and the {half} {ends[1]}; the table has the others."
    return words


def slices(report: Report) -> str:
    """Weights by slices of columns, and the rows with the most and the least weight."""
    columns, examples = report.slices, report.rows
    if not report.weights.learned or columns is None or examples is None:
        return ""
    looked, there = report.data["n_looked_at"], report.data["n_columns"]
    limit = "" if looked == there else f" Only the first {looked:,} of {there:,} columns were looked at."
    words = "No column's slices differ in weight more than by chance."
    cut = ""
    if columns:
        words = (
            "Mean weight of the training rows, cut by the columns whose slices differ most; 1 is the average "
            "row. Faint bars count less than average."
        )
        cut = _slices(columns)
    body = f"{paragraphs(words + limit)}{cut}{_examples(examples, report.task)}"
    return section("slices", "Which rows count more", body)


def _slices(columns: Sequence[ColumnSlices]) -> str:
    """Pictures of the first columns, and a table of all."""
    most = max(1.0, *(part.mean_weight for column in columns for part in column.slices))
    drawn = "".join(
        f"<div><h3>{escape(column.column)}</h3>{figure(charts.by_slice(f'slice-{k}', column, most))}</div>"
        for k, column in enumerate(columns[:_PICTURES])
    )
    heads = ["column", "slice", "rows", "mean weight", "accounts for"]
    rows = [
        [c.column, s.name, s.n_rows, s.mean_weight, (c.explained, percent(c.explained))]
        for c in columns
        for s in c.slices
    ]
    caption = "Weight by slice; “accounts for”: so much of how the weights differ goes with this column"
    listed = table("slices-table", caption, heads, rows)
    folded = f"<details><summary>All {len(rows)} slices as a table</summary>{listed}</details>"
    return f'<div class="cards">{drawn}</div>{folded}'


def _examples(found: Mapping[str, Any], task: str) -> str:
    kind = "class" if task == "classification" else "target"
    heads = ["row", kind, "weight", *found["columns"]]
    parts = []
    for end, words in (("up", "most"), ("down", "least")):
        rows = [
            [_id(row["id"]), _id(row["label"]), row["weight"], *row["cells"]] for row in found[end]["rows"]
        ]
        parts.append(table(f"rows-{end}", f"Rows with the {words} weight", heads, rows))
        if (n_alike := found[end]["n_alike"]) > len(rows):
            parts.append(small(f"{n_alike:,} rows share this weight."))
    return "".join(parts)


def _id(value: Any) -> Any:
    # A number that names something is written as it is, without commas.
    return (value, str(value)) if isinstance(value, int) and not isinstance(value, bool) else value


def weights(report: Report) -> str:
    """How uneven the weights are, or that none are learned."""
    found = report.weights
    if not found.learned:
        return section("weights", "Weights", paragraphs(without_weights(report)))
    share = percent(found.effective / found.n if found.n else None)
    facts = [
        ("Training rows", f"{found.n:,}"),
        ("They tell as much as", f"{found.effective:,.0f} rows of equal weight ({share})"),
        ("Before learning, as much as", f"{found.effective_before:,.0f} rows of equal weight"),
        ("Lowest, median, highest weight", " · ".join(number(v, 3) for v in found.quantiles)),
    ]
    words = (
        "The fewer rows of equal weight tell as much, (Σw)² / Σw², the more the model depends on single rows."
    )
    own = " The weights include your own sample weights." if found.with_own else ""
    told = f"<div>{pairs(facts)}{small(words + own)}</div>"
    return section("weights", "How much the weights differ", beside(figure(charts.histogram(found)), told))
