"""How the selected model decides, in words and with its thresholds or offsets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from moew._util.numbers import number
from moew.decision import AdjustedPredictions, ClassOffsets, GroupThresholds, TunedThreshold
from moew.report._plain import setting_text
from moew.report._record import Decision
from moew.search import CONSTANT, FittedSearch

_TUNED = "Tuned for the metric on the evaluation rows:"
_FITTED_ON = {"train": "fitted on the training rows", "validation": "fitted on the evaluation rows"}


def decision_of(fitted: FittedSearch) -> Decision:
    """How the selected model decides."""
    winner, rule = fitted.winner, fitted.winner.rule
    if fitted.result.selected == CONSTANT:
        constant = np.ravel(winner.model.constant)[0]
        is_number = fitted.task == "regression"
        what = f"predicted {number(float(constant))}" if is_number else f"decided “{constant}”"
        return Decision(f"Every row is {what}; the model is not asked.")
    if rule is None:
        return Decision("The model's own predict decides; no threshold was set.")
    if isinstance(rule, AdjustedPredictions):
        return Decision(_adjusted(rule))
    if isinstance(rule, ClassOffsets):
        words = (
            f"{_TUNED} a row gets the class with the highest sum of score and offset. The higher a class's "
            "offset above the others', the more rows get it than by the model alone."
        )
        classes = map(str, np.asarray(winner.classes).tolist())
        offsets = list(zip(classes, rule.offsets, strict=True))
        return Decision(words, "Offsets of the classes", ("class", "offset"), offsets)
    own = 0.0 if hasattr(winner.model, "decision_function") else 0.5
    if isinstance(rule, TunedThreshold):
        return Decision(_tuned_threshold(rule.threshold_, own, winner.pos_label))
    words = f"a row is decided “{winner.pos_label}” where its {rule.of} lies above"
    thresholds = [*rule.thresholds]
    if isinstance(rule, GroupThresholds):
        thresholds.append(("all others", rule.common))
        words += f" the threshold of its {rule.column}; the model itself would take {own:g} for all."
        words = f"{_TUNED} {words}"
    else:
        how = _FITTED_ON.get(rule.fit_on or "", "not fitted")
        words = f"{setting_text(fitted.evaluator.rule)}, {how}. A{words[1:]} the threshold."
    if thresholds[0][1] is None:
        return Decision(f"{words} It is set anew for each set of rows.")
    heads = rule.column if isinstance(rule, GroupThresholds) else "rows", "threshold"
    rows = [(str(group), t if math.isfinite(t) else str(t)) for group, t in thresholds]
    return Decision(words, "Decision thresholds", heads, rows)


def _adjusted(rule: AdjustedPredictions) -> str:
    if rule.offset == 0 and rule.factor == 1:
        return "Tuning found nothing better than the model's own predictions, which stay as they are."
    factor = number(rule.factor)
    linear = f"{number(rule.offset)} + {factor} · ŷ"
    how = f"{number(math.exp(rule.offset))} · ŷ^{factor}" if rule.log else linear
    return f"{_TUNED} where the model predicts ŷ, the prediction is {how}."


def _tuned_threshold(threshold: float, own: float, positive: Any) -> str:
    if math.isinf(threshold):
        return f"{_TUNED} {'every' if threshold < 0 else 'no'} row is decided “{positive}”."
    if threshold == own:
        return f"Tuning found nothing better than the model's own threshold, {number(own)}."
    than = "more" if threshold < own else "fewer"
    return (
        f"{_TUNED} a row is decided “{positive}” where its score lies above {number(threshold)}, where "
        f"the model itself would take {number(own)}; so {than} rows are."
    )
