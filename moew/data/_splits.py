"""Which rows are trained on and which evaluated: splits into training and validation rows, folds and halves.

By the user's weights, rows of weight 0 are not evaluated, and for what takes no weights, rows are drawn in
proportion to them.
"""

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

from moew._util.checks import warn
from moew.data._columns import column_names
from moew.data._groups import coded_groups, count_groups, deal_groups, lone_labels, places_inside
from moew.data._rows import LabelledRows, check_same_kind_of_labels, check_same_rows, stacked_rows
from moew.exceptions import Argument, InPython, InvalidInputError
from moew.types import Array, FloatArray, IntArray, Labels, Task

_STRATA = 5  # quantile bins of a regression target, which splits stratify by
_CUT_OFF = 0.02  # of all weight, that of rows which would have to be drawn more than once


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
    n_worth: float = 0.0  # so many validation rows all training rows are worth, if it was estimated
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
        """The validation rows that the user gave, without training rows that are evaluated out of fold."""
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

    def on_given_rows(self) -> SearchData:
        """The same with the given validation rows alone, and models that are trained on all training rows."""
        given = self.given
        folds = _one_fold(len(given))
        return replace(self, validation=given, folds=folds, n_given=None, n_worth=0.0, finalist_folds=())

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
        warn(
            "either the training rows or the validation rows have column names, not both: is one of them "
            "transformed? A Pipeline belongs into the search, so that both go through it.",
            argument="validation",
        )
    if task == "classification":
        check_same_kind_of_labels(training.y, validation.y)
    return SearchData(task, training, validation, _one_fold(len(validation)))


def held_out_validation(task: Task, rows: LabelledRows, share: float, rng: np.random.Generator) -> SearchData:
    """Search data in which a share of the rows, stratified by class, is held out for validation, groups
    whole."""
    if not 0 < share < 1:
        raise InvalidInputError(
            Argument("evaluate_on"), f" as a share must lie between 0 and 1, got {share!r}."
        )
    if rows.groups is not None:
        coded_groups(rows.groups)  # raises if there is only one
    alone, unit = lone_labels(rows), "row" if rows.groups is None else "group"
    if task == "classification" and alone:
        raise InvalidInputError(
            f"a share of the rows cannot be held out: the classes {alone[:5]} have one {unit} each. Give "
            f"more {unit}s of them, or pass ",
            Argument("validation"),
            ".",
            argument="validation",
        )
    train, held = _held_out(rows, task, share, rng)
    parts = rows.take(train), rows.take(held)
    return SearchData(task, *parts, _one_fold(len(held)), given_validation=False, rows_trained=train)


def cross_validation(task: Task, rows: LabelledRows, splitter: Any, rng: np.random.Generator) -> SearchData:
    """Search data in which every row is scored by a model that was not trained on it, nor on a row of its
    group; `splitter` is anything that scikit-learn takes as `cv`."""
    given = splitter
    if rows.groups is not None and (splitter is None or isinstance(splitter, Integral)):
        splitter = _group_splitter(splitter, task, rows.groups)
    try:
        splitter = check_cv(splitter, rows.y, classifier=task == "classification")
    except ValueError as error:
        raise InvalidInputError(
            Argument("evaluate_on"),
            f" must be 'auto', 'validation', a share, a number of folds or a splitter, got {given!r}.",
        ) from error
    if getattr(splitter, "random_state", 0) is None and getattr(splitter, "shuffle", True):
        splitter = copy(splitter)  # a splitter without a random_state gets a seed, as models do
        splitter.random_state = int(rng.integers(2**31))
    try:
        sides = _splits(splitter, rows)
    except (TypeError, ValueError) as error:
        hint = InPython(" A splitter that needs groups gets them from fit(X, y, groups=…).")
        raise _cannot_split(given, f" cannot split these rows: {error}.", hint) from error
    if not sides:
        why = " gives no splits; use a number of folds, or a splitter with at least one split."
        raise _cannot_split(given, why)
    n = len(rows)
    splits = [(_row_numbers(a, n, given), _row_numbers(b, n, given)) for a, b in sides]
    for train, test in splits:
        if rows.groups is not None and (cut := len(np.intersect1d(rows.groups[train], rows.groups[test]))):
            why = (
                f" cuts {cut} groups apart, so that models would be scored on groups that they were trained "
            )
            keeps = "on; use a number of folds, or a splitter that keeps groups whole, such as GroupKFold."
            raise _cannot_split(given, why + keeps)
    tested = np.concatenate([test for _, test in splits])
    if len(np.unique(tested)) < len(tested):
        why = (
            " scores some rows more than once, so that they would count as many rows; use a splitter without "
        )
        raise _cannot_split(given, why + "repeats.")
    ends = np.cumsum([0, *(len(test) for _, test in splits)])
    folds = tuple(Fold(train, np.arange(ends[i], ends[i + 1])) for i, (train, _) in enumerate(splits))
    return SearchData(task, rows, rows.take(tested), folds, given_validation=False)


