"""Frozen records of a finished search, and their text for the terminal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from moew._util.margins import TWO_SIDED
from moew._util.numbers import number, signed
from moew.search._evaluate import Evaluator, FinalModel
from moew.search._honest_score import HonestScore
from moew.search._settings import SearchSettings
from moew.search._study import Trial, WeightStudy
from moew.types import FloatArray, IntArray, Task


@dataclass(frozen=True)
class SearchResult:
    """What a search found, in the metric's own units and direction."""

    metric: str
    greater_is_better: bool
    trials: tuple[Trial, ...]
    best_number: int
    honest: HonestScore
    alpha_zero: HonestScore  # of the α = 0 model: not chosen, but its rule and the metric have biases
    unweighted: HonestScore  # of the model with the user's own weights only; not chosen either
    alpha_zero_is_unweighted: bool  # π = 1, so both are the same model
    n_validation: int
    n_holdout: int = 0  # rows set aside for the honest scores
    notes: tuple[str, ...] = ()
    gain_error: float = (
        math.nan
    )  # standard error of the winner's metric minus the unweighted, on the same rows

    @property
    def best_trial(self) -> Trial:
        """The winner's trial."""
        return next(trial for trial in self.trials if trial.number == self.best_number)

    @property
    def best_score(self) -> float:
        """The winner's score on the validation rows."""
        return self.honest.best

    @property
    def honest_score(self) -> float:
        """The winner's score, corrected for the choice."""
        return self.honest.value

    @property
    def alpha_zero_score(self) -> float:
        """The α = 0 model's score on the validation rows."""
        return self.alpha_zero.best

    @property
    def unweighted_score(self) -> float:
        """The unweighted model's score on the validation rows."""
        return self.unweighted.best

    @property
    def gain(self) -> float:
        """The winner's honest score minus the unweighted model's, negated if smaller is better."""
        return self._sign * (self.honest.value - self.unweighted.value)

    @property
    def gain_interval(self) -> tuple[float, float]:
        """The gain's 95 % interval, for these two models on other rows."""
        half = TWO_SIDED * self.gain_error
        return self.gain - half, self.gain + half

    @property
    def is_below_unweighted(self) -> bool:
        """Whether the winner scores worse than the unweighted model, which is not a candidate if π ≠ 1."""
        return self._sign * (self.honest.best - self.unweighted.best) < 0

    @property
    def best_alpha(self) -> FloatArray:
        """The winner's alpha (d,)."""
        return self.best_trial.alpha

    @property
    def n_failed(self) -> int:
        """How many candidates failed."""
        return sum(trial.error is not None for trial in self.trials)

    @property
    def scores(self) -> dict[str, HonestScore]:
        """The scores of the models by name, as tables show them."""
        of_zero = {} if self.alpha_zero_is_unweighted else {"alpha = 0": self.alpha_zero}
        return {"unweighted": self.unweighted, **of_zero, "moew": self.honest}

    @property
    def _sign(self) -> float:
        return 1.0 if self.greater_is_better else -1.0

    def __str__(self) -> str:
        better = "higher" if self.greater_is_better else "lower"
        lines = [
            f"{self.metric} on {self.n_validation:,} validation rows ({better} is better)",
            f"{'':24}{'best':>12}{'honest':>12}",
            *(f"{name:24}{number(s.best):>12}{number(s.value):>12}" for name, s in self.scores.items()),
            f"{len(self.trials)} candidates ({self.n_failed} failed), the winner is {self.best_number}.",
        ]
        if math.isfinite(self.gain):
            low, high = map(signed, self.gain_interval)
            sure = f" (95 % interval {low} to {high})" if math.isfinite(self.gain_error) else ""
            lines.append(f"Gain over the unweighted model, by honest scores: {signed(self.gain)}{sure}.")
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])


@dataclass(frozen=True)
class FittedSearch:
    """A finished search: its settings, its result and its final models."""

    settings: SearchSettings
    task: Task
    evaluator: Evaluator
    study: WeightStudy  # with the weighting and the domain
    result: SearchResult
    winner: FinalModel
    weights: FloatArray  # (n,), the winner's, of the training rows
    training_rows: IntArray  # (n,), the numbers of those rows in X
    unweighted: FinalModel | None  # the model without learned weights; None if it failed or was not asked for

    @property
    def weighting(self) -> Any:
        """The fitted weighting, which gives the training rows weights for any alpha."""
        return self.study.weighting
