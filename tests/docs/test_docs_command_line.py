"""Every command of docs/command-line.md runs as it stands there, in its order."""

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
from pages import DOCS, blocks, commands, run_command

from moew import cli

PAGE = DOCS / "command-line.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.heavy
@pytest.mark.usefixtures("own_folder")
def test_every_command_runs():
    done = [command for block in blocks(PAGE) for command in commands(block.code)]
    for command, text in done:
        if command == "moew resume run/":
            Path("run/result.json").unlink()  # the last file of a run: it was interrupted before that
        run_command(command, text)
    assert {shlex.split(command)[1] for command, _ in done if command.startswith("moew ")} == {
        "fit",
        "resume",
        "predict",
        "evaluate",
        "weights",
        "report",
        "compare",
        "worker",
    }
    test = pd.read_csv("test.csv")
    right = pd.read_csv("predictions.csv")["prediction"].to_numpy() == test["diagnosis"].to_numpy()
    assert right.mean() > 0.9
    assert len(pd.read_parquet("test-weights.parquet")) == len(test)
    function, program = (
        pd.read_json(f"{name}/result.json", typ="series") for name in ("by-function", "by-program")
    )
    assert function["alpha_zero"]["apparent"] == pytest.approx(0.1, abs=0.1)
    assert program["rows"] == function["rows"]
    assert {"tuned decisions"} <= {strategy["name"] for strategy in function["strategies"]}
    assert program["selected"] in {strategy["name"] for strategy in program["strategies"]}
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
