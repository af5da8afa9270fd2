"""Worker processes: what a killed one held is trained again, and nothing else; each is like this process."""

import os
import signal
import time
import warnings

import numpy as np
import pytest
from joblib import parallel_config
from problems import shifted_classes, skewed_target
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression

from moew import ExampleWeightSearch
from moew.exceptions import InvalidInputError, MoewError
from moew.training import EstimatorTrainer

ROWS = shifted_classes(80)
WEIGHTS = np.random.default_rng(0).uniform(0.1, 2, (6, len(ROWS.y)))
WEIGHTS[:, 0] = np.arange(1, 7) / 6  # by which a model knows which candidate it is


def _train(estimator, rows=ROWS, weights=WEIGHTS, n_jobs=2, backend="loky"):
    with parallel_config(backend=backend):
        trainer = EstimatorTrainer(estimator, n_jobs=n_jobs)
        return dict(trainer.train(rows.X, rows.y, weights, range(len(weights))))


def kills_its_process(folder, times):
    """A logistic regression that notes every fit, and kills its process in candidate 0's first fits.

    All other fits wait in the middle until candidate 0 is trained for the last time, so that a fit is under
    way beside every death.
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


def test_a_candidate_that_kills_every_process_fails_alone(tmp_path):
    trained = _train(kills_its_process(tmp_path, 1000))
    assert sorted(trained) == list(range(6))
    assert [k for k, model in trained.items() if isinstance(model, Exception)] == [0]
    assert "terminated" in str(trained[0])
    assert [fits(tmp_path, k) for k in range(6)] == [3, 1, 1, 1, 1, 1]


def test_a_search_goes_on_after_a_death(tmp_path):
    searches = []
    for times in (0, 1):
        folder = tmp_path / str(times)
        folder.mkdir()
        search = ExampleWeightSearch(
            KilledOnce(folder if times else None),
            embedding="label",
            n_batches=2,
            batch_size=3,
            random_state=0,
        )
        with parallel_config(backend="loky", n_jobs=2):
            searches.append(search.fit(ROWS.X, ROWS.y, X_val=ROWS.X_val, y_val=ROWS.y_val))
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
        trained = trainer.train(ROWS.X, ROWS.y, WEIGHTS, range(6))
        next(trained)
        trained.close()
    deadline = time.monotonic() + 60
    pids = {int(path.name) for path in tmp_path.iterdir()}
    while any(map(_lives, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_lives, pids))
    assert len(_train(LogisticRegression())) == 6


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
        warnings.warn("careful", DeprecationWarning, stacklevel=1)
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_warnings_count_in_processes_as_they_do_here(n_jobs):
    for outcome in _train(_Warns(), n_jobs=n_jobs).values():  # the tests turn warnings into errors
        assert isinstance(outcome, DeprecationWarning)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "care", DeprecationWarning)
        for outcome in _train(_Warns(), n_jobs=n_jobs).values():
            assert isinstance(outcome, LogisticRegression)


def test_models_that_keep_the_rows_answer_after_the_search_too():
    rows = skewed_target(80)
    weights = np.random.default_rng(0).uniform(0.1, 2, (4, 80))
    for k, model in _train(KernelRidge(kernel="rbf"), rows, weights).items():
        alone = KernelRidge(kernel="rbf").fit(rows.X, rows.y, sample_weight=weights[k])
        assert np.array_equal(alone.predict(rows.X), model.predict(rows.X))
