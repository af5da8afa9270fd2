"""The compiled training loop against scikit-learn's networks, and what it promises about bits and batches."""

import multiprocessing
import warnings
from functools import partial

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import hinge_loss, log_loss
from sklearn.neural_network import MLPRegressor

from experiments.networks import train_networks
from moew.exceptions import InvalidInputError, MoewError
from moew.models._shared import batch_rows
from moew.models.networks import NetworkSpec, ReconstructionLoss, _adam
from moew.models.networks._devices import NETWORKS_AT_ONCE
from moew.models.networks._engine import initial_layers
from moew.models.networks._groups import train_weightings
from moew.models.networks._layers import row_losses


def _problem(n=60, n_in=3, n_networks=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_in))
    y = np.sin(X[:, :1]) + X[:, 1:2]
    return X, y, rng.uniform(0.1, 1.9, (n_networks, n))


def _flat(layers):
    return np.concatenate([np.ravel(array) for layer in layers for array in layer])


def _train_with_scikit_learn(spec, X, y, w, seed):
    """The same first weights, full batches and Adam in scikit-learn's multilayer perceptron."""
    name = "logistic" if spec.activation == "sigmoid" else spec.activation
    network = MLPRegressor(
        hidden_layer_sizes=spec.sizes[1:-1],
        activation=name,
        alpha=0,
        batch_size=len(X),
        learning_rate_init=spec.learning_rate,
    )
    network.partial_fit(X, y[:, 0])
    layers = initial_layers(spec, seed)
    network.coefs_ = [W.T.astype(np.float64) for W, _ in layers]
    network.intercepts_ = [b.astype(np.float64) for _, b in layers]
    del network._optimizer
    for _ in range(spec.steps):
        network.partial_fit(X, y[:, 0], sample_weight=w)
    return [(W.T, b) for W, b in zip(network.coefs_, network.intercepts_, strict=True)]


@pytest.mark.parametrize(
    ("activation", "hidden"), [("sigmoid", (4, 3)), ("tanh", (5,)), ("relu", (4,)), ("identity", ())]
)
def test_training_is_adam_on_the_weighted_loss(activation, hidden):
    X, y, weights = _problem()
    spec = NetworkSpec((3, *hidden, 1), activation, "squared", 40, None, 0.01)
    (ours,) = train_weightings(spec, X, y, weights, [5])
    theirs = _train_with_scikit_learn(spec, X, y, weights[0], 5)
    np.testing.assert_allclose(_flat(ours), _flat(theirs), atol=2e-4)
    assert np.abs(_flat(ours) - _flat(initial_layers(spec, 5))).max() > 0.1


def test_adam_for_a_cpu_does_what_adam_for_a_gpu_does():
    rng = np.random.default_rng(0)
    params, gradients = ({"W": rng.standard_normal((1, 3, 4, 5)).astype(np.float32)} for _ in range(2))
    active = np.array([[True, False, True]])

    def after_two_updates(in_place):
        state = _adam.start(params, 1, 3)
        once, state = _adam.update(params, gradients, state, 0.01, active, in_place)
        return _adam.update(once, gradients, state, 0.01, active, in_place)

    one, other = (jax.jit(after_two_updates, static_argnums=0)(in_place) for in_place in (True, False))
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-6), one, other)
    np.testing.assert_array_equal(one[0]["W"][:, 1], params["W"][:, 1])  # the one that is not active


@pytest.mark.parametrize(("sizes", "batch_size"), [((3, 4, 2, 1), 16), ((3, 1), None), ((3, 7, 1), 32)])
def test_a_network_is_the_same_to_the_bit_in_any_company(sizes, batch_size):
    K = 2 * NETWORKS_AT_ONCE["cpu"] + 1
    X, y, weights = _problem(n_networks=K)
    spec = NetworkSpec(sizes, "sigmoid", "squared", 30, batch_size, 0.01)
    together = [_flat(layers) for layers in train_weightings(spec, X, y, weights, list(range(K)))]
    for members in ([0], [K - 1], [7, 3], [4, 1, 2, 9, 0, 6]):
        some = train_weightings(spec, X, y, weights[members], members)
        for k, layers in zip(members, some, strict=True):
            np.testing.assert_array_equal(_flat(layers), together[k])
    assert len({flat.tobytes() for flat in together}) == K


def test_a_mini_batch_without_weight_leaves_the_network_alone():
    X, y, _ = _problem(n=12)
    weights = np.zeros((1, 12))
    weights[0, 4] = 3.0
    spec = NetworkSpec((3, 2, 1), steps=60, batch_size=1, learning_rate=0.01)
    params = train_networks(spec, X[None], y[None], weights[None], [[8]], 0)
    n_updates = int((batch_rows(12, 1, 60, 0) == 4).sum())
    assert 0 < n_updates < 60
    only = NetworkSpec((3, 2, 1), steps=n_updates, batch_size=None, learning_rate=0.01)
    same = train_networks(only, X[None, 4:5], y[None, 4:5], np.ones((1, 1, 1)), [[8]], 0)
    np.testing.assert_allclose(_flat(params), _flat(same), atol=1e-6)


def test_weights_count_by_their_ratios_only():
    X, y, weights = _problem()
    spec = NetworkSpec((3, 2, 1), steps=30, batch_size=16, learning_rate=0.01)
    (one,) = train_weightings(spec, X, y, weights, [0])
    (tiny,) = train_weightings(spec, X, y, 2.0**-200 * weights, [0])
    (other,) = train_weightings(spec, X, y, weights[:, ::-1], [0])
    np.testing.assert_array_equal(_flat(one), _flat(tiny))
    assert not np.array_equal(_flat(one), _flat(other))


