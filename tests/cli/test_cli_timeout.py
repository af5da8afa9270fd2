"""`moew fit --timeout` and `--candidates`: what is trained, what is told, and what goes on."""

from pathlib import Path

import pytest
from tables import in_json, moew, refused, write_classes

from moew.search._loop import Deadline

FIT = ("fit", "train.csv", "--label", "y", "--metric", "accuracy", "--model", "logistic", "--set")
FIT += ("embedding=label", "--set", "batch_size=3")


@pytest.fixture(autouse=True)
def folder(own_folder):
    write_classes(own_folder)


def test_a_run_ends_by_its_timeout_and_goes_on_with_more(monkeypatch):
    whole = in_json(*FIT, "--candidates", "7", "--out", "whole")
    assert whole["candidates"] == 8 and whole["cut_off"] is None  # with α = 0
    with monkeypatch.context() as patch:
        patch.setattr(Deadline, "is_over", property(lambda _: True))
        shown = moew(*FIT, "--candidates", "7", "--timeout", "1", "--out", "run").stdout
        worker = moew("worker", "run").stdout
    assert "ended by its timeout of 1 s: 2 of 8 candidates were trained." in " ".join(shown.split())
    assert "ended by its timeout of 1 s: 2 of 8" in Path("run/report.html").read_text()
    assert worker.startswith("0 of 2 candidates were trained here; the search ended by its timeout")
    again = in_json(*FIT, "--candidates", "7", "--timeout", "1000", "--out", "run", "--resume")
    assert {**again, "run": None, "files": None} == {**whole, "run": None, "files": None}
    assert "timeout = 1000" in Path("run/settings.toml").read_text()
    few = ("--test", "test.csv", "--repeats", "2", "--candidates", "2")
    assert in_json("compare", "--config", "run/settings.toml", *few)["methods"]["moew"]["models"] == 3


def test_a_comparison_has_no_timeout():
    test = ("--test", "test.csv", "--timeout", "60")
    assert "--compare trains equally many models" in refused(*FIT, *test, "--compare")
    assert not Path("run").exists()
    assert "leave out --timeout" in refused("compare", *FIT[1:], *test)


@pytest.mark.parametrize(("option", "wrong"), [("--timeout", "0"), ("--candidates", "0")])
def test_numbers_that_cannot_be_are_refused(option, wrong):
    assert option in refused(*FIT, option, wrong)
