"""Values for the page: plain JSON and short texts."""

from __future__ import annotations

import re
from pathlib import PurePath, PureWindowsPath
from typing import Any

from moew._util.state import plain as json_value

_LONGEST = 400  # characters of a setting
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # where in memory a thing lay: another text each time
_NOT_FITTED = re.compile(r", \w+_=None")
# Folders of somebody's machine, before the name of a file: after a space, a quote or a bracket, or in a URL
# of a file.
_FOLDERS = re.compile(
    r"(?:^|(?<=[\s'\"(\[=])|(?<=:///))(?:~|[A-Za-z]:)?[\\/](?:[^\\/\s'\",;]+[\\/])+(?=[^\\/\s])"
)
_PASSWORD = re.compile(r"(://[^\s/:@]*):[^\s@]*@")


def plain(value: Any) -> Any:
    """A value as JSON can hold it, with texts cut to a length that a page can show."""
    return json_value(value, clipped)


def cell(value: Any) -> Any:
    """A value of a user's column: a number, or a short text."""
    value = plain(value)
    return clipped(value, 120) if isinstance(value, str) else value


def clipped(text: str, longest: int = _LONGEST) -> str:
    """The text, or its beginning. Half a surrogate pair, which no file can hold, becomes a question mark."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def setting_text(value: Any) -> str:
    """A setting as a person writes it: no addresses in memory, nothing of a fit, no passwords, and of files
    their names alone, without the folders of the machine."""
    if isinstance(value, PurePath):
        text = value.name
    elif isinstance(value, str):
        path = PureWindowsPath(value)  # knows both kinds of separators
        # A whole path may have spaces in it; of a command's arguments each is one.
        whole = (path.drive or value.startswith("/")) and " /" not in value
        text = path.name or value if whole else value
    elif callable(value) and hasattr(value, "__qualname__"):
        text = f"{value.__module__}.{value.__qualname__}"
    else:
        text = " ".join(repr(value).split())
    text = _PASSWORD.sub(r"\1:***@", _NOT_FITTED.sub("", _ADDRESS.sub("", text)))
    return clipped(_FOLDERS.sub("", text))


def in_words(name: str) -> str:
    """A metric's name as words: "money lost" for a function money_lost."""
    return name.replace("_", " ").strip() if name.isidentifier() else name


def model_name(estimator: Any) -> str:
    """The class of a model; of a pipeline, that of its last step."""
    steps = getattr(estimator, "steps", None)
    return type(steps[-1][1] if isinstance(steps, list) and steps else estimator).__name__
