"""Frozen records of a finished search, and their text for the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from moew._printable import printable
from moew._util.margins import TWO_SIDED
from moew._util.numbers import alike, count, ends, signed
from moew.data import LabelledRows
from moew.exceptions import MoewError
from moew.metrics import Predictions
from moew.search._evaluate import Evaluator, FinalModel
from moew.search._front import ParetoFront
from moew.search._honest_score import HonestScore
from moew.search._loop import CutOff, Stopped
from moew.search._settings import SearchSettings
from moew.search._strategies import UNWEIGHTED, WEIGHTS
from moew.search._study import Trial, WeightStudy
from moew.training import FitParams
from moew.types import Array, FloatArray, IntArray, Task

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class StrategyResult:
    """What one strategy is worth, in the metric's own units."""

    name: str
    simple: bool
    apparent: float  # on the evaluation rows
    honest: float  # corrected for its own choices; `SearchResult.honest` is for that among them, too
    error: float  # standard error of its difference to the selected model
    n_members: int  # models whose predictions are averaged


@dataclass(frozen=True)
class SearchResult:
    """What a search found, in the metric's own units and direction.

    `print` shows all strategies, a notebook the same as a table.
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
    n_out_of_fold: int = 0  # training rows that are evaluated out of fold
    n_effective: float = 0.0  # evaluation rows, training rows by what they are worth of the others' kind
    n_holdout: int = 0  # rows set aside for the honest scores
    notes: tuple[str, ...] = ()
    gain_error: float = math.nan  # standard error of the gain over the unweighted model
    strategies: tuple[StrategyResult, ...] = ()  # all strategies, the simplest first
    selected: str = WEIGHTS  # the selected strategy
    reason: str = ""  # why
    n_models: int = 0  # candidates of all strategies
    best_parameters: Mapping[str, Any] = field(default_factory=dict)  # searched ones, of the selected model
    stopped: Stopped | None = None  # why and where it stopped early; None if it trained all candidates
    cut_off: CutOff | None = None  # if the timeout or Ctrl-C ended the search before its last candidate
    pareto: ParetoFront | None = None  # all tried models by all metrics; None if there is only one metric

    @property
    def best_trial(self) -> Trial:
        """The winner's trial."""
        return next(trial for trial in self.trials if trial.number == self.best_number)

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
        return self._sign * (self.honest.apparent - self.unweighted.apparent) < 0

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
    def evaluated_on(self) -> str:
        """How many rows of which kind the scores are from, in words."""
        if not self.n_out_of_fold:
            return f"{self.n_validation:,} validation rows"
        if not self.n_validation:
            return f"{self.n_out_of_fold:,} rows out of fold"
        return f"{self.n_validation:,} validation rows and {self.n_out_of_fold:,} training rows out of fold"

    @property
    def _sign(self) -> float:
        return 1.0 if self.greater_is_better else -1.0

    def to_frame(self) -> DataFrame:
        """The trials of the search for example weights as a pandas data frame, a row for each.

        Columns: `number`; `value`, the metric in its own units, NaN for failures; `rank`, 1 for the best and
        the same for equals, failures last; `error`, why there is no value; `pending`, whether it was asked
        for and not trained; `alpha_0`, `alpha_1`, …; and `param_NAME` for each hyper-parameter that is
        searched.
        """
        found = cv_results(self.trials, self.greater_is_better)
        columns = {
            "number": np.array([trial.number for trial in self.trials], dtype=np.int64),
            "value": np.array([trial.value for trial in self.trials], dtype=np.float64),
            "rank": found["rank_test_score"].astype(np.int64),
            "error": found["error"],
            "pending": np.array([trial.pending for trial in self.trials], dtype=bool),
        }
        for kind in ("alpha_", "param_"):
            columns |= {name: column for name, column in found.items() if name.startswith(kind)}
        return data_frame(columns, "a result")

    @property
    def _gain_words(self) -> str:
        gain, sure = signed(self.gain, error=TWO_SIDED * self.gain_error), ""
        if math.isfinite(self.gain_error):
            low, high = ends(*self.gain_interval)
            sure = f" (95 % interval {low} to {high})"
        return f"Gain over the unweighted model, by honest scores: {gain}{sure}."

    @property
    def _has_gain(self) -> bool:
        return math.isfinite(self.gain) and self.selected != UNWEIGHTED

    @property
    def _table(self) -> tuple[str, list[tuple[str, str, str, str]], list[str]]:
        """The caption; the strategies with their best and honest scores and a remark; and what stands below
        them."""
        better, n = "higher" if self.greater_is_better else "lower", len(self.strategies)
        scores = [*(one.apparent for one in self.strategies), *(one.honest for one in self.strategies)]
        errors = [TWO_SIDED * strategy.error for strategy in self.strategies]
        *texts, whole = alike([*scores, self.honest.value], errors=errors)
        rows = [
            (one.name, best, honest, self._remark(one.name))
            for one, best, honest in zip(self.strategies, texts[:n], texts[n:], strict=True)
        ]
        below = [
            f"{self.n_models or len(self.trials)} candidates ({self.n_failed} failed). Selected: "
            f"{self.selected}, {self.reason}."
        ]
        own = next((honest for name, _, honest, _ in rows if name == self.selected), "")
        if math.isfinite(self.gain) and not self.n_holdout and own != whole:
            below.append(f"Corrected for the choice among the strategies, too, it scores {whole}.")
        below += [self._gain_words] if self._has_gain else []
        below += [] if self.pareto is None else self.pareto.lines()
        below += [f"Note: {note}" for note in self.notes]
        return f"{self.metric} on {self.evaluated_on} ({better} is better)", rows, below

    def _remark(self, strategy: str) -> str:
        if strategy == self.selected:
            return "selected"
        breaks = self.pareto is not None and self.pareto.breaks_bounds(strategy)
        return "does not keep the bounds" if breaks else ""

    def __repr__(self) -> str:
        better = "higher" if self.greater_is_better else "lower"
        scores = [self.honest.value, self.unweighted.value]
        honest, unweighted = alike(scores, errors=[TWO_SIDED * self.gain_error])
        lines = [
            f"<SearchResult: {self.metric} ({better} is better), "
            f"{count(self.n_models or len(self.trials), 'candidate')}",
            f" Selected: {self.selected}.",
            f" Honest score: {honest} (unweighted {unweighted}).",
            *([f" {self._gain_words}"] if self._has_gain else []),
        ]
        return printable("\n".join(lines)) + ">"

    def _repr_html_(self) -> str:
        caption, rows, below = self._table
        chosen = next((k for k, row in enumerate(rows) if row[0] == self.selected), None)
        return html_table(caption, ("strategy", "apparent", "honest", ""), rows, below, chosen)

    def __str__(self) -> str:
        caption, rows, below = self._table
        shown = [f"{name:28}{best:>12}{honest:>12}  {remark}".rstrip() for name, best, honest, remark in rows]
        heads = f"{'':28}{'apparent':>12}{'honest':>12}"
        return printable("\n".join([caption, heads, *shown, *below]))


