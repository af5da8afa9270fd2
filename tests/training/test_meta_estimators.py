"""Weights reach the models inside of scikit-learn's meta-estimators, or a sentence says why not."""

import warnings
from typing import ClassVar

import numpy as np
import pytest
import sklearn
from sklearn import config_context
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
)
from sklearn.feature_selection import RFE, RFECV, SelectFromModel
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils.fixes import parse_version

from moew import MetricSearch, load
from moew.exceptions import InvalidInputError, UnsupportedEstimatorError
from moew.saving import load_model, needs_trust, pack_model
from moew.training import resolve_trainer
from moew.types import Training

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
Y = np.digitize(X[:, 0] + 0.5 * RNG.standard_normal(60), [-0.4, 0.4])
WEIGHTS = RNG.uniform(0.1, 2, (1, 60))
SEEN: list = []


class Classifier(LogisticRegression):
    """Notes the weights that it gets."""

    def fit(self, X, y, sample_weight=None):
        SEEN.append(sample_weight)
        return super().fit(X, y, sample_weight)


class Regressor(Ridge):
    """Notes the weights that it gets."""

    def fit(self, X, y, sample_weight=None):
        SEEN.append(sample_weight)
        return super().fit(X, y, sample_weight)


class Unweighted(StandardScaler):
    """Takes weights, as scikit-learn's does, and notes that nobody passes any."""

    given: ClassVar[list] = []

    def fit(self, X, y=None, sample_weight=None):
        self.given.append(sample_weight)
        return super().fit(X, y, sample_weight)


def piped(model):
    return make_pipeline(Unweighted(), model)


def alone(model):
    return model


def weights_seen(estimator, y=Y):
    """The weights that each model inside gets, of one training."""
    SEEN.clear()
    Unweighted.given.clear()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="y contains no unlabeled")
        ((_, outcome),) = resolve_trainer(estimator).train(X, y, Training.each(WEIGHTS, [0]))
    if isinstance(outcome, Exception):
        raise outcome
    outcome.predict(X)
    return list(SEEN)


@pytest.mark.parametrize("inner", [alone, piped], ids=["model", "pipeline"])
@pytest.mark.parametrize(
    "make",
    [
        lambda m: FixedThresholdClassifier(m),
        lambda m: TunedThresholdClassifierCV(m, cv=2),
        lambda m: TunedThresholdClassifierCV(m, cv=2, scoring="f1"),
        lambda m: CalibratedClassifierCV(m, cv=2),
        lambda m: GridSearchCV(m, {}, cv=2),
        lambda m: GridSearchCV(m, {}, cv=2, scoring=["f1_macro", "accuracy"], refit="accuracy"),
        lambda m: OneVsRestClassifier(m),
        lambda m: OneVsOneClassifier(m),
        lambda m: OutputCodeClassifier(m, random_state=0),
        lambda m: StackingClassifier([("a", m)], cv=2),
        lambda m: VotingClassifier([("a", m)]),
        lambda m: SelfTrainingClassifier(m),
        lambda m: make_pipeline(StandardScaler(), OneVsRestClassifier(m)),
        lambda m: GridSearchCV(FixedThresholdClassifier(m), {}, cv=2),
    ],
)
def test_weights_reach_the_models_inside(make, inner):
    estimator = make(inner(Classifier()))
    two = "Threshold" in repr(estimator)
    seen = weights_seen(estimator, Y > 0 if two else Y)
    assert seen and all(w is not None and set(w) <= set(WEIGHTS[0]) for w in seen)
    assert all(given is None for given in Unweighted.given)


@pytest.mark.parametrize("inner", [alone, piped], ids=["model", "pipeline"])
@pytest.mark.parametrize(
    "make", [lambda m: TransformedTargetRegressor(m), lambda m: StackingRegressor([("a", m)], cv=2)]
)
def test_weights_reach_regressors(make, inner):
    seen = weights_seen(make(inner(Regressor())), X[:, 0])
    assert seen and all(w is not None and set(w) <= set(WEIGHTS[0]) for w in seen)


