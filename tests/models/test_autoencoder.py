"""The autoencoder's training, against principal components and on mixed columns."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from moew.data import Block
from moew.models.networks import (
    TrainingDivergedError,
    autoencoder_spec,
    encode,
    train_autoencoder,
)


def _numeric(n_columns):
    return [Block("numeric", j, j + 1) for j in range(n_columns)]


def _trained(inputs, blocks, weights, *, seed=0, **settings):
    spec = autoencoder_spec(blocks, weights, **settings)
    return train_autoencoder(spec, inputs, seed)


def _decode(layers, Z, activation):
    (W3, b3), (W4, b4) = layers[2:]
    return activation(Z @ W3.T + b3) @ W4.T + b4


def test_a_linear_autoencoder_finds_the_principal_components():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 6)) @ rng.standard_normal((6, 6)) * [3, 2, 1, 1, 0.5, 0.5]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    layers = _trained(
        X, _numeric(6), [1.0] * 6, hidden=8, n_dims=2, activation="identity", steps=2000, batch_size=None,
        learning_rate=0.01, seed=0,
    )  # fmt: skip
    Z = encode(layers, X, "identity")
    assert [W.shape for W, _ in layers] == [(8, 6), (2, 8), (8, 2), (6, 8)] and Z.shape == (150, 2)
    pca = PCA(2).fit(X)
    least = ((X - pca.inverse_transform(pca.transform(X))) ** 2).mean()
    ours = ((X - _decode(layers, Z, lambda values: values)) ** 2).mean()
    assert least <= ours < 1.02 * least


def test_mixed_blocks_are_rebuilt():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 200)
    flag = rng.integers(0, 2, 200)
    inputs = np.column_stack([rng.standard_normal(200), flag, np.eye(3)[codes]])
    blocks = [Block("numeric", 0, 1), Block("binary", 1, 2), Block("categorical", 2, 5)]
    layers = _trained(
        inputs, blocks, [1.0, 1.0, 1.0], hidden=12, n_dims=3, steps=1500, batch_size=50, learning_rate=0.02,
        seed=1,
    )  # fmt: skip
    Z = encode(layers, inputs)
    assert Z.min() >= 0 and Z.max() <= 1
    rebuilt = _decode(layers, Z, lambda values: 1 / (1 + np.exp(-values)))
    assert np.mean((rebuilt[:, 1] > 0) == flag) > 0.99
    assert np.mean(rebuilt[:, 2:].argmax(axis=1) == codes) > 0.99
    assert np.corrcoef(rebuilt[:, 0], inputs[:, 0])[0, 1] > 0.9


def test_block_weights_say_what_is_kept():
    rng = np.random.default_rng(0)
    inputs = rng.integers(0, 2, (200, 2)).astype(float)
    blocks = [Block("binary", 0, 1), Block("binary", 1, 2)]
    for kept in (0, 1):
        layers = _trained(
            inputs, blocks, np.eye(2)[kept], hidden=6, n_dims=1, steps=500, batch_size=None,
            learning_rate=0.02, seed=0,
        )  # fmt: skip
        Z = encode(layers, inputs)
        found = [LogisticRegression().fit(Z, inputs[:, j]).score(Z, inputs[:, j]) for j in (0, 1)]
        assert found[kept] > 0.99
        _, b = layers[-1]
        np.testing.assert_array_equal(b[1 - kept], 0)  # nothing was asked of the other column


def test_the_seed_decides():
    X = np.random.default_rng(0).standard_normal((40, 2))
    settings = {"hidden": 3, "n_dims": 1, "steps": 20, "batch_size": 8}
    one, same, other = (
        encode(_trained(X, _numeric(2), [1, 1], seed=seed, **settings), X) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_divergence_is_an_error():
    X = np.random.default_rng(0).standard_normal((20, 2))
    with pytest.raises(TrainingDivergedError, match="learning_rate"):
        _trained(
            X,
            _numeric(2),
            [1, 1],
            hidden=3,
            n_dims=1,
            activation="relu",
            steps=30,
            learning_rate=1e38,
            seed=0,
        )