@dataclass(frozen=True)
class EvaluationPredictions:
    """The evaluation rows with what the models of the selected model predicted there that did not see
    them."""

    rows: LabelledRows
    predictions: Predictions
    raw: FloatArray | None = None  # (n, C), probabilities before calibration; None if the model has none
    calibrated: FloatArray | None = None  # (n, C), by curves that were fitted on the other half of the rows


@dataclass(frozen=True)
class EvaluationDecisions:
    """What two models decide, or predict in regression, on the evaluation rows, by recorded predictions."""

    y: Array  # (n,), the labels
    before: Array  # (n,), of the unweighted model
    after: Array  # (n,), of the selected model


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
    weight_function: Any  # of the selected model: gives weights (n,) for any rows
    example_rows: Any = field(default=None, repr=False)  # a few of X, to check files of the models with
    fit_params: FitParams = field(default_factory=FitParams, repr=False)  # what `fit` got besides weights
    # Of the rows that the search evaluated; None where not recorded, and in a search loaded from a file.
    evaluation_predictions: EvaluationPredictions | None = field(default=None, repr=False)
    evaluation_decisions: EvaluationDecisions | None = field(default=None, repr=False)
    # Of the simple strategies that need no training beside the unweighted model, by strategy.
    simple_models: Mapping[str, FinalModel] = field(default_factory=dict, repr=False)

    @property
    def weighting(self) -> Any:
        """The fitted weighting, which gives the training rows weights for any alpha."""
        return self.study.weighting


