"""Model files of strangers: sizes are checked before unpacking, and damage is told in words."""

import json
import zipfile

import pytest
from sklearn.linear_model import LogisticRegression

from moew.exceptions import InvalidInputError, StateError
from moew.saving import _files as files
from moew.saving import load_model, needs_trust, reading, save_model

X, Y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]


@pytest.fixture
def model(tmp_path):
    save_model(LogisticRegression().fit(X, Y), tmp_path, X)
    return tmp_path / "model.skops"


def test_a_compressed_bomb_is_refused_before_it_is_unpacked(model, monkeypatch):
    with zipfile.ZipFile(model, "a", compression=zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        packed.writestr("zeros.npy", bytes(20 * 2**20))
    assert model.stat().st_size < 2**16
    monkeypatch.setattr(files, "MOST_UNPACKED", 2**20)

    def unpack(*_, **__):
        raise AssertionError("it was unpacked")

    with monkeypatch.context() as patch:
        patch.setattr("skops.io.get_untrusted_types", unpack)
        patch.setattr("skops.io.loads", unpack)
        for ask in (load_model, needs_trust):
            with pytest.raises(InvalidInputError, match=r"would take 20\.0 MB.*up to 1\.0 MB.*trusted=True"):
                ask(model.parent)
    assert load_model(model.parent, trust=True).predict(X).tolist() == Y


def test_a_large_file_that_is_not_compressed_is_loaded(model, monkeypatch):
    monkeypatch.setattr(files, "MOST_UNPACKED", 1)
    assert load_model(model.parent).predict(X).tolist() == Y


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
    with pytest.raises(StateError, match=said), reading(tmp_path / "parts.json"):
        raise error


def test_a_damaged_pickle_is_told_in_words(model):
    model.unlink()
    model.with_suffix(".pickle").write_bytes(b"\x80\x04K")
    with pytest.raises(StateError, match=r"model\.pickle is damaged"):
        load_model(model.parent, trust=True)
