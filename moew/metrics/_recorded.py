"""Stand-ins for the model that a scorer is called with: one records predictions, the other replays them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn import config_context, get_config
from sklearn.utils import ClassifierTags, RegressorTags, Tags, TargetTags, get_tags

from moew._util.estimators import is_regression
from moew.data._read_only import read_only
from moew.data._rows import n_rows
from moew.exceptions import InvalidInputError
from moew.types import Array, Rows

METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function")


class _NotRecordedError(InvalidInputError, AttributeError):
    """Also an AttributeError, so that `hasattr` works for a scorer."""


class _StandIn(ABC):
    """A model as a scorer sees it: prediction methods, classes and tags, nothing else."""

    def __init__(self, methods: Mapping[str, Any], classes: Array | None, estimator_type: str | None) -> None:
        self._methods = methods
        self.classes, self.estimator_type = classes, estimator_type
        if classes is not None:
            self.classes_ = classes

    def __getattr__(self, name: str) -> Any:
        methods = self.__dict__.get("_methods", {})
        if name not in methods:
            raise _NotRecordedError(
                f"a scorer is evaluated on recorded predictions and asked the model for {name!r}; it can "
                f"have {', '.join(methods)} here, the same on every subset of rows. Write the scorer with "
                "these, or as a function of (y_true, output) for make_metric."
            )

        def method(X: Rows) -> Array:
            return self._answer(name, X)

        method.__name__ = name  # scikit-learn reads the name
        return method

    @abstractmethod
    def _answer(self, method: str, X: Rows) -> Array:
        """What the model's `method` predicts on the rows of X."""

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        return Tags(
            estimator_type=self.estimator_type,
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags() if self.estimator_type == "classifier" else None,
            regressor_tags=RegressorTags() if self.estimator_type == "regressor" else None,
        )


class Recorder(_StandIn):
    """Calls the model and records its predictions, once for each method."""

    def __init__(self, model: Any, X: Rows, decided: Array | None) -> None:
        methods = {name: getattr(model, name) for name in METHODS if hasattr(model, name)}
        classes = getattr(model, "classes_", None)
        if hasattr(model, "__sklearn_tags__"):
            estimator_type = get_tags(model).estimator_type
        else:
            estimator_type = "regressor" if is_regression(model) else "classifier"
        super().__init__(methods, None if classes is None else np.asarray(classes), estimator_type)
        self._X = X
        self._config = get_config()
        self.answers: dict[str, Array] = {} if decided is None else {"predict": np.asarray(decided)}

    def _answer(self, method: str, X: Rows) -> Array:
        if not _same_rows(X, self._X):
            raise InvalidInputError(
                f"the scorer called {method} on other rows than it was given; predictions are recorded once "
                "for the validation rows as they are. Change rows in the model (a Pipeline step), or write "
                "the scorer so that it calls the model on X itself.",
                argument="metric",
            )
        if method not in self.answers:
            with config_context(**self._config):  # the model predicts under the user's own configuration
                answer = np.asarray(self._methods[method](X))
            if not answer.ndim or len(answer) != n_rows(X):
                raise InvalidInputError(
                    f"{method} gave an answer of shape {answer.shape} for {n_rows(X)} rows; moew needs one "
                    "for each row (several targets at once are not supported)."
                )
            self.answers[method] = answer
        return read_only(self.answers[method])  # type: ignore[no-any-return]


class Replay(_StandIn):
    """Returns recorded predictions."""

    def _answer(self, method: str, X: Rows) -> Array:
        answer: Array = self._methods[method]
        if len(answer) != n_rows(X):
            raise InvalidInputError(
                f"the scorer called {method} on {n_rows(X)} rows, but was given {len(answer)}; it must call "
                "the model on X itself.",
                argument="metric",
            )
        return read_only(answer)  # type: ignore[no-any-return]


def _same_rows(X: Rows, given: Rows) -> bool:
    if X is given:
        return True
    if hasattr(X, "tocsr") or hasattr(given, "tocsr") or n_rows(X) != n_rows(given):
        return False
    first, second = np.asarray(X), np.asarray(given)
    if first.shape != second.shape:
        return False
    same = (first == second) | ((first != first) & (second != second))  # NaN equals NaN here
    return bool(np.all(same))
