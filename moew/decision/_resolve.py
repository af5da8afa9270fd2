"""Decision rules by name, and from what the user wrote."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

from moew._util.numbers import reads_as_number
from moew.decision._rules import (
    EqualFalsePositiveRates,
    FixedThreshold,
    MostAccurate,
    RecallReached,
    ShareSelected,
)
from moew.decision._tuned import Tuned
from moew.exceptions import Argument, InvalidInputError
from moew.types import DecisionRule


class NamedRule(NamedTuple):
    """A decision rule by name: what makes it, an example of its number ("" for none), and the rows that it
    can be fitted on, which are named behind "@"."""

    make: Callable[..., DecisionRule]
    example: str
    fitted_on: tuple[str, ...] = ("train", "validation")
    meaning: str = ""  # of the number, where the name does not say it


DECISION_RULES = {
    "threshold": NamedRule(partial(FixedThreshold, of="probability"), "0.5", (), "a probability"),
    "score": NamedRule(FixedThreshold, "0", ()),
    "accurate": NamedRule(MostAccurate, ""),
    "select": NamedRule(ShareSelected, "0.05", ("train", "validation", "each")),
    "recall": NamedRule(RecallReached, "0.95"),
    "equal_fpr": NamedRule(EqualFalsePositiveRates, "0.2", meaning="the share selected"),
    "tuned": NamedRule(Tuned, "", ()),
}


def resolve_decision(rule: Any) -> DecisionRule | None:
    """None stays None, a number is a threshold of the probability, a text one of DECISION_RULES, such as
    "select=0.05" or "accurate@train", and a decision rule stays what it is."""
    if rule is None:
        return None
    if isinstance(rule, str):
        return named_rule(rule)
    if isinstance(rule, Real) and not isinstance(rule, bool):
        with suppress(OverflowError):  # of whole numbers that no float can hold
            return FixedThreshold(float(rule), of="probability")
    if isinstance(rule, DecisionRule) and not isinstance(rule, type):
        return rule
    hint = f"; did you mean {rule.__name__}(…)?" if isinstance(rule, type) else "."
    raise InvalidInputError(
        Argument("decision"),
        " must be None, a number (a threshold of the probability) or a rule of moew.decision such as "
        f"MostAccurate() or ShareSelected(0.05), got {rule!r}{hint}",
    )


def named_rule(text: str) -> DecisionRule:
    """The rule of a text such as "select=0.05@train", or "tuned=sex" for thresholds by that column."""
    named, _, on = text.partition("@")
    name, _, value = named.partition("=")
    if name == "tuned" and value and not on:
        return Tuned(by=value)
    found = DECISION_RULES.get(name)
    if found is None or bool(found.example) != bool(value):
        why = f" is none of {', '.join(rule_examples())}."
    elif on and not found.fitted_on:
        why = f": it is not fitted on rows of your choice, leave out @{on}."
    elif on and on not in found.fitted_on:
        why = f": @{on} is no rows to fit it on; say @{' or @'.join(found.fitted_on)}."
    elif value and not reads_as_number(value):
        why = f": {name} needs a number, got {value!r}."
    else:
        try:
            return found.make(*([float(value)] if value else []), **({"on": on} if on else {}))
        except InvalidInputError as error:
            raise InvalidInputError(Argument("decision", text), ": ", *error.parts) from error
    raise InvalidInputError(Argument("decision", text), why)


def rule_examples() -> list[str]:
    """How each rule is written, with an example of its number."""
    return [
        (f"{name}={rule.example}" if rule.example else name) + (f" ({rule.meaning})" if rule.meaning else "")
        for name, rule in DECISION_RULES.items()
    ]
