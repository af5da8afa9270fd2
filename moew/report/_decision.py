"""How what is handed out decides, as plain values."""

from __future__ import annotations

from typing import Any

import numpy as np

from moew._util.plain import plain
from moew.decision import AdjustedPredictions, ClassOffsets, GroupThresholds, TunedThreshold
from moew.report._plain import clipped, setting_text
from moew.search import FittedSearch
from moew.search._ways import CONSTANT


def decision_of(fitted: FittedSearch) -> dict[str, Any]:
    """`kind`: "own" (the model's `predict`), "constant", "thresholds", "offsets" or "adjusted"."""
    winner, rule = fitted.winner, fitted.winner.rule
    if fitted.result.chosen == CONSTANT:
        constant = plain(np.ravel(winner.model.constant)[0])
        return {"kind": "constant", "constant": constant if fitted.task == "regression" else _text(constant)}
    if rule is None:
        return {"kind": "own"}
    if isinstance(rule, AdjustedPredictions):
        return {"kind": "adjusted", "offset": rule.offset, "factor": rule.factor, "log": rule.log}
    if isinstance(rule, ClassOffsets):
        classes = np.asarray(winner.classes).tolist()
        rows = zip(classes, rule.offsets, strict=True)
        return {"kind": "offsets", "offsets": [{"class": _text(c), "offset": o} for c, o in rows]}
    tuned = isinstance(rule, TunedThreshold | GroupThresholds)
    thresholds = [*rule.thresholds]
    if isinstance(rule, GroupThresholds):
        thresholds.append(("all others", rule.common))
    return {
        "kind": "thresholds",
        "tuned": tuned,
        "rule": "" if tuned else setting_text(fitted.evaluator.rule),
        "by": clipped(rule.column) if isinstance(rule, GroupThresholds) else None,
        "fit_on": rule.fit_on,
        "of": rule.of,
        # The models' own threshold, of whichever of the two they decide by.
        "own": (0.0 if hasattr(winner.model, "decision_function") else 0.5) if tuned else None,
        "positive": _text(winner.pos_label),
        # Selecting everything or nothing is −∞ or ∞, which JSON has not.
        "thresholds": [
            {"group": _text(group), "threshold": t if t is None or np.isfinite(t) else str(t)}
            for group, t in thresholds
        ],
    }


def _text(value: Any) -> str:
    return clipped(str(value))
