"""What a long search keeps in memory: nothing of a batch but its answers."""

import gc
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import make_classification

from moew import MetricSearch
from moew.data import TabularEncoder, _encoders
from moew.data._columns import columns_of
from moew.data._encoders import encode, row_blocks
from moew.metrics import Predictions
from moew.models.networks import NetworkClassifier, _groups
from moew.models.networks._layers import run_layers

N_ROWS = 300


def _search(n_batches, **settings):
    X, y = make_classification(N_ROWS + 80, 6, random_state=0)
    network = NetworkClassifier((3,), steps=3)
    budget = {"n_candidates": 6 * n_batches, "batch_size": 6, "random_state": 0}
    search = MetricSearch.from_settings(network, metric="accuracy", embedding="label", **budget, **settings)
    return search.fit(X[:N_ROWS], y[:N_ROWS], validation=(X[N_ROWS:], y[N_ROWS:]))


@pytest.fixture
def rows_encoded(monkeypatch):
    """How many encodings of the training rows are alive whenever one more begins, without Python's help."""
    made, alive = [], []
    allocate = _encoders._aligned

    def watched(n_rows, n_columns, dtype):
        encoded = allocate(n_rows, n_columns, dtype)
        if dtype == np.float32:  # rows to train on; those to predict are encoded in double precision
            alive.append(sum(memory() is not None for memory in made))
            made.append(weakref.ref(encoded.base))
        return encoded

    monkeypatch.setattr(_encoders, "_aligned", watched)
    gc.disable()
    yield alive
    gc.enable()


@pytest.mark.parametrize(
    ("settings", "after_scoring", "n_encodings"),
    [
        # Three batches, the winner and the unweighted model.
        (
            {"evaluate_on": "validation", "final": "best", "strategies": "example weights"},
            [0, 1, 2, 3],
            3 + 2,
        ),
        # The same with two folds, a first look at the unweighted model in them, and five for the finalists.
        ({}, [0, 2, 4, 6, 8, 13], 2 + 3 * 2 + 5 + 2),
    ],
)
def test_the_rows_of_a_batch_are_gone_when_the_next_begins(
    rows_encoded, settings, after_scoring, n_encodings
):
    _search(3, **settings)
    assert len(rows_encoded) == n_encodings
    assert [rows_encoded[k] for k in after_scoring] == [0] * len(after_scoring)
    # Where one training follows another at once, a thread may hold the rows a moment longer.
    assert max(rows_encoded) <= 1


def test_all_batches_are_trained_by_the_same_threads(monkeypatch):
    used, train_on = [], _groups.train_on

    def watched(*arguments):
        used.append(threading.current_thread())
        return train_on(*arguments)

    monkeypatch.setattr(_groups, "train_on", watched)
    _search(3)
    assert used
    assert all(thread.is_alive() for thread in used)  # none ended with its batch


@given(hnp.arrays(st.sampled_from([np.int64, np.uint8, "U3", float, bool]), st.integers(0, 400)))
def test_compact_answers_are_given_out_as_they_were(answers):
    outputs = Predictions({"decision": answers})
    back = outputs.compact().arrays["decision"]
    assert back.dtype == answers.dtype
    np.testing.assert_array_equal(back, answers)


def test_compact_labels_take_a_byte_each():
    labels = np.arange(5000) % 10
    different, codes, n = Predictions({"decision": labels}).compact().arrays._kept["decision"]
    assert different.nbytes + codes.nbytes == 10 * labels.itemsize + 5000 and n == 5000


_NUMBERS = st.sampled_from([0.0, 1.0, -1.0, 2.5, np.nan, 1e-3])


@given(
    hnp.arrays(st.sampled_from([np.float64, np.float32]), (9, 4), elements=_NUMBERS.map(np.float32)),
    st.booleans(),
)
def test_arrays_are_encoded_like_their_columns(X, scale):
    encoder = TabularEncoder(scale=scale).fit(X)
    expected = np.column_stack(
        [
            part
            for column, (name, values) in zip(encoder.columns_, columns_of(X), strict=True)
            for part in encode(column, name, values)
        ]
    )
    np.testing.assert_array_equal(encoder.transform(X), expected)


def test_predictions_block_by_block_are_those_of_all_rows():
    X = np.random.default_rng(0).standard_normal((1500, 200))
    assert len(list(row_blocks(X))) > 2
    network = NetworkClassifier((3,), steps=3, random_state=0).fit(X, X[:, 0] > 0)
    whole = run_layers(network.layers_, network.activation, network.encoder_.transform(X), linear_end=True)
    np.testing.assert_allclose(network.decision_function(X), whole[:, 0], rtol=1e-12, atol=1e-13)
