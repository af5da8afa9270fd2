"""Whatever ends a search, its worker processes end soon after it, and its rows are removed."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from problems import shifted_classes
from sklearn.linear_model import LogisticRegression

from moew import MetricSearch
from moew._util.processes import new_folder, remove_folders_of_the_dead

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

MODEL = """
import os, time
from pathlib import Path
from sklearn.linear_model import LogisticRegression

class Slow(LogisticRegression):
    '''Hangs in the fits after the first two, and writes down in which process.'''

    def fit(self, X, y, sample_weight=None):
        Path("begun", f"{os.getpid()}-{time.time_ns()}").touch()
        if len(os.listdir("begun")) > 2:
            Path("hanging", f"{os.getpid()}").touch()
            time.sleep(1000)
        return super().fit(X, y, sample_weight)
"""
SCRIPT = """
import pandas as pd
from moew import MetricSearch
from slow import Slow

rows = pd.read_csv("train.csv")
search = MetricSearch.from_settings(
    Slow(),
    embedding="label",
    evaluate_on=2,
    n_candidates=6,
    batch_size=3,
    n_jobs=2,
    random_state=0,
    storage="study.db",
)
search.fit(rows[["a", "b"]].to_numpy(), rows["y"])
"""
COMMAND = ["-m", "moew", "fit", "train.csv", "--label", "y", "--metric", "accuracy", "--model", "slow:Slow"]
COMMAND += ["--set", "embedding=label", "--set", "evaluate_on=2", "--set", "batch_size=3"]
COMMAND += ["--candidates", "6", "--jobs", "2"]


@pytest.fixture
def folder(tmp_path):
    rows = shifted_classes(60)
    pd.DataFrame({"a": rows.X[:, 0], "b": rows.X[:, 1], "y": rows.y}).to_csv(tmp_path / "train.csv")
    (tmp_path / "slow.py").write_text(MODEL)
    (tmp_path / "script.py").write_text(SCRIPT)
    for name in ("begun", "hanging", "rows"):
        (tmp_path / name).mkdir()
    return tmp_path


# A job in the background ignores SIGINT, and hands that on to its children.
HEEDING_INTERRUPTS = """
import runpy, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)
del sys.argv[0]
if sys.argv[0] == "-m":
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
else:
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


@contextlib.contextmanager
def hanging_search(folder, arguments):
    """A search whose two workers hang, and the numbers of their processes; all are killed in the end."""
    path = os.pathsep.join([str(Path.cwd()), str(folder)])
    environment = {**os.environ, "JOBLIB_TEMP_FOLDER": str(folder / "rows"), "PYTHONPATH": path}
    with (folder / "said").open("wb") as said:
        parent = subprocess.Popen(
            [sys.executable, "-c", HEEDING_INTERRUPTS, *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    try:
        wait_until(lambda: len(list((folder / "hanging").iterdir())) == 2 or parent.poll() is not None)
        assert parent.poll() is None, (folder / "said").read_text()
        assert row_files(folder)
        yield parent, {int(path.name) for path in (folder / "hanging").iterdir()}
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()


def wait_until(happened):
    deadline = time.monotonic() + 180
    while not happened():
        assert time.monotonic() < deadline, "waited for three minutes"
        time.sleep(0.05)


def lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] == "Z")


def row_files(folder):
    return list((folder / "rows").glob("moew-*"))


@pytest.mark.parametrize(
    ("arguments", "number"),
    [
        (COMMAND, signal.SIGINT),
        (["script.py"], signal.SIGKILL),
        pytest.param(COMMAND, signal.SIGTERM, marks=pytest.mark.heavy),
        pytest.param(COMMAND, signal.SIGKILL, marks=pytest.mark.heavy),
        pytest.param(["script.py"], signal.SIGINT, marks=pytest.mark.heavy),
        pytest.param(["script.py"], signal.SIGTERM, marks=pytest.mark.heavy),
    ],
)
def test_workers_and_rows_go_with_the_search(folder, arguments, number):
    with hanging_search(folder, arguments) as (parent, workers):
        parent.send_signal(number)
        wait_until(lambda: parent.poll() is not None)
        wait_until(lambda: not any(map(lives, workers)))
        wait_until(lambda: not row_files(folder))
    said = (folder / "said").read_text()
    if arguments is COMMAND and number != signal.SIGKILL:
        assert parent.returncode == 130
        assert "moew: interrupted; `moew resume run` goes on where it stopped" in said
        assert (folder / "run" / "study.db").stat().st_size > 0
    if number == signal.SIGINT and arguments is not COMMAND:
        assert "KeyboardInterrupt" in said


