"""Split rows into training and validation rows (given, held out or cross-validated), and into halves."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from moew.data._rows import LabelledRows, check_same_kind_of_labels, check_same_rows, stacked_rows
from moew.data._table import column_names
from moew.exceptions import Argument, InPython, InvalidInputError, MoewWarning
from moew.types import IntArray, Labels, Task

_STRATA = 5  # quantile bins of a regression target, which splits stratify by


@dataclass(frozen=True)
class Fold:
    """One split: a model is trained on the training rows numbered `train` (None: all) and scored on the
    validation rows numbered `scored`."""

    train: IntArray | None
    scored: IntArray


@dataclass(frozen=True)
class SearchData:
    """The training rows, the validation rows, and the folds: which models are scored on which rows."""

    task: Task
    training: LabelledRows
    validation: LabelledRows
    folds: tuple[Fold, ...]
    holdout: LabelledRows | None = None  # rows set aside for the honest score, not used by the search
    given_validation: bool = True
    rows_trained: IntArray | None = None  # numbers of the training rows among the user's rows; None: all
    n_given: int | None = None  # so many validation rows, the first, are the user's; None: all of them
    finalist_folds: tuple[Fold, ...] = ()  # more folds of the same rows, for the few best; (): the same folds

    @property
    def cross_validated(self) -> bool:
        """Whether there are several folds, with one model each, that together score the validation rows."""
        return self.folds[0].train is not None

    @property
    def training_rows(self) -> IntArray:
        """The numbers of the training rows among the rows that the user passed."""
        return np.arange(len(self.training)) if self.rows_trained is None else self.rows_trained

    @property
    def given(self) -> LabelledRows:
        """The validation rows that the user gave, without training rows that are judged out of fold."""
        return self.validation if self.n_given is None else self.validation.take(np.arange(self.n_given))

    @property
    def n_given_rows(self) -> int:
        """How many of the validation rows are not training rows."""
        return len(self.validation) if self.n_given is None else self.n_given

    @property
    def for_finalists(self) -> SearchData:
        """The same rows with the folds of the finalists."""
        return replace(self, folds=self.finalist_folds) if self.finalist_folds else self

    def without_folds(self) -> SearchData:
        """The same rows with a single fold, whose model is trained on all training rows."""
        return replace(self, folds=_one_fold(len(self.validation)))

    def training_of(self, fold: Fold) -> LabelledRows:
        """The rows that the fold's models are trained on."""
        return self.training if fold.train is None else self.training.take(fold.train)

    def validation_of(self, fold: Fold) -> LabelledRows:
        """The rows that the fold's models are scored on."""
        return self.validation.take(fold.scored) if self.cross_validated else self.validation


def given_validation(task: Task, training: LabelledRows, validation: LabelledRows) -> SearchData:
    """Search data with the validation rows that the user passed."""
    check_same_rows(training.X, validation.X, "the validation rows")
    if (column_names(training.X) is None) != (column_names(validation.X) is None):
        warning = MoewWarning(
            "one of X and X_val has column names and the other has not: is one of them transformed? In a "
            "Pipeline, use transform_input=['X_val'].",
            argument="X_val",
        )
        warnings.warn(warning, stacklevel=5)
    if task == "classification":
        check_same_kind_of_labels(training.y, validation.y)
    return SearchData(task, training, validation, _one_fold(len(validation)))


def held_out_validation(task: Task, rows: LabelledRows, share: float, rng: np.random.Generator) -> SearchData:
    """Search data in which a share of the rows, stratified by class, is held out for validation."""
    if not 0 < share < 1:
        raise InvalidInputError(
            Argument("validation"),
            f" as a share must lie between 0 and 1, got {share!r}.",
            argument="validation",
        )
    classes, counts = np.unique(rows.y, return_counts=True)
    if task == "classification" and (alone := classes[counts < 2].tolist()):
        raise InvalidInputError(
            f"a share of the rows cannot be held out: the classes {alone[:5]} have one row each. Give more "
            "rows of them, or pass ",
            Argument("X_val and y_val"),
            ".",
            argument="validation",
        )
    train, held = _held_out(rows.y, task, share, rng)
    parts = rows.take(train), rows.take(held)
    return SearchData(task, *parts, _one_fold(len(held)), given_validation=False, rows_trained=train)


