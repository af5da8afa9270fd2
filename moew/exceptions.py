"""Errors and warnings that carry the argument they are about.

A message names arguments as `Argument`s, so that Python can show them as `decision=None` and the command line
as its option. Text that helps only in Python is marked as `InPython`. Control characters, which names from
files may hold, are shown as escapes, and very long messages are cut.

    raise InvalidInputError(Argument("radius"), " must be a positive number, got -1.")
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moew._printable import printable, shortened


@dataclass(frozen=True)
class Argument:
    """An argument named in a message, with or without a value: `radius`, `embedding='label'`."""

    name: str
    value: Any = ...  # Ellipsis: the message names no value

    @property
    def has_value(self) -> bool:
        """Whether the message names a value of the argument."""
        return self.value is not ...

    def __str__(self) -> str:
        return f"{self.name}={self.value!r}" if self.has_value else self.name


@dataclass(frozen=True)
class InPython:
    """A part of a message that helps only in Python code; the command line leaves it out."""

    text: str

    def __str__(self) -> str:
        return self.text


class _Worded(Exception):  # noqa: N818  (also the base of the warnings)
    """A message made of parts, some of which are arguments.

    Parameters
    ----------
    parts : texts and arguments that make up the message
    argument : the name of the argument that the message is about; by default the one that it begins with,
        None if it begins with none
    """

    def __init__(self, *parts: str | Argument | InPython, argument: str | None = None) -> None:
        super().__init__(shortened(printable("".join(map(str, parts)))))
        self.parts = parts
        begins_with = parts[0].name if parts and isinstance(parts[0], Argument) else None
        self.argument = argument or begins_with

    def worded(self, say: Callable[[Argument], str]) -> str:
        """The message with every argument written by `say`, without the parts that help only in Python."""
        kept = [part for part in self.parts if not isinstance(part, InPython)]
        text = "".join(say(part) if isinstance(part, Argument) else part for part in kept)
        return shortened(printable(text))


class MoewError(_Worded):
    """Base of every error that moew raises on purpose."""


class InvalidInputError(MoewError, ValueError):
    """An argument cannot be used; the message says what was passed and what to do."""


class MissingLibraryError(InvalidInputError, ImportError):
    """What was asked for needs a library that is not installed; the message says which extra has it."""


class UnsupportedEstimatorError(MoewError, TypeError):
    """The estimator cannot be trained with example weights the way it is set up."""


class UndefinedMetricError(MoewError, ValueError):
    """The metric has no value on these rows (a class is missing, nothing was selected, …)."""


class SearchFailedError(MoewError, ValueError, TypeError):
    """No candidate could be trained and scored; the message shows the first failure.

    If all fail, the cause is nearly always bad input, for which an estimator would raise a ValueError or
    a TypeError; so this is both.
    """


class TrainingFailedError(MoewError, RuntimeError):
    """The training of a candidate ended without a model or an error: it left the program or took too long."""


class TrainingDivergedError(MoewError, FloatingPointError):
    """Training ended with parameters that are not finite."""


class StateError(MoewError, ValueError):
    """A saved state cannot be written or read; the message says what to do."""


class MissingObjectError(StateError):
    """A state names a function or object of the user's, `name`, that was not passed."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the state uses {name!r}, which is yours, not moew's, and is never imported by itself: "
            f"pass it as objects={{{name!r}: …}} when loading."
        )
        self.name = name


class WriteError(MoewError, OSError):
    """A file cannot be written; the message names it and says what to do."""


class StorageError(MoewError, OSError):
    """The storage of a study did not work for a while; the message says why, and what is kept."""


class MoewWarning(_Worded, UserWarning):
    """Base of every warning that moew gives."""
