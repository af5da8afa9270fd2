"""Frozen records of a finished search, and how they read on a terminal."""

from __future__ import annotations

import math
from dataclasses import dataclass

from moew.protocols import FloatArray
from moew.selection import HonestScore
from moew.study import Told


@dataclass(frozen=True)
class SearchResult:
    """What a search found, in the metric's own units and direction.

    `baseline_score` is the α = 0 model's: it was not chosen, so its score is honest as it stands.
    """

    metric: str
    greater_is_better: bool
    candidates: tuple[Told, ...]
    best_number: int
    best_score: float
    honest: HonestScore
    baseline_score: float
    n_validation: int
    notes: tuple[str, ...] = ()

    @property
    def honest_score(self) -> float:
        return self.honest.value

    @property
    def best_alpha(self) -> FloatArray:
        return self.candidates[self.best_number].candidate.alpha

    @property
    def n_failed(self) -> int:
        return sum(told.error is not None for told in self.candidates)

    def __str__(self) -> str:
        better = "higher" if self.greater_is_better else "lower"
        lines = [
            f"{self.metric} on {self.n_validation:,} validation rows ({better} is better)",
            f"{'':24}{'best':>12}{'honest':>12}",
            f"{'baseline (alpha = 0)':24}{_number(self.baseline_score)}{_number(self.baseline_score)}",
            f"{'moew':24}{_number(self.best_score)}{_number(self.honest_score)}",
            f"{len(self.candidates)} candidates ({self.n_failed} failed), the winner is {self.best_number}.",
        ]
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])


def _number(value: float) -> str:
    return f"{'undefined':>12}" if math.isnan(value) else f"{value:>12.4g}"
