"""Split rows into training and validation rows (given, held out or cross-validated), and into halves."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from inspect import signature
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, check_cv

from moew.data._groups import coded_groups, count_groups, deal_groups
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
        if self.n_given is not None:
            return self.n_given
        return 0 if self.cross_validated else len(self.validation)

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
    """Search data in which a share of the rows, stratified by class, is held out for validation, groups
    whole."""
    if not 0 < share < 1:
        raise InvalidInputError(
            Argument("validation"),
            f" as a share must lie between 0 and 1, got {share!r}.",
            argument="validation",
        )
    if rows.groups is not None:
        coded_groups(rows.groups)  # raises if there is only one
    alone, unit = lone_labels(rows), "row" if rows.groups is None else "group"
    if task == "classification" and alone:
        raise InvalidInputError(
            f"a share of the rows cannot be held out: the classes {alone[:5]} have one {unit} each. Give "
            f"more {unit}s of them, or pass ",
            Argument("X_val and y_val"),
            ".",
            argument="validation",
        )
    train, held = _held_out(rows, task, share, rng)
    parts = rows.take(train), rows.take(held)
    return SearchData(task, *parts, _one_fold(len(held)), given_validation=False, rows_trained=train)


def cross_validation(task: Task, rows: LabelledRows, splitter: Any, rng: np.random.Generator) -> SearchData:
    """Search data in which every row is scored by a model that was not trained on it, nor on a row of its
    group; `splitter` is anything that scikit-learn takes as `cv`."""
    validation = splitter
    if rows.groups is not None and (splitter is None or isinstance(splitter, Integral)):
        splitter = _group_splitter(splitter, task, rows.groups)
    try:
        splitter = check_cv(splitter, rows.y, classifier=task == "classification")
    except ValueError as error:
        raise InvalidInputError(
            Argument("validation"),
            f" must be 'auto', None, a share, a number of folds or a splitter, got {validation!r}.",
            argument="validation",
        ) from error
    if getattr(splitter, "random_state", 0) is None and getattr(splitter, "shuffle", True):
        splitter = copy(splitter)  # a splitter without a random_state gets a seed, as models do
        splitter.random_state = int(rng.integers(2**31))
    try:
        splits = _splits(splitter, rows)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            Argument("validation", validation),
            f" cannot split these rows: {error}.",
            InPython(" A splitter that needs groups gets them from fit(X, y, groups=…)."),
            argument="validation",
        ) from error
    if not splits:
        raise InvalidInputError(
            Argument("validation", validation),
            " gives no splits; use a number of folds, or a splitter with at least one split.",
            argument="validation",
        )
    n = len(rows)
    splits = [(_row_numbers(a, n, validation), _row_numbers(b, n, validation)) for a, b in splits]
    if rows.groups is not None:
        _check_whole(splits, rows.groups, validation)
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
    of_training = fold_codes(strata_of(training.y, task), n_folds, rng, training.groups)
    of_given: IntArray = np.empty(0, dtype=np.intp)
    if given is not None:
        of_given = fold_codes(strata_of(given.y, task), n_folds, rng, given.groups)
        if given.groups is not None and training.groups is not None:
            # A group on both sides is scored by the models that were not trained on it.
            fold_of = dict(zip(training.groups.tolist(), of_training.tolist(), strict=True))
            of_given = np.array(
                [fold_of.get(g, own) for g, own in zip(given.groups.tolist(), of_given.tolist(), strict=True)]
            )
    scored = np.concatenate([of_given, of_training[judged]])
    folds = [Fold(np.flatnonzero(of_training != k), np.flatnonzero(scored == k)) for k in range(n_folds)]
    return tuple(fold for fold in folds if len(fold.scored))  # models have no answer to no rows


def fold_codes(
    strata: IntArray, n_folds: int, rng: np.random.Generator, groups: IntArray | None = None
) -> IntArray:
    """The fold (n,) of each row: the rows of every stratum are dealt in turn, in random order; with `groups`
    (n,) every group is in one fold, and some folds are empty if there are fewer groups than folds."""
    codes = np.full(len(strata), n_folds - 1, dtype=np.intp)
    if groups is None:
        order = rng.permutation(len(strata))
        order = order[np.argsort(strata[order], kind="stable")]
        codes[order] = np.arange(len(strata)) % n_folds
        return codes
    left = np.arange(len(strata))
    for fold in range(n_folds - 1):
        if count_groups(groups[left]) < 2:
            break
        dealt = deal_groups(strata[left], groups[left], 1 / (n_folds - fold), rng)
        codes[left[dealt]] = fold
        left = left[~dealt]
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
    searched, held = _held_out(data.validation, data.task, share, rng)
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


def stratified_halves(
    strata: IntArray, rng: np.random.Generator, groups: IntArray | None = None
) -> tuple[IntArray, IntArray]:
    """Row numbers of two random halves (A, B) with the same share of every code in `strata` (n,).

    The odd rows of the strata go to A and B in turn, so that the halves differ by at most one row. With
    `groups` (n,) every group is in one half, and the halves differ as the sizes of the groups make them.
    """
    if groups is not None:
        in_first = deal_groups(strata, groups, 0.5, rng)
        return np.flatnonzero(in_first), np.flatnonzero(~in_first)
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
    strata: IntArray,
    share: float,
    rng: np.random.Generator,
    names: Sequence[Any] | None = None,
    groups: IntArray | None = None,
) -> tuple[IntArray, IntArray]:
    """Row numbers (kept, held out), holding out a `share` of every code in `strata` (n,), at least one row.

    `names` are the names of the codes 0, 1, … in errors. With `groups` (n,) every group is on one side, and
    the shares are as near as that allows; a code of two or more groups is on both sides.
    """
    strata = check_strata(strata)
    if not 0 < share < 1:
        raise InvalidInputError(
            f"the share of rows to hold out must lie between 0 and 1, got {share!r}.", argument="honest"
        )
    if groups is not None:
        is_held = deal_groups(strata, groups, share, rng)
        return np.flatnonzero(~is_held), np.flatnonzero(is_held)
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


def bootstrap_rows(n: int, rng: np.random.Generator, groups: IntArray | None = None) -> IntArray:
    """Row numbers of a bootstrap sample of n rows; with `groups` (n,), of as many whole groups as there
    are."""
    if groups is None:
        return rng.integers(n, size=n)
    codes, sizes = coded_groups(groups)
    members, starts = np.argsort(codes, kind="stable"), np.cumsum(sizes) - sizes
    drawn = rng.integers(len(sizes), size=len(sizes))
    lengths = sizes[drawn]
    begins = np.cumsum(lengths) - lengths
    return np.asarray(members[np.arange(lengths.sum()) + np.repeat(starts[drawn] - begins, lengths)])


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


def _held_out(
    rows: LabelledRows, task: Task, share: float, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    strata, values = strata_of(rows.y, task), np.unique(rows.y)
    names = values.tolist() if len(values) == strata.max() + 1 else None  # bins of a target have no names
    return holdout_split(strata, share, rng, names, rows.groups)


def lone_labels(rows: LabelledRows) -> list[Any]:
    """The labels of a single row or, with groups, of a single group."""
    classes, codes = np.unique(rows.y, return_inverse=True)
    if rows.groups is not None:
        codes = np.unique(np.stack([codes, rows.groups]), axis=1)[0]
    alone: list[Any] = classes[np.bincount(codes) < 2].tolist()
    return alone


def _group_splitter(n_folds: Any, task: Task, groups: IntArray) -> Any:
    """scikit-learn's splitter for n_folds (None: 5) folds of whole groups, shuffled, without a seed yet."""
    n = 5 if n_folds is None else int(n_folds)
    if count_groups(groups) < n:
        raise InvalidInputError(
            Argument("validation", n),
            f" cannot split these rows: they belong to {count_groups(groups)} groups, which are not cut "
            "apart. Use fewer folds, or give rows of more groups.",
            argument="validation",
        )
    return (StratifiedGroupKFold if task == "classification" else GroupKFold)(n, shuffle=True)


