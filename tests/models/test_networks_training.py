"""Penalty, early stopping, warm start and precision of the networks, against scikit-learn and by hand."""

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import mean_squared_error
from sklearn.neural_network import MLPRegressor

from moew._util.state import load_state
from moew.exceptions import InvalidInputError
from moew.models._shared import batch_rows
from moew.models.networks import (
    EarlyStopping,
    NetworkClassifier,
    NetworkRegressor,
    NetworkSpec,
    TrainingDivergedError,
    _groups,
)
from moew.models.networks._engine import initial_layers, split_rows
from moew.models.networks._groups import train_weightings

_LINEAR = {"hidden": (), "steps": 1500, "batch_size": None, "learning_rate": 0.03, "random_state": 0}
_SMALL = {"hidden": (3,), "steps": 40, "batch_size": 16, "learning_rate": 0.02, "random_state": 3}
_STOPPING = {"early_stopping": 0.2, "check_every": 7, "patience": 2}


def _classes(n_classes=2, n=200):
    X, y = make_classification(
        n, 5, n_informative=4, n_redundant=0, n_classes=n_classes, flip_y=0.2, random_state=1
    )
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, y, np.random.default_rng(0).uniform(0.1, 3, n)


def _flat(layers):
    return np.concatenate([np.ravel(array) for layer in layers for array in layer])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_penalty_is_that_of_logistic_regression(n_classes):
    X, y, w = _classes(n_classes)
    slow = {**_LINEAR, "steps": 6000, "learning_rate": 0.003}  # Adam comes no nearer than its steps are long
    ours = NetworkClassifier(l2=0.2, **slow).fit(X, y, sample_weight=w)
    theirs = LogisticRegression(C=1 / (0.2 * w.sum()), tol=1e-8).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(ours.layers_[0][0], theirs.coef_, atol=5e-4)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=5e-4)


def test_the_penalty_is_that_of_ridge_and_leaves_the_bias_alone():
    X, _, w = _classes()
    y = 30 + X @ [1.0, -2.0, 0.5, 0.0, 3.0]
    ours = NetworkRegressor(l2=0.5, scale=False, **{**_LINEAR, "learning_rate": 0.1}).fit(X, y, w)
    theirs = Ridge(alpha=0.5 * w.sum() / 2).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(ours.layers_[0][0][0], theirs.coef_, atol=0.002)
    np.testing.assert_allclose(ours.layers_[0][1][0], theirs.intercept_, atol=0.01)


def test_the_penalty_reaches_all_layers():
    X, y, _ = _classes()
    free, held = (NetworkClassifier(**{**_SMALL, "steps": 300}, l2=l2).fit(X, y) for l2 in (0.0, 0.3))
    for (loose, _), (tight, _) in zip(free.layers_, held.layers_, strict=True):
        assert np.linalg.norm(tight) < 0.5 * np.linalg.norm(loose)


def _stopping_with_scikit_learn(spec, X, y, w, seed):
    """scikit-learn's network step by step: parameters at every check, the best one, and where it stops."""
    kept, held = split_rows(len(X), spec.early_stopping.share)
    drawn = batch_rows(len(kept), spec.batch_size, spec.steps, 0)
    network = MLPRegressor(hidden_layer_sizes=spec.sizes[1:-1], activation="tanh", alpha=0, batch_size=len(X))
    network.set_params(learning_rate_init=spec.learning_rate).partial_fit(X, y[:, 0])
    layers = initial_layers(spec, seed)
    network.coefs_ = [W.T.astype(np.float64) for W, _ in layers]
    network.intercepts_ = [b.astype(np.float64) for _, b in layers]
    del network._optimizer
    checks, losses = [], []
    for step in range(1, spec.steps + 1):
        rows = kept if drawn is None else kept[drawn[step - 1]]
        network.set_params(batch_size=len(rows))
        network.partial_fit(X[rows], y[rows, 0], sample_weight=w[rows] / w[rows].mean())
        if step % spec.early_stopping.check_every == 0 or step == spec.steps:
            pairs = zip(network.coefs_, network.intercepts_, strict=True)
            checks.append(_flat([(W.T, b) for W, b in pairs]))
            losses.append(mean_squared_error(y[held], network.predict(X[held]), sample_weight=w[held]))
    best, failed, stopped = 0, 0, len(losses)
    for number in range(1, len(losses)):
        best, failed = (number, 0) if losses[number] < losses[best] else (best, failed + 1)
        if failed == spec.early_stopping.patience:
            stopped = number + 1
            break
    return checks, best, stopped


