"""Cases of the command line: every command with sound and odd files and options, in this process.

Exit status 0, 1 or 2; on standard error lines that begin with "moew:", the last of which says what is wrong;
no traceback. A sound `moew fit` must work, and so must predict, weights and report with its folder.
"""

from __future__ import annotations

import json
import shutil
import traceback
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from click.testing import CliRunner
from fuzz_cases import WrongAnswer, chance, checking, damaged_bytes, expect, expect_close, pick
from fuzz_loaders import RUN_OPTIONS, finished_run, run_table
from fuzz_rows import Rng

from moew.cli import commands
from moew.exceptions import MoewError


class Refused(MoewError):  # noqa: N818  (a good end)
    """The command ended with status 1 or 2 and said why."""


class InsideError(Exception):
    """The command ended in an error that it does not expect."""


_COMMANDS = commands()


def command_line_case(rng: Rng) -> None:
    """Run a command."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        which = pick(rng, ["fit", "fit", "read", "read", "read", "words"])
        if which == "fit":
            _fit_case(rng, folder)
        elif which == "read":
            _read_case(rng, folder)
        else:
            _words_case(rng, folder)


def run(words: list[str], *, sound: bool = False) -> str:
    """What a command prints; raises `Refused` if it says that something is wrong, unless all is sound."""
    ended = CliRunner().invoke(_COMMANDS, words)
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        trace = "".join(traceback.format_exception(ended.exception))
        raise InsideError(f"moew {' '.join(words)}\n{trace}")
    expect(ended.exit_code in (0, 1, 2), f"moew {words} ended with status {ended.exit_code}")
    lines = [line for line in ended.stderr.splitlines() if line.strip()]
    expect("Traceback" not in ended.output, f"moew {words} shows a traceback: {ended.output}")
    if ended.exit_code == 0:
        return ended.stdout
    if lines and lines[0].startswith("Usage:") and not sound:
        raise Refused("a command without arguments shows its help")
    expect(lines and lines[-1].startswith("moew:"), f"moew {words} does not say what is wrong: {lines}")
    strange = [line for line in lines if not line.startswith(("moew:", "batch "))]  # "batch": its progress
    expect(not strange, f"moew {words} says more than lines of its own: {strange}")
    if sound:
        raise WrongAnswer(f"moew {words} is sound and was refused: {lines[-1]}")
    raise Refused(lines[-1])


def _fit_case(rng: Rng, folder: Path) -> None:
    n_classes = int(rng.choice([0, 2, 2, 3]))
    sound = chance(rng, 0.4)
    frame = run_table(rng, n_classes, n=int(rng.integers(40, 80)))
    train = folder / pick(rng, ["train.csv", "train.parquet"])
    out = folder / "run"
    _write(frame, train)
    words = ["fit", str(train), "--label", "y", "--id", "id", "--out", str(out)]
    words += ["--candidates", "3", "--set", f"batch_size={rng.integers(1, 4)}"]
    words += ["--model", pick(rng, ["logistic", "logistic"]) if n_classes else "ridge"]
    words += [
        "--metric",
        pick(rng, ["accuracy", "worst_class_error", "g_mean"]) if n_classes else "r_squared",
    ]
    words += ["--seed", str(rng.integers(5)), "--set", f"honest={pick(rng, ['none', 'halves'])}"]
    words += pick(
        rng,
        [
            [],
            ["--set", "embedding=label"],
            ["--set", "final=best", "--strategies", "example weights"],
            ["--set", "sampler=random"],
        ],
    )
    if chance(rng, 0.15):
        words += ["--also", "balanced_accuracy"] if n_classes else ["--also", "neg_mean_absolute_error"]
        words += pick(rng, [[], ["--constraint", "balanced_accuracy >= 0.5"]]) if n_classes else []
    if chance(rng, 0.1) and n_classes:
        words += ["--set", "calibrate=sigmoid"]
    words += pick(rng, [[], [], [], ["--candidates", "2"], ["--timeout", "1e6"], ["--timeout", "1e-9"]])
    if chance(rng, 0.5):
        valid = folder / "valid.csv"
        _write(run_table(rng, n_classes, 40), valid)
        words += ["--validation", str(valid)]
    if not sound:
        words = _odd_words(rng, words, folder)
        if chance(rng, 0.4):
            _spoil(rng, frame, train)
    run(words, sound=sound)
    if "--help" in words:
        return
    with checking(f"moew {words}"):
        _check_run(out, frame if sound else None, train, n_classes)


def _check_run(out: Path, frame: Any, train: Path, n_classes: int) -> None:
    result = json.loads((out / "result.json").read_text())
    expect(np.isfinite(result["moew"]["apparent"]), f"result.json has the score {result['moew']['apparent']}")
    if frame is None:
        return
    weights = pd.read_parquet(out / "weights.parquet")
    expect_close(weights["weight"].mean(), 1.0, "the mean weight", rtol=1e-6)
    again = out.parent / "predictions.csv"
    run(["predict", str(out), str(train), "--out", str(again)], sound=True)
    predictions = pd.read_csv(again)
    expect(len(predictions) == len(frame), f"{len(predictions)} predictions of {len(frame)} rows")
    if n_classes:
        expect(set(predictions["prediction"]) <= set(frame["y"]), "a prediction is none of the classes")
    weighed = out.parent / "weights.csv"
    run(["weights", str(out), str(train), "--out", str(weighed)], sound=True)
    there = pd.read_csv(weighed).set_index("id")["weight"]
    if not result["rows"]["validation"]:  # else importance weights of training rows are cross-fitted
        expect_close(there[weights["id"]].to_numpy(), weights["weight"].to_numpy(), "moew weights", rtol=1e-6)
    run(["report", str(out)], sound=True)


_VALUES = (
    "", "0", "-1", "1", "2", "0.5", "nan", "inf", "1e400", "x", "y", "a", "none", "auto", "--", "a,b", "=",
    "a=b", "@",
    "accuracy", "accuracy=2", "precision_at_recall=0.5", "os:system", "no:thing", "columns=a",
    "columns=zzz", "tuned",
    "threshold=0.5", "select=2", "accurate@train", "network", "xgboost", "label", "é" * 300, "best",
    "{predictions}", "accuracy >= 0.5", "accuracy <= x", ";", "\t", "sigmoid", "isotonic",
)  # fmt: skip
_OPTIONS = (
    "--label", "--validation", "--test", "--features", "--drop", "--id", "--sample-weight", "--groups",
    "--task", "--metric", "--metric-column", "--positive", "--decision", "--model-option", "--set", "--seed",
    "--config", "--folder", "--out", "--no-such-option", "--repeats", "--also", "--constraint",
    "--candidates", "--timeout", "--separator",
)  # fmt: skip
_PARAMETERS = (
    "evaluate_on", "embedding", "base_weights", "sampler", "radius", "alpha_zero_repeats", "stop_when",
    "sampler.p", "sampler.q", "sampler.width", "sampler.noise", "final", "honest", "most_failures",
    "embedding.n_dims", "embedding.trade_off", "calibrate", "eval_share", "metric.name", "metric.response",
    "metric.timeout", "no_such_parameter", "sampler.no", "batch_size", "n_candidates",
)  # fmt: skip
_FLAGS = (
    "--json",
    "--resume",
    "--force",
    "--strategies",
    "example weights",
    "--lower-is-better",
    "--compare",
    "--help",
)


def _odd_words(rng: Rng, words: list[str], folder: Path) -> list[str]:
    words = list(words)
    for _ in range(int(rng.choice([1, 1, 2, 3]))):
        what = pick(rng, ["option", "option", "option", "value", "flag", "delete"])
        if what == "option":
            option = pick(rng, _OPTIONS)
            values = [str(folder / "run"), str(folder)] if option == "--out" else list(_VALUES)
            value = pick(rng, values)
            is_parameter = option == "--set" and chance(rng, 0.9)
            words += [option, f"{pick(rng, _PARAMETERS)}={value}" if is_parameter else value]
        elif what == "value":
            where = int(rng.integers(1, len(words)))
            if words[where - 1] != "--out":
                words[where] = pick(rng, _VALUES)
        elif what == "flag":
            words.append(pick(rng, _FLAGS))
        else:
            del words[int(rng.integers(1, len(words)))]
    if "--out" not in words:  # the default is a folder in the current one
        words += ["--out", str(folder / "run")]
    return words


def _spoil(rng: Rng, frame: pd.DataFrame, path: Path) -> None:
    what = pick(
        rng,
        ["bytes", "missing", "one class", "one row", "empty column", "constant", "texts", "huge", "infinite"],
    )
    frame = frame.copy()
    if what == "missing":
        frame = frame.mask(rng.random(frame.shape) < 0.3)
    elif what == "one class":
        frame["y"] = frame["y"].iloc[0]
    elif what == "one row":
        frame = frame.iloc[:1]
    elif what == "empty column":
        frame["a"] = np.nan
    elif what == "constant":
        frame["a"] = 1.0
    elif what == "texts":
        frame["b"] = [f"t{k}" for k in range(len(frame))]
    elif what == "huge":
        frame["a"] *= 1e300
    elif what == "infinite":
        frame.loc[frame.index[0], "a"] = np.inf
    _write(frame, path)
    if what == "bytes":
        path.write_bytes(damaged_bytes(rng, path.read_bytes()))


def _write(frame: pd.DataFrame, path: Path) -> None:
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)


def _read_case(rng: Rng, folder: Path) -> None:
    """predict, weights and report with a finished run, and tables that are damaged or of another kind."""
    there = finished_run(int(rng.integers(len(RUN_OPTIONS))))
    run_folder, table = folder / "run", folder / pick(rng, ["t.csv", "t.parquet"])
    shutil.copytree(there.folder, run_folder)
    frame = pd.read_csv(there.table)
    command = pick(rng, ["predict", "predict", "weights", "evaluate", "report"])
    sound = chance(rng, 0.3)
    _write(frame, table)
    words = [command, str(run_folder)] + ([] if command == "report" else [str(table)])
    if not sound:
        _spoil(rng, frame, table)
        if chance(rng, 0.3):
            path = pick(rng, [path for path in sorted(run_folder.iterdir()) if path.is_file()])
            path.write_bytes(damaged_bytes(rng, path.read_bytes()))
        if chance(rng, 0.4):
            extra = [
                ["--json"],
                ["--trust"],
                ["--unweighted"],
                ["--out", str(folder / "o.csv")],
                ["--out", str(table)],
            ]
            extra += [
                ["--out", "/nowhere/o.csv"],
                ["--out", str(folder / "o.txt")],
                ["--no"],
                ["x"],
                ["--help"],
            ]
            words += pick(rng, extra)
    printed = run(words, sound=sound)
    if sound and command in ("predict", "weights"):
        with checking(f"moew {words}"):
            lines = printed.strip().splitlines()
            expect(len(lines) == len(frame) + 1, f"{len(lines)} lines for {len(frame)} rows")


def _words_case(rng: Rng, folder: Path) -> None:
    """Commands that end before anything is read, or nearly so."""
    command = pick(
        rng,
        [
            *("fit", "predict", "weights", "evaluate", "report", "compare", "metrics", "resume", "worker"),
            *("demo", "no", "", "--version"),
        ],
    )
    words = [command] + [
        pick(rng, [*_OPTIONS, *_VALUES, str(folder), "--help"]) for _ in range(rng.integers(0, 4))
    ]
    if command in ("demo", "metrics") and "--help" not in words:
        words.append("--help" if command == "demo" else "--json")
    run(words)
