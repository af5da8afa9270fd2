"""Where progress is shown by itself: on a terminal and in a notebook, which is made up here."""

import sys
from types import SimpleNamespace

import pytest

from moew._util import progress as module
from moew._util.progress import is_notebook, progress


class Handle:
    def __init__(self, first):
        self.shown = [first]

    def update(self, content, raw):
        assert raw
        self.shown.append(content)


@pytest.fixture
def displayed(monkeypatch):
    """What a kernel was given to display."""
    handles = []

    def display(content, raw, display_id):
        assert raw and display_id
        handles.append(Handle(content))
        return handles[-1]

    shell = SimpleNamespace(kernel=object())
    ipython = SimpleNamespace(get_ipython=lambda: shell, display=SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    return handles


def test_a_notebook_shows_one_line_that_changes(displayed, monkeypatch):
    monkeypatch.setattr(module, "_SHOW_EVERY", 0.0)
    with progress(4, 2, name="a <b>") as report:
        for done in (1, 2, 4):
            report(done, 1, 0.25)
    (handle,) = displayed
    lines = [content["text/plain"] for content in handle.shown]
    assert [line.split(",")[:2] for line in lines[:3]] == [
        [f"a <b>: {done} of 4", " best 0.25"] for done in (1, 2, 4)
    ]
    assert lines[-1] == lines[-2]
    assert all('max="4"' in c["text/html"] and "<b>" not in c["text/html"] for c in handle.shown)


def test_a_notebook_is_not_flooded_and_has_the_last_state(displayed, monkeypatch):
    monkeypatch.setattr(module, "_SHOW_EVERY", 1e6)
    with pytest.raises(KeyboardInterrupt), progress(1000, 1) as report:
        for done in range(1, 900):
            report(done, 1, 0.5)
        raise KeyboardInterrupt
    (handle,) = displayed
    assert [content["text/plain"].split(",")[0] for content in handle.shown] == [
        "batch 1/1: 1/1000 candidates",
        "batch 1/1: 899/1000 candidates",
    ]


def test_no_progress_in_pipes_or_if_it_is_not_wanted(displayed, capsys, monkeypatch):
    with progress(2, 1, False) as report:
        report(1, 1, 0.5)
    assert displayed == []
    sys.modules["IPython"].get_ipython = lambda: SimpleNamespace()  # IPython on a terminal has no kernel
    assert not is_notebook()
    monkeypatch.delitem(sys.modules, "IPython")
    assert not is_notebook()
    with progress(2, 1) as report:
        report(1, 1, 0.5)
    assert displayed == [] and capsys.readouterr().err == ""


def test_lines_name_what_they_are_of(capsys):
    with progress(51, 5, True, name="class weights") as report:
        report(20, 2, 0.5)
    assert capsys.readouterr().err.startswith("class weights: 20 of 51, best 0.5, ")
