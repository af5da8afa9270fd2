"""Decision rules for two classes: one threshold of the score, or one for each group of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from moew._util.checks import COLUMN, FRACTION, POSITIVE, Wanted, check_parameters, one_of, refusing
from moew._util.numbers import is_number
from moew._util.state import State, Stateful, has_state
from moew.exceptions import Argument, InPython, InvalidInputError, UndefinedMetricError
from moew.types import BoolArray, Columns, FloatArray, IntArray

FitOn = Literal["train", "validation"]
Of = Literal["score", "probability"]
Thresholds = tuple[tuple[Any, float | None], ...]  # (group, its threshold) for each group of rows

ROWS_TO_FIT_ON = one_of("train", "validation")
SCORE_OR_PROBABILITY = one_of("score", "probability")
FINITE = Wanted("must be a finite number", is_number)
NUMBER = Wanted(
    "must be a number", lambda value: is_number(value) or (isinstance(value, float) and np.isinf(value))
)


class Rule(Stateful):
    """Base of the rules, which are frozen records: as they stand there is nothing to fit, and all fields are
    their state."""

    state_home: ClassVar[str] = "moew.decision"
    wanted: ClassVar[Mapping[str, Wanted]] = {}  # what the fields must be; numbers become floats
    needs_labels: ClassVar[bool] = False
    may_be_infinite: ClassVar[tuple[str, ...]] = ()  # fields of thresholds: JSON has no infinities
    of: Of = "score"
    on: Literal["train", "validation", "each"] | None = None

    def __post_init__(self) -> None:
        check_parameters(self, **self.wanted)
        for name, what in self.wanted.items():
            if what in (FINITE, FRACTION, NUMBER, POSITIVE):
                object.__setattr__(self, name, float(getattr(self, name)))

    @property
    def fit_on(self) -> FitOn | None:
        """The rows the rule is fitted on; None if there is nothing to fit."""
        return None if self.on == "each" else self.on

    @property
    def columns(self) -> tuple[str, ...]:
        """The per-row columns the rule needs."""
        return ()

    @property
    def thresholds(self) -> Thresholds:
        """The threshold of each group of rows."""
        return ()

    def fit(self, score: Any, positive: Any, columns: Columns) -> Self:
        """Return the rule itself; there is nothing to fit."""
        return self

    def _content(self) -> State:
        content = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        content |= {name: _to_json(content[name]) for name in self.may_be_infinite}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in content.items()}

    @classmethod
    def from_state(cls, state: State, objects: Mapping[str, Any]) -> Self:
        """Rebuild the rule from its state."""
        known = {field.name: state[field.name] for field in fields(cls)}  # type: ignore[arg-type]
        known |= {name: _from_json(known[name]) for name in cls.may_be_infinite}
        known = {name: tuple(value) if isinstance(value, list) else value for name, value in known.items()}
        return cls(**{name: value for name, value in state.items() if name != "kind"} | known)


def _to_json(threshold: Any) -> Any:
    """A threshold, several, or pairs of groups and thresholds; infinite ones as texts that float() reads."""
    if isinstance(threshold, tuple):
        return [[t[0], _to_json(t[1])] if isinstance(t, tuple) else _to_json(t) for t in threshold]
    return threshold if threshold is None or np.isfinite(threshold) else str(float(threshold))


def _from_json(threshold: Any) -> Any:
    if isinstance(threshold, list):
        return tuple((t[0], float(t[1])) if isinstance(t, list) else float(t) for t in threshold)
    return None if threshold is None else float(threshold)


class OneThreshold(Rule):
    """Base of the rules with one threshold; `threshold_` is None until fitted."""

    may_be_infinite: ClassVar[tuple[str, ...]] = ("threshold_",)
    threshold_: float | None

    @property
    def thresholds(self) -> Thresholds:
        """The one threshold, of all rows."""
        return (("all rows", self.threshold_),)

    def decide(self, score: FloatArray, columns: Columns) -> BoolArray:
        """True (n,) where the score (n,) lies above the threshold."""
        if self.threshold_ is None:
            raise InvalidInputError(
                f"{self!r} has no threshold yet; call fit and use what it returns.", argument="decision"
            )
        return check_scores(score) > self.threshold_


class ThresholdOfGroup(Rule):
    """Base of the rules with a threshold for each group of a column."""

    common: float | None = None  # of groups that the rule was not fitted on; None: they are an error

    def decide(self, score: FloatArray, columns: Columns) -> BoolArray:
        """True (n,) where the score (n,) lies above the threshold of the row's group."""
        if not self.thresholds and self.common is None:
            raise InvalidInputError(
                f"{self!r} has no thresholds yet; call fit and use what it returns.", argument="decision"
            )
        scores, (column,) = check_scores(score), self.columns
        names, codes = groups_of_rows(columns, column, len(scores))
        known = dict(self.thresholds)
        unseen = [name for name in names if name not in known]
        if unseen and self.common is None:
            raise InvalidInputError(
                f"{_listed(unseen)} of column {column!r} had no rows when the rule was fitted, so there "
                f"is no threshold for it; known groups are {list(known)!r}.",
                argument="columns",
            )
        return scores > np.array([known.get(name, self.common) for name in names], dtype=np.float64)[codes]