def _splits(splitter: Any, rows: LabelledRows) -> list[tuple[IntArray, IntArray]]:
    if rows.groups is None:
        return list(splitter.split(rows.X, rows.y))
    takes = signature(splitter.split).parameters
    if "groups" not in takes and not any(p.kind == p.VAR_POSITIONAL for p in takes.values()):
        return list(splitter.split(rows.X, rows.y))
    with warnings.catch_warnings():
        # If it ignores them and cuts a group apart, it is refused.
        warnings.filterwarnings("ignore", message="The groups parameter is ignored")
        return list(splitter.split(rows.X, rows.y, rows.groups))


def _row_numbers(side: Any, n: int, validation: Any) -> IntArray:
    """The rows (m,) of one side of a split, which may be given as a list or as a mask (n,)."""
    try:
        numbers = np.asarray(side)
    except ValueError:  # lists of different lengths
        numbers = np.asarray("")
    if numbers.dtype == np.bool_ and numbers.shape == (n,):
        numbers = np.flatnonzero(numbers)
    if numbers.shape == (0,):
        raise InvalidInputError(
            Argument("validation", validation),
            " leaves one side of a split without rows; use fewer folds, or other splits.",
            argument="validation",
        )
    whole = numbers.ndim == 1 and numbers.dtype.kind in "iu"
    if not whole or numbers.min() < -n or numbers.max() >= n:
        raise InvalidInputError(
            Argument("validation", validation),
            f" cannot split these rows: each side of a split must be numbers of rows from 0 to {n - 1}, got "
            f"{side!r}.",
            argument="validation",
        )
    return np.asarray(numbers, dtype=np.intp) % n


def _check_whole(splits: list[tuple[IntArray, IntArray]], groups: IntArray, validation: Any) -> None:
    """Raise if a fold has rows of one group on both sides."""
    for train, test in splits:
        cut = len(np.intersect1d(groups[train], groups[test]))
        if cut:
            raise InvalidInputError(
                Argument("validation", validation),
                f" cuts {cut} groups apart, so that models would be scored on groups that they were trained "
                "on; use a number of folds, or a splitter that keeps groups whole, such as GroupKFold.",
                argument="validation",
            )


def _without_lone(bins: IntArray) -> IntArray:
    """Renumber bins (n,) from 0; a bin of a single row, which cannot be split, joins its neighbour."""
    _, codes, counts = np.unique(bins, return_inverse=True, return_counts=True)
    while len(counts) > 1 and counts.min() == 1:
        codes = np.where(codes >= max(1, int(counts.argmin())), codes - 1, codes)
        counts = np.bincount(codes)
    return np.asarray(codes)
