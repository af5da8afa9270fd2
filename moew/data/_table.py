"""Names and values of the columns of a data frame or an array."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from moew.exceptions import Argument, InvalidInputError
from moew.types import Rows


def column_names(X: Rows) -> list[str] | None:
    """The column names of a data frame, None for an array."""
    return [str(name) for name in X.columns] if hasattr(X, "columns") else None


def check_distinct_columns(X: Rows, argument: str = "X") -> None:
    """Raise if two columns of a data frame have the same name."""
    counts = Counter(column_names(X) or [])
    if repeated := sorted(name for name, count in counts.items() if count > 1):
        raise InvalidInputError(
            f"{argument} has more than one column named {repeated}; give each its own name.",
            argument=argument,
        )


def check_same_columns(X: Rows, names: list[str] | None, n_columns: int, what: str) -> None:
    """Raise unless X has the columns of the training rows (same names in the same order, or same number)."""
    _refuse_sparse(X)
    got = column_names(X)
    if names is not None and got is not None and got != names:
        missing, extra = [n for n in names if n not in got], [n for n in got if n not in names]
        detail = f"missing: {missing}, extra: {extra}" if missing or extra else "they are in another order"
        raise InvalidInputError(
            f"{what} must have the columns of the training rows ({detail}).", argument="X"
        )
    shape = np.shape(X)
    if got is None and len(shape) != 2:
        raise InvalidInputError(
            f"X must have two dimensions (rows, columns), got shape {shape}.", argument="X"
        )
    width = len(got) if got is not None else shape[1]
    if width != n_columns:
        raise InvalidInputError(
            f"{what} have {width} columns, the training rows have {n_columns}.", argument="X"
        )


def _refuse_sparse(X: Rows) -> None:
    if hasattr(X, "tocsr"):
        raise InvalidInputError(
            "sparse X cannot be encoded here; pass a dense array (X.toarray()), or choose an embedding "
            "and base weights that do not look at X, such as ",
            Argument("embedding", "label"),
            ".",
            argument="X",
        )


def columns_of(X: Rows) -> list[tuple[str, np.ndarray[Any, Any]]]:
    """Name and values (n,) of every column; categories are objects, with None for missing values."""
    _refuse_sparse(X)
    if hasattr(X, "columns"):
        check_distinct_columns(X)
        return [(f"column {name!r}", _frame_column(X[name])) for name in X.columns]
    values = np.asarray(X)
    if values.dtype.kind in "mM":
        raise InvalidInputError(
            f"X holds dates ({values.dtype}); turn them into numbers first, such as days.", argument="X"
        )
    if values.ndim != 2:
        raise InvalidInputError(
            f"X must have two dimensions (rows, columns), got shape {values.shape}.", argument="X"
        )
    return [(f"column {j}", values[:, j]) for j in range(values.shape[1])]


def huge_columns(X: Rows) -> list[str]:
    """Names of the columns with infinite values or values too large for single precision."""
    limit = float(np.finfo(np.float32).max)
    try:
        floats = [(name, values) for name, values in columns_of(X) if values.dtype.kind == "f"]
    except Exception:  # this only adds detail to another error, which must not be replaced by a new one
        return []
    return [name for name, values in floats if (np.abs(values.astype(np.float64)) > limit).any()]


def marked_as_categories(X: Rows) -> list[bool]:
    """For each column, whether its dtype in the data frame is categorical."""
    if hasattr(X, "columns"):
        return [str(X[name].dtype) == "category" for name in X.columns]
    return [False] * int(np.shape(X)[1])


# How the names of date dtypes begin in pandas, polars and Arrow.
_DATES = ("datetime", "timedelta", "period", "Date", "Duration", "timestamp", "date", "duration", "time")


def _frame_column(series: Any) -> np.ndarray[Any, Any]:
    """A data frame's column as a plain array; nullable and string dtypes become object or float."""
    dtype = str(series.dtype)
    if dtype.startswith(_DATES):
        raise InvalidInputError(
            f"column {series.name!r} holds dates ({dtype}); turn it into numbers first, such as days.",
            argument="X",
        )
    values = np.asarray(series)
    if values.dtype.kind in "biuf":
        return values
    return np.asarray(series, dtype=object)
