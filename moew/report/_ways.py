"""All ways to the metric as a table, and how they are called in a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moew._util.margins import TWO_SIDED
from moew.search import SearchResult
from moew.search._ways import AND_TUNED, CONSTANT, UNWEIGHTED, WEIGHTS

Data = Mapping[str, Any]
_MARK = " ✗"  # behind the names of ways that do not keep the bounds


def ways_of(result: SearchResult) -> list[dict[str, Any]]:
    """Every way with its scores, the simplest first. `difference` is its honest score's to that of what is
    handed out, positive where it is better, and `margin` is half of its 95 % interval; `breaks_bounds` says
    whether it does not keep the user's bounds."""
    sign = 1.0 if result.greater_is_better else -1.0
    handed = next((way for way in result.ways if way.name == result.chosen), None)
    return [
        {
            "name": way.name,
            "simple": way.simple,
            "best": way.best,
            "honest": way.honest,
            "difference": None if handed is None else sign * (way.honest - handed.honest),
            "margin": TWO_SIDED * way.error,
            "members": way.n_members,
            "handed_out": way is handed,
            "breaks_bounds": result.pareto is not None and result.pareto.breaks_bounds(way.name),
        }
        for way in result.ways
    ]


def is_unweighted(result: SearchResult, alpha_zero_repeats: int) -> bool:
    """Whether what is handed out is the unweighted model itself."""
    if result.chosen == UNWEIGHTED:
        return True
    members = next((way.n_members for way in result.ways if way.name == result.chosen), 1)
    alone = result.chosen == WEIGHTS and members == 1
    return alone and result.alpha_zero_is_unweighted and result.best_number < alpha_zero_repeats


def named(way: str) -> str:
    """A way as a sentence calls it."""
    if way == CONSTANT:
        return "a constant"
    if way == UNWEIGHTED:
        return "the unweighted model"
    return f"{way.removesuffix(AND_TUNED)} and tuned decisions" if way.endswith(AND_TUNED) else way


def capital(text: str) -> str:
    """A text that begins a sentence."""
    return text[:1].upper() + text[1:]


def be(way: str) -> str:
    """The verb that goes with it."""
    return "is" if way in (CONSTANT, UNWEIGHTED) else "are"


def marked_name(way: Data) -> str:
    """A way's name in a table, with a mark where it does not keep the bounds; words tell of what is handed
    out."""
    return f"{way['name']}{_MARK}" if _is_marked(way) else str(way["name"])


def about_marks(listed: Sequence[Data]) -> str:
    """What the mark means, if there is one."""
    return f"{_MARK.strip()}: it does not keep the bounds." if any(map(_is_marked, listed)) else ""


def _is_marked(way: Data) -> bool:
    return bool(way.get("breaks_bounds")) and not way["handed_out"]


def handed_out(data: Data) -> Data | None:
    """The entry of the way that is handed out."""
    return next((way for way in data["ways"] if way["handed_out"]), None)


def handed_out_score(data: Data) -> Data:
    """The score of what is handed out, which is the first, of the unweighted model, where it is that."""
    found: Data = next((row for row in data["scores"] if row["key"] == "moew"), data["scores"][0])
    return found


def best_of(ways: Sequence[Data]) -> Data | None:
    """The way that is ahead of the others by its honest score, the simplest among equals."""
    known = [way for way in ways if way["difference"] is not None]
    return max(known, key=lambda way: way["difference"], default=None)


def best_simple(data: Data) -> Data | None:
    """The best of the simple ways that are not handed out."""
    return best_of([way for way in data["ways"] if way["simple"] and not way["handed_out"]])


def best_learned(data: Data) -> Data | None:
    """The better of the two ways of example weights, if neither is handed out."""
    if any(way["handed_out"] and not way["simple"] for way in data["ways"]):
        return None
    return best_of([way for way in data["ways"] if not way["simple"]])
