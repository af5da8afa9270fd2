import json
from itertools import pairwise

import jax
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils import compute_sample_weight

from moew._util.state import load_state
from moew.embedding import AutoencoderEmbedding, DiscriminativeEmbedding
from moew.exceptions import InvalidInputError

RNG = np.random.default_rng(0)
N = 120
FRAME = pd.DataFrame(
    {
        "a": RNG.normal(5, 3, N),
        "b": RNG.choice(["x", "y", "z"], N),
        "c": RNG.random(N) < 0.5,
        "d": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N)),
    }
)
BINARY = np.where(FRAME["a"] > 5, "yes", "no")
CLASSES = np.digitize(FRAME["a"], [3, 6])
NUMBERS = np.asarray(FRAME["a"] ** 2)
TASKS = [("classification", BINARY), ("classification", CLASSES), ("regression", NUMBERS)]
QUICK = {"steps": 20, "random_state": 0}


@pytest.fixture(scope="module", autouse=True)
def quick_compilation():
    """Many shapes are compiled here, and each is run for a moment."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.mark.parametrize("kind", [AutoencoderEmbedding, DiscriminativeEmbedding])
@pytest.mark.parametrize(("task", "y"), TASKS, ids=["binary", "classes", "regression"])
def test_state_gives_the_same_coordinates_bit_for_bit(kind, task, y):
    embedding = kind(**QUICK).fit(FRAME, y, task=task)
    Z = embedding.transform(FRAME, y)
    counts = compute_sample_weight("balanced", y) if task == "classification" else np.ones(N)
    np.testing.assert_allclose(np.average(Z, axis=0, weights=counts), 0, atol=1e-9)
    np.testing.assert_allclose(np.average(Z**2, axis=0, weights=counts), 1, rtol=1e-9)
    loaded = load_state(json.loads(json.dumps(embedding.state())))
    np.testing.assert_array_equal(loaded.transform(FRAME, y), Z)
    again = kind(**QUICK).fit(FRAME, y, task=task)
    np.testing.assert_array_equal(again.transform(FRAME, y), Z)
    other = kind(**{**QUICK, "random_state": 1}).fit(FRAME, y, task=task)
    assert not np.array_equal(other.transform(FRAME, y), Z)


@pytest.mark.parametrize("kind", [AutoencoderEmbedding, DiscriminativeEmbedding])
def test_settings_of_numpy_types_are_saved(kind):
    settings = {"steps": np.int64(20), "learning_rate": np.float32(0.25), "scale": np.True_}
    embedding = kind(random_state=np.int64(3), **settings).fit(FRAME, BINARY, task="classification")
    loaded = load_state(json.loads(json.dumps(embedding.state())))
    np.testing.assert_array_equal(loaded.transform(FRAME, BINARY), embedding.transform(FRAME, BINARY))
    assert (loaded.steps, loaded.learning_rate, loaded.random_state) == (20, 0.25, 3)


def test_autoencoder_dimensions():
    for settings, widths in (({}, [100, 8, 100, 8]), ({"n_dims": 3, "hidden": 7}, [7, 3, 7, 8])):
        embedding = AutoencoderEmbedding(**settings, **QUICK).fit(FRAME, BINARY, task="classification")
        assert [len(bias) for _, bias in embedding.layers_] == widths
        assert embedding.transform(FRAME, BINARY).shape == (N, widths[1])
    narrow = AutoencoderEmbedding(steps=2, random_state=0).fit(FRAME[["a"]], BINARY, task="classification")
    assert narrow.transform(FRAME[["a"]], BINARY).shape == (N, 2)  # no more dimensions than columns


def test_raw_autoencoder_gives_the_sigmoid_layer_as_it_is():
    embedding = AutoencoderEmbedding(scale=False, standardize=False, **QUICK)
    Z = embedding.fit(FRAME, BINARY, task="classification").transform(FRAME, BINARY)
    assert (Z > 0).all()
    assert (Z < 1).all()


def test_dimensions_that_rounding_alone_moves_are_zero(monkeypatch):
    """A middle layer that hardly listens: only the last digits of single precision differ by row."""
    rng = np.random.default_rng(4)

    def train(spec, inputs, seed):
        layers = [
            (rng.normal(size=(out, into)).astype(np.float32), np.ones(out, dtype=np.float32))
            for into, out in pairwise(spec.sizes)
        ]
        layers[1] = (layers[1][0] * np.float32(1e-7), layers[1][1])
        return layers

    monkeypatch.setattr("moew.models.networks.train_autoencoder", train)
    X, y = rng.normal(size=(N, 2)), rng.normal(size=N)
    raw = AutoencoderEmbedding(n_dims=3, hidden=5, standardize=False).fit(X, y, task="regression")
    assert (raw.transform(X, y).std(axis=0) > 0).any()
    embedding = AutoencoderEmbedding(n_dims=3, hidden=5).fit(X, y, task="regression")
    assert (embedding.transform(X, y) == 0).all()


@pytest.mark.parametrize("trade_off", [0.0, 1.0])
def test_trade_off_decides_what_the_middle_layer_keeps(trade_off):
    """With λ = 0 only the label has to be rebuilt from one dimension, with λ = 1 only x."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(400, 1)), rng.integers(0, 2, 400)
    embedding = AutoencoderEmbedding(
        n_dims=1, hidden=10, trade_off=trade_off, steps=800, learning_rate=0.03, random_state=0
    )
    Z = embedding.fit(X, y, task="classification").transform(X, y)
    knows_y = LogisticRegression().fit(Z, y).score(Z, y)
    knows_x = np.abs(np.corrcoef(Z[:, 0], X[:, 0])[0, 1])
    if trade_off == 0:
        assert knows_y > 0.95
        assert knows_x < 0.5
    else:
        assert knows_x > 0.8
        assert knows_y < 0.8


