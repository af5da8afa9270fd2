"""The command line: what it says, which exit status it ends with, and that it runs experiments."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from moew import cli
from moew.exceptions import InvalidInputError
from moew.paper import bound
from moew.paper._searches import OutOfTimeError


def invoke(*arguments):
    return CliRunner().invoke(cli.commands(), list(arguments), prog_name="moew")


@pytest.fixture
def called(monkeypatch):
    """What the commands would have run: (options, more) of each call."""
    calls = []

    def remember(options, **more):
        calls.append((options, more))
        return "the table"

    for name in cli.EXPERIMENTS:
        monkeypatch.setattr(f"moew.paper.{name}.main", remember)
    return calls


@pytest.mark.parametrize("arguments", [(), ("paper",), *(("paper", name) for name in cli.EXPERIMENTS)])
def test_help_fits_80_columns(arguments):
    result = invoke(*arguments, "--help")
    assert result.exit_code == 0
    assert max(map(len, result.output.splitlines())) <= 80
    assert "Usage: moew" in result.output


def test_every_experiment_is_listed_and_a_module():
    text = invoke("paper", "--help").output
    for name, experiment in cli.EXPERIMENTS.items():
        assert f"{name} " in text and experiment.summary in text


def test_options_reach_the_experiment(called, tmp_path):
    given = {"repeats": 7, "seed": 3, "device": "gpu", "precision": "tf32", "steps": 50, "jobs": 4}
    given |= {"minutes": 9, "out": tmp_path}
    result = invoke("paper", "mnist", *(f"--{name}={value}" for name, value in given.items()))
    assert (result.exit_code, result.output) == (0, "the table\n")
    options, more = called[0]
    assert (options.repeats, options.seed, options.device, options.precision) == (7, 3, "gpu", "tf32")
    assert (options.steps, options.n_jobs, options.minutes, options.out) == (50, 4, 9.0, tmp_path)
    assert more == {}


def test_toy_has_defaults_and_options_of_its_own(called):
    assert invoke("paper", "toy", "--model", "network").exit_code == 0
    options, more = called[0]
    assert (options.repeats, options.steps) == (30, 2000)
    assert more == {"model": "network", "search": "gp_bucb"}
    assert invoke("paper", "mnist").exit_code == 0
    assert (called[1][0].repeats, called[1][0].steps) == (100, 10_000)


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("paper", "nonsense"),
        ("paper", "mnist", "--repeats", "1"),
        ("paper", "mnist", "--repeats", "many"),
        ("paper", "mnist", "--device", "tpu"),
        ("paper", "mnist", "--minutes", "0"),
        ("paper", "mnist", "--jobs", "0"),
        ("paper", "mnist", "--model", "network"),
    ],
)
def test_wrong_usage_ends_with_2(called, arguments):
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("moew: ") and result.stderr.count("\n") == 1
    assert "?." not in result.stderr
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
def test_failures_are_one_line(monkeypatch, error, status, words):
    def fail(options):
        raise error

    monkeypatch.setattr("moew.paper.bound.main", fail)
    result = invoke("paper", "bound")
    assert result.exit_code == status
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("moew: ") and words in result.stderr


def test_a_bug_shows_where_it_is(monkeypatch):
    def fail(options):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("moew.paper.bound.main", fail)
    assert isinstance(invoke("paper", "bound").exception, ZeroDivisionError)


def test_missing_packages_are_named_before_anything_runs(called, monkeypatch, capsys):
    monkeypatch.setattr("moew.cli.paper.find_spec", lambda name: None)
    result = invoke("paper", "bound")
    assert result.exit_code == 1
    assert result.stderr == (
        "moew: the experiments draw figures; install matplotlib with: pip install 'moew[plot]'\n"
    )
    monkeypatch.setitem(sys.modules, "click", None)
    with pytest.raises(SystemExit) as ended:
        cli.main(["paper", "bound"])
    assert ended.value.code == (
        "moew: the command line needs click; install it with: pip install 'moew[cli]'"
    )
    assert not called


def test_an_experiment_runs_through_it(tmp_path, monkeypatch):
    monkeypatch.setattr(bound, "SIZES", (50,))
    monkeypatch.setattr(bound, "DIMS", (1,))
    result = invoke("paper", "bound", "--repeats", "3", "--out", str(tmp_path))
    assert result.exit_code == 0, result.stderr
    assert "Theorem 2" in result.output
    assert (tmp_path / "bound" / "bound.png").exists()


def test_the_real_command():
    def moew(*arguments):
        return subprocess.run([sys.executable, "-m", "moew", *arguments], capture_output=True, text=True)

    shown = moew("--version")
    assert (shown.returncode, shown.stdout) == (0, "moew 0.1.0\n")
    wrong = moew("paper", "mnist", "--repeats", "1")
    assert wrong.returncode == 2 and "--repeats" in wrong.stderr and "Traceback" not in wrong.stderr
