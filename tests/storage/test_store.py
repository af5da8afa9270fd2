"""Storages as people leave them: damaged, edited, mistyped; full disks and lost connections."""

import contextlib
import hashlib
import json
import os
import random
import sqlite3
import subprocess
import sys
import threading
import warnings

import numpy as np
import optuna
import pytest
from sklearn.linear_model import LogisticRegression

from moew import MetricSearch, WeightStudy, make_metric
from moew.exceptions import InvalidInputError, MoewError, MoewWarning, StorageError, WriteError
from moew.metrics import Predictions
from moew.samplers import Ball
from moew.search import _loop
from moew.search._evaluate import Evaluator
from moew.storage import Told, _databases, storage_name
from moew.storage._databases import Sqlite, Statements


def study(path):
    return WeightStudy(None, Ball(2, 1.0), sampler="random", storage=path, name="one")


def told(path):
    return [(one.number, one.value) for one in study(path).trials()]


@pytest.fixture
def file(tmp_path):
    """A study of four candidates that are told."""
    path = tmp_path / "study.db"
    made = study(path)
    for candidate in made.ask(4):
        made.tell(candidate.number, float(candidate.number))
    made.close()
    return path


def sql(path, *statement):
    with contextlib.closing(sqlite3.connect(path)) as database:
        rows = database.execute(*statement).fetchall()
        database.commit()
    return rows


def test_paths_and_urls_name_the_same_files(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    for name in (str(file), "study.db", "sqlite:///study.db", f"sqlite:///{file}"):
        assert told(name) == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0)]


def test_an_empty_file_is_a_new_study(tmp_path):
    (tmp_path / "study.db").touch()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert told(tmp_path / "study.db") == []


@pytest.mark.parametrize(
    "text", ["a,b\n1,2\n3,4", "no database, " * 100, '{"op_code":0,"worker_id":"a"}\n' * 9]
)
def test_another_file_is_refused_and_left_as_it_is(tmp_path, text):
    path = tmp_path / "rows.csv"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=r"(not a database|malformed).*rows\.csv"):
        study(path)
    assert path.read_text() == text


@pytest.mark.parametrize("place", ["missing/study.db", "."])
def test_a_path_that_cannot_be_a_file_is_named(tmp_path, place):
    with pytest.raises(InvalidInputError, match="folder that exists"):
        study(tmp_path / place)


@pytest.mark.parametrize(
    "url",
    [
        "sqlte:///study.db",
        "postgresql+psycopg://me:secret@host/name",
        "://x",
        "sqlite://",
        "sqlite:///study.db?timeout=3",
        "sqlite:////nowhere/at/all.db",
        "postgresql://me:secret@ho st/na]me",
        "redis://host",
    ],
)
def test_a_mistyped_url_is_told_without_its_password(url):
    pytest.importorskip("psycopg")
    with pytest.raises(InvalidInputError, match=r"sqlite:///run\.db") as caught:
        study(url)
    assert "secret" not in str(caught.value)


def test_a_server_that_cannot_be_reached_is_told_at_once_without_its_password():
    pytest.importorskip("psycopg")
    for url in ("postgresql://me:secret@host:port/name", "postgresql://me:secret@127.0.0.1:1/name"):
        with pytest.raises(StorageError, match="cannot be used: .*") as caught:
            study(url)
        assert "secret" not in str(caught.value)


def test_a_storage_is_named_without_its_password():
    assert storage_name("postgresql://me:se@cret@host/name") == "postgresql://me:***@host/name"
    assert (
        storage_name("postgresql://host/name?password=secret&user=me")
        == "postgresql://host/name?password=***&user=me"
    )
    assert storage_name("postgresql://me@host/name") == "postgresql://me@host/name"
    assert storage_name("run.db") == "'run.db'"


def test_a_storage_of_optuna_is_refused_with_what_to_do_instead():
    with pytest.raises(InvalidInputError, match=r"path of a file such as 'run\.db'.*to_optuna\(\)"):
        study(optuna.storages.InMemoryStorage())


