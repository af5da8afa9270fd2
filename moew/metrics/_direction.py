"""Whether a metric's name sounds as if smaller were better."""

from __future__ import annotations

import re
import warnings
from typing import Any

from moew.exceptions import Argument, InPython, MoewWarning

_SMALLER_IS_BETTER = frozenset(
    [
        "cost",
        "costs",
        "error",
        "errors",
        "err",
        "loss",
        "losses",
        "lost",
        "regret",
        "regrets",
        "risk",
        "risks",
        "penalty",
        "penalties",
        "damage",
        "damages",
        "deviance",
        "brier",
        "mae",
        "mse",
        "rmse",
        "rmsle",
        "mape",
        "smape",
        "fpr",
        "fnr",
        "wrong",
    ]
)
_TURNED = frozenset(
    [
        "neg",
        "negative",
        "negated",
        "minus",
        "inverse",
        "saved",
        "savings",
        "avoided",
        "reduction",
        "reduced",
        "gain",
    ]
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")  # of snake_case, camelCase and sentences


def sounds_smaller(*names: str) -> bool:
    """Whether one of the names has a word such as cost, error or loss, and none that turns it round."""
    words = {word.lower() for name in names for word in _WORD.findall(name)}
    return bool(words & _SMALLER_IS_BETTER) and not words & _TURNED


def hint_of_direction(metric: Any) -> str:
    """Warn if nobody said that the metric is maximised and its name sounds as if it should not be.

    Returns a note on it for the result; it is empty where there is nothing to note.
    """
    if getattr(metric, "direction_given", True):
        return ""
    name, function = metric.name, metric.function_name
    if not sounds_smaller(name, function):
        return ""
    warning = MoewWarning(
        f"{name} is maximised; if smaller is better, ",
        InPython(f"wrap it: make_metric({function}, "),
        Argument("greater_is_better", False),
        InPython(")"),
        " says so, and ",
        Argument("greater_is_better", True),
        " that larger is.",
        argument="metric",
    )
    warnings.warn(warning, stacklevel=4)
    return f"{name} is maximised: larger values count as better. Its name sounds as if smaller ones were."
