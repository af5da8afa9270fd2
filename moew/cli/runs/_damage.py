"""Files of a run come from anywhere: what goes wrong in reading them is said in one line that names them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moew.exceptions import MoewError, StateError


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Everything that goes wrong within is about the file: no rows of the user's play a part."""
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
    """What was read from the file meets rows of the user's, whose own errors stay as they are."""
    try:
        yield
    except (MoewError, OSError, MemoryError):
        raise
    except Exception as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> StateError:
    return StateError(f"{path} is damaged or of another version: {type(error).__name__}: {error}")
