"""Post-shift: a threshold for each group, with equal false-positive rates at a given overall coverage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from moew._util.state import State, Stateful, has_state
from moew.decision._common import (
    check_choice,
    check_fraction,
    check_positive,
    check_scores,
    check_some_scores,
    count_of_share,
    groups_of_rows,
    nearest_cut,
    number_to_json,
    threshold_at_edge,
    threshold_selecting,
)
from moew.exceptions import Argument, InvalidInputError, UndefinedMetricError
from moew.types import BoolArray, Columns, FloatArray

GREEDY_MOVES = 1000  # as in the authors' script


@has_state
@dataclass(frozen=True)
class EqualFalsePositiveRates(Stateful):
    """Decides by one threshold for each group, so that all groups have the same false-positive rate.

    The share `coverage` of all rows is decided positive (the paper's post-shift, Section 5.2).

    method="exact": one rate t is common to all groups. A group with N negatives selects its j-th highest
    negative at t = j / (N + 1), and the m positives between two neighbouring negatives at equal steps
    between them. So only ranks count, and an increasing function of the scores gives the same decisions.
    The rows with the lowest t, up to the coverage, are positive. Without equal scores the coverage is exact
    to the nearest row, and the rates of any two groups differ by at most one negative of the smaller one.

    method="greedy": what the authors' script does. Each group starts at its own highest-scoring share,
    rounded down; then, 1,000 times, one row more is selected in the group with the lowest rate and one row
    less in the group with the highest. A threshold is the highest score of its group that is not selected;
    with "exact" it lies midway between the scores that it separates.

    The column named by `group` says which group a row belongs to; in `fit` a group without negatives has no
    rate and is an error.
    """

    coverage: float
    on: Literal["train", "validation"] = "train"
    group: str = "group"
    method: Literal["exact", "greedy"] = "exact"
    groups_: tuple[Any, ...] | None = None
    thresholds_: tuple[float, ...] | None = None

    state_home: ClassVar[str] = "moew.decision"
    of: ClassVar[Literal["score"]] = "score"
    needs_labels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fraction(self.coverage, "coverage")
        check_choice(self.on, "on", ("train", "validation"))
        check_choice(self.method, "method", ("exact", "greedy"))
        if not isinstance(self.group, str) or not self.group:
            raise InvalidInputError(
                f"group must be the name of a column, got {self.group!r}.", argument="group"
            )
        object.__setattr__(self, "coverage", float(self.coverage))

    @property
    def fit_on(self) -> Literal["train", "validation"]:
        """The rows the rule is fitted on."""
        return self.on

    @property
    def columns(self) -> tuple[str, ...]:
        """The per-row columns the rule needs."""
        return (self.group,)

    @property
    def thresholds(self) -> tuple[tuple[Any, float | None], ...]:
        """The threshold of each group."""
        if self.groups_ is None or self.thresholds_ is None:
            return ()
        return tuple(zip(self.groups_, self.thresholds_, strict=True))

    def fit(self, score: FloatArray, positive: BoolArray, columns: Columns) -> Self:
        """A fitted copy, from scores (n,), labels (n,) and the column of groups (n,)."""
        scores = check_some_scores(score)
        labels = check_positive(positive, len(scores))
        names, codes = groups_of_rows(columns, self.group, len(scores))
        negatives = np.bincount(codes[~labels], minlength=len(names))
        if empty := [names[g] for g in np.flatnonzero(negatives == 0)]:
            raise UndefinedMetricError(
                f"no false-positive rate for {_listed(empty)} of column {self.group!r}: no negative rows "
                "among those the rule is fitted on (",
                Argument("on", self.on),
                "). Merge small groups or leave them out.",
                argument="metadata",
            )
        rows = [np.flatnonzero(codes == g) for g in range(len(names))]
        rows = [r[np.argsort(-scores[r], kind="stable")] for r in rows]  # best score first
        find = _counts_exact if self.method == "exact" else _counts_greedy
        counts = find([scores[r] for r in rows], [~labels[r] for r in rows], self.coverage)
        place = threshold_selecting if self.method == "exact" else threshold_at_edge
        thresholds = [place(scores[r], m) for r, m in zip(rows, counts, strict=True)]
        return replace(self, groups_=tuple(names), thresholds_=tuple(thresholds))

    def decide(self, score: FloatArray, columns: Columns) -> BoolArray:
        """True (n,) where the positive class is decided, by the threshold of the row's group."""
        if self.groups_ is None or self.thresholds_ is None:
            raise InvalidInputError(
                f"{self!r} has no thresholds yet; call fit and use what it returns.", argument="decision"
            )
        scores = check_scores(score)
        names, codes = groups_of_rows(columns, self.group, len(scores))
        known = dict(zip(self.groups_, self.thresholds_, strict=True))
        if unseen := [name for name in names if name not in known]:
            raise InvalidInputError(
                f"{_listed(unseen)} of column {self.group!r} had no rows when the rule was fitted, so there "
                f"is no threshold for it; known groups are {list(self.groups_)!r}.",
                argument="metadata",
            )
        return scores > np.array([known[name] for name in names], dtype=np.float64)[codes]

    def _content(self) -> State:
        fitted = self.thresholds_
        return {
            "coverage": self.coverage,
            "on": self.on,
            "group": self.group,
            "method": self.method,
            "groups_": None if self.groups_ is None else list(self.groups_),
            "thresholds_": None if fitted is None else [number_to_json(t) for t in fitted],
        }

    @classmethod
    def from_state(cls, state: State, objects: Mapping[str, Any]) -> Self:
        """Rebuild the rule from its state."""
        content = {name: value for name, value in state.items() if name != "kind"}
        if content["groups_"] is not None:
            content["groups_"] = tuple(content["groups_"])
            content["thresholds_"] = tuple(float(t) for t in content["thresholds_"])
        return cls(**content)


def _counts_exact(scores: Sequence[FloatArray], negative: Sequence[BoolArray], coverage: float) -> list[int]:
    """The number of rows to select in each group; each group's scores are in descending order."""
    entry = np.concatenate([_entry_rates(s, n) for s, n in zip(scores, negative, strict=True)])
    codes = np.repeat(np.arange(len(scores)), [len(s) for s in scores])
    # Rows of different groups with the same rate may be separated, equal scores of one group may not.
    order = np.lexsort((codes, entry))
    parted = (np.diff(entry[order]) > 0) | (np.diff(codes[order]) != 0)
    cut = nearest_cut(parted, count_of_share(coverage, len(entry)))
    return [int(m) for m in np.bincount(codes[order[:cut]], minlength=len(scores))]


def _entry_rates(scores: FloatArray, negative: BoolArray) -> FloatArray:
    """The common rate t (n,) above which each row of one group is selected; best scores first."""
    ascending_negatives = scores[negative][::-1]
    n_negatives = len(ascending_negatives)
    # Negatives at or above each score; the row lies in the gap below that many of them.
    above = n_negatives - np.searchsorted(ascending_negatives, scores, side="left")
    in_gap = ~np.isin(scores, ascending_negatives)
    levels, level = np.unique(-scores[in_gap], return_inverse=True)  # equal scores share a level
    gap_of_level = np.empty(len(levels), dtype=np.intp)
    gap_of_level[level] = above[in_gap]
    levels_in_gap = np.bincount(gap_of_level, minlength=n_negatives + 1)
    first_level = np.cumsum(levels_in_gap) - levels_in_gap
    place = np.arange(len(levels)) - first_level[gap_of_level] + 1  # 1 … m within its gap
    rate = above.astype(np.float64)
    rate[in_gap] += (place / (levels_in_gap[gap_of_level] + 1))[level]
    return rate / (n_negatives + 1)


def _counts_greedy(scores: Sequence[FloatArray], negative: Sequence[BoolArray], coverage: float) -> list[int]:
    """The authors' way: see the class."""
    sizes = [len(s) for s in scores]
    # rate[g][m]: the false-positive rate of group g when its m best rows are selected.
    rate = [np.concatenate(([0.0], np.cumsum(n) / np.sum(n))).tolist() for n in negative]
    counts = [int(coverage * size) for size in sizes]
    groups = range(len(sizes))
    moves_left = GREEDY_MOVES
    met: dict[tuple[int, ...], int] = {}  # counts, and how many moves were left when they first occurred
    while moves_left:
        first = met.setdefault(tuple(counts), moves_left)
        if first != moves_left:  # the counts go in a circle: whole rounds change nothing
            moves_left %= first - moves_left
            if not moves_left:
                break
        lowest = min(groups, key=lambda g: rate[g][counts[g]])
        highest = max(groups, key=lambda g: rate[g][counts[g]])
        if lowest == highest:
            break  # all rates are equal
        counts[lowest] = min(counts[lowest] + 1, sizes[lowest])
        counts[highest] = max(counts[highest] - 1, 0)
        moves_left -= 1
    return counts


def _listed(names: Sequence[Any]) -> str:
    shown = ", ".join(repr(name) for name in names[:5]) + (", …" if len(names) > 5 else "")
    return f"group {shown}" if len(names) == 1 else f"groups {shown}"
