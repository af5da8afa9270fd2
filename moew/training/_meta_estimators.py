"""How weights reach the models inside of scikit-learn's meta-estimators, where metadata routing is off.

Most pass `sample_weight` on. Some do so only with metadata routing, and none knows that a Pipeline takes
weights by the name of a step. For these a copy is made whose parts request the weights, and it is trained
with metadata routing on.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import sklearn
from sklearn import config_context, get_config
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
)
from sklearn.feature_selection import RFECV
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import get_scorer
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.pipeline import Pipeline
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils.fixes import parse_version

from moew.exceptions import UnsupportedEstimatorError
from moew.training._fit_params import last_step

_VERSION = parse_version(sklearn.__version__)
_BY_ROUTING_ALONE = (
    FixedThresholdClassifier,
    OneVsOneClassifier,
    OneVsRestClassifier,
    OutputCodeClassifier,
    RFECV,
    SelfTrainingClassifier,
    TunedThresholdClassifierCV,
)
_WITHOUT_PIPELINES = (AdaBoostClassifier, AdaBoostRegressor)
# Bagging draws rows by weight, so that its models need none; before scikit-learn 1.8 it passed weights on.
_DRAW_ROWS = (BaggingClassifier, BaggingRegressor) if parse_version("1.8") <= _VERSION else ()


def with_routed_weights(estimator: Any) -> Any | None:
    """A copy of a meta-estimator, or of a Pipeline that ends with one, to be trained with metadata routing,
    so that weights reach the models in it; None where that is not needed, or the user has set routing up.
    Raises where weights cannot reach a model in it."""
    if get_config()["enable_metadata_routing"]:
        return None
    model = last_step(estimator)
    is_of_sklearn = type(model).__module__.startswith("sklearn.") and hasattr(model, "get_metadata_routing")
    inside = [*_inside(model)] if is_of_sklearn else []
    if not inside or isinstance(model, _DRAW_ROWS):
        return None
    has_pipeline = any(isinstance(part, Pipeline) for part in inside)
    if has_pipeline and isinstance(model, _WITHOUT_PIPELINES):
        raise UnsupportedEstimatorError(
            f"{type(model).__name__} cannot pass weights to a Pipeline: make it the Pipeline's last step.",
            argument="estimator",
        )
    for part in inside:
        if isinstance(part, Pipeline) or [*_children(part)]:
            continue
        if "sample_weight" not in inspect.signature(part.fit).parameters:
            raise UnsupportedEstimatorError(
                f"{type(part).__name__}, which is inside of {type(model).__name__}, takes no sample weights "
                "in fit, so that they would be ignored. Use a model that does.",
                argument="estimator",
            )
    if not has_pipeline and not any(isinstance(part, _BY_ROUTING_ALONE) for part in (model, *inside)):
        return None
    copy = clone(estimator)
    with config_context(enable_metadata_routing=True):
        _request(copy, wanted=True)
    return copy


def _children(part: Any) -> Iterator[Any]:
    """The estimators that are parameters of the estimator, also in lists with names."""
    for value in part.get_params(deep=False).values() if hasattr(part, "get_params") else ():
        listed = [value]
        if isinstance(value, list):
            listed = [one[1] for one in value if isinstance(one, tuple) and len(one) > 1]
        yield from (one for one in listed if hasattr(one, "fit") and not isinstance(one, type))


def _inside(part: Any) -> Iterator[Any]:
    """The models inside of the estimator that weights are for: of a Pipeline its last step's."""
    if isinstance(part, Pipeline):
        children = [part.steps[-1][1]]
    else:
        children = [] if _is_transformer(part) else [*_children(part)]
    for child in children:
        if hasattr(child, "fit") and not _is_transformer(child):
            yield child
            yield from _inside(child)


def _is_transformer(part: Any) -> bool:
    return hasattr(part, "transform") and not (is_classifier(part) or is_regressor(part))


def _request(part: Any, wanted: bool) -> None:
    """Let the parts of an estimator request weights in `fit`, if `wanted`; their scores stay unweighted."""
    if isinstance(part, StackingClassifier | StackingRegressor) and part.final_estimator is None:
        # As scikit-learn does in fit, where nothing could be requested.
        final = LogisticRegression() if isinstance(part, StackingClassifier) else RidgeCV()
        part.set_params(final_estimator=final)
    if isinstance(part, CalibratedClassifierCV) and part.estimator is None:
        return
    if hasattr(part, "scoring") and [*_children(part)]:
        default = "accuracy" if is_classifier(part) else "r2"  # what `score` gives
        part.set_params(scoring=_unweighted(default if part.scoring is None else part.scoring))
    for method in ("fit", "score"):
        function = getattr(type(part), method, None)
        setter = getattr(part, f"set_{method}_request", None)
        if function is None or setter is None:
            continue
        if "sample_weight" in inspect.signature(function).parameters and _is_open(part, method):
            setter(sample_weight=wanted and method == "fit")
    if isinstance(part, Pipeline):
        for _, step in part.steps[:-1]:
            _request(step, wanted=False)
        _request(part.steps[-1][1], wanted)
        return
    for child in _children(part):
        _request(child, wanted and not _is_transformer(child))


def _is_open(part: Any, method: str) -> bool:
    """Whether the user left open if the method of the part gets weights."""
    requests = part._get_metadata_request()
    return getattr(requests, method).requests.get("sample_weight") is None


def _unweighted(scoring: Any) -> Any:
    """Scorers by name as scorers that request no weights; what the user has made stays."""
    if isinstance(scoring, str):
        return get_scorer(scoring).set_score_request(sample_weight=False)
    if isinstance(scoring, dict):
        return {name: _unweighted(one) for name, one in scoring.items()}
    if isinstance(scoring, list | tuple | set):
        return {name: _unweighted(name) for name in scoring}
    return scoring


def forget_requests(model: Any) -> None:
    """Remove all requests from a fitted model and what is in it: they hold their owner, which can neither be
    saved nor compared."""
    waiting, seen = [model], set[int]()
    while waiting:
        found = waiting.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, list | tuple | set):
            waiting += found
        elif isinstance(found, dict):
            waiting += found.values()
        elif hasattr(found, "get_metadata_routing") or "sklearn.calibration" in type(found).__module__:
            vars(found).pop("_metadata_request", None)
            waiting += vars(found).values()
