"""Files of small problems, and the command line called on them, for several tests."""

import json
import sys
from contextlib import chdir
from functools import cache
from importlib import invalidate_caches
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import numpy as np
import pandas as pd
from click.testing import CliRunner
from problems import mixed_frame, shifted_classes, skewed_target

from moew import cli

QUICK = ("--set", "embedding=label", "--candidates", "3", "--set", "batch_size=3")
# A third of the time: evaluated on the validation rows alone, for tests that only need a run.
WITHOUT_FOLDS = (*QUICK, "--set", "evaluate_on=validation")
# As in the paper: evaluated on the validation rows alone, and the best candidate is selected.
PAPER = ("--set", "evaluate_on=validation", "--set", "final=best", "--strategies", "example weights")


def moew(*arguments, status=0):
    """Run a command in this process; its result, whose exit status must be as told (None: any)."""
    done = CliRunner().invoke(cli.commands(), [str(a) for a in arguments], prog_name="moew")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert status in (done.exit_code, None), (done.exit_code, done.stdout, done.stderr)
    return done


@cache
def _files_of_run(arguments):
    with TemporaryDirectory() as folder, chdir(folder):
        write_classes(Path())
        moew(*arguments)
        return contents("run")


def fit_once(*arguments):
    """As `moew`, for a fit on the tables of `write_classes` into the folder run; done once in a process."""
    for name, content in _files_of_run(tuple(map(str, arguments))).items():
        path = Path("run", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def refused(*arguments, status=2):
    """The one line (or, for wrong options, click's few lines) on standard error of a command that fails."""
    done = moew(*arguments, status=status)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr


def in_json(*arguments):
    """The JSON object on standard output, which holds nothing else."""
    return json.loads(moew(*arguments, "--json").stdout)


def write_classes(folder: Path, n_classes: int = 2, names=("no", "yes", "perhaps")) -> None:
    """train.csv, valid.csv and test.csv with columns a, b, y and an id."""
    rows = shifted_classes(120, n_classes)
    for name, X, y in (
        ("train", rows.X, rows.y),
        ("valid", rows.X_val, rows.y_val),
        ("test", rows.X_test, rows.y_test),
    ):
        frame = pd.DataFrame({"id": [f"{name}-{i}" for i in range(len(y))], "a": X[:, 0], "b": X[:, 1]})
        frame["amount"] = np.abs(X[:, 1]).round(2) + 1
        frame["y"] = np.asarray(names)[y]
        frame.to_csv(folder / f"{name}.csv", index=False)


def write_mixed(folder: Path) -> None:
    """mixed.csv and more.csv: numbers with gaps, truths, texts with gaps, and labels of text."""
    for name, seed in (("mixed", 0), ("more", 1)):
        frame, y = mixed_frame(seed=seed)
        frame.assign(y=y).to_csv(folder / f"{name}.csv", index=False)


def write_numbers(folder: Path) -> None:
    """numbers.csv: a regression."""
    rows = skewed_target(120)
    pd.DataFrame({"a": rows.X[:, 0], "b": rows.X[:, 1], "y": rows.y}).to_csv(
        folder / "numbers.csv", index=False
    )


def write_module(folder: Path, name: str, text: str) -> None:
    """A module of the user's in the current folder, new to this process."""
    (folder / f"{name}.py").write_text(text, encoding="utf-8")
    sys.modules.pop(name, None)
    invalidate_caches()  # a folder's listing may be older than the file


SEARCH = Path("run/search.moew")


def entries(path=SEARCH):
    """The files in a saved search, by name."""
    with ZipFile(path) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def change_entries(changes, path=SEARCH):
    """Write a saved search with some of its files changed; None takes one out."""
    Path(path).write_bytes(zipped({**entries(path), **changes}))


def zipped(files):
    """A zip of files by name, without those that are None."""
    written = BytesIO()
    with ZipFile(written, "w") as packed:
        for name, content in files.items():
            if content is not None:
                packed.writestr(name, content)
    return written.getvalue()


def contents(folder):
    """The bytes of every file in a folder and its folders, by path."""
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
