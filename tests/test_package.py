"""The package as a whole: light to import, typed, with the names it promises, and quiet in pipes."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import moew
from moew._util.progress import progress

HEAVY = ("sklearn", "optuna", "jax", "torch", "matplotlib", "pandas", "scipy", "numpy")


def test_importing_moew_loads_nothing_heavy():
    code = f"import sys, moew; print([m for m in {HEAVY!r} if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "[]"


def test_every_public_name_is_there():
    for name in moew.__all__:
        assert getattr(moew, name) is not None
    assert set(moew.__all__) <= set(dir(moew))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = moew.nonsense


def test_the_version_is_the_same_everywhere():
    root = Path(__file__).parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    assert project["version"] == moew.__version__
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [moew.__version__]


def test_every_python_that_is_tested_is_said():
    root = Path(__file__).parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    said = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    (tested,) = re.findall(
        r"^VERSIONS := (.+)$", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert said == tested.split()
    assert project["requires-python"] == f">={said[0]}"


def test_progress_is_silent_in_pipes_unless_asked(capsys):
    with progress(4, 2) as report:
        report(1, 1, 0.5)
    assert capsys.readouterr().err == ""
    with progress(4, 2, enabled=True) as report:
        for done in range(1, 5):
            report(done, (done + 1) // 2, 0.5)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("batch 1/2: 1/4 candidates, best 0.5")
    assert lines[-1].startswith("batch 2/2: 4/4")


def test_progress_is_a_bar_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with progress(2, 1) as report:
        report(1, 1, 0.25)
        report(2, 1, 0.75)
    shown = capsys.readouterr().err
    assert "batch 1/1" in shown
    assert "best 0.75" in shown


def test_private_modules_are_imported_only_inside_their_room():
    package, found = Path(moew.__file__).parent, []
    for path in package.rglob("*.py"):
        room = path.relative_to(package).parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found += [
                f"{path.relative_to(package)}: {name}"
                for name in names
                if name.startswith("moew.")
                and name.split(".")[1] != room
                and "._" in name.removeprefix("moew.")
            ]
    assert not found
