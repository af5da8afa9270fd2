"""What users pass: what parameters must be, declared as words and a test, as in
`check_parameters(self, cooling=POSITIVE)`; functions; and kinds of models; warnings."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sklearn.base import is_regressor

from moew._util.numbers import is_number, is_whole
from moew.exceptions import Argument, InvalidInputError, MoewWarning


@dataclass(frozen=True)
class Wanted:
    """What a parameter must be: in words after its name, and as a test of a value."""

    words: str
    fits: Callable[[Any], object]

    def check(self, name: str | Argument, value: Any) -> None:
        """Raise unless the value of the parameter of this name fits."""
        if not self.fits(value):
            argument = name.name if isinstance(name, Argument) else name
            raise InvalidInputError(name, f" {self.words}, got {value!r}.", argument=argument)

    def or_none(self) -> Wanted:
        """The same, or None."""
        return Wanted(f"{self.words}, or None", lambda value: value is None or self.fits(value))


def check_parameters(owner: Any, **wanted: Wanted) -> None:
    """Raise unless the attributes of these names are what is wanted."""
    for name, what in wanted.items():
        what.check(Argument(name), getattr(owner, name))


def at_least(least: int) -> Wanted:
    """A whole number of `least` or more."""
    return Wanted(f"must be a whole number of at least {least}", lambda value: is_whole(value, least))


def one_of(*choices: str) -> Wanted:
    """One of these texts."""
    named = ", ".join(map(repr, choices))
    return Wanted(f"must be one of {named}", lambda value: isinstance(value, str) and value in choices)


COUNT = Wanted("must be a whole number of 1 or more", lambda value: is_whole(value, 1))
POSITIVE = Wanted("must be a positive number", lambda value: is_number(value) and value > 0)
FRACTION = Wanted("must be a number above 0 and at most 1", lambda value: is_number(value) and 0 < value <= 1)
FLAG = Wanted("must be True or False", lambda value: isinstance(value, bool))
COLUMN = Wanted("must be the name of a column", lambda value: isinstance(value, str) and value != "")
TASK = Wanted(
    "must be 'classification' or 'regression'", lambda task: task in ("classification", "regression")
)


@contextmanager
def refusing(words: Callable[[Exception], str], argument: str) -> Iterator[None]:
    """Turn a ValueError or TypeError within into an error about the argument, in these words for it."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise InvalidInputError(words(error), argument=argument) from error


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
        ) from error


def warn(*parts: str | Argument, argument: str | None = None, stacklevel: int = 5) -> None:
    """Give a warning about an argument, at the line of the `stacklevel`-th caller."""
    warnings.warn(MoewWarning(*parts, argument=argument), stacklevel=stacklevel + 1)


def is_regression(model: Any) -> bool:
    """Whether the model is a regressor by its scikit-learn tags; without tags, whether it has no classes."""
    if hasattr(model, "__sklearn_tags__"):
        return bool(is_regressor(model))
    return not hasattr(model, "classes_")
