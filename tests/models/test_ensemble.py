"""Ensembles of fitted models against scikit-learn's voting estimators."""

import pickle

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from problems import shifted_classes, skewed_target
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from moew import load_state
from moew.exceptions import InvalidInputError, StateError
from moew.models import ModelEnsemble, NetworkClassifier, NetworkRegressor

VOTES = (1, 2, 4)


def lightgbm(seed):
    return LGBMClassifier(n_estimators=4, min_child_samples=3, verbose=-1, n_jobs=1, random_state=seed)


CLASSIFIERS = {
    "logistic": lambda seed: LogisticRegression(C=10.0 ** (seed - 2)),
    "pipeline": lambda seed: make_pipeline(StandardScaler(), LogisticRegression(C=10.0 ** (seed - 2))),
    "lightgbm": lightgbm,
    "boosting": lambda seed: HistGradientBoostingClassifier(max_iter=2 + seed, random_state=seed),
    "forest": lambda seed: RandomForestClassifier(3, random_state=seed),
    "network": lambda seed: NetworkClassifier((4,), steps=20, random_state=seed),
}
REGRESSORS = {
    "ridge": lambda seed: Ridge(10.0**seed),
    "pipeline": lambda seed: make_pipeline(StandardScaler(), Ridge(10.0**seed)),
    "lightgbm": lambda seed: LGBMRegressor(n_estimators=3 + seed, verbose=-1, n_jobs=1),
    "network": lambda seed: NetworkRegressor((4,), steps=20, random_state=seed),
}


def fitted(make, X, y, n=3):
    """Models that differ: by their seed, and by the rows that they were trained on."""
    rng = np.random.default_rng(0)
    rows = [np.concatenate([np.arange(9), rng.choice(len(y), len(y))]) for _ in range(n)]
    return [make(seed).fit(X[some], y[some]) for seed, some in enumerate(rows)]


def voting_classifier(models, votes, X, y):
    """scikit-learn's, of models that are fitted already."""
    named = [(f"m{k}", FrozenEstimator(model)) for k, model in enumerate(models)]
    voting = VotingClassifier(named, voting="soft", weights=list(votes))
    voting.le_ = LabelEncoder().fit(y)
    voting.classes_, voting.estimators_ = voting.le_.classes_, list(models)
    return voting


def voting_regressor(models, votes):
    voting = VotingRegressor([(f"m{k}", model) for k, model in enumerate(models)], weights=list(votes))
    voting.estimators_ = list(models)
    return voting


class LabelsOnly(ClassifierMixin, BaseEstimator):
    """A classifier that gives no scores."""

    def __init__(self, labels=()):
        self.labels = labels

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.asarray(self.labels)[: len(X)]


class NoTags:
    """A classifier that knows nothing of scikit-learn."""

    def __init__(self, model):
        self._model, self.classes_ = model, model.classes_

    def predict(self, X):
        return self._model.predict(X)

    def predict_proba(self, X):
        return self._model.predict_proba(X)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_are_soft_voting(name, n_classes):
    rows = shifted_classes(120, n_classes)
    y = np.array(["a", "b", "c"])[rows.y]
    models = fitted(CLASSIFIERS[name], rows.X, y)
    ensemble, voting = ModelEnsemble(models, VOTES), voting_classifier(models, VOTES, rows.X, y)
    np.testing.assert_allclose(
        ensemble.predict_proba(rows.X_val), voting.predict_proba(rows.X_val), rtol=1e-12
    )
    assert ensemble.classes_.tolist() == sorted(set(y))
    if hasattr(models[0], "decision_function"):
        mean = np.average([m.decision_function(rows.X_val) for m in models], axis=0, weights=VOTES)
        np.testing.assert_allclose(ensemble.decision_function(rows.X_val), mean, rtol=1e-12, atol=1e-14)
        chosen = (mean > 0).astype(int) if n_classes == 2 else mean.argmax(axis=1)
        np.testing.assert_array_equal(ensemble.predict(rows.X_val), ensemble.classes_[chosen])
    else:
        assert not hasattr(ensemble, "decision_function")
        np.testing.assert_array_equal(ensemble.predict(rows.X_val), voting.predict(rows.X_val))


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors_are_averaged(name):
    rows = skewed_target(100)
    models = fitted(REGRESSORS[name], rows.X, rows.y)
    ensemble, voting = ModelEnsemble(models, np.array(VOTES)), voting_regressor(models, VOTES)
    np.testing.assert_allclose(ensemble.predict(rows.X_val), voting.predict(rows.X_val), rtol=1e-6)
    assert is_regressor(ensemble) and not is_classifier(ensemble) and ensemble._estimator_type == "regressor"
    assert not any(
        hasattr(ensemble, name)
        for name in ("classes_", "predict_proba", "decision_function", "predict_log_proba")
    )
    assert ensemble.score(rows.X, rows.y) == pytest.approx(voting.score(rows.X, rows.y), rel=1e-5)


