"""Records of rows: features, labels, the user's weights, and columns for the metric and the decision rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, column_or_1d

from moew.data._columns import is_missing
from moew.data._table import check_same_columns, column_names
from moew.exceptions import Argument, InvalidInputError
from moew.types import Columns, FloatArray, IntArray, Labels, Rows, Task


@dataclass(frozen=True)
class UserRows:
    """Rows as the user passed them, not yet checked; X is None if none were passed."""

    X: Rows
    y: Labels
    sample_weight: Any = None
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class LabelledRows:
    """n checked rows: features X, labels y (n,), the user's weights (n,) or None, and columns by name
    (n,)."""

    X: Rows
    y: Labels
    sample_weight: FloatArray | None = None
    columns: Columns = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def own_weights(self) -> FloatArray:
        """The user's weights (n,), ones if none were given."""
        return np.ones(len(self)) if self.sample_weight is None else self.sample_weight

    def take(self, rows: IntArray) -> LabelledRows:
        """The rows with these numbers, in their order."""
        return LabelledRows(
            _safe_indexing(self.X, rows),
            self.y[rows],
            None if self.sample_weight is None else self.sample_weight[rows],
            {name: _safe_indexing(values, rows) for name, values in self.columns.items()},
        )


def stacked_rows(first: LabelledRows, second: LabelledRows) -> LabelledRows:
    """Two sets of rows as one; columns and weights that only one of them has are left out."""
    weights = first.sample_weight, second.sample_weight
    return LabelledRows(
        _stacked(first.X, second.X),
        np.concatenate([first.y, second.y]),
        None if weights[0] is None or weights[1] is None else np.concatenate([weights[0], weights[1]]),
        {
            name: np.concatenate([first.columns[name], second.columns[name]])
            for name in first.columns
            if name in second.columns
        },
    )


def _stacked(first: Rows, second: Rows) -> Rows:
    """The rows of two tables of the same kind, one below the other."""
    if hasattr(first, "iloc") and hasattr(second, "iloc"):
        import pandas as pd

        # As in the training rows: categories that differ would make texts of a categorical column.
        return pd.concat([first.astype(second.dtypes), second], ignore_index=True)
    if hasattr(first, "tocsr") or hasattr(second, "tocsr"):
        from scipy.sparse import csr_matrix, vstack

        return vstack([csr_matrix(first), csr_matrix(second)], format="csr")
    if hasattr(first, "vstack"):  # polars
        return first.cast(dict(second.schema)).vstack(second)
    return np.concatenate([np.asarray(first), np.asarray(second)])


def labelled_rows(given: UserRows, task: Task, what: str, names: Sequence[str]) -> LabelledRows:
    """Check the user's rows; columns in `names` that the user did not pass are taken from X if it has them.

    `what` names these rows in errors, such as "validation".
    """
    columns = columns_from(given.metadata, given.X, names)
    n = _num_samples(given.X)
    labels = column_or_1d(np.asarray(given.y), warn=True)
    for name, values in {"y": labels, "sample_weight": given.sample_weight, **columns}.items():
        if values is not None and (got := _num_samples(values)) != n:
            raise InvalidInputError(
                f"the {what} rows have inconsistent numbers of samples: X has {n}, {name} has {got}.",
                argument=name,
            )
    if n < (1 if what == "scored" else 2):
        raise InvalidInputError(
            f"the {what} rows need at least 2 samples, got n_samples = {n}.", argument="X"
        )
    labels = _check_labels(labels, task, what)
    weight = None if given.sample_weight is None else _check_sample_weight(given.sample_weight, what)
    return LabelledRows(given.X, labels, weight, columns)


def columns_from(metadata: Mapping[str, Any] | None, X: Rows, names: Sequence[str]) -> dict[str, Any]:
    """The columns the user passed, and those of `names` that the user did not pass but X has."""
    if not (metadata is None or isinstance(metadata, Mapping) or hasattr(metadata, "columns")):
        raise InvalidInputError(
            f"metadata must be a dict of columns or a data frame, got {type(metadata).__name__}.",
            argument="metadata",
        )
    found: dict[str, Any] = {} if metadata is None else {name: metadata[name] for name in metadata}
    for name, values in found.items():
        if np.ndim(values) != 1:
            raise InvalidInputError(
                f"the column {name!r} must have one value for each row, got {values!r}.", argument="metadata"
            )
    in_X = getattr(X, "columns", ())
    found.update({name: X[name] for name in names if name not in found and name in in_X})
    return {name: np.asarray(values) for name, values in found.items()}


