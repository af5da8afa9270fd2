"""Rows as other people's code may have them: what it writes into them reaches no other candidate."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def read_only(values: Any, deep: bool = True) -> Any:
    """An array that cannot be written into; a data frame or a sparse matrix as a copy; others as they are.

    Frames are copied whole, though pandas would copy what is written when it is written: scikit-learn's
    `copy=False` goes past that. Where no model gets the frame, `deep=False` is enough, and costs nothing.
    """
    if isinstance(values, np.ndarray):
        view = values.view()
        view.flags.writeable = False
        return view
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(values, pandas.DataFrame | pandas.Series):
        return values.copy(deep=deep)
    return values.copy() if hasattr(values, "tocsr") and deep else values
