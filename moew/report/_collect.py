"""Gather what a report shows."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from moew import __version__
from moew._util.margins import TWO_SIDED, margin
from moew.data import Rows
from moew.exceptions import InvalidInputError
from moew.inspection import (
    ColumnSlices,
    Reliability,
    Tested,
    ThresholdCurve,
    TrainedRows,
    changed_decisions,
    effective_size,
    groups_by_label,
    landscape,
    on_test_rows,
    reliability,
    slices_of,
    table_columns,
    threshold_curve,
    trace,
    trained_rows,
)
from moew.report import _record as record
from moew.report._decision import decision_of
from moew.report._plain import cell, clipped, in_words, model_name, setting_text
from moew.search import (
    UNWEIGHTED,
    WEIGHTS,
    Comparison,
    FittedSearch,
    MetricSearch,
    ParetoFront,
    SearchResult,
    fitted_search,
)
from moew.storage import fingerprint
from moew.types import Array, IntArray

_MOST_LOOKED_AT = 500  # columns of X; of images and texts no single one means much
_MOST_SHOWN = 12  # columns that are shown cut into slices
_MOST_MODELS = 400  # tried models that are shown, and all those on the front
_EXAMPLES = 10  # rows at either end of the weights
_CELLS = 6  # columns shown of each
_GRID = 41  # points of the landscape along each dimension
_BINS = 24  # of the histogram of weights
_FEW_ROWS = 100  # evaluation rows under which scores are hardly worth comparing
_SAME = 1e-9  # weights with a smaller relative difference count as the same
_LOW_EFFECTIVE = 0.3  # share of the rows under which the effective number of rows is a warning
NO_ROWS = Rows(None, None)
Known = TypeVar("Known")


@dataclass(frozen=True)
class About:
    """What a page says of the data and the settings."""

    data: str = ""  # the name of the data in the title, such as that of a file
    date: datetime.date | None = None  # the day in the title; None is today
    settings: Mapping[str, Any] | None = None  # what to show as settings; None shows the search's own


def collect(
    search: MetricSearch | FittedSearch,
    training: Rows,
    validation: Rows = NO_ROWS,
    test: Rows = NO_ROWS,
    *,
    columns: Mapping[str, Any] | None = None,
    row_ids: Any = None,
    comparison: Comparison | None = None,
    about: About = About(),
) -> dict[str, Any]:
    """What a report shows of a fitted `MetricSearch`, as values that JSON holds exactly.

    Parameters
    ----------
    search : fitted MetricSearch
    training : the rows that it was fitted with, with the columns that the metric or the decision needs
    validation : the validation rows that it was fitted with, for errors by class
    test : rows that no choice was made on, to evaluate both models on; their groups (the query, patient or
        customer of each row) are not cut apart for the interval
    columns : further columns (n,) of the training rows by name, to cut the weights by
    row_ids : (n,), what to call the training rows; None is a data frame's index, or numbers from 0
    comparison : what `moew.compare` returned, or None
    about : what the page says of the data and the settings
    """
    fitted, X, y = fitted_search(search), training.X, training.y
    rows, result = trained_rows(fitted, X, y), fitted.result
    columns = {} if columns is None else columns  # a data frame works, too: it gives its names
    own = {
        str(name): _checked(columns[name], len(y), f"the column {str(name)!r}")[rows.numbers]
        for name in columns
    }
    if row_ids is None:
        row_ids = X.index if hasattr(X, "index") and not callable(X.index) else np.arange(len(y))
    ids = _checked(row_ids, len(y), "row_ids")[rows.numbers]
    weights = _weights(fitted, rows)
    slices, examples = _sliced(rows, own, ids) if weights.learned else (None, None)
    is_tested = any(given is not None for given in (test.X, test.y, test.sample_weight, test.columns))
    tested = on_test_rows(fitted, test) if is_tested else None
    bound = _bound(result)
    verdict = verdict_of(result, tested, fitted.study.alpha_zero_repeats)
    found = record.Report(
        format=record.FORMAT,
        moew=__version__,
        task=fitted.task,
        about=record.Title(
            clipped(str(about.data), 120),
            clipped(model_name(fitted.settings.estimator), 120),
            (about.date or datetime.date.today()).isoformat(),
        ),
        metric=_metric(fitted),
        selected=record.Selected(
            result.selected,
            result.reason,
            bool(fitted.settings.selects),
            len(getattr(fitted.winner.model, "models_", [fitted.winner.model])),
            result.honest.value,
        ),
        verdict=verdict if bound is None else replace(verdict, kind="bound"),
        repeats=None if comparison is None else _repeats(comparison),
        strategies=strategies_of(result, tested),
        tested=tested,
        comparison=None if comparison is None else comparison.record,
        search=record.SearchFacts(
            **vars(trace(fitted)),
            winner=result.best_number,
            n_models=result.n_models or len(result.trials),
            stopped=result.stopped,
            shift_alone=None if result.alpha_zero_is_unweighted else result.alpha_zero.value,
        ),
        landscape=_if_known(partial(landscape, fitted, points=_GRID)),  # not of a single candidate
        labels=groups_by_label(fitted, training, validation),
        slices=slices,
        rows=examples,
        weights=weights,
        changes=changed_decisions(fitted, training, validation, test),
        decision=decision_of(fitted),
        notes=list(_notes(result, tested, weights)),
        settings=_settings(fitted, about.settings),
        data=_data(result, training, validation, rows),
        bound=bound,
        pareto=_front(result),
        threshold_curves=_threshold_curves(fitted, test),
        reliability=_probabilities(fitted, test, validation),
    )
    return record.to_json(found)


def _metric(fitted: FittedSearch) -> record.MetricFacts:
    result, metric, asked = fitted.result, fitted.evaluator.metric, fitted.settings.honest
    return record.MetricFacts(
        name=in_words(result.metric),
        description=getattr(metric, "description", ""),
        greater_is_better=result.greater_is_better,
        response=metric.response,
        bounds=metric.bounds,
        n_holdout=result.n_holdout,
        evaluation=result.evaluated_on,
        honest=None if asked is None else "halves" if asked == "halves" else "holdout",
    )


def strategies_of(result: SearchResult, tested: Tested | None = None) -> list[record.Strategy]:
    """Every strategy with its scores, the simplest first."""
    sign = 1.0 if result.greater_is_better else -1.0
    selected = next((strategy for strategy in result.strategies if strategy.name == result.selected), None)
    on_test = {} if tested is None else {UNWEIGHTED: tested.unweighted, result.selected: tested.moew}
    held = {UNWEIGHTED: result.unweighted.value, result.selected: result.honest.value}
    return [
        record.Strategy(
            strategy.name,
            strategy.simple,
            strategy.apparent,
            strategy.honest,
            difference=None if selected is None else sign * (strategy.honest - selected.honest),
            margin=TWO_SIDED * strategy.error,
            members=strategy.n_members,
            selected=strategy is selected,
            breaks_bounds=result.pareto is not None and result.pareto.breaks_bounds(strategy.name),
            test=on_test.get(strategy.name),
            set_aside=held.get(strategy.name) if result.n_holdout else None,
        )
        for strategy in result.strategies
    ]


def _weights(fitted: FittedSearch, rows: TrainedRows) -> record.Weights:
    weights, weighting = rows.weights, fitted.weighting
    own = np.ones(len(weights)) if weighting.sample_weight_ is None else weighting.sample_weight_
    counts, edges = np.histogram(weights, bins=_BINS)
    return record.Weights(
        len(weights),
        learned=not np.allclose(weights, own, rtol=_SAME, atol=0),
        effective=effective_size(weights),
        effective_before=effective_size(weighting.training_weights(np.zeros((1, weighting.n_dims)))[0]),
        quantiles=np.quantile(weights, [0, 0.5, 1]).tolist(),
        counts=counts.tolist(),
        edges=edges.tolist(),
        with_own=weighting.sample_weight_ is not None,
    )


def _notes(result: SearchResult, tested: Tested | None, weights: record.Weights) -> Iterator[str]:
    yield from (note for note in result.notes if note != f"evaluated on {result.evaluated_on}.")
    if tested is not None and tested.reason:
        yield tested.reason
    if weights.learned and weights.effective / weights.n < _LOW_EFFECTIVE:
        yield (
            f"the weights differ so much that the {weights.n:,} training rows tell as much as "
            f"{weights.effective:,.0f} rows of equal weight: the model may vary more from one training set "
            "to the next."
        )
    held = result.n_holdout
    if result.n_validation + result.n_out_of_fold < _FEW_ROWS:
        yield (
            f"there are only {result.evaluated_on}{' to search on' if held else ''}: scores on so few rows "
            "vary much by chance, and so does what the search finds."
        )
    if 0 < held < _FEW_ROWS:
        yield f"only {held} rows were set aside: honest scores on so few rows vary much by chance."


def _settings(fitted: FittedSearch, settings: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    if settings is None:
        own = {**vars(fitted.settings), "metric": fitted.result.metric}
        settings = {name: value for name, value in own.items() if name not in ("verbose", "callbacks")}
    return [(clipped(str(name), 120), setting_text(value)) for name, value in settings.items()]


def _data(result: SearchResult, training: Rows, validation: Rows, rows: TrainedRows) -> dict[str, Any]:
    X = training.X
    given = [training, *([] if validation.X is None else [validation])]
    labels = [np.asarray(part.y) for part in given]
    features = [X if hasattr(X, "shape") else np.asarray(X), *(part.X for part in given[1:])]
    return {
        "n_training": len(rows.y),
        "n_validation": result.n_validation,
        "n_out_of_fold": result.n_out_of_fold,
        "n_columns": int(np.shape(rows.X)[1]),
        "n_looked_at": min(int(np.shape(rows.X)[1]), _MOST_LOOKED_AT),
        "fingerprint": fingerprint({}, labels, features),
    }


def verdict_of(result: SearchResult, tested: Tested | None, alpha_zero_repeats: int) -> record.Verdict:
    """The verdict on the selected model, with the strongest evidence there is on it: test rows, or
    honest scores on the evaluation rows."""
    sign = 1.0 if result.greater_is_better else -1.0
    on_test = tested is not None and math.isfinite(tested.moew - tested.unweighted)
    if tested is not None and on_test:
        before, after, error = tested.unweighted, tested.moew, tested.gain_error
    else:
        before, after, error = result.unweighted.value, result.honest.value, result.gain_error
    gain, half = sign * (after - before), TWO_SIDED * error
    kind = _kind(gain, half)
    if kind == "worse" and not (on_test or result.n_holdout or result.is_below_unweighted):
        kind = "no"  # on these rows it did score better: that the correction for luck is larger is no proof
    if _is_unweighted(result, alpha_zero_repeats):
        kind = "none"
    evidence: Any = "test" if on_test else "honest"
    return record.Verdict(kind, evidence, before, after, gain, low=gain - half, high=gain + half)


def _is_unweighted(result: SearchResult, alpha_zero_repeats: int) -> bool:
    """Whether the selected model is the unweighted model itself."""
    if result.selected == UNWEIGHTED:
        return True
    members = next((one.n_members for one in result.strategies if one.name == result.selected), 1)
    alone = result.selected == WEIGHTS and members == 1
    return alone and result.alpha_zero_is_unweighted and result.best_number < alpha_zero_repeats


def _kind(gain: float, half: float) -> record.Kind:
    if not math.isfinite(gain):
        return "unknown"
    if math.isfinite(half) and abs(gain) > half:
        return "better" if gain > 0 else "worse"
    return "maybe" if gain > 0 else "no"  # also where nobody knows how sure that is


def _repeats(comparison: Comparison) -> record.Repeats:
    sign = 1.0 if comparison.greater_is_better else -1.0
    moew, unweighted = comparison["moew"].test, comparison["unweighted"].test
    others = [
        (row.method, sign * (row.test - moew))
        for row in comparison.rows
        if row.method not in ("moew", "unweighted")
    ]
    gain, of_seeds = float(comparison.gain.mean()), margin(comparison.gain)
    half = math.hypot(of_seeds, comparison.test_rows_margin)  # NaN: not known
    return record.Repeats(
        _kind(gain, half),
        gain,
        half,
        of_seeds,
        of_rows=comparison.test_rows_margin,
        before=float(unweighted.mean()),
        after=float(moew.mean()),
        others=[record.Method(name, float(ahead.mean()), margin(ahead)) for name, ahead in others],
    )


def _sliced(
    rows: TrainedRows, own: Mapping[str, Array], ids: Array
) -> tuple[list[ColumnSlices], dict[str, Any]]:
    """The columns whose slices differ most in weight, the user's own further ones first, and the rows of most
    and of least weight with these columns."""
    there = {clipped(name, 120): values for name, values in table_columns(rows.X, own, _MOST_LOOKED_AT)}
    cuts = [slices_of(name, values, rows.weights) for name, values in there.items()]
    found = [(k < len(own), cut) for k, cut in enumerate(cuts) if cut is not None]
    # A column without an effect on the weight tells something too, if the user asked for it.
    found.sort(key=lambda item: (not item[0], -item[1].explained))
    slices = [cut for is_own, cut in found if is_own or cut.explained > 0][:_MOST_SHOWN]
    shown = [cut.column for cut in slices][:_CELLS] or list(there)[:_CELLS]

    def listed(order: IntArray) -> dict[str, Any]:
        first = [
            {
                "id": cell(ids[i]),
                "label": cell(rows.y[i]),
                "weight": float(rows.weights[i]),
                "cells": [cell(there[name][i]) for name in shown],
            }
            for i in order[:_EXAMPLES]
        ]
        # Where weights depend on the class alone, whole classes have the same.
        return {"rows": first, "n_alike": int(np.count_nonzero(rows.weights == rows.weights[order[0]]))}

    up, down = (listed(np.argsort(sign * rows.weights, kind="stable")) for sign in (-1, 1))
    return slices, {"columns": shown, "up": up, "down": down}


def _checked(values: Any, n_given: int, what: str) -> Array:
    """The values (n,) of a column; raise unless there is one for each row."""
    column = np.asarray(values)
    if column.shape != (n_given,):
        raise InvalidInputError(
            f"{what} must have a value for each of the {n_given} rows, got shape {column.shape}.",
            argument=what,
        )
    return column


def _bound(result: SearchResult) -> record.Bound | None:
    """The bounds that the unweighted model does not keep; None where it keeps them, or there are none."""
    found = result.pareto
    if found is None or not found.constraints:
        return None
    plain = next((m for m in found.models if m.number is None and m.strategy == UNWEIGHTED), None)
    if plain is not None and plain.keeps:
        return None
    return record.Bound(" and ".join(found.constraints), bool(found.selected.keeps))


def _front(result: SearchResult) -> ParetoFront | None:
    """What the strategies chose, the front, and the first of the other models."""
    if result.pareto is None:
        return None
    models = result.pareto.models
    shown = [m for k, m in enumerate(models) if m.number is None or m.on_front or k < _MOST_MODELS]
    return replace(result.pareto, models=tuple(shown))


def _threshold_curves(fitted: FittedSearch, test: Rows) -> list[ThresholdCurve]:
    curves = [_if_known(partial(threshold_curve, fitted))]
    if test.X is not None and test.y is not None:
        given = (test.X, test.y, test.sample_weight, test.columns)
        curves.append(_if_known(partial(threshold_curve, fitted, *given, rows="test rows")))
    return [curve for curve in curves if curve is not None]


def _probabilities(fitted: FittedSearch, test: Rows, validation: Rows) -> Reliability | None:
    """On the test rows, else on the evaluation rows, else on the validation rows; one that works."""
    for given, rows in ((test, "test rows"), (NO_ROWS, ""), (validation, "validation rows")):
        known = given.X, given.y, given.sample_weight
        if (found := _if_known(partial(reliability, fitted, *known, rows=rows))) is not None:
            return found
    return None


def _if_known(make: Callable[[], Known]) -> Known | None:
    """What there is to show, or None: such as for a metric of scores, or a model without probabilities."""
    try:
        return make()
    except InvalidInputError:
        return None
