"""`--metric`: a metric of moew's, a scikit-learn scorer, a function of the user's, or a program."""

from __future__ import annotations

import csv
import hashlib
import re
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

import numpy as np

from moew.cli._parameters import of_metric
from moew.cli._users_code import find_object, is_reference
from moew.exceptions import Argument, InvalidInputError

PREDICTIONS = "{predictions}"
ROW_ID = "row_id"
_TAKEN = re.compile(rf"{ROW_ID}|label|(decision|score|proba)(_\d+)?")  # names of the file's own columns
_SECONDS = 60.0  # that a program may take
_SHOWN = 300  # characters of a failed program's message


def metric_from(settings: dict[str, Any], columns: list[str], pos_label: Any) -> Any:
    """The metric that `--metric` or `--metric-command` names; `columns` are those of `--metric-column`."""
    name, program, folder = settings["metric"], settings["metric_command"], settings["folder"]
    if (name is None) == (program is None):
        raise InvalidInputError(
            "say what the model is judged by: --metric NAME (`moew metrics` lists them), --metric "
            'module:function, or --metric-command "./score {predictions}"; one of them.',
            argument="metric",
        )
    from moew.metrics import make_metric

    own = {
        "response": of_metric(settings, "response") or "decision",
        "greater_is_better": None if settings["lower_is_better"] is None else not settings["lower_is_better"],
        "pos_label": pos_label,
    }
    if program is not None:
        function = command_metric(program, own["response"], columns, _timeout(settings), folder)
        called = f"number of `{' '.join(program.replace(PREDICTIONS, '').split())}`"
        metric = make_metric(function, name=called, slow=True, **own)
    elif is_reference(name):
        metric = _users(find_object(name, "--metric", folder), name, own, settings)
    else:
        _check_fixed(name, settings)
        metric = _named(name, pos_label, lenient=bool(settings["also"]))
    renamed = of_metric(settings, "name")
    return metric if renamed is None else _renamed(metric, str(renamed))


def _timeout(settings: dict[str, Any]) -> float:
    """The seconds that a metric's program may take."""
    from moew._util.checks import POSITIVE

    given = of_metric(settings, "timeout")
    if given is not None and not POSITIVE.fits(given):
        raise InvalidInputError(f"--set metric.timeout must be a positive number of seconds, got {given!r}.")
    return _SECONDS if given is None else float(given)


def metrics_from(settings: dict[str, Any], columns: list[str], pos_label: Any) -> Any:
    """The metric of `--metric`, or with those of `--also` a dict of all, by the names that the user gave."""
    if not settings["also"]:
        return metric_from(settings, columns, pos_label)
    first = metric_from(settings, columns, pos_label)
    metrics = {settings["metric"] or first.name: first}
    for other in settings["also"]:
        if other in metrics:
            raise InvalidInputError(f"--also {other} is named twice.", argument="also")
        metrics[other] = _other(other, settings, pos_label)
    return metrics


def _other(name: str, settings: dict[str, Any], pos_label: Any) -> Any:
    from moew.metrics import FunctionMetric, resolve_metric

    if not is_reference(name):
        return _named(name, pos_label, lenient=True)
    found = resolve_metric(find_object(name, "--also", settings["folder"]))
    if isinstance(found, FunctionMetric) and found.pos_label is None:
        return replace(found, pos_label=pos_label)
    return found


def _named(name: str, pos_label: Any, lenient: bool) -> Any:
    """A metric by its name: moew's own, also where scikit-learn has one of that name. If `lenient`, as where
    several are named, the positive label is for those that have one."""
    from moew.metrics import METRICS, named_metric

    if pos_label is not None:
        try:
            return named_metric(name, pos_label)
        except InvalidInputError as error:
            if not (lenient and error.argument == "pos_label"):
                raise
    return METRICS[name].make() if name in METRICS else named_metric(name)


def _renamed(metric: Any, name: str) -> Any:
    """The metric under the name that `--set metric.name` gives it."""
    if not name.strip():
        raise InvalidInputError("--set metric.name is empty; say a few words.", argument="name")
    return replace(metric, name=name)


def _users(found: Any, name: str, own: dict[str, Any], settings: dict[str, Any]) -> Any:
    """The user's own object as a metric: a function takes the options, a metric or a scorer has its own."""
    from moew.metrics import Metric, ScorerMetric, make_metric, resolve_metric

    try:
        metric = resolve_metric(found)
    except InvalidInputError as error:
        if not _is_told(error, settings):
            raise
        return make_metric(found, **own)
    if isinstance(found, Metric) or isinstance(metric, ScorerMetric):
        _check_fixed(name, settings)
        if own["pos_label"] is not None:
            raise InvalidInputError(
                f"--metric {name} knows its positive label itself; leave out --positive.",
                argument="pos_label",
            )
        return metric
    return make_metric(found, **own)


def _is_told(error: InvalidInputError, settings: dict[str, Any]) -> bool:
    """Whether the error only asks for the direction or the response, and the options give them."""
    given = {"greater_is_better": settings["lower_is_better"], "response": of_metric(settings, "response")}
    asked = [part.name for part in error.parts if isinstance(part, Argument) and part.name in given]
    return bool(asked) and all(given[name] is not None for name in asked)


def _check_fixed(name: str, settings: dict[str, Any]) -> None:
    if settings["lower_is_better"] is not None or of_metric(settings, "response") is not None:
        raise InvalidInputError(
            f"--metric {name} knows its direction and what it looks at; --lower-is-better, "
            "--higher-is-better and --set metric.response are for functions of yours and --metric-command.",
            argument="metric",
        )


def positive_label(text: str | None, y: Any) -> Any:
    """The label that `--positive` names, as the training rows have it."""
    if text is None:
        return None
    labels = np.unique(y).tolist()
    for label in labels:
        if str(label) == text or (isinstance(label, float) and label == _number(text)):
            return label
    raise InvalidInputError(
        f"--positive {text!r} is not one of the labels {labels[:10]}.", argument="pos_label"
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


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
                "--set metric.timeout."
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
