"""Which decisions change from the unweighted model to what is handed out."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from moew._util.numbers import count, percent
from moew.report._html import section
from moew.report._tables import table

Data = Mapping[str, Any]
_MOST_CLASSES = 10  # of a matrix; of more the most frequent changes are listed
_MOST_CHANGES = 15


def changes(data: Data) -> str:
    """How many decisions change, from which class to which, and whether that is right."""
    found = data["changes"]
    if found is None or data["verdict"]["kind"] == "none":
        return ""
    title = "Which decisions change" if data["task"] == "classification" else "Which predictions change"
    return section("changes", title, f"<p>{escape(_in_words(data))}</p>{_shown(found)}{_small(data)}")


def _in_words(data: Data) -> str:
    found = data["changes"]
    rows = {"test": "test row", "judged": "judged row", "validation": "validation row"}[found["seen_on"]]
    changed, right, wrong = found["n_changed"], found["n_right"], found["n_wrong"]
    where = f"Of {count(found['n_rows'], rows)}"
    if changed == 0:
        return f"{where} none is decided otherwise than by the unweighted model."
    share = percent(changed / found["n_rows"])
    if data["task"] == "regression":
        return (
            f"{where}, {changed:,} get another prediction than by the unweighted model ({share}): "
            f"{right:,} one that is nearer to the target, {wrong:,} one that is further away."
        )
    verb = "is" if changed == 1 else "are"
    both_wrong = changed - right - wrong
    rest = f", and {both_wrong:,} go from one wrong class to another" if both_wrong else ""
    return (
        f"{where}, {changed:,} {verb} decided otherwise than by the unweighted model ({share}): {right:,} "
        f"become right, {wrong:,} become wrong{rest}."
    )


def _shown(found: Data) -> str:
    """A matrix of before against after, or the most frequent changes where there are many classes."""
    classes = found["classes"]
    if not classes or not found["n_changed"]:
        return ""
    moves = [
        (counts[after], found["right"][before][after], found["wrong"][before][after], before, after)
        for before, counts in enumerate(found["counts"])
        for after in range(len(classes))
        if before != after and counts[after]
    ]
    moves.sort(key=lambda move: -move[0])
    heads = ["before", "now", "rows", "become right", "become wrong"]
    rows = [
        [(before, classes[before]), (after, classes[after]), n, right, wrong]
        for n, right, wrong, before, after in moves[:_MOST_CHANGES]
    ]
    caption = "Changes of class, the most frequent first"
    if len(moves) > _MOST_CHANGES:
        caption += f" ({_MOST_CHANGES} of {len(moves)})"
    listed = table("changes-table", caption, heads, rows)
    if len(classes) > _MOST_CLASSES:
        return listed
    return f'<div class="beside"><div>{_matrix(found)}</div><div>{listed}</div></div>'


def _matrix(found: Data) -> str:
    """Rows by the class that they get from the unweighted model and the class that they get now."""
    classes = found["classes"]
    heads = ["before \\ now", *classes]
    rows: list[list[Any]] = []
    for before, (name, counts) in enumerate(zip(classes, found["counts"], strict=True)):
        cells = [n if before == after else (n, f"{n:,}" if n else "·") for after, n in enumerate(counts)]
        rows.append([(before, name), *cells])
    caption = "Rows by class, before (down) and now (across); those on the diagonal stay"
    diagonal = [(k, k + 1) for k in range(len(classes))]
    return table("matrix-table", caption, heads, rows, quiet=diagonal)


def _small(data: Data) -> str:
    found = data["changes"]
    words = ""
    if found["seen_on"] == "judged":
        words = "Judged rows are those that the choice was made on; test rows would be the stronger evidence."
    if data["metric"]["response"] in ("score", "proba"):
        words += " The metric looks at scores, not at these decisions."
    return f'<p class="small">{escape(words.strip())}</p>' if words else ""
