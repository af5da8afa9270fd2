"""Files of a run that were changed: one line and exit status 1, whatever was done to which entry."""

import json
import os
import shutil
from copy import deepcopy
from pathlib import Path

import pytest
from tables import WITHOUT_FOLDS, change_entries, entries, moew, refused, write_classes

FIT = ("fit", "train.csv", "--validation", "valid.csv", "--label", "y", "--metric", "worst_class_error")
ODD = [None, "odd", [[1]]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with two runs: a network with an autoencoder and a rule, and a logistic regression."""
    folder, before = tmp_path_factory.mktemp("runs"), Path.cwd()
    os.chdir(folder)
    try:
        write_classes(folder)
        network = ("--model", "network", "--model-option", "steps=5", "--decision", "recall=0.9")
        moew(
            *FIT,
            *network,
            "--candidates",
            "2",
            "--set",
            "batch_size=2",
            "--set",
            "final=best",
            "--id",
            "id",
            "--out",
            "network",
        )
        moew(*FIT, "--model", "logistic", *WITHOUT_FOLDS, "--id", "id", "--out", "logistic")
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def folder(runs, own_folder):
    shutil.copytree(runs, own_folder, dirs_exist_ok=True)
    return own_folder


def places(content, path=()):
    """Where everything is in a JSON value; of a list the first entry stands for all."""
    yield path
    entries = content.items() if isinstance(content, dict) else []
    entries = list(enumerate(content))[:1] if isinstance(content, list) else entries
    for key, value in entries:
        yield from places(value, (*path, key))


def changed(content):
    """(what was done, the content after it) for every entry that is deleted or replaced by another type."""
    for path in places(content):
        if not path:
            continue
        for odd in ["deleted", *ODD]:
            copy = deepcopy(content)
            *above, last = path
            holder = copy
            for key in above:
                holder = holder[key]
            if odd == "deleted":
                del holder[last]
            else:
                holder[last] = odd
            yield (path, odd), copy


def rows_for(command):
    return () if command == "report" else ("test.csv",)


CHANGES = [
    ("network", "search.json", "predict"),
    pytest.param("logistic", "search.json", "weights", marks=pytest.mark.heavy),
    ("network", "model.json", "predict"),
    pytest.param("logistic", "report.json", "report", marks=pytest.mark.heavy),
]


@pytest.mark.parametrize(("run", "name", "command"), CHANGES)
def test_no_change_of_an_entry_ends_in_a_traceback(folder, run, name, command):
    report, search = Path(run, "report.json"), Path(run, "search.moew")
    whole = report.read_bytes() if command == "report" else entries(search)[name]
    n_failed = 0
    for what, content in changed(json.loads(whole)):
        if what[0][0] in ("result", "parameters"):  # which tests of saved searches change
            continue
        if command == "report":
            report.write_text(json.dumps(content))
        else:
            change_entries({name: json.dumps(content)}, search)
        try:
            done = moew(command, run, *rows_for(command), status=None)
        except Exception as error:
            raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
        # An entry may be as good as before, or be one that the rows do not fit, which is told as such.
        assert done.exit_code in (0, 1, 2), what
        if done.exit_code:
            *notes, line = done.stderr.splitlines()
            told = ("moew: note", "moew: warning")
            assert line.startswith("moew: ") and all(note.startswith(told) for note in notes), what
            n_failed += done.exit_code == 1
    assert n_failed > 30


FILES = [
    ("network", "search.moew", "predict"),
    ("logistic", "search.moew", "weights"),
    ("logistic", "report.json", "report"),
]


@pytest.mark.parametrize(("run", "name", "command"), FILES)
@pytest.mark.parametrize("share", [0, 0.3, 0.99])
def test_a_file_that_was_cut_off_is_said(folder, run, name, command, share):
    path = Path(run, name)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    line = refused(command, run, *rows_for(command), status=1)
    assert f"{path} is damaged" in line and line.count("\n") == 1


@pytest.mark.parametrize("content", ["[]", "3", "null", '"text"', "{}", "[" * 100_000])
def test_json_of_something_else_is_said(folder, content):
    for name in ("search.json", "model.json"):
        before = entries("network/search.moew")[name]
        change_entries({name: content}, "network/search.moew")
        line = refused("predict", "network", "test.csv", status=1)
        assert f"network/search.moew/{name}" in line and line.count("\n") == 1
        change_entries({name: before}, "network/search.moew")
    Path("logistic/report.json").write_text(content)
    line = refused("report", "logistic", status=1)
    assert "logistic/report.json" in line and line.count("\n") == 1
