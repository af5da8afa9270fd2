"""Decision rules with one threshold for all rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from numbers import Real
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
    nearest_cut,
    number_to_json,
    threshold_at_edge,
    threshold_selecting,
)
from moew.exceptions import Argument, InvalidInputError, UndefinedMetricError
from moew.types import BoolArray, Columns, FloatArray

FitOn = Literal["train", "validation"]


class _OneThreshold(Stateful):
    """Base of the decision rules with one threshold; `threshold_` is None until fitted."""

    state_home: ClassVar[str] = "moew.decision"
    of: Literal["score", "probability"] = "score"
    columns: ClassVar[tuple[str, ...]] = ()
    threshold_: float | None

    @property
    def thresholds(self) -> tuple[tuple[Any, float | None], ...]:
        """The one threshold, of all rows."""
        return (("all rows", self.threshold_),)

    def decide(self, score: FloatArray, columns: Columns) -> BoolArray:
        """True (n,) where the score (n,) lies above the threshold."""
        if self.threshold_ is None:
            raise InvalidInputError(
                f"{self!r} has no threshold yet; call fit and use what it returns.", argument="decision"
            )
        return check_scores(score) > self.threshold_

    def _content(self) -> State:
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {n: number_to_json(v) if isinstance(v, float) else v for n, v in values.items()}

    @classmethod
    def from_state(cls, state: State, objects: Mapping[str, Any]) -> Self:
        """Rebuild the rule from its state."""
        content = {name: value for name, value in state.items() if name != "kind"}
        if content.get("threshold_") is not None:
            content["threshold_"] = float(content["threshold_"])
        return cls(**content)


@has_state
@dataclass(frozen=True)
class FixedThreshold(_OneThreshold):
    """Decides positive above a given value of the model's score, or of the positive class's probability.

    The score is the decision function where the model has one (its own threshold is 0).
    """

    threshold: float = 0.0
    of: Literal["score", "probability"] = "score"

    fit_on: ClassVar[None] = None
    needs_labels: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if isinstance(self.threshold, bool) or not isinstance(self.threshold, Real):
            raise InvalidInputError(
                f"threshold must be a number, got {self.threshold!r}.", argument="threshold"
            )
        if not np.isfinite(self.threshold):
            raise InvalidInputError(
                f"threshold must be finite, got {self.threshold!r}.", argument="threshold"
            )
        check_choice(self.of, "of", ("score", "probability"))
        if self.of == "probability" and not 0 <= self.threshold <= 1:
            raise InvalidInputError(
                f"a threshold of a probability lies between 0 and 1, got {self.threshold!r}; one of the "
                "model's decision function is ",
                Argument("decision", f"score={self.threshold!r}"),
                ".",
                argument="decision",
            )
        object.__setattr__(self, "threshold", float(self.threshold))

    @property
    def threshold_(self) -> float:  # type: ignore[override]
        """The given threshold; nothing is fitted."""
        return self.threshold

    def fit(self, score: FloatArray, positive: BoolArray | None, columns: Columns) -> Self:
        """Return the rule itself; there is nothing to fit."""
        return self


@has_state
@dataclass(frozen=True)
class MostAccurate(_OneThreshold):
    """Decides by the threshold with the highest accuracy on the rows named by `on`.

    Thresholds lie midway between neighbouring scores, above all or below all, or, with at="edge", on the
    highest score that is not selected, as in the authors' scripts. Of several that are equally accurate the
    highest is taken, which decides the fewest rows positive.

    Examples
    --------
    >>> rule = MostAccurate().fit(np.array([0.1, 0.4, 0.6, 0.9]), np.array([False, False, True, True]), {})
    >>> rule.threshold_
    0.5
    >>> rule.decide(np.array([0.2, 0.7]), {}).tolist()
    [False, True]
    """

    on: FitOn = "validation"
    at: Literal["middle", "edge"] = "middle"
    threshold_: float | None = None

    needs_labels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_choice(self.on, "on", ("train", "validation"))
        check_choice(self.at, "at", ("middle", "edge"))

    @property
    def fit_on(self) -> FitOn:
        """The rows the rule is fitted on."""
        return self.on

    def fit(self, score: FloatArray, positive: BoolArray, columns: Columns) -> Self:
        """A fitted copy, from scores (n,) and labels (n,)."""
        scores = check_some_scores(score)
        labels = check_positive(positive, len(scores))
        order = np.argsort(-scores, kind="stable")
        descending = scores[order]
        # Correct decisions when the first j rows are positive, up to a constant: +1 for each positive
        # among them, −1 for each negative. Equal scores cannot be separated.
        gain = np.concatenate(([0], np.cumsum(np.where(labels[order], 1, -1))))
        possible = np.concatenate(([True], descending[1:] < descending[:-1], [True]))
        best = int(np.argmax(np.where(possible, gain, np.iinfo(gain.dtype).min)))
        place = threshold_selecting if self.at == "middle" else threshold_at_edge
        return replace(self, threshold_=place(descending, best))


@has_state
@dataclass(frozen=True)
class ShareSelected(_OneThreshold):
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

    needs_labels: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_fraction(self.share, "share")
        check_choice(self.on, "on", ("validation", "train", "each"))
        object.__setattr__(self, "share", float(self.share))

    @property
    def fit_on(self) -> FitOn | None:
        """The rows the rule is fitted on; None where it is applied to each set by itself."""
        return None if self.on == "each" else self.on

    def fit(self, score: FloatArray, positive: BoolArray | None, columns: Columns) -> Self:
        """A fitted copy, from scores (n,); labels are not used."""
        if self.on == "each":
            return self
        descending = np.sort(check_some_scores(score))[::-1]
        cut = nearest_cut(descending[1:] < descending[:-1], count_of_share(self.share, len(descending)))
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
class RecallReached(_OneThreshold):
    """Decides by the highest threshold that at least the share `recall` of the positive rows lies above.

    It lies midway between the lowest score needed and the next lower one of any row.
    """

    recall: float
    on: FitOn = "validation"
    threshold_: float | None = None

    needs_labels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fraction(self.recall, "recall")
        check_choice(self.on, "on", ("train", "validation"))
        object.__setattr__(self, "recall", float(self.recall))

    @property
    def fit_on(self) -> FitOn:
        """The rows the rule is fitted on."""
        return self.on

    def fit(self, score: FloatArray, positive: BoolArray, columns: Columns) -> Self:
        """A fitted copy, from scores (n,) and labels (n,)."""
        scores = check_some_scores(score)
        of_positives = np.sort(scores[check_positive(positive, len(scores))])[::-1]
        if not len(of_positives):
            raise UndefinedMetricError(
                f"a recall of {self.recall:g} has no threshold: none of the {len(scores)} rows that the "
                "rule is fitted on (",
                Argument("on", self.on),
                ") is positive.",
                argument="decision",
            )
        recall_at = np.arange(1, len(of_positives) + 1) / len(of_positives)
        lowest_needed = of_positives[np.searchsorted(recall_at, self.recall)]
        descending = np.sort(scores)[::-1]
        count = int(np.count_nonzero(scores >= lowest_needed))
        return replace(self, threshold_=threshold_selecting(descending, count))
