"""A study on a real PostgreSQL server: several processes at once, and a search that is continued."""

import multiprocessing
import threading

import numpy as np
import pytest
from problems import shifted_classes
from sklearn.linear_model import LogisticRegression

from moew import MetricSearch, WeightStudy
from moew.exceptions import MoewWarning, StorageError
from moew.samplers import Ball

pytestmark = pytest.mark.heavy
pytest.importorskip("psycopg", reason="psycopg (the PostgreSQL driver) is not installed")


def _study(url, name):
    return WeightStudy(None, Ball(3, 2.0), n_initial=4, seed=7, storage=url, name=name)


def _ask_and_tell(url, name, k):
    study = _study(url, name)
    for _ in range(k):
        (candidate,) = study.ask(1)
        study.tell(candidate.number, float(candidate.number))
    study.close()


def test_several_processes_share_a_study(server):
    _study(server, "shared").close()
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_ask_and_tell, args=(server, "shared", 4)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(180)
        assert worker.exitcode == 0
    study = _study(server, "shared")
    told = study.trials()
    study.close()
    assert [t.number for t in told] == list(range(12))
    alone = WeightStudy(None, Ball(3, 2.0), n_initial=4, seed=7).ask(5)
    for a, b in zip(told[:5], alone, strict=True):
        assert np.array_equal(a.alpha, b.alpha)
    alphas = np.array([t.alpha for t in told])
    distances = np.linalg.norm(alphas[:, None] - alphas[None], axis=2) + 10 * np.eye(12)
    assert distances.min() > 1e-6


def test_a_search_is_found_again(server):
    rows = shifted_classes(100)
    settings = {"embedding": "label", "n_candidates": 6, "batch_size": 3, "random_state": 0}
    data = {"X": rows.X, "y": rows.y, "validation": (rows.X_val, rows.y_val)}
    stored = MetricSearch.from_settings(LogisticRegression(), storage=server, **settings).fit(**data)
    again = MetricSearch.from_settings(LogisticRegression(), storage=server, **settings).fit(**data)
    memory = MetricSearch.from_settings(LogisticRegression(), **settings).fit(**data)
    for search in (stored, again):
        assert np.array_equal(search.best_alpha_, memory.best_alpha_)
        assert search.honest_score_ == memory.honest_score_


def test_several_searches_join_and_find_what_one_finds(server):
    rows = shifted_classes(100)
    settings = {"embedding": "label", "n_candidates": 12, "batch_size": 4, "random_state": 0}
    data = {"X": rows.X, "y": rows.y, "validation": (rows.X_val, rows.y_val)}
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    workers = [context.Process(target=_join, args=(str(server), settings, data, results)) for _ in range(3)]
    for worker in workers:
        worker.start()
    found = [results.get(timeout=240) for _ in workers]
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    alone = MetricSearch.from_settings(LogisticRegression(), **settings).fit(**data)
    assert found == [_digest(alone)] * 3


def _join(url, settings, data, results):
    search = MetricSearch.from_settings(
        LogisticRegression(), storage=url, study_name="joined", join=True, **settings
    ).fit(**data)
    results.put(_digest(search))


def _digest(search):
    trials = [(trial.number, trial.alpha.tolist(), trial.value) for trial in search.result_.trials]
    return trials, search.sample_weight_.tolist(), search.honest_score_


class _StopsTheServer(LogisticRegression):
    """Stops the database while its fifth model is trained; it is started again two seconds later."""

    server = None
    n_fitted = 0
    __version__ = "1"

    def fit(self, X, y, sample_weight=None):
        type(self).n_fitted += 1
        if type(self).n_fitted == 5:
            self.server.stop()
            threading.Timer(2.0, self.server.start).start()
        return super().fit(X, y, sample_weight=sample_weight)


def test_a_restart_of_the_server_is_survived(server):
    rows = shifted_classes(100)
    settings = {"embedding": "label", "n_candidates": 12, "batch_size": 4, "random_state": 0}
    data = {"X": rows.X, "y": rows.y, "validation": (rows.X_val, rows.y_val)}
    _StopsTheServer.server = server
    with pytest.warns(MoewWarning, match="tried again"):
        search = MetricSearch.from_settings(
            _StopsTheServer(), storage=str(server), study_name="restarted", **settings
        ).fit(**data)
    alone = MetricSearch.from_settings(LogisticRegression(), **settings).fit(**data)
    assert _digest(search) == _digest(alone)


def test_a_server_that_stays_away_ends_the_search_in_words_and_the_same_call_goes_on(server, monkeypatch):
    rows = shifted_classes(100)
    settings = {"embedding": "label", "n_candidates": 12, "batch_size": 4, "random_state": 0}
    data = {"X": rows.X, "y": rows.y, "validation": (rows.X_val, rows.y_val)}
    search = MetricSearch.from_settings(
        LogisticRegression(), storage=str(server), study_name="away", **settings
    )
    tell_all = WeightStudy.tell_all

    def after_a_stop(study, told, **more):
        server.stop()
        return tell_all(study, told, **more)

    with monkeypatch.context() as patch, pytest.warns(MoewWarning, match="tried again"):
        patch.setattr("moew.storage._store.SqlStore.patience", 1.0)
        patch.setattr(WeightStudy, "tell_all", after_a_stop)
        with pytest.raises(StorageError, match=r"127\.0\.0\.1.*the same call goes on"):
            search.fit(**data)
    server.start()
    alone = MetricSearch.from_settings(LogisticRegression(), **settings).fit(**data)
    assert _digest(search.fit(**data)) == _digest(alone)