def cross_validation(task: Task, rows: LabelledRows, splitter: Any, rng: np.random.Generator) -> SearchData:
    """Search data in which every row is scored by a model that was not trained on it; `splitter` is anything
    that scikit-learn takes as `cv`."""
    validation = splitter
    splitter = check_cv(validation, rows.y, classifier=task == "classification")
    if getattr(splitter, "random_state", 0) is None and getattr(splitter, "shuffle", True):
        splitter = copy(splitter)  # a splitter without a random_state gets a seed, as models do
        splitter.random_state = int(rng.integers(2**31))
    try:
        splits = list(splitter.split(rows.X, rows.y))
    except ValueError as error:
        raise InvalidInputError(
            Argument("validation", validation),
            f" cannot split these rows: {error}.",
            InPython(" A splitter that needs groups is passed as list(splitter.split(X, y, groups))."),
            argument="validation",
        ) from error
    tested = np.concatenate([test for _, test in splits])
    if len(np.unique(tested)) < len(tested):
        raise InvalidInputError(
            Argument("validation", validation),
            " scores some rows more than once, so that they would count as many rows; use a splitter without "
            "repeats.",
            argument="validation",
        )
    ends = np.cumsum([0, *(len(test) for _, test in splits)])
    folds = tuple(Fold(train, np.arange(ends[i], ends[i + 1])) for i, (train, _) in enumerate(splits))
    return SearchData(task, rows, rows.take(tested), folds, given_validation=False)


def out_of_fold(
    data: SearchData, judged: IntArray, n_folds: int, n_finalist_folds: int, rng: np.random.Generator
) -> SearchData:
    """Search data in which the training rows numbered `judged` are validation rows, too, each predicted by
    models that were not trained on it.

    The given validation rows are dealt to the folds as well, so that every row is predicted by one model of
    each candidate. The finalists get more folds: models of half the rows flatter smooth models.
    """
    given = data.validation if data.given_validation else None
    rows = data.training.take(judged)
    folds = [_dealt(data.task, data.training, given, judged, k, rng) for k in (n_folds, n_finalist_folds)]
    return replace(
        data,
        validation=rows if given is None else stacked_rows(given, rows),
        folds=folds[0],
        n_given=0 if given is None else len(given),
        finalist_folds=folds[1],
    )


def _dealt(
    task: Task,
    training: LabelledRows,
    given: LabelledRows | None,
    judged: IntArray,
    n_folds: int,
    rng: np.random.Generator,
) -> tuple[Fold, ...]:
    """Folds of all training rows, which score the training rows `judged` behind the given rows."""
    of_training = _fold_codes(strata_of(training.y, task), n_folds, rng)
    of_given = np.empty(0, dtype=np.intp)
    if given is not None:
        of_given = _fold_codes(strata_of(given.y, task), n_folds, rng)
    scored = np.concatenate([of_given, of_training[judged]])
    return tuple(Fold(np.flatnonzero(of_training != k), np.flatnonzero(scored == k)) for k in range(n_folds))


def _fold_codes(strata: IntArray, n_folds: int, rng: np.random.Generator) -> IntArray:
    """The fold (n,) of each row: the rows of every stratum are dealt in turn, in random order."""
    order = rng.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    codes = np.empty(len(strata), dtype=np.intp)
    codes[order] = np.arange(len(strata)) % n_folds
    return codes


def set_aside(data: SearchData, share: float, rng: np.random.Generator) -> SearchData:
    """Move a share of the validation rows to `holdout`, for the honest score."""
    if data.cross_validated:
        raise InvalidInputError(
            Argument("honest", "holdout"),
            " needs validation rows: pass ",
            Argument("X_val and y_val"),
            ", or a share of the rows as ",
            Argument("validation"),
            "; in a cross-validation every row is trained on.",
            argument="honest",
        )
    searched, held = _held_out(data.validation.y, data.task, share, rng)
    return replace(
        data,
        validation=data.validation.take(searched),
        folds=_one_fold(len(searched)),
        holdout=data.validation.take(held),
    )


