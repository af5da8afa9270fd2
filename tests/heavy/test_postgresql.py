"""A study on a real PostgreSQL server: several processes at once, and a search that is continued."""

import multiprocessing

import numpy as np
import pytest
from problems import shifted_classes
from sklearn.linear_model import LogisticRegression

from moew import ExampleWeightSearch, WeightStudy
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
    settings = {"embedding": "label", "n_batches": 2, "batch_size": 3, "random_state": 0}
    data = {"X": rows.X, "y": rows.y, "X_val": rows.X_val, "y_val": rows.y_val}
    stored = ExampleWeightSearch(LogisticRegression(), storage=server, **settings).fit(**data)
    again = ExampleWeightSearch(LogisticRegression(), storage=server, **settings).fit(**data)
    memory = ExampleWeightSearch(LogisticRegression(), **settings).fit(**data)
    for search in (stored, again):
        assert np.array_equal(search.best_alpha_, memory.best_alpha_)
        assert search.honest_score_ == memory.honest_score_
