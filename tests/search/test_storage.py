"""Storages as people leave them: cut off, damaged, something else, mistyped."""

import errno
import json
import os
import random
import sqlite3
import threading
import warnings

import numpy as np
import optuna
import pytest
import sqlalchemy
from sklearn.linear_model import LogisticRegression
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from moew import ExampleWeightSearch, WeightStudy, make_metric
from moew.exceptions import InvalidInputError, MoewError, MoewWarning, StorageError
from moew.metrics import Predictions
from moew.samplers import Ball
from moew.search import _loop
from moew.search._evaluate import Evaluator
from moew.search._storage import _opening
from moew.search._storage._checks import end_record
from moew.search._storage._journal import open_journal
from moew.search._storage._trials import OptunaTrials
from moew.search._study import Told


def study(path):
    return WeightStudy(None, Ball(2, 1.0), sampler="random", storage=path, name="one")


def told(path):
    return [(one.number, one.value) for one in study(path).trials()]


@pytest.fixture
def journal(tmp_path):
    path = tmp_path / "study.log"
    made = study(path)
    for candidate in made.ask(4):
        made.tell(candidate.number, float(candidate.number))
    return path


@pytest.mark.parametrize("cut", [1, 20])
def test_a_record_that_was_cut_off_is_taken_away_and_the_study_goes_on(journal, cut):
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-cut])
    with pytest.warns(MoewWarning, match="cut off"):
        again = study(journal)
    assert [one.number for one in again.pending()] == [3]
    again.tell(3, 3.0)
    (new,) = again.ask(1)
    again.tell(new.number, 9.0)
    assert told(journal) == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0), (4, 9.0)]
    assert all(json.loads(line) for line in journal.read_text().splitlines())


def test_a_journal_cut_off_in_its_first_record_begins_anew(journal):
    journal.write_bytes(journal.read_bytes()[:5])
    with pytest.warns(MoewWarning, match="cut off"):
        assert study(journal).trials() == []


def test_a_last_line_that_is_no_record_is_taken_away_too(journal):
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]) + lines[-1][:30] + b"\n")
    with pytest.warns(MoewWarning, match="cut off"):
        assert [one.number for one in study(journal).pending()] == [3]


def test_an_empty_file_is_a_new_journal(tmp_path):
    (tmp_path / "study.log").touch()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert told(tmp_path / "study.log") == []


def test_another_file_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n3,4")
    with pytest.raises(InvalidInputError, match="no journal"):
        study(path)
    assert path.read_text() == "a,b\n1,2\n3,4"


@pytest.mark.parametrize("cut", [lambda line: line[:10], lambda line: b"3", lambda line: b"{}"])
def test_a_journal_damaged_in_the_middle_is_said_to_be(journal, cut):
    lines = journal.read_bytes().split(b"\n")
    lines[2] = cut(lines[2])
    journal.write_bytes(b"\n".join(lines))
    with pytest.raises(InvalidInputError, match="damaged"):
        study(journal)


@pytest.mark.parametrize("place", ["missing/study.log", "."])
def test_a_path_that_cannot_be_a_file_is_named(tmp_path, place):
    with pytest.raises(InvalidInputError, match="folder that exists"):
        study(tmp_path / place)


@pytest.mark.parametrize(
    "url",
    [
        "sqlte:///study.db",
        "postgresql+nodriver://me:secret@host/name",
        "://x",
        "sqlite:////nowhere/at/all.db",
        "postgresql://me:secret@host:port/name",
        "redis://host",
    ],
)
def test_a_mistyped_url_is_told_without_its_password(url):
    with pytest.raises(InvalidInputError, match=r"sqlite:///study\.db") as caught:
        study(url)
    assert "secret" not in str(caught.value)


def test_a_file_that_is_no_database_is_told(tmp_path):
    (tmp_path / "text.db").write_text("no database, " * 100)
    with pytest.raises(InvalidInputError, match="not a database"):
        study(f"sqlite:///{tmp_path}/text.db")


def test_alphas_after_a_cut_are_those_of_the_whole_journal(journal):
    before = [one.alpha for one in study(journal).trials()]
    journal.write_bytes(journal.read_bytes()[:-3])
    with pytest.warns(MoewWarning):
        again = study(journal)
    np.testing.assert_array_equal(before, [one.alpha for one in again.trials()])


