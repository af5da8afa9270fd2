"""Frozen records of a finished search, and how they read on a terminal."""

from __future__ import annotations

import math
from dataclasses import dataclass

from moew.protocols import FloatArray
from moew.selection import HonestScore
from moew.study import Told


@dataclass(frozen=True)
class SearchResult:
    """What a search found, in the metric's own units and direction."""

    metric: str
    greater_is_better: bool
    candidates: tuple[Told, ...]
    best_number: int
    honest: HonestScore
    baseline: HonestScore  # of the α = 0 model: not chosen, but its decision rule and the metric have biases
    n_validation: int
    notes: tuple[str, ...] = ()
    gain_error: float = (
        math.nan
    )  # standard error of the winner's metric minus the baseline's, on the same rows

    @property
    def best_score(self) -> float:
        return self.honest.best

    @property
    def honest_score(self) -> float:
        return self.honest.value

    @property
    def baseline_score(self) -> float:
        return self.baseline.best

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
            f"{'baseline (alpha = 0)':24}{shown(self.baseline.best, 12)}{shown(self.baseline.value, 12)}",
            f"{'moew':24}{shown(self.honest.best, 12)}{shown(self.honest.value, 12)}",
            f"{len(self.candidates)} candidates ({self.n_failed} failed), the winner is {self.best_number}.",
        ]
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])


def shown(value: float, width: int) -> str:
    """A score in a table's column; a dash where there is none."""
    return f"{'–' if math.isnan(value) else f'{value:.4g}':>{width}}"
