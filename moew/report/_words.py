"""Verdicts in words; every function returns plain text, not markup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moew._util.numbers import alike, count, ends, number, signed, with_margin
from moew.report._more_words import bound_advice, bound_headline, bound_why
from moew.report._repeats import larger_error, over_repeats, remarks
from moew.report._ways import be, best_learned, best_of, best_simple, capital, handed_out, named
from moew.search._ways import CONSTANT, TUNED, UNWEIGHTED

Data = Mapping[str, Any]
QUESTION = "Is there a better model for this metric than the unweighted one?"
# No arrows: up would be taken for a number that rises, which is worse for an error.
MARKS = {"better": "✓", "maybe": "?", "no": "=", "worse": "✗", "none": "=", "unknown": "?", "bound": "≤"}


def headline(data: Data) -> str:
    """The answer, with the way that is handed out."""
    way = data["chosen"]["name"]
    if data.get("bound"):
        return bound_headline(data["bound"], named(way), "keep" if be(way) == "are" else "keeps")
    if way == CONSTANT and data["verdict"]["kind"] in ("better", "maybe"):
        return "Look at the metric: the same answer for every row scores best."
    return {
        "better": f"Yes: {named(way)}.",
        "maybe": f"Perhaps: {named(way)}, but that is not certain.",
        "no": f"No: {named(way)} {be(way)} not better.",
        "worse": f"No: {named(way)} {be(way)} worse.",
        "none": "No: keep the unweighted model.",
        "unknown": "This cannot be told.",
    }[data["verdict"]["kind"]]


def how_much(data: Data) -> str:
    """The two scores, and their difference as a share."""
    verdict, name, way = data["verdict"], data["metric"]["name"], data["chosen"]["name"]
    before, after = verdict["before"], verdict["after"]
    if verdict["kind"] == "none":
        score = "" if before is None else f" Its {name} is {number(before)}, {_where(data)}."
        return f"What is handed out is the unweighted model.{score}"
    if before is None or after is None:
        return f"Handed out: {named(way)}. There is no honest score of both models to set side by side."
    shown = before_and_after(data)[::-1]
    share = "" if before in (0, after) else f" ({signed(100 * (after - before) / abs(before), 2)} %)"
    direction = "higher" if data["metric"]["greater_is_better"] else "lower"
    return (
        f"With {named(way)} the {name} is {shown[0]} instead of {shown[1]}{share}, {_where(data)}; "
        f"{direction} is better."
    )


def how_sure(data: Data) -> str:
    """What the interval says about the gain."""
    verdict, kind = data["verdict"], data["verdict"]["kind"]
    if kind in ("none", "unknown"):
        return ""
    low, high = verdict["low"], verdict["high"]
    if low is None or high is None:
        return "How sure that is cannot be said: the scores have no interval here."
    if low == high == 0:
        return "Both score the same, whichever of these rows are looked at."
    first, last = ends(low, high)
    interval = f"The 95 % interval of the gain goes from {first} to {last}"
    if low > 0 or high < 0:
        return f"{interval}: it lies wholly {'above' if low > 0 else 'below'} zero."
    luck = ", so that luck alone could explain the gain" if kind == "maybe" else ""
    return f"{interval}: it includes zero{luck}."


def why(data: Data) -> str:
    """Why this way is handed out, and what the others reach."""
    handed, way = handed_out(data), data["chosen"]["name"]
    if handed is None:
        return ""
    if data.get("bound"):
        return bound_why(data["bound"])
    if not data["chosen"]["guard"]:
        other = best_simple(data)
        rest = "" if other is None else f"; {_reaches(other)}"
        off = "The guard is off, so that no simpler way could win: example weights are handed out"
        return f"{off} whatever those reach{rest}."
    if not handed["simple"]:
        other = best_simple(data)
        rest = "" if other is None else f" The best of those, {named(other['name'])}, {_ahead(other)}."
        return f"{capital(named(way))} {be(way)} ahead of every simple way beyond chance.{rest}"
    learned = best_learned(data)
    if learned is None:
        return f"No other way is ahead of {named(way)} beyond chance."
    ahead = learned["difference"] is None or learned["difference"] > 0
    chance = " beyond chance" if ahead else ""
    return f"{capital(named(learned['name']))} were not better{chance}: {_ahead(learned, also=True)}."


def from_what(data: Data) -> str:
    """Where the evidence comes from, and what it leaves open."""
    verdict, metric = data["verdict"], data["metric"]
    these = "The interval is for these two models."
    these = these if data["repeats"] else f"{these[:-1]}; another search would end with others."
    sure = "" if verdict["low"] is None or verdict["low"] == verdict["high"] else f" {these}"
    if verdict["evidence"] == "test":
        return f"From {count(data['tested']['n_rows'], 'test row')} that no choice was made on.{sure}"
    if metric["honest"] == "holdout":
        return f"From {count(metric['n_holdout'], 'row')} set aside that no search saw.{sure}"
    rows = metric["judged"]
    if metric["honest"] is None:
        return f"The search was asked for no honest score; the best of many scores on {rows} flatters itself."
    ways = f" and of {count(len(data['ways']), 'way')}" if data["chosen"]["guard"] else ""
    return (
        f"From honest scores on {rows}: the luck of being the best of {_candidates(data)}{ways} is taken "
        "off. The search itself has seen these rows, so test rows would be the stronger evidence."
    )


def told(data: Data) -> list[str]:
    """The verdict in a few sentences, for a terminal."""
    lines = (headline(data), how_much(data), how_sure(data), over_repeats(data), *remarks(data), why(data))
    return [line for line in (*lines, from_what(data)) if line]


def advice(data: Data) -> str:
    """What to do next: by the verdict, by what else is in the table of ways, and by the larger error."""
    kind, way = data["verdict"]["kind"], data["chosen"]["name"]
    rival = _rival(data)
    if data.get("bound"):
        return bound_advice(data["bound"])
    if kind == "unknown":
        if data["metric"]["honest"]:
            return "Give more validation rows, so that the metric is defined on parts of them."
        return "Ask for an honest score, or judge both models on test rows."
    if kind in ("no", "worse"):
        simple = best_simple(data)
        if not data["chosen"]["guard"] and simple is not None and simple["difference"] > 0:
            return f"Turn the guard on: {named(simple['name'])} {_ahead(simple)}."
        simpler = "; it is simpler, and no worse as far as can be seen" if kind == "no" else ""
        return f"Keep the unweighted model{simpler}.{_other_seeds(data)}"
    if kind == "none":
        if rival is not None:
            return (
                f"Keep the unweighted model for now. {capital(named(rival['name']))} may be better "
                f"({_margin(rival)}): more validation rows would tell."
            )
        return (
            "Keep the unweighted model. More candidates, or more rows to judge them on, might find more; a "
            f"model that is flexible enough may have nothing to gain.{_other_seeds(data)}"
        )
    if way == CONSTANT:
        use = (
            "Look at the metric before you use this, and at its direction: it is best where every row gets "
            "the same answer, so it may not be the number you mean."
        )
    elif kind == "maybe":
        return f"Before you switch, {_to_be_surer(data)}."
    elif way == TUNED:
        how = "its predictions are adjusted" if data["task"] == "regression" else "it is decided otherwise"
        use = f"Use it: the model is the same, only {how}. Look at who gains and who pays."
    elif not data["weights"]["learned"]:
        use = "Use it, after a look at who gains and who pays."
    else:
        use = "Use it, after a look at which rows lose weight."
    if data["repeats"] is not None and data["repeats"]["kind"] != "better":
        use += f" Another search may gain less: {larger_error(data)}."
    if rival is None or kind == "maybe":
        return use
    if rival["simple"] and not data["chosen"]["guard"]:
        return f"{use} {capital(named(rival['name']))} {be(rival['name'])} simpler, and {_ahead(rival)}."
    return (
        f"{use} {capital(named(rival['name']))} may be better still ({_margin(rival)}): more validation "
        "rows would tell."
    )


def _to_be_surer(data: Data) -> str:
    """What makes the larger of the errors smaller."""
    repeats = data["repeats"]
    if repeats is not None and None not in (repeats["of_seeds"], repeats["of_rows"]):
        more = "give the search more validation rows or candidates"
        if repeats["of_seeds"] <= repeats["of_rows"]:
            more = "get more test rows"
        return f"{more}: {larger_error(data)}"
    return "get more test rows" if data["verdict"]["evidence"] == "test" else "get validation or test rows"


def _other_seeds(data: Data) -> str:
    repeats = data["repeats"]
    if repeats is None or repeats["kind"] != "better":
        return ""
    return (
        " But other seeds do gain on average: fit again with another seed, or with more candidates or "
        "validation rows."
    )


def before_and_after(data: Data) -> tuple[str, str]:
    """The two scores of the verdict, with as many digits as they have in the table of scores."""
    verdict = data["verdict"]
    before, after = alike(
        [verdict["before"], verdict["after"]], errors=[row["error"] for row in data["scores"]]
    )
    return before, after


def way_in_words(way: Data) -> str:
    """What a way would have reached, against what is handed out."""
    return f"{capital(_reaches(way))}."


def _rival(data: Data) -> Data | None:
    """The way that is furthest ahead of what is handed out, if one is; the unweighted model is what the
    verdict is about."""
    others = [way for way in data["ways"] if not way["handed_out"] and way["name"] != UNWEIGHTED]
    rival = best_of(others)
    return rival if rival is not None and rival["difference"] > 0 else None


def _reaches(way: Data) -> str:
    score = number(way["honest"], error=way["margin"])
    return f"{named(way['name'])} would have reached {score} ({_margin(way)})"


def _ahead(way: Data, also: bool = False) -> str:
    """Where a way stands against what is handed out: ahead, behind, by how much."""
    if way["difference"] is None:
        return "no difference can be told" if also else "cannot be told apart from it"
    if way["difference"] == 0:
        return "both score the same" if also else "scores the same"
    where = "ahead" if way["difference"] > 0 else "behind"
    start = "they are" if also else be(way["name"])
    return f"{start} {where} by {with_margin(abs(way['difference']), way['margin'])}"


def _margin(way: Data) -> str:
    if way["difference"] is None:
        return "no difference can be told"
    return with_margin(way["difference"], way["margin"], sign=True)


def _where(data: Data) -> str:
    return {
        "test": "on the test rows",
        "honest": "by honest scores on "
        + ("rows set aside" if data["metric"]["n_holdout"] else data["metric"]["judged"]),
    }[data["verdict"]["evidence"]]


def _candidates(data: Data) -> str:
    return count(data["search"]["n_models"], "candidate")