@dataclass(frozen=True)
class GivenThreshold(OneThreshold):
    """Base of the rules that are made with their threshold."""

    threshold: float
    of: Of = "score"

    @property
    def threshold_(self) -> float:  # type: ignore[override]
        """The given threshold; nothing is fitted."""
        return self.threshold


@has_state
@dataclass(frozen=True)
class FixedThreshold(GivenThreshold):
    """Decides positive above a given value of the model's score, or of the positive class's probability.

    The score is the decision function where the model has one (its own threshold is 0).
    """

    threshold: float = 0.0

    wanted: ClassVar[Mapping[str, Wanted]] = {"threshold": FINITE, "of": SCORE_OR_PROBABILITY}
    may_be_infinite: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.of == "probability" and not 0 <= self.threshold <= 1:
            raise InvalidInputError(
                f"a threshold of a probability lies between 0 and 1, got {self.threshold!r}; one of the "
                "model's decision function is ",
                Argument("decision", f"score={self.threshold!r}"),
                ".",
                argument="decision",
            )


@has_state
@dataclass(frozen=True)
class MostAccurate(OneThreshold):
    """Decides by the threshold with the highest accuracy on the rows named by `on`.

    Thresholds lie midway between neighbouring scores, above all or below all. Of several that are equally
    accurate the highest is taken, which decides the fewest rows positive.

    Examples
    --------
    >>> rule = MostAccurate().fit(np.array([0.1, 0.4, 0.6, 0.9]), np.array([False, False, True, True]), {})
    >>> rule.threshold_
    0.5
    >>> rule.decide(np.array([0.2, 0.7]), {}).tolist()
    [False, True]
    """

    on: FitOn = "validation"
    threshold_: float | None = None

    wanted: ClassVar[Mapping[str, Wanted]] = {"on": ROWS_TO_FIT_ON}
    needs_labels: ClassVar[bool] = True

    def fit(self, score: FloatArray, positive: BoolArray, columns: Columns) -> Self:
        """A fitted copy, from scores (n,) and labels (n,)."""
        descending, found = best_first(score, positive)
        # Correct decisions when the first j rows are positive, up to a constant.
        gain = 2 * found - np.arange(len(found))
        cuts = cuts_of(descending)
        return replace(self, threshold_=threshold_selecting(descending, cuts[np.argmax(gain[cuts])]))


