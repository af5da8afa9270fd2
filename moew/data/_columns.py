"""Columns of tables, and labels: their names and values, what is missing, and which labels there are."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import numpy as np

from moew._util.checks import refusing
from moew._util.numbers import count
from moew.exceptions import Argument, InvalidInputError
from moew.types import BoolArray, Features, FloatArray, IntArray, Labels

Kind = Literal["numeric", "binary", "categorical"]
# How the names of date dtypes begin in pandas, polars and Arrow.
_DATES = ("datetime", "timedelta", "period", "Date", "Duration", "timestamp", "date", "duration", "time")


@dataclass(frozen=True)
class Column:
    """How one column is encoded: (value − offset) / scale, value == levels[1], or one-hot of levels."""

    kind: Kind
    levels: tuple[Any, ...] = ()
    offset: float = 0.0
    scale: float = 1.0
    fill: float = 0.0  # replaces a missing number
    flag_missing: bool = False


def column_names(X: Features) -> list[str] | None:
    """The column names of a data frame, None for an array."""
    return [str(name) for name in X.columns] if hasattr(X, "columns") else None


def check_distinct_columns(X: Features, argument: str = "X") -> None:
    """Raise if two columns of a data frame have the same name."""
    counts = Counter(column_names(X) or [])
    if repeated := sorted(name for name, count in counts.items() if count > 1):
        raise InvalidInputError(
            f"{argument} has more than one column named {repeated}; give each its own name.",
            argument=argument,
        )


def check_same_columns(X: Features, names: list[str] | None, n_columns: int, what: str) -> None:
    """Raise unless X has the columns of the training rows (same names in the same order, or same number)."""
    _refuse_sparse(X)
    got = column_names(X)
    if names is not None and got is not None and got != names:
        missing, extra = [n for n in names if n not in got], [n for n in got if n not in names]
        detail = f"missing: {missing}, extra: {extra}" if missing or extra else "they are in another order"
        raise InvalidInputError(
            f"{what} must have the columns of the training rows ({detail}).", argument="X"
        )
    if got is None:
        _check_two_dimensions(np.shape(X))
    check_width(np.shape(X)[1], n_columns, what)


def check_width(got: int, n_columns: int, what: str) -> None:
    """Raise unless a table has as many columns as the training rows."""
    if got != n_columns:
        raise InvalidInputError(
            f"{what} have {got} columns, the training rows have {n_columns}.", argument="X"
        )


def _check_two_dimensions(shape: tuple[int, ...], advice: str = "") -> None:
    if len(shape) != 2:
        raise InvalidInputError(
            f"X must have two dimensions (rows, columns), got shape {shape}.{advice}", argument="X"
        )


def _refuse_sparse(X: Features) -> None:
    if hasattr(X, "tocsr"):
        raise InvalidInputError(
            "sparse X cannot be encoded here; pass a dense array (X.toarray()), or choose an embedding "
            "and base weights that do not look at X, such as ",
            Argument("embedding", "label"),
            ".",
            argument="X",
        )


def columns_of(X: Features) -> list[tuple[str, np.ndarray[Any, Any]]]:
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
    _check_two_dimensions(values.shape)
    return [(f"column {j}", values[:, j]) for j in range(values.shape[1])]


def huge_columns(X: Features) -> list[str]:
    """Names of the columns with infinite values or values too large for single precision."""
    limit = float(np.finfo(np.float32).max)
    try:
        floats = [(name, values) for name, values in columns_of(X) if values.dtype.kind == "f"]
    except Exception:  # this only adds detail to another error, which must not be replaced by a new one
        return []
    return [name for name, values in floats if (np.abs(values.astype(np.float64)) > limit).any()]


def marked_as_categories(X: Features) -> list[bool]:
    """For each column, whether its dtype in the data frame is categorical."""
    if hasattr(X, "columns"):
        return [str(X[name].dtype) == "category" for name in X.columns]
    return [False] * int(np.shape(X)[1])


def _frame_column(series: Any) -> np.ndarray[Any, Any]:
    """A data frame's column as a plain array; nullable and string dtypes become object or float."""
    dtype = str(series.dtype)
    if dtype.startswith(_DATES):
        raise InvalidInputError(
            f"column {series.name!r} holds dates ({dtype}); turn it into numbers first, such as days.",
            argument="X",
        )
    values = np.asarray(series)
    return values if values.dtype.kind in "biuf" else np.asarray(series, dtype=object)


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


def n_rows(X: Features) -> int:
    """The number of rows of X, a list, an array, a data frame, a sparse matrix, …"""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def two_dimensional(X: Features) -> Features:
    """X (n, D) with rows that can be indexed: lists become arrays, sparse matrices CSR; others stay."""
    if hasattr(X, "tocsr") and len(X.shape) == 2:
        return X.tocsr()
    different = "X must have two dimensions (rows, columns), but its rows have different lengths ({}). "
    with refusing(lambda error: different.format(error) + "Give each row a value for every column.", "X"):
        X = X if hasattr(X, "shape") else np.asarray(X)
    advice = " Reshape your data, or turn text and other single values into columns first."
    _check_two_dimensions(X.shape, advice)
    refuse_masked(X, "X")
    check_distinct_columns(X)
    return X


def without_columns(X: Features, features: Sequence[str] | None, names: Sequence[str]) -> Features:
    """A data frame X without those columns of `names` that are not among `features`, the columns of the
    training rows; anything else as it is."""
    if features is None or not hasattr(X, "columns"):
        return X
    own = [name for name in X.columns if name in features or name not in names]
    return X if len(own) == len(X.columns) else X[own]