def test_postgresql_without_its_driver_says_what_to_install():
    code = """
import sys
sys.modules["psycopg"] = None  # as if it were not installed
from moew import WeightStudy
from moew.samplers import Ball
try:
    WeightStudy(None, Ball(2, 1.0), storage="postgresql://me:secret@host/name")
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'moew[postgres]'" in done.stdout and "secret" not in done.stdout


@pytest.mark.parametrize("words", ["database or disk is full", "disk I/O error"])
def test_a_full_disk_names_the_file(file, monkeypatch, words):
    made = study(file)
    write = Statements.write

    def full(statements, statement, *values):
        raise sqlite3.OperationalError(words)

    made.store.patience = 1.0
    said = rf"study\.db.*{words}"
    with monkeypatch.context() as patch, pytest.warns(MoewWarning, match=f"{said}.*tried again"):
        patch.setattr(Statements, "write", full)
        with pytest.raises(StorageError, match=f"{said}.*goes on from there"):
            made.ask(1)
    assert Statements.write is write
    assert [trial.number for trial in made.ask(2)] == [4, 5]
    made.close()


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files are POSIX")
def test_a_limit_on_the_size_of_files_is_told_at_once(file):
    code = f"""
import resource, signal
from moew import WeightStudy
from moew.samplers import Ball
from moew.storage import Told
made = WeightStudy(None, Ball(2, 1.0), sampler="random", storage={str(file)!r}, name="one")
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
(one,) = made.ask(1)
made.tell_all([Told(one.number, 1.0, content=bytes(100_000))])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    assert (
        WriteError.__name__ in last and "study.db cannot be written: File too large; raise the limit" in last
    )
    assert [one.number for one in study(file).pending()] == [4]


def test_failures_of_megabytes_are_cut(file):
    made = study(file)
    (candidate,) = made.ask(1)
    made.tell(candidate.number, error="first " + "x" * 5_000_000 + " last \x00\ud800")
    made.close()
    assert file.stat().st_size < 60_000
    error = study(file).trials()[-1].error
    assert (
        error.startswith("first ")
        and error.endswith(" last \x00\ud800")
        and "characters are left out" in error
    )