@pytest.mark.parametrize("make", [RFE, RFECV])
def test_weights_reach_models_that_select_features(make):
    assert all(w is not None for w in weights_seen(make(Classifier())))
    selected = GridSearchCV(make_pipeline(SelectFromModel(Classifier()), Classifier()), {}, cv=2)
    seen = weights_seen(selected)
    assert [w is None for w in seen] == [True, False] * 3  # those that select are not the model


@pytest.mark.skipif(parse_version(sklearn.__version__) < parse_version("1.8"), reason="it passed weights on")
def test_bagging_draws_rows_by_weight():
    heavy = np.where(np.arange(60) < 30, 1.0, 1e-6)
    model = BaggingClassifier(piped(LogisticRegression()), 3, random_state=0)
    ((_, trained),) = resolve_trainer(model).train(X, Y, Training.each(heavy[None], [0]))
    assert all(set(rows) <= set(range(30)) for rows in trained.estimators_samples_)


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (
            AdaBoostClassifier(piped(LogisticRegression())),
            "AdaBoostClassifier cannot pass weights to a Pipeline",
        ),
        (
            GridSearchCV(KNeighborsClassifier(), {}),
            "KNeighborsClassifier, which is inside of GridSearchCV, takes no",
        ),
        (
            OneVsRestClassifier(piped(KNeighborsClassifier())),
            "KNeighborsClassifier, which is inside of OneVsRest",
        ),
        (
            StackingClassifier([("a", Classifier())], final_estimator=KNeighborsClassifier()),
            "KNeighborsClassifier, which is inside of StackingClassifier",
        ),
    ],
)
def test_where_weights_cannot_get_a_sentence_says_so(estimator, words):
    with pytest.raises(UnsupportedEstimatorError, match=words):
        resolve_trainer(estimator)


def test_requests_of_the_user_stay():
    with config_context(enable_metadata_routing=True):
        scaler = Unweighted().set_fit_request(sample_weight=True)
    weights_seen(OneVsRestClassifier(make_pipeline(scaler, Classifier())))
    assert all(given is not None for given in Unweighted.given)


@pytest.mark.parametrize(
    "make",
    [
        lambda m: OneVsRestClassifier(m),
        lambda m: VotingClassifier([("a", m)]),
        lambda m: CalibratedClassifierCV(m, cv=2),
    ],
)
def test_trained_models_are_saved_as_any_others(make, tmp_path):
    model = make(make_pipeline(StandardScaler(), LogisticRegression()))
    ((_, trained),) = resolve_trainer(model).train(X, Y, Training.each(WEIGHTS, [0]))
    by_scikit_learn = needs_trust(pack_model(model.fit(X, Y), X, "model"))
    files = pack_model(trained, X, "model")
    assert needs_trust(files) == by_scikit_learn
    again = load_model(files, tmp_path, "model", by_scikit_learn)
    assert np.array_equal(again.predict(X), trained.predict(X))


def test_a_search_with_one(tmp_path):
    model = FixedThresholdClassifier(make_pipeline(StandardScaler(), LogisticRegression()), threshold=0.3)
    settings = {"embedding": "label", "n_candidates": 2, "batch_size": 2, "random_state": 0}
    search = MetricSearch.from_settings(
        model, metric="f1", strategies="example weights", final="best", **settings
    )
    search.fit(X, (Y > 1).astype(int))
    assert search.result_.n_failed == 0
    search.save(tmp_path / "search.moew", trusted=True)
    assert np.array_equal(load(tmp_path / "search.moew", trusted=True).predict(X), search.predict(X))
    with pytest.raises(InvalidInputError, match="cannot reach the models inside of FixedThreshold"):
        search.fit(X, Y > 1, fit_params={"check_input": True})
