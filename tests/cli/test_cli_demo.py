"""`moew demo` in small: each of its files is there and named once, and the report is of the first repeat."""

import re
from pathlib import Path

import pytest
from tables import moew

from moew.cli import _figure_1


@pytest.fixture
def small(monkeypatch):
    for name, value in (("N_TEST", 2_000), ("N_BATCHES", 1), ("BATCH_SIZE", 4)):
        monkeypatch.setattr(_figure_1, name, value)


def test_every_file_is_there_and_named_once(own_folder, small):
    done = moew("demo", "--repeats", 2, "--jobs", 1, "--out", "there")
    shown = done.stdout
    assert done.stderr.splitlines() == ["repeat 1 of 2", "repeat 2 of 2"]
    assert "Test precision at 95 % recall" in shown
    named = dict(re.findall(r"^The (\w+): (.+)$", shown, flags=re.MULTILINE))
    assert named == {
        "figure": "there/toy/figure-1.png",
        "numbers": "there/toy/toy.csv",
        "report": "there/toy/report.html",
    }
    for path in named.values():
        assert shown.count(path) == 1
        assert (own_folder / path).stat().st_size > 0


def test_the_report_is_of_the_first_repeat(own_folder, small):
    moew("demo", "--repeats", 2, "--jobs", 1)
    (kept,) = own_folder.glob("out/toy/state/*/*-0.npz")
    first = _figure_1.Repeat.load(kept)
    page = (own_folder / "out/toy/report.html").read_text(encoding="utf-8")
    assert "precision at 95% recall" in page
    for score in (first.best, first.honest):
        assert f"{score / 100:.4f}" in page


def test_what_is_run(own_folder, monkeypatch):
    seen = []
    monkeypatch.setattr(
        _figure_1, "run_figure_1", lambda *given, **more: seen.append((given, more)) or "table"
    )
    monkeypatch.setattr("moew.cli.demo._write_report", lambda path: path)
    assert moew("demo", "--out", "there").stdout == "table\nThe report: there/toy/report.html\n"
    ((given, more),) = seen
    assert (given, more["n_jobs"]) == ((Path("there/toy"), 30), 2)


def test_a_folder_that_cannot_be_written_is_one_line(own_folder, small):
    (own_folder / "out").write_text("no folder")
    done = moew("demo", status=2)
    assert done.stdout == ""
    assert "is a file" in done.stderr
    (own_folder / "out").unlink()
    (own_folder / "out").mkdir()
    (own_folder / "out" / "toy").write_text("no folder")
    done = moew("demo", "--repeats", 2, "--jobs", 1, status=1)
    assert done.stderr.startswith("moew: ") and done.stderr.count("\n") == 1