def fit(path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    search = MetricSearch.from_settings(
        LogisticRegression(),
        embedding="label",
        n_candidates=2,
        batch_size=2,
        evaluate_on=0.3,
        final="best",
        strategies="example weights",
        honest=None,
        storage=path,
        random_state=0,
    )
    return search.fit(X, y)


def test_no_change_of_a_stored_value_ends_in_a_raw_error_or_another_result(tmp_path):
    path = tmp_path / "study.db"
    whole, content = summary(fit(path), rows=60), path.read_bytes()
    n_failed = 0
    for table in ("moew_studies", "moew_candidates", "moew_workers"):
        for column in [row[1] for row in sql(path, f"PRAGMA table_info({table})")]:
            for odd in (None, "odd", "[[1]]", "{}", -7, 2**62, 0.5, b"\xff"):
                path.write_bytes(content)
                with contextlib.suppress(sqlite3.Error):  # the table's own rules forbid it
                    sql(path, f"UPDATE {table} SET {column} = ? WHERE rowid = 1", (odd,))
                try:
                    found = fit(path)  # some entries do not matter
                except MoewError:
                    n_failed += 1
                else:
                    assert summary(found, rows=60) == whole
    assert n_failed > 50


EDITS = [
    "UPDATE moew_candidates SET value = 10 WHERE number = 1",
    "UPDATE moew_candidates SET value = NULL WHERE number = 1",
    "UPDATE moew_candidates SET value = NULL, error = NULL WHERE number = 1",
    "UPDATE moew_candidates SET error = '\"failed\"' WHERE number = 1",
    "UPDATE moew_candidates SET point = '[0.25, 0.5]' WHERE number = 2",
    "UPDATE moew_candidates SET point = 'x' WHERE number = 2",
    "UPDATE moew_candidates SET checksum = '' WHERE number = 3",
    "UPDATE moew_candidates SET digest = 'x' WHERE number = 3",
]


@pytest.mark.parametrize("edit", EDITS)
def test_edited_records_are_refused(file, edit):
    sql(file, edit)
    with pytest.raises(
        InvalidInputError, match=r"not what was written.*'one' in '.*study\.db'.*[Bb]egin anew"
    ):
        told(file)


@pytest.mark.parametrize("layout", [{}, {"layout of the records": 3}, {"layout of the records": 5}])
def test_a_study_of_another_layout_is_refused(file, layout):
    ((text,),) = sql(file, "SELECT settings FROM moew_studies")
    settings = {k: v for k, v in json.loads(text).items() if k != "layout of the records"} | layout
    sql(file, "UPDATE moew_studies SET settings = ?", (json.dumps(settings),))
    with pytest.raises(InvalidInputError, match=r"another version of moew.*study\.db.*[Bb]egin anew"):
        study(file)


def test_a_database_of_another_program_or_an_older_version_is_refused(tmp_path):
    """Versions before this one kept studies in Optuna's tables."""
    url = f"sqlite:///{tmp_path}/other.db"
    optuna.create_study(storage=url, study_name="one", direction="maximize").ask()
    with pytest.raises(InvalidInputError, match=r"not made by moew, or by another version.*[Bb]egin anew"):
        study(url)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE moew_studies SET settings = 'x'",
        "UPDATE moew_studies SET settings = '[]'",
        "UPDATE moew_studies SET n_candidates = 'x'",
        "UPDATE moew_studies SET n_candidates = 4611686018427387904",
        "UPDATE moew_candidates SET value = value + 1",
        "UPDATE moew_candidates SET number = 4611686018427387904 WHERE number = 2",
        "UPDATE moew_candidates SET number = number + 1 WHERE number = 3",
        "DELETE FROM moew_candidates",
        "DELETE FROM moew_studies",
        "DROP TABLE moew_candidates",
        "DROP TABLE moew_studies",
        "ALTER TABLE moew_candidates DROP COLUMN checksum",
        "ALTER TABLE moew_studies RENAME COLUMN settings TO other",
    ],
)
def test_a_damaged_database_is_refused_in_words(file, damage):
    sql(file, damage)
    with pytest.raises(InvalidInputError, match=r"study\.db"):
        told(file)


@pytest.mark.parametrize("number", [1, 3])
def test_a_candidate_that_is_gone_is_not_asked_for_again(file, number):
    made = study(file)
    sql(file, "DELETE FROM moew_candidates WHERE number = ?", (number,))
    for call in (made.trials, lambda: made.ask(1), lambda: made.tell_all([Told(number, 1.0)])):
        with pytest.raises(InvalidInputError, match=rf"candidates \[{number}\] are gone.*study\.db"):
            call()


def test_a_study_that_is_deleted_while_it_is_used_is_told(file):
    made = study(file)
    sql(file, "DELETE FROM moew_studies")
    for call in (made.trials, lambda: made.ask(1)):
        with pytest.raises(InvalidInputError, match=r"the study is gone.*study\.db"):
            call()


@pytest.mark.parametrize("table", ["moew_studies", "moew_candidates"])
def test_a_database_with_a_damaged_page_is_refused_in_words(file, table):
    ((page,),) = sql(file, "SELECT rootpage FROM sqlite_master WHERE name = ?", (table,))
    ((size,),) = sql(file, "PRAGMA page_size")
    data = bytearray(file.read_bytes())
    data[(page - 1) * size : page * size] = b"\xff" * size
    file.write_bytes(data)
    with pytest.raises(
        InvalidInputError, match=r"(cannot be read: .*malformed|not what was written).*study\.db"
    ):
        told(file)