def refuse_masked(values: Any, name: str) -> None:
    """Raise if values of a masked array are masked: what lies below a mask is no value."""
    if isinstance(values, np.ma.MaskedArray) and (hidden := int(np.sum(np.ma.getmaskarray(values)))):
        raise InvalidInputError(
            Argument(name),
            f" is a masked array with {count(hidden, 'masked value')}, which no model can see; leave these "
            "rows out, or fill them in, as with array.filled(…).",
        )


def check_weights(
    values: Any, n: int | None = None, name: str = "sample_weight", whose: str = ""
) -> FloatArray:
    """Weights (n,) of rows as float64: finite, not negative, and not all zero."""
    try:
        weights = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        wrong = f" must be numbers, one for each row: {error}."
        raise InvalidInputError(whose, Argument(name), wrong, argument=name) from error
    right_shape = weights.ndim == 1 and n in (None, len(weights))
    if right_shape and np.isfinite(weights).all() and (weights >= 0).all() and weights.any():
        return weights
    seen = f" with values from {weights.min()} to {weights.max()}" if right_shape and weights.size else ""
    number = "" if n is None else f"{n} "
    wanted = f" must be {number}finite numbers of at least 0, not all of them zero; got shape"
    raise InvalidInputError(whose, Argument(name), f"{wanted} {weights.shape}{seen}.", argument=name)


def is_missing(values: np.ndarray[Any, Any]) -> BoolArray:
    """Whether each of the values (n,) is missing: NaN, None or pandas' NA."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind == "O":
        # NaN does not equal itself; None and pandas' NA have to be named.
        return np.array([v is None or type(v).__name__ == "NAType" or v != v for v in values], dtype=bool)
    return np.zeros(len(values), dtype=bool)


def are_numbers(seen: np.ndarray[Any, Any], is_category: bool) -> bool:
    """Whether a column is numeric, from its values that are not missing; no if its dtype is categorical.
    Decimals, as databases give them, are numbers."""
    if seen.dtype.kind == "O" and len(seen) and not is_category:
        return all(isinstance(v, float | int | np.number | Decimal) for v in seen)
    return seen.dtype.kind in "biuf" and not is_category


def is_numeric_array(X: Features) -> bool:
    """Whether X is a NumPy array of numbers, so that its columns need not be checked one by one."""
    return isinstance(X, np.ndarray) and X.dtype.kind in "biuf"


def in_order(levels: Iterable[Any]) -> tuple[Any, ...]:
    """Sort levels by type and then by value, since values of different types may not be comparable."""
    return tuple(sorted(levels, key=lambda v: (type(v).__name__, v)))


def plain(value: Any) -> Any:
    """A value that JSON can hold: NumPy scalars become Python ones, other types strings."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, bool | int | float | str) else str(value)


def label_levels(y: Labels) -> list[Any]:
    """The distinct labels in y, sorted, as values that JSON can hold."""
    return list(in_order(set(_distinct_labels(y)[0])))


def label_positions(y: Labels, levels: list[Any]) -> IntArray:
    """The index (n,) of each label of y in `levels`; raises on a label that is not there."""
    distinct, inverse = _distinct_labels(y)
    place = {level: position for position, level in enumerate(levels)}
    if unseen := set(distinct) - set(place):
        raise InvalidInputError(
            f"labels {sorted(unseen, key=str)!r} were not in the training rows, which have {levels!r}.",
            argument="y",
        )
    return np.array([place[label] for label in distinct], dtype=np.intp)[inverse]


def number_labels(y: Labels, what: str = "given") -> FloatArray:
    """The targets of a regression as float64 (n,); raises if one is not a finite number."""
    first = np.asarray(y, dtype=object).ravel().tolist()[:1]
    words = f"the {what} labels y must be numbers for a regressor, got {str(first)[1:-1]}"
    with refusing(lambda e: f"{words} ({e}). Turn them into numbers, or use a classifier.", "y"):
        values = np.asarray(y, dtype=np.float64)
    _check_one_dimension(values)
    check_none_missing(values, what)
    return values


def check_none_missing(labels: np.ndarray[Any, Any], what: str = "given") -> None:
    """Raise if one of the labels (n,) is missing or infinite."""
    missing = ~np.isfinite(labels) if labels.dtype.kind == "f" else is_missing(labels)
    if missing.any():
        raise InvalidInputError(
            f"the {what} labels y hold NaN or infinity in {int(missing.sum())} rows: drop these rows, whose "
            "label is missing.",
            argument="y",
        )


def _distinct_labels(y: Labels) -> tuple[list[Any], IntArray]:
    """The distinct labels, as values that JSON can hold, and each row's index (n,) among them."""
    values = np.asarray(y)
    _check_one_dimension(values)
    check_none_missing(values)
    if values.dtype.kind != "O":
        found, inverse = np.unique(values, return_inverse=True)
        return [plain(value) for value in found.tolist()], inverse
    labels = [plain(value) for value in values.tolist()]  # np.unique may be unable to sort mixed types
    distinct = list(dict.fromkeys(labels))
    place = {label: position for position, label in enumerate(distinct)}
    return distinct, np.array([place[label] for label in labels], dtype=np.intp)


def _check_one_dimension(values: np.ndarray[Any, Any]) -> None:
    if values.ndim != 1 or len(values) == 0:
        raise InvalidInputError(f"y must be one label for each row, got shape {values.shape}.", argument="y")
