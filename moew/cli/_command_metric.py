"""`--metric-command`: a metric written in any language, run as a program on a CSV of the rows."""

from __future__ import annotations

import csv
import hashlib
import re
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

import numpy as np

from moew.exceptions import InvalidInputError

PREDICTIONS = "{predictions}"
ROW_ID = "row_id"
_TAKEN = re.compile(rf"{ROW_ID}|label|(decision|score|proba)(_\d+)?")  # names of the file's own columns
_SHOWN = 300  # characters of a failed program's message


@dataclass(frozen=True)
class CommandMetric:
    """A metric function that runs a program and takes the number on the last line of its output.

    Its CSV has the columns `row_id`, `label`, then `decision`, `score` or `proba` (one for each class where
    there are more than two), then the metric's columns. There is no shell in between.
    """

    words: tuple[str, ...]
    response: str
    columns: tuple[str, ...]
    timeout: float
    digest: str  # of the files named in the command, so that a changed program is another metric
    folder: Path  # where it is run

    @property
    def __signature__(self) -> Signature:
        # `make_metric` reads from the signature which columns to pass.
        names = ["y_true", "output", ROW_ID, *self.columns]
        return Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names])

    def __call__(self, y_true: Any, output: Any, row_id: Any, **columns: Any) -> float:
        table = {ROW_ID: row_id, "label": y_true, **_outputs(self.response, np.asarray(output)), **columns}
        with tempfile.TemporaryDirectory(prefix="moew-") as folder:
            path = Path(folder) / "predictions.csv"
            _write(table, path)
            return self._run(path)

    def _run(self, path: Path) -> float:
        command = [word.replace(PREDICTIONS, str(path)) for word in self.words]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=self.timeout,
                stdin=subprocess.DEVNULL,
                cwd=self.folder,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise InvalidInputError(
                f"the metric's program {self.words[0]!r} took longer than {self.timeout:g} seconds; raise "
                "--metric-timeout."
            ) from None
        except (OSError, ValueError) as error:
            raise InvalidInputError(
                f"the metric's program {self.words[0]!r} cannot be run in the folder {self.folder}: {error}"
            ) from error
        if done.returncode:
            said = _end_of(done.stderr) or _end_of(done.stdout) or "it said nothing"
            raise InvalidInputError(
                f"the metric's program {self.words[0]!r} failed with exit status {done.returncode}: {said}"
            )
        lines = done.stdout.strip().splitlines()
        try:
            return float(lines[-1])
        except (IndexError, ValueError):
            last = repr(lines[-1][:80]) if lines else "nothing"
            raise InvalidInputError(
                f"the last line that the metric's program {self.words[0]!r} prints must be a number, "
                f"got {last}."
            ) from None


def command_metric(
    text: str, response: str, columns: Sequence[str], timeout: float, folder: Path
) -> CommandMetric:
    """Make the metric from a command line, in which `{predictions}` stands for the CSV file."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise InvalidInputError(f"--metric-command {text!r} cannot be split into words: {error}.") from error
    if not any(PREDICTIONS in word for word in words):
        raise InvalidInputError(
            f"--metric-command needs the word {PREDICTIONS}, where the name of the file goes: "
            f'"./score {PREDICTIONS}".'
        )
    if taken := [name for name in columns if _TAKEN.fullmatch(name)]:
        raise InvalidInputError(
            f"--metric-column {taken[0]}=…: the program's file has a column {taken[0]!r} of its own; call "
            "yours something else."
        )
    files = [folder / word for word in words if PREDICTIONS not in word and (folder / word).is_file()]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    return CommandMetric(words, response, tuple(columns), timeout, digest, folder)


def _outputs(response: str, output: np.ndarray[Any, Any]) -> dict[str, Any]:
    if output.ndim == 1:
        return {response: output}
    return {f"{response}_{k}": output[:, k] for k in range(output.shape[1])}


def _write(table: dict[str, Any], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table)
        # tolist: Python's own numbers, which are written with all their digits
        writer.writerows(zip(*(np.asarray(column).tolist() for column in table.values()), strict=True))


def _end_of(text: str) -> str:
    """The last characters of a message: a traceback ends with the error."""
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"…{line[-_SHOWN:]}"
