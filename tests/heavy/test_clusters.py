"""Real clusters on this machine: the same search, bit for bit, and workers that die."""

import asyncio
import contextlib
import gc
import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest
from joblib import parallel_config
from problems import mixed_frame, shifted_classes
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from moew import MetricSearch
from moew.exceptions import MoewWarning
from moew.training import EstimatorTrainer
from moew.types import Training

pytestmark = pytest.mark.heavy
ROWS = shifted_classes(150)
WEIGHTS = np.random.default_rng(0).uniform(0.1, 2, (6, len(ROWS.y)))
# A busy machine may take longer to start a worker than the search waits before it tells that there are none.
slow_to_restart = pytest.mark.filterwarnings("ignore:the Dask cluster has no workers")


@pytest.fixture(scope="module")
def dask_client():
    distributed = pytest.importorskip("distributed", reason="dask[distributed] is not installed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def ray_cluster():
    ray = pytest.importorskip("ray", reason="ray is not installed")
    from ray.util.joblib import register_ray

    register_ray()
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Ray's own about its future
        ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield ray
    ray.shutdown()


@contextlib.contextmanager
def _dask_that_replaces_workers(n_workers=2, threads_per_worker=1):
    """A cluster of its own for models that kill workers. Dask's nannies restart them, except one that dies
    while its nanny is still starting it, as happens on a busy machine: that one is replaced by another."""
    distributed = pytest.importorskip("distributed", reason="dask[distributed] is not installed")
    settings = {"threads_per_worker": threads_per_worker, "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(n_workers=n_workers, **settings) as cluster,
        distributed.Client(cluster),
        parallel_config(backend="dask"),
    ):
        is_over = threading.Event()

        def replace():
            started, looks = n_workers, 0
            while not is_over.wait(1.0):
                looks = looks + 1 if len(cluster.scheduler.workers) < n_workers else 0
                if looks == 10:
                    started, looks = started + 1, 0
                    cluster.scale(started)

        replacing = threading.Thread(target=replace)
        replacing.start()
        try:
            yield
        finally:
            is_over.set()
            replacing.join()


@contextlib.contextmanager
def _backend(name, request, kills=False):
    if name == "dask" and kills:
        with _dask_that_replaces_workers():
            yield
        return
    if name == "one process":
        yield
        return
    request.getfixturevalue({"dask": "dask_client", "ray": "ray_cluster"}.get(name, "tmp_path"))
    with parallel_config(backend=name, n_jobs=2):
        yield


def _forest():
    return RandomForestClassifier(5, max_depth=4), ROWS.X, ROWS.y, {}


def _cross_validated():
    return LogisticRegression(), np.asfortranarray(ROWS.X), ROWS.y, {"evaluate_on": 3}


def _pipeline_on_a_frame():
    frame, y = mixed_frame(200)
    frame["number"] = frame["number"].fillna(0.0)
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["kind", "group"]), remainder="passthrough"
    )
    settings = {"sample_weight_name": "logisticregression__sample_weight", "evaluate_on": 3}
    return make_pipeline(columns, LogisticRegression()), frame, y, settings


def _search(problem):
    estimator, X, y, settings = problem()
    return MetricSearch.from_settings(
        estimator, embedding="label", n_candidates=8, batch_size=4, random_state=1, **settings
    ).fit(X, y)


def test_the_same_search_everywhere_to_the_bit(request):
    problems = (_forest, _cross_validated, _pipeline_on_a_frame)
    found = {}
    for backend in ("one process", "loky", "dask", "ray"):
        with _backend(backend, request):
            searches = [_search(problem) for problem in problems]
        found[backend] = [
            array
            for problem, search in zip(problems, searches, strict=True)
            for array in (
                np.stack([told.alpha for told in search.study_.trials()]),
                np.array([told.value for told in search.study_.trials()]),
                search.predict_proba(problem()[1]),
            )
        ]
    for results in found.values():
        for one, other in zip(found["one process"], results, strict=True):
            assert one.tobytes() == other.tobytes()


def kills_its_process(folder):
    """A logistic regression whose first fit kills its own process, and that counts its fits."""

    class Deadly(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            (folder / f"fit-{time.time_ns()}-{os.getpid()}").touch()
            with contextlib.suppress(FileExistsError):
                (folder / "killed").touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.05)
            return super().fit(X, y, sample_weight)

    return Deadly(random_state=0)


