"""What a comparison over repeats says about searches like this one, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moew._util.numbers import alike, count, number, with_margin
from moew.report._ways import capital, named

Data = Mapping[str, Any]
# On the page what `compare` calls by one word has the name that it has elsewhere on the page.
_METHODS = {
    "uniform": "unweighted",
    "random": "random weights",
    "importance": "importance weights",
    "moew": "what moew hands out",
}


def method_name(method: str) -> str:
    """What the page calls a method of a comparison."""
    return _METHODS.get(method, method)


def over_repeats(data: Data) -> str:
    """The mean gain of the whole search over the repeats; empty without a comparison."""
    repeats, compared = data["repeats"], data["comparison"]
    if repeats is None:
        return ""
    after, before = alike([repeats["after"], repeats["before"]], errors=[repeats["half"]])
    luck = {
        "better": "",
        "maybe": "; chance alone could explain that",
        "no": "; so other seeds do not gain",
        "worse": "; so other seeds lose",
        "unknown": "",
    }[repeats["kind"]]
    gain = with_margin(repeats["gain"], repeats["half"], sign=True)
    return (
        f"The whole search, repeated {compared['repeats']} times with other seeds, gains {gain} on average "
        f"on {count(compared['n_test'], 'test row')}: {after} instead of {before}{luck}."
    )


def remarks(data: Data) -> list[str]:
    """What is remarkable in a comparison: ways that are better than what moew hands out, and random weights
    or simple ways alone that do as well."""
    repeats = data["repeats"]
    if repeats is None or repeats["kind"] not in ("better", "maybe"):
        return []
    others = [other for other in repeats["others"] if None not in (other["ahead"], other["margin"])]
    said = [
        f"{capital(named(method_name(other['method'])))} alone, with as many models, did better in the "
        f"repeats than what moew handed out, by {with_margin(other['ahead'], other['margin'])}."
        for other in others
        if other["ahead"] > other["margin"]
    ]
    as_good = [other["method"] for other in others if abs(other["ahead"]) <= other["margin"]]
    if "random" in as_good:
        said.append(
            "Random weights, the best of as many models, did as well in the repeats: what helps is to try "
            "many models, not to learn weights."
        )
    simple = [named(method_name(name)) for name in as_good if name not in ("random", data["chosen"]["name"])]
    if simple:
        said.append(f"Simpler, and as good in the repeats as far as can be told: {'; '.join(simple)}.")
    return said


def larger_error(data: Data) -> str:
    """Which of the two kinds of chance in a comparison is the larger one."""
    repeats = data["repeats"]
    seeds, rows = (number(repeats[name], 2) for name in ("of_seeds", "of_rows"))
    if repeats["of_seeds"] is None or repeats["of_rows"] is None:
        return "how much other seeds or test rows would change the gain is not known"
    if repeats["of_seeds"] > repeats["of_rows"]:
        return f"the gain differs more from seed to seed (± {seeds}) than by the test rows (± {rows})"
    return f"the gain depends more on the test rows (± {rows}) than on the seed (± {seeds})"
