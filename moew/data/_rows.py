"""Records of rows: features, labels, the user's weights, groups, and columns for the metric and the rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, column_or_1d

from moew._util.checks import refusing, warn
from moew._util.numbers import reads_as_number
from moew.data._columns import (
    check_distinct_columns,
    check_none_missing,
    check_same_columns,
    check_weights,
    check_width,
    column_names,
    is_missing,
    number_labels,
    refuse_masked,
    two_dimensional,
)
from moew.exceptions import Argument, InPython, InvalidInputError
from moew.types import Array, Columns, Features, FloatArray, IntArray, Labels, Task


@dataclass(frozen=True)
class Rows:
    """Rows with labels: features X (n, D), labels y (n,), weights (n,), columns for the metric that are not
    features, by name or as a data frame, and groups (n,). Not yet checked; X is None if there are none."""

    X: Features
    y: Labels
    sample_weight: Any = None
    columns: Mapping[str, Any] | None = None
    groups: Any = None


def as_rows(given: Any, name: str) -> Rows:
    """The rows that a user passed as the argument `name`: None, (X, y), or rows with more."""
    if isinstance(given, Rows):
        rows = given
    elif given is None:
        rows = Rows(None, None)
    elif isinstance(given, tuple | list) and len(given) == 2:
        rows = Rows(*given)
    else:
        raise InvalidInputError(
            Argument(name), f" must be (X, y) or moew.Rows(X, y, …), got {type(given).__name__}."
        )
    if (rows.X is None) != (rows.y is None):
        raise InvalidInputError(Argument(name), " needs rows X and their labels y; one of them is None.")
    if rows.X is None and any(part is not None for part in (rows.sample_weight, rows.columns, rows.groups)):
        raise InvalidInputError(
            Argument(name), " has weights, columns or groups, and no rows X that they belong to."
        )
    return rows if rows.X is None else replace(rows, X=two_dimensional(rows.X))


@dataclass(frozen=True)
class LabelledRows:
    """n checked rows: features X, labels y (n,), the user's weights (n,) or None, columns by name (n,), and
    groups as integer codes (n,) or None; rows of one group are never cut apart."""

    X: Features
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
    """Two sets of rows as one; columns that only one of them has are left out.

    Weights that only one of them has are ones in the other. Those of the second are scaled to the mean of the
    first: how much a row counts beside others is known within each set alone.
    """
    weights: FloatArray | None = None
    if first.sample_weight is not None or second.sample_weight is not None:
        own, others = first.own_weights, second.own_weights
        weights = np.concatenate([own, others * (own.mean() / others.mean())])
    both = [name for name in first.columns if name in second.columns]
    return LabelledRows(
        _stacked(first.X, second.X),
        np.concatenate([first.y, second.y]),
        weights,
        {name: np.concatenate([first.columns[name], second.columns[name]]) for name in both},
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


def _stacked(first: Features, second: Features) -> Features:
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

        kinds = f"the validation rows are a {type(first).__name__} and the training rows a "
        kinds += f"{type(second).__name__}, and they cannot be evaluated together"
        with refusing(lambda error: f"{kinds}: {error} Give both alike.", "validation"):
            return vstack([csr_matrix(first), csr_matrix(second)], format="csr")
    if hasattr(first, "vstack") and hasattr(second, "vstack"):
        return import_module("polars").concat([first, second], how="vertical_relaxed")
    return np.concatenate([np.asarray(first), np.asarray(second)])


def labelled_rows(given: Rows, task: Task, what: str, names: Sequence[str]) -> LabelledRows:
    """Check the user's rows, `what` in errors, such as "validation"; columns in `names` that the user did not
    pass are taken from X if it has them."""
    columns = columns_from(given.columns, given.X, names)
    n = _num_samples(given.X)
    _check_single_target(given.y, what)
    refuse_masked(given.y, "y")
    refuse_masked(given.sample_weight, "sample_weight")
    with refusing(lambda error: f"the {what} labels y must be one value for each row: {error}", "y"):
        labels = column_or_1d(np.asarray(given.y), warn=True)
    groups = None if given.groups is None else group_codes(check_groups(given.groups, what))
    parts = [("y", labels), ("sample_weight", given.sample_weight), ("groups", groups), *columns.items()]
    _check_lengths(n, what, parts)
    if n < (1 if what == "scored" else 2):
        raise InvalidInputError(
            f"the {what} rows need at least 2 samples, got n_samples = {n}.", argument="X"
        )
    labels = _check_labels(labels, task, what)
    weight = given.sample_weight
    weight = None if weight is None else check_weights(weight, n, whose=f"the {what} rows' ")
    return LabelledRows(given.X, labels, weight, columns, groups)


def _check_lengths(n: int, what: str, parts: Sequence[tuple[str, Any]]) -> None:
    for name, values in parts:
        try:
            got = n if values is None else _num_samples(values)
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


def _check_single_target(y: Any, what: str) -> None:
    shape = np.shape(y if hasattr(y, "shape") else np.asarray(y, dtype=object))
    if len(shape) == 2 and shape[1] > 1:
        raise InvalidInputError(
            f"the {what} labels y have shape {tuple(shape)}: several values for each row. A metric evaluates "
            "one target: fit a search for each column of y, or, if the columns are one-hot classes, pass the "
            "classes, y.argmax(axis=1).",
            argument="y",
        )


def with_shared_groups(training: Rows, validation: Rows) -> tuple[Rows, Rows]:
    """Both sets of rows, with groups as integer codes that name the same group in both.

    Warns of groups that are in both, and of validation rows without groups beside training rows with them.
    """
    if validation.X is None or training.groups is None:
        return training, validation
    if validation.groups is None:
        warn(
            Argument("groups"),
            " of the training rows are of no use without those of the validation rows: halves of the "
            "validation rows may cut groups apart. Give groups to the validation rows, too.",
            argument="validation",
        )
        return training, validation
    own, others = check_groups(training.groups, "training"), check_groups(validation.groups, "validation")
    if len(own) and len(others) and _are_texts(own) != _are_texts(others):
        raise InvalidInputError(
            f"groups must be texts in both training and validation rows, or numbers in both; got "
            f"{own.tolist()[0]!r} in training and {others.tolist()[0]!r} in validation rows.",
            argument="validation",
        )
    if own.dtype.kind != others.dtype.kind:
        # NumPy would make floats of signed and unsigned integers.
        own, others = own.astype(object), others.astype(object)
    codes, n = group_codes(np.concatenate([own, others])), len(own)
    if shared := len(np.intersect1d(codes[:n], codes[n:])):
        warn(
            f"{shared} groups have both training and validation rows: scores on the validation rows, the "
            "honest score too, are then better than on new groups.",
            argument="validation",
        )
    return replace(training, groups=codes[:n]), replace(validation, groups=codes[n:])


def columns_from(given: Mapping[str, Any] | None, X: Features, names: Sequence[str]) -> dict[str, Any]:
    """The columns the user passed, and those of `names` that the user did not pass but X has."""
    if not (given is None or isinstance(given, Mapping) or hasattr(given, "columns")):
        raise InvalidInputError(
            f"columns must be a dict or a data frame, got {type(given).__name__}.", argument="columns"
        )
    if hasattr(given, "columns"):
        check_distinct_columns(given, "columns")
    found: dict[str, Any] = {} if given is None else {name: given[name] for name in given}
    for name, values in found.items():
        if _n_dimensions(values) != 1:
            raise InvalidInputError(
                f"the column {name!r} must have one value for each row, got {values!r}.", argument="columns"
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


def check_training_labels(rows: LabelledRows, task: Task) -> None:
    """Raise unless there is something to learn: two classes, or targets that vary."""
    if len(np.unique(rows.y)) < 2:
        kind = "one class" if task == "classification" else "one constant target"
        raise InvalidInputError(
            f"the training labels hold only {kind} ({rows.y.tolist()[0]!r}); there is nothing to learn.",
            argument="y",
        )


def check_same_rows(X: Features, other: Features, what: str) -> None:
    """Raise unless `other` has the columns of the training rows X."""
    if hasattr(other, "tocsr"):
        check_width(np.shape(other)[1], np.shape(X)[1], what)
    else:
        check_same_columns(other, column_names(X), np.shape(X)[1], what)


def check_same_kind_of_labels(training: Labels, validation: Labels) -> None:
    """Raise if labels are texts in one set and numbers in the other, unless validation labels are grades
    (floats) of classes with text names."""
    if _are_texts(training) == _are_texts(validation):
        return
    graded = validation.dtype.kind == "f" and not all(reads_as_number(name) for name in np.unique(training))
    if not graded:
        raise InvalidInputError(
            f"the training labels are strings ({training.tolist()[0]!r}) and the validation labels numbers "
            f"({validation.tolist()[0]!r}), or the other way round; give both the same labels.",
            argument="validation",
        )


def _are_texts(labels: Labels) -> bool:
    return labels.dtype.kind == "U" or (labels.dtype.kind == "O" and isinstance(labels[0], str))


def _check_labels(labels: Labels, task: Task, what: str) -> Labels:
    if task == "regression":
        return number_labels(labels, what)
    check_none_missing(labels, what)
    if labels.dtype.kind == "O":
        kinds = f"the {what} labels y are of kinds that cannot be compared ({{}}); make all of them texts, "
        with refusing(lambda error: kinds.format(error) + "or all of them numbers.", "y"):
            np.unique(labels)
    if what == "training":
        with refusing(lambda error: f"the training labels y cannot be classes: {error}", "y"):
            check_classification_targets(labels)
    return labels


def check_groups(groups: Any, what: str) -> Array:
    """The groups (n,) as an array, none of them missing."""
    values = np.asarray(groups)
    if values.ndim != 1:
        raise InvalidInputError(
            f"the {what} rows' ",
            Argument("groups"),
            f" must hold one number or text for each row, got shape {values.shape}.",
            InPython(" A column of X is passed with its values: groups=X['query']."),
            argument="groups",
        )
    if (missing := is_missing(values)).any():
        numbers = np.flatnonzero(missing)
        raise InvalidInputError(
            f"{len(numbers)} of the {what} rows, such as row {numbers[0]}, counted from 0, have no group (",
            Argument("groups"),
            " is missing there): give every row a group; a row that belongs to no other gets one of its own.",
            argument="groups",
        )
    return values


def group_codes(values: Array) -> IntArray:
    """Integer codes (n,) of groups; integers are their own codes."""
    if values.dtype.kind in "iu":
        return np.asarray(values.astype(np.int64))
    if values.dtype.kind != "O":
        return np.unique(values, return_inverse=True)[1]
    codes: dict[Any, int] = {}  # objects of several kinds cannot be sorted
    return np.array([codes.setdefault(value, len(codes)) for value in values.tolist()], dtype=np.int64)
