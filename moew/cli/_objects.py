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


def look_in_this_folder() -> None:
    """Modules of the current folder can be imported, as with `python -m`; the command `moew` does not."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)


def find_object(text: str, option: str) -> Any:
    """The object named `module:object`, from the current folder or an installed package."""
    module, _, path = text.partition(":")
    look_in_this_folder()
    try:
        return reduce(getattr, path.split("."), import_module(module))
    except ModuleNotFoundError as error:
        if error.name is not None and not module.startswith(error.name):
            raise InvalidInputError(f"{option} {text}: {module} needs {error.name!r}: {error}.") from error
        raise InvalidInputError(
            f"{option} {text}: there is no module {module!r} in this folder or installed."
        ) from error
    except AttributeError as error:
        raise InvalidInputError(f"{option} {text}: {error}.") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the user's own module, with an error of its own; or its `sys.exit()`
        kind = type(error).__name__
        raise InvalidInputError(f"{option} {text}: importing {module} failed: {kind}: {error}") from error