def test_a_full_disk_names_the_journal(journal, monkeypatch):
    made = study(journal)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    made._store.patience = 1.0
    words = r"study\.log cannot be written: No space left.*; make room"
    with monkeypatch.context() as patch, pytest.warns(MoewWarning, match=f"{words}.*tried again"):
        patch.setattr("os.fsync", full)
        with pytest.raises(StorageError, match=f"{words}.*goes on from there"):
            made.ask(1)
    assert [trial.number for trial in made.ask(2)] == [4, 5]


def test_failures_of_megabytes_are_cut(journal):
    made = study(journal)
    (candidate,) = made.ask(1)
    made.tell(candidate.number, error="first " + "x" * 5_000_000 + " last")
    assert journal.stat().st_size < 20_000
    error = study(journal).trials()[-1].error
    assert error.startswith("first ") and error.endswith(" last") and "characters are left out" in error


def fit(path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    search = ExampleWeightSearch(
        LogisticRegression(),
        embedding="label",
        n_batches=1,
        batch_size=2,
        validation=0.3,
        final="best",
        guard=False,
        honest=None,
        storage=path,
        random_state=0,
    )
    return search.fit(X, y)


def changed(record):
    """The record with each of its entries deleted, or replaced by something else."""
    for key in record:
        yield {name: value for name, value in record.items() if name != key}
        for odd in (None, "odd", [[1]], -7):
            yield {**record, key: odd}
        if isinstance(record[key], dict):
            yield from ({**record, key: entry} for entry in changed(record[key]))


def test_no_change_of_a_journal_ends_in_a_raw_error(tmp_path):
    path = tmp_path / "study.log"
    fit(path)
    lines = path.read_text().splitlines()
    records = [json.loads(line) for line in lines]
    of_kind = {(record["op_code"], *record.get("user_attr", ())): at for at, record in enumerate(records)}
    n_failed = 0
    for at in of_kind.values():
        for odd in changed(records[at]):
            path.write_text("\n".join([*lines[:at], json.dumps(odd), *lines[at + 1 :]]) + "\n")
            try:
                fit(path)  # some entries do not matter
            except MoewError:
                n_failed += 1
    assert n_failed > 50


def edit(journal, change):
    """Let `change` alter each record of the journal, which is a dict, in place."""
    records = [json.loads(line) for line in journal.read_text().splitlines()]
    before = json.dumps(records)
    for record in records:
        change(record)
    assert json.dumps(records) != before
    journal.write_text("".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records))


def better_score(record):
    if record.get("values") == [1.0]:
        record["values"] = [10.0]


def another_alpha(record):
    for content in record.get("user_attr", {}).values():
        if "alphas" in content:
            content["alphas"][2][0] += 0.25


def no_checksum(record):
    for content in record.get("user_attr", {}).values():
        content.pop("checksum", None)


def no_end(record):
    if "told" in record.get("user_attr", {}):
        record["user_attr"] = {"gone": record["user_attr"]["told"]}


@pytest.mark.parametrize("change", [better_score, another_alpha, no_checksum, no_end])
def test_edited_records_are_refused(journal, change):
    edit(journal, change)
    with pytest.raises(
        InvalidInputError, match=r"not what was written.*'one' in '.*study\.log'.*[Bb]egin anew"
    ):
        told(journal)


def test_a_study_of_another_layout_is_refused(journal):
    edit(journal, lambda record: record.get("user_attr", {}).get("moew", {}).pop("layout of the records", 0))
    with pytest.raises(InvalidInputError, match=r"another version of moew.*study\.log"):
        study(journal)


def test_a_study_of_another_program_is_refused(tmp_path):
    url = f"sqlite:///{tmp_path}/other.db"
    optuna.create_study(storage=url, study_name="one", direction="maximize").ask()
    with pytest.raises(InvalidInputError, match="not made by moew"):
        study(url)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE trial_user_attributes SET value_json = '{' WHERE key = 'told'",
        "UPDATE trial_user_attributes SET value_json = '3' WHERE key = 'told'",
        "UPDATE study_user_attributes SET value_json = '[]' WHERE key LIKE 'alphas%'",
        "UPDATE study_user_attributes SET value_json = 'x' WHERE key = 'moew'",
        "UPDATE trials SET state = 'NONE' WHERE number = 2",
        "UPDATE trial_values SET value = value + 1",
        "DELETE FROM trial_values",
        "UPDATE trials SET number = 4611686018427387904 WHERE number = 2",
        "DROP TABLE trial_user_attributes",
    ],
)
def test_a_damaged_database_is_refused_in_words(tmp_path, damage):
    url = damaged_database(tmp_path, damage)
    with pytest.raises(InvalidInputError, match=r"study\.db"):
        told(url)


