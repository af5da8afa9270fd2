"""The command line: what it says and which exit status it ends with."""

import signal
import subprocess
import sys
import time

import pytest
from tables import moew, refused

from moew import cli
from moew.exceptions import InvalidInputError, SearchFailedError


@pytest.fixture
def command_fails(monkeypatch, own_folder):
    """Make the computation of `moew metrics` raise an error."""

    def fail_with(error):
        def fail(*_):
            raise error

        monkeypatch.setattr("moew.cli.metrics._ours", fail)

    return fail_with


def test_help_fits_80_columns_and_lists_all_commands():
    text = moew("--help").stdout
    assert max(map(len, text.splitlines())) <= 80
    assert "Usage: moew" in text
    for name, command in cli.commands().commands.items():
        assert f"  {name} " in text and command.help


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("paper",),
        ("compare", "--repeats", "1"),
        ("compare", "--repeats", "many"),
        ("compare", "--jobs", "0"),
        ("metrics", "--model", "network"),
    ],
)
def test_wrong_usage_ends_with_2(arguments):
    line = refused(*arguments)
    assert line.startswith("moew: ") and line.count("\n") == 1
    assert "?." not in line


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interruption_where_python_ignores_exceptions_is_not_lost(monkeypatch, own_folder):
    class Ended:
        def __del__(self):
            signal.raise_signal(signal.SIGTERM)

    def end_an_object(*_):
        Ended()
        time.sleep(60)

    monkeypatch.setattr("moew.cli.metrics._ours", end_an_object)
    assert "interrupted" in refused("metrics", status=130)


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (InvalidInputError("this is\nwrong"), 2, "this is wrong"),
        (SearchFailedError("nothing works"), 1, "nothing works"),
        (OSError("no space"), 1, "no space"),
        (MemoryError(), 1, "MemoryError"),
        (KeyboardInterrupt(), 130, "nothing was written"),
    ],
)
def test_failures_are_one_line(command_fails, error, status, words):
    command_fails(error)
    line = refused("metrics", status=status)
    assert line.count("\n") == 1
    assert line.startswith("moew: ") and words in line


def test_a_bug_shows_where_it_is(command_fails):
    command_fails(ZeroDivisionError("a bug"))
    with pytest.raises(ZeroDivisionError):
        moew("metrics")


def test_a_missing_click_is_named_before_anything_runs(command_fails, monkeypatch):
    command_fails(AssertionError("it ran"))
    monkeypatch.setitem(sys.modules, "click", None)
    with pytest.raises(SystemExit) as ended:
        cli.main(["metrics"])
    assert ended.value.code == (
        "moew: the command line needs click; install it with: pip install 'moew[cli]'"
    )


def test_the_real_command():
    def moew(*arguments):
        return subprocess.run([sys.executable, "-m", "moew", *arguments], capture_output=True, text=True)

    shown = moew("--version")
    assert (shown.returncode, shown.stdout) == (0, "moew 0.1.0\n")
    wrong = moew("compare", "--repeats", "1")
    assert wrong.returncode == 2 and "--repeats" in wrong.stderr and "Traceback" not in wrong.stderr
