"""Real estimators, as their users set them up: a search on each, and its model against a plain fit."""

import warnings

import numpy as np
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from problems import mixed_frame, shifted_classes, skewed_target
from sklearn.base import clone, is_classifier
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import (
    ElasticNet,
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from xgboost import XGBClassifier, XGBRegressor

from moew import MetricSearch
from moew.exceptions import MoewWarning
from moew.models import ModelEnsemble
from moew.training import resolve_trainer
from moew.types import Training

CLASSES = shifted_classes(120)
TARGETS = skewed_target(120)
BOOST = {"n_estimators": 8, "random_state": 0, "n_jobs": 1}
LIGHT = {**BOOST, "min_child_samples": 5, "verbosity": -1}


def later(estimator):
    """One that takes the same ways through the code as another."""
    return pytest.param(estimator, marks=pytest.mark.heavy)


def search_on(estimator, X, y, X_val, y_val, weight_name="sample_weight"):
    """A finished small search, in which nothing warned."""
    settings = {
        "embedding": "label",
        "sample_weight_name": weight_name,
        "n_candidates": 3,
        "batch_size": 3,
        "random_state": 0,
        "metric": "accuracy" if is_classifier(estimator) else "neg_mean_absolute_error",
    }
    every, alone = (
        MetricSearch.from_settings(estimator, strategies=asked, **settings)
        for asked in ("auto", "example weights")
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        every = clone(every).fit(X, y, validation=(X_val, y_val))
        assert np.isfinite(every.honest_score_) and every.predict(X_val).shape == (len(y_val),)
        return alone.fit(X, y, validation=(X_val, y_val))


def check_against_plain_fit(search, X, y, X_val, weight_name="sample_weight"):
    """Every model that is selected is that of a plain fit with its weights."""
    assert all(told.error is None for told in search.study_.trials())
    models, weights = [search.best_estimator_], [search.sample_weight_]
    if isinstance(search.best_estimator_, ModelEnsemble):
        models = search.best_estimator_.models_
        weights = [function(X, y) for function in search.weight_function_.functions]
    for model, of_model in zip(models, weights, strict=True):
        plain = clone(search.estimator).fit(X, y, **{weight_name: of_model})
        assert np.array_equal(model.predict(X_val), plain.predict(X_val))
    if search.decision_ is None:
        assert np.array_equal(search.predict(X_val), search.best_estimator_.predict(X_val))


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        later(RidgeClassifier()),
        later(SGDClassifier(random_state=0)),
        later(GaussianNB()),
        later(DecisionTreeClassifier(max_depth=4, random_state=0)),
        RandomForestClassifier(8, random_state=0),
        later(ExtraTreesClassifier(8, random_state=0)),
        later(GradientBoostingClassifier(n_estimators=8, random_state=0)),
        later(HistGradientBoostingClassifier(max_iter=8, random_state=0)),
        SVC(),
        later(NuSVC(nu=0.05)),
        later(LinearSVC(random_state=0)),
        LGBMClassifier(**LIGHT),
        XGBClassifier(**BOOST),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_classifiers(estimator):
    rows = CLASSES
    search = search_on(estimator, rows.X, rows.y, rows.X_val, rows.y_val)
    check_against_plain_fit(search, rows.X, rows.y, rows.X_val)


@pytest.mark.parametrize(
    "estimator",
    [
        later(LinearRegression()),
        Ridge(),
        later(ElasticNet(alpha=0.1)),
        later(SGDRegressor(random_state=0)),
        later(DecisionTreeRegressor(max_depth=4, random_state=0)),
        RandomForestRegressor(8, random_state=0),
        later(ExtraTreesRegressor(8, random_state=0)),
        later(GradientBoostingRegressor(n_estimators=8, random_state=0)),
        later(HistGradientBoostingRegressor(max_iter=8, random_state=0)),
        SVR(),
        later(LinearSVR(random_state=0, max_iter=100_000)),
        LGBMRegressor(**LIGHT),
        XGBRegressor(**BOOST),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_regressors(estimator):
    rows = TARGETS
    search = search_on(estimator, rows.X, rows.y, rows.X_val, rows.y_val)
    check_against_plain_fit(search, rows.X, rows.y, rows.X_val)


@pytest.mark.parametrize(
    "estimator",
    [
        later(HistGradientBoostingClassifier(max_iter=8, categorical_features="from_dtype", random_state=0)),
        HistGradientBoostingRegressor(max_iter=8, categorical_features="from_dtype", random_state=0),
        later(LGBMClassifier(**LIGHT)),
        later(LGBMRegressor(**LIGHT)),
        XGBClassifier(**BOOST, enable_categorical=True),
        later(XGBRegressor(**BOOST, enable_categorical=True)),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_data_frames_with_categories_and_missing_values(estimator):
    frame, labels = mixed_frame(240)
    # XGBoost takes classes as numbers only.
    y = (labels == "yes").astype(int)
    if not is_classifier(estimator):
        y = y + np.nan_to_num(frame["number"])
    X, X_val = frame[:160], frame[160:]
    search = search_on(estimator, X, y[:160], X_val, y[160:])
    check_against_plain_fit(search, X, y[:160], X_val)


@pytest.mark.parametrize(
    "last", [LogisticRegression(), later(Ridge()), RandomForestRegressor(8, random_state=0), later(SVC())]
)
def test_a_pipeline_takes_weights_at_its_step(last):
    frame, y = mixed_frame(240)
    frame = frame.assign(number=frame["number"].fillna(0.0))
    y = y if is_classifier(last) else frame["number"].to_numpy() + (y == "yes")
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["kind", "group"]), (StandardScaler(), ["number"])
    )
    name = f"{type(last).__name__.lower()}__sample_weight"
    search = search_on(make_pipeline(columns, last), frame[:160], y[:160], frame[160:], y[160:], name)
    check_against_plain_fit(search, frame[:160], y[:160], frame[160:], name)


@pytest.mark.parametrize(
    "estimator",
    [
        later(LogisticRegression()),
        later(RandomForestClassifier(8, random_state=0)),
        later(HistGradientBoostingClassifier(max_iter=8, random_state=0)),
        SVC(),
        later(LGBMClassifier(**LIGHT)),
        XGBClassifier(**BOOST),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_more_than_two_classes(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 3))
    y = np.argmax(X + rng.normal(size=X.shape), axis=1)
    search = search_on(estimator, X[:160], y[:160], X[160:], y[160:])
    check_against_plain_fit(search, X[:160], y[:160], X[160:])


@pytest.mark.parametrize(
    "kind",
    [HistGradientBoostingRegressor, later(LGBMRegressor), XGBRegressor, LGBMClassifier, later(XGBClassifier)],
)
def test_a_subclass_that_drops_the_weights_is_reported(kind):
    class Deaf(kind):
        def fit(self, X, y, sample_weight=None):
            return super().fit(X, y)

    rows = CLASSES if issubclass(kind, LGBMClassifier | XGBClassifier) else TARGETS
    settings = {HistGradientBoostingRegressor: {"max_iter": 8}, XGBRegressor: BOOST, XGBClassifier: BOOST}
    search = MetricSearch.from_settings(
        Deaf(**settings.get(kind, LIGHT)), embedding="label", n_candidates=2, batch_size=2, random_state=0
    )
    with pytest.warns(MoewWarning, match="seems to ignore"):
        search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))


@pytest.mark.parametrize("kind", [later(HistGradientBoostingClassifier), LGBMClassifier, XGBClassifier])
def test_worker_processes_give_the_same_models_from_a_frame(kind):
    settings = {"max_iter": 5} if kind is HistGradientBoostingClassifier else {"n_estimators": 5, "n_jobs": 1}
    settings |= {"enable_categorical": True} if kind is XGBClassifier else {}
    settings |= {"verbosity": -1} if kind is LGBMClassifier else {}
    frame, labels = mixed_frame(150)
    y = (labels == "yes").astype(int)
    weights = np.random.default_rng(0).uniform(0.2, 3, (4, 150))
    one, two = (
        dict(
            resolve_trainer(kind(**settings), n_jobs=n_jobs).train(frame, y, Training.each(weights, range(4)))
        )
        for n_jobs in (1, 2)
    )
    for k in range(4):
        assert np.array_equal(one[k].predict_proba(frame), two[k].predict_proba(frame))