def damaged_database(folder, damage):
    """The URL of a study of four candidates, damaged by a statement."""
    url = f"sqlite:///{folder}/study.db"
    made = study(url)
    for candidate in made.ask(4):
        made.tell(candidate.number, float(candidate.number))
    made.close()
    with sqlite3.connect(folder / "study.db") as database:
        database.execute(damage)
    return url


def test_a_last_candidate_that_is_gone_is_not_asked_for_again(tmp_path):
    url = damaged_database(tmp_path, "DELETE FROM trials WHERE number = 3")
    with pytest.raises(InvalidInputError, match=r"candidates \[3\] are gone.*study\.db"):
        study(url).ask(1)


def test_a_database_whose_table_of_versions_is_damaged_is_refused_in_words(tmp_path):
    url, file = f"sqlite:///{tmp_path}/study.db", tmp_path / "study.db"
    study(url).close()
    with sqlite3.connect(file) as database:
        found = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'version_info'")
        (page,) = found.fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
    data = bytearray(file.read_bytes())
    data[(page - 1) * size : page * size] = b"\xff" * size
    file.write_bytes(data)
    with pytest.raises(InvalidInputError, match=r"study\.db cannot be read.*malformed\)\. Begin anew"):
        study(url)


X = np.random.default_rng(0).normal(size=(80, 2))
Y = (X[:, 0] + np.random.default_rng(1).normal(size=80) > 0).astype(int)


def right(y, decided):
    return np.mean(y == decided)


def searched(storage, metric=right, **settings):
    settings = {"n_batches": 2, "batch_size": 4, "guard": False, "embedding": "label", **settings}
    search = ExampleWeightSearch(
        LogisticRegression(), metric=metric, storage=storage, random_state=0, honest=None, **settings
    )
    return search.fit(X, Y)


def test_scores_that_were_edited_with_their_checksum_are_not_believed(tmp_path):
    path = tmp_path / "study.log"
    best = searched(path, n_batches=1).best_score_
    opened = optuna.load_study(study_name="moew", storage=open_journal(path))
    alphas = {n: alpha for n, (alpha, _) in OptunaTrials(opened, str(path))._alphas().items()}

    def edited(record):
        if record.get("trial_id") == 2 and "told" in record.get("user_attr", {}):
            end = record["user_attr"]["told"]
            told = Told(2, 0.99)
            record["user_attr"]["told"] = end_record(told, alphas[2], end["content"], end["place"])
        if record.get("trial_id") == 2 and record.get("values"):
            record["values"] = [0.99]

    edit(path, edited)
    assert best < 0.99
    with pytest.raises(InvalidInputError, match=r"candidate 2 .*but 0\.99 was stored.*study\.log"):
        searched(path)


def test_a_metric_that_gives_other_values_each_time_is_refused(tmp_path):
    def noisy(y, decided):
        return np.mean(y == decided) + random.random()

    searched(tmp_path / "study.log", noisy, n_batches=1)
    with pytest.raises(InvalidInputError, match="other values each time"):
        searched(tmp_path / "study.log", noisy)


@pytest.mark.parametrize(("slow", "n_scored"), [(False, 17), (True, 5)])
def test_what_is_stored_is_scored_again_and_by_a_slow_metric_a_sample(tmp_path, monkeypatch, slow, n_scored):
    metric = make_metric(right, slow=slow)
    searched(tmp_path / "study.log", metric, n_batches=4)
    counts, original, value = [], _loop._kept_predictions, Evaluator.value

    def counted(*args, **settings):
        counts[-1] += 1
        return value(*args, **settings)

    def kept_predictions(*args):
        counts.append(0)
        with monkeypatch.context() as patch:
            patch.setattr(Evaluator, "value", counted)
            return original(*args)

    monkeypatch.setattr(_loop, "_kept_predictions", kept_predictions)
    searched(tmp_path / "study.log", metric, n_batches=4)
    assert counts == [n_scored]


@pytest.mark.parametrize("kind", ["journal", "sqlite"])
def test_a_trial_that_another_program_made_is_refused(tmp_path, kind):
    storage = storages(tmp_path)[kind]
    search = searched(storage, n_batches=1)
    search.study_.optuna_study.ask()
    search.study_.close()
    with pytest.raises(InvalidInputError, match=r"candidate 5 has no alpha: another program.*study\."):
        searched(storage)