@has_state
@dataclass(frozen=True)
class ShareSelected(OneThreshold):
    """Decides positive for the highest-scoring `share` of the rows.

    on="validation" (the paper's spam) or "train": a threshold midway between the scores on either side of
    the share in those rows. Equal scores are decided alike, so the share is the nearest possible one, and at
    least one row is always selected: a model with the same score for all rows selects everything.
    on="each": that share of each set the rule is applied to, by rank, so that it is exact; of equal scores
    the earlier rows are taken. The share is rounded to the nearest number of rows, at least one.
    """

    share: float
    on: Literal["train", "validation", "each"] = "validation"
    threshold_: float | None = None

    wanted: ClassVar[Mapping[str, Wanted]] = {"share": FRACTION, "on": one_of("validation", "train", "each")}

    def fit(self, score: FloatArray, positive: BoolArray | None, columns: Columns) -> Self:
        """A fitted copy, from scores (n,); labels are not used."""
        if self.on == "each":
            return self
        descending = np.sort(check_scores(score, to_fit=True))[::-1]
        cut = nearest_cut(cuts_of(descending), count_of_share(self.share, len(descending)))
        return replace(self, threshold_=threshold_selecting(descending, cut))

    def decide(self, score: FloatArray, columns: Columns) -> BoolArray:
        """True (n,) where the positive class is decided."""
        if self.on != "each":
            return super().decide(score, columns)
        scores = check_scores(score)
        decided = np.zeros(len(scores), dtype=np.bool_)
        best_first = np.argsort(-scores, kind="stable")
        decided[best_first[: count_of_share(self.share, len(scores))]] = True
        return decided


@has_state
@dataclass(frozen=True)
class RecallReached(OneThreshold):
    """Decides by the highest threshold that at least the share `recall` of the positive rows lies above.

    It lies midway between the lowest score needed and the next lower one of any row.
    """

    recall: float
    on: FitOn = "validation"
    threshold_: float | None = None

    wanted: ClassVar[Mapping[str, Wanted]] = {"recall": FRACTION, "on": ROWS_TO_FIT_ON}
    needs_labels: ClassVar[bool] = True

    def fit(self, score: FloatArray, positive: BoolArray, columns: Columns) -> Self:
        """A fitted copy, from scores (n,) and labels (n,)."""
        descending, found = best_first(score, positive)
        if not found[-1]:
            raise UndefinedMetricError(
                f"a recall of {self.recall:g} has no threshold: none of the {len(descending)} rows that the "
                "rule is fitted on (",
                Argument("on", self.on),
                ") is positive.",
                argument="decision",
            )
        cuts = cuts_of(descending)
        first = np.argmax(found[cuts] / found[-1] >= self.recall)
        return replace(self, threshold_=threshold_selecting(descending, cuts[first]))