# No colours of its own, so that it is as light or dark as the notebook.
_TABLE = "border-collapse: collapse; margin: 0.4em 0; font: inherit; font-variant-numeric: tabular-nums"
_CELL = "padding: 0.15em 1em 0.15em 0; border: none; background: none; text-align: "
_RULE = "; border-bottom: 1px solid currentColor"
_CHOSEN = "; font-weight: bold"


def html_table(
    caption: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    below: Sequence[str],
    chosen: int | None = None,
) -> str:
    """A table as HTML that needs nothing else, with lines of text below; row number `chosen` is bold."""

    def text(words: str) -> str:
        return escape(printable(words))

    def line(cells: Sequence[str], tag: str, more: str = "") -> str:
        shown = (
            f'<{tag} style="{_CELL}{"right" if k else "left"}{more}">{text(cell)}</{tag}>'
            for k, cell in enumerate(cells)
        )
        return f"<tr>{''.join(shown)}</tr>"

    body = "".join(line(row, "td", _CHOSEN if k == chosen else "") for k, row in enumerate(rows))
    after = "".join(f"<div>{text(words)}</div>" for words in below)
    return (
        f'<div><div>{text(caption)}</div><table style="{_TABLE}"><thead>{line(heads, "th", _RULE)}</thead>'
        f"<tbody>{body}</tbody></table>{after}</div>"
    )


def data_frame(columns: Mapping[str, Any], what: str) -> DataFrame:
    """The columns as a data frame of pandas, which is loaded now; `what` names it in the error without."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MoewError(
            f"{what} as a data frame needs pandas; install it with: pip install 'moew[parquet]'"
        ) from error
    return pd.DataFrame(columns)


def cv_results(trials: Sequence[Trial], greater_is_better: bool) -> dict[str, Any]:
    """The trials in the layout of scikit-learn's `cv_results_`; see `MetricSearch`."""
    values = np.array([trial.value for trial in trials], dtype=np.float64)
    scores = values if greater_is_better else -values
    n_dims = max((len(trial.alpha) for trial in trials), default=0)
    names = dict.fromkeys(name for trial in trials for name in trial.parameters)
    return {
        "params": [dict(trial.parameters) for trial in trials],
        **{f"param_{name}": _parameter(name, trials) for name in names},
        **{f"alpha_{k}": np.array([trial.alpha[k] for trial in trials]) for k in range(n_dims)},
        "mean_test_score": scores,
        "rank_test_score": ranks(scores).astype(np.int32),
        "error": _objects([trial.error for trial in trials]),
    }


def ranks(scores: FloatArray) -> IntArray:
    """1 for the highest of the scores (n,), the same for equal ones; those that are NaN come last."""
    known = scores[~np.isnan(scores)]
    n_better = len(known) - np.searchsorted(np.sort(known), scores, side="right")
    return np.asarray(np.where(np.isnan(scores), len(known), n_better) + 1, dtype=np.int64)


def _parameter(name: str, trials: Sequence[Trial]) -> Any:
    """A masked array (n,) of a hyper-parameter, as scikit-learn has it."""
    values = [trial.parameters.get(name) for trial in trials]
    missing = [name not in trial.parameters for trial in trials]
    kinds = {type(value) for value, gone in zip(values, missing, strict=True) if not gone}
    plain = kinds <= {int, float} and not any(missing)
    return np.ma.MaskedArray(np.array(values) if plain else _objects(values), mask=missing)


def _objects(values: Sequence[Any]) -> Any:
    """An array (n,) of any objects, also of lists, which NumPy would take for rows."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
