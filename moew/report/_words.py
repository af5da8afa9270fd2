"""Verdicts in words; every function returns plain text, not markup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moew._util.numbers import alike, count, signed

HEADLINES = {
    "better": "Yes: the weighted model is better.",
    "maybe": "Perhaps better, but that is not certain.",
    "no": "No: the weighted model is not better.",
    "worse": "No: the weighted model is worse.",
    "none": "No weighting beat the unweighted model.",
    "unknown": "This cannot be told.",
}
MARKS = {"better": "↑", "maybe": "?", "no": "=", "worse": "↓", "none": "=", "unknown": "?"}


def how_much(data: Mapping[str, Any]) -> str:
    """The two scores, and their difference as a share."""
    verdict, name = data["verdict"], data["metric"]["name"]
    before, after = verdict["before"], verdict["after"]
    where = {
        "comparison": "on the test rows",
        "test": "on the test rows",
        "honest": "by honest scores on "
        + ("rows set aside" if data["metric"]["n_holdout"] else "the validation rows"),
    }[verdict["evidence"]]
    if verdict["kind"] == "none":
        return f"None of {_candidates(data)} scored better than the unweighted model."
    if before is None or after is None:
        return "There is no honest score of both models to set side by side."
    shown = alike([after, before])
    share = "" if before in (0, after) else f" ({signed(100 * (after - before) / abs(before))} %)"
    way = "higher" if data["metric"]["greater_is_better"] else "lower"
    return (
        f"With learned weights the {name} is {shown[0]}, without them {shown[1]}{share}, "
        f"{where}; {way} is better."
    )


def how_sure(data: Mapping[str, Any]) -> str:
    """What the interval says about the gain."""
    verdict, kind = data["verdict"], data["verdict"]["kind"]
    if kind in ("none", "unknown"):
        return ""
    low, high = verdict["low"], verdict["high"]
    if low is None or high is None:
        return "How sure that is cannot be said: the scores have no interval here."
    if low == high == 0:
        return "Both score the same, whichever of these rows are looked at."
    interval = f"The 95 % interval of the gain goes from {signed(low)} to {signed(high)}"
    if low > 0 or high < 0:
        return f"{interval}: it lies wholly {'above' if low > 0 else 'below'} zero."
    luck = ", so that luck alone could explain the gain" if kind == "maybe" else ""
    return f"{interval}: it includes zero{luck}."


def from_what(data: Mapping[str, Any]) -> str:
    """Where the evidence comes from, and what it leaves open."""
    verdict, metric, comparison = data["verdict"], data["metric"], data["comparison"]
    if verdict["evidence"] == "comparison" and comparison is not None:
        return (
            f"From {count(comparison['repeats'], 'repeat')} of the whole search with other seeds, each "
            f"judged on {count(comparison['n_test'], 'test row')} that no choice was made on. The gain "
            "is against uniform weights; its interval holds the chance of the seeds and of the test rows."
        )
    these = "The interval is for these two models; another search would end with others."
    sure = "" if verdict["low"] is None or verdict["low"] == verdict["high"] else f" {these}"
    if verdict["evidence"] == "test":
        return f"From {count(data['tested']['n_rows'], 'test row')} that no choice was made on.{sure}"
    if metric["honest"] == "holdout":
        return f"From {count(metric['n_holdout'], 'row')} set aside that no search saw.{sure}"
    rows = count(metric["n_validation"], "validation row")
    if metric["honest"] is None:
        return f"The search was asked for no honest score; the best of many scores on {rows} flatters itself."
    return (
        f"From honest scores on {rows}: the luck of being the best of {_candidates(data)} is taken off. "
        "The search itself has seen these rows, so test rows would be the stronger evidence."
    )


def told(data: Mapping[str, Any]) -> list[str]:
    """The verdict in a few sentences, for a terminal."""
    lines = (HEADLINES[data["verdict"]["kind"]], how_much(data), how_sure(data), from_what(data))
    return [line for line in lines if line]


def advice(data: Mapping[str, Any]) -> str:
    """What to do next."""
    tested = data["verdict"]["evidence"] != "honest"
    return {
        "better": "Use the weighted model, after a look at which rows lose weight.",
        "maybe": "Before you switch, get more "
        + ("test rows." if tested else "validation rows, or test rows that no choice is made on."),
        "no": "Keep the unweighted model; it is simpler, and no worse as far as can be seen.",
        "worse": "Keep the unweighted model.",
        "none": "Keep the unweighted model. A larger radius, another embedding or more "
        "candidates might find more; a model that is flexible enough may have nothing to gain.",
        "unknown": "Give more validation rows, so that the metric is defined on parts of them."
        if data["metric"]["honest"]
        else "Ask for an honest score, or compare on test rows.",
    }[data["verdict"]["kind"]]


def _candidates(data: Mapping[str, Any]) -> str:
    return count(len(data["search"]["numbers"]) + len(data["search"]["failed"]), "candidate")