X = np.random.default_rng(0).normal(size=(80, 2))
Y = (X[:, 0] + np.random.default_rng(1).normal(size=80) > 0).astype(int)


def right(y, decided):
    return np.mean(y == decided)


def searched(storage, metric=right, **settings):
    settings = {
        "n_candidates": 8,
        "batch_size": 4,
        "strategies": "example weights",
        "embedding": "label",
        **settings,
    }
    search = MetricSearch.from_settings(
        LogisticRegression(), metric=metric, storage=storage, random_state=0, honest=None, **settings
    )
    return search.fit(X, Y)


def test_scores_that_were_edited_with_their_checksum_are_not_believed(tmp_path):
    path = tmp_path / "study.db"
    search = searched(path, n_candidates=4)
    (row,) = sql(
        path, "SELECT number, point, error, digest FROM moew_candidates WHERE study = 'moew' AND number = 2"
    )
    checksum = search.study_.store._checksum(*row[:2], 0.99, *row[2:])
    assert search.best_score_ < 0.99
    edit = "UPDATE moew_candidates SET value = 0.99, checksum = ? WHERE study = 'moew' AND number = 2"
    sql(path, edit, (checksum,))
    with pytest.raises(InvalidInputError, match=r"candidate 2 .*but 0\.99 was stored.*study\.db"):
        searched(path)


def test_a_metric_that_gives_other_values_each_time_is_refused(tmp_path):
    def noisy(y, decided):
        return np.mean(y == decided) + random.random()

    searched(tmp_path / "study.db", noisy, n_candidates=4)
    with pytest.raises(InvalidInputError, match="other values each time"):
        searched(tmp_path / "study.db", noisy)


@pytest.mark.parametrize(("slow", "n_scored"), [(False, 17), (True, 5)])
def test_what_is_stored_is_scored_again_and_by_a_slow_metric_a_sample(tmp_path, monkeypatch, slow, n_scored):
    metric = make_metric(right, slow=slow)
    searched(tmp_path / "study.db", metric, n_candidates=16)
    counts, original, value = [], _loop.check_values, Evaluator.value

    def counted(*args, **settings):
        counts[-1] += 1
        return value(*args, **settings)

    def check_values(*args):
        counts.append(0)
        with monkeypatch.context() as patch:
            patch.setattr(Evaluator, "value", counted)
            original(*args)

    monkeypatch.setattr(_loop, "check_values", check_values)
    searched(tmp_path / "study.db", metric, n_candidates=16)
    assert counts == [n_scored]


def test_a_candidate_that_another_program_made_is_refused(tmp_path):
    searched(tmp_path / "study.db", n_candidates=4)
    insert = "INSERT INTO moew_candidates (study, number, point, worker, checksum) "
    sql(tmp_path / "study.db", insert + "VALUES ('moew', 5, '[0]', '', '')")
    with pytest.raises(InvalidInputError, match=r"gone or confused.*study\."):
        searched(tmp_path / "study.db")


def summary(search, rows=80):
    trials = [(t.number, t.value, t.alpha.tolist()) for t in search.result_.trials]
    return trials, str(search.result_), search.best_estimator_.predict_proba(X[:rows]).tolist()


@pytest.mark.parametrize("metric", ["balanced_accuracy", "roc_auc", "neg_log_loss"])
def test_a_search_ends_with_the_same_bits_with_a_storage(tmp_path, metric):
    storage = tmp_path / "study.db"
    searched(storage, metric, n_candidates=4, strategies="auto")
    stored, in_memory = (searched(place, metric, strategies="auto") for place in (storage, None))
    assert summary(stored) == summary(in_memory)


def test_predictions_that_are_gone_or_damaged_are_refused(tmp_path):
    path = tmp_path / "study.db"
    searched(path, n_candidates=4)
    assert {entry.name for entry in tmp_path.iterdir()} == {"study.db"}
    for damaged in ("zeroblob(9)", "NULL", "'text'"):
        sql(path, f"UPDATE moew_candidates SET predictions = {damaged} WHERE number = 3")
        with pytest.raises(InvalidInputError, match=r"predictions of candidate 3, as stored, are not what"):
            searched(path)


