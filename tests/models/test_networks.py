"""The networks as estimators: against scikit-learn's linear models, on data frames, saved and loaded."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LinearRegression, LogisticRegression

from moew._util.state import load_state
from moew.exceptions import InvalidInputError
from moew.models.networks import NetworkClassifier, NetworkRegressor, TrainingDivergedError

_LINEAR = {"hidden": (), "steps": 1500, "batch_size": None, "learning_rate": 0.03, "random_state": 0}
_SMALL = {"hidden": (4, 3), "steps": 40, "batch_size": 16, "learning_rate": 0.02, "random_state": 3}


def _classes(n_classes, n=200):
    X, y = make_classification(
        n, 5, n_informative=4, n_redundant=0, n_classes=n_classes, flip_y=0.2, random_state=1
    )
    return X, y, np.random.default_rng(0).uniform(0.1, 3, n)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_linear_classifier_is_logistic_regression(n_classes):
    X, y, w = _classes(n_classes)
    ours = NetworkClassifier(loss="logistic", **_LINEAR).fit(X, y, sample_weight=w)
    theirs = LogisticRegression(C=np.inf).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=0.005)
    unweighted = LogisticRegression(C=np.inf).fit(X, y)
    assert np.abs(unweighted.predict_proba(X) - theirs.predict_proba(X)).max() > 0.02


def test_a_linear_regressor_is_weighted_least_squares():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 3)) * [1, 10, 0.1] + [0, 5, 100]
    y = 1e4 + 300 * X[:, 0] + 7 * X[:, 1] ** 2 + rng.standard_normal(100)
    w = rng.uniform(0.1, 3, 100)
    ours = NetworkRegressor(**_LINEAR).fit(X, y, sample_weight=w)
    theirs = LinearRegression().fit(X, y, sample_weight=w)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=0.01 * y.std())


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("loss", ["logistic", "softmax", "sigmoid_cross_entropy", "hinge"])
def test_every_loss_learns_and_gives_sound_answers(loss, n_classes):
    rng = np.random.default_rng(0)
    y = np.array(["ant", "bee", "cat", "dog"])[np.arange(120) % n_classes]
    X = 4 * np.eye(4)[np.arange(120) % n_classes] + rng.standard_normal((120, 4))
    model = NetworkClassifier(**{**_SMALL, "steps": 300}, loss=loss).fit(X, y)
    assert model.score(X, y) > 0.9
    scores = model.decision_function(X)
    assert scores.shape == ((120,) if n_classes == 2 else (120, n_classes))
    if loss == "hinge":
        assert not hasattr(model, "predict_proba")
        return
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert proba.min() >= 0
    np.testing.assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X))


def test_fit_many_gives_what_fit_gives():
    X, y, _ = _classes(2)
    weights = np.random.default_rng(2).uniform(0.1, 1.9, (7, len(y)))
    model = NetworkClassifier(**_SMALL)
    many = list(model.fit_many(X, y, weights, [11, 12, 13, 14, 15, 16, None]))
    assert [k for k, _ in many] == list(range(7))
    assert not hasattr(model, "layers_")
    for k, fitted in many:
        seed = 11 + k if k < 6 else 3
        alone = clone(model).set_params(random_state=seed).fit(X, y, sample_weight=weights[k])
        np.testing.assert_array_equal(fitted.decision_function(X), alone.decision_function(X))
        assert fitted.random_state == seed


def test_fit_many_hands_over_the_failures():
    X, y, _ = _classes(2)
    weights = np.ones((5, len(y)))
    weights[1, 0], weights[2, 0], weights[3] = np.nan, -1, 0
    results = dict(NetworkClassifier(**_SMALL).fit_many(X, y, weights, range(5)))
    for k, message in ((1, "finite"), (2, "negative"), (3, "zero")):
        assert isinstance(results[k], InvalidInputError) and message in str(results[k])
    np.testing.assert_array_equal(results[4].predict(X), clone(results[4]).fit(X, y, weights[4]).predict(X))
    wild = NetworkClassifier(**{**_SMALL, "learning_rate": 1e38, "activation": "relu"})
    ((_, failure),) = wild.fit_many(X, y, weights[:1], [0])
    assert isinstance(failure, TrainingDivergedError)
    with pytest.raises(TrainingDivergedError, match="learning_rate"):
        wild.fit(X, y)


def test_fit_many_refuses_weights_of_another_shape():
    X, y, w = _classes(2)
    for weights, seeds in ((w, [0]), (w[None, :-1], [0]), (w[None], [0, 1])):
        with pytest.raises(InvalidInputError, match="weights must have shape"):
            NetworkClassifier(**_SMALL).fit_many(X, y, weights, seeds)


def test_random_states():
    X, y, _ = _classes(2)

    def scores(random_state):
        return NetworkClassifier(**{**_SMALL, "random_state": random_state}).fit(X, y).decision_function(X)

    np.testing.assert_array_equal(scores(np.random.RandomState(1)), scores(np.random.RandomState(1)))
    shared = np.random.RandomState(1)
    assert not np.array_equal(scores(shared), scores(shared))
    assert not np.array_equal(scores(None), scores(None))
    with pytest.raises(InvalidInputError, match="not be negative"):
        scores(-1)


def _frame(n=90):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.standard_normal(n),
            "kind": pd.Categorical(rng.choice(["a", "b", "c"], n)),
            "flag": rng.random(n) < 0.5,
        }
    )
    y = (frame["kind"] == "a").to_numpy() ^ frame["flag"].to_numpy()
    frame.loc[::7, "size"] = np.nan
    return frame, np.where(y, "yes", "no")


def test_data_frames_with_categories_and_missing_values():
    frame, y = _frame()
    model = NetworkClassifier(**{**_SMALL, "hidden": (8,), "steps": 400, "activation": "tanh"}).fit(frame, y)
    assert model.score(frame, y) > 0.95
    assert model.feature_names_in_.tolist() == ["size", "kind", "flag"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["kind", "size", "flag"]])


@pytest.mark.parametrize("regression", [False, True])
def test_saved_and_loaded(regression):
    frame, y = _frame()
    model = (NetworkRegressor if regression else NetworkClassifier)(**_SMALL)
    model.fit(frame, frame["flag"] * 3.0 + 1 if regression else y)
    again = load_state(json.loads(json.dumps(model.state())))
    for copy in (again, pickle.loads(pickle.dumps(model))):
        assert type(copy) is type(model) and copy.get_params() == model.get_params()
        np.testing.assert_array_equal(copy.predict(frame), model.predict(frame))
        np.testing.assert_array_equal(copy.hidden_representation(frame), model.hidden_representation(frame))
    assert all(type(array) is np.ndarray for layer in model.layers_ for array in layer)


def test_settings_of_numpy_types_are_saved():
    X, y, _ = _classes(2)
    settings = {
        "hidden": np.array([4, 3]),
        "activation": np.str_("tanh"),
        "steps": np.int64(5),
        "batch_size": np.int32(16),
        "learning_rate": np.float32(0.25),
        "scale": np.True_,
        "random_state": np.int64(3),
    }
    for model in (NetworkClassifier(**settings).fit(X, y), NetworkRegressor(**settings).fit(X, y)):
        again = load_state(json.loads(json.dumps(model.state())))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert (again.steps, again.batch_size, again.learning_rate, again.scale) == (5, 16, 0.25, True)


@pytest.mark.parametrize("unit", [1e-30, 1e-12, 1e12])
def test_targets_in_any_units_are_learned(unit):
    X, _, _ = _classes(2)
    y = X[:, 0] - 2 * X[:, 1]
    model = NetworkRegressor(**{**_LINEAR, "steps": 300}).fit(X, unit * y)
    assert model.score(X, unit * y) > 0.99
    with pytest.raises(InvalidInputError, match="y holds values .* too large"):
        model.fit(X, 1e200 * y)


def test_hidden_representation_leads_to_the_output():
    X, y, _ = _classes(2)
    model = NetworkClassifier(**_SMALL).fit(X, y)
    hidden = model.hidden_representation(X)
    assert hidden.shape == (len(y), 3)
    W, b = model.layers_[-1]
    np.testing.assert_allclose((hidden @ W.T + b)[:, 0], model.decision_function(X))
    linear = NetworkClassifier(**{**_SMALL, "hidden": ()}).fit(X, y)
    np.testing.assert_allclose(linear.hidden_representation(X), (X - X.mean(axis=0)) / X.std(axis=0))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (NetworkClassifier(loss="squared"), "loss of NetworkClassifier"),
        (NetworkRegressor(loss="hinge"), "loss of NetworkRegressor"),
        (NetworkClassifier(activation="cube"), "activation"),
        (NetworkClassifier(hidden=(0,)), "hidden must hold"),
        (NetworkClassifier(hidden=20), r"hidden must hold .* such as \(20, 10\).*; got 20"),
        (NetworkRegressor(hidden=None), "hidden must hold"),
        (NetworkRegressor(hidden=(20.0, 10)), "hidden must hold"),
        (NetworkClassifier(hidden="20"), "hidden must hold"),
        (NetworkClassifier(hidden=np.array(20)), "hidden must hold"),
        (NetworkClassifier(hidden=np.array([[20]])), "hidden must hold"),
        (NetworkRegressor(steps=0), "steps"),
    ],
)
def test_bad_settings_are_refused_before_training(model, message):
    X, y, _ = _classes(2)
    with pytest.raises(InvalidInputError, match=message):
        model.fit(X, y)


def test_one_class_is_refused():
    X, y, _ = _classes(2)
    with pytest.raises(InvalidInputError, match="one class only"):
        NetworkClassifier(**_SMALL).fit(X, np.zeros(len(y)))
