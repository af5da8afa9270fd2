"""Decision rules and metrics of the crime experiment: the library's, and those that only other readings of
the paper need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from experiments._searches import Problem
from moew.decision import EqualFalsePositiveRates, FixedThreshold, MostAccurate
from moew.metrics import Predictions, accuracy, fpr_gap, make_metric, respond
from moew.search._evaluate import Evaluator
from moew.types import Array, BoolArray, Columns, DecisionRule, FloatArray

N_GROUPS = 4
COVERAGE = 0.278  # the authors'
CLASSES = np.array([0, 1])
GREEDY_MOVES = 1000


@dataclass(frozen=True)
class ScoresExceeded:
    """A decision rule whose threshold is exceeded by the share `coverage` of the training scores;
    `np.percentile` interpolates it."""

    coverage: float
    threshold: float | None = None

    of: ClassVar[Any] = "score"
    fit_on: ClassVar[Any] = "train"
    needs_labels: ClassVar[bool] = False
    columns: ClassVar[tuple[str, ...]] = ()

    @property
    def thresholds(self) -> tuple[tuple[Any, float | None], ...]:
        return (("all rows", self.threshold),)

    def fit(self, score: FloatArray, positive: BoolArray, columns: Columns) -> Self:
        return replace(self, threshold=float(np.percentile(score, 100.0 * (1.0 - self.coverage))))

    def decide(self, score: FloatArray, columns: Columns) -> BoolArray:
        return np.asarray(score > np.float64(self.threshold))

    def state(self) -> dict[str, Any]:
        return {"kind": "ScoresExceeded", "coverage": self.coverage, "threshold": self.threshold}


@dataclass(frozen=True)
class MostAccurateAtEdge(MostAccurate):
    """The authors' threshold: the highest score that is not selected, not midway to the next one."""

    def fit(self, score: FloatArray, positive: BoolArray, columns: Columns) -> Self:
        fitted = super().fit(score, positive, columns)
        left_out = score[score <= np.float64(fitted.threshold_)]
        return replace(fitted, threshold_=float(left_out.max(initial=-np.inf)))


@dataclass(frozen=True)
class GreedyPostShift(EqualFalsePositiveRates):
    """The authors' post-shift: each group starts at its own highest-scoring share, rounded down; then, 1,000
    times, one row more is selected in the group with the lowest rate and one row less in the group with the
    highest. A threshold is the highest score of its group that is not selected."""

    def _thresholds(self, scores: Sequence[FloatArray], negative: Sequence[BoolArray]) -> list[float]:
        sizes = [len(s) for s in scores]
        # rate[g][m]: the false-positive rate of group g when its m best rows are selected.
        rate = [np.concatenate(([0.0], np.cumsum(n) / np.sum(n))).tolist() for n in negative]
        counts = [int(self.coverage * size) for size in sizes]
        groups = range(len(sizes))
        for _ in range(GREEDY_MOVES):
            lowest = min(groups, key=lambda g: rate[g][counts[g]])
            highest = max(groups, key=lambda g: rate[g][counts[g]])
            if lowest == highest:
                break  # all rates are equal
            counts[lowest] = min(counts[lowest] + 1, sizes[lowest])
            counts[highest] = max(counts[highest] - 1, 0)
        return [float(s[m]) if m < len(s) else -np.inf for s, m in zip(scores, counts, strict=True)]


def _largest_gap(part: Array, whole: Array, group: Array) -> float:
    """The gap between the highest and the lowest share of `part` (n,) in `whole` (n,) among the groups; the
    share of a group without any is 0."""
    n_part, n_whole = (np.bincount(group[rows], minlength=N_GROUPS) for rows in (part, whole))
    return float(np.ptp(n_part / np.maximum(n_whole, 1)))


@make_metric(greater_is_better=False, name="false-discovery rate gap")
def fdr_gap(y_true: Array, decision: Array, group: Array) -> float:
    """The gap between the groups' shares of wrong decisions among the positive ones."""
    return _largest_gap((decision == 1) & (y_true != 1), decision == 1, group)


@make_metric(greater_is_better=False, name="coverage gap")
def coverage_gap(y_true: Array, decision: Array, group: Array) -> float:
    """The gap between the groups' shares of positive decisions."""
    return _largest_gap(decision == 1, np.ones(len(y_true), dtype=np.bool_), group)


ONE_THRESHOLD: dict[str, DecisionRule] = {
    "training accuracy": MostAccurateAtEdge(on="train"),
    "validation accuracy": MostAccurateAtEdge(on="validation"),
    "zero": FixedThreshold(0.0),
    "coverage": ScoresExceeded(COVERAGE),
}
RULES: dict[str, DecisionRule] = {
    **ONE_THRESHOLD,
    "post-shift": GreedyPostShift(COVERAGE, on="train"),
}
MEASURES = {
    "accuracy": accuracy(),
    "FPR violation": fpr_gap(),
    "FDR violation": fdr_gap,
    "coverage violation": coverage_gap,
}


def all_measures(problem: Problem, repeat: int, model: Any, predictions: Predictions) -> dict[str, float]:
    """All measures, with all rules, on validation and test rows; keys are such as "zero: test accuracy"."""
    data = problem.data[repeat]
    scored = replace(predictions, scores=respond(model, data.validation.X, "score"))
    found: dict[str, float] = {}
    for name, rule in RULES.items():
        final = Evaluator(MEASURES["accuracy"], rule, CLASSES).final_model(model, scored, data)
        for part, rows in (("validation", data.validation), ("test", problem.test[repeat])):
            decided = final.decide(rows.X, rows.columns)
            for kind, measure in MEASURES.items():
                found[f"{name}: {part} {kind}"] = measure(rows.y, decided, rows.columns, pos_label=1)
    return found
