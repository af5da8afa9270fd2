"""An estimator that takes weights and ignores them is found out; honest ones are not accused."""

import warnings

import numpy as np
import pytest
from joblib import parallel_config
from problems import shifted_classes, skewed_target
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from moew import MetricSearch
from moew.exceptions import MoewWarning
from moew.training import EstimatorTrainer
from moew.types import Training

CLASSES = shifted_classes(100)
TARGETS = skewed_target(100)


def deaf(kind, **settings):
    """An estimator of this kind whose fit drops the weights."""

    class Deaf(kind):
        def fit(self, X, y, sample_weight=None):
            return super().fit(X, y)

    return Deaf(**settings)


def _train(estimator, rows, seeds=(3, 4, 5), **settings):
    weights = np.ones((len(seeds), len(rows.y)))
    weights[1:] = np.random.default_rng(0).uniform(0.5, 1.5, (len(seeds) - 1, len(rows.y)))
    return dict(EstimatorTrainer(estimator, **settings).train(rows.X, rows.y, Training.each(weights, seeds)))


@pytest.mark.parametrize(
    ("kind", "settings", "rows"),
    [
        (LogisticRegression, {}, CLASSES),
        (LinearRegression, {}, TARGETS),
        (GaussianNB, {}, CLASSES),
        (DecisionTreeClassifier, {}, CLASSES),  # has the labels by heart, and a random state left open
        (ExtraTreesClassifier, {"n_estimators": 5}, CLASSES),
        (RandomForestRegressor, {"n_estimators": 5}, TARGETS),
        (SVR, {}, TARGETS),
    ],
)
def test_ignored_weights_are_reported(kind, settings, rows):
    with pytest.warns(MoewWarning, match="Deaf takes sample weights but seems to ignore them"):
        assert len(_train(deaf(kind, **settings), rows)) == 3


@pytest.mark.parametrize(
    ("estimator", "rows"),
    [
        (LogisticRegression(), CLASSES),
        (LinearRegression(), TARGETS),
        (DecisionTreeClassifier(), CLASSES),
        (DecisionTreeClassifier(random_state=0), CLASSES),
        (DecisionTreeRegressor(), TARGETS),
        (ExtraTreesClassifier(5), CLASSES),
        (RandomForestRegressor(5), TARGETS),
        (SVC(), CLASSES),
        (DummyClassifier(strategy="prior"), CLASSES),
        (DummyClassifier(strategy="most_frequent"), CLASSES),
    ],
)
def test_used_weights_are_not_reported(estimator, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(_train(estimator, rows)) == 3


def test_a_pipeline_is_looked_into():
    name = "deaf__sample_weight"
    with pytest.warns(MoewWarning, match="Pipeline"):
        _train(make_pipeline(StandardScaler(), deaf(LogisticRegression)), CLASSES, sample_weight_name=name)


def test_only_the_first_batch_is_looked_at_and_the_probe_is_no_candidate():
    fits = []

    class Counts(DecisionTreeClassifier):
        def fit(self, X, y, sample_weight=None):
            fits.append(sample_weight)
            return super().fit(X, y, sample_weight)

    trainer = EstimatorTrainer(Counts())
    weights = np.ones((2, len(CLASSES.y)))
    for expected in (3, 5):
        trained = dict(trainer.train(CLASSES.X, CLASSES.y, Training.each(weights, [0, 1])))
        assert sorted(trained) == [0, 1]
        assert len(fits) == expected
    assert np.isclose(fits[2].sum(), len(CLASSES.y))
    assert fits[2].max() / fits[2].min() > 30


def test_a_search_reports_it():
    search = MetricSearch.from_settings(
        deaf(LogisticRegression), embedding="label", n_candidates=3, batch_size=3
    )
    with pytest.warns(MoewWarning, match="seems to ignore"):
        search.fit(CLASSES.X, CLASSES.y, validation=(CLASSES.X_val, CLASSES.y_val))


def test_a_forest_that_answers_in_parallel_is_found_out_too():
    forest = deaf(RandomForestRegressor, n_estimators=30, n_jobs=4)
    with parallel_config(backend="threading", n_jobs=2), pytest.warns(MoewWarning, match="seems to ignore"):
        _train(forest, TARGETS)


def test_a_fold_is_looked_at_on_its_own_rows():
    fold = np.arange(0, 100, 2)
    weights = np.random.default_rng(0).uniform(0.5, 1.5, (3, 50))
    for estimator, reported in ((DecisionTreeRegressor(), False), (deaf(DecisionTreeRegressor), True)):
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            list(
                EstimatorTrainer(estimator).train(
                    TARGETS.X, TARGETS.y, Training.each(weights, range(3)), fold
                )
            )
        assert bool(warned) == reported
