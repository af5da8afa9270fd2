"""Which rows candidates are judged on: the given validation rows, and training rows out of fold.

Few validation rows cannot tell candidates apart. Training rows can, predicted by models that were not trained
on them. Where they are distributed otherwise than the validation rows, fewer of them count; see `rows_like`.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from moew._util.seeds import generator, integer_seed
from moew.data import SearchData
from moew.data._groups import count_groups
from moew.data._splits import lone_labels, out_of_fold
from moew.exceptions import Argument, InvalidInputError
from moew.search._evaluate import Evaluator
from moew.types import IntArray
from moew.weighting._joint_shift import joint_density_ratio, rows_like

SEARCH_FOLDS, FINALIST_FOLDS = 2, 5
ENOUGH_GIVEN = 5000  # with so many validation rows, no training rows are needed
MOST_JUDGED = 10_000  # training rows that are judged


def judged_rows(
    data: SearchData, validation: Any, evaluator: Evaluator, seed: int
) -> tuple[SearchData, tuple[str, ...], bool]:
    """The search data with training rows judged out of fold, where that is asked for and possible; notes that
    say what was done; and whether the validation rows are seen to be distributed otherwise."""
    whole_number = isinstance(validation, Integral) and not isinstance(validation, bool)
    automatic = isinstance(validation, str)
    if not automatic and not (whole_number and data.given_validation):
        unused = data.given_validation and validation is not None
        note = "a share of rows or a splitter is not used beside given validation rows."
        return data, (note,) if unused else (), False
    if not data.given_validation:
        _check_classes(data)
        return _all_out_of_fold(data, seed), (), False
    training, given = data.training, data.validation
    reason = _why_not(data, evaluator, len(given) if automatic else 0)
    if reason is None:
        try:
            ratio = joint_density_ratio(
                training.X, training.y, given.X, given.y, task=data.task, seed=integer_seed(seed, "ratio")
            )
        except InvalidInputError as error:  # columns that the model may take all the same, such as dates
            reason = f"how they differ from the training rows cannot be told: {str(error).rstrip('.')}"
    if reason is not None and automatic:
        return data, (f"judged on the {len(given):,} validation rows alone: {reason}.",), True
    if reason is not None:
        raise InvalidInputError(
            Argument("validation", validation),
            f" cannot judge training rows beside the given validation rows: {reason}.",
            argument="validation",
        )
    if whole_number and validation > (most := _most_folds(data)):
        raise InvalidInputError(
            Argument("validation", validation),
            f" cannot split these rows: there are {most} {'rows' if training.groups is None else 'groups'}. "
            "Use fewer folds.",
            argument="validation",
        )
    drawn, effective = rows_like(ratio, generator(seed, "judged"), MOST_JUDGED, training.groups)
    if len(drawn) < FINALIST_FOLDS:
        few = _FAR if effective < len(ratio) else "there are too few training rows"
        return data, (f"judged on the {len(given):,} validation rows alone: {few}.",), True
    folds = (SEARCH_FOLDS, _finalist_folds(data)) if automatic else (int(validation), int(validation))
    note = f"judged on {len(given):,} validation rows and {len(drawn):,} training rows out of fold"
    if effective < len(ratio):
        note += (
            f" (of {len(ratio):,}, which are distributed otherwise: they are worth {effective:,.0f} of the "
            "validation rows' kind)"
        )
    shifted = effective < len(ratio)
    return out_of_fold(data, drawn, *folds, generator(seed, "folds")), (f"{note}.",), shifted


_FAR = "the training rows are distributed too differently"


def _all_out_of_fold(data: SearchData, seed: int) -> SearchData:
    """Without validation rows: every row out of fold, up to a number of them."""
    rng, n = generator(seed, "folds"), len(data.training)
    judged: IntArray = np.arange(n)
    if n > MOST_JUDGED:
        judged, _ = rows_like(np.ones(n), rng, MOST_JUDGED, data.training.groups)
    return out_of_fold(data, judged, SEARCH_FOLDS, _finalist_folds(data), rng)


def _finalist_folds(data: SearchData) -> int:
    return max(SEARCH_FOLDS, min(FINALIST_FOLDS, _fewest_of_a_class(data)))


def _most_folds(data: SearchData) -> int:
    groups = data.training.groups
    return len(data.training) if groups is None else count_groups(groups)


def _fewest_of_a_class(data: SearchData) -> int:
    """The number of rows, or of groups of rows, of the rarest class."""
    labels, groups = data.training.y, data.training.groups
    codes = np.zeros(len(labels), dtype=np.intp)
    if data.task == "classification":
        codes = np.unique(labels, return_inverse=True)[1]
    if groups is not None:
        codes = np.unique(np.stack([codes, groups]), axis=1)[0]
    return int(np.unique(codes, return_counts=True)[1].min())


def _check_classes(data: SearchData) -> None:
    if _fewest_of_a_class(data) >= SEARCH_FOLDS:
        return
    unit = "row" if data.training.groups is None else "group"
    raise InvalidInputError(
        f"the rows cannot be judged out of fold: the classes {lone_labels(data.training)[:5]} have one "
        f"{unit} each. Give more {unit}s of them, or pass ",
        Argument("X_val and y_val"),
        ".",
        argument="validation",
    )


def _why_not(data: SearchData, evaluator: Evaluator, n_given: int) -> str | None:
    """Why training rows cannot be judged beside the given ones; None if they can."""
    training, given = data.training, data.validation
    if n_given >= ENOUGH_GIVEN:
        return "there are enough of them"
    missing = sorted(set(given.columns) - set(training.columns))
    if missing:
        return f"the training rows do not have {', '.join(map(repr, missing))}"
    if given.sample_weight is not None and training.sample_weight is None:
        return "the training rows do not have sample weights"
    if evaluator.classes is not None and not set(given.y.tolist()) <= set(evaluator.classes.tolist()):
        return "their labels are not those of the training rows"
    if _fewest_of_a_class(data) < SEARCH_FOLDS:
        return "a class has fewer training rows than there are folds"
    return None
