"""Worker processes: rows travel once, and what a killed worker held is trained again."""

import os
import pickle
import signal
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config
from problems import mixed_frame, shifted_classes
from sklearn.linear_model import LogisticRegression

from moew.training import EstimatorTrainer
from moew.training._rows import Placed, RowsInFile, RowsInOnePiece, _load

ROWS = shifted_classes(80)
WEIGHTS = np.random.default_rng(0).uniform(0.1, 2, (6, len(ROWS.y)))


def kills_its_process(folder, times, above=0.0):
    """A logistic regression whose fit kills its own process, so many times in all."""

    class Deadly(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            for i in range(times if sample_weight[0] > above else 0):
                try:
                    (folder / f"{i}").touch(exist_ok=False)
                except FileExistsError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)
            return super().fit(X, y, sample_weight)

    return Deadly()


@pytest.fixture(autouse=True)
def _no_shared_memory_left_by_killed_workers():
    _load.cache_clear()
    yield
    _load.cache_clear()


def test_candidates_of_a_killed_worker_are_trained_again(tmp_path):
    trainer = EstimatorTrainer(kills_its_process(tmp_path, 1), n_jobs=2)
    with parallel_config(backend="loky"):
        trained = dict(trainer.train(ROWS.X, ROWS.y, WEIGHTS, range(6)))
    assert len(list(tmp_path.iterdir())) == 1
    for k, weights in enumerate(WEIGHTS):
        alone = LogisticRegression().fit(ROWS.X, ROWS.y, sample_weight=weights)
        assert np.array_equal(alone.coef_, trained[k].coef_)


def test_a_candidate_that_kills_every_process_fails_alone(tmp_path):
    weights = WEIGHTS.copy()
    weights[:, 0] = 1.0
    weights[2, 0] = 5.0
    trainer = EstimatorTrainer(kills_its_process(tmp_path, 1000, above=4), n_jobs=2)
    with parallel_config(backend="loky"):
        trained = dict(trainer.train(ROWS.X, ROWS.y, weights, range(6)))
    assert sorted(trained) == list(range(6))
    assert [k for k, model in trained.items() if isinstance(model, Exception)] == [2]
    assert "terminated" in str(trained[2])
    assert len(list(tmp_path.iterdir())) <= 3


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_rows_pickle_as_a_file_and_come_back_the_same(kind):
    X = np.asfortranarray(np.random.default_rng(0).normal(size=(5000, 4)))
    X, y = (X, X[:, 0]) if kind == "array" else mixed_frame(5000)
    shared = RowsInFile(X, y)
    first, second = pickle.dumps(shared), pickle.dumps(shared)
    assert first == second
    assert len(first) < 500
    X_there, y_there = pickle.loads(first).rows
    assert X_there is pickle.loads(second).rows[0]  # loaded once in a process
    assert np.array_equal(y, y_there)
    if kind == "array":
        assert np.array_equal(X, X_there)
        assert X_there.flags.f_contiguous
        assert isinstance(X_there, np.memmap)
    else:
        assert X.equals(X_there)
        assert X.dtypes.equals(X_there.dtypes)
    path = Path(shared._path)
    assert path.exists()
    del shared
    assert not path.parent.exists()


def test_rows_sent_over_a_network_arrive_at_even_addresses():
    X = np.asfortranarray(np.random.default_rng(0).normal(size=(50, 4)))
    buffers = []
    sent = pickle.dumps(RowsInOnePiece(X, X[:, 0]), protocol=5, buffer_callback=buffers.append)
    assert not buffers
    again = pickle.loads(pickle.dumps(pickle.loads(sent)))
    assert np.array_equal(again.rows[0], X)
    assert again.rows[0].flags.aligned
    assert again.rows[0].flags.f_contiguous


def test_rows_are_placed_once_for_all_batches():
    placed, calls = Placed(), []

    def put():
        calls.append(1)
        return object()

    X, y = ROWS.X, ROWS.y
    first = placed.at("here", X, y, put)
    assert placed.at("here", X, y, put) is first
    assert len(calls) == 1
    for place, rows in (("there", X), ("there", X.copy())):
        assert placed.at(place, rows, y, put) is not first
    assert len(calls) == 3
    placed.forget()
    placed.at("there", X, y, put)
    assert len(calls) == 4


def test_the_same_file_serves_all_batches():
    trainer = EstimatorTrainer(_TellsItsFile(), n_jobs=2)
    files = set()
    with parallel_config(backend="loky"):
        for _ in range(2):
            trained = dict(trainer.train(ROWS.X, ROWS.y, WEIGHTS, range(6)))
            files |= {model.file_ for model in trained.values()}
    assert len(files) == 1


class _TellsItsFile(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        self.file_ = X.filename
        return super().fit(X, y, sample_weight)
