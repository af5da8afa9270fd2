"""The user's own code: `module:object` is found, and what runs may print, but not end the program."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from functools import reduce
from importlib import import_module
from pathlib import Path
from traceback import extract_tb
from typing import Any

from moew.exceptions import InvalidInputError, MoewError


def is_reference(text: str) -> bool:
    """Whether a text names an object of a module."""
    return ":" in text


def look_in(folder: Path) -> None:
    """Let modules of the folder be imported: unlike `python -m`, the command `moew` does not."""
    here = str(folder.absolute())
    if here not in sys.path:
        sys.path.insert(0, here)


def find_object(text: str, option: str, folder: Path) -> Any:
    """The object named `module:object`, from the folder or an installed package."""
    module, _, path = text.partition(":")
    if not (module and path):
        raise InvalidInputError(f"{option} {text!r} must be module:object, with a name on either side.")
    look_in(folder)
    try:
        return reduce(getattr, path.split("."), import_module(module))
    except ModuleNotFoundError as error:
        if error.name is not None and not module.startswith(error.name):
            raise InvalidInputError(f"{option} {text}: {module} needs {error.name!r}: {error}.") from error
        raise InvalidInputError(
            f"{option} {text}: there is no module {module!r} installed or in the folder {folder.absolute()}."
        ) from error
    except AttributeError as error:
        raise InvalidInputError(f"{option} {text}: {error}.") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the user's own module, with an error of its own; or its `sys.exit()`
        kind = type(error).__name__
        raise InvalidInputError(f"{option} {text}: importing {module} failed: {kind}: {error}") from error


@contextmanager
def users_code() -> Iterator[None]:
    """Send what is printed within to standard error; turn SystemExit and the like into a MoewError."""
    with _descriptor_aside(), redirect_stdout(sys.stderr):
        try:
            yield
        except (Exception, KeyboardInterrupt):
            raise
        except BaseException as error:
            place = extract_tb(error.__traceback__)[-1]
            raise MoewError(
                f"code of yours wanted to end the program, with {type(error).__name__}: {error} "
                f"({place.filename}, line {place.lineno}). Let it raise a ValueError, or return."
            ) from error


@contextmanager
def _descriptor_aside() -> Iterator[None]:
    """Redirect the file descriptor, too, which compiled libraries and other processes write to."""
    try:
        output, error = sys.stdout.fileno(), sys.stderr.fileno()
    except (OSError, ValueError, AttributeError):  # no real streams, as in a notebook
        yield
        return
    sys.stdout.flush()
    kept = os.dup(output)
    os.dup2(error, output)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, output)
        os.close(kept)
