"""Several real processes on one search: who may join, what becomes of the dead, and the same bits."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from moew import MetricSearch, WeightStudy
from moew._util.processes import machine
from moew.data import LabelledRows, SearchData
from moew.data._splits import Fold
from moew.exceptions import InvalidInputError
from moew.samplers import Ball
from moew.search._loop import train_folds
from moew.storage import Crew, _crew
from moew.storage._records import WorkerRecord
from moew.types import Training

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

SCRIPT = """
import hashlib, os, sys, time
from pathlib import Path
import numpy as np
from sklearn.linear_model import LogisticRegression
from moew import MetricSearch
from moew.storage import _crew

class Logged(LogisticRegression):
    '''Writes down who trains it, and takes a while; from the file "hang" on it hangs.'''

    def fit(self, X, y, sample_weight=None):
        with open("trained", "a") as log:
            log.write(f"{os.getpid()} {hashlib.md5(sample_weight).hexdigest()}\\n")
        while Path("hang").exists() and not Path("go").exists():
            time.sleep(0.02)
        return super().fit(X, y, sample_weight=sample_weight)

def fit(storage, **settings):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] + np.random.default_rng(1).normal(size=60) > 0).astype(int)
    search = MetricSearch.from_settings(
        Logged(), embedding="label", n_candidates=18, batch_size=6, evaluate_on=0.4, honest=None,
        random_state=0, storage=storage, **settings,
    ).fit(X, y)
    digest = hashlib.sha256(search.sample_weight_.tobytes() + search.predict(X).tobytes())
    for trial in search.result_.trials:
        digest.update(trial.alpha.tobytes() + np.float64(trial.value).tobytes())
    return digest.hexdigest()

if __name__ == "__main__":
    _crew.RENEWED_EVERY, _crew.DEAD_AFTER = 0.1, 1.0
    print(fit(sys.argv[1], join="join" in sys.argv[2:]))
"""
STORAGE = "study.db"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "search.py").write_text(SCRIPT)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@contextlib.contextmanager
def running(folder, n, storage, *arguments):
    """n processes with the same fit; what is left of them in the end is killed."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(_crew.__file__).parents[2]),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "search.py", storage, *arguments]
    started = [
        subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(n)
    ]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


def said(process):
    out, err = process.communicate(timeout=180)
    assert process.returncode == 0, err.decode()
    return out.decode().strip()


def trained(folder):
    path = folder / "trained"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def marks(folder):
    with contextlib.closing(sqlite3.connect(folder / STORAGE)) as database:
        return database.execute("SELECT name FROM moew_workers").fetchall()


def stop_between_writes(process, folder):
    """Stop a process that holds no lock: what one that stands still has locked, nobody else can have."""
    while True:
        os.kill(process, signal.SIGSTOP)
        with contextlib.closing(sqlite3.connect(folder / STORAGE, timeout=2.0)) as database:
            try:
                database.execute("BEGIN EXCLUSIVE")
                return
            except sqlite3.OperationalError:
                os.kill(process, signal.SIGCONT)


def wait_until(happened):
    deadline = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < deadline, "waited for two minutes"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What one process finds."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "search.py").write_text(SCRIPT)
    with running(folder, 1, STORAGE) as (process,):
        return said(process)


def test_processes_that_join_share_the_work_and_have_the_same_result(folder, alone):
    (folder / "hang").touch()
    with running(folder, 3, STORAGE, "join") as processes:
        wait_until(lambda: len({pid for pid, _ in trained(folder)}) == 3)  # each has a candidate
        (folder / "go").touch()
        assert [said(process) for process in processes] == [alone] * 3
    assert marks(folder) == []


def test_what_a_killed_process_held_is_trained_by_others(folder, alone):
    (folder / "hang").touch()
    with running(folder, 3, STORAGE, "join") as processes:
        wait_until(lambda: len({pid for pid, _ in trained(folder)}) == 3)
        processes[0].kill()
        stop_between_writes(processes[1].pid, folder)  # it lives, but does not renew its mark
        (folder / "go").touch()
        assert said(processes[2]) == alone
        before = trained(folder)
        os.kill(processes[1].pid, signal.SIGCONT)
        assert said(processes[1]) == alone  # it finds that others have told what it held
    after = trained(folder)[len(before) :]
    with running(folder, 1, STORAGE, "join") as (last,):
        assert said(last) == alone
    of_conclusion = [line for line in trained(folder) if line[0] == str(last.pid)]
    assert len(after) == len(of_conclusion)  # it has begun none of those that it held


def test_a_second_fit_is_refused_while_the_first_lives_and_goes_on_when_it_is_dead(folder, alone):
    from search import fit

    (folder / "hang").touch()
    with running(folder, 1, STORAGE) as (first,):
        wait_until(lambda: trained(folder))
        words = rf"process {first.pid} on .* works on this study now.*join=True"
        for join in (False, True):
            with pytest.raises(InvalidInputError, match=words):
                fit(STORAGE, join=join)
        first.send_signal(signal.SIGKILL)
        first.wait()
        (folder / "go").touch()
        assert fit(STORAGE) == alone
    assert marks(folder) == []


def mark(**changes):
    return replace(WorkerRecord("elsewhere", machine() + 1, 1, 0, joins=False), **changes)


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(_crew, "RENEWED_EVERY", 0.05)
    monkeypatch.setattr(_crew, "DEAD_AFTER", 0.5)
    return study(tmp_path).store


def study(tmp_path, **settings):
    return WeightStudy(None, Ball(2, 2.0), n_initial=4, storage=tmp_path / STORAGE, **settings)


