"""Values as JSON can hold them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np


def plain(value: Any, text: Callable[[str], str] = str) -> Any:
    """Dicts, lists, whole numbers and finite floats; null for numbers that are not finite.

    Everything else becomes a string, which `text` may change. Keys stay as they are.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item, text) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(item, text) for item in value]
    if isinstance(value, np.generic) and value.dtype.kind not in "mM":  # moments would become numbers
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int) else text(str(value))
