"""Several metrics, the threshold and the probabilities of what is handed out, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from moew.exceptions import InvalidInputError
from moew.inspection import reliability, threshold_curve
from moew.report._plain import clipped
from moew.search import FittedSearch, SearchResult
from moew.search._ways import UNWEIGHTED

_MOST_MODELS = 400  # tried models that are shown, those on the front besides


def more_of(
    fitted: FittedSearch, test: Mapping[str, Any], metadata_test: Any, validation: Mapping[str, Any]
) -> dict[str, Any]:
    """`bound`, `pareto`, `threshold_curve` and `reliability`; None where there is no such thing."""
    return {
        "bound": bound_of(fitted.result),
        "pareto": _pareto(fitted),
        "threshold_curve": _threshold_curve(fitted, test, metadata_test),
        "reliability": _reliability(fitted, test, validation),
    }


def bound_of(result: SearchResult) -> dict[str, Any] | None:
    """The bounds that the unweighted model does not keep, and whether what is handed out does; None where
    it keeps them, or there are none."""
    found = result.pareto
    if found is None or not found.constraints:
        return None
    plain = next((m for m in found.models if m.number is None and m.way == UNWEIGHTED), None)
    if plain is not None and plain.keeps:
        return None
    return {"text": clipped(" and ".join(found.constraints)), "kept": bool(found.handed_out.keeps)}


def _pareto(fitted: FittedSearch) -> dict[str, Any] | None:
    found = fitted.result.pareto
    if found is None:
        return None
    ways = [model for model in found.models if model.number is None]
    others = [model for model in found.models if model.number is not None]
    front = [model for model in others if model.on_front]
    rest = [model for model in others if not model.on_front][:_MOST_MODELS]
    return {
        **asdict(found),
        "metrics": [clipped(name) for name in found.metrics],
        "constraints": [clipped(text) for text in found.constraints],
        "n_models": len(found.models),
        "models": [{**asdict(model), "name": model.name} for model in (*ways, *front, *rest)],
    }


def _threshold_curve(
    fitted: FittedSearch, test: Mapping[str, Any], metadata_test: Any
) -> dict[str, Any] | None:
    curves = []
    try:
        curves.append(threshold_curve(fitted))
        if test["X"] is not None and test["y"] is not None:
            curves.append(threshold_curve(fitted, **test, metadata=metadata_test, rows="test rows"))
    except InvalidInputError:  # no single threshold, or a metric of scores
        pass
    if not curves:
        return None
    return {"curves": [asdict(one) for one in curves], "positive": clipped(str(fitted.winner.pos_label))}


def _reliability(
    fitted: FittedSearch, test: Mapping[str, Any], validation: Mapping[str, Any]
) -> dict[str, Any] | None:
    """On the test rows, else on the judged rows, else on the validation rows; one that works."""
    if fitted.task != "classification":
        return None
    tried: list[dict[str, Any]] = []
    if test["X"] is not None:
        tried.append({**test, "rows": "test rows"})
    if fitted.winner.calibration is not None:
        tried.append({})
    if validation["X"] is not None:
        tried.append({**validation, "rows": "validation rows"})
    for given in tried:
        try:
            found = reliability(fitted, **given)
        except InvalidInputError:  # a model without probabilities
            continue
        label = None if found.label is None else clipped(str(found.label))
        return {**asdict(found), "label": label, "method": fitted.settings.calibrate}
    return None