def strata_of(y: Labels, task: Task) -> IntArray:
    """Codes (n,) that random splits are stratified by: classes, or quantile bins of a numeric target."""
    graded = y.dtype.kind == "f" and len(np.unique(y)) > max(2, len(y) // 2)
    if task == "classification" and not graded:
        return np.unique(y, return_inverse=True)[1]
    edges = np.unique(np.quantile(np.asarray(y, dtype=np.float64), np.linspace(0, 1, _STRATA + 1)[1:-1]))
    return _without_lone(np.searchsorted(edges, np.asarray(y, dtype=np.float64), side="right"))


def stratified_halves(strata: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Row numbers of two random halves (A, B) with the same share of every code in `strata` (n,).

    The odd rows of the strata go to A and B in turn, so that the halves differ by at most one row.
    """
    order = rng.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]  # shuffled inside each stratum
    _, counts = np.unique(strata, return_counts=True)
    place = np.arange(len(strata)) - np.repeat(np.cumsum(counts) - counts, counts)  # inside the stratum
    odd = place == np.repeat(counts, counts) - np.repeat(counts % 2, counts)
    in_a = place % 2 == 0
    dealt = (np.arange(odd.sum()) + rng.integers(2)) % 2 == 0
    in_a[odd] = rng.permutation(dealt)
    is_a = np.zeros(len(strata), dtype=bool)
    is_a[order[in_a]] = True
    return np.flatnonzero(is_a), np.flatnonzero(~is_a)


def holdout_split(
    strata: IntArray, share: float, rng: np.random.Generator, names: Sequence[Any] | None = None
) -> tuple[IntArray, IntArray]:
    """Row numbers (kept, held out), holding out a `share` of every code in `strata` (n,), at least one row.

    `names` are the names of the codes 0, 1, … in errors.
    """
    strata = check_strata(strata)
    if not 0 < share < 1:
        raise InvalidInputError(
            f"the share of rows to hold out must lie between 0 and 1, got {share!r}.", argument="honest"
        )
    codes, counts = np.unique(strata, return_counts=True)
    if (counts < 2).any():
        alone = [code if names is None else names[code] for code in codes[counts < 2].tolist()]
        raise InvalidInputError(
            f"cannot hold out rows: of {alone[:5]} there is one row each, which cannot be on both sides. "
            "Give more rows of them, or hold nothing out (pass validation rows, do without ",
            Argument("honest", "holdout"),
            ").",
            argument="honest",
        )
    held = []
    for code, count in zip(codes, counts, strict=True):
        n_held = min(max(round(share * count), 1), count - 1)
        held.append(rng.permutation(np.flatnonzero(strata == code))[:n_held])
    holdout_rows = np.sort(np.concatenate(held))
    return np.setdiff1d(np.arange(len(strata)), holdout_rows), holdout_rows


def check_strata(strata: IntArray) -> IntArray:
    """The codes (n,) as an array; raise unless they are integers of at least two rows."""
    strata = np.asarray(strata)
    if strata.ndim != 1 or strata.dtype.kind not in "iu":
        raise InvalidInputError(
            f"strata must be integer codes, one for each row, got shape {strata.shape} of {strata.dtype}."
        )
    if len(strata) < 2:
        raise InvalidInputError(f"at least two validation rows are needed, got {len(strata)}.")
    return strata


def _one_fold(n_validation: int) -> tuple[Fold, ...]:
    return (Fold(None, np.arange(n_validation)),)


def _held_out(y: Labels, task: Task, share: float, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    strata, values = strata_of(y, task), np.unique(y)
    names = values.tolist() if len(values) == strata.max() + 1 else None  # bins of a target have no names
    return holdout_split(strata, share, rng, names)


def _without_lone(bins: IntArray) -> IntArray:
    """Renumber bins (n,) from 0; a bin of a single row, which cannot be split, joins its neighbour."""
    _, codes, counts = np.unique(bins, return_inverse=True, return_counts=True)
    while len(counts) > 1 and counts.min() == 1:
        codes = np.where(codes >= max(1, int(counts.argmin())), codes - 1, codes)
        counts = np.bincount(codes)
    return np.asarray(codes)
