"""`moew worker`: candidates of a run, trained by another process."""

from pathlib import Path

import pytest
from tables import in_json, moew, refused, write_classes

FIT = ("fit", "train.csv", "--label", "y", "--metric", "accuracy", "--model", "logistic", "--set")
FIT += ("embedding=label", "--candidates", "6", "--set", "batch_size=3")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_classes(tmp_path)


def begun(name, settings):
    """A run folder as `moew fit` makes it before anything is trained."""
    Path(name).mkdir()
    Path(name, "settings.toml").write_text(settings)


def test_a_worker_trains_what_the_run_then_finds():
    whole = in_json(*FIT, "--out", "alone")
    begun("shared", Path("alone/settings.toml").read_text())
    n = whole["candidates"]
    assert f"{n} of {n} candidates were trained here" in moew("worker", "shared", "--jobs", "1").stdout
    assert f"0 of {n} candidates were trained here" in moew("worker", "shared").stdout
    assert not Path("shared/result.json").exists()
    joined = in_json(*FIT, "--out", "shared", "--resume", "--join")
    assert all(joined[name] == whole[name] for name in ("moew", "winner", "alpha", "strategies"))


def test_the_search_may_be_in_a_database():
    stored = ("--storage", "sqlite:///shared.db", "--set", "study_name=mine")
    whole = in_json(*FIT, *stored, "--out", "alone")
    assert Path("shared.db").exists() and not Path("alone/study.db").exists()
    begun("elsewhere", Path("alone/settings.toml").read_text())
    assert "0 of" in moew("worker", "elsewhere").stdout
    again = in_json(*FIT, *stored, "--out", "again")  # nothing is trained again
    assert again["alpha"] == whole["alpha"]


def test_a_password_does_not_get_into_the_report():
    from moew.cli.fit import _told_settings

    settings = {"storage": "postgresql://me:secret@host/name", "label": "y", "search": {"radius": 2}}
    told = {"storage": "postgresql://me:***@host/name", "label": "y", "radius": 2}
    assert _told_settings(settings) == told
    assert _told_settings({"label": "y"}) == {"label": "y"}


def test_a_folder_without_settings_has_nothing_to_do():
    Path("empty").mkdir()
    assert "no run of `moew fit`" in refused("worker", "empty")