@pytest.mark.filterwarnings("ignore:divide by zero encountered in log")
@pytest.mark.parametrize("vote", [1, 0.3, 7])
def test_one_model_keeps_its_bits(vote):
    rows = shifted_classes(100, 3)
    for make in (*CLASSIFIERS.values(), lambda seed: SVC(C=0.1, random_state=0)):
        (model,) = fitted(make, rows.X, rows.y, 1)
        ensemble = ModelEnsemble([model], [vote])
        for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
            assert hasattr(ensemble, method) == hasattr(model, method)
            if hasattr(model, method):
                expected, got = (np.asarray(getattr(m, method)(rows.X_val)) for m in (model, ensemble))
                assert got.dtype == expected.dtype
                np.testing.assert_array_equal(got, expected)
        assert ensemble.votes_.tolist() == [1.0]
    rows = skewed_target(100)
    for make in REGRESSORS.values():
        (model,) = fitted(make, rows.X, rows.y, 1)
        np.testing.assert_array_equal(ModelEnsemble([model], [vote]).predict(rows.X), model.predict(rows.X))


def test_mixed_models_decide_by_what_all_of_them_have():
    rows = shifted_classes(120)
    logistic, trees, ridge = (
        fitted(make, rows.X, rows.y, 1)[0]
        for make in (CLASSIFIERS["logistic"], CLASSIFIERS["forest"], lambda seed: RidgeClassifier())
    )
    by_probability = ModelEnsemble([logistic, trees], [1, 1])
    mean = (logistic.predict_proba(rows.X_val) + trees.predict_proba(rows.X_val)) / 2
    assert not hasattr(by_probability, "decision_function")
    np.testing.assert_array_equal(by_probability.predict(rows.X_val), mean[:, 1] > 0.5)
    by_score = ModelEnsemble([logistic, ridge], [1, 1])
    assert not hasattr(by_score, "predict_proba") and not hasattr(by_score, "predict_log_proba")
    mean = logistic.decision_function(rows.X_val) + ridge.decision_function(rows.X_val)
    np.testing.assert_array_equal(by_score.predict(rows.X_val), mean > 0)
    by_label = ModelEnsemble([logistic, trees, ridge], [1, 1, 1])
    assert not hasattr(by_label, "predict_proba") and not hasattr(by_label, "decision_function")
    votes = sum(model.predict(rows.X_val) for model in (logistic, trees, ridge))
    np.testing.assert_array_equal(by_label.predict(rows.X_val), votes >= 2)


def test_labels_are_decided_by_the_majority_and_ties_by_the_first_class():
    labels = [["a", "b", "c", "c"], ["b", "b", "c", "a"], ["c", "a", "b", "b"]]
    models = [LabelsOnly(own).fit(None, ["a", "b", "c"]) for own in labels]
    assert ModelEnsemble(models, [1, 1, 1]).predict(range(4)).tolist() == ["a", "b", "c", "a"]
    assert ModelEnsemble(models, [1, 2, 3]).predict(range(4)).tolist() == ["c", "a", "b", "b"]
    assert ModelEnsemble(models, [0.1, 0.1, 0.3]).predict(range(4)).tolist() == ["c", "a", "b", "b"]
    assert ModelEnsemble(models, [2, 3, 6]).predict(range(4)).tolist() == ["c", "a", "b", "b"]


