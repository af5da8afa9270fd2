"""Rows as other people's code may have them: what it writes into them reaches no other candidate."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def lent(values: Any) -> Any:
    """An array that cannot be written into; a data frame of pandas as a copy; anything else as it is.

    Since version 3 pandas copies what is written, when it is written; before, all is copied here.
    """
    if isinstance(values, np.ndarray):
        view = values.view()
        view.flags.writeable = False
        return view
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(values, pandas.DataFrame | pandas.Series):
        return values.copy(deep=int(pandas.__version__.split(".")[0]) < 3)
    return values
