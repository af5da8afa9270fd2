"""From what the user wrote to a decision rule."""

from __future__ import annotations

from numbers import Real
from typing import Any

from moew.decision._thresholds import FixedThreshold
from moew.exceptions import InvalidInputError
from moew.types import DecisionRule


def resolve_decision(rule: Any) -> DecisionRule | None:
    """None stays None, a number is a threshold of the probability, a decision rule stays what it is."""
    if rule is None:
        return None
    if isinstance(rule, Real) and not isinstance(rule, bool):
        return FixedThreshold(float(rule), of="probability")
    if isinstance(rule, DecisionRule) and not isinstance(rule, type):
        return rule
    hint = f"; did you mean {rule.__name__}(…)?" if isinstance(rule, type) else "."
    raise InvalidInputError(
        f"decision must be None, a number (a threshold of the probability) or a rule of moew.decision "
        f"such as MostAccurate() or ShareSelected(0.05), got {rule!r}{hint}"
    )
