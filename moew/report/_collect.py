"""Everything the page shows, as plain JSON values."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from moew import __version__
from moew._util.fingerprint import fingerprint
from moew.exceptions import InvalidInputError
from moew.inspection import (
    Landscape,
    TrainedRows,
    changed_decisions,
    effective_size,
    groups_by_label,
    landscape,
    on_test_rows,
    trace,
    trained_rows,
)
from moew.report._decision import decision_of
from moew.report._more import bound_of, more_of
from moew.report._plain import clipped, in_words, model_name, plain, setting_text
from moew.report._rows import example_rows, sliced
from moew.report._verdict import repeats_of, verdict_of
from moew.report._ways import ways_of
from moew.search import (
    Comparison,
    ExampleWeightSearch,
    FittedSearch,
    SearchResult,
    fitted_search,
)
from moew.search._ways import UNWEIGHTED
from moew.types import FloatArray, Labels, Rows

FORMAT = 4  # of the dict; a page that needs other entries gets another number
MOST_GROUPS = 200  # classes that are shown
_GRID = 41  # points of the landscape along each dimension
_BINS = 24  # of the histogram of weights
_FEW_ROWS = 100  # judged rows under which scores are hardly worth comparing
_SAME = 1e-9  # weights with a smaller relative difference count as the same
_LOW_EFFECTIVE = 0.3  # share of the rows under which the effective number of rows is a warning


def collect(
    search: ExampleWeightSearch | FittedSearch,
    X: Rows,
    y: Labels,
    *,
    X_val: Rows = None,
    y_val: Labels = None,
    X_test: Rows = None,
    y_test: Labels = None,
    sample_weight_test: Any = None,
    metadata: Mapping[str, Any] | None = None,
    metadata_val: Mapping[str, Any] | None = None,
    metadata_test: Mapping[str, Any] | None = None,
    groups_test: Any = None,
    columns: Mapping[str, Any] | None = None,
    row_ids: Any = None,
    comparison: Comparison | None = None,
    settings: Mapping[str, Any] | None = None,
    data_name: str = "",
    date: datetime.date | None = None,
) -> dict[str, Any]:
    """What a report shows of a fitted `ExampleWeightSearch`, as values that JSON holds exactly.

    Parameters
    ----------
    search : fitted ExampleWeightSearch
    X, y : the rows and labels that it was fitted with, array or data frame
    X_val, y_val : the validation rows that it was fitted with, for errors by class
    X_test, y_test, sample_weight_test : rows that no choice was made on, to judge both models on
    metadata, metadata_val, metadata_test : columns that the metric or the decision needs
    groups_test : (n,), the query, patient or customer of each test row, not cut apart for the interval
    columns : further columns (n,) of the rows by name, to cut the weights by
    row_ids : (n,), what to call the rows; None is a data frame's index, or numbers from 0
    comparison : what `moew.compare` returned, or None
    settings : what to show as settings; None shows the search's own
    data_name : what to call the data in the page's title, such as the name of a file
    date : the day in the page's title; None is today
    """
    fitted = fitted_search(search)
    rows, result, metric = trained_rows(fitted, X, y), fitted.result, fitted.evaluator.metric
    slices = sliced(rows, len(y), columns)
    examples = example_rows(X, rows, slices, columns, row_ids, len(y))
    weights = _weights(fitted, rows)
    groups = groups_by_label(fitted, X, y, X_val, y_val, metadata=metadata, metadata_val=metadata_val)
    tested = None
    if any(given is not None for given in (X_test, y_test, sample_weight_test, metadata_test)):
        tested = on_test_rows(fitted, X_test, y_test, sample_weight_test, metadata_test, groups_test)
    changes = changed_decisions(
        fitted,
        X,
        y,
        X_val,
        y_val,
        X_test=X_test,
        y_test=y_test,
        metadata=metadata,
        metadata_val=metadata_val,
        metadata_test=metadata_test,
    )
    asked = fitted.settings.honest
    honest = None if asked is None else "halves" if asked == "halves" else "holdout"
    return plain(  # type: ignore[no-any-return]
        {
            "format": FORMAT,
            "moew": __version__,
            "task": fitted.task,
            "about": {
                "data": clipped(str(data_name), 120),
                "model": clipped(model_name(fitted.settings.estimator), 120),
                "date": (datetime.date.today() if date is None else date).isoformat(),
            },
            "metric": {
                "name": clipped(in_words(result.metric)),
                "description": clipped(getattr(metric, "description", "")),
                "greater_is_better": result.greater_is_better,
                "response": metric.response,
                "bounds": metric.bounds,
                "n_validation": result.n_validation,
                "n_out_of_fold": result.n_out_of_fold,
                "n_holdout": result.n_holdout,
                "judged": result.rows_judged,
                "honest": honest,
            },
            "chosen": {
                "name": result.chosen,
                "reason": result.reason,
                "guard": bool(fitted.settings.guard),
                "members": len(getattr(fitted.winner.model, "models_", [fitted.winner.model])),
            },
            "verdict": verdict_of(result, tested, fitted.study.alpha_zero_repeats)
            | ({} if bound_of(result) is None else {"kind": "bound"}),
            "repeats": None if comparison is None else repeats_of(comparison),
            "ways": ways_of(result),
            "scores": _scores(result),
            "tested": None if tested is None else asdict(tested),
            "comparison": None if comparison is None else comparison.record,
            "search": {
                **asdict(trace(fitted)),
                "winner": result.best_number,
                "batch": fitted.settings.batch_size,
                "n_models": result.n_models or len(result.trials),
                "stopped": None if result.stopped is None else asdict(result.stopped),
            },
            "landscape": _landscape(fitted),
            "labels": {**asdict(groups), "groups": [asdict(group) for group in groups.groups[:MOST_GROUPS]]}
            | {"n_groups": len(groups.groups)},
            "slices": slices if weights["learned"] else None,
            "rows": examples if weights["learned"] else None,
            "weights": weights,
            "changes": None if changes is None else asdict(changes),
            "decision": decision_of(fitted),
            **more_of(
                fitted,
                {"X": X_test, "y": y_test, "sample_weight": sample_weight_test},
                metadata_test,
                {"X": X_val, "y": y_val},
            ),
            "notes": [
                *(clipped(note) for note in result.notes if note != f"judged on {result.rows_judged}."),
                *([clipped(tested.reason)] if tested is not None and tested.reason else []),
                *_warnings(result, rows, weights["learned"]),
            ],
            "settings": _settings(fitted, settings),
            "data": {
                "n_training": len(rows.y),
                "n_validation": result.n_validation,
                "n_out_of_fold": result.n_out_of_fold,
                "n_columns": int(np.shape(rows.X)[1]),
                "fingerprint": fingerprint(
                    {},
                    [np.asarray(y), *([] if y_val is None else [np.asarray(y_val)])],
                    [X if hasattr(X, "shape") else np.asarray(X), *([] if X_val is None else [X_val])],
                ),
            },
        }
    )


def _scores(result: SearchResult) -> list[dict[str, Any]]:
    """The models of the result; `key` is what `tested` and a comparison call them."""
    names = {"moew": result.chosen, "alpha = 0": "shift alone"}
    return [
        {
            "name": names.get(key, key),
            "key": key,
            "best": score.best,
            "honest": score.value,
            "error": score.standard_error,
        }
        for key, score in result.scores.items()
        if not (key == "moew" and result.chosen == UNWEIGHTED)
    ]


def _landscape(fitted: FittedSearch) -> dict[str, Any] | None:
    try:
        seen: Landscape = landscape(fitted, points=_GRID)
    except InvalidInputError:  # a single candidate has a value: there is nothing to see
        return None
    return asdict(seen)


def _weights(fitted: FittedSearch, rows: TrainedRows) -> dict[str, Any]:
    weights: FloatArray = rows.weights
    weighting = fitted.weighting
    before = weighting.training_weights(np.zeros((1, weighting.n_dims)))[0]
    own = np.ones(len(weights)) if weighting.sample_weight_ is None else weighting.sample_weight_
    counts, edges = np.histogram(weights, bins=_BINS)
    return {
        "n": len(weights),
        "learned": not np.allclose(weights, own, rtol=_SAME, atol=0),
        "effective": effective_size(weights),
        "effective_before": effective_size(before),
        "quantiles": np.quantile(weights, [0, 0.05, 0.25, 0.5, 0.75, 0.95, 1]),
        "counts": counts,
        "edges": edges,
        "with_own": weighting.sample_weight_ is not None,
    }


def _warnings(result: SearchResult, rows: TrainedRows, learned: bool) -> list[str]:
    notes = []
    share = effective_size(rows.weights) / len(rows.weights)
    if learned and share < _LOW_EFFECTIVE:
        notes.append(
            f"the weights differ so much that the {len(rows.weights):,} training rows tell as much as "
            f"{effective_size(rows.weights):,.0f} rows of equal weight: the model may vary more from one "
            "training set to the next."
        )
    held = result.n_holdout
    if result.n_validation + result.n_out_of_fold < _FEW_ROWS:
        notes.append(
            f"there are only {result.rows_judged}{' to search on' if held else ''}: scores on so few rows "
            "vary much by chance, and so does what the search finds."
        )
    if 0 < held < _FEW_ROWS:
        notes.append(f"only {held} rows were set aside: honest scores on so few rows vary much by chance.")
    return notes


def _settings(fitted: FittedSearch, settings: Mapping[str, Any] | None) -> list[list[str]]:
    if settings is None:
        own = {**vars(fitted.settings), "metric": fitted.result.metric}
        settings = {name: value for name, value in own.items() if name not in ("show_progress", "callbacks")}
    return [[clipped(str(name), 120), setting_text(value)] for name, value in settings.items()]