@has_state
@dataclass(frozen=True)
class EqualFalsePositiveRates(ThresholdOfGroup):
    """Decides by one threshold for each group, so that all groups have the same false-positive rate.

    The share `coverage` of all rows is decided positive (the paper's post-shift, Section 5.2).

    One rate t is common to all groups. A group with N negatives selects its j-th highest negative at
    t = j / (N + 1), and the m positives between two neighbouring negatives at equal steps between them. So
    only ranks count, and an increasing function of the scores gives the same decisions. The rows with the
    lowest t, up to the coverage, are positive. Without equal scores the coverage is exact to the nearest row,
    and the rates of any two groups differ by at most one negative of the smaller one.

    The column named by `group` says which group a row belongs to; in `fit` a group without negatives has no
    rate and is an error.
    """

    coverage: float
    on: FitOn = "train"
    group: str = "group"
    groups_: tuple[Any, ...] | None = None
    thresholds_: tuple[float, ...] | None = None

    wanted: ClassVar[Mapping[str, Wanted]] = {"coverage": FRACTION, "on": ROWS_TO_FIT_ON, "group": COLUMN}
    needs_labels: ClassVar[bool] = True
    may_be_infinite: ClassVar[tuple[str, ...]] = ("thresholds_",)

    @property
    def columns(self) -> tuple[str, ...]:
        """The column of groups."""
        return (self.group,)

    @property
    def thresholds(self) -> Thresholds:
        """The threshold of each group."""
        return tuple(zip(self.groups_ or (), self.thresholds_ or (), strict=True))

    def fit(self, score: FloatArray, positive: BoolArray, columns: Columns) -> Self:
        """A fitted copy, from scores (n,), labels (n,) and the column of groups (n,)."""
        scores = check_scores(score, to_fit=True)
        labels = check_positive(positive, len(scores))
        names, codes = groups_of_rows(columns, self.group, len(scores))
        negatives = np.bincount(codes[~labels], minlength=len(names))
        if empty := [names[g] for g in np.flatnonzero(negatives == 0)]:
            raise UndefinedMetricError(
                f"no false-positive rate for {_listed(empty)} of column {self.group!r}: no negative rows "
                "among those the rule is fitted on (",
                Argument("on", self.on),
                "). Merge small groups or leave them out.",
                argument="columns",
            )
        rows = [np.flatnonzero(codes == g) for g in range(len(names))]
        rows = [r[np.argsort(-scores[r], kind="stable")] for r in rows]  # best score first
        thresholds = self._thresholds([scores[r] for r in rows], [~labels[r] for r in rows])
        return replace(self, groups_=tuple(names), thresholds_=tuple(thresholds))

    def _thresholds(self, scores: Sequence[FloatArray], negative: Sequence[BoolArray]) -> list[float]:
        """The threshold of each group; the scores of each are in descending order."""
        entry = np.concatenate([_entry_rates(s, n) for s, n in zip(scores, negative, strict=True)])
        codes = np.repeat(np.arange(len(scores)), [len(s) for s in scores])
        # Rows of different groups with the same rate may be separated, equal scores of one group may not.
        order = np.lexsort((codes, entry))
        parted = (np.diff(entry[order]) > 0) | (np.diff(codes[order]) != 0)
        cuts = np.append(np.flatnonzero(parted) + 1, len(entry))
        cut = nearest_cut(cuts, count_of_share(self.coverage, len(entry)))
        counts = np.bincount(codes[order[:cut]], minlength=len(scores))
        return [threshold_selecting(s, int(m)) for s, m in zip(scores, counts, strict=True)]


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


def _listed(names: Sequence[Any]) -> str:
    shown = ", ".join(repr(name) for name in names[:5]) + (", …" if len(names) > 5 else "")
    return f"group {shown}" if len(names) == 1 else f"groups {shown}"


def check_scores(score: Any, n_dims: int = 1, *, to_fit: bool = False) -> FloatArray:
    """The scores (n,), or (n, C) of classes, as float64; raise unless decisions can be made by them, and
    unless there are rows `to_fit` on.

    Scores of classes may be −inf for impossible ones.
    """
    with refusing(lambda error: f"scores must be numbers: {error}.", "scores"):
        scores = np.asarray(score, dtype=np.float64)
    if n_dims == 1 and scores.ndim != 1:
        raise InvalidInputError(f"scores must have one dimension (rows), got shape {scores.shape}.")
    if n_dims == 2 and (scores.ndim != 2 or scores.shape[1] < 2):
        raise InvalidInputError(f"scores must have a column for each class, got shape {scores.shape}.")
    if to_fit and not len(scores):
        raise InvalidInputError("a decision rule cannot be fitted on no rows.")
    finite = np.isfinite(scores)
    if n_dims == 2:
        finite = (finite | (scores == -np.inf)).all(axis=1) & finite.any(axis=1)
    if bad := int((~finite).sum()):
        raise InvalidInputError(
            f"{bad} of {len(scores)} scores are NaN or infinite, so no decision can be made; "
            "the model has probably diverged."
        )
    return scores


