"""Checks of the functions that users pass."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from moew.exceptions import Argument, InvalidInputError


def check_takes_rows(function: Callable[..., Any], argument: str) -> None:
    """Raise unless `function`, passed as `argument`, can be called as function(X, y)."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # some functions of other languages do not tell
    try:
        signature.bind(None, None)
    except TypeError as error:
        name = getattr(function, "__name__", type(function).__name__)
        raise InvalidInputError(
            Argument(argument),
            f" as a function is called as function(X, y), and {name}{signature} cannot be: {error}.",
            argument=argument,
        ) from error
