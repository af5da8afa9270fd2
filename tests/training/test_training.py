"""Trainers: weights reach the model, failures stay with their candidate, seeds where they are open."""

from dataclasses import replace

import numpy as np
import pytest
from joblib import parallel_config
from lightgbm import LGBMRegressor
from problems import shifted_classes
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from moew.exceptions import UnsupportedEstimatorError
from moew.models.networks import NetworkClassifier
from moew.training import EstimatorTrainer, ManyTrainer, resolve_trainer, with_seed
from moew.types import Training

ROWS = shifted_classes(80)
WEIGHTS = np.random.default_rng(0).uniform(0.1, 2, (5, len(ROWS.y)))


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("backend", ["loky", "threading", "sequential"])
def test_each_weighting_gets_its_model(n_jobs, backend):
    with parallel_config(backend=backend):
        trained = dict(
            EstimatorTrainer(LogisticRegression(), n_jobs=n_jobs).train(
                ROWS.X, ROWS.y, Training.each(WEIGHTS, range(5))
            )
        )
    assert sorted(trained) == list(range(5))
    for k, weights in enumerate(WEIGHTS):
        alone = LogisticRegression().fit(ROWS.X, ROWS.y, sample_weight=weights)
        assert np.array_equal(alone.coef_, trained[k].coef_)


def test_a_failure_is_an_answer():
    class Fussy(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            if sample_weight[0] > 1:
                raise RuntimeError("no")
            return super().fit(X, y, sample_weight)

    trained = dict(EstimatorTrainer(Fussy()).train(ROWS.X, ROWS.y, Training.each(WEIGHTS, range(5))))
    for k, weights in enumerate(WEIGHTS):
        assert isinstance(trained[k], RuntimeError if weights[0] > 1 else LogisticRegression)
    assert any(isinstance(model, RuntimeError) for model in trained.values())


def test_seeds_are_set_where_the_user_left_them_open():
    nested = BaggingClassifier(DecisionTreeClassifier(), random_state=3)
    seeded = with_seed(nested, 17)
    assert seeded.random_state == 3
    assert seeded.estimator.random_state == 17
    assert nested.estimator.random_state is None
    pipeline = make_pipeline(StandardScaler(), DecisionTreeClassifier())
    assert with_seed(pipeline, 4)[-1].random_state == 4


def test_fit_many_is_used_where_it_is_offered():
    trainer = resolve_trainer(NetworkClassifier(hidden=(3,), steps=5))
    assert isinstance(trainer, ManyTrainer)
    trained = dict(trainer.train(ROWS.X, ROWS.y, Training.each(WEIGHTS, [1, 2, 3, 4, 5])))
    alone = NetworkClassifier(hidden=(3,), steps=5, random_state=3).fit(
        ROWS.X, ROWS.y, sample_weight=WEIGHTS[2]
    )
    assert np.allclose(trained[2].decision_function(ROWS.X), alone.decision_function(ROWS.X), atol=1e-5)
    fixed = ManyTrainer(NetworkClassifier(hidden=(3,), steps=5, random_state=9))
    same = dict(fixed.train(ROWS.X, ROWS.y, Training.each(np.ones((2, len(ROWS.y))), [1, 2])))
    assert np.array_equal(same[0].decision_function(ROWS.X), same[1].decision_function(ROWS.X))


def test_a_failure_of_fit_many_is_every_candidates_answer():
    broken = ManyTrainer(NetworkClassifier(hidden=(3,), steps=5, activation="cosine"))
    trained = dict(broken.train(ROWS.X, ROWS.y, Training.each(WEIGHTS, range(5))))
    assert all(isinstance(model, Exception) for model in trained.values())
    assert len(trained) == 5


def test_estimators_of_other_libraries_take_weights_too():
    assert isinstance(resolve_trainer(LGBMRegressor()), EstimatorTrainer)


def test_a_pipeline_whose_model_takes_no_weights_is_told_so_at_once():
    with pytest.raises(UnsupportedEstimatorError, match="KNeighborsClassifier.fit takes no .sample_weight"):
        resolve_trainer(make_pipeline(StandardScaler(), KNeighborsClassifier()))
    assert (
        resolve_trainer(make_pipeline(StandardScaler(), Ridge())).sample_weight_name == "ridge__sample_weight"
    )
    inner = make_pipeline(make_pipeline(StandardScaler(), Ridge()))
    assert resolve_trainer(inner).sample_weight_name == "pipeline__ridge__sample_weight"
    with pytest.raises(
        UnsupportedEstimatorError, match="sample_weight_name='pipeline__ridge__sample_weight'"
    ):
        resolve_trainer(inner, "sample_weight")


class Drawn:
    """Draws as many rows as there are, in proportion to their weights."""

    def __call__(self, X, y, weights, seed):
        rows = np.random.default_rng(seed).choice(len(y), len(y), p=weights / weights.sum())
        return X[rows], y[rows], np.ones(len(rows))


class Nothing:
    """Makes labels without rows."""

    def __call__(self, X, y, weights, seed):
        return X[:0], y, weights


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_training_may_make_its_rows(n_jobs):
    plain, drawn = Training(WEIGHTS[0], 1), Training(WEIGHTS[1], 2, {"C": 0.5}, Drawn())
    trainer = EstimatorTrainer(LogisticRegression(), n_jobs=n_jobs)
    fold = np.arange(0, len(ROWS.y), 2)
    trainings = [replace(one, weights=one.weights[fold]) for one in (plain, drawn)]
    trained = dict(
        trainer.train(ROWS.X, ROWS.y, [*trainings, replace(plain, weights=WEIGHTS[2][fold])], fold)
    )
    X, y, weights = Drawn()(ROWS.X[fold], ROWS.y[fold], WEIGHTS[1][fold], 2)
    alone = LogisticRegression(C=0.5).fit(X, y, weights)
    np.testing.assert_array_equal(trained[1].coef_, alone.coef_)
    assert not np.array_equal(trained[0].coef_, trained[2].coef_)


def test_fit_many_gets_made_rows_alone():
    class Many(LogisticRegression):
        def fit_many(self, X, y, weights, seeds):
            for k, w in enumerate(weights):
                yield k, (len(weights), LogisticRegression().fit(X, y, w))

    trainings = [Training(w, k, rows=Drawn() if k == 1 else None) for k, w in enumerate(WEIGHTS)]
    trained = dict(ManyTrainer(Many()).train(ROWS.X, ROWS.y, trainings))
    assert [trained[k][0] for k in range(5)] == [4, 1, 4, 4, 4]
    alone = LogisticRegression().fit(*Drawn()(ROWS.X, ROWS.y, WEIGHTS[1], 1))
    np.testing.assert_array_equal(trained[1][1].coef_, alone.coef_)


def test_made_rows_must_fit_together():
    trained = dict(
        EstimatorTrainer(LogisticRegression()).train(ROWS.X, ROWS.y, [Training(WEIGHTS[0], 0, {}, Nothing())])
    )
    assert f"made 0 rows, {len(ROWS.y)} labels" in str(trained[0])
