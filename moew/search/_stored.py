"""What a stored study must fulfil to be continued: the same data and parts, predictions that are whole, and a
metric that still gives the values that were told."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from moew.exceptions import Argument, InPython, InvalidInputError, StateError
from moew.metrics import Predictions
from moew.storage import fingerprint, unseen
from moew.types import Array, Weighting
from moew.weighting import ExampleWeighting

if TYPE_CHECKING:
    from moew.search._loop import Search
    from moew.search._prepare import Prepared
    from moew.search._study import Trial

_SAMPLE = 5  # stored predictions that a slow metric scores again
_SAME_SCORE = 1e-9  # relative and absolute difference of scores that are the same


def fingerprint_of(prepared: Prepared, weighting: Weighting) -> str:
    """The fingerprint that a stored study must have to be continued: of data, model, metric and rule."""
    settings, data, evaluator = prepared.settings, prepared.data, prepared.evaluator
    compared = {
        "estimator": settings.estimator,
        "metric": evaluator.metric,
        "rule": evaluator.decision,
        "weight name": prepared.weight_name,
    }
    params = prepared.fit_params
    if params:  # fitted without, a study keeps the fingerprint that it had before there were any
        compared["fit_params"] = {"given": params.as_given, "per row": params.per_row}
        compared["eval share"] = settings.eval_share
    # Metrics for which more is recorded; others are computed from what is there in any case.
    if further := [one for one in evaluator.others.values() if one.response in (None, "score", "proba")]:
        compared["other metrics"] = further
    _check_all_seen(compared)
    arrays: list[Array] = [weighting.Z_, weighting.pi_] if isinstance(weighting, ExampleWeighting) else []
    arrays += [numbers for fold in data.folds for numbers in (fold.train, fold.scored) if numbers is not None]
    for rows in (data.training, data.validation):
        columns = [rows.columns[name] for name in sorted(rows.columns)]
        of_rows = (rows.y, rows.sample_weight, *columns, rows.groups)
        arrays += [array for array in of_rows if array is not None]
    return fingerprint(compared, arrays, [data.training.X, data.validation.X])


def _check_all_seen(compared: Mapping[str, Any]) -> None:
    """Raise if a stored study could not tell whether model, metric and rule are the same another time."""
    versioned = {"metric"} if getattr(compared["metric"], "version", "") else set()
    hidden = unseen({name: part for name, part in compared.items() if name not in versioned})
    if not hidden:
        return
    raise InvalidInputError(
        "a stored study is only continued with the same model, metric and decision, but moew cannot look "
        f"into {'; '.join(hidden[:3])}. Answer for it with a version, which you change when it changes: ",
        InPython(
            "make_metric(…, version='1') for a metric, or an attribute __version__ = '1' of your function or "
            "class; or do without "
        ),
        Argument("storage"),
        ".",
        argument="metric" if hidden[0].startswith("metric") else "estimator",
    )


def stored_predictions(search: Search, trials: Sequence[Trial]) -> dict[int, Predictions]:
    """The stored predictions of those trials that have a value, by number."""
    study, n_rows = search.study, len(search.data.validation)
    numbers = [trial.number for trial in trials if math.isfinite(trial.value)]
    kept = study.store.kept(numbers) if numbers else {}
    found: dict[int, Predictions] = {}
    for number in numbers:
        if number not in kept:
            raise study.store.refuse(f"candidate {number} has a score, but no predictions")
        try:
            found[number] = Predictions.unpacked(kept[number]).compact()
            if any(len(array) != n_rows for array in found[number].arrays.values()):
                raise StateError(f"they are not of the {n_rows} evaluation rows")
        except StateError as error:
            raise study.store.refuse(f"the predictions of candidate {number} are damaged: {error}") from error
    return found


def check_values(search: Search, trials: Sequence[Trial], predictions: Mapping[int, Predictions]) -> None:
    """Raise unless the metric still gives the trials the values that they were told with."""
    study, evaluator = search.study, search.evaluator
    checked = [trial for trial in trials if trial.number in predictions]
    if evaluator.metric.slow and len(checked) > _SAMPLE:
        checked = [checked[i] for i in np.linspace(0, len(checked) - 1, _SAMPLE).astype(int)]
    for trial in checked:
        cause = None
        try:
            value = evaluator.value(predictions[trial.number], search.data.validation)
            if math.isclose(value, trial.value, rel_tol=_SAME_SCORE, abs_tol=_SAME_SCORE):
                continue
            now = repr(value)
        except Exception as error:
            cause, now = error, f"{type(error).__name__}: {error}"
        raise study.store.refuse(
            f"the metric gives the stored predictions of candidate {trial.number} {now}, but {trial.value!r} "
            "was stored: the metric or the rows have changed, or it gives other values each time, or the "
            "score was edited"
        ) from cause