def test_ctrl_c_which_all_processes_get_ends_them_once(folder):
    with hanging_search(folder, COMMAND) as (parent, workers):
        n_begun = len(list((folder / "begun").iterdir()))
        os.killpg(parent.pid, signal.SIGINT)
        wait_until(lambda: parent.poll() is not None)
        wait_until(lambda: not any(map(lives, workers)) and not row_files(folder))
    assert parent.returncode == 130
    assert len(list((folder / "begun").iterdir())) == n_begun  # no candidate was taken for a failure
    (line,) = [line for line in (folder / "said").read_text().splitlines() if line.startswith("moew:")]
    assert line.startswith("moew: interrupted")


LATER = """
class Later(LogisticRegression):
    '''Hangs in the second batch, until the search is interrupted.'''

    def fit(self, X, y, sample_weight=None):
        Path("begun", f"{os.getpid()}-{time.time_ns()}").touch()
        if len(os.listdir("begun")) > 6 and not Path("interrupted").exists():
            Path("hanging", f"{os.getpid()}").touch()
            time.sleep(1000)
        return super().fit(X, y, sample_weight)
"""
CONCLUDED = """
import pandas as pd
from moew import MetricSearch
from slow import Later

rows = pd.read_csv("train.csv")
X, y = rows[["a", "b"]].to_numpy(), rows["y"]
settings = {"embedding": "label", "base_weights": "uniform", "evaluate_on": "validation", "random_state": 0}
search = MetricSearch.from_settings(Later(), n_candidates=8, batch_size=4, n_jobs=2, **settings)
search.fit(X, y, validation=(X, y))
print(search.result_.cut_off, "predicts", len(search.predict(X)))
"""


@pytest.mark.heavy
def test_ctrl_c_without_a_storage_ends_what_is_trained_and_then_the_search_with_a_result(folder):
    (folder / "slow.py").write_text(MODEL + LATER)
    (folder / "script.py").write_text(CONCLUDED)
    with hanging_search(folder, ["script.py"]) as (parent, workers):
        (folder / "interrupted").touch()
        os.killpg(parent.pid, signal.SIGINT)  # as a terminal does
        wait_until(lambda: not any(map(lives, workers)))
        wait_until(lambda: parent.poll() is not None)
        wait_until(lambda: not row_files(folder))
    said = (folder / "said").read_text()
    assert parent.returncode == 0, said
    assert "MoewWarning: interrupted: 5 of 9 candidates are trained" in said
    assert "the search was interrupted: 5 of 9 candidates were trained. predicts 66" in said


KEPT = """
import sys, time
from pathlib import Path
from sklearn.linear_model import LogisticRegression
from moew import MetricSearch

class Fourth(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        Path("begun", f"{time.time_ns()}").touch()
        if len(list(Path("begun").iterdir())) == 4:
            Path("hanging", "fourth").touch()
            time.sleep(1000)
        return super().fit(X, y, sample_weight)

import pandas as pd
rows = pd.read_csv("train.csv")
X, y = rows[["a", "b"]].to_numpy(), rows["y"]
settings = {"embedding": "label", "evaluate_on": "validation", "n_candidates": 8, "batch_size": 8}
settings |= {"storage": "study.db", "base_weights": "uniform", "random_state": 0}
search = MetricSearch.from_settings(Fourth(random_state=0), **settings)
search.fit(X, y, validation=(X, y))
"""