def test_autoencoder_middle_layer_keeps_more_than_chance():
    """Four columns that depend on two numbers can be rebuilt from two dimensions."""
    rng = np.random.default_rng(2)
    hidden = rng.normal(size=(400, 2))
    X = hidden @ rng.normal(size=(2, 4))
    y = hidden[:, 0]
    embedding = AutoencoderEmbedding(n_dims=2, hidden=20, steps=1000, learning_rate=0.02, random_state=0)
    Z = embedding.fit(X, y, task="regression").transform(X, y)
    assert Ridge(1e-6).fit(Z, X).score(Z, X) > 0.8


@pytest.mark.parametrize(
    ("task", "y", "label_columns"),
    [("classification", BINARY, 1), ("classification", CLASSES, 3), ("regression", NUMBERS, 1)],
)
def test_discriminative_dimensions_are_the_last_layer_and_the_label(task, y, label_columns):
    with_label = DiscriminativeEmbedding(**QUICK).fit(FRAME, y, task=task)
    assert with_label.transform(FRAME, y).shape == (N, 5 + label_columns)
    without = DiscriminativeEmbedding(label=False, **QUICK).fit(FRAME, y, task=task)
    Z = without.transform(FRAME, y)
    assert Z.shape == (N, 5)
    np.testing.assert_allclose(Z, with_label.transform(FRAME, y)[:, :5], rtol=1e-9)
    np.testing.assert_array_equal(Z, without.transform(FRAME, np.roll(y, 1)))


def test_discriminative_layer_predicts_the_label():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 2))
    y = (X**2).sum(axis=1) > 1.4  # no linear function of X tells this
    embedding = DiscriminativeEmbedding(
        hidden=(20, 3), label=False, steps=600, learning_rate=0.03, random_state=0
    ).fit(X, y, task="classification")
    Z = embedding.transform(X, y)
    assert LogisticRegression().fit(Z, y).score(Z, y) > LogisticRegression().fit(X, y).score(X, y) + 0.2


@pytest.mark.parametrize("kind", [AutoencoderEmbedding, DiscriminativeEmbedding])
def test_other_columns_and_labels_are_refused(kind):
    embedding = kind(**QUICK).fit(FRAME, BINARY, task="classification")
    with pytest.raises(InvalidInputError, match=r"missing: \['a'\]"):
        embedding.transform(FRAME.drop(columns="a"), BINARY)
    with pytest.raises(InvalidInputError, match="perhaps"):
        embedding.transform(FRAME, np.where(BINARY == "yes", "perhaps", "no"))


@pytest.mark.parametrize(
    ("embedding", "message"),
    [
        (AutoencoderEmbedding(trade_off=1.5), "trade_off"),
        (AutoencoderEmbedding(n_dims=0), "n_dims"),
        (DiscriminativeEmbedding(hidden=()), "at least one layer"),
    ],
)
def test_bad_settings_are_refused(embedding, message):
    with pytest.raises(InvalidInputError, match=message):
        embedding.fit(FRAME, BINARY, task="classification")


def test_the_label_does_not_drown_among_many_features():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 20)), rng.integers(0, 2, 500)
    embedding = AutoencoderEmbedding(n_dims=3, steps=500, random_state=0)
    Z = embedding.fit(X, y, task="classification").transform(X, y)
    with_constant = np.column_stack([Z, np.ones(len(y))])
    rest = y - with_constant @ np.linalg.lstsq(with_constant, y, rcond=None)[0]
    assert rest.var() < 0.1 * y.var()  # with the features' losses summed, nearly all of it stays
