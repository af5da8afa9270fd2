"""Every command of docs/command-line.md runs as it stands there, in its order."""

import re
import shlex
import subprocess
import sys
from importlib import invalidate_caches
from pathlib import Path

import pandas as pd
import pytest
from tables import moew

from moew import cli

TEXT = (Path(__file__).parents[1] / "docs" / "command-line.md").read_text(encoding="utf-8")


def commands(block):
    """(command, text of its here-document) one after another."""
    place = 0
    lines = block.split("\n")
    while place < len(lines):
        line = lines[place]
        place += 1
        while line.endswith("\\"):
            line = line[:-1] + lines[place]
            place += 1
        text = None
        if line.endswith("<<'EOF'"):
            end = lines.index("EOF", place)
            text = "\n".join(lines[place:end]) + "\n"
            line, place = line.removesuffix("<<'EOF'").strip(), end + 1
        if line.strip():
            yield line, text


def run(command, text):
    words = shlex.split(command)
    if words[0] == "moew":  # in this process, where everything is loaded already
        moew(*words[1:])
    elif words[:2] == ["cat", ">"]:
        Path(words[2]).write_text(text)
        invalidate_caches()
    else:
        assert words[0] == "python"
        subprocess.run([sys.executable, *words[1:]], input=text, text=True, check=True)


@pytest.mark.usefixtures("own_folder")
def test_every_command_runs():
    blocks = re.findall(r"```sh\n(.*?)```", TEXT, flags=re.DOTALL)
    done = [command for block in blocks for command in commands(block)]
    for command, text in done:
        run(command, text)
    assert {shlex.split(command)[1] for command, _ in done if command.startswith("moew ")} == {
        "fit",
        "predict",
        "weights",
        "compare",
    }
    test = pd.read_csv("test.csv")
    right = pd.read_csv("predictions.csv")["prediction"].to_numpy() == test["diagnosis"].to_numpy()
    assert right.mean() > 0.9
    assert len(pd.read_parquet("test-weights.parquet")) == len(test)
    function, program = (
        pd.read_json(f"{name}/result.json", typ="series") for name in ("by-function", "by-program")
    )
    assert function["baseline"]["best"] == pytest.approx(0.1, abs=0.1)
    assert program["rows"]["validation"] < function["rows"]["validation"]
    assert Path("again/settings.toml").read_text() == Path("first/settings.toml").read_text()


def test_every_command_is_told_of():
    for name in cli.commands().commands:
        assert f"| `moew {name}` |" in TEXT


def test_every_option_that_is_told_of_exists():
    known = {
        option
        for command in cli.commands().commands.values()
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    told = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", TEXT))
    assert told <= known | {"--help"}
