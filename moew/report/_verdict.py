"""Is the weighted model better, by how much, and how sure is that?"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from moew.margins import margin
from moew.result import SearchResult

Kind = Literal["better", "maybe", "no", "worse", "none", "unknown"]
_TWO_SIDED = 1.96  # standard errors on each side of a 95 % interval


def verdict_of(result: SearchResult, comparison: Any, baseline_repeats: int) -> dict[str, Any]:
    """The verdict with its evidence: test rows where there is a comparison, else honest validation scores.

    `gain` and its interval are positive where weights help, whatever the metric's direction.
    """
    sign = 1.0 if result.greater_is_better else -1.0
    if comparison is not None:
        before, after = (float(comparison[method].test.mean()) for method in ("uniform", "moew"))
        # Two sources of chance that have nothing to do with each other: the seeds, and the test rows.
        half = math.hypot(margin(comparison.gain), comparison.test_rows_margin)  # NaN: not known
        return _verdict("test", before, after, sign, half)
    before, after = result.baseline.value, result.honest.value
    if result.best_number < baseline_repeats:
        return {**_verdict("honest", before, before, sign, math.nan), "kind": "none"}
    found = _verdict("honest", before, after, sign, _TWO_SIDED * result.gain_error)
    # On these rows the winner did score best: that the correction for luck is larger makes it no worse.
    return {**found, "kind": "no"} if found["kind"] == "worse" else found


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


def comparison_table(comparison: Any) -> dict[str, Any]:
    """A `Comparison` as plain values."""
    return {
        "metric": comparison.metric,
        "repeats": comparison.repeats,
        "n_test": comparison.n_test,
        "gain": float(comparison.gain.mean()),
        "gain_margin": margin(comparison.gain),
        "test_rows_margin": float(comparison.test_rows_margin),
        "rows": [
            {
                "method": row.method,
                "n_models": row.n_models,
                "best": float(np.mean(row.best)),
                "honest": float(np.mean(row.honest)),
                "test": float(np.mean(row.test)),
                "margin": row.margin,
                "note": row.note,
            }
            for row in comparison.rows
        ],
    }
