"""Model files of strangers: sizes are checked before unpacking, and damage is told in words."""

import json
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from sklearn.linear_model import LogisticRegression

from moew.exceptions import InvalidInputError, StateError
from moew.saving import _files as files
from moew.saving import load_model, needs_trust, pack_model, read_files, reading, write_files

PLACE = Path("search.moew")
X, Y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]


@pytest.fixture
def model():
    return pack_model(LogisticRegression().fit(X, Y), X, "model")


def test_a_compressed_bomb_is_refused_before_it_is_unpacked(model, monkeypatch):
    content = BytesIO(model["model.skops"])
    with zipfile.ZipFile(content, "a", compression=zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        packed.writestr("zeros.npy", bytes(20 * 2**20))
    bomb = {"model.skops": content.getvalue()}
    assert len(bomb["model.skops"]) < 2**16
    monkeypatch.setattr(files, "MOST_UNPACKED", 2**20)

    def unpack(*_, **__):
        raise AssertionError("it was unpacked")

    with monkeypatch.context() as patch:
        patch.setattr("skops.io.get_untrusted_types", unpack)
        patch.setattr("skops.io.loads", unpack)
        with pytest.raises(InvalidInputError, match=r"would take 20\.0 MB.*up to 1\.0 MB.*trusted=True"):
            load_model(bomb, PLACE, "model")
    assert load_model(bomb, PLACE, "model", trusted=True).predict(X).tolist() == Y


def test_a_large_file_that_is_not_compressed_is_loaded(model, monkeypatch, tmp_path):
    monkeypatch.setattr(files, "MOST_UNPACKED", 1)
    write_files(tmp_path / "it", model)
    assert load_model(read_files(tmp_path / "it"), PLACE, "model").predict(X).tolist() == Y


def test_files_are_the_same_bytes_each_time(model, tmp_path):
    write_files(tmp_path / "one", model)
    write_files(tmp_path / "two", read_files(tmp_path / "one"))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyError("votes"), "it has no entry 'votes'"),
        (json.JSONDecodeError("Expecting value", "{", 1), "its JSON cannot be read on from line 1, column 2"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), "byte 0 is no text"),
        (RecursionError(), "it is nested too deeply"),
        (zipfile.BadZipFile("no"), "it is no zip file, or its end is missing"),
        (TypeError("odd"), r"something in it is not as moew writes it \(TypeError: odd\)"),
    ],
)
def test_errors_of_reading_become_sentences(tmp_path, error, words):
    said = f"is damaged or of another version: {words}. Make it again"
    with pytest.raises(StateError, match=said), reading(tmp_path / "search.moew"):
        raise error


def test_a_damaged_pickle_is_told_in_words():
    files = {"model.pickle": b"\x80\x04K"}
    assert needs_trust(files)
    with pytest.raises(StateError, match=r"model\.pickle is damaged"):
        load_model(files, PLACE, "model", trusted=True)