def _cannot_split(given: Any, *why: str | InPython) -> InvalidInputError:
    return InvalidInputError(Argument("evaluate_on", given), *why)


def out_of_fold(
    data: SearchData, evaluated: IntArray, n_folds: int, n_finalist_folds: int, rng: np.random.Generator
) -> SearchData:
    """Search data in which the training rows numbered `evaluated` are validation rows, too, each predicted by
    models that were not trained on it.

    The given validation rows are dealt to the folds as well, so that every row is predicted by one model of
    each candidate. The finalists get more folds: models of half the rows flatter smooth models.
    """
    given = data.validation if data.given_validation else None
    rows = data.training.take(evaluated)
    folds = [_dealt(data.task, data.training, given, evaluated, k, rng) for k in (n_folds, n_finalist_folds)]
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
    evaluated: IntArray,
    n_folds: int,
    rng: np.random.Generator,
) -> tuple[Fold, ...]:
    """Folds of all training rows, which score the training rows `evaluated` behind the given rows."""
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
    scored = np.concatenate([of_given, of_training[evaluated]])
    folds = [Fold(np.flatnonzero(of_training != k), np.flatnonzero(scored == k)) for k in range(n_folds)]
    return tuple(fold for fold in folds if len(fold.scored))  # models have no answer to no rows


def fold_codes(
    strata: IntArray, n_folds: int, rng: np.random.Generator, groups: IntArray | None = None
) -> IntArray:
    """The fold (n,) of each row: the rows of every stratum are dealt in turn, in random order; with `groups`
    (n,) every group is in one fold, and some folds are empty if there are fewer groups than folds."""
    codes = np.full(len(strata), n_folds - 1, dtype=np.intp)
    if groups is None:
        codes[_shuffled(strata, rng)] = np.arange(len(strata)) % n_folds
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
            Argument("validation"),
            ", or a share of the rows as ",
            Argument("evaluate_on"),
            "; in a cross-validation every row is trained on.",
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
    numbers = np.asarray(y, dtype=np.float64)
    edges = np.unique(np.quantile(numbers, np.linspace(0, 1, _STRATA + 1)[1:-1]))
    return _without_lone(np.searchsorted(edges, numbers, side="right"))


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
    order = _shuffled(strata, rng)
    _, counts = np.unique(strata, return_counts=True)
    place = places_inside(counts)
    odd = place == np.repeat(counts, counts) - np.repeat(counts % 2, counts)
    in_a = place % 2 == 0
    dealt = (np.arange(odd.sum()) + rng.integers(2)) % 2 == 0
    in_a[odd] = rng.permutation(dealt)
    is_a = np.zeros(len(strata), dtype=bool)
    is_a[order[in_a]] = True
    return np.flatnonzero(is_a), np.flatnonzero(~is_a)


def _shuffled(strata: Array, rng: np.random.Generator) -> IntArray:
    """Numbers of all rows, stratum by stratum, in random order inside each."""
    order = rng.permutation(len(strata))
    return np.asarray(order[np.argsort(strata[order], kind="stable")])


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


def _one_fold(n_validation: int) -> tuple[Fold, ...]:
    return (Fold(None, np.arange(n_validation)),)


