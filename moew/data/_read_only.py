"""Read-only views of the user's rows, so that models and metrics cannot change them for later candidates."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def read_only(values: Any, deep: bool = True) -> Any:
    """A read-only view of an array; a copy of a data frame or a sparse matrix; anything else as it is.

    Frames are copied in full, because scikit-learn's `copy=False` bypasses pandas' copy-on-write. Where no
    model gets the frame, `deep=False` is enough and costs nothing.
    """
    if isinstance(values, np.ndarray):
        view = values.view()
        view.flags.writeable = False
        return view
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(values, pandas.DataFrame | pandas.Series):
        return values.copy(deep=deep)
    return values.copy() if hasattr(values, "tocsr") and deep else values
