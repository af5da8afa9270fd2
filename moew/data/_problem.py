"""What is trained on and what is scored on, checked before anything is trained."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, column_or_1d

from moew.data._column import is_missing
from moew.data._table import check_same_columns, column_names
from moew.exceptions import InvalidInputError, MoewWarning
from moew.search._selection import holdout_split
from moew.types import Columns, FloatArray, IntArray, Labels, Rows, Task

_STRATA = 5  # quantile bins that stand for classes where a regression's rows are split


@dataclass(frozen=True)
class Part:
    """Some rows: features, labels, the user's weights, and columns for the metric and the decision."""

    X: Rows
    y: Labels
    sample_weight: FloatArray | None = None
    columns: Columns = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: IntArray) -> Part:
        """The given rows, in their order."""
        return Part(
            _safe_indexing(self.X, rows),
            self.y[rows],
            None if self.sample_weight is None else self.sample_weight[rows],
            {name: _safe_indexing(values, rows) for name, values in self.columns.items()},
        )


@dataclass(frozen=True)
class Fold:
    """A model is trained on `train` rows of the training part (None: all) and scores `scored` rows of
    the validation part."""

    train: IntArray | None
    scored: IntArray


@dataclass(frozen=True)
class Problem:
    """The training part, the validation part and which models score which of its rows."""

    task: Task
    training: Part
    validation: Part
    folds: tuple[Fold, ...]
    holdout: Part | None = None
    given_validation: bool = True
    rows_trained: IntArray | None = None  # of the user's rows; None is all

    @property
    def cross_validated(self) -> bool:
        return self.folds[0].train is not None

    @property
    def training_rows(self) -> IntArray:
        """Which of the rows that the user gave are the training part's."""
        return np.arange(len(self.training)) if self.rows_trained is None else self.rows_trained

    def without_folds(self) -> Problem:
        """The same rows, with one model trained on all of them."""
        return replace(self, folds=(Fold(None, np.arange(len(self.validation))),))

    def training_of(self, fold: Fold) -> Part:
        """The rows that the fold's models are trained on."""
        return self.training if fold.train is None else self.training.take(fold.train)

    def validation_of(self, fold: Fold) -> Part:
        """The rows that the fold's models are scored on."""
        return self.validation.take(fold.scored) if self.cross_validated else self.validation


def make_part(X: Rows, y: Labels, sample_weight: Any, columns: Columns, task: Task, what: str) -> Part:
    """A checked `Part`; `what` names it in errors, such as "validation"."""
    n = _num_samples(X)
    labels = column_or_1d(np.asarray(y), warn=True)
    for name, values in {"y": labels, "sample_weight": sample_weight, **columns}.items():
        if values is not None and (got := _num_samples(values)) != n:
            raise InvalidInputError(
                f"the {what} rows have inconsistent numbers of samples: X has {n}, {name} has {got}."
            )
    if n < (1 if what == "scored" else 2):
        raise InvalidInputError(f"the {what} rows need at least 2 samples, got n_samples = {n}.")
    labels = _check_labels(labels, task, what)
    weight = None if sample_weight is None else _check_sample_weight(sample_weight, what)
    return Part(X, labels, weight, columns)


def check_training_labels(part: Part, task: Task) -> None:
    """Raise unless there is something to learn: two classes, or targets that vary."""
    if len(np.unique(part.y)) < 2:
        kind = "one class" if task == "classification" else "one constant target"
        raise InvalidInputError(
            f"the training labels hold only {kind} ({part.y[0]!r}); there is nothing to learn."
        )


def given_problem(task: Task, training: Part, validation: Part) -> Problem:
    """The user gave both parts."""
    check_same_rows(training.X, validation.X, "the validation rows")
    if (column_names(training.X) is None) != (column_names(validation.X) is None):
        warnings.warn(
            "one of X and X_val has column names and the other has not: is one of them transformed? In a "
            "Pipeline, use transform_input=['X_val'].",
            MoewWarning,
            stacklevel=4,
        )
    if task == "classification" and _are_of_two_kinds(training.y, validation.y):
        raise InvalidInputError(
            f"the training labels are strings ({training.y[0]!r}) and the validation labels numbers "
            f"({validation.y[0]!r}), or the other way round; give both the same labels."
        )
    return Problem(task, training, validation, (Fold(None, np.arange(len(validation))),))


def check_same_rows(X: Rows, other: Rows, what: str) -> None:
    """Raise unless `other` has the columns of the training rows X."""
    if not hasattr(other, "tocsr"):
        check_same_columns(other, column_names(X), _n_columns(X), what)
    elif _n_columns(other) != _n_columns(X):
        raise InvalidInputError(
            f"{what} have {_n_columns(other)} columns, the training rows have {_n_columns(X)}."
        )