def _held_out(
    rows: LabelledRows, task: Task, share: float, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    strata, values = strata_of(rows.y, task), np.unique(rows.y)
    names = values.tolist() if len(values) == strata.max() + 1 else None  # bins of a target have no names
    return holdout_split(strata, share, rng, names, rows.groups)


def _group_splitter(n_folds: Any, task: Task, groups: IntArray) -> Any:
    """scikit-learn's splitter for n_folds (None: 5) folds of whole groups, shuffled, without a seed yet."""
    n = 5 if n_folds is None else int(n_folds)
    if count_groups(groups) < n:
        why = f"they belong to {count_groups(groups)} groups, which are not cut apart. Use fewer folds, or "
        raise _cannot_split(n, f" cannot split these rows: {why}give rows of more groups.")
    return (StratifiedGroupKFold if task == "classification" else GroupKFold)(n, shuffle=True)


def _splits(splitter: Any, rows: LabelledRows) -> list[tuple[IntArray, IntArray]]:
    takes = {} if rows.groups is None else signature(splitter.split).parameters
    if "groups" not in takes and not any(p.kind == p.VAR_POSITIONAL for p in takes.values()):
        return list(splitter.split(rows.X, rows.y))
    with warnings.catch_warnings():
        # If it ignores them and cuts a group apart, it is refused.
        warnings.filterwarnings("ignore", message="The groups parameter is ignored")
        return list(splitter.split(rows.X, rows.y, rows.groups))


def _row_numbers(side: Any, n: int, given: Any) -> IntArray:
    """The rows (m,) of one side of a split, which may be given as a list or as a mask (n,)."""
    try:
        numbers = np.arange(n)[np.asarray(side)] if len(side) else np.arange(0)
        is_one_list = numbers.ndim == 1
    except (TypeError, ValueError, IndexError):  # lists of different lengths; what is no number of a row
        is_one_list = False
    if not is_one_list:
        wanted = f"each side of a split must be numbers of rows from 0 to {n - 1}, got {side!r}."
        raise _cannot_split(given, f" cannot split these rows: {wanted}")
    if not len(numbers):
        raise _cannot_split(
            given, " leaves one side of a split without rows; use fewer folds, or other splits."
        )
    return numbers


def _without_lone(bins: IntArray) -> IntArray:
    """Renumber bins (n,) from 0; a bin of a single row, which cannot be split, joins its neighbour."""
    _, codes, counts = np.unique(bins, return_inverse=True, return_counts=True)
    while len(counts) > 1 and counts.min() == 1:
        codes = np.where(codes >= max(1, int(counts.argmin())), codes - 1, codes)
        counts = np.bincount(codes)
    return np.asarray(codes)


def drawn_by_weight(
    weights: FloatArray,
    rng: np.random.Generator,
    strata: IntArray | None = None,
    groups: IntArray | None = None,
) -> IntArray:
    """Numbers of rows drawn without replacement with chances in proportion to weights (n,); rows of equal
    weights are all drawn, those of weight 0 never.

    As many as possible: the chance is one for the largest weights, which may lose 2 % of all weight by that.
    The shares of `strata` (n,) are kept. With `groups` (n,) whole groups are drawn, by their mean weight.
    """
    if groups is not None:
        _, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        drawn = drawn_by_weight(np.bincount(codes, weights) / sizes, rng)
        return np.flatnonzero(np.isin(codes, drawn) & (weights > 0))
    chance = np.minimum(1.0, weights / _cap(weights))
    if (chance[weights > 0] == 1).all():
        return np.flatnonzero(weights > 0)
    order = _shuffled(np.zeros_like(weights) if strata is None else strata, rng)
    # Systematic sampling: a row is drawn wherever the chances so far pass a whole number.
    passed = np.floor(np.concatenate([[0.0], np.cumsum(chance[order])]) + rng.random())
    return np.sort(order[np.diff(passed) > 0])


def _cap(weights: FloatArray) -> float:
    """The smallest weight at which all larger ones can be cut off without losing more than the share."""
    falling = np.sort(weights)[::-1]
    next_one = np.append(falling[1:], 0.0)
    caps = (np.cumsum(falling) - _CUT_OFF * falling.sum()) / np.arange(1, len(falling) + 1)
    return float(caps[np.argmax(caps >= next_one)])


def evaluated_rows(rows: LabelledRows, task: Task, takes_weights: bool, rng: np.random.Generator) -> IntArray:
    """Numbers of the rows that are evaluated: all of positive weight if the metrics take weights, else rows
    drawn in proportion."""
    if rows.sample_weight is None:
        return np.arange(len(rows))
    if takes_weights:
        return np.flatnonzero(rows.sample_weight > 0)
    return drawn_by_weight(rows.sample_weight, rng, strata_of(rows.y, task), rows.groups)


def by_weight(
    data: SearchData, takes_weights: bool, rng: np.random.Generator
) -> tuple[SearchData, tuple[str, ...]]:
    """The search data with the validation rows that are evaluated, and a note that says so if they are fewer;
    see `evaluated_rows`."""
    rows = data.validation
    kept = evaluated_rows(rows, data.task, takes_weights, rng)
    if len(kept) == len(rows):
        return data if takes_weights else of_equal_weight(data), ()
    if len(kept) < 2:
        raise InvalidInputError(
            f"{len(kept)} of the {len(rows)} rows to evaluate on are left by their ",
            Argument("sample_weight"),
            ", and 2 are needed at least: give more rows a positive weight, or weights that differ less.",
            argument="sample_weight",
        )
    place = np.full(len(rows), -1)
    place[kept] = np.arange(len(kept))
    scored = [(fold.train, place[fold.scored]) for fold in data.folds]
    folds = tuple(Fold(train, at[at >= 0]) for train, at in scored if (at >= 0).any())
    what = "validation rows" if data.given_validation or data.rows_trained is not None else "rows"
    notes = weight_notes(rows, len(kept), what)
    data = replace(data, validation=rows.take(kept), folds=folds)
    return data if takes_weights else of_equal_weight(data), notes


def weight_notes(rows: LabelledRows, n: int, what: str) -> tuple[str, ...]:
    """What is said if only n of the rows, which are called `what`, are evaluated by their weights."""
    weighty, of = np.count_nonzero(rows.own_weights), len(rows)
    if n < weighty:
        told = "are drawn in proportion to their weights, to be evaluated: the metric takes no weights."
        return (f"{n:,} of the {of:,} {what} {told}",)
    return (f"{of - n:,} of the {of:,} {what} have weight 0 and are not evaluated.",) if n < of else ()


def of_equal_weight(data: SearchData) -> SearchData:
    """The search data whose validation rows count alike, because they were drawn by their weights."""
    rows = data.validation
    if rows.sample_weight is None:
        return data
    return replace(data, validation=replace(rows, sample_weight=np.ones(len(rows))))
