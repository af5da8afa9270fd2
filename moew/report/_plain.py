"""Anything as plain JSON values and short texts."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

_LONGEST = 400  # characters of a setting
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # where in memory a thing lay: another text each time
_NOT_FITTED = re.compile(r", \w+_=None")
_PASSWORD = re.compile(r"(://[^\s/:@]*):[^\s@]*@")


def plain(value: Any) -> Any:
    """Lists, dicts, strings, whole numbers and finite floats; null for what is not a number."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(item) for item in (value.tolist() if isinstance(value, np.ndarray) else value)]
    if isinstance(value, np.generic) and value.dtype.kind not in "mM":  # moments would become numbers
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int) else clipped(str(value))


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
