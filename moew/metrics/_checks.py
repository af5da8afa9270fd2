"""What a metric is refused for: its function's arguments, its columns, what it returned."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from inspect import Parameter, signature
from numbers import Real
from typing import Any

import numpy as np

from moew.exceptions import InvalidInputError
from moew.types import Columns


def extra_arguments(function: Callable[..., Any]) -> tuple[list[str], list[str]]:
    """Names of the arguments after the first two, without and with a default."""
    try:
        parameters = list(signature(function).parameters.values())
    except (TypeError, ValueError):  # some functions written in C do not say what they take
        return [], []
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    takes_any = any(p.kind is Parameter.VAR_POSITIONAL for p in parameters)
    if len([p for p in parameters if p.kind in positional]) < 2 and not takes_any:
        raise InvalidInputError(
            f"a metric is a function of (y_true, output, …), but {function_name(function)!r} takes "
            f"{[p.name for p in parameters]!r}."
        )
    rest = [p for i, p in enumerate(parameters) if not (i < 2 and p.kind in positional)]
    fixed = function.keywords if isinstance(function, partial) else {}  # already decided by the user
    named = [p for p in rest if p.kind in (*positional, Parameter.KEYWORD_ONLY) and p.name not in fixed]
    if unnamed := [p.name for p in named if p.kind is Parameter.POSITIONAL_ONLY]:
        raise InvalidInputError(
            f"columns are passed by name, but {function_name(function)!r} takes {unnamed!r} only by position."
        )
    required = [p.name for p in named if p.default is Parameter.empty]
    return required, [p.name for p in named if p.default is not Parameter.empty]


def function_name(function: Any) -> str:
    """What to call a metric's function."""
    if isinstance(function, partial):
        return function_name(function.func)
    return str(getattr(function, "__name__", None) or type(function).__name__)


def check_bounds(bounds: Any) -> None:
    """Raise unless they are None or (lowest, highest)."""
    if bounds is None:
        return
    numbers = isinstance(bounds, tuple) and all(isinstance(b, Real) for b in bounds)
    if not (numbers and len(bounds) == 2 and bounds[0] < bounds[1]):
        raise InvalidInputError(f"bounds must be None or (lowest, highest), got {bounds!r}.")


def one_number(result: Any, name: str) -> float:
    """What a metric returned as a float; raise if it is not one real number."""
    if isinstance(result, float | int):
        return float(result)
    try:
        array = np.asarray(result)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.size == 1:
        if array.dtype.kind in "biuf":
            return float(array.reshape(()))
        if isinstance(result, Real | Decimal):
            return float(result)
    shape = f" of shape {array.shape}" if array.ndim else ""
    text = repr(result)
    shown = text if len(text) <= 80 else text[:77] + "…"
    raise InvalidInputError(
        f"the metric {name!r} must return one number, it returned {type(result).__name__}{shape}: {shown}.",
        argument="metric",
    )


def missing_weights(metric_name: str) -> InvalidInputError:
    """The error for sample weights that the metric cannot do without."""
    return InvalidInputError(
        f"the metric {metric_name!r} cannot do without sample weights of the rows it is evaluated on; pass "
        "them (sample_weight_val=… with X_val, else sample_weight=…), or give its argument a default."
    )


def check_length(column: Any, n_rows: int, column_name: str, metric_name: str) -> None:
    """Raise unless `column` has a value for each of `n_rows` rows."""
    shape = np.shape(column)
    if not shape or shape[0] != n_rows:
        raise InvalidInputError(
            f"the metric {metric_name!r} needs one value of {column_name!r} for each of the {n_rows} rows it "
            f"is evaluated on, got {f'{shape[0]} values' if shape else 'a single value'}."
        )


def missing_columns(
    metric_name: str, missing: list[str], columns: Columns, argument: str
) -> InvalidInputError:
    """The error for columns that the metric takes and that were not passed."""
    there = f"only {sorted(columns)!r}" if columns else "none"
    how = ", ".join(f"{name!r}: …" for name in missing)
    return InvalidInputError(
        f"the metric {metric_name!r} needs {missing!r} for each row, but the columns passed are {there}; "
        f"pass {argument}={{{how}}}."
    )
