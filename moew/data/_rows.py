"""Records of rows: features, labels, the user's weights, groups, and columns for the metric and the rule."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, column_or_1d

from moew._util.numbers import count
from moew.data._columns import is_missing
from moew.data._groups import check_groups, group_codes
from moew.data._table import check_distinct_columns, check_same_columns, column_names
from moew.exceptions import Argument, InvalidInputError, MoewWarning
from moew.types import Columns, FloatArray, IntArray, Labels, Rows, Task


@dataclass(frozen=True)
class UserRows:
    """Rows as the user passed them, not yet checked; X is None if none were passed."""

    X: Rows
    y: Labels
    sample_weight: Any = None
    metadata: Mapping[str, Any] | None = None
    groups: Any = None


@dataclass(frozen=True)
class LabelledRows:
    """n checked rows: features X, labels y (n,), the user's weights (n,) or None, columns by name (n,), and
    groups as integer codes (n,) or None; rows of one group are never cut apart."""

    X: Rows
    y: Labels
    sample_weight: FloatArray | None = None
    columns: Columns = field(default_factory=dict)
    groups: IntArray | None = None

    def __len__(self) -> int:
        return len(self.y)

    @property
    def own_weights(self) -> FloatArray:
        """The user's weights (n,), ones if none were given."""
        return np.ones(len(self)) if self.sample_weight is None else self.sample_weight

    def take(self, rows: IntArray) -> LabelledRows:
        """The rows with these numbers, in their order."""
        return LabelledRows(
            _taken(self.X, rows),
            self.y[rows],
            None if self.sample_weight is None else self.sample_weight[rows],
            {name: _taken(values, rows) for name, values in self.columns.items()},
            None if self.groups is None else self.groups[rows],
        )


def _taken(values: Any, rows: IntArray) -> Any:
    # scikit-learn first looks for the kind of table, which takes longer than to take the rows of an array.
    return values[rows] if isinstance(values, np.ndarray) else _safe_indexing(values, rows)


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
        _stacked_groups(first, second),
    )


def _stacked_groups(first: LabelledRows, second: LabelledRows) -> IntArray | None:
    """The groups of both; rows without groups are groups of their own beside rows with groups."""
    if first.groups is None and second.groups is None:
        return None
    known = [rows.groups for rows in (first, second) if rows.groups is not None]
    above = max(int(groups.max()) for groups in known) + 1
    parts = [above + np.arange(len(rows)) if rows.groups is None else rows.groups for rows in (first, second)]
    return np.concatenate(parts)


def _stacked(first: Rows, second: Rows) -> Rows:
    """The rows of two tables of the same kind, one below the other."""
    if hasattr(first, "iloc") and hasattr(second, "iloc"):
        import pandas as pd

        # As in the training rows: categories that differ would make texts of a categorical column. Numbers
        # stay as they are: whole numbers here may be fractions there.
        first = first.copy(deep=False)
        for name, dtype in second.dtypes.items():
            if dtype == "category":
                first[name] = first[name].where(first[name].isin(dtype.categories)).astype(dtype)
        return pd.concat([first, second], ignore_index=True)
    if hasattr(first, "tocsr") or hasattr(second, "tocsr"):
        from scipy.sparse import csr_matrix, vstack

        try:
            return vstack([csr_matrix(first), csr_matrix(second)], format="csr")
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"the validation rows are a {type(first).__name__} and the training rows a "
                f"{type(second).__name__}, and they cannot be judged together: {error} Give both alike.",
                argument="X_val",
            ) from error
    if hasattr(first, "vstack") and hasattr(second, "vstack"):
        return import_module("polars").concat([first, second], how="vertical_relaxed")
    return np.concatenate([np.asarray(first), np.asarray(second)])


def labelled_rows(given: UserRows, task: Task, what: str, names: Sequence[str]) -> LabelledRows:
    """Check the user's rows; columns in `names` that the user did not pass are taken from X if it has them.

    `what` names these rows in errors, such as "validation".
    """
    columns = columns_from(given.metadata, given.X, names)
    n = _num_samples(given.X)
    _check_single_target(given.y, what)
    refuse_masked(given.y, "y")
    refuse_masked(given.sample_weight, "sample_weight")
    try:
        labels = column_or_1d(np.asarray(given.y), warn=True)
    except (ValueError, TypeError) as error:
        raise InvalidInputError(
            f"the {what} labels y must be one value for each row: {error}", argument="y"
        ) from error
    groups = None if given.groups is None else group_codes(check_groups(given.groups, what))
    of_rows = [("y", labels), ("sample_weight", given.sample_weight), ("groups", groups), *columns.items()]
    for name, values in of_rows:
        if values is None:
            continue
        try:
            got = _num_samples(values)
        except TypeError as error:
            raise InvalidInputError(
                f"the {what} rows' ",
                Argument(name),
                f" must hold a value for each of the {n} rows, got {values!r}.",
                argument=name,
            ) from error
        if got != n:
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
    return LabelledRows(given.X, labels, weight, columns, groups)


def _check_single_target(y: Any, what: str) -> None:
    shape = np.shape(y) if hasattr(y, "shape") else np.shape(np.asarray(y, dtype=object))
    if len(shape) != 2 or shape[1] < 2:
        return
    raise InvalidInputError(
        f"the {what} labels y have shape {tuple(shape)}: several values for each row. A metric judges one "
        "target: fit a search for each column of y, or, if the columns are one-hot classes, pass the classes,"
        " y.argmax(axis=1).",
        argument="y",
    )


