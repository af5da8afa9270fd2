"""Values for the page: plain JSON and short texts."""

from __future__ import annotations

import re
from typing import Any

from moew._util.plain import plain as json_value

_LONGEST = 400  # characters of a setting
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # where in memory a thing lay: another text each time
_NOT_FITTED = re.compile(r", \w+_=None")
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
    """A setting as a person writes it: no addresses in memory, nothing of a fit, no passwords."""
    if isinstance(value, str):
        text = value
    elif callable(value) and hasattr(value, "__qualname__"):
        text = f"{value.__module__}.{value.__qualname__}"
    else:
        text = " ".join(repr(value).split())
    return clipped(_PASSWORD.sub(r"\1:***@", _NOT_FITTED.sub("", _ADDRESS.sub("", text))))
