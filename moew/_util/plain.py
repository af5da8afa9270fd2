"""Turn values into ones that JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np


def plain(value: Any, text: Callable[[str], str] = str) -> Any:
    """The value as dicts, lists, whole numbers and finite floats; None for numbers that are not finite.

    Everything else becomes a string, which `text` may change. Keys are not passed to `text`.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item, text) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(item, text) for item in value]
    if isinstance(value, np.generic) and value.dtype.kind not in "mM":  # dates would become numbers
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int) else text(str(value))