def test_a_decision_function_of_pairs_of_classes_does_not_decide():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 25)
    X = rng.normal(size=(100, 2)) + np.stack([y % 2, y // 2], axis=1) * 2
    models = fitted(lambda seed: SVC(C=1 + seed, decision_function_shape="ovo"), X, y)
    ensemble = ModelEnsemble(models, [1, 1, 1])
    assert ensemble.decision_function(X).shape == (100, 6)
    labels = np.array([model.predict(X) for model in models])
    expected = [np.bincount(of_row, minlength=4).argmax() for of_row in labels.T]
    np.testing.assert_array_equal(ensemble.predict(X), expected)


def test_a_row_is_answered_the_same_whatever_stands_beside_it():
    rows = shifted_classes(120, 3)
    ensemble = ModelEnsemble(fitted(lightgbm, rows.X, rows.y), VOTES)
    np.testing.assert_array_equal(
        ensemble.predict_proba(rows.X_val)[5:30:3], ensemble.predict_proba(rows.X_val[5:30:3])
    )


def test_it_is_an_estimator_of_scikit_learn():
    rows = shifted_classes(120)
    X = pd.DataFrame(rows.X, columns=["u", "v"])
    models = [LogisticRegression(C=C).fit(X, rows.y) for C in (0.1, 1.0)]
    ensemble = ModelEnsemble(tuple(models), VOTES[:2])
    check_is_fitted(ensemble)
    assert ensemble.fit(X, rows.y) is ensemble and ensemble.models_ == models
    assert (
        is_classifier(ensemble)
        and ensemble._estimator_type == get_tags(ensemble).estimator_type == "classifier"
    )
    assert get_tags(ensemble).input_tags == get_tags(models[0]).input_tags
    assert ensemble.get_params() == {"models": tuple(models), "votes": VOTES[:2]}
    np.testing.assert_allclose(ensemble.votes_, [1 / 3, 2 / 3])
    assert ensemble.n_features_in_ == 2 and ensemble.feature_names_in_.tolist() == ["u", "v"]
    assert "ModelEnsemble" in repr(ensemble)
    for again in (clone(ensemble), pickle.loads(pickle.dumps(ensemble))):
        np.testing.assert_array_equal(again.predict_proba(X), ensemble.predict_proba(X))
    assert ensemble.score(X, rows.y) == np.mean(ensemble.predict(X) == rows.y)
    assert permutation_importance(ensemble, X, rows.y, n_repeats=2).importances.shape == (2, 2)
    np.testing.assert_allclose(np.exp(ensemble.predict_log_proba(X)), ensemble.predict_proba(X))
    assert not hasattr(ModelEnsemble([LogisticRegression().fit(rows.X, rows.y)], [1]), "feature_names_in_")
    clone(ensemble).set_params(votes=[5, 5])
    with pytest.raises(InvalidInputError, match="votes must be one positive number"):
        clone(ensemble).set_params(votes=[1])


def test_models_without_tags_are_told_by_their_classes():
    rows = shifted_classes(120)
    models = [NoTags(model) for model in fitted(CLASSIFIERS["logistic"], rows.X, rows.y)]
    ensemble = ModelEnsemble(models, VOTES)
    assert is_classifier(ensemble) and ensemble.classes_.tolist() == [0, 1]
    np.testing.assert_array_equal(
        ensemble.predict(rows.X_val), (ensemble.predict_proba(rows.X_val)[:, 1] > 0.5).astype(int)
    )
    assert not hasattr(ensemble, "n_features_in_")


def test_what_is_no_ensemble_is_refused():
    rows = shifted_classes(60)
    model = LogisticRegression().fit(rows.X, rows.y)
    named = LogisticRegression().fit(rows.X, np.array(["no", "yes"])[rows.y])
    with pytest.raises(
        InvalidInputError, match=r"model 0 has \[0, 1\], model 2 has \['no', 'yes'\]"
    ) as refused:
        ModelEnsemble([model, model, named], [1, 1, 1])
    assert refused.value.argument == "models"
    turned = clone(model).fit(rows.X, rows.y)
    turned.classes_ = turned.classes_[::-1]
    with pytest.raises(InvalidInputError, match=r"model 0 has \[0, 1\], model 1 has \[1, 0\]"):
        ModelEnsemble([model, turned], [1, 1])
    with pytest.raises(InvalidInputError, match="model 0 is a classifier, model 1 a regressor"):
        ModelEnsemble([model, LinearRegression().fit(rows.X, rows.y)], [1, 1])
    with pytest.raises(InvalidInputError, match="LogisticRegression, has no classes_; it is not fitted"):
        ModelEnsemble([model, LogisticRegression()], [1, 1])
    with pytest.raises(InvalidInputError, match="StandardScaler, has no predict"):
        ModelEnsemble([StandardScaler()], [1])
    for nothing in ([], None, model):
        with pytest.raises(InvalidInputError, match="at least one fitted model"):
            ModelEnsemble(nothing, [])


@pytest.mark.parametrize(
    "votes",
    [
        [1],
        [1, 0],
        [1, -1],
        [1, np.nan],
        [1, np.inf],
        "ab",
        None,
        [[1, 1]],
        ["1", "2"],
        [1, [2, 3]],
        [1, None],
    ],
)
def test_votes_are_positive_numbers(votes):
    rows = shifted_classes(60)
    model = LogisticRegression().fit(rows.X, rows.y)
    with pytest.raises(InvalidInputError, match="votes must be one positive number") as refused:
        ModelEnsemble([model, model], votes)
    assert refused.value.argument == "votes"


def test_models_that_answer_in_other_shapes_are_refused():
    rows = shifted_classes(80, 4)
    pairs, rest = (SVC(decision_function_shape=shape).fit(rows.X, rows.y) for shape in ("ovo", "ovr"))
    with pytest.raises(InvalidInputError, match=r"shape \(\d+, 6\), another of shape \(\d+, 4\)"):
        ModelEnsemble([pairs, rest], [1, 1]).decision_function(rows.X)


def test_a_state_holds_the_votes_and_takes_the_models():
    rows = shifted_classes(60)
    models = fitted(CLASSIFIERS["logistic"], rows.X, rows.y)
    ensemble = ModelEnsemble(models, [0.1, 0.2, 0.7])
    state = ensemble.state()
    objects = {f"member-{k}": model for k, model in enumerate(models)}
    again = load_state(state, objects)
    np.testing.assert_array_equal(again.predict_proba(rows.X), ensemble.predict_proba(rows.X))
    with pytest.raises(StateError, match="member-1"):
        load_state(state, {"member-0": models[0]})
    with pytest.raises(StateError, match="a vote for each of its 3 members"):
        load_state({**state, "votes": [1.0, 2.0]}, objects)
