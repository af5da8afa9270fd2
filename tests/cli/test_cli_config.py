"""A settings file means the same in whichever folder the command is run."""

import sys
import tomllib
from pathlib import Path

import pytest
from tables import QUICK, in_json, moew, refused, write_classes, write_module

MINE = """
from sklearn.linear_model import LogisticRegression as Model

def share(y, decision):
    return float((y == decision).mean())

def embedding(X, y):
    return X[["a"]].to_numpy()
"""
RUN = """
train = "data/train.csv"
validation = "data/valid.csv"
label = "y"
id = "id"
metric = "mine:share"
model = "mine:Model"
candidates = 2
out = "found"
[search]
batch_size = 2
embedding = "mine:embedding"
"""


@pytest.fixture(autouse=True)
def project(own_folder, monkeypatch):
    """A project with data, a module and a program; the commands are run beside it."""
    project = own_folder / "project"
    (project / "data").mkdir(parents=True)
    write_classes(project / "data")
    write_module(project, "mine", MINE)
    (project / "score.awk").write_text("NR > 1 && $2 == $3 { right++ } END { print right / (NR - 1) }\n")
    (project / "run.toml").write_text(RUN)
    (own_folder / "elsewhere").mkdir()
    monkeypatch.chdir(own_folder / "elsewhere")
    return project


def without_place(found):
    return {name: value for name, value in found.items() if name not in ("run", "files")}


@pytest.mark.heavy
def test_what_is_relative_in_a_settings_file_is_so_to_its_folder(project, monkeypatch):
    from_elsewhere = in_json("fit", "--config", "../project/run.toml")
    assert Path(from_elsewhere["run"]) == project / "found"
    monkeypatch.chdir(project)
    assert without_place(in_json("fit", "--config", "run.toml", "--out", "there")) == without_place(
        from_elsewhere
    )


def test_recorded_settings_repeat_a_run_from_anywhere(project, monkeypatch):
    monkeypatch.chdir(project)
    data = ("data/train.csv", "--validation", "data/valid.csv", "--label", "y", "--id", "id", *QUICK)
    program = ("--metric-command", "awk -F, -f score.awk {predictions}", "--model", "mine:Model")
    first = in_json("fit", *data, *program, "--out", "one")
    assert tomllib.loads(Path("one/settings.toml").read_text())["folder"] == str(project)
    monkeypatch.chdir(project.parent / "elsewhere")
    again = in_json("fit", "--config", project / "one/settings.toml", "--out", "two")
    assert without_place(again) == without_place(first)
    assert Path("two/settings.toml").read_text() == (project / "one/settings.toml").read_text()


def test_files_on_the_command_line_are_in_the_current_folder(project):
    line = refused("fit", "--config", "../project/run.toml", "--validation", "data/valid.csv")
    assert "there is no file data/valid.csv" in line
    moew("fit", "--config", "../project/run.toml", "--validation", "../project/data/test.csv", "--out", "run")
    recorded = tomllib.loads(Path("run/settings.toml").read_text())
    assert Path(recorded["validation"]).resolve() == project / "data/test.csv"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--folder", "."), "no module 'mine' installed or in the folder "),
        (("--folder", "nowhere"), "no module 'mine' installed or in the folder "),
        (("--folder", ".", "--metric", "accuracy", "--model", "logistic", "--set", "embedding=x:f"), "'x'"),
    ],
)
def test_modules_that_are_not_in_their_folder_are_said(project, more, words):
    sys.modules.pop("mine", None)
    line = refused("fit", "--config", "../project/run.toml", *more)
    assert words in line and not (project / "found").exists()


def test_programs_that_are_not_in_their_folder_are_said(project):
    data = ("../project/data/train.csv", "--label", "y", "--model", "logistic", *QUICK)
    line = refused("fit", *data, "--metric-command", "./score {predictions}")
    assert f"'./score' cannot be run in the folder {Path.cwd()}" in line
    line = refused("fit", *data, "--metric-command", "awk -f score.awk {predictions}", "--drop", "id")
    assert "score.awk" in line and line.count("\n") == 1
    program = ("--metric-command", "awk -F, -f score.awk {predictions}", "--folder", project)
    assert in_json("fit", *data, "--drop", "id", *program)["moew"]["apparent"] > 0.5


def test_settings_that_are_nested_too_deeply_are_refused(project):
    (project / "deep.toml").write_text("candidates = " + "[" * 50_000 + "]" * 50_000)
    assert "deep.toml has lists or tables nested too deeply" in refused(
        "fit", "--config", str(project / "deep.toml")
    )


def test_a_nul_character_in_settings_is_refused(project):
    (project / "nul.toml").write_text('label = "a\\u0000b"\n')
    assert "label holds a NUL character" in refused("fit", "--config", str(project / "nul.toml"))