def without_columns(X: Rows, features: Sequence[str] | None, names: Sequence[str]) -> Rows:
    """A data frame X without those columns of `names` that are no features; anything else as it is.

    `features` are the columns of the training rows, None if they had no names.
    """
    if features is None or not hasattr(X, "columns"):
        return X
    own = [name for name in X.columns if name in features or name not in names]
    return X if len(own) == len(X.columns) else X[own]


def n_rows(X: Rows) -> int:
    """The number of rows of X, a list, an array, a data frame, a sparse matrix, …"""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def two_dimensional(X: Rows) -> Rows:
    """X (n, D) with rows that can be indexed: lists become arrays, sparse matrices CSR; others stay."""
    if hasattr(X, "tocsr"):
        return X.tocsr()
    X = X if hasattr(X, "shape") else np.asarray(X)
    if len(X.shape) != 2:
        raise InvalidInputError(
            f"X must have two dimensions (rows, columns), got shape {X.shape}. Reshape your data, or turn "
            "text and other single values into columns first.",
            argument="X",
        )
    return X


def check_training_labels(rows: LabelledRows, task: Task) -> None:
    """Raise unless there is something to learn: two classes, or targets that vary."""
    if len(np.unique(rows.y)) < 2:
        kind = "one class" if task == "classification" else "one constant target"
        raise InvalidInputError(
            f"the training labels hold only {kind} ({rows.y.tolist()[0]!r}); there is nothing to learn.",
            argument="y",
        )


def check_same_rows(X: Rows, other: Rows, what: str) -> None:
    """Raise unless `other` has the columns of the training rows X."""
    if not hasattr(other, "tocsr"):
        check_same_columns(other, column_names(X), _n_columns(X), what)
    elif _n_columns(other) != _n_columns(X):
        raise InvalidInputError(
            f"{what} have {_n_columns(other)} columns, the training rows have {_n_columns(X)}.", argument="X"
        )


def check_same_kind_of_labels(training: Labels, validation: Labels) -> None:
    """Raise if labels are texts in one set and numbers in the other.

    Graded validation labels (floats) for classes with text names are allowed.
    """
    if _are_texts(training) == _are_texts(validation):
        return
    graded = validation.dtype.kind == "f" and not all(_reads_as_number(name) for name in np.unique(training))
    if not graded:
        raise InvalidInputError(
            f"the training labels are strings ({training.tolist()[0]!r}) and the validation labels numbers "
            f"({validation.tolist()[0]!r}), or the other way round; give both the same labels.",
            argument="y_val",
        )


def _are_texts(labels: Labels) -> bool:
    return labels.dtype.kind == "U" or (labels.dtype.kind == "O" and isinstance(labels[0], str))


def _reads_as_number(text: Any) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _n_columns(X: Rows) -> int:
    return int(X.shape[1]) if hasattr(X, "shape") else int(np.asarray(X).shape[1])


def _check_labels(labels: Labels, task: Task, what: str) -> Labels:
    if task == "regression":
        labels = np.asarray(labels, dtype=np.float64)
    if labels.dtype.kind == "O":
        missing = is_missing(labels)
    else:
        missing = ~np.isfinite(labels) if labels.dtype.kind == "f" else np.zeros(len(labels), dtype=bool)
    if missing.any():
        raise InvalidInputError(
            f"the {what} labels y hold NaN or infinity in {int(missing.sum())} rows: drop those rows.",
            argument="y",
        )
    if task == "classification" and what == "training":
        check_classification_targets(labels)
    return labels


def _check_sample_weight(sample_weight: Any, what: str) -> FloatArray:
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim != 1 or not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise InvalidInputError(
            f"the {what} rows' ",
            Argument("sample_weight"),
            " must be one-dimensional, finite, not negative and not all zero.",
            argument="sample_weight",
        )
    return weight