def test_many_candidates_take_few_statements_and_bytes(tmp_path, monkeypatch):
    scores = np.random.default_rng(0).normal(size=(20, 10_000))
    made = WeightStudy(None, Ball(30, 4.0), sampler="random", storage=tmp_path / "study.db")
    statements = []
    connect = sqlite3.connect

    def traced(*arguments, **settings):
        connection = connect(*arguments, **settings)
        connection.set_trace_callback(statements.append)
        return connection

    monkeypatch.setattr(_databases.sqlite3, "connect", traced)
    for end in (20, 40):
        statements.clear()
        trials = made.ask_until(end)
        kept = [Predictions({"decision": s > 0}, scores=s).with_rounded_scores() for s in scores]
        made.tell_all([Told(t.number, 0.5, content=p.packed()) for t, p in zip(trials, kept, strict=True)])
        assert len(statements) <= 60  # 40 of them are the rows of 20 candidates
    made.close()
    size = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert size < 1.0e6  # 5 MB for 200 candidates
    assert {n: c for n, c in made.store.kept().items() if n < 20} == {
        t: p.packed() for t, p in enumerate(kept)
    }
    assert made.store.kept([3, 39, 7]).keys() == {3, 39, 7} and made.store.kept([]) == {}


def test_what_was_trained_before_a_crash_is_told_within_a_second(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(_loop.time, "monotonic", lambda: clock[0])
    told_at, tell_all = [], WeightStudy.tell_all

    def counted(study, told, **settings):
        told_at.append((clock[0], [one.number for one in told]))
        return tell_all(study, told, **settings)

    def takes_a_while(y, decided):
        clock[0] += 0.4
        return np.mean(y == decided)

    monkeypatch.setattr(WeightStudy, "tell_all", counted)
    searched(tmp_path / "study.db", make_metric(takes_a_while, version="1"), n_candidates=4)
    assert max(len(numbers) for _, numbers in told_at) <= 3
    assert sorted(n for _, numbers in told_at for n in numbers) == list(range(5))


DIES = """
import os, signal, sys
from moew import WeightStudy
from moew.samplers import Ball
from moew.storage._databases import Statements

made = WeightStudy(None, Ball(2, 1.0), sampler="random", storage=sys.argv[1], name="one")
write_all = Statements.write_all

def half(statements, statement, rows):
    statements.cursor.execute("PRAGMA cache_size = 1")  # what is written goes to the file at once
    write_all(statements, statement, rows)
    os.kill(os.getpid(), signal.SIGKILL)

Statements.write_all = half
made.ask_until(2000)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_what_a_killed_writer_had_not_finished_is_taken_back(file):
    here, before = study(file), told(file)
    done = subprocess.run([sys.executable, "-c", DIES, str(file)], check=False)
    assert done.returncode == -9
    assert file.with_name("study.db-journal").stat().st_size > 0  # it was killed within a write
    assert told(file) == before
    assert [trial.number for trial in here.ask(1)] == [4]
    assert {entry.name for entry in file.parent.iterdir()} == {"study.db"}
    assert sql(file, "PRAGMA integrity_check") == [("ok",)]
    here.close()


def test_a_write_that_fails_in_the_middle_leaves_the_file_as_it_was(file, monkeypatch):
    made = study(file)
    made.store.patience = 0.0
    before, write_all = file.read_bytes(), Statements.write_all

    def full(*arguments):
        write_all(*arguments)
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch, pytest.raises(StorageError):
        patch.setattr(Statements, "write_all", full)
        made.tell_all([Told(made.ask_with(np.zeros((1, 2)))[0].number, 1.0)])
    assert file.read_bytes() == before


def test_a_file_whose_folder_was_moved_is_told_in_words(tmp_path):
    (tmp_path / "here").mkdir()
    made = study(tmp_path / "here" / "study.db")
    made.store.patience = 0.5
    (tmp_path / "here").rename(tmp_path / "there")
    with pytest.warns(MoewWarning, match="tried again"), pytest.raises(StorageError, match="unable to open"):
        made.ask(1)
    (tmp_path / "there").rename(tmp_path / "here")
    assert len(made.ask(1)) == 1
    made.close()


def test_a_file_that_is_deleted_is_not_begun_anew_without_a_word(file):
    made = study(file)
    made.store.patience = 0.0
    file.unlink()
    with pytest.raises(StorageError, match="unable to open"):
        made.ask(1)
    assert not file.exists()


def test_a_database_that_is_locked_for_a_moment_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(_databases, "BUSY", 0.1)
    made = study(tmp_path / "study.db")
    other = sqlite3.connect(tmp_path / "study.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN EXCLUSIVE")
    threading.Timer(0.6, lambda: other.execute("COMMIT")).start()
    with pytest.warns(MoewWarning, match="database is locked.*tried again"):
        assert len(made.ask(2)) == 2
    made.close()
    other.close()


def test_a_write_whose_confirmation_is_lost_is_not_done_twice(tmp_path, monkeypatch):
    made = study(tmp_path / "study.db")
    transaction, lost = Sqlite.transaction, [False]

    @contextlib.contextmanager
    def without_confirmation(database, *, writes=True):
        with transaction(database, writes=writes) as statements:
            yield statements
        if writes and not lost[0]:
            lost[0] = True
            raise psycopg_error("server closed the connection unexpectedly")

    def psycopg_error(words):
        return type("OperationalError", (Exception,), {"__module__": "psycopg"})(words)

    for write in (lambda: made.ask(2), lambda: made.tell_all([Told(0, 0.5), Told(1, error="no")])):
        lost[0] = False
        with monkeypatch.context() as patch, pytest.warns(MoewWarning, match="closed the connection"):
            patch.setattr(Sqlite, "transaction", without_confirmation)
            write()
    assert [(t.number, t.pending) for t in made.trials()] == [(0, False), (1, False)]
    made.close()


def test_candidates_that_were_told_are_not_told_otherwise(file):
    store = study(file).store
    study(file).ask(2)
    assert store.finish([Told(4, 1.0), Told(2, 2.0), Told(1, 5.0)]) == [1]
    assert not store.records()[4].finished  # none was ended
    assert store.finish([Told(4, 1.0), Told(2, 2.0)]) == []
    assert store.finish([Told(4, 1.0, content=b"other")]) == [4]
    assert store.records()[4].value == 1.0


def test_values_are_kept_to_the_bit(file):
    made, numbers = study(file), [5e-324, -1e308, 0.1 + 0.2, 1 / 3, -0.0, 1.0]
    for trial, number in zip(made.ask(6), numbers, strict=True):
        made.tell(trial.number, number)
    digests = [hashlib.sha256(np.float64(n + 0.0).tobytes()).digest() for n in numbers]
    found = [hashlib.sha256(np.float64(t.value).tobytes()).digest() for t in study(file).trials()[4:]]
    assert found == digests


def test_studies_share_a_file_and_a_fork_may_use_what_it_inherits(file):
    other = WeightStudy(None, Ball(2, 1.0), sampler="random", storage=file, name="two", seed=1)
    assert [trial.number for trial in other.ask(2)] == [0, 1]
    assert len(told(file)) == 4
    here = study(file)
    if hasattr(os, "fork"):
        with warnings.catch_warnings():
            # Python warns of forks with threads, and so does JAX where another test has loaded it.
            warnings.simplefilter("ignore", (DeprecationWarning, RuntimeWarning))
            child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                here.ask_until(6)
            os._exit(0)
        os.waitpid(child, 0)
        assert len(here.trials()) == 6
    other.close()
