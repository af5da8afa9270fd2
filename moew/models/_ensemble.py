"""Several fitted models that predict as one, by weighted means and weighted majorities of their answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import ClassifierTags, RegressorTags, Tags, get_tags
from sklearn.utils.metaestimators import available_if

from moew._util.checks import is_regression
from moew._util.state import State, Stateful, find_object, has_state
from moew.exceptions import Argument, InvalidInputError, StateError
from moew.types import Array, Features, FloatArray, Labels


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

    def fit(self, X: Features, y: Labels = None, **options: Any) -> Self:
        """Return the ensemble as it is: its models are fitted."""
        return self

    def set_params(self, **params: Any) -> Self:
        """Other models, other votes, or both."""
        super().set_params(**params)
        self._check()
        return self

    def predict(self, X: Features) -> Any:
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
    def decision_function(self, X: Features) -> FloatArray:
        """The mean of the models' decision functions: (n,) for two classes, (n, C) for more."""
        return self._mean("decision_function", X)

    @available_if(_all_have("predict_proba"))
    def predict_proba(self, X: Features) -> FloatArray:
        """The mean of the models' probabilities (n, C), in the order of `classes_`."""
        return self._mean("predict_proba", X)

    @available_if(_all_have("predict_log_proba"))
    def predict_log_proba(self, X: Features) -> FloatArray:
        """The logarithms of `predict_proba`."""
        if len(self.models) == 1:
            return np.asarray(self.models[0].predict_log_proba(X))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def score(self, X: Features, y: Labels, sample_weight: Any = None) -> float:
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

    def _answers(self, method: str, X: Features) -> list[Array]:
        return [np.asarray(getattr(model, method)(X)) for model in self.models]

    def _mean(self, method: str, X: Features) -> Array:
        return weighted_mean(self._answers(method, X), self._votes)

    def _check(self) -> None:
        if not isinstance(self.models, Sequence) or not len(self.models):
            raise InvalidInputError(
                Argument("models"), f" must be a list of at least one fitted model, got {self.models!r}."
            )
        _ = self._votes
        for k, model in enumerate(self.models):
            if (problem := _why_not_beside(self.models[0], model, k)) is not None:
                raise InvalidInputError(problem, argument="models")

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


def _why_not_beside(first: Any, model: Any, k: int) -> str | None:
    """Why model k cannot answer with the first one, or None where it can."""
    named = f"model {k} of the ensemble, {type(model).__name__},"
    if not hasattr(model, "predict"):
        return f"{named} has no predict."
    kinds = ["a regressor" if _is_regressor(one) else "a classifier" for one in (first, model)]
    if kinds[0] != kinds[1]:
        said = "an ensemble is of classifiers or of regressors"
        return f"{said}: model 0 is {kinds[0]}, model {k} {kinds[1]}."
    if _is_regressor(first):
        return None
    if not hasattr(model, "classes_"):
        return f"{named} has no classes_; it is not fitted, or which column is which class is unknown."
    of_first, own = (np.asarray(one.classes_).tolist() for one in (first, model))
    said = "the models of an ensemble must have the same classes in the same order"
    return None if own == of_first else f"{said}: model 0 has {of_first!r}, model {k} has {own!r}."


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


def checked_votes(votes: Any, n_models: int) -> FloatArray:
    """The votes (n_models,) as float64, not normalised; raise unless each is a positive number."""
    try:
        given = np.asarray(votes)
    except ValueError:  # lists of different lengths
        given = np.empty(0)
    given = given.astype(np.float64) if given.dtype.kind in "iuf" else np.empty(0)  # texts are no numbers
    if not n_models or given.shape != (n_models,) or not np.isfinite(given.sum()) or not (given > 0).all():
        raise InvalidInputError(
            Argument("votes"),
            f" must be one positive number for each of the {n_models} models, got {votes!r}; leave out "
            "models that have no vote.",
        )
    return given


def weighted_mean(answers: Sequence[Array], votes: FloatArray) -> Array:
    """The mean of the models' numbers, each (n,) or (n, C); a single model's are given back as they are."""
    if len(answers) == 1:
        return answers[0]
    check_same_shape(answers)
    shares = votes / votes.sum()
    # Model after model, so that a row's mean does not depend on which rows stand beside it.
    total = shares[0] * np.asarray(answers[0], dtype=np.float64)
    for share, answer in zip(shares[1:], answers[1:], strict=True):
        total += share * np.asarray(answer, dtype=np.float64)
    return np.asarray(total)


def weighted_majority(labels: Sequence[Array], votes: FloatArray, classes: Array) -> Array:
    """The label (n,) with most votes for each row; among equals, the one that comes first in `classes`."""
    check_same_shape(labels)
    # The votes as they were given: sums of whole numbers are exact, so that ties are found.
    counts = np.zeros((len(labels[0]), len(classes)))
    for of_model, vote in zip(labels, votes, strict=True):
        counts += vote * (np.asarray(of_model)[:, None] == classes)
    return np.asarray(classes[counts.argmax(axis=1)])


def class_scores(decision: Array, n_classes: int) -> FloatArray | None:
    """A decision function as (n,), positive for the second of two classes, or as (n, C) for more; None if its
    columns are not the classes, such as one against one."""
    if n_classes != 2:
        return decision if decision.shape[1:] == (n_classes,) else None
    if decision.shape[1:] == (2,):
        return np.asarray(decision[:, 1] - decision[:, 0])
    return decision.reshape(len(decision)) if decision.size == len(decision) else None


def check_same_shape(answers: Sequence[Array]) -> None:
    first, *others = map(np.shape, answers)
    for other in others:
        if other != first:
            raise InvalidInputError(
                f"the models do not answer alike: one gave an answer of shape {first}, another of shape "
                f"{other}, for the same rows.",
                argument="models",
            )
