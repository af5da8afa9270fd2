"""Storages as people leave them: cut off, damaged, something else, mistyped."""

import json
import warnings

import numpy as np
import pytest

from moew import WeightStudy
from moew.exceptions import InvalidInputError, MoewWarning
from moew.samplers import Ball


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
