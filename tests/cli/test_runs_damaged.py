"""Files of a run that were changed: one line and exit status 1, whatever was done to which entry."""

import json
import os
import shutil
from copy import deepcopy
from pathlib import Path

import pytest
from tables import WITHOUT_FOLDS, moew, refused, write_classes

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
            "--batches",
            "1",
            "--batch-size",
            "2",
            "--final",
            "best",
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


COMMANDS = [
    ("network", "parts.json", "predict"),
    ("network", "parts.json", "weights"),
    ("network", "model.json", "predict"),
    ("logistic", "parts.json", "predict"),
    ("logistic", "parts.json", "weights"),
    ("logistic", "report.json", "report"),
]


@pytest.mark.parametrize(
    ("run", "name", "command"), [*COMMANDS[:-1], pytest.param(*COMMANDS[-1], marks=pytest.mark.heavy)]
)
def test_no_change_of_an_entry_ends_in_a_traceback(folder, run, name, command):
    path = Path(run, name)
    rows = ("test.csv",) if command != "report" else ()
    n_failed = 0
    for what, content in changed(json.loads(path.read_text())):
        path.write_text(json.dumps(content))
        try:
            done = moew(command, run, *rows, status=None)
        except Exception as error:
            raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
        # An entry may be as good as before, or be one that the rows do not fit, which is told as such.
        assert done.exit_code in (0, 1, 2), what
        if done.exit_code:
            *notes, line = done.stderr.splitlines()
            assert line.startswith("moew: ") and all(note.startswith("moew: note") for note in notes), what
            n_failed += done.exit_code == 1
    assert n_failed > 30


@pytest.mark.parametrize(("run", "name", "command"), COMMANDS)
@pytest.mark.parametrize("share", [0, 0.3, 0.99])
def test_a_file_that_was_cut_off_is_said(folder, run, name, command, share):
    path = Path(run, name)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    line = refused(command, run, *(("test.csv",) if command != "report" else ()), status=1)
    assert f"{path} is damaged" in line and line.count("\n") == 1


@pytest.mark.parametrize("content", ["[]", "3", "null", '"text"', "{}", "[" * 100_000])
def test_json_of_something_else_is_said(folder, content):
    for run, name, command in COMMANDS:
        before = Path(run, name).read_text()
        Path(run, name).write_text(content)
        line = refused(command, run, *(("test.csv",) if command != "report" else ()), status=1)
        assert str(Path(run, name)) in line and line.count("\n") == 1
        Path(run, name).write_text(before)
