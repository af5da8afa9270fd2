"""Worker processes: what a killed one held is trained again, and nothing else; each is like this process."""

import os
import signal
import time
import warnings
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from types import SimpleNamespace

import numpy as np
import pytest
from joblib import effective_n_jobs, parallel_config
from problems import shifted_classes, skewed_target
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression

from moew import MetricSearch
from moew.exceptions import InvalidInputError, MoewError, TrainingFailedError
from moew.training import EstimatorTrainer, ManyTrainer, _local
from moew.types import Training

ROWS = shifted_classes(80)
WEIGHTS = np.random.default_rng(0).uniform(0.1, 2, (6, len(ROWS.y)))
WEIGHTS[:, 0] = np.arange(1, 7) / 6  # by which a model knows which candidate it is


def _train(estimator, rows=ROWS, weights=WEIGHTS, n_jobs=2, backend="loky"):
    with parallel_config(backend=backend):
        trainer = EstimatorTrainer(estimator, n_jobs=n_jobs)
        return dict(trainer.train(rows.X, rows.y, Training.each(weights, range(len(weights)))))


def kills_its_process(folder, times):
    """A logistic regression that notes every fit, and kills its process in candidate 0's first fits.

    All other fits wait in the middle until candidate 0 is trained for the last time, so that a fit is under
    strategy beside every death.
    """

    def wait_for(pattern, n):
        deadline = time.monotonic() + 60
        while len(list(folder.glob(pattern))) < n:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    class Deadly(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            k = round(sample_weight[0] * 6) - 1
            (folder / f"fit-{k}-{os.getpid()}-{time.time_ns()}").touch()
            if k > 0:
                wait_for("fit-0-*", min(times + 1, 3))
            elif fits(folder, 0) <= times:
                wait_for("fit-1-*", 1)
                os.kill(os.getpid(), signal.SIGKILL)
            return super().fit(X, y, sample_weight)

    return Deadly(random_state=0)


def fits(folder, k):
    return len(list(folder.glob(f"fit-{k}-*")))


def test_a_killed_process_costs_the_candidate_it_held(tmp_path):
    trained = _train(kills_its_process(tmp_path, 1))
    assert [fits(tmp_path, k) for k in range(6)] == [2, 1, 1, 1, 1, 1]
    for k, weights in enumerate(WEIGHTS):
        alone = LogisticRegression().fit(ROWS.X, ROWS.y, sample_weight=weights)
        assert np.array_equal(alone.coef_, trained[k].coef_)


def test_a_death_that_the_pool_did_not_see_is_seen_by_who_waits(monkeypatch):
    """A pool that starts a new process after an idle one ended may not watch it."""
    here, there = os.pipe()
    os.close(there)  # as the sentinel of a process that has ended
    future = Future()
    woken = SimpleNamespace(wakeup=lambda: future.set_exception(BrokenProcessPool("it died")))
    pool = SimpleNamespace(
        _processes={1: SimpleNamespace(sentinel=here)}, _executor_manager_thread_wakeup=woken
    )
    monkeypatch.setattr(_local._Worker, "_new_pool", lambda self: pool)
    monkeypatch.setattr(_local._Worker, "_submit", lambda self, *_: future)
    monkeypatch.setattr(_local, "_LOOK_EVERY", 0.01)
    with pytest.raises(BrokenProcessPool, match="it died"):
        _local._Worker({})._result(print, timeout=None)
    os.close(here)


def test_a_candidate_that_kills_every_process_fails_alone(tmp_path):
    trained = _train(kills_its_process(tmp_path, 1000))
    assert sorted(trained) == list(range(6))
    assert [k for k, model in trained.items() if isinstance(model, Exception)] == [0]
    assert "terminated" in str(trained[0])
    assert [fits(tmp_path, k) for k in range(6)] == [3, 1, 1, 1, 1, 1]


@pytest.mark.heavy
def test_a_search_goes_on_after_a_death(tmp_path):
    searches = []
    for times in (0, 1):
        folder = tmp_path / str(times)
        folder.mkdir()
        search = MetricSearch.from_settings(
            KilledOnce(folder if times else None),
            embedding="label",
            n_candidates=6,
            batch_size=3,
            random_state=0,
        )
        with parallel_config(backend="loky", n_jobs=2):
            searches.append(search.fit(ROWS.X, ROWS.y, validation=(ROWS.X_val, ROWS.y_val)))
    assert (folder / "killed").exists()
    for one, other in zip(*(search.study_.trials() for search in searches), strict=True):
        assert np.array_equal(one.alpha, other.alpha)
        assert one.value == other.value


class KilledOnce(LogisticRegression):
    def __init__(self, folder=None):
        super().__init__()
        self.folder = folder

    def fit(self, X, y, sample_weight=None):
        if self.folder is not None and not (self.folder / "killed").exists():
            (self.folder / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y, sample_weight)


def test_multiprocessing_which_would_wait_for_ever_is_refused():
    with pytest.raises(InvalidInputError, match="loky"):
        _train(_NeverTrained(), backend="multiprocessing")
    assert len(_train(LogisticRegression(), backend="multiprocessing", n_jobs=1)) == 6


class _NeverTrained(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        raise AssertionError("trained")


def test_an_interrupted_batch_stops_its_processes(tmp_path):
    trainer = EstimatorTrainer(_Slow(tmp_path), n_jobs=2)
    with parallel_config(backend="loky"):
        trained = trainer.train(ROWS.X, ROWS.y, Training.each(WEIGHTS, range(6)))
        next(trained)
        trained.close()
    deadline = time.monotonic() + 60
    pids = {int(path.name) for path in tmp_path.iterdir()}
    while any(map(_lives, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_lives, pids))
    assert len(_train(LogisticRegression())) == 6


@pytest.mark.heavy
def test_a_process_that_dies_between_two_batches_is_replaced():
    first = _train(_TellsItsProcess())
    for pid in {model.pid_ for model in first.values()}:
        os.kill(pid, signal.SIGKILL)
    assert len(_train(LogisticRegression())) == 6


def _lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class _Slow(LogisticRegression):
    def __init__(self, folder=None):
        super().__init__()
        self.folder = folder

    def fit(self, X, y, sample_weight=None):
        (self.folder / f"{os.getpid()}").touch()
        time.sleep(1000 if sample_weight[0] > 0.2 else 0)
        return super().fit(X, y, sample_weight)


def test_processes_are_kept_for_the_next_batch_and_the_next_search():
    first, second = (_train(_TellsItsProcess()) for _ in range(2))
    pids = [{model.pid_ for model in trained.values()} for trained in (first, second)]
    assert os.getpid() not in pids[0]
    assert pids[1] <= pids[0]


class _TellsItsProcess(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        self.pid_ = os.getpid()
        time.sleep(0.05)  # so that both have something to do
        return super().fit(X, y, sample_weight)


class _NeedsTwoError(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


class _FailsOddly(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        raise _NeedsTwoError("this", "that")


class _HoldsALock(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        self.lock_ = __import__("threading").Lock()
        return super().fit(X, y, sample_weight)


def test_what_cannot_travel_is_the_candidates_failure():
    for outcome in _train(_FailsOddly()).values():
        assert isinstance(outcome, MoewError)
        assert "this and that" in str(outcome)
    for outcome in _train(_HoldsALock()).values():
        assert isinstance(outcome, Exception)
        assert "pickle" in str(outcome)


class _Warns(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        warnings.warn("careful", UserWarning, stacklevel=1)
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_warnings_count_in_processes_as_they_do_here(n_jobs):
    for outcome in _train(_Warns(), n_jobs=n_jobs).values():  # the tests turn warnings into errors
        assert isinstance(outcome, UserWarning)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "care", UserWarning)
        for outcome in _train(_Warns(), n_jobs=n_jobs).values():
            assert isinstance(outcome, LogisticRegression)


class _Leaves(LogisticRegression):
    """Raises in the fit of the first and the third candidate."""

    def __init__(self, ending=SystemExit):
        super().__init__()
        self.ending = ending

    def fit(self, X, y, sample_weight=None):
        if round(sample_weight[0] * 6) in (1, 3):
            raise self.ending("enough")
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize(
    ("ending", "n_jobs", "backend"),
    [
        *((ending, 2, "loky") for ending in (SystemExit, KeyboardInterrupt, GeneratorExit)),
        *((ending, 1, "loky") for ending in (SystemExit, GeneratorExit)),
        (KeyboardInterrupt, 2, "threading"),
    ],
)
def test_a_model_that_leaves_the_program_is_a_failed_candidate(ending, n_jobs, backend):
    trained = _train(_Leaves(ending), n_jobs=n_jobs, backend=backend)
    for k, outcome in trained.items():
        assert isinstance(outcome, TrainingFailedError if k in (0, 2) else LogisticRegression)
    assert len(trained) == 6
    assert str(trained[0]) == f"the model's fit raised {ending.__name__}: enough"


def test_an_interruption_in_the_users_process_is_the_users():
    with pytest.raises(KeyboardInterrupt, match="enough"):
        _train(_Leaves(KeyboardInterrupt), n_jobs=1)


class _ManyLeave(LogisticRegression):
    def fit_many(self, X, y, weights, seeds):
        yield 0, LogisticRegression().fit(X, y, weights[0])
        raise SystemExit(3)


def test_models_trained_together_that_leave_the_program_are_failures():
    trained = dict(ManyTrainer(_ManyLeave()).train(ROWS.X, ROWS.y, Training.each(WEIGHTS, range(6))))
    assert isinstance(trained[0], LogisticRegression)
    assert {str(trained[k]) for k in range(1, 6)} == {"the model's fit raised SystemExit: 3"}


class _LeavesOnce(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        if not np.allclose(sample_weight, sample_weight[0]) and sample_weight[0] > 1:
            raise SystemExit("enough")
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_search_records_why_a_model_left_the_program(n_jobs):
    search = MetricSearch.from_settings(
        _LeavesOnce(), embedding="label", n_candidates=6, batch_size=6, random_state=0, n_jobs=n_jobs
    )
    search.fit(ROWS.X, ROWS.y, validation=(ROWS.X_val, ROWS.y_val))
    errors = {trial.error for trial in search.study_.trials() if trial.error}
    assert errors == {"TrainingFailedError: the model's fit raised SystemExit: enough"}


class _HangsInOne(LogisticRegression):
    """Never ends for the first candidate, and says which process trained the others."""

    def fit(self, X, y, sample_weight=None):
        while round(sample_weight[0] * 6) == 1:
            time.sleep(0.01)
        self.pid_ = os.getpid()
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize(
    ("n_jobs", "backend"),
    [
        (2, "loky"),
        pytest.param(1, "sequential", marks=pytest.mark.heavy),
        pytest.param(1, "loky", marks=pytest.mark.heavy),
        pytest.param(1, "threading", marks=pytest.mark.heavy),
    ],
)
def test_a_training_that_hangs_is_ended_after_the_timeout(n_jobs, backend):
    with parallel_config(backend=backend):
        trainer = EstimatorTrainer(_HangsInOne(), n_jobs=n_jobs, timeout=2)
        trained = dict(trainer.train(ROWS.X, ROWS.y, Training.each(WEIGHTS, range(6))))
    assert isinstance(trained[0], TrainingFailedError)
    assert str(trained[0]) == "the training took longer than candidate_timeout=2 seconds and was ended"
    for k, weights in enumerate(WEIGHTS[1:], 1):
        alone = LogisticRegression().fit(ROWS.X, ROWS.y, sample_weight=weights)
        assert np.array_equal(alone.coef_, trained[k].coef_)
        assert trained[k].pid_ != os.getpid()


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.heavy)])
def test_a_search_with_a_timeout_that_is_not_needed_gives_the_same_bits(n_jobs):
    found = []
    for timeout in (None, 1000):
        search = MetricSearch.from_settings(
            RandomForestClassifier(5),
            embedding="label",
            n_candidates=4,
            batch_size=2,
            random_state=0,
            n_jobs=n_jobs,
            candidate_timeout=timeout,
        )
        found.append(search.fit(ROWS.X, ROWS.y))
    one, two = found
    assert [trial.value for trial in one.study_.trials()] == [trial.value for trial in two.study_.trials()]
    assert np.array_equal(one.predict_proba(ROWS.X), two.predict_proba(ROWS.X))


def test_a_timeout_that_cannot_be_kept_is_refused():
    trainer = EstimatorTrainer(_NeverTrained(), n_jobs=2, timeout=2)
    refused = pytest.raises(
        InvalidInputError, match="candidate_timeout cannot be kept here, because joblib's"
    )
    with parallel_config(backend="threading"), refused:
        dict(trainer.train(ROWS.X, ROWS.y, Training.each(WEIGHTS, range(6))))
    with pytest.raises(InvalidInputError, match="trains many candidates at once in this process"):
        MetricSearch.from_settings(_ManyLeave(), candidate_timeout=2).fit(ROWS.X, ROWS.y)


def test_models_that_keep_the_rows_answer_after_the_search_too():
    rows = skewed_target(80)
    weights = np.random.default_rng(0).uniform(0.1, 2, (4, 80))
    for k, model in _train(KernelRidge(kernel="rbf"), rows, weights).items():
        alone = KernelRidge(kernel="rbf").fit(rows.X, rows.y, sample_weight=weights[k])
        assert np.array_equal(alone.predict(rows.X), model.predict(rows.X))


class _TellsWhere(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        self.process_ = os.getpid()
        return super().fit(X, y, sample_weight)


class _Unsendable(_TellsWhere):
    def __reduce__(self):
        raise TypeError("stays here")


def test_other_processes_are_started_once_training_here_took_as_long_as_that(monkeypatch):
    here = os.getpid()
    alone = _train(_TellsWhere(random_state=0), n_jobs="auto")
    assert {model.process_ for model in alone.values()} == {here}
    monkeypatch.setattr("moew.training._trainers._STARTING_SECONDS", 1e-9)
    both = _train(_TellsWhere(random_state=0), n_jobs="auto")
    others = {model.process_ for model in both.values()}
    assert both[0].process_ == here and (len(others) > 1 or effective_n_jobs(-1) == 1)
    for k in range(len(WEIGHTS)):
        np.testing.assert_array_equal(both[k].coef_, alone[k].coef_)
    stayed = _train(_Unsendable(random_state=0), n_jobs="auto")
    assert {model.process_ for model in stayed.values()} == {here}
