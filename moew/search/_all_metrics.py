"""All that was tried by all metrics, where there are several."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from moew._printable import shortened
from moew.search._guard import WayScore
from moew.search._judge import Judge
from moew.search._pareto import ParetoFront, TriedModel, with_front
from moew.search._pool import Candidate
from moew.search._prepare import Prepared
from moew.search._reported_scores import honest_of


def tried_by_all_metrics(
    prepared: Prepared, pool: Sequence[Candidate], numbers: Mapping[str, Sequence[int]], judge: Judge
) -> list[TriedModel]:
    """The candidates of all searches by all metrics; none if there is only one metric."""
    if not prepared.evaluator.others:
        return []
    way_of = {k: way for way, places in numbers.items() for k in places}
    return [
        TriedModel(
            way_of[k],
            pool[k].trial.number,
            tuple(judge.values_of_all(judge.single(k, judge.every), judge.every).values()),
        )
        for k in range(len(pool))
    ]


def pareto_of(
    prepared: Prepared, tried: Sequence[TriedModel], scores: Sequence[WayScore], chosen: WayScore
) -> ParetoFront | None:
    """All that was tried, and what the ways chose, by all metrics; None if there is only one metric."""
    evaluator = prepared.evaluator
    if not evaluator.others:
        return None
    greater = [metric.greater_is_better for metric in evaluator.metrics.values()]
    ways = [
        TriedModel(
            score.way.name,
            None,
            tuple(score.values.values()),
            (
                honest_of(prepared, score, score.optimism).value,  # as in the table of ways
                *(score.values[name] + score.corrections.get(name, math.nan) for name in evaluator.others),
            ),
            () if score.bounds is None else tuple(score.bounds.limits[c.name] for c in evaluator.constraints),
            None if score.bounds is None else score.bounds.kept,
            handed_out=score is chosen,
        )
        for score in scores
    ]
    models = [*ways, *tried]
    front = with_front(models, greater)
    return ParetoFront(
        tuple(evaluator.metrics),
        tuple(greater),
        tuple(map(str, evaluator.constraints)),
        tuple(one.name for one in evaluator.constraints),
        tuple(one.bound for one in evaluator.constraints),
        tuple(replace(model, on_front=bool(on)) for model, on in zip(models, front, strict=True)),
    )


def undefined_metrics(prepared: Prepared, pool: Sequence[Candidate], found: ParetoFront | None) -> list[str]:
    """Which metrics have no value for what is handed out, and why, as far as the first candidate tells."""
    told = []
    for name, value in [] if found is None else zip(found.metrics, found.handed_out.values, strict=True):
        if math.isnan(value):
            why = ""
            try:
                prepared.evaluator.defined_value_of(name, pool[0].predictions, prepared.data.validation)
            except Exception as error:
                why = f": {type(error).__name__}: {error}"
            told.append(shortened(f"{name} of what is handed out has no value{why}"))
    return told
