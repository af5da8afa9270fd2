"""Several metrics: the first is optimised, the others are looked at for the same models."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moew._util.numbers import number
from moew.exceptions import Argument, InvalidInputError
from moew.metrics._resolve import resolve_metric
from moew.types import Metric

_BOUND = re.compile(r"\s*(.+?)\s*(<=|>=)\s*([^<>=\s]+)\s*")


@dataclass(frozen=True)
class Constraint:
    """A bound that the metric called `name` must keep."""

    name: str
    at_most: bool  # else at least
    bound: float

    def excess(self, value: float) -> float:
        """How far a value is beyond the bound, in the metric's units; negative where it keeps it."""
        return value - self.bound if self.at_most else self.bound - value

    def __str__(self) -> str:
        return f"{self.name} {'<=' if self.at_most else '>='} {number(self.bound)}"


def resolve_metrics(given: Any, default: Metric) -> dict[str, Metric]:
    """The metrics by name, the one to optimise first, for what the user passed as `metric`.

    A list names each by the text that the user gave, by its name in METRICS, or by the metric's own name; a
    dict has its own names.
    Anything else is one metric, None the default.
    """
    if given is None:
        return {default.name: default}
    if isinstance(given, Mapping):
        named = [(name, resolve_metric(metric)) for name, metric in given.items()]
    elif isinstance(given, list | tuple):
        named = [_named(metric) for metric in given]
    else:
        named = [_named(given)]
    shorts = [name for name, _ in named]
    if not isinstance(given, Mapping):  # such as precision_at_recall, twice with other numbers
        named = [(metric.name if shorts.count(name) > 1 else name, metric) for name, metric in named]
    if not named:
        raise InvalidInputError(Argument("metric"), " is empty: give one metric at least.", argument="metric")
    names = [name for name, _ in named]
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise InvalidInputError(f"the name of a metric must be a text, got {name!r}.", argument="metric")
        if names.count(name) > 1:
            raise InvalidInputError(
                f"two metrics are called {name!r}; name them in a dict: {{'first': …, 'second': …}}.",
                argument="metric",
            )
    return dict(named)


def _named(metric: Any) -> tuple[str, Metric]:
    resolved = resolve_metric(metric)
    short = getattr(resolved, "registry_name", "") or resolved.name
    return metric if isinstance(metric, str) else short, resolved


def resolve_constraints(given: Any, metrics: Mapping[str, Metric]) -> tuple[Constraint, ...]:
    """The bounds for what the user passed as `constraint`: None, a text such as "fpr_gap <= 0.05", or several
    in a list. A metric is named as in `metrics`, or by its own name."""
    texts = [] if given is None else [given] if isinstance(given, str) else given
    if not isinstance(texts, Sequence):
        raise _refused(given)
    return tuple(_constraint(text, metrics) for text in texts)


def _constraint(text: Any, metrics: Mapping[str, Metric]) -> Constraint:
    found = _BOUND.fullmatch(text) if isinstance(text, str) else None
    try:
        bound = float(found[3]) if found else float("nan")
    except ValueError:
        bound = float("nan")
    if found is None or not abs(bound) < float("inf"):
        raise _refused(text)
    name = found[1]
    if name not in metrics:
        of_that_name = [
            key
            for key, metric in metrics.items()
            if name in (metric.name, getattr(metric, "registry_name", ""))
        ]
        if len(of_that_name) != 1:
            raise InvalidInputError(
                Argument("constraint"),
                f" bounds {name!r}, but the metrics are {', '.join(map(repr, metrics))}; name it in ",
                Argument("metric=[…, …]"),
                ".",
                argument="constraint",
            )
        name = of_that_name[0]
    return Constraint(name, found[2] == "<=", bound)


def _refused(got: Any) -> InvalidInputError:
    return InvalidInputError(
        Argument("constraint"),
        f" must be a text such as 'fpr_gap <= 0.05' or 'recall >= 0.9', or a list of them, got {got!r}.",
        argument="constraint",
    )