def test_what_was_computed_just_before_sigterm_is_kept(folder):
    (folder / "kept.py").write_text(KEPT)
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    with (folder / "said").open("wb") as said:
        parent = subprocess.Popen(
            [sys.executable, "kept.py"], cwd=folder, env=environment, stdout=said, stderr=said
        )
    try:
        wait_until(lambda: list((folder / "hanging").iterdir()) or parent.poll() is not None)
        parent.terminate()
        parent.wait(60)
    finally:
        parent.kill()
    assert parent.returncode == 128 + signal.SIGTERM, (folder / "said").read_text()
    with closing(sqlite3.connect(folder / "study.db")) as database:
        told = database.execute("SELECT count(*) FROM moew_candidates WHERE value IS NOT NULL").fetchone()
    assert told == (3,)


LEFT = """
import pandas as pd
from sklearn.linear_model import LogisticRegression
from moew import MetricSearch
from moew.cli import _leave_at_once

rows = pd.read_csv("train.csv")
X, y = rows[["a", "b"]].to_numpy(), rows["y"]
settings = {"embedding": "label", "n_candidates": 2, "batch_size": 2, "n_jobs": 2}
search = MetricSearch.from_settings(LogisticRegression(), **settings)
search.fit(X, y, validation=(X, y))
_leave_at_once(130)
"""


@pytest.mark.heavy
def test_a_command_that_is_interrupted_while_its_workers_are_idle_does_not_wait_for_them(folder):
    (folder / "left.py").write_text(LEFT)
    path = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    # They would be idle for five minutes.
    assert subprocess.run([sys.executable, "left.py"], cwd=folder, env=path, timeout=150).returncode == 130


def test_a_new_worker_looks_after_its_parent_before_it_loads_what_it_trains_with():
    loaded = "import sys, moew._util.processes; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", loaded], check=False).returncode == 0


def test_rows_of_a_search_that_was_killed_with_its_workers_go_at_the_next_start(folder, monkeypatch):
    with hanging_search(folder, ["script.py"]) as (parent, workers):
        left = row_files(folder)
        os.killpg(parent.pid, signal.SIGKILL)
        wait_until(lambda: parent.poll() is not None and not any(map(lives, workers)))
        assert row_files(folder) == left
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(folder / "rows"))
    own = Path(new_folder())
    assert row_files(folder) == [own]
    assert Path(new_folder()).parent == own.parent
    assert own.exists()


def test_only_rows_of_the_dead_on_this_machine_are_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    own = Path(new_folder())
    _, _, process, start, machine, _ = own.name.split("-", 5)
    another = subprocess.Popen([sys.executable, "-c", "pass"])
    another.wait()
    kept = [
        "moew-rows-1-0-7-x",
        f"moew-rows-{another.pid}-5-{int(machine) + 1}-x",
        "moew-other",
        "moew-rows-x",
    ]
    gone = [f"moew-rows-{another.pid}-5-{machine}-x"]
    if start != "0":  # a later process with the same number
        gone.append(f"moew-rows-{process}-{int(start) - 1}-{machine}-x")
    for name in (*kept, *gone):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rows").touch()
    remove_folders_of_the_dead()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([own.name, *kept])


class _Hangs(LogisticRegression):
    def __init__(self, folder=None):
        super().__init__()
        self.folder = folder

    def fit(self, X, y, sample_weight=None):
        (self.folder / f"{os.getpid()}").touch()
        time.sleep(0 if np.allclose(sample_weight, 1) else 1000)
        return super().fit(X, y, sample_weight)


def test_an_interruption_beside_the_training_ends_the_workers_at_once(tmp_path):
    def interrupted(y, decision):
        if list(tmp_path.iterdir()):  # a model is scored; before, there is a rehearsal
            wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
            raise KeyboardInterrupt
        return float((y == decision).mean())

    rows = shifted_classes(60)
    search = MetricSearch.from_settings(
        _Hangs(tmp_path),
        metric=interrupted,
        embedding="label",
        evaluate_on="validation",
        base_weights="uniform",
        n_candidates=3,
        batch_size=3,
        n_jobs=2,
    )
    with pytest.raises(KeyboardInterrupt) as caught:
        search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    # While the traceback is kept, as a shell does, generators in it are not collected.
    assert caught.value.__traceback__ is not None
    wait_until(lambda: not any(lives(int(path.name)) for path in tmp_path.iterdir()))
