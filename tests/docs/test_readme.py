"""The README's code and commands run as they stand there, given rows of the reader's own."""

import re
from pathlib import Path

import pandas as pd
from pages import (
    ROOT,
    blocks,
    commands,
    extras,
    known_extras,
    make_searches_small,
    make_targets,
    run_command,
    run_python,
    without_numbers,
)
from problems import shifted_classes
from sklearn.linear_model import LogisticRegression
from tables import write_classes

README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")


def test_every_block_runs(own_folder, monkeypatch, capsys):
    """The first block of Python needs nothing, and prints what the README says but for the numbers."""
    make_searches_small(monkeypatch)
    rows = shifted_classes(120)
    model = LogisticRegression()
    names = {
        **rows._asdict(),
        "train_and_score": lambda weights: model.fit(rows.X, rows.y, weights).score(rows.X_val, rows.y_val),
    }
    write_classes(own_folder)
    Path("test.csv").rename("new.csv")
    seen = []
    for language, code, output in blocks(README):
        seen.append(language)
        if language == "sh":
            for command, text in commands(code):
                run_command(command, text)
            continue
        run_python(code, "README.md", {} if output else names)
        printed = capsys.readouterr().out
        if output:
            assert without_numbers(printed) == without_numbers(output)
    assert seen == ["sh", "python", "sh", "python"]
    assert "Trial(number=" in printed
    assert Path("run/report.html").exists()
    assert len(pd.read_csv("predictions.csv")) == len(pd.read_csv("new.csv"))


def test_the_first_example_prints_the_unweighted_models_digits_on_every_machine(capsys):
    """Those of searched strategies depend on how a machine rounds, as the README says."""
    _, code, output = blocks(README)[1]
    run_python(code, "README.md", {})
    said, printed = (
        re.findall(r"^unweighted .*$", text, re.MULTILINE) for text in (output, capsys.readouterr().out)
    )
    assert len(said) == 1 and printed == said


def test_the_first_example_is_short():
    code = blocks(README)[1].code
    assert code.count("\n") <= 15


def test_the_first_screen_has_the_two_commands():
    first_screen = "\n".join(TEXT.splitlines()[:40])
    assert "make demo" in first_screen
    assert "make test" in first_screen


def test_commands_within_the_text_exist():
    """They take too long to be run, or set up a machine."""
    scripts = re.findall(r"`python (benchmarks/\S+\.py)([^`]*)`", TEXT)
    assert len(scripts) >= 7
    for path, options in scripts:
        code = (ROOT / path).read_text(encoding="utf-8")
        if "from problem_runs import" in code:  # which has the options of several benchmarks
            code += (ROOT / "benchmarks/problem_runs.py").read_text(encoding="utf-8")
        for option in re.findall(r"--[a-z-]+", options):
            assert f'"{option}"' in code
    assert set(re.findall(r"`make ([a-z-]+)`", TEXT)) <= set(make_targets())
    for requirement in re.findall(r"`pip install ([^`]+)`", TEXT):
        assert set(extras(requirement)) <= set(known_extras())


def test_every_file_that_is_linked_exists():
    for target in re.findall(r"\]\(([^)#]+)", TEXT):
        assert (ROOT / target).exists(), target
