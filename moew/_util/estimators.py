"""What kind of model an estimator is."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_regressor


def is_regression(model: Any) -> bool:
    """Whether the model is a regressor by its scikit-learn tags; without tags, whether it has no classes."""
    if hasattr(model, "__sklearn_tags__"):
        return bool(is_regressor(model))
    return not hasattr(model, "classes_")
