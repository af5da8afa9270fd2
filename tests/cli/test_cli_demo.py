"""`moew demo` in small: its files are there and named once, and the reports are of the first repeats."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tables import moew

from moew.cli import _digits, _figure_1


@pytest.fixture
def small(monkeypatch):
    for name, value in (("N_TEST", 2_000), ("N_BATCHES", 1), ("BATCH_SIZE", 4)):
        monkeypatch.setattr(_figure_1, name, value)


def test_every_file_is_there_and_named_once(own_folder, small):
    done = moew("demo", "figure-1", "--repeats", 2, "--jobs", 1, "--out", "there")
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
    moew("demo", "figure-1", "--repeats", 2, "--jobs", 1)
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
    monkeypatch.setattr("moew.cli.demo._write_figure_1_report", lambda path: path)
    assert moew("demo", "figure-1", "--out", "there").stdout == "table\nThe report: there/toy/report.html\n"
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
    done = moew("demo", "figure-1", "--repeats", 2, "--jobs", 1, status=1)
    assert done.stderr.startswith("moew: ") and done.stderr.count("\n") == 1


@pytest.fixture
def small_digits(monkeypatch):
    for name, value in (("N_BATCHES", 1), ("BATCH_SIZE", 2)):
        monkeypatch.setattr(_digits, name, value)


def test_the_digits_end_with_their_report(own_folder, small_digits):
    done = moew("demo", "--repeats", 2, "--jobs", 1, "--out", "there")
    assert done.stderr.splitlines() == ["repeat 1 of 2", "repeat 2 of 2"]
    named = dict(re.findall(r"^The (\w+).*: (there.+)$", done.stdout, flags=re.MULTILINE))
    assert list(named) == ["numbers", "picture", "report"]
    for path in named.values():
        assert (own_folder / path).stat().st_size > 0
    assert "worst class error" in (own_folder / named["report"]).read_text(encoding="utf-8")
    (first,) = re.findall(r"^unweighted +([\d.]+) ± ", done.stdout, flags=re.MULTILINE)
    (_, *rows) = (own_folder / named["numbers"]).read_text(encoding="utf-8").splitlines()
    assert float(first) == pytest.approx(np.mean([float(row.split(",")[2]) for row in rows]), abs=6e-4)


def test_the_plain_models_of_the_digits_are_scikit_learns(small_digits):
    repeat = _digits.run_repeat(1)
    train, _, (X, y) = _digits.draw_parts(1)
    for name, weight in ((_digits.UNWEIGHTED, None), (_digits.BALANCED, "balanced")):
        model = LogisticRegression(max_iter=1_000, class_weight=weight).fit(*train)
        recall = [(model.predict(X[y == digit]) == digit).mean() for digit in range(10)]
        assert repeat.worst[name] == pytest.approx(1 - min(recall))
    assert repeat.worst[_digits.MOEW] == pytest.approx(repeat.moew.max())
    assert repeat.worst[_digits.UNWEIGHTED] == pytest.approx(repeat.unweighted.max())


def test_no_test_row_of_the_digits_is_seen_before():
    parts = [{row.tobytes() for row in np.column_stack(part)} for part in _digits.draw_parts(0)]
    rows = [len(part[1]) for part in _digits.draw_parts(0)]
    assert rows[1:] == [300, 697] and 400 < rows[0] < 600
    assert len(parts[2] & (parts[0] | parts[1])) <= 2  # two scans may look the same at 4 × 4 pixels
