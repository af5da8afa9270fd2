"""Is what is handed out better than the unweighted model, by how much, and how sure is that?"""

from __future__ import annotations

import math
from typing import Any, Literal

from moew._util.margins import TWO_SIDED, margin
from moew.inspection import Tested
from moew.report._ways import is_unweighted
from moew.search import Comparison, SearchResult

Kind = Literal["better", "maybe", "no", "worse", "none", "unknown"]


def verdict_of(result: SearchResult, tested: Tested | None, alpha_zero_repeats: int) -> dict[str, Any]:
    """The verdict on the model that is handed out, with the strongest evidence there is on it: test rows, or
    honest scores on the judged rows.

    `gain` and its interval are positive where what is handed out is better, whatever the metric's direction.
    """
    sign = 1.0 if result.greater_is_better else -1.0
    if tested is not None and math.isfinite(sign * (tested.moew - tested.unweighted)):
        found = _verdict("test", tested.unweighted, tested.moew, sign, TWO_SIDED * tested.gain_error)
    else:
        before, after = result.unweighted.value, result.honest.value
        found = _verdict("honest", before, after, sign, TWO_SIDED * result.gain_error)
        if found["kind"] == "worse" and not (result.n_holdout or result.is_below_unweighted):
            # On these rows it did score better: that the correction for luck is larger is no proof.
            found["kind"] = "no"
    return {**found, "kind": "none"} if is_unweighted(result, alpha_zero_repeats) else found


def repeats_of(comparison: Comparison) -> dict[str, Any]:
    """What a comparison says of searches like this one: the mean gain of what moew hands out, with the two
    kinds of chance in it, the seeds' and the test rows', which have nothing to do with each other."""
    gain, of_seeds = float(comparison.gain.mean()), margin(comparison.gain)
    of_rows = comparison.test_rows_margin
    half = math.hypot(of_seeds, of_rows)  # NaN: not known
    return {
        "kind": _kind(gain, half),
        "gain": gain,
        "half": half,
        "of_seeds": of_seeds,
        "of_rows": of_rows,
        "before": float(comparison["uniform"].test.mean()),
        "after": float(comparison["moew"].test.mean()),
        "others": _others(comparison),
    }


def _others(comparison: Comparison) -> list[dict[str, Any]]:
    """How far each other method, random weights among them, is ahead of moew in the repeats, with margins."""
    sign = 1.0 if comparison.greater_is_better else -1.0
    found = []
    for row in comparison.rows:
        if row.method not in ("moew", "uniform"):
            ahead = sign * (row.test - comparison["moew"].test)
            found.append({"method": row.method, "ahead": float(ahead.mean()), "margin": margin(ahead)})
    return found


def _verdict(evidence: str, before: float, after: float, sign: float, half: float) -> dict[str, Any]:
    gain = sign * (after - before)
    return {
        "kind": _kind(gain, half),
        "evidence": evidence,
        "before": before,
        "after": after,
        "gain": gain,
        "low": gain - half,
        "high": gain + half,
    }


def _kind(gain: float, half: float) -> Kind:
    if not math.isfinite(gain):
        return "unknown"
    if not math.isfinite(half):  # better or not, but nobody knows how sure
        return "maybe" if gain > 0 else "no"
    if gain - half > 0:
        return "better"
    if gain + half < 0:
        return "worse"
    return "maybe" if gain > 0 else "no"
