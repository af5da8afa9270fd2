"""What a terminal shows: lines that break between words, and what is done before the first candidate."""

import io
import re
import sys

import click
import pytest
from tables import QUICK, moew, write_classes

from moew import cli
from moew._util.progress import stage
from moew.cli import _shown
from moew.cli._ending import tell

TEXT = "A verdict of some length, with/a/path/that-is-long, ends here: −25.1 % beyond chance."


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(params=[40, 60, 80])
def columns(request, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(request.param))
    monkeypatch.setenv("TERM", "xterm")
    return request.param


def shown_on_a_terminal(monkeypatch, what, name="stdout"):
    terminal = Terminal()
    monkeypatch.setattr(sys, name, terminal)
    what()
    return terminal.getvalue()


@pytest.mark.parametrize("indent", ["", "  "])
def test_lines_break_between_words(columns, monkeypatch, indent):
    given = f"{indent}{TEXT} {TEXT}\n\n{indent}{TEXT}"
    text = shown_on_a_terminal(monkeypatch, lambda: _shown.show(given))
    assert text.split() == given.split()
    assert text.count("\n\n") == 1
    for line in text.splitlines():
        assert line == "" or (line.startswith(indent) and len(line) < columns)
    said = shown_on_a_terminal(monkeypatch, lambda: tell(TEXT), "stderr")
    assert said.split() == ["moew:", *TEXT.split()] and max(map(len, said.splitlines())) < columns


def test_tables_keep_their_words(columns, monkeypatch):
    head = ("strategy", "apparent", "honest", "gain", "± 95 %")
    rows = [
        ("example weights, tuned", "0.04762", "0.05366", "selected", ""),
        ("constant prediction", "1", "1", "−1", "0"),
    ]
    text = shown_on_a_terminal(monkeypatch, lambda: _shown.show_table(head, rows))
    assert max(len(re.sub("\x1b\\[[0-9;]*m", "", line)) for line in text.splitlines()) <= columns
    for word in ("0.04762", "0.05366", "selected", "weights", "tuned", "constant", "prediction", "−1"):
        assert word in {part.strip(",:") for part in re.sub("\x1b\\[[0-9;]*m", "", text).split()}


def test_help_fits_the_terminal(columns):
    group = cli.commands()
    of_group = click.Context(group, info_name="moew", **group.context_settings)
    for name, command in group.commands.items():
        lines = command.get_help(click.Context(command, of_group, name)).splitlines()
        too_long = [line for line in lines if len(line) > columns]
        if columns >= 60:
            assert not too_long
        else:  # commands to copy, headings and choices stay whole
            assert all(line.lstrip().startswith(("moew ", "--", "Data (")) for line in too_long)


def test_a_terminal_shows_what_is_done_and_a_pipe_does_not(monkeypatch, own_folder):
    write_classes(own_folder)
    monkeypatch.setenv("TERM", "xterm")

    def work(enabled=None):
        with stage("reading [red]train.csv", enabled):
            pass

    assert "reading [red]train.csv …" in shown_on_a_terminal(monkeypatch, work, "stderr")
    assert shown_on_a_terminal(monkeypatch, lambda: work(False), "stderr") == ""
    with monkeypatch.context() as piped:
        piped.setattr(sys, "stderr", io.StringIO())
        work()
        work(True)
        assert sys.stderr.getvalue() == ""
    seen = []

    def noted(words, enabled=None):
        seen.append(words)
        return stage(words, enabled)

    for home in ("cli._prepare", "cli.fit", "search._prepare", "search._estimator"):
        monkeypatch.setattr(f"moew.{home}.stage", noted)
    data = ("train.csv", "--validation", "valid.csv", "--label", "y", "--id", "id")
    done = moew("fit", *data, "--metric", "accuracy", "--model", "logistic", *QUICK)
    assert seen == [
        "reading train.csv",
        "reading valid.csv",
        "trying the metric on made-up predictions",
        "choosing the rows to evaluate on",
        "fitting the embedding (label)",
        "evaluating the strategies and training the final model",
        "making the report",
    ]
    assert "reading" not in done.stderr and "fitting" not in done.stderr
