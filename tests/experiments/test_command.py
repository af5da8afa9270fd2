"""`python -m experiments`: what it says, which exit status it ends with, and what reaches an experiment."""

import subprocess
import sys
from pathlib import Path

import pytest

from experiments import OutOfTimeError
from experiments import __main__ as command
from moew.exceptions import InvalidInputError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def called(monkeypatch):
    """What the commands would have run: (options, more) of each call."""
    calls = []

    def remember(options, **more):
        calls.append((options, more))
        return "the table"

    for name in command.EXPERIMENTS:
        monkeypatch.setattr(f"experiments.{name}.main", remember)
    return calls


def help_of(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        command.main([*arguments, "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_every_experiment_is_listed_with_its_help(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    text = help_of(capsys)
    for name, experiment in command.EXPERIMENTS.items():
        assert f"{name} " in text and experiment.summary in text
        assert experiment.summary in help_of(capsys, name)


def test_options_reach_the_experiment(called, tmp_path, capsys):
    given = {"repeats": 7, "seed": 3, "device": "gpu", "precision": "tf32", "steps": 50, "jobs": 4}
    given |= {"minutes": 9, "out": tmp_path}
    assert command.main(["mnist", *(f"--{name}={value}" for name, value in given.items())]) == 0
    assert capsys.readouterr().out == "the table\n"
    options, more = called[0]
    assert (options.repeats, options.seed, options.device, options.precision) == (7, 3, "gpu", "tf32")
    assert (options.steps, options.n_jobs, options.minutes, options.out) == (50, 4, 9.0, tmp_path)
    assert more == {}


def test_some_have_defaults_and_options_of_their_own(called, tmp_path):
    assert command.main(["toy", "--model", "network"]) == 0
    options, more = called[0]
    assert (options.repeats, options.steps) == (30, 2000)
    assert more == {"model": "network", "sampler": "gp_bucb"}
    assert command.main(["mnist"]) == 0
    assert (called[1][0].repeats, called[1][0].steps) == (100, 10_000)
    (tmp_path / "wine.csv").write_text("")
    assert command.main(["wine", "--csv", str(tmp_path / "wine.csv")]) == 0
    assert called[2][1] == {"csv": tmp_path / "wine.csv"}


def test_some_settings_can_be_run_alone_and_none_for_the_tables(called):
    assert command.main(["mnist"]) == 0
    assert command.main(["wine", "--only", "wine moew", "--only", "wine-full *"]) == 0
    assert command.main(["crime", "--tables"]) == 0
    assert [options.only for options, _ in called] == [None, ("wine moew", "wine-full *"), ()]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("crime", "--tables", "--only", "iid*"),
        ("spam", "--only", "study 1*"),
        ("all", "--only", "iid*"),
        ("all", "--groups", "0"),
        ("nonsense",),
        ("mnist", "--repeats", "1"),
        ("mnist", "--repeats", "many"),
        ("mnist", "--device", "tpu"),
        ("mnist", "--minutes", "0"),
        ("mnist", "--jobs", "0"),
        ("mnist", "--model", "network"),
        ("wine", "--csv", "no such file"),
    ],
)
def test_wrong_usage_ends_with_2(called, arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert not called


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (InvalidInputError("this is\nwrong"), 1, "this is wrong"),
        (OSError("no space"), 1, "no space"),
        (MemoryError(), 1, "MemoryError"),
        (OutOfTimeError("9 minutes are over"), 3, "9 minutes are over"),
        (KeyboardInterrupt(), 130, "run the same command again"),
    ],
)
def test_failures_are_one_line(monkeypatch, error, status, words, capsys):
    def fail(options):
        raise error

    monkeypatch.setattr("experiments.bound.main", fail)
    assert command.main(["bound"]) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1 and err.startswith("experiments: ") and words in err


def test_a_bug_shows_where_it_is(monkeypatch):
    def fail(options):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("experiments.bound.main", fail)
    with pytest.raises(ZeroDivisionError):
        command.main(["bound"])


def test_matplotlib_is_asked_for_before_anything_runs(called, monkeypatch, capsys):
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert command.main(["bound"]) == 1
    assert "pip install 'moew[plot]'" in capsys.readouterr().err
    assert not called


@pytest.mark.heavy
def test_no_experiment_needs_optuna():
    names = ", ".join(f"experiments.{name}" for name in command.EXPERIMENTS)
    program = f"import sys; sys.modules['optuna'] = None; import {names}; from experiments import __main__"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
