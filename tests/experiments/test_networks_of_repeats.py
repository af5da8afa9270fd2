"""Networks of several repeats: each trains on its own rows, and searches are trained together."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.networks import RepeatedNetworks, autoencoder_codes, forward, train_networks, train_repeats
from moew.data import LabelledRows
from moew.exceptions import InvalidInputError
from moew.models.networks import NetworkSpec
from moew.search import Budget, search_side_by_side
from tests.search.test_side_by_side import CLASSES, data_of, drawn, plain_searches, search_of


def drawn_for_networks(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 3))
    return X, np.sin(X[:, :1]) + X[:, 1:2], rng.uniform(0.1, 1.9, (2, 60))


def test_repeats_train_on_their_own_rows():
    problems = [drawn_for_networks(seed) for seed in (1, 2, 3)]
    X, Y, W = (np.stack(parts) for parts in zip(*problems, strict=True))
    spec = NetworkSpec((3, 4, 1), steps=30, batch_size=16, learning_rate=0.01)
    seeds = [[1, 2], [3, 4], [5, 6]]
    together = train_networks(spec, X, Y, W, seeds, 9)
    for r in range(3):
        alone = train_networks(spec, X[r : r + 1], Y[r : r + 1], W[r : r + 1], seeds[r : r + 1], 9)
        for (W_all, b_all), (W_one, b_one) in zip(together, alone, strict=True):
            np.testing.assert_allclose(W_all[r], W_one[0], atol=1e-5)
            np.testing.assert_allclose(b_all[r], b_one[0], atol=1e-5)
    outputs = forward(spec, together, X)
    assert outputs.shape == (3, 2, 60, 1)
    (W1, b1), (W2, b2) = ((np.asarray(W[2, 1]), np.asarray(b[2, 1])) for W, b in together)
    by_hand = 1 / (1 + np.exp(-(X[2] @ W1.T + b1))) @ W2.T + b2
    np.testing.assert_allclose(outputs[2, 1], by_hand, atol=1e-5)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_networks_of_all_repeats_are_trained_together(n_jobs):
    parts = [drawn(seed, 90) for seed in (3, 4)]
    evaluated = [drawn(seed, 50) for seed in (5, 6)]
    X, y = (np.stack([part[i] for part in parts]) for i in (0, 1))
    spec = NetworkSpec((3, 1), "sigmoid", "logistic", 50, 30, 0.05)

    def run(n_jobs):
        networks = RepeatedNetworks(spec, X, y[..., None], 2, seed=0)
        placed = networks.place(np.stack([part[0] for part in evaluated]))
        searches = [
            search_of(
                data_of(LabelledRows(None, y[r]), LabelledRows(placed.of_repeat(r), evaluated[r][1])), None, r
            )
            for r in (0, 1)
        ]
        told = {}

        def on_told(place, trial, models, predictions):
            told[place, trial.number] = models[0].decision_function(placed.of_repeat(place))

        train_of = train_repeats(networks, searches, CLASSES, n_jobs)

        def train(asked):
            return train_of(asked[0][0].number // 3, asked)

        search_side_by_side(searches, Budget(6, 3), train=train, on_told=on_told, keep=False)
        return searches, told

    (searches, told), (_, again) = run(1), run(n_jobs)
    assert len(told) == 2 * 6
    for (place, number), scores in told.items():
        value = searches[place].study.trials()[number].value
        assert value == np.mean((scores > 0) == (evaluated[place][1] == 1)) > 0.5
        np.testing.assert_array_equal(scores, again[place, number])


def test_searches_that_are_trained_together_cannot_stop_one_by_one():
    first, second = plain_searches()
    stopping = type(first)(**{**vars(first), "stop_when": 10.0})
    with pytest.raises(InvalidInputError, match="one by one"):
        train_repeats(None, [stopping, second], None)


@pytest.mark.heavy
@pytest.mark.parametrize("trade_off", [0.0, 1.0])
def test_the_trade_off_of_repeats_stands_at_the_features_as_in_the_paper(trade_off):
    rng = np.random.default_rng(1)
    inputs = rng.standard_normal((1, 300, 2))  # x, and the label last
    spec = NetworkSpec((2, 10, 1, 10, 2), "sigmoid", "squared", 800, 100, learning_rate=0.03)
    codes = autoencoder_codes(spec, inputs, (), trade_off, n_repeats=1, seed=0)[0, :, 0]
    knows_x, knows_y = (abs(np.corrcoef(codes, inputs[0, :, column])[0, 1]) for column in (0, 1))
    assert (knows_x > 0.8 > 0.3 > knows_y) if trade_off == 1 else (knows_y > 0.8 > 0.3 > knows_x)