def test_doubled_lines_of_a_journal_are_noticed(tmp_path):
    searched(tmp_path / "study.log", n_batches=1)
    lines = (tmp_path / "study.log").read_text().splitlines()
    made = next(i for i, line in enumerate(lines) if line.startswith('{"op_code":4'))
    (tmp_path / "study.log").write_text("\n".join([*lines, lines[made], ""]))
    with pytest.raises(InvalidInputError, match="has no alpha"):
        searched(tmp_path / "study.log")


def test_a_candidate_whose_record_is_gone_is_noticed(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    made = study(url)
    made.ask(4)
    made.close()
    with sqlite3.connect(tmp_path / "study.db") as database:
        database.execute("DELETE FROM trials WHERE number = 1")
    with pytest.raises(InvalidInputError, match=r"candidates \[1\] are gone.*study\.db"):
        told(url)


def storages(tmp_path):
    return {
        "journal": tmp_path / "study.log",
        "sqlite": f"sqlite:///{tmp_path}/study.db",
        "table": optuna.storages.RDBStorage(f"sqlite:///{tmp_path}/optuna.db"),  # as in PostgreSQL
        "other": optuna.storages.InMemoryStorage(),
    }


def summary(search):
    trials = [(t.number, t.value, t.alpha.tolist()) for t in search.result_.trials]
    return trials, str(search.result_), search.best_estimator_.predict_proba(X).tolist()


@pytest.mark.parametrize("kind", ["journal", "sqlite", "table", "other"])
@pytest.mark.parametrize("metric", ["balanced_accuracy", "roc_auc", "neg_log_loss"])
def test_a_search_ends_with_the_same_bits_in_every_storage(tmp_path, kind, metric):
    storage = storages(tmp_path)[kind]
    settings = {"guard": True, "final": "average"}
    searched(storage, metric, n_batches=1, **settings)
    assert summary(searched(storage, metric, **settings)) == summary(searched(None, metric, **settings))


@pytest.mark.parametrize("kind", ["journal", "sqlite"])
def test_predictions_that_are_gone_or_damaged_are_refused(tmp_path, kind):
    storage = storages(tmp_path)[kind]
    searched(storage, n_batches=1)
    (folder,) = tmp_path.glob("*.predictions")
    file = next(folder.iterdir())
    content = file.read_bytes()
    file.write_bytes(content[:-9] + b"123456789")
    with pytest.raises(
        InvalidInputError, match=r"predictions of candidate \d+ in .*study.*not what was written"
    ):
        searched(storage)
    file.unlink()
    with pytest.raises(InvalidInputError, match=r"predictions of candidate \d+ are missing.*move with it"):
        searched(storage)
    file.write_bytes(content)
    searched(storage)


def test_predictions_in_a_table_that_are_gone_or_damaged_are_refused(tmp_path):
    storage = storages(tmp_path)["table"]
    searched(storage, n_batches=1)
    with sqlite3.connect(tmp_path / "optuna.db") as database:
        (n,) = database.execute("SELECT count(*) FROM moew_contents").fetchone()
        database.execute("UPDATE moew_contents SET content = zeroblob(9) WHERE trial_id = 3")
    assert n > 3 and not list(tmp_path.glob("*.predictions"))
    with pytest.raises(InvalidInputError, match=r"predictions of candidate \d+, as stored, are not what"):
        searched(storage)
    with sqlite3.connect(tmp_path / "optuna.db") as database:
        database.execute("DELETE FROM moew_contents WHERE trial_id = 3")
    with pytest.raises(InvalidInputError, match=r"predictions of candidate \d+, as stored, are not what"):
        searched(storage)


def test_a_study_whose_predictions_are_attributes_in_a_database_goes_on(tmp_path, monkeypatch):
    storage = storages(tmp_path)["table"]
    with monkeypatch.context() as before_the_table:
        before_the_table.setattr(_opening, "_kind_of", lambda storage: OptunaTrials)
        searched(storage, n_batches=1)
    assert summary(searched(storage)) == summary(searched(None))


def test_many_candidates_take_few_statements_and_bytes(tmp_path):
    scores = np.random.default_rng(0).normal(size=(20, 10_000))
    made = WeightStudy(None, Ball(30, 4.0), sampler="random", storage=storages(tmp_path)["sqlite"])
    statements = []
    engine = made.optuna_study._storage._backend.engine
    sqlalchemy.event.listen(engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    for end in (20, 40):
        statements.clear()
        trials = made.ask_until(end)
        kept = [Predictions({"decision": s > 0}, scores=s).with_rounded_scores() for s in scores]
        made.tell_all([Told(t.number, 0.5, content=p.packed()) for t, p in zip(trials, kept, strict=True)])
        assert len(statements) <= 60
    made.close()
    size = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert size < 1.1e6  # 5 MB for 200 candidates, and the empty tables
    assert {n: c for n, c in made.kept().items() if n < 20} == {t: p.packed() for t, p in enumerate(kept)}


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
    searched(tmp_path / "study.log", make_metric(takes_a_while, version="1"), n_batches=1)
    assert max(len(numbers) for _, numbers in told_at) <= 3
    assert sorted(n for _, numbers in told_at for n in numbers) == list(range(5))


def test_a_record_that_a_dead_writer_left_half_is_taken_away_by_the_next(journal):
    here, there = study(journal), study(journal)
    here.ask(1)
    with journal.open("ab") as file:  # a third process is killed while it writes
        file.write(b'{"op_code":8,"worker_id":"a process that is k')
    assert [trial.number for trial in there.ask(1)] == [5]
    assert [trial.number for trial in here.ask(1)] == [6]
    assert len(study(journal).trials()) == 7  # 4 of the fixture
    assert all(json.loads(line) for line in journal.read_text().splitlines())


def test_a_write_that_fails_in_the_middle_leaves_the_journal_as_it_was(journal, monkeypatch):
    made = study(journal)
    made._store.patience = 0.0
    before = journal.read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch, pytest.raises(StorageError):
        patch.setattr("os.fsync", full)
        made.ask(1)
    assert journal.read_bytes() == before


def test_a_lock_that_a_killed_optuna_left_does_not_hold_up(journal):
    lock = journal.with_name(f"{journal.name}.lock")
    lock.symlink_to(journal)
    assert len(study(journal).ask(1)) == 1
    assert not lock.is_symlink()


def test_a_journal_whose_folder_was_moved_is_told_in_words(tmp_path):
    (tmp_path / "here").mkdir()
    made = study(tmp_path / "here" / "study.log")
    made._store.patience = 0.5
    (tmp_path / "here").rename(tmp_path / "there")
    with pytest.warns(MoewWarning, match="tried again"), pytest.raises(StorageError, match=r"No such file"):
        made.ask(1)
    (tmp_path / "there").rename(tmp_path / "here")
    assert len(made.ask(1)) == 1


def test_a_database_that_is_locked_for_a_moment_is_waited_for(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db?timeout=0.1"
    made = study(url)
    other = sqlite3.connect(tmp_path / "study.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN EXCLUSIVE")
    threading.Timer(0.6, lambda: other.execute("COMMIT")).start()
    with pytest.warns(MoewWarning, match="database is locked.*tried again"):
        assert len(made.ask(2)) == 2
    made.close()


def test_a_write_whose_confirmation_is_lost_is_not_done_twice(tmp_path, monkeypatch):
    made = study(f"sqlite:///{tmp_path}/study.db")
    commit, lost = Session.commit, [False]

    def without_confirmation(session):
        commit(session)
        if not lost[0]:
            lost[0] = True
            raise OperationalError("COMMIT", {}, psycopg_error("server closed the connection unexpectedly"))

    def psycopg_error(words):
        return type("OperationalError", (Exception,), {"__module__": "psycopg"})(words)

    for write in (lambda: made.ask(2), lambda: made.tell_all([Told(0, 0.5), Told(1, error="no")])):
        lost[0] = False
        with monkeypatch.context() as patch, pytest.warns(MoewWarning, match="closed the connection"):
            patch.setattr(Session, "commit", without_confirmation)
            write()
    assert [(t.number, t.pending) for t in made.trials()] == [(0, False), (1, False)]
    made.close()


def test_a_study_of_version_0_1_is_refused_with_a_sentence(tmp_path):
    """As version 0.1 wrote it: one trial, with its alpha as attributes, and settings without a layout."""
    path = tmp_path / "old.log"
    old = optuna.create_study(
        study_name="one",
        direction="maximize",
        storage=optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(path))),
    )
    old.set_user_attr("moew", {"fingerprint of data, model and metric": "", "seed": 0})
    trial = old.ask()
    trial.set_user_attr("alphas", [[0.0, 0.0]])
    trial.set_user_attr("alpha", [0.0, 0.0])
    with pytest.raises(InvalidInputError, match=r"another version of moew.*old\.log.*[Bb]egin anew"):
        study(path)
