"""`module:object` from the command line: the user's own functions and models."""

from __future__ import annotations

import sys
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

from moew.exceptions import InvalidInputError


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
