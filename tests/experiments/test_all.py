"""`python -m experiments all`: what it runs in which order, how it goes on, and the minutes it tells."""

import json
import sys

import pytest

from experiments import __main__ as command
from experiments import _all

# Stands for `python -m experiments`: keeps its arguments, and ends as the file NAME.status says.
CHILD = """
import os, sys, time
from pathlib import Path
folder, name, *arguments = sys.argv[1:]
print("working", flush=True)
with (Path(folder) / "calls").open("a") as file:
    file.write(" ".join([name, os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE", "-"), *arguments]) + "\\n")
status = Path(folder) / f"{name}.status"
sys.exit(int(status.read_text()) if status.exists() else 0)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(_all, "PROGRAM", (sys.executable, "-c", CHILD, str(tmp_path)))
    monkeypatch.setattr(_all, "_SECONDS_BETWEEN_LOOKS", 0.01)
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)
    return tmp_path


def calls(folder):
    return [line.split() for line in (folder / "calls").read_text().splitlines()]


def run(folder, *more):
    return command.main(["all", f"--out={folder / 'out'}", *more])


def test_every_experiment_runs_once_longest_first(folder, capsys):
    assert set(_all.ORDER) == set(command.EXPERIMENTS)
    assert run(folder, "--repeats=7", "--jobs=3") == 0
    made = calls(folder)
    assert [name for name, *_ in made] == list(_all.ORDER)
    out = f"--out={folder / 'out'}"
    assert all(sorted(arguments) == ["--jobs=3", out, "--repeats=7"] for _, _, *arguments in made)
    printed = capsys.readouterr().out
    assert "[mnist] working" in printed and "mnist" in printed.split("minutes of each")[1]
    kept = json.loads((folder / "out" / "minutes.json").read_text())
    assert [part["status"] for part in kept["parts"]] == [0] * len(_all.ORDER)
    assert "by clock" in (folder / "out" / "minutes.txt").read_text()


def test_some_run_at_a_time_and_figure_2_waits_for_the_pages(folder):
    assert run(folder, "--together=3") == 0
    names = [name for name, *_ in calls(folder)]
    assert sorted(names) == sorted(_all.ORDER)
    assert names.index("pages") < names.index("sampling")


@pytest.mark.parametrize(("device", "expected"), [("gpu", "false"), ("cpu", "-")])
def test_on_a_gpu_no_process_takes_the_whole_memory(folder, device, expected):
    assert run(folder, f"--device={device}") == 0
    assert {preallocate for _, preallocate, *_ in calls(folder)} == {expected}


def test_a_failure_stops_no_other_and_is_named(folder, capsys):
    (folder / "wine.status").write_text("1")
    assert run(folder) == 1
    assert len(calls(folder)) == len(_all.ORDER)
    assert "wine failed with status 1" in capsys.readouterr().err


def test_run_again_it_goes_on_with_the_unfinished_ones(folder):
    (folder / "pages.status").write_text("3")
    assert run(folder) == 3
    first = json.loads((folder / "out" / "minutes.json").read_text())
    (folder / "pages.status").unlink()
    assert run(folder, "--together=2") == 0
    assert [name for name, *_ in calls(folder)][len(_all.ORDER) :] == ["pages"]
    second = json.loads((folder / "out" / "minutes.json").read_text())
    assert second["wall minutes"] >= first["wall minutes"]
    assert [part["minutes"] for part in second["parts"]] >= [part["minutes"] for part in first["parts"]]
    assert run(folder, "--repeats=9") == 0  # other results: all of them again
    assert len(calls(folder)) == 2 * len(_all.ORDER) + 1


def test_the_time_that_is_left_reaches_the_experiments(folder, capsys):
    assert run(folder, "--minutes=1e-9") == 3
    assert "run the same command again" in capsys.readouterr().err
    assert not (folder / "calls").exists()
    assert run(folder, "--minutes=5") == 0
    for _, _, *arguments in calls(folder):
        (minutes,) = (float(one.split("=")[1]) for one in arguments if one.startswith("--minutes"))
        assert 4 < minutes <= 5