@given(n=st.integers(1, 40), batch_size=st.integers(1, 45), steps=st.integers(1, 30), seed=st.integers(0, 99))
def test_mini_batches_are_draws_without_replacement(n, batch_size, steps, seed):
    rows = batch_rows(n, batch_size, steps, seed)
    if batch_size >= n:
        assert rows is None
        return
    assert rows.shape == (steps, batch_size) and rows.min() >= 0 and rows.max() < n
    assert all(len(set(batch.tolist())) == batch_size for batch in rows)
    np.testing.assert_array_equal(rows, batch_rows(n, batch_size, steps, seed))
    epoch = rows[: n // batch_size]
    assert len(np.unique(epoch)) == epoch.size


def _losses(loss, out, y):
    """Feature-major and back: losses (n,) of outputs (n, C) and targets (n, C)."""
    return np.asarray(row_losses(loss, out.T[None, None].astype(np.float32), y.T[None].astype(np.float32)))[
        0, 0
    ]


def test_losses_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    out, labels = 3 * rng.standard_normal((50, 4)), rng.integers(0, 4, 50)
    one_hot = np.eye(4)[labels]
    softmax = np.exp(out) / np.exp(out).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(_losses("softmax", out, one_hot).mean(), log_loss(labels, softmax), rtol=1e-5)
    np.testing.assert_array_equal(_losses("logistic", out, one_hot), _losses("softmax", out, one_hot))
    binary, score = one_hot[:, :1], out[:, :1]
    sigmoid = 1 / (1 + np.exp(-score[:, 0]))
    expected = log_loss(binary[:, 0], sigmoid)
    for loss in ("logistic", "softmax", "sigmoid_cross_entropy"):
        np.testing.assert_allclose(_losses(loss, score, binary).mean(), expected, rtol=1e-5)
    np.testing.assert_allclose(
        _losses("hinge", score, binary).mean(), hinge_loss(binary[:, 0], score[:, 0]), rtol=1e-5
    )
    for loss in ("hinge", "sigmoid_cross_entropy"):  # more classes: the sum over one against the rest
        parts = [_losses(loss, out[:, c : c + 1], one_hot[:, c : c + 1]) for c in range(4)]
        np.testing.assert_allclose(_losses(loss, out, one_hot), np.sum(parts, axis=0), rtol=1e-5)


def test_the_reconstruction_loss_adds_up_its_blocks():
    rng = np.random.default_rng(0)
    out = rng.standard_normal((30, 5))
    y = np.column_stack([rng.standard_normal(30), rng.integers(0, 2, 30), np.eye(3)[rng.integers(0, 3, 30)]])
    y[0, 2:] = 0  # a missing category
    loss = ReconstructionLoss(numeric=((0, 2.0),), binary=((1, 0.5),), categorical=((2, 5, 3.0),))
    expected = (
        2.0 * _losses("squared", out[:, :1], y[:, :1])
        + 0.5 * _losses("hinge", out[:, 1:2], y[:, 1:2])
        + 3.0 * _losses("softmax", out[:, 2:], y[:, 2:])
    )
    np.testing.assert_allclose(_losses(loss, out, y), expected, rtol=1e-5)
    assert _losses("softmax", out[:1, 2:], y[:1, 2:]) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sizes": (3,)}, "layer sizes"),
        ({"sizes": (3, 0, 1)}, "layer sizes"),
        ({"activation": "swish"}, "activation must be one of"),
        ({"loss": "huber"}, "loss must be one of"),
        ({"steps": 0}, "steps"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 2.5}, "batch_size"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"learning_rate": np.nan}, "learning_rate"),
    ],
)
def test_bad_settings_are_refused(change, message):
    with pytest.raises(InvalidInputError, match=message):
        NetworkSpec(**{"sizes": (3, 1), **change})


def test_arrays_that_do_not_fit_are_refused():
    X, y, weights = _problem()
    spec = NetworkSpec((3, 1), steps=1)
    for bad in (
        (X, y[None], weights[None], [[0]]),
        (X[None], y[None, :-1], weights[None], [[0]]),
        (X[None], y[None], weights[None, :, :-1], [[0]]),
        (X[None], y[None], weights[None], [[0, 1]]),
        (X[None, :, :2], y[None], weights[None], [[0]]),
    ):
        with pytest.raises(InvalidInputError, match="got X"):
            train_networks(spec, *bad, 0)


def _train_once(spec, grouped):
    X, y, weights = _problem()
    if grouped:
        return next(train_weightings(spec, X, y, weights, [0]))
    return train_networks(spec, X[None], y[None], weights[None], [[0]], 0)


def _message_of_training(answers, spec, grouped):
    try:
        _train_once(spec, grouped)
        answers.put("trained")
    except MoewError as error:
        answers.put(str(error))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this system")
@pytest.mark.parametrize("grouped", [True, False])
def test_training_after_a_fork_is_an_error_and_does_not_hang(grouped):
    spec = NetworkSpec((3, 2, 1), steps=2)
    _train_once(spec, grouped)
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=_message_of_training, args=(answers, spec, grouped), daemon=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python and JAX warn of the fork itself
        child.start()
    child.join(60)
    hangs = child.is_alive()
    if hangs:
        child.kill()
        child.join()
    assert not hangs
    assert "use joblib's 'loky' or 'threading' backend" in answers.get()
    _train_once(spec, grouped)  # the parent goes on
