"""Where there are several metrics: all models that were tried by all of them, and which no other beats."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from moew._printable import shortened
from moew._util.numbers import number
from moew.data import LabelledRows
from moew.metrics import Predictions
from moew.search._choices import Chooser
from moew.search._evaluate import Evaluator
from moew.search._honest_score import StrategyScore, honest_of
from moew.search._study import Trial
from moew.types import BoolArray, FloatArray

_OFF_THE_FRONT = (
    "The selected model is not on the front: it is chosen by honest scores and bounds; see `result_.reason`."
)


@dataclass(frozen=True)
class TriedModel:
    """A model that was tried: a candidate of a search, or what a strategy chose, which may be an average of
    several or have tuned decisions.

    Values are in the order of `ParetoFront.metrics`, in the metrics' own units, NaN where undefined.
    """

    strategy: str
    number: int | None  # of the candidate in its search; None: what the strategy chose
    values: tuple[float, ...]  # on the evaluation rows
    honest: tuple[float, ...] = ()  # of what a strategy chose: corrected for its choice
    limits: tuple[float, ...] = ()  # of what a strategy chose: the bounded metrics' values with their margins
    keeps: bool | None = None  # whether all bounds are kept; None of candidates, and without constraints
    on_front: bool = False
    selected: bool = False

    @property
    def name(self) -> str:
        """What the model is called in tables."""
        return self.strategy if self.number is None else f"{self.strategy}, candidate {self.number}"


@dataclass(frozen=True)
class ParetoFront:
    """All tried models with their values by all metrics; those on the front are beaten by no other in all.

    Candidates are evaluated by the models of the search's folds, what the strategies chose by those of the
    finalists'."""

    metrics: tuple[str, ...]  # the one to optimise first
    greater_is_better: tuple[bool, ...]
    constraints: tuple[str, ...]  # in words, such as "fpr_gap <= 0.05"
    bounded: tuple[str, ...]  # the metrics of the constraints
    bounds: tuple[float, ...]  # and their bounds
    models: tuple[TriedModel, ...]

    @property
    def front(self) -> tuple[TriedModel, ...]:
        """The models on the front, the best by the first metric first."""
        sign = 1.0 if self.greater_is_better[0] else -1.0
        return tuple(
            sorted((m for m in self.models if m.on_front), key=lambda model: -sign * model.values[0])
        )

    @property
    def selected(self) -> TriedModel:
        """The selected model."""
        return next(model for model in self.models if model.selected)

    def breaks_bounds(self, strategy: str) -> bool:
        """Whether what the strategy chose does not keep the bounds with its margin."""
        return any(model.strategy == strategy and model.keeps is False for model in self.models)

    def to_frame(self) -> Any:
        """All models as a pandas data frame, a row for each."""
        import pandas as pd

        columns = {
            "strategy": [model.strategy for model in self.models],
            "candidate": [model.number for model in self.models],
            **{name: [model.values[k] for model in self.models] for k, name in enumerate(self.metrics)},
        }
        for name in ("on_front", "keeps", "selected"):
            columns[name] = [getattr(model, name) for model in self.models]
        return pd.DataFrame(columns).astype({"candidate": "Int64"})

    def lines(self) -> list[str]:
        """What the other metrics are of the selected model, in words."""
        chosen = self.selected
        plain = next((m for m in self.models if m.strategy == "unweighted" and m.number is None), None)
        told = []
        for k, name in list(enumerate(self.metrics))[1:]:
            better = "higher" if self.greater_is_better[k] else "lower"
            honest = f", honest {number(chosen.honest[k])}" if math.isfinite(chosen.honest[k]) else ""
            beside = "" if plain in (None, chosen) else f"; unweighted {number(plain.values[k])}"
            value = f"{number(chosen.values[k])}{honest}{beside}"
            told.append(f"{name} of the selected model: {value} ({better} is better).")
        for text, name, limit in zip(self.constraints, self.bounded, chosen.limits, strict=True):
            kept = "kept" if chosen.keeps else "not kept for certain"
            told.append(f"{text}: {kept}; {name} with its margin is {number(limit)}.")
        return told

    def __str__(self) -> str:
        width = max(len(model.name) for model in self.front)
        heads = "".join(f"{name[:20]:>22}" for name in self.metrics)
        lines = [f"{len(self.front)} of {len(self.models)} models are on the front", f"{'':{width}}{heads}"]
        for model in dict.fromkeys((*self.front, self.selected)):
            values = "".join(f"{number(value):>22}" for value in model.values)
            lines.append(f"{model.name:{width}}{values}{'  selected' if model.selected else ''}")
        return "\n".join([*lines, *([] if self.selected.on_front else [_OFF_THE_FRONT])])


