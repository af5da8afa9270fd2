"""Errors in reading files of a run or a saved search, told in a sentence that names the file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from zipfile import BadZipFile

from moew.exceptions import InvalidInputError, MoewError, StateError


@contextmanager
def reading(path: Any) -> Iterator[None]:
    """Turn every error within into a StateError about the file."""
    try:
        yield
    except FileNotFoundError as error:
        raise InvalidInputError(f"there is no file {path}.") from error
    except (OSError, MemoryError):
        raise
    except MoewError as error:
        raise StateError(f"{path} cannot be used: {error}") from error
    except Exception as error:
        raise damaged(path, error) from error


@contextmanager
def using(path: Any) -> Iterator[None]:
    """As `reading`, but errors about the user's rows stay as they are."""
    try:
        yield
    except (MoewError, OSError, MemoryError):
        raise
    except Exception as error:
        raise damaged(path, error) from error


def damaged(path: Any, error: Exception) -> StateError:
    """What is wrong with a file whose reading raised `error`."""
    return StateError(
        f"{path} is damaged or of another version: {in_words(error)}. Make it again, or take a copy of it."
    )


def in_words(error: Exception) -> str:
    """What an error in reading says about the content, as a sentence without its full stop."""
    if isinstance(error, KeyError):
        return f"it has no entry {', '.join(map(repr, error.args))}"
    if isinstance(error, json.JSONDecodeError):
        return f"its JSON cannot be read on from line {error.lineno}, column {error.colno}"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is no text"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, BadZipFile | EOFError):
        return "it is no zip file, or its end is missing"
    if isinstance(error, MoewError):
        return str(error).rstrip(".")
    what = str(error).rstrip(".") or "no more is known"
    return f"something in it is not as moew writes it ({type(error).__name__}: {what})"
