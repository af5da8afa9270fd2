"""The rows: they travel once, for all batches and folds, and arrive as they were."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config
from problems import mixed_frame, shifted_classes
from sklearn.linear_model import LogisticRegression

from moew import MetricSearch
from moew.training import EstimatorTrainer, ManyTrainer
from moew.training._jobs import SharedRows, SharedRowsCache, SharedRowsInFile
from moew.types import Training

ROWS = shifted_classes(80)
WEIGHTS = np.random.default_rng(0).uniform(0.1, 2, (6, len(ROWS.y)))


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_rows_pickle_as_a_file_and_come_back_the_same(kind):
    X = np.asfortranarray(np.random.default_rng(0).normal(size=(5000, 4)))
    X, y = (X, X[:, 0]) if kind == "array" else mixed_frame(5000)
    shared = SharedRowsInFile((X, y))
    first, second = pickle.dumps(shared), pickle.dumps(shared)
    assert first == second
    assert len(first) < 500
    there = pickle.loads(first)
    assert there is pickle.loads(second)  # loaded once in a process
    X_there, y_there = there.rows(None)
    assert np.array_equal(y, y_there)
    if kind == "array":
        assert np.array_equal(X, X_there)
        assert X_there.flags.f_contiguous
        assert isinstance(X_there, np.memmap)
    else:
        assert X.equals(X_there)
        assert X.dtypes.equals(X_there.dtypes)
    path = Path(shared.path)
    assert path.exists()
    del shared
    assert not path.parent.exists()


def test_a_fold_is_cut_once_for_all_its_candidates():
    frame, y = mixed_frame(50)
    rows, folds = SharedRows((frame, y)), [SharedRows(np.arange(20)), SharedRows(np.arange(10, 50)[::-1])]
    for fold in folds:
        X_cut, y_cut = rows.rows(fold)
        assert X_cut.equals(frame.iloc[fold.content])
        assert np.array_equal(y_cut, y[fold.content])
        assert rows.rows(fold)[0] is X_cut
    assert rows.rows(None)[0] is frame


def test_rows_and_folds_are_placed_once_for_all_batches():
    placed, put = SharedRowsCache(), []

    def putting(content):
        put.append(content)
        return len(put)

    X, y, folds = ROWS.X, ROWS.y, [np.arange(40), np.arange(40, 80)]
    handles = [placed.at("here", X, y, fold, putting) for fold in (*folds, *folds, None)]
    assert handles == [(1, 2), (1, 3), (1, 2), (1, 3), (1, None)]
    assert len(put) == 3
    for place, rows in (("there", X), ("there", X.copy())):
        before = len(put)
        placed.at(place, rows, y, folds[0], putting)
        assert len(put) == before + 2
    placed.forget()
    placed.at("there", X, y, None, putting)
    assert len(put) == 8


@pytest.mark.parametrize("folds", [[None, None], [np.arange(60), np.arange(20, 80), None]])
def test_the_same_file_serves_all_batches_and_folds(folds):
    trainer = EstimatorTrainer(_TellsItsFile(), n_jobs=2)
    files = set()
    with parallel_config(backend="loky"):
        for fold in (*folds, *folds):
            weights = WEIGHTS if fold is None else WEIGHTS[:, fold]
            trained = dict(trainer.train(ROWS.X, ROWS.y, Training.each(weights, range(6)), fold))
            files |= {model.file_ for model in trained.values()}
    assert len(files - {None}) == 1


class _TellsItsFile(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        self.file_ = getattr(X, "filename", None)  # a fold is a copy
        return super().fit(X, y, sample_weight)


class _FitMany(LogisticRegression):
    def fit_many(self, X, y, weights, seeds):
        for k, weight in enumerate(weights):
            yield k, LogisticRegression().fit(X, y, weight)


@pytest.mark.parametrize("trainer", [EstimatorTrainer(LogisticRegression()), ManyTrainer(_FitMany())])
def test_a_fold_is_trained_on_its_rows(trainer):
    fold = np.arange(10, 70)[::-1]
    for k, model in trainer.train(ROWS.X, ROWS.y, Training.each(WEIGHTS[:, fold], range(6)), fold):
        alone = LogisticRegression().fit(ROWS.X[fold], ROWS.y[fold], sample_weight=WEIGHTS[k, fold])
        assert np.array_equal(alone.coef_, model.coef_)


def test_a_cross_validated_search_is_the_same_in_processes():
    found = []
    for n_jobs in (1, 2):
        search = MetricSearch.from_settings(
            LogisticRegression(),
            embedding="label",
            n_candidates=6,
            batch_size=3,
            evaluate_on=3,
            random_state=0,
        )
        with parallel_config(backend="loky", n_jobs=n_jobs):
            found.append(search.fit(ROWS.X, ROWS.y))
    one, two = found
    assert [told.value for told in one.study_.trials()] == [told.value for told in two.study_.trials()]
    assert np.array_equal(one.best_estimator_.coef_, two.best_estimator_.coef_)