@pytest.mark.heavy
@pytest.mark.parametrize("batch_size", [8, None])
def test_early_stopping_keeps_the_best_parameters_of_each(batch_size):
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((40, 3)), rng.uniform(0.1, 1.9, (6, 40))
    y = X[:, :1] + 2 * rng.standard_normal((40, 1))
    stopping = EarlyStopping(0.3, patience=2, check_every=10)
    spec = NetworkSpec((3, 8, 1), "tanh", "squared", 95, batch_size, 0.05, early_stopping=stopping)
    stops = []
    for k, layers in enumerate(train_weightings(spec, X, y, weights, list(range(6)))):
        checks, best, stopped = _stopping_with_scikit_learn(spec, X, y, weights[k], k)
        distances = [np.abs(_flat(layers) - check).max() for check in checks]
        # Float32 strays from float64 in so many long steps, but by far less than from one check to the next.
        assert np.argmin(distances) == best and distances[best] < 0.01
        assert np.partition(distances, 1)[1] > 0.05
        stops.append(stopped)
    assert len(set(stops)) > 1 and min(stops) < len(checks)  # at different times, and before the end


def test_rows_are_split_once_and_for_all():
    kept, held = split_rows(50, 0.2)
    assert sorted([*kept, *held]) == list(range(50)) and len(held) == 10
    np.testing.assert_array_equal(held, split_rows(50, 0.2)[1])
    assert split_rows(50, None)[1].size == 0
    with pytest.raises(InvalidInputError, match="no row to hold out"):
        split_rows(3, 0.1)


def test_divergence_is_found_with_early_stopping_too():
    X, y, _ = _classes()
    wild = NetworkClassifier(**{**_SMALL, "learning_rate": 1e38, "activation": "relu"}, **_STOPPING)
    with pytest.raises(TrainingDivergedError):
        wild.fit(X, y)


def test_weights_must_reach_both_sides_of_the_split():
    X, y, _ = _classes()
    kept, held = split_rows(len(X), 0.2)
    weights = np.ones((3, len(X)))
    weights[0, kept], weights[1, held] = 0, 0
    results = dict(NetworkClassifier(**_SMALL, **_STOPPING).fit_many(X, y, weights, range(3)))
    assert "to train on are zero" in str(results[0]) and "held out for early" in str(results[1])
    assert hasattr(results[2], "layers_")
    with pytest.raises(InvalidInputError, match="held out for early"):
        NetworkClassifier(**_SMALL, **_STOPPING).fit(X, y, weights[1])


_SETTINGS = [
    {"l2": 0.1, **_STOPPING},
    {"warm_start": "uniform"},
    {"warm_start": "uniform", "warm_steps": 9, "l2": 0.01, **_STOPPING, "precision": "bfloat16"},
]


@pytest.mark.parametrize("settings", _SETTINGS)
def test_a_network_is_the_same_to_the_bit_in_any_company(settings):
    X, y, _ = _classes()
    weights = np.random.default_rng(2).uniform(0.1, 1.9, (7, len(y)))
    model = NetworkClassifier(**_SMALL, **settings)
    many = dict(model.fit_many(X, y, weights, range(11, 18)))
    _groups._known.clear()
    for k in (0, 3, 6):
        alone = clone(model).set_params(random_state=11 + k).fit(X, y, sample_weight=weights[k])
        np.testing.assert_array_equal(_flat(many[k].layers_), _flat(alone.layers_))
    members = [5, 2]
    for i, some in model.fit_many(X, y, weights[members], [16, 13]):
        np.testing.assert_array_equal(_flat(some.layers_), _flat(many[members[i]].layers_))
    assert len({_flat(fitted.layers_).tobytes() for fitted in many.values()}) == 7
    again = load_state(json.loads(json.dumps(many[0].state())))
    assert again.get_params() == many[0].get_params()


