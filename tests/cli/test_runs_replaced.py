"""`--force`: the older run stays until the new one is complete, whatever happens in between."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tables import WITHOUT_FOLDS, fit_once, moew, refused, write_classes

from moew.cli.runs import _folder as replacing

DATA = ("train.csv", "--validation", "valid.csv", "--label", "y", "--drop", "id")
LOGISTIC = ("fit", *DATA, "--metric", "accuracy", "--model", "logistic", *WITHOUT_FOLDS)
NEW, OLD = Path("run.moew-new"), Path("run.moew-old")


@pytest.fixture(autouse=True)
def folder(own_folder):
    write_classes(own_folder)
    return own_folder


class Killed(BaseException):
    """As a kill: nothing after it runs."""


def content(folder="run"):
    return {entry.name: entry.read_bytes() for entry in Path(folder).iterdir() if entry.is_file()}


def interrupt_at(monkeypatch, place):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(place, interrupt)
        moew(*LOGISTIC, "--seed", 1, "--force", status=130)


def test_a_forced_run_that_is_killed_twice_leaves_the_older_one(monkeypatch):
    fit_once(*LOGISTIC)
    before = content()
    interrupt_at(monkeypatch, "moew.search._conclude.list_variants")
    assert content() == before and (NEW / "study.db").exists()
    interrupt_at(monkeypatch, "moew.cli.runs._folder.save_search")
    assert content() == before
    moew("predict", "run", "test.csv")
    moew(*LOGISTIC, "--seed", 1, "--resume")
    assert not NEW.exists() and not OLD.exists()
    after = content()
    moew(*LOGISTIC, "--seed", 1, "--out", "fresh")
    assert content("fresh")["search.moew"] and after["settings.toml"] == content("fresh")["settings.toml"]
    assert moew("predict", "run", "test.csv").stdout == moew("predict", "fresh", "test.csv").stdout


@pytest.mark.parametrize("n_renames", [0, 1, 2])
def test_a_swap_that_was_killed_is_completed_at_the_next_start(monkeypatch, n_renames):
    fit_once(*LOGISTIC, "--seed", 1)
    Path("run").rename("other")
    fit_once(*LOGISTIC)
    Path("run/notes.txt").write_text("mine")
    wanted = {**content("other"), "notes.txt": b"mine"}
    Path("other").rename(NEW)
    done = []
    rename = Path.rename

    def counted(self, target):
        if len(done) == n_renames:
            raise Killed
        done.append(target)
        return rename(self, target)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Path, "rename", counted)
        replacing._swap(Path("run").resolve())
    if n_renames == 0:  # nothing has happened yet
        assert Path("run/notes.txt").exists() and NEW.exists()
        return
    line = refused(*LOGISTIC)
    assert "is not empty" in line
    assert content() == wanted and not NEW.exists() and not OLD.exists()


def test_an_interrupted_replacement_is_not_forgotten(monkeypatch):
    fit_once(*LOGISTIC)
    interrupt_at(monkeypatch, "moew.search._conclude.list_variants")
    shutil.rmtree("run")
    Path("run").mkdir()
    Path("run").rmdir()
    line = refused(*LOGISTIC)
    assert "run.moew-new holds an interrupted run" in line and "--resume" in line and "--force" in line
    moew(*LOGISTIC, "--force")
    assert not NEW.exists() and Path("run/result.json").exists()


def test_something_in_the_way_of_a_swap_is_said():
    for place in ("run", NEW, OLD):
        Path(place).mkdir()
        Path(place, "settings.toml").write_text("")
    assert "move that away" in refused(*LOGISTIC, "--force")
    assert OLD.exists() and NEW.exists()


def test_a_folder_that_cannot_be_renamed_is_refused_before_training(monkeypatch):
    fit_once(*LOGISTIC)
    with monkeypatch.context() as patch:
        patch.setattr("os.path.ismount", lambda path: True)
        assert "a disk of its own" in refused(*LOGISTIC, "--force")
    monkeypatch.chdir("run")
    data = [f"../{word}" if word.endswith(".csv") else word for word in LOGISTIC]
    assert "the current folder" in refused(*data, "--out", ".", "--force")


def test_a_link_to_a_folder_stays_one():
    fit_once(*LOGISTIC)
    Path("run").rename("real")
    Path("run").symlink_to("real")
    moew(*LOGISTIC, "--seed", 1, "--force")
    assert Path("run").is_symlink() and "seed = 1" in Path("real/settings.toml").read_text()
    assert not Path("real.moew-new").exists() and not Path("real.moew-old").exists()


def test_a_wrong_resume_takes_nothing_from_a_finished_run():
    fit_once(*LOGISTIC)
    Path("run/study.db").unlink()
    before = content()
    refused(*LOGISTIC, "--resume", "--set", "sampler=random", "--set", "stop_when=0.1")
    assert content() == before


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files are POSIX")
@pytest.mark.parametrize(
    ("limit", "name"), [pytest.param(2_000, "study.db", marks=pytest.mark.heavy), (40_000, "run/")]
)
def test_a_full_disk_names_the_file(limit, name):
    code = (
        f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        f"from moew.cli import main; main({list(map(str, LOGISTIC))!r})"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    *_, last = done.stderr.splitlines()
    assert done.returncode == 1 and name in last
    assert "cannot be written: File too large; raise the limit" in last