def split_problem(task: Task, rows: Part, validation: Any, rng: np.random.Generator) -> Problem:
    """No validation rows were given: hold out a share, or cross-validate with a splitter."""
    if isinstance(validation, float | np.floating):
        if not 0 < validation < 1:
            raise InvalidInputError(f"validation as a share must lie between 0 and 1, got {validation!r}.")
        _check_classes_can_be_split(rows.y, task)
        train, held = _held_out(rows.y, task, float(validation), rng)
        whole = (Fold(None, np.arange(len(held))),)
        parts = rows.take(train), rows.take(held)
        return Problem(task, *parts, whole, given_validation=False, rows_trained=train)
    splitter = check_cv(validation, rows.y, classifier=task == "classification")
    if getattr(splitter, "random_state", 0) is None and getattr(splitter, "shuffle", True):
        splitter = copy(splitter)  # a splitter left open gets a seed, as models do
        splitter.random_state = int(rng.integers(2**31))
    try:
        splits = list(splitter.split(rows.X, rows.y))
    except ValueError as error:
        raise InvalidInputError(
            f"validation={validation!r} cannot split these rows: {error}. A splitter that needs groups is "
            "passed as list(splitter.split(X, y, groups))."
        ) from error
    tested = np.concatenate([test for _, test in splits])
    if len(np.unique(tested)) < len(tested):
        raise InvalidInputError(
            f"validation={validation!r} scores some rows more than once, so that they would count as many "
            "rows; use a splitter without repeats."
        )
    ends = np.cumsum([0, *(len(test) for _, test in splits)])
    folds = tuple(Fold(train, np.arange(ends[i], ends[i + 1])) for i, (train, _) in enumerate(splits))
    return Problem(task, rows, rows.take(tested), folds, given_validation=False)


def set_aside(problem: Problem, share: float, rng: np.random.Generator) -> Problem:
    """Move a share of the validation rows to `holdout`, which no search sees."""
    if problem.cross_validated:
        raise InvalidInputError(
            "honest='holdout' needs validation rows: pass X_val and y_val, or validation as a share; "
            "with a splitter every row is trained on."
        )
    searched, held = _held_out(problem.validation.y, problem.task, share, rng)
    return replace(
        problem,
        validation=problem.validation.take(searched),
        folds=(Fold(None, np.arange(len(searched))),),
        holdout=problem.validation.take(held),
    )


def _held_out(y: Labels, task: Task, share: float, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    strata, values = strata_of(y, task), np.unique(y)
    names = values.tolist() if len(values) == strata.max() + 1 else None  # codes of bins have none
    return holdout_split(strata, share, rng, names)


def strata_of(y: Labels, task: Task) -> IntArray:
    """Codes (n,) of what a random split keeps in proportion: classes, or quantile bins of a target."""
    graded = y.dtype.kind == "f" and len(np.unique(y)) > max(2, len(y) // 2)
    if task == "classification" and not graded:
        return np.unique(y, return_inverse=True)[1]
    edges = np.unique(np.quantile(np.asarray(y, dtype=np.float64), np.linspace(0, 1, _STRATA + 1)[1:-1]))
    return _without_lone(np.searchsorted(edges, np.asarray(y, dtype=np.float64), side="right"))


def _without_lone(bins: IntArray) -> IntArray:
    """Bins (n,) from 0 on; one of a single row, which no split could halve, joins its neighbour."""
    _, codes, counts = np.unique(bins, return_inverse=True, return_counts=True)
    while len(counts) > 1 and counts.min() == 1:
        codes = np.where(codes >= max(1, int(counts.argmin())), codes - 1, codes)
        counts = np.bincount(codes)
    return np.asarray(codes)


def _are_of_two_kinds(labels: Labels, validation: Labels) -> bool:
    """Whether one are texts and the other numbers; grades, for classes with names, are meant to be."""
    if _are_texts(labels) == _are_texts(validation):
        return False
    grades = validation.dtype.kind == "f" and not all(_reads_as_number(name) for name in np.unique(labels))
    return not grades


def _are_texts(labels: Labels) -> bool:
    return labels.dtype.kind == "U" or (labels.dtype.kind == "O" and isinstance(labels[0], str))


def _reads_as_number(text: Any) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_classes_can_be_split(y: Labels, task: Task) -> None:
    classes, counts = np.unique(y, return_counts=True)
    if task == "classification" and (alone := classes[counts < 2].tolist()):
        raise InvalidInputError(
            f"a share of the rows cannot be held out: the classes {alone[:5]} have one row each. Give more "
            "rows, pass X_val and y_val, or a splitter as validation."
        )


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
            f"the {what} labels y hold NaN or infinity in {int(missing.sum())} rows: drop those rows."
        )
    if task == "classification" and what == "training":
        check_classification_targets(labels)
    return labels


def _check_sample_weight(sample_weight: Any, what: str) -> FloatArray:
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim != 1 or not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise InvalidInputError(
            f"the {what} rows' sample_weight must be one-dimensional, finite, not negative and not all zero."
        )
    return weight