def check_positive(positive: Any, n_rows: int) -> BoolArray:
    """The labels (n,) as booleans; raise unless they are booleans (or 0 and 1), one for each score."""
    labels = np.asarray(positive)
    if labels.shape != (n_rows,):
        raise InvalidInputError(
            f"positive must have the shape of the scores ({n_rows},), got {labels.shape}."
        )
    if labels.dtype.kind not in "biuf" or not np.isin(labels, (0, 1)).all():
        raise InvalidInputError("positive must be True or False for each row; compare y with the label.")
    return labels.astype(np.bool_, copy=False)


def best_first(score: Any, positive: Any) -> tuple[FloatArray, IntArray]:
    """The scores (n,) in descending order, and the number of positives among the first j of them (n + 1,)."""
    scores = check_scores(score, to_fit=True)
    labels = check_positive(positive, len(scores))
    order = np.argsort(-scores, kind="stable")
    return scores[order], np.concatenate(([0], np.cumsum(labels[order])))


def cuts_of(descending: FloatArray) -> IntArray:
    """The numbers of first rows that a threshold can select: scores (n,) that are equal stay together."""
    return np.concatenate(([0], np.flatnonzero(descending[1:] < descending[:-1]) + 1, [len(descending)]))


def threshold_between(low: float, high: float) -> float:
    """A threshold that `high` lies strictly above and `low` does not: their midpoint where floats allow."""
    middle = low / 2 + high / 2  # halves first: the sum of two large scores may overflow
    return middle if low <= middle < high else low


def threshold_selecting(descending: FloatArray, count: int) -> float:
    """The threshold that selects the first `count` of the scores (n,), which are in descending order.

    It is +inf for none and −inf for all, so that it selects none or all of any new rows, too.
    """
    if count <= 0:
        return float("inf")
    if count >= len(descending):
        return float("-inf")
    return threshold_between(float(descending[count]), float(descending[count - 1]))


def count_of_share(share: float, n_rows: int) -> int:
    """The number of rows in a `share` of `n_rows`, rounded to the nearest (halves up), at least one."""
    return min(n_rows, max(1, int(np.floor(share * n_rows + 0.5))))


def nearest_cut(cuts: IntArray, count: int) -> int:
    """The cut above 0 that is nearest to `count`, the lower in a tie."""
    above = cuts[cuts > 0]
    return int(above[np.argmin(np.abs(above - count))])


def groups_of_rows(columns: Columns, column: str, n_rows: int) -> tuple[list[Any], IntArray]:
    """The groups that occur in a column, in a fixed order, and the index (n,) of each row's group."""
    if column not in columns:
        raise InvalidInputError(
            f"the decision needs the column {column!r}, but got {sorted(columns)!r}.",
            InPython(
                f" Take it from a column of X (a data frame with a column named {column!r}) or pass "
                f"it: predict(X, columns={{{column!r}: …}}), and in fit as columns={{…}} and "
                f"validation=Rows(…, columns={{…}})."
            ),
            argument="columns",
        )
    values = np.asarray(columns[column])
    if values.shape != (n_rows,):
        raise InvalidInputError(
            f"column {column!r} must have one group for each of {n_rows} rows, got shape {values.shape}.",
            argument="columns",
        )
    if values.dtype.kind in "biuU":
        names, codes = np.unique(values, return_inverse=True)
        return names.tolist(), codes
    plain = [v.item() if isinstance(v, np.generic) else v for v in values.tolist()]
    distinct = set(plain)
    if bad := [v for v in distinct if not isinstance(v, bool | int | float | str) or v != v]:
        raise InvalidInputError(
            f"column {column!r} must hold numbers or strings as groups, none missing, got {bad[0]!r}.",
            argument="columns",
        )
    ordered = sorted(distinct, key=lambda v: (type(v).__name__, v))
    place = {name: code for code, name in enumerate(ordered)}
    return ordered, np.array([place[v] for v in plain], dtype=np.intp)
