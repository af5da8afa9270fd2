"""Columns of texts and categories that a library's models refuse, found before training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from moew.exceptions import InvalidInputError
from moew.types import Rows


def is_of_library(model: Any, library: str) -> bool:
    """Whether the model's class, or one that it inherits from, is of that library."""
    return any(base.__module__.partition(".")[0] == library for base in type(model).__mro__)


def check_takes_columns(model: Any, X: Rows, fit_params: Mapping[str, Any]) -> None:
    """Raise if X is a pandas frame with columns that the model, one of a boosting library, does not take.

    Other models, and Pipelines, say themselves what they do not take.
    """
    if not (hasattr(X, "dtypes") and hasattr(X, "iloc")):
        return
    texts = [name for name in X.columns if str(X[name].dtype).startswith(("object", "str"))]
    categories = [name for name in X.columns if str(X[name].dtype) == "category"]
    as_categories = _code(f"X = X.astype({dict.fromkeys(texts, 'category')!r})")
    if is_of_library(model, "lightgbm") and texts:
        raise _refused(model, texts, f"make them categories, {as_categories}")
    if is_of_library(model, "xgboost"):
        enabled = model.get_params().get("enable_categorical")
        enable = "" if enabled else f"set {type(model).__name__}(enable_categorical=True)"
        if texts:
            also = f", and {enable}" if enable else ""
            raise _refused(model, texts, f"make them categories, {as_categories}{also}")
        if categories and not enabled:
            raise _refused(model, categories, enable)
    if is_of_library(model, "catboost"):
        told = {**model.get_params(), **fit_params}
        kinds = [told.get(f"{kind}_features") for kind in ("cat", "text", "embedding")]
        known = {name for kind in kinds if kind is not None for name in kind}
        positions = {name: i for i, name in enumerate(X.columns)}
        missing = [name for name in (*texts, *categories) if not {name, positions[name]} & known]
        if missing:
            cat_features = _code(f"fit_params={{'cat_features': {missing}}}")
            raise _refused(model, missing, f"name them in fit(…, {cat_features})")
    is_hist = isinstance(model, HistGradientBoostingClassifier | HistGradientBoostingRegressor)
    if (
        is_hist
        and isinstance(model.categorical_features, str)
        and any(_holds_texts(X[name]) for name in texts)
    ):
        raise _refused(model, texts, f"make them categories, {as_categories}")


def _holds_texts(column: Any) -> bool:
    there = column.dropna()
    return len(there) > 0 and isinstance(there.iloc[0], str)


def _code(text: str) -> str:
    return text.replace("'", '"')


def _refused(model: Any, names: list[Any], advice: str) -> InvalidInputError:
    return InvalidInputError(
        f"{type(model).__name__} does not take the columns {names[:5]} as they are: {advice}, or put a "
        "transformer before the model, in a Pipeline.",
        argument="X",
    )
