"""The demo in small: its files are there and named once, and the reports are of the first repeats."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from experiments import __main__ as command
from experiments import digits, figure_1


@pytest.fixture
def demo(capsys):
    """Run the command in this process; what it prints."""

    def run(*arguments, status=0):
        assert command.main(["demo", *map(str, arguments)]) == status
        return capsys.readouterr()

    return run


@pytest.fixture
def small(monkeypatch):
    for name, value in (("N_TEST", 2_000), ("N_BATCHES", 1), ("BATCH_SIZE", 4)):
        monkeypatch.setattr(figure_1, name, value)


def test_every_file_is_there_and_named_once(own_folder, small, demo):
    done = demo("figure-1", "--repeats", 2, "--jobs", 1, "--out", "there")
    shown = done.out
    assert done.err.splitlines() == ["repeat 1 of 2", "repeat 2 of 2"]
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


def test_the_report_is_of_the_first_repeat(own_folder, small, demo):
    demo("figure-1", "--repeats", 2, "--jobs", 1)
    (kept,) = own_folder.glob("out/toy/state/*/*-0.npz")
    first = figure_1.Repeat.load(kept)
    page = (own_folder / "out/toy/report.html").read_text(encoding="utf-8")
    assert "precision at 95% recall" in page
    for score in (first.best, first.honest):
        assert f"{score / 100:.4f}" in page


def test_what_is_run(own_folder, monkeypatch, demo):
    seen = []
    monkeypatch.setattr(
        figure_1, "run_figure_1", lambda *given, **more: seen.append((given, more)) or "table"
    )
    monkeypatch.setattr("experiments.demo.write_report", lambda *given, **more: given[3])
    monkeypatch.setattr("experiments.demo.run_search", lambda prepared: None)
    assert demo("figure-1", "--out", "there").out == "table\nThe report: there/toy/report.html\n"
    ((given, more),) = seen
    assert (given, more["n_jobs"]) == ((Path("there/toy"), 30), 2)


def test_a_folder_that_cannot_be_written_is_one_line(own_folder, small, demo):
    (own_folder / "out").write_text("no folder")
    done = demo(status=1)
    assert done.out == ""
    assert done.err.startswith("experiments: ") and done.err.count("\n") == 1
    (own_folder / "out").unlink()
    (own_folder / "out").mkdir()
    (own_folder / "out" / "toy").write_text("no folder")
    done = demo("figure-1", "--repeats", 2, "--jobs", 1, status=1)
    assert done.err.startswith("experiments: ") and done.err.count("\n") == 1


@pytest.fixture
def small_digits(monkeypatch):
    for name, value in (("N_BATCHES", 1), ("BATCH_SIZE", 2)):
        monkeypatch.setattr(digits, name, value)


def test_the_digits_end_with_their_report(own_folder, small_digits, demo):
    done = demo("--repeats", 2, "--jobs", 1, "--out", "there")
    assert done.err.splitlines() == ["repeat 1 of 2", "repeat 2 of 2"]
    named = dict(re.findall(r"^The (\w+).*: (there.+)$", done.out, flags=re.MULTILINE))
    assert list(named) == ["numbers", "picture", "report"]
    for path in named.values():
        assert (own_folder / path).stat().st_size > 0
    assert "worst class error" in (own_folder / named["report"]).read_text(encoding="utf-8")
    (first,) = re.findall(r"^unweighted +([\d.]+) ± ", done.out, flags=re.MULTILINE)
    (_, *rows) = (own_folder / named["numbers"]).read_text(encoding="utf-8").splitlines()
    assert float(first) == pytest.approx(np.mean([float(row.split(",")[2]) for row in rows]), abs=6e-4)


@pytest.mark.heavy
def test_the_plain_models_of_the_digits_are_scikit_learns(small_digits):
    repeat = digits.run_repeat(1)
    train, _, (X, y) = digits.draw_parts(1)
    for name, weight in ((digits.UNWEIGHTED, None), (digits.BALANCED, "balanced")):
        model = LogisticRegression(max_iter=1_000, class_weight=weight).fit(*train)
        recall = [(model.predict(X[y == digit]) == digit).mean() for digit in range(10)]
        assert repeat.worst[name] == pytest.approx(1 - min(recall))
    assert repeat.worst[digits.MOEW] == pytest.approx(repeat.moew.max())
    assert repeat.worst[digits.UNWEIGHTED] == pytest.approx(repeat.unweighted.max())


def test_no_test_row_of_the_digits_is_seen_before():
    parts = [{row.tobytes() for row in np.column_stack(part)} for part in digits.draw_parts(0)]
    rows = [len(part[1]) for part in digits.draw_parts(0)]
    assert rows[1:] == [300, 697] and 400 < rows[0] < 600
    assert len(parts[2] & (parts[0] | parts[1])) <= 2  # two scans may look the same at 4 × 4 pixels