def test_a_mark_of_another_machine_that_is_not_renewed_is_that_of_a_dead_process(store):
    store.register("other", mark(), None)
    crew = Crew(store, joins=False)
    with crew.at_work():
        assert set(crew.alive()) == {crew.name}
    assert store.workers() == {}


def test_a_mark_of_another_machine_that_is_renewed_refuses(store, monkeypatch):
    store.register("other", mark(), None)
    workers, looks = type(store).workers, []

    def renewed(self):
        looks.append(1)
        return {name: replace(m, renewals=len(looks)) for name, m in workers(self).items()}

    monkeypatch.setattr(type(store), "workers", renewed)
    with pytest.raises(InvalidInputError, match="process 1 on elsewhere"):
        Crew(store, joins=True).enter()


def test_marks_of_two_that_begin_at_once_do_not_pass_each_other(store, monkeypatch):
    first, second = Crew(store, joins=False), Crew(store, joins=False)
    others = Crew._wait_for_those_that_work_alone

    def then_the_first_enters(crew):
        found = others(crew)
        if crew is second and first.name not in store.workers():
            first.enter()
        return found

    monkeypatch.setattr(Crew, "_wait_for_those_that_work_alone", then_the_first_enters)
    with pytest.raises(InvalidInputError, match="works on this study now"):
        second.enter()
    first.leave()


def test_who_was_taken_for_dead_does_not_go_on_alone(store):
    crew = Crew(store, joins=False)
    with crew.at_work():
        crew.check()
        store.forget([crew.name])
        wait_until(lambda: crew._was_forgotten)
        with pytest.raises(InvalidInputError, match="another one has gone on"):
            crew.check()


def test_who_joins_makes_its_mark_again(store):
    crew = Crew(store, joins=True)
    with crew.at_work():
        store.forget([crew.name])
        wait_until(lambda: crew.name in store.workers())


def test_who_did_not_run_for_long_gives_its_share_up(store, monkeypatch):
    monkeypatch.setattr(_crew, "DEAD_AFTER", 5.0)
    crew = Crew(store, joins=True)
    with crew.at_work():
        assert crew.holds_its_share()
        crew._renewed_at -= 6.0  # as after a stop; whether the mark is renewed before one looks is no matter
        assert not crew.holds_its_share()
        wait_until(lambda: time.monotonic() - crew._renewed_at < 5.0)
        assert not crew.holds_its_share()
        crew.claims_anew()
        assert crew.holds_its_share()


def test_no_further_model_is_begun_when_the_share_is_given_up():
    begun = []

    class Trainer:
        def train(self, X, y, trainings, fold=None):
            for k in range(len(trainings)):
                begun.append((fold is None, k))
                yield k, k

    X, y = np.eye(8), np.arange(8) % 2
    rows = LabelledRows(X, y)
    data = SearchData("classification", rows, rows, (Fold(None, np.arange(8)),))
    found = train_folds(
        Trainer(), data, Training.each(np.ones((4, 8)), range(4)), goes_on=lambda: len(begun) < 2
    )
    assert list(found) == [(0, [0]), (1, [1])] and len(begun) == 2


def test_a_damaged_mark_is_not_looked_at(store, tmp_path):
    store.register("other", mark(), None)
    for content in ("{", "[]", '{"host": 1}', b"\x00", 3):
        with contextlib.closing(sqlite3.connect(tmp_path / STORAGE)) as database:
            database.execute("UPDATE moew_workers SET mark = ?", (content,))
            database.commit()
        assert store.workers() == {}


ASKED = """
import sys
from moew import WeightStudy
from moew.samplers import Ball

study = WeightStudy(None, Ball(2, 2.0), n_initial=4, storage=sys.argv[1], leases=len(sys.argv) == 2)
print(*[trial.number for trial in study.ask(3)], flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("leases", [True, pytest.param(False, marks=pytest.mark.heavy)])
def test_candidates_of_a_dead_process_are_given_out_again(tmp_path, leases):
    command = [sys.executable, "-c", ASKED, str(tmp_path / STORAGE), *([] if leases else ["no"])]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout.readline().split() == [b"0", b"1", b"2"]
    here = study(tmp_path, leases=leases)
    assert [trial.number for trial in here.ask(2)] == [3, 4]
    other.kill()
    other.communicate()
    here.tell(3, 1.0)
    asked = here.ask(4)
    assert [trial.number for trial in asked] == ([0, 1, 2, 5] if leases else [5, 6, 7, 8])
    assert not leases or np.array_equal(asked[0].alpha, np.zeros(2))
    here.close()


def test_a_closed_study_leaves_its_candidates_to_others(tmp_path):
    first = study(tmp_path)
    first.ask(2)
    assert [trial.number for trial in study(tmp_path).ask(1)] == [2]
    first.close()
    assert [trial.number for trial in study(tmp_path).ask(2)] == [0, 1]


def test_join_needs_a_storage():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    with pytest.raises(InvalidInputError, match="join=True needs a storage"):
        MetricSearch.from_settings(LogisticRegression(), join=True).fit(X, y)


def test_a_worker_that_came_since_one_looked_keeps_what_it_took(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here, there = (WeightStudy(None, Ball(2, 2.0), storage=STORAGE, leases=False) for _ in range(2))
    here.ask(2)
    first, second = here.crew(joins=True), there.crew(joins=True)
    with first.at_work():
        dead = first.dead()
        with second.at_work():
            assert there.claim([0], second, 5) == [0]
            assert here.store.claim([0, 1], first.name, first.store, dead, 5) == [1]
        assert here.claim([0, 1], first, 5) == [0, 1]  # the second has left
    here.close()
    there.close()
