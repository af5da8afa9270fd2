"""All models that were tried, by several metrics, and which of them no other beats in all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from moew._util.numbers import number
from moew.types import BoolArray, FloatArray

_OFF_THE_FRONT = (
    "What is handed out is not on the front: it is chosen by honest scores and bounds; see `result_.reason`."
)


@dataclass(frozen=True)
class TriedModel:
    """A model that was tried: a candidate of a search, or what a way chose, which may be an average of
    several or have tuned decisions.

    Values are in the order of `ParetoFront.metrics`, in the metrics' own units, NaN where undefined.
    """

    way: str
    number: int | None  # of the candidate in its search; None: what the way chose
    values: tuple[float, ...]  # on the judged rows
    honest: tuple[float, ...] = ()  # of what a way chose: corrected for its choice
    limits: tuple[float, ...] = ()  # of what a way chose: the bounded metrics' values with their margins
    keeps: bool | None = None  # of what a way chose: whether all bounds are kept; None without constraints
    on_front: bool = False
    handed_out: bool = False

    @property
    def name(self) -> str:
        """What the model is called in tables."""
        return self.way if self.number is None else f"{self.way}, candidate {self.number}"


@dataclass(frozen=True)
class ParetoFront:
    """All tried models with their values by all metrics; those on the front are beaten by no other in all.

    Candidates are judged by the models of the search's folds, what the ways chose by those of the finalists'.
    """

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
    def handed_out(self) -> TriedModel:
        """What is handed out."""
        return next(model for model in self.models if model.handed_out)

    def breaks_bounds(self, way: str) -> bool:
        """Whether what the way chose does not keep the bounds with its margin."""
        return any(model.way == way and model.keeps is False for model in self.models)

    def to_frame(self) -> Any:
        """All models as a pandas data frame, a row for each."""
        import pandas as pd

        rows = [
            {
                "way": model.way,
                "candidate": model.number,
                **dict(zip(self.metrics, model.values, strict=True)),
                "on_front": model.on_front,
                "keeps": model.keeps,
                "handed_out": model.handed_out,
            }
            for model in self.models
        ]
        return pd.DataFrame(rows).astype({"candidate": "Int64"})

    def lines(self) -> list[str]:
        """What the other metrics are of what is handed out, in words."""
        chosen = self.handed_out
        plain = next((m for m in self.models if m.way == "unweighted" and m.number is None), None)
        told = []
        for k, name in list(enumerate(self.metrics))[1:]:
            better = "higher" if self.greater_is_better[k] else "lower"
            honest = f", honest {number(chosen.honest[k])}" if math.isfinite(chosen.honest[k]) else ""
            beside = "" if plain in (None, chosen) else f"; unweighted {number(plain.values[k])}"
            value = f"{number(chosen.values[k])}{honest}{beside}"
            told.append(f"{name} of what is handed out: {value} ({better} is better).")
        for text, name, limit in zip(self.constraints, self.bounded, chosen.limits, strict=True):
            kept = "kept" if chosen.keeps else "not kept for certain"
            told.append(f"{text}: {kept}; {name} with its margin is {number(limit)}.")
        return told

    def __str__(self) -> str:
        width = max(len(model.name) for model in self.front)
        heads = "".join(f"{name[:20]:>22}" for name in self.metrics)
        rows = [
            f"{model.name:{width}}"
            + "".join(f"{number(value):>22}" for value in model.values)
            + ("  handed out" if model.handed_out else "")
            for model in dict.fromkeys((*self.front, self.handed_out))
        ]
        return "\n".join(
            [
                f"{len(self.front)} of {len(self.models)} models are on the front",
                f"{'':{width}}{heads}",
                *rows,
                *([] if self.handed_out.on_front else [_OFF_THE_FRONT]),
            ]
        )


def with_front(models: Sequence[TriedModel], greater_is_better: Sequence[bool]) -> BoolArray:
    """Which of the models (m,) are on the front: no other is as good by every metric and better by one.

    A model without a value by some metric is not on it.
    """
    signs = np.where(greater_is_better, 1.0, -1.0)
    return undominated(np.array([model.values for model in models], dtype=np.float64) * signs)


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
    lists = ("values", "honest", "limits")
    models = tuple(
        TriedModel(**{**model, **{name: tuple(model[name]) for name in lists}}) for model in content["models"]
    )
    fields = {name: tuple(value) for name, value in content.items() if name != "models"}
    return ParetoFront(**fields, models=models)
