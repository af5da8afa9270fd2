"""Names in a stranger's files reach the terminal as text, never as escape sequences."""

import io
import json
from pathlib import Path

import pytest
from tables import WITHOUT_FOLDS, change_entries, entries, fit_once, moew, refused, write_classes, zipped

FIT = (
    "fit",
    "train.csv",
    "--validation",
    "valid.csv",
    "--label",
    "y",
    "--metric",
    "accuracy",
    *WITHOUT_FOLDS,
)
REWRITE = "\x1b[1A\x1b[2K\x9b2K\u202eall is well"  # goes up a line and deletes it


@pytest.fixture(autouse=True)
def folder(own_folder):
    write_classes(own_folder)
    return own_folder


def assert_harmless(text):
    assert not any(odd in text for odd in ("\x1b", "\x9b", "\u202e"))


def rename_the_models_class(name):
    model = entries(io.BytesIO(entries()["model.skops"]))
    schema = {**json.loads(model["schema.json"]), "__class__": name}
    change_entries({"model.skops": zipped({**model, "schema.json": json.dumps(schema)})})


def test_the_question_whether_to_trust_cannot_be_rewritten():
    fit_once(*FIT, "--model", "logistic")
    rename_the_models_class(REWRITE)
    line = refused("predict", "run", "test.csv")
    assert "add --trust" in line and "\\x1b[1A\\x1b[2K" in line
    assert_harmless(line)


def test_a_folders_own_name_cannot_either():
    odd = Path(f"run{REWRITE}")
    moew(*FIT, "--model", "logistic", "--out", odd)
    file = odd / "search.moew"
    change_entries({"model.skops": None, "model.pickle": entries(file)["model.skops"]}, file)
    line = refused("predict", odd, "test.csv")
    assert "add --trust" in line
    assert_harmless(line)


def test_names_of_classes_and_settings_are_shown_as_escapes():
    for name in ("train.csv", "valid.csv", "test.csv"):
        Path(name).write_text(Path(name).read_text().replace(",yes", f",yes{REWRITE}"))
    shown = moew(*FIT[:-8], *WITHOUT_FOLDS, "--metric", "fpr_gap", "--metric-column", "group=id", status=None)
    assert_harmless(shown.stdout + shown.stderr)
    done = moew(*FIT, "--model", "logistic")
    assert_harmless(done.stdout + done.stderr)
    as_json = moew("predict", "run", "test.csv", "--json").stdout
    assert_harmless(as_json)
    assert f"yes{REWRITE}" in json.loads(as_json)["predictions"]["prediction"]
    Path("odd.toml").write_text(json.dumps(f"a{REWRITE}", ensure_ascii=True) + " = 1\n")
    assert_harmless(refused("fit", "--config", "odd.toml"))


def test_a_csv_is_escaped_on_a_terminal_only(monkeypatch, capsys):
    from moew.cli import _shown

    _shown.show_csv(f"a\n{REWRITE}\n")
    assert capsys.readouterr().out == f"a\n{REWRITE}\n"

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    seen = Terminal()
    monkeypatch.setattr("sys.stdout", seen)
    _shown.show_csv(f"a\n{REWRITE}\n")
    assert_harmless(seen.getvalue())
