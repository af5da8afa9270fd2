"""Is what is handed out better than the unweighted model, by how much, and how sure is that?"""

from __future__ import annotations

import math
from typing import Any, Literal

from moew._util.margins import TWO_SIDED, margin
from moew.inspection import Tested
from moew.report._ways import is_unweighted
from moew.search import Comparison, SearchResult

Kind = Literal["better", "maybe", "no", "worse", "none", "unknown"]


def verdict_of(
    result: SearchResult, comparison: Comparison | None, tested: Tested | None, alpha_zero_repeats: int
) -> dict[str, Any]:
    """The verdict with the strongest evidence there is: a comparison over repeats on test rows, the two
    models on test rows, or honest scores on the judged rows.

    `gain` and its interval are positive where what is handed out is better, whatever the metric's direction.
    """
    sign = 1.0 if result.greater_is_better else -1.0
    is_same = is_unweighted(result, alpha_zero_repeats)
    if comparison is not None:
        before, after = (float(comparison[method].test.mean()) for method in ("uniform", "moew"))
        # Two sources of chance that have nothing to do with each other: the seeds, and the test rows.
        half = math.hypot(margin(comparison.gain), comparison.test_rows_margin)  # NaN: not known
        found = _verdict("comparison", before, after, sign, half)
    elif tested is not None and math.isfinite(sign * (tested.moew - tested.unweighted)):
        found = _verdict("test", tested.unweighted, tested.moew, sign, TWO_SIDED * tested.gain_error)
    else:
        before, after = result.unweighted.value, result.honest.value
        found = _verdict("honest", before, after, sign, TWO_SIDED * result.gain_error)
        if found["kind"] == "worse" and not (result.n_holdout or result.is_below_unweighted):
            # On these rows it did score better: that the correction for luck is larger is no proof.
            found["kind"] = "no"
    return {**found, "kind": "none"} if is_same else found


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
