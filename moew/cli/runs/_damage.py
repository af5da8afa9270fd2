"""Errors in reading files of a run, told in one line that names the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moew.exceptions import MoewError, StateError


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn every error within into a StateError about the file."""
    try:
        yield
    except (OSError, MemoryError):
        raise
    except MoewError as error:
        raise StateError(f"{path} cannot be used: {error}") from error
    except Exception as error:
        raise _damaged(path, error) from error


@contextmanager
def using(path: Path) -> Iterator[None]:
    """As `reading`, but errors about the user's rows stay as they are."""
    try:
        yield
    except (MoewError, OSError, MemoryError):
        raise
    except Exception as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> StateError:
    return StateError(f"{path} is damaged or of another version: {type(error).__name__}: {error}")
