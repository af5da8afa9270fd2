"""Frozen records of a finished search, and their text for the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moew._printable import printable
from moew._util.margins import TWO_SIDED
from moew._util.numbers import alike, count, ends, signed
from moew.search._calibrate import JudgedPredictions
from moew.search._evaluate import Evaluator, FinalModel
from moew.search._honest_score import HonestScore
from moew.search._pareto import ParetoFront
from moew.search._settings import SearchSettings
from moew.search._stop import CutOff, Stopped
from moew.search._study import Trial, WeightStudy
from moew.search._tables import data_frame, html_table, trial_columns
from moew.search._ways import UNWEIGHTED, WEIGHTS
from moew.training import FitParams
from moew.types import Array, FloatArray, IntArray, Task

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class WayResult:
    """What one way to the metric is worth, in the metric's own units."""

    name: str
    simple: bool
    best: float  # on the judged rows
    honest: float  # corrected for its own choices; `SearchResult.honest` is for that among the ways, too
    error: float  # standard error of its difference to what is handed out
    n_members: int  # models whose predictions are averaged


@dataclass(frozen=True)
class SearchResult:
    """What a search found, in the metric's own units and direction.

    `print` shows all ways to the metric, a notebook the same as a table.
    """

    metric: str
    greater_is_better: bool
    trials: tuple[Trial, ...]
    best_number: int
    honest: HonestScore
    alpha_zero: HonestScore  # of the α = 0 model: not chosen, but its rule and the metric have biases
    unweighted: HonestScore  # of the model with the user's own weights only; not chosen either
    alpha_zero_is_unweighted: bool  # π = 1, so both are the same model
    n_validation: int
    n_out_of_fold: int = 0  # training rows that are judged out of fold
    n_holdout: int = 0  # rows set aside for the honest scores
    notes: tuple[str, ...] = ()
    gain_error: float = math.nan  # standard error of the gain over the unweighted model
    ways: tuple[WayResult, ...] = ()  # all ways to the metric, the simplest first
    chosen: str = WEIGHTS  # the way that is handed out
    reason: str = ""  # why
    n_models: int = 0  # candidates of all ways
    best_parameters: Mapping[str, Any] = field(default_factory=dict)  # searched ones, of what is handed out
    stopped: Stopped | None = (
        None  # why and where the search stopped early; None if it trained all candidates
    )
    cut_off: CutOff | None = None  # if the timeout or Ctrl-C ended the search before its last candidate
    pareto: ParetoFront | None = None  # all tried models by all metrics; None if there is only one metric

    @property
    def best_trial(self) -> Trial:
        """The winner's trial."""
        return next(trial for trial in self.trials if trial.number == self.best_number)

    @property
    def best_score(self) -> float:
        """The score of what is handed out on the judged rows."""
        return self.honest.best

    @property
    def honest_score(self) -> float:
        """The same, corrected for all choices."""
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
    def rows_judged(self) -> str:
        """How many rows of which kind the scores are from, in words."""
        if not self.n_out_of_fold:
            return f"{self.n_validation:,} validation rows"
        if not self.n_validation:
            return f"{self.n_out_of_fold:,} rows out of fold"
        return f"{self.n_validation:,} validation rows and {self.n_out_of_fold:,} training rows out of fold"

    @property
    def _sign(self) -> float:
        return 1.0 if self.greater_is_better else -1.0

    @property
    def _shown(self) -> tuple[list[str], list[str], str]:
        """The ways' best and honest scores and the honest score of what is handed out, as text."""
        n = len(self.ways)
        scores = [*(way.best for way in self.ways), *(way.honest for way in self.ways), self.honest.value]
        texts = alike(scores, errors=[TWO_SIDED * way.error for way in self.ways])
        return texts[:n], texts[n:-1], texts[-1]

    def to_frame(self) -> DataFrame:
        """The trials of the search for example weights as a pandas data frame, a row for each.

        Columns: `number`; `value`, the metric in its own units, NaN for failures; `rank`, 1 for the best and
        the same for equals, failures last; `error`, why there is no value; `pending`, whether it was asked
        for and not trained; `alpha_0`, `alpha_1`, …; and `param_NAME` for each hyper-parameter that is
        searched.
        """
        return data_frame(trial_columns(self.trials, self.greater_is_better), "a result")

    @property
    def _gain_words(self) -> str:
        gain, sure = signed(self.gain, error=TWO_SIDED * self.gain_error), ""
        if math.isfinite(self.gain_error):
            low, high = ends(*self.gain_interval)
            sure = f" (95 % interval {low} to {high})"
        return f"Gain over the unweighted model, by honest scores: {gain}{sure}."

    def __repr__(self) -> str:
        better = "higher" if self.greater_is_better else "lower"
        honest, unweighted = alike(
            [self.honest.value, self.unweighted.value], errors=[TWO_SIDED * self.gain_error]
        )
        lines = [
            f"<SearchResult: {self.metric} ({better} is better), "
            f"{count(self.n_models or len(self.trials), 'candidate')}",
            f" Handed out: {self.chosen}.",
            f" Honest score: {honest} (unweighted {unweighted}).",
            *([f" {self._gain_words}"] if math.isfinite(self.gain) and self.chosen != UNWEIGHTED else []),
        ]
        return printable("\n".join(lines)) + ">"

    def _repr_html_(self) -> str:
        better = "higher" if self.greater_is_better else "lower"
        names = [way.name for way in self.ways]
        best, honest, _ = self._shown
        rows = [(name, best[k], honest[k], self._remark(name)) for k, name in enumerate(names)]
        return html_table(
            f"{self.metric} on {self.rows_judged} ({better} is better)",
            ("way", "best", "honest", ""),
            rows,
            self._words_below,
            names.index(self.chosen) if self.chosen in names else None,
        )

    def __str__(self) -> str:
        better = "higher" if self.greater_is_better else "lower"
        best, honest, _ = self._shown
        lines = [
            f"{self.metric} on {self.rows_judged} ({better} is better)",
            f"{'':28}{'best':>12}{'honest':>12}",
            *(
                f"{way.name:28}{best[k]:>12}{honest[k]:>12}  {self._remark(way.name)}".rstrip()
                for k, way in enumerate(self.ways)
            ),
            *self._words_below,
        ]
        return printable("\n".join(lines))

    def _remark(self, way: str) -> str:
        """What stands behind a way in the table of the ways."""
        if way == self.chosen:
            return "handed out"
        breaks = self.pareto is not None and self.pareto.breaks_bounds(way)
        return "does not keep the bounds" if breaks else ""

    @property
    def _words_below(self) -> list[str]:
        """What stands below the table of the ways."""
        lines = [
            f"{self.n_models or len(self.trials)} candidates ({self.n_failed} failed). Handed out: "
            f"{self.chosen}, {self.reason}."
        ]
        _, honest, whole = self._shown
        own = next((text for way, text in zip(self.ways, honest, strict=True) if way.name == self.chosen), "")
        if math.isfinite(self.gain) and not self.n_holdout and own != whole:
            lines.append(f"Corrected for the choice among the ways, too, it scores {whole}.")
        if math.isfinite(self.gain) and self.chosen != UNWEIGHTED:
            lines.append(self._gain_words)
        lines += [] if self.pareto is None else self.pareto.lines()
        return [*lines, *(f"Note: {note}" for note in self.notes)]


@dataclass(frozen=True)
class JudgedDecisions:
    """What two models decide, or predict in regression, on the judged rows, by recorded predictions."""

    y: Array  # (n,), the labels
    before: Array  # (n,), of the unweighted model
    after: Array  # (n,), of what is handed out


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
    unweighted: FinalModel | None  # the model without learned weights; None if it failed
    weight_function: Any  # of what is handed out: gives weights (n,) for any rows
    example_rows: Any = field(default=None, repr=False)  # a few of X, to check files of the models with
    fit_params: FitParams = field(default_factory=FitParams, repr=False)  # what `fit` got besides weights
    # Of the rows that the search judged; None where not recorded, and in a search loaded from a file.
    judged_predictions: JudgedPredictions | None = field(default=None, repr=False)
    judged_decisions: JudgedDecisions | None = field(default=None, repr=False)
    simple_models: Mapping[str, FinalModel] = field(
        default_factory=dict, repr=False
    )  # of the simple ways that need no training beside the unweighted model, by way

    @property
    def weighting(self) -> Any:
        """The fitted weighting, which gives the training rows weights for any alpha."""
        return self.study.weighting
