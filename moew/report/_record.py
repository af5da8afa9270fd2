"""What a report holds: the record between `collect` and `render`, and its form in JSON.

It holds the records of `moew.inspection` as they are. Scores that are not known are None in its own records,
and NaN in those; both are null in JSON.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from moew.exceptions import InvalidInputError
from moew.inspection import (
    ChangedDecisions,
    ColumnSlices,
    LabelGroups,
    Landscape,
    Reliability,
    Tested,
    ThresholdCurve,
    Trace,
)
from moew.report._plain import plain
from moew.search import ParetoFront
from moew.types import FloatArray

FORMAT = 5  # of the JSON; a page that needs other entries gets another number
Number = float | None
Kind = Literal["better", "maybe", "no", "worse", "none", "unknown", "bound"]


@dataclass(frozen=True)
class Title:
    data: str
    model: str
    date: str  # as 2026-11-17


@dataclass(frozen=True)
class MetricFacts:
    """The metric, and which rows it was evaluated on."""

    name: str
    description: str
    greater_is_better: bool
    response: str | None
    n_holdout: int
    evaluation: str  # rows, in words
    honest: Literal["halves", "holdout"] | None
    bounds: Sequence[Number] | None = None  # lowest and highest value; None: no bound

    @property
    def better(self) -> str:
        return "higher" if self.greater_is_better else "lower"


@dataclass(frozen=True)
class Selected:
    """The selected strategy."""

    name: str
    reason: str
    selects: bool  # else the search was asked for example weights alone
    members: int  # models whose predictions are averaged
    honest: Number  # corrected for the choice among the strategies, too


@dataclass(frozen=True)
class Verdict:
    """Is the selected model better than the unweighted model, by how much, and how sure is that?

    `gain` and its interval are positive where the selected model is better, whatever the metric's direction.
    """

    kind: Kind
    evidence: Literal["test", "honest"]
    before: Number
    after: Number
    gain: Number
    low: Number
    high: Number


@dataclass(frozen=True)
class Method:
    """How far a method of a comparison is ahead of moew in the repeats."""

    method: str
    ahead: Number
    margin: Number


@dataclass(frozen=True)
class Repeats:
    """What a comparison says of searches like this one: the mean gain of what moew selects, with the two
    kinds of chance in it, the seeds' and the test rows', which have nothing to do with each other."""

    kind: Kind
    gain: Number
    half: Number
    of_seeds: Number
    of_rows: Number
    before: Number
    after: Number
    others: Sequence[Method]


@dataclass(frozen=True)
class Strategy:
    """A strategy with its scores. `difference` is its honest score's to that of what is selected, positive
    where it is better, and `margin` is half of its 95 % interval. On test rows and on rows set aside, the
    unweighted model and the selected one have a score."""

    name: str
    simple: bool
    apparent: Number
    honest: Number
    difference: Number
    margin: Number
    members: int
    selected: bool
    breaks_bounds: bool = False  # whether it does not keep the user's bounds
    test: Number = None
    set_aside: Number = None


@dataclass(frozen=True)
class SearchFacts(Trace):
    """The search for example weights over time."""

    winner: int
    n_models: int
    stopped: Any
    shift_alone: Number  # the honest score of the weights that undo a shift, and no more


@dataclass(frozen=True)
class Weights:
    n: int
    learned: bool
    effective: float
    effective_before: float
    quantiles: Sequence[float]  # 0, 50 and 100 %
    counts: Sequence[int]
    edges: Sequence[float]
    with_own: bool


@dataclass(frozen=True)
class Decision:
    """How the selected model decides: a sentence, and a table of thresholds or offsets, if there is one."""

    words: str
    caption: str = ""
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()


@dataclass(frozen=True)
class Bound:
    """Bounds that the unweighted model does not keep, and whether the selected model does."""

    text: str
    kept: bool


@dataclass(frozen=True)
class Report:
    """Everything a page shows; what there is not is None."""

    format: int
    moew: str
    task: str
    about: Title
    metric: MetricFacts
    selected: Selected
    verdict: Verdict
    repeats: Repeats | None
    strategies: Sequence[Strategy]
    tested: Tested | None
    comparison: Mapping[str, Any] | None  # as `Comparison.record`
    search: SearchFacts
    landscape: Landscape | None
    labels: LabelGroups
    slices: Sequence[ColumnSlices] | None  # those that differ most in weight
    rows: Mapping[str, Any] | None  # those of most (up) and of least weight (down), and their columns
    weights: Weights
    changes: ChangedDecisions | None
    decision: Decision
    notes: Sequence[str]
    settings: Sequence[tuple[str, str]]
    data: Mapping[str, Any]  # numbers of rows and columns, and a fingerprint
    bound: Bound | None
    pareto: ParetoFront | None
    threshold_curves: Sequence[ThresholdCurve]
    reliability: Reliability | None


def to_json(report: Report) -> dict[str, Any]:
    """The report as values that JSON holds exactly."""
    return plain(asdict(report))  # type: ignore[no-any-return]


def from_json(data: Mapping[str, Any]) -> Report:
    """The report of what `to_json` gave; raise where that is something else."""
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        got = data.get("format") if isinstance(data, Mapping) else type(data).__name__
        raise InvalidInputError(
            f"render needs what moew.report.collect gave, of format {FORMAT}; got {got!r}. Collect it again "
            "with this version of moew.",
            argument="data",
        )
    return _read(Report, data)  # type: ignore[no-any-return]


def _read(hint: Any, value: Any) -> Any:
    """A value from JSON as its type hint says it was."""
    if value is None:
        return math.nan if hint is float else None
    if is_dataclass(hint):
        hints = _hints(hint)  # type: ignore[arg-type]
        return hint(**{name: _read(hints[name], item) for name, item in value.items()})  # type: ignore[operator]
    origin, inner = get_origin(hint), get_args(hint)
    if origin is np.ndarray:
        return np.array(value, dtype=float if hint == FloatArray else int)
    if origin is UnionType and NoneType in inner:
        return _read(inner[0], value) if len(inner) == 2 else value
    if origin in (Sequence, tuple) and is_dataclass(inner[0]) | (inner[0] is float):
        return [_read(inner[0], item) for item in value]
    return value


_hints = cache(get_type_hints)