def with_shared_groups(training: UserRows, validation: UserRows) -> tuple[UserRows, UserRows]:
    """Both sets of rows, with groups as integer codes that name the same group in both.

    Warns of groups that are in both, and of validation rows without groups beside training rows with them.
    """
    if validation.X is None or training.groups is None:
        return training, validation
    if validation.groups is None:
        warning = MoewWarning(
            Argument("groups"),
            " of the training rows are of no use without those of the validation rows: halves of the "
            "validation rows may cut groups apart. Pass ",
            Argument("groups_val"),
            ", too.",
            argument="groups_val",
        )
        warnings.warn(warning, stacklevel=5)
        return training, validation
    given = [
        check_groups(rows.groups, what) for rows, what in ((training, "training"), (validation, "validation"))
    ]
    if all(len(values) for values in given) and _are_texts(given[0]) != _are_texts(given[1]):
        raise InvalidInputError(
            f"groups must be texts in both training and validation rows, or numbers in both; got "
            f"{given[0].tolist()[0]!r} in training and {given[1].tolist()[0]!r} in validation rows.",
            argument="groups_val",
        )
    if given[0].dtype.kind != given[1].dtype.kind:
        # NumPy would make floats of signed and unsigned integers.
        given = [values.astype(object) for values in given]
    codes = group_codes(np.concatenate(given))
    n = len(given[0])
    if shared := len(np.intersect1d(codes[:n], codes[n:])):
        warning = MoewWarning(
            f"{shared} groups have both training and validation rows: scores on the validation rows, the "
            "honest score too, are then better than on new groups.",
            argument="groups_val",
        )
        warnings.warn(warning, stacklevel=5)
    return replace(training, groups=codes[:n]), replace(validation, groups=codes[n:])


def columns_from(metadata: Mapping[str, Any] | None, X: Rows, names: Sequence[str]) -> dict[str, Any]:
    """The columns the user passed, and those of `names` that the user did not pass but X has."""
    if not (metadata is None or isinstance(metadata, Mapping) or hasattr(metadata, "columns")):
        raise InvalidInputError(
            f"metadata must be a dict of columns or a data frame, got {type(metadata).__name__}.",
            argument="metadata",
        )
    if hasattr(metadata, "columns"):
        check_distinct_columns(metadata, "metadata")
    found: dict[str, Any] = {} if metadata is None else {name: metadata[name] for name in metadata}
    for name, values in found.items():
        if _n_dimensions(values) != 1:
            raise InvalidInputError(
                f"the column {name!r} must have one value for each row, got {values!r}.", argument="metadata"
            )
    in_X = getattr(X, "columns", ())
    found.update({name: X[name] for name in names if name not in found and name in in_X})
    return {name: np.asarray(values) for name, values in found.items()}


def _n_dimensions(values: Any) -> int:
    """The number of dimensions; -1 for lists of different lengths."""
    try:
        return int(np.ndim(values))
    except ValueError:
        return -1


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
    if hasattr(X, "tocsr") and len(X.shape) == 2:
        return X.tocsr()
    try:
        X = X if hasattr(X, "shape") else np.asarray(X)
    except ValueError as error:
        raise InvalidInputError(
            f"X must have two dimensions (rows, columns), but its rows have different lengths ({error}). "
            "Give each row a value for every column.",
            argument="X",
        ) from error
    if len(X.shape) != 2:
        raise InvalidInputError(
            f"X must have two dimensions (rows, columns), got shape {X.shape}. Reshape your data, or turn "
            "text and other single values into columns first.",
            argument="X",
        )
    refuse_masked(X, "X")
    check_distinct_columns(X)
    return X


def refuse_masked(values: Any, name: str) -> None:
    """Raise if values of a masked array are masked: what lies below a mask is no value."""
    if isinstance(values, np.ma.MaskedArray) and (hidden := int(np.sum(np.ma.getmaskarray(values)))):
        raise InvalidInputError(
            Argument(name),
            f" is a masked array with {count(hidden, 'masked value')}, which no model can see; leave these "
            "rows out, or fill them in, as with array.filled(…).",
            argument=name,
        )


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
        try:
            labels = np.asarray(labels, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"the {what} labels y must be numbers for a regressor, got {labels.tolist()[0]!r} ({error}). "
                "Turn them into numbers, or use a classifier.",
                argument="y",
            ) from error
    if labels.dtype.kind == "O":
        missing = is_missing(labels)
    else:
        missing = ~np.isfinite(labels) if labels.dtype.kind == "f" else np.zeros(len(labels), dtype=bool)
    if labels.dtype.kind == "O" and task == "classification" and not missing.any():
        try:
            np.unique(labels)
        except TypeError as error:
            raise InvalidInputError(
                f"the {what} labels y are of kinds that cannot be compared ({error}); make all of them "
                "texts, or all of them numbers.",
                argument="y",
            ) from error
    if missing.any():
        raise InvalidInputError(
            f"the {what} labels y hold NaN or infinity in {int(missing.sum())} rows: drop those rows.",
            argument="y",
        )
    if task == "classification" and what == "training":
        try:
            check_classification_targets(labels)
        except (ValueError, TypeError) as error:
            raise InvalidInputError(
                f"the training labels y cannot be classes: {error}", argument="y"
            ) from error
    return labels


def _check_sample_weight(sample_weight: Any, what: str) -> FloatArray:
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"the {what} rows' ",
            Argument("sample_weight"),
            f" must be numbers, one for each row: {error}.",
            argument="sample_weight",
        ) from error
    if weight.ndim != 1 or not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise InvalidInputError(
            f"the {what} rows' ",
            Argument("sample_weight"),
            " must be one-dimensional, finite, not negative and not all zero.",
            argument="sample_weight",
        )
    return weight
