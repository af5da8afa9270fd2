"""Several fitted models that predict as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import ClassifierTags, RegressorTags, Tags, get_tags
from sklearn.utils.metaestimators import available_if

from moew._util.estimators import is_regression
from moew._util.state import State, Stateful, find_object, has_state
from moew.exceptions import Argument, InvalidInputError, StateError
from moew.models._votes import checked_votes, class_scores, weighted_majority, weighted_mean
from moew.types import Array, FloatArray, Labels, Rows


def _all_have(method: str) -> Callable[[ModelEnsemble], bool]:
    return lambda self: all(hasattr(model, method) for model in self.models)


@has_state
class ModelEnsemble(Stateful, BaseEstimator):
    """Fitted models that answer as one, by the mean of their answers, each counted as often as it has votes.

    It is a classifier if the models are, else a regressor. It has `predict_proba` and `decision_function` if
    all models have them. A classifier decides by the mean decision function, or by the mean probabilities if
    a model has no decision function, or by the majority of the models' labels if they have neither.

    Parameters
    ----------
    models
        At least one fitted model; classifiers with the same classes in the same order.
    votes
        A positive number for each model, (m,).

    Attributes
    ----------
    models_ : the models, a list
    votes_ : (m,), the votes with sum one
    classes_ : (C,), of classifiers only
    n_features_in_, feature_names_in_ : those of the first model, if it has them

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> models = [LogisticRegression(C=C).fit(X, y) for C in (0.1, 10.0)]
    >>> ModelEnsemble(models, [1, 3]).predict([[0.5], [2.5]])
    array([0, 1])
    """

    state_home: ClassVar[str] = "moew.models"

    def __init__(self, models: Sequence[Any], votes: FloatArray) -> None:
        self.models = models
        self.votes = votes
        self._check()

    @property
    def models_(self) -> list[Any]:
        return list(self.models)

    @property
    def votes_(self) -> FloatArray:
        votes = self._votes
        return np.asarray(votes / votes.sum())

    @property
    def classes_(self) -> Array:
        if self._is_regressor:
            raise AttributeError("an ensemble of regressors has no classes_.")
        return np.asarray(self.models[0].classes_)

    @property
    def n_features_in_(self) -> int:
        return self.models[0].n_features_in_  # type: ignore[no-any-return]

    @property
    def feature_names_in_(self) -> Array:
        return self.models[0].feature_names_in_  # type: ignore[no-any-return]

    def fit(self, X: Rows, y: Labels = None, **options: Any) -> Self:
        """Return the ensemble as it is: its models are fitted."""
        return self

    def set_params(self, **params: Any) -> Self:
        """Other models, other votes, or both."""
        super().set_params(**params)
        self._check()
        return self

    def predict(self, X: Rows) -> Any:
        """Classes (n,), or the mean of the models' predictions (n,) in regression."""
        if len(self.models) == 1:
            return self.models[0].predict(X)
        if self._is_regressor:
            return self._mean("predict", X)
        classes = self.classes_
        if hasattr(self, "decision_function"):
            scores = class_scores(self.decision_function(X), len(classes))
            if scores is not None:
                return classes[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]
        if hasattr(self, "predict_proba"):
            shares = self.predict_proba(X)
            two = len(classes) == 2
            return classes[(shares[:, 1] > 0.5).astype(int) if two else shares.argmax(axis=1)]
        return weighted_majority(self._answers("predict", X), self._votes, classes)

    @available_if(_all_have("decision_function"))
    def decision_function(self, X: Rows) -> FloatArray:
        """The mean of the models' decision functions: (n,) for two classes, (n, C) for more."""
        return self._mean("decision_function", X)

    @available_if(_all_have("predict_proba"))
    def predict_proba(self, X: Rows) -> FloatArray:
        """The mean of the models' probabilities (n, C), in the order of `classes_`."""
        return self._mean("predict_proba", X)

    @available_if(_all_have("predict_log_proba"))
    def predict_log_proba(self, X: Rows) -> FloatArray:
        """The logarithms of `predict_proba`."""
        if len(self.models) == 1:
            return np.asarray(self.models[0].predict_log_proba(X))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def score(self, X: Rows, y: Labels, sample_weight: Any = None) -> float:
        """Accuracy of a classifier, R² of a regressor."""
        kind = RegressorMixin if self._is_regressor else ClassifierMixin
        return float(kind.score(self, X, y, sample_weight))

    @property
    def _estimator_type(self) -> str:
        return "regressor" if self._is_regressor else "classifier"

    @property
    def _is_regressor(self) -> bool:
        return _is_regressor(self.models[0])

    @property
    def _votes(self) -> FloatArray:
        return checked_votes(self.votes, len(self.models))

    def _answers(self, method: str, X: Rows) -> list[Array]:
        return [np.asarray(getattr(model, method)(X)) for model in self.models]

    def _mean(self, method: str, X: Rows) -> Array:
        return weighted_mean(self._answers(method, X), self._votes)

    def _check(self) -> None:
        if not isinstance(self.models, Sequence) or not len(self.models):
            raise InvalidInputError(
                Argument("models"),
                f" must be a list of at least one fitted model, got {self.models!r}.",
                argument="models",
            )
        _ = self._votes
        kinds = ["a regressor" if _is_regressor(model) else "a classifier" for model in self.models]
        for k, model in enumerate(self.models):
            if not hasattr(model, "predict"):
                raise InvalidInputError(
                    f"model {k} of the ensemble, {type(model).__name__}, has no predict.", argument="models"
                )
            if kinds[k] != kinds[0]:
                raise InvalidInputError(
                    f"an ensemble is of classifiers or of regressors: model 0 is {kinds[0]}, model {k} "
                    f"{kinds[k]}.",
                    argument="models",
                )
        if not self._is_regressor:
            self._check_classes()

    def _check_classes(self) -> None:
        for k, model in enumerate(self.models):
            if not hasattr(model, "classes_"):
                raise InvalidInputError(
                    f"model {k} of the ensemble, {type(model).__name__}, has no classes_; it is not fitted, "
                    "or which column is which class is unknown.",
                    argument="models",
                )
            own, first = np.asarray(model.classes_).tolist(), self.classes_.tolist()
            if own != first:
                raise InvalidInputError(
                    "the models of an ensemble must have the same classes in the same order: model 0 has "
                    f"{first!r}, model {k} has {own!r}.",
                    argument="models",
                )

    def _content(self) -> State:
        return {"members": len(self.models), "votes": self._votes.tolist()}

    @classmethod
    def from_state(cls, state: State, objects: Mapping[str, Any]) -> Self:
        """The ensemble that `state()` described; its models are passed in, by `member_names(state)`."""
        return cls([find_object(name, objects) for name in member_names(state)], state["votes"])

    def __sklearn_clone__(self) -> Self:
        return type(self)(self.models, self.votes)  # copies of the models would not be fitted

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        first = self.models[0]
        tags = deepcopy(get_tags(first)) if hasattr(first, "__sklearn_tags__") else super().__sklearn_tags__()
        tags.estimator_type, tags.transformer_tags = self._estimator_type, None
        if self._is_regressor:
            tags.regressor_tags = tags.regressor_tags or RegressorTags()
        else:
            tags.classifier_tags = tags.classifier_tags or ClassifierTags()
        return tags


def member_names(state: State) -> list[str]:
    """The names of an ensemble's models as its state calls them; none in the state of anything else."""
    if not isinstance(state, dict) or state.get("kind") != f"{ModelEnsemble.state_home}:ModelEnsemble":
        return []
    members, votes = state.get("members"), state.get("votes")
    if not isinstance(votes, list) or members != len(votes):
        raise StateError(f"the state of an ensemble must have a vote for each of its {members!r} members.")
    return [member_name(k) for k in range(len(votes))]


def member_name(k: int) -> str:
    """What an ensemble's model number k is called in its state."""
    return f"member-{k}"


def _is_regressor(model: Any) -> bool:
    """As `is_regression`; where tags leave it open, whether the model has no classes."""
    if hasattr(model, "__sklearn_tags__") and get_tags(model).estimator_type is None:
        return not hasattr(model, "classes_")
    return is_regression(model)