@slow_to_restart
@pytest.mark.parametrize("backend", ["dask", "ray"])
def test_a_killed_worker_costs_what_it_held(backend, request, tmp_path):
    trainer = EstimatorTrainer(kills_its_process(tmp_path))
    with _backend(backend, request, kills=True):
        trained = dict(trainer.train(ROWS.X, ROWS.y, Training.each(WEIGHTS, range(6))))
    assert (tmp_path / "killed").exists()
    assert len(list(tmp_path.glob("fit-*"))) == 7
    for k, weights in enumerate(WEIGHTS):
        alone = LogisticRegression().fit(ROWS.X, ROWS.y, sample_weight=weights)
        assert np.array_equal(alone.coef_, trained[k].coef_)


def _names_on_workers(client):
    """What each Dask worker holds of what was sent there."""

    def names():
        from moew.training._dask import _delivered

        return sorted(_delivered)

    return list(client.run(names).values())


def test_workers_that_come_later_get_the_rows_too(dask_client):
    trainer = EstimatorTrainer(LogisticRegression(random_state=0))
    with parallel_config(backend="dask"):
        first = dict(trainer.train(ROWS.X, ROWS.y, Training.each(WEIGHTS, range(6))))
        sent = _names_on_workers(dask_client)
        dask_client.restart()
        assert _names_on_workers(dask_client) == sent
        second = dict(trainer.train(ROWS.X, ROWS.y, Training.each(WEIGHTS, range(6))))
    for k in range(6):
        assert np.array_equal(first[k].coef_, second[k].coef_)


