"""Fast operations on labels for the metrics, which are called tens of thousands of times."""

from __future__ import annotations

from typing import Any

import numpy as np

from moew.exceptions import Argument, InPython, InvalidInputError
from moew.types import Array, BoolArray, IntArray

_SMALL_RANGE = 4096  # integers within this range are counted without sorting


def is_positive(labels: Any, pos_label: Any) -> BoolArray:
    """Whether each label (n,) is the positive one; without `pos_label` that is 1, others being 0 or −1."""
    values: Array = np.asarray(labels)
    if pos_label is None:
        if values.dtype.kind == "b":
            return values
        if values.dtype.kind not in "iuf" or not ((values == 1) | (values == 0) | (values == -1)).all():
            raise InvalidInputError(
                "which label is positive is not clear from the labels; give the metric a ",
                Argument("pos_label"),
                InPython("=…"),
                argument="pos_label",
            )
        pos_label = 1
    same: Any = values == pos_label
    # NumPy returns a single False if the types cannot be compared.
    return same if isinstance(same, np.ndarray) else np.zeros(values.shape, dtype=np.bool_)


def codes_of(labels: Any) -> tuple[Array, IntArray]:
    """Distinct labels (C,), and the index (n,) of each row's label among them.

    For small integers the distinct labels are the whole range between the smallest and the largest, some
    of which may not occur.
    """
    labels = np.asarray(labels)
    if labels.dtype.kind in "iu" and labels.size:
        low, high = int(labels.min()), int(labels.max())
        if high - low < _SMALL_RANGE:
            return np.arange(low, high + 1), labels.astype(np.int64, copy=False) - low
    try:
        distinct, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise InvalidInputError(f"labels or groups of mixed kinds cannot be ordered: {error}.") from error
    return distinct, codes


def shown_positive(labels: Any, pos_label: Any) -> str:
    """The positive label as a message shows it."""
    if pos_label is None:
        pos_label = np.asarray(labels).dtype.kind == "b" or 1
    return repr(pos_label.item() if isinstance(pos_label, np.generic) else pos_label)


def shown_labels(labels: Any) -> str:
    """The first few distinct labels as a message shows them."""
    distinct = list(dict.fromkeys(np.asarray(labels).tolist()))
    return ", ".join(map(repr, distinct[:5])) + (", …" if len(distinct) > 5 else "") or "none"