def front_of(
    chooser: Chooser,
    numbers: Mapping[str, Sequence[int]],
    trials: Sequence[Trial],
    scores: Sequence[StrategyScore],
    selected: StrategyScore,
) -> ParetoFront:
    """What the strategies chose, and the candidates that were tried, by all metrics; `numbers` are theirs by
    strategy."""
    evaluator, every = chooser.evaluator, chooser.every
    models = [
        TriedModel(
            score.variant.name,
            None,
            tuple(score.values.values()),
            (
                honest_of(evaluator, score).value,  # as in the table of strategies
                *(score.values[name] + score.corrections.get(name, math.nan) for name in evaluator.others),
            ),
            () if score.bounds is None else tuple(score.bounds.limits[c.name] for c in evaluator.constraints),
            None if score.bounds is None else score.bounds.kept,
            selected=score is selected,
        )
        for score in scores
    ]
    strategy_of = {k: name for name, places in numbers.items() for k in places}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # metrics warn where some rows lack a class
        for k, trial in enumerate(trials):
            values = chooser.values_of_all(chooser.single(k, every), every)
            models.append(TriedModel(strategy_of[k], trial.number, tuple(values.values())))
    greater = [metric.greater_is_better for metric in evaluator.metrics.values()]
    on_front = undominated(np.array([model.values for model in models]) * np.where(greater, 1.0, -1.0))
    return ParetoFront(
        tuple(evaluator.metrics),
        tuple(greater),
        tuple(map(str, evaluator.constraints)),
        tuple(one.name for one in evaluator.constraints),
        tuple(one.bound for one in evaluator.constraints),
        tuple(replace(model, on_front=bool(on)) for model, on in zip(models, on_front, strict=True)),
    )


def undefined_metrics(
    evaluator: Evaluator, front: ParetoFront, first: Predictions, rows: LabelledRows
) -> list[str]:
    """Which metrics have no value for what is selected, and why, as far as the first candidate tells."""
    told = []
    for name, value in zip(front.metrics, front.selected.values, strict=True):
        if math.isnan(value):
            why = ""
            try:
                evaluator.value_as_decided(first, rows, name=name)
            except Exception as error:
                why = f": {type(error).__name__}: {error}"
            told.append(shortened(f"{name} of the selected model has no value{why}"))
    return told


def undominated(values: FloatArray) -> BoolArray:
    """Which rows of values (m, k), higher is better, no other row dominates; rows with NaN are none."""
    on_front: BoolArray = np.asarray(np.isfinite(values).all(axis=1), dtype=np.bool_)
    known = values[on_front]
    for place in np.flatnonzero(on_front):
        at_least = (known >= values[place]).all(axis=1)
        on_front[place] = not (known[at_least] > values[place]).any()
    return on_front


def pareto_from(content: Mapping[str, Any]) -> ParetoFront:
    """The record from its fields as JSON has them."""
    fields = {name: tuple(value) for name, value in content.items()}
    lists = ("values", "honest", "limits")
    models = (model | {name: tuple(model[name]) for name in lists} for model in fields["models"])
    return ParetoFront(**{**fields, "models": tuple(TriedModel(**model) for model in models)})