def test_rows_travel_once_for_all_batches_and_folds(dask_client):
    trainer = EstimatorTrainer(LogisticRegression(random_state=0))
    folds = [np.arange(100), np.arange(50, 150), None]

    def batch():
        for fold in folds:
            weights = WEIGHTS if fold is None else WEIGHTS[:, fold]
            list(trainer.train(ROWS.X, ROWS.y, Training.each(weights, range(6)), fold))
        return _names_on_workers(dask_client)

    gc.collect()
    with parallel_config(backend="dask"):
        first = batch()
        time.sleep(5)  # Dask drops copies of its own data that nobody waits for, every two seconds
        second = batch()
    assert second == [second[0]] * 2
    assert len(second[0]) == 3  # the rows and two folds
    assert set(second[0]) <= set(first[0])  # beside them, what an earlier test is still taking away
    trainer._shared.forget()
    gc.collect()
    deadline = time.monotonic() + 60
    while any(_names_on_workers(dask_client)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(_names_on_workers(dask_client))


def test_rows_may_be_taken_back_from_a_worker_that_closes(caplog):
    distributed = pytest.importorskip("distributed", reason="dask[distributed] is not installed")
    from moew.training._dask import _delivered, _Sent

    released = threading.Event()

    class HoldsTheDoor:
        async def teardown(self, worker):
            while not released.is_set():
                await asyncio.sleep(0.01)

    settings = {"processes": False, "n_workers": 1, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        sent = _Sent(client, "rows")
        worker = cluster.workers[0]
        worker.plugins["door"] = HoldsTheDoor()
        closing = asyncio.run_coroutine_threadsafe(worker.close(), client.loop.asyncio_loop)
        while sent.name in _delivered:
            time.sleep(0.01)
        try:
            answers = client.unregister_worker_plugin(sent.name)
        finally:
            released.set()
        closing.result(60)
    assert [answer["status"] for answer in answers.values()] == ["OK"]
    assert not [
        record for record in caplog.records if record.name == "distributed.worker" and record.exc_info
    ]


def waits(folder):
    class Waits(LogisticRegression):  # within a function, so that workers need no access to this file
        def fit(self, X, y, sample_weight=None):
            (folder / f"begun-{time.time_ns()}-{os.getpid()}").touch()
            time.sleep(0.3)
            return super().fit(X, y, sample_weight)

    return Waits(random_state=0)


@pytest.mark.parametrize("backend", ["dask", "ray"])
def test_an_interrupted_batch_leaves_no_candidates_behind(backend, request, tmp_path):
    weights = np.tile(WEIGHTS, (5, 1))
    with _backend(backend, request):
        trained = EstimatorTrainer(waits(tmp_path)).train(ROWS.X, ROWS.y, Training.each(weights, range(30)))
        next(trained)
        trained.close()
        time.sleep(6)  # time for all 30, were they still to be trained
    assert 1 <= len(list(tmp_path.iterdir())) < 15


def warns():
    class Warns(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            warnings.warn("careful", UserWarning, stacklevel=1)
            return super().fit(X, y, sample_weight)

    return Warns(random_state=0)


@pytest.mark.parametrize("backend", ["one process", "loky", "dask", "ray"])
def test_warnings_count_everywhere_as_they_do_for_the_user(backend, request):
    with _backend(backend, request), warnings.catch_warnings():
        for action, kind in (("error", UserWarning), ("ignore", LogisticRegression)):
            warnings.filterwarnings(action, message="care")
            trained = dict(EstimatorTrainer(warns()).train(ROWS.X, ROWS.y, Training.each(WEIGHTS, range(6))))
            assert all(isinstance(outcome, kind) for outcome in trained.values())


def test_a_search_inside_a_dask_task_does_not_wait_for_itself(dask_client):
    def search():
        with parallel_config(backend="dask"):
            trainer = EstimatorTrainer(LogisticRegression(random_state=0))
            return sorted(k for k, _ in trainer.train(ROWS.X, ROWS.y, Training.each(WEIGHTS, range(6))))

    results = dask_client.gather([dask_client.submit(search, pure=False) for _ in range(3)])
    assert results == [list(range(6))] * 3


def always_kills(folder, slowly=0.0):
    """A logistic regression that kills every process in which it is candidate 0."""

    class Deadly(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            time.sleep(slowly)
            if sample_weight[0] > 4:
                (folder / f"killed-{time.time_ns()}-{os.getpid()}").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.05 + slowly)
            return super().fit(X, y, sample_weight)

    return Deadly(random_state=0)


@slow_to_restart
@pytest.mark.parametrize("backend", ["dask", "ray"])
def test_a_candidate_that_kills_every_worker_fails_alone(backend, request, tmp_path):
    weights = np.tile(WEIGHTS, (3, 1))
    weights[:, 0] = 1.0
    weights[0, 0] = 5.0
    with _backend(backend, request, kills=True):
        model = always_kills(tmp_path, slowly=1.0 if backend == "dask" else 0.0)  # as below
        trained = dict(EstimatorTrainer(model).train(ROWS.X, ROWS.y, Training.each(weights, range(18))))
    assert sorted(trained) == list(range(18))
    assert [k for k, model in trained.items() if isinstance(model, Exception)] == [0]
    # Eight where Dask blamed another candidate, too, so that both were tried again, alone.
    assert len(list(tmp_path.iterdir())) in ((4, 8) if backend == "dask" else (4,))


@slow_to_restart
def test_a_candidate_is_not_given_up_for_the_company_it_keeps(tmp_path):
    distributed = pytest.importorskip("distributed", reason="dask[distributed] is not installed")
    weights = np.ones((2, len(ROWS.y)))
    weights[0, 0] = 5.0
    # Both run in one process, so that the second dies with the first each time.
    with _dask_that_replaces_workers(n_workers=1, threads_per_worker=2):
        model = always_kills(tmp_path, slowly=3.0)  # a nanny brings back what lives longer than its own start
        trained = dict(EstimatorTrainer(model).train(ROWS.X, ROWS.y, Training.each(weights, range(2))))
    assert isinstance(trained[0], distributed.KilledWorker)
    assert isinstance(trained[1], LogisticRegression)
    assert len(list(tmp_path.iterdir())) == 8


def test_a_cluster_without_workers_is_told_of_and_waited_for(monkeypatch):
    distributed = pytest.importorskip("distributed", reason="dask[distributed] is not installed")
    from moew.training import _dask

    monkeypatch.setattr(_dask, "_LOOK_EVERY", 1.0)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster),
        parallel_config(backend="dask"),
    ):
        later = threading.Timer(4.0, cluster.scale, args=(1,))
        later.start()
        with pytest.warns(MoewWarning, match=r"has no workers, and \d models wait"):
            trained = dict(
                EstimatorTrainer(LogisticRegression()).train(ROWS.X, ROWS.y, Training.each(WEIGHTS, range(6)))
            )
        later.join()
    assert all(isinstance(model, LogisticRegression) for model in trained.values())
