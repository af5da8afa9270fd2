"""Which decisions change from the unweighted model to what is handed out, and whether that is right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from moew._util.numbers import level
from moew.data import UserRows
from moew.exceptions import MoewError
from moew.inspection._again import given_rows
from moew.search import FittedSearch
from moew.search._prepare import checked_test_rows
from moew.search._result import JudgedDecisions
from moew.types import Array, IntArray, Labels, Rows

_SAME = 1e-9  # predictions with a smaller relative difference count as the same


@dataclass(frozen=True)
class ChangedDecisions:
    """How many rows are decided otherwise, and from which class to which.

    In regression a row's prediction changes; it becomes right where it is nearer to the target, and wrong
    where it is further away, and there are no classes.
    """

    seen_on: Literal["test", "judged", "validation"]  # rows
    n_rows: int
    n_changed: int
    n_right: int  # of these, wrong before and right now
    n_wrong: int  # of these, right before and wrong now
    classes: tuple[str, ...] = ()
    counts: IntArray | None = None  # (C, C): rows decided as the first class before, as the second now
    right: IntArray | None = None  # (C, C): those of them that became right
    wrong: IntArray | None = None  # (C, C): those of them that became wrong


def changed_decisions(
    fitted: FittedSearch,
    X: Rows,
    y: Labels,
    X_val: Rows = None,
    y_val: Labels = None,
    *,
    X_test: Rows = None,
    y_test: Labels = None,
    metadata: Mapping[str, Any] | None = None,
    metadata_val: Mapping[str, Any] | None = None,
    metadata_test: Mapping[str, Any] | None = None,
) -> ChangedDecisions | None:
    """The changes on the test rows if they are given, else on the judged rows as the search recorded them,
    else on validation rows; None where there is no unweighted model or there are no such rows."""
    if fitted.unweighted is None:
        return None
    try:
        if X_test is not None:
            given = UserRows(X_test, y_test, None, metadata_test)
            rows = checked_test_rows(given, fitted.evaluator, fitted.task)
            return _changes("test", _both(fitted, rows), fitted)
        if fitted.judged_decisions is not None:
            return _changes("judged", fitted.judged_decisions, fitted)
        validation = given_rows(
            fitted, X, y, X_val, y_val, metadata=metadata, metadata_val=metadata_val
        ).validation
        return None if validation is None else _changes("validation", _both(fitted, validation), fitted)
    except MoewError:  # such as a column that the rule needs and that was not passed
        return None


def _both(fitted: FittedSearch, rows: Any) -> JudgedDecisions:
    assert fitted.unweighted is not None
    before, after = (model.decide(rows.X, rows.columns) for model in (fitted.unweighted, fitted.winner))
    return JudgedDecisions(rows.y, before, after)


def _changes(
    seen_on: Literal["test", "judged", "validation"], found: JudgedDecisions, fitted: FittedSearch
) -> ChangedDecisions:
    if fitted.task == "regression":
        return _moved(seen_on, found)
    y, before, after = (np.asarray(part) for part in (found.y, found.before, found.after))
    classes: Array = np.unique(np.concatenate([np.asarray(fitted.evaluator.classes), before, after]))
    places = np.searchsorted(classes, before), np.searchsorted(classes, after)
    changed, was_right, is_right = before != after, before == y, after == y

    def counted(rows: Array) -> IntArray:
        counts = np.zeros((len(classes), len(classes)), dtype=np.intp)
        np.add.at(counts, (places[0][rows], places[1][rows]), 1)
        return counts

    every = np.ones(len(y), dtype=bool)
    return ChangedDecisions(
        seen_on,
        len(y),
        int(changed.sum()),
        int((changed & is_right).sum()),
        int((changed & was_right).sum()),
        tuple(level(value) for value in classes.tolist()),
        counted(every),
        counted(changed & is_right),
        counted(changed & was_right),
    )


def _moved(seen_on: Literal["test", "judged", "validation"], found: JudgedDecisions) -> ChangedDecisions:
    y, before, after = (np.asarray(part, dtype=np.float64) for part in (found.y, found.before, found.after))
    changed = ~np.isclose(before, after, rtol=_SAME, atol=0)
    nearer = np.abs(after - y) < np.abs(before - y)
    further = np.abs(after - y) > np.abs(before - y)
    return ChangedDecisions(
        seen_on,
        len(y),
        int(changed.sum()),
        int((changed & nearer).sum()),
        int((changed & further).sum()),
    )