def test_a_warm_start_goes_on_from_the_uniform_model():
    X, _, w = _classes()
    model = NetworkRegressor(**{**_SMALL, "batch_size": None, "scale": False}, warm_start="uniform")
    target = X[:, 0]
    uniform = clone(model).set_params(warm_start=False, random_state=_groups.UNIFORM_SEED).fit(X, target)
    one_more = clone(model).set_params(warm_steps=1).fit(X, target, w)
    moved = np.abs(_flat(one_more.layers_) - _flat(uniform.layers_))
    # The first step of Adam is the learning rate long, for every parameter.
    np.testing.assert_allclose(moved, 0.02, atol=1e-4)
    default, fifth = (clone(model).set_params(warm_steps=s).fit(X, target, w) for s in (None, 8))
    np.testing.assert_array_equal(_flat(default.layers_), _flat(fifth.layers_))


def test_the_uniform_model_is_trained_once_for_the_same_rows(monkeypatch):
    X, y, w = _classes()
    calls = []

    def counted(*args, **kwargs):
        calls.append(1)
        return train_weightings(*args, **kwargs)

    monkeypatch.setattr(_groups, "train_weightings", counted)
    monkeypatch.setattr(_groups, "_KEPT", 2)
    _groups._known.clear()
    model = NetworkClassifier(**_SMALL, warm_start="uniform")
    for _ in range(3):
        list(clone(model).fit_many(X, y, np.stack([w, w[::-1]]), [1, 2]))
    assert len(calls) == 1
    clone(model).fit(X + np.arange(len(X))[:, None] * 1e-3, y)
    clone(model).fit(X, 1 - y)
    clone(model).set_params(steps=41).fit(X, y)
    assert len(calls) == 4 and len(_groups._known) == 2


@pytest.mark.parametrize(("precision", "atol"), [("tf32", 2e-3), ("bfloat16", 2e-2)])
def test_shorter_products_give_close_but_other_networks(precision, atol):
    X, y, w = _classes()
    full, short = (NetworkClassifier(**_SMALL, precision=p).fit(X, y, w) for p in ("float32", precision))
    difference = np.abs(full.predict_proba(X) - short.predict_proba(X)).max()
    assert 1e-6 < difference < atol


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"l2": -1.0}, "l2 must be"),
        ({"l2": np.inf}, "l2 must be"),
        ({"l2": "much"}, "l2 must be"),
        ({"early_stopping": True}, "early_stopping must be False, or the share"),
        ({"early_stopping": 1.0}, "early_stopping must be False, or the share"),
        ({"early_stopping": 0.001}, "leaves no row to hold out"),
        ({"early_stopping": 0.1, "patience": 0}, "patience must be"),
        ({"early_stopping": 0.1, "check_every": 1.5}, "check_every must be"),
        ({"warm_start": True}, "warm_start must be False or 'uniform'"),
        ({"warm_start": "uniform", "warm_steps": 0}, "warm_steps must be"),
        ({"precision": "float16"}, "precision must be one of"),
        ({"device": "abacus"}, "device must be None or one of"),
    ],
)
def test_bad_settings_are_refused_before_training(settings, message):
    X, y, w = _classes()
    model = NetworkClassifier(**_SMALL, **settings)
    with pytest.raises(InvalidInputError, match=message):
        model.fit(X, y)
    with pytest.raises(InvalidInputError, match=message):
        model.fit_many(X, y, w[None], [0])


def test_the_first_parameters_and_batches_are_those_of_the_seed():
    """A network of one step tells both."""
    X, y, w = _classes()
    spec = NetworkSpec((5, 2, 1), "tanh", "squared", 1, 8, 0.01)
    (layers,) = train_weightings(spec, X, y[:, None], w[None], [4])
    rows = batch_rows(len(X), 8, 1, 0)[0]
    full = NetworkSpec((5, 2, 1), "tanh", "squared", 1, None, 0.01)
    (same,) = train_weightings(full, X[rows], y[rows, None], w[None, rows], [4])
    np.testing.assert_allclose(_flat(layers), _flat(same), atol=1e-6)
    assert np.abs(_flat(layers) - _flat(initial_layers(spec, 4))).max() < 0.0101
