"""`python -m experiments NAME`: run an experiment of the paper from the command line.

Tables are printed; raw numbers, figures and intermediate results go to a folder. An interrupted command
continues where it stopped when run again. `python -m experiments all` runs every experiment, some at a time.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from experiments import OutOfTimeError
from moew.exceptions import MoewError

FAILED, OUT_OF_TIME, INTERRUPTED = 1, 3, 130


@dataclass(frozen=True)
class Experiment:
    """An experiment's command: help, defaults and options; its module has `main(options, **more) -> str`.

    more: names of its own options, their choices (the first is the default), and help.
    files: names of options that take a file of the user, and help.
    by_setting: whether some of its settings can be run alone, and the tables made from the raw numbers.
    """

    summary: str
    repeats: int = 100
    steps: int = 10_000
    more: dict[str, tuple[tuple[str, ...], str]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    by_setting: bool = False


EXPERIMENTS = {
    "toy": Experiment(
        "Figure 1: two features, shifted, precision at 95 % recall.",
        repeats=30,
        steps=2_000,
        more={
            "model": (("logistic", "network"), "What is trained; --steps are the network's."),
            "sampler": (("gp_bucb", "random"), "Where alphas come from."),
        },
    ),
    "sampling": Experiment("Figure 2: where GP-BUCB samples; validation against test."),
    "mnist": Experiment("Figure 3: the worst digit's error, by size of the network.", by_setting=True),
    "wine": Experiment(
        "Figure 4: the worst price range's error; d, B, p and q.",
        files={"csv": "Kaggle's whole file, winemag-data-130k-v2.csv."},
        by_setting=True,
    ),
    "crime": Experiment("Tables 1 and 2: fairness on few rows, IID and shifted.", by_setting=True),
    "spam": Experiment("Value saved per harm done, on credit default."),
    "pages": Experiment("Graded quality of selected pages, on blog feedback."),
    "bound": Experiment("Theorem 2 beside the search over an ε-cover (no networks)."),
}


def parser() -> argparse.ArgumentParser:
    """The command line parser, with all experiments as subcommands."""
    words = "Run an experiment of the paper. An interrupted command goes on where it stopped when run again."
    made = argparse.ArgumentParser("python -m experiments", description=words)
    commands = made.add_subparsers(dest="name", required=True, metavar="NAME")
    for name, experiment in EXPERIMENTS.items():
        command = commands.add_parser(
            name,
            help=experiment.summary.replace("%", "%%"),
            description=experiment.summary,
            formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        )
        _add_options(command, experiment)
    _add_demo(commands)
    words = "Every experiment, some at a time; how long each took is in OUT/minutes.txt."
    command = commands.add_parser("all", help=words, description=words)
    _add_options(command, None)
    command.add_argument(
        "--together", type=_at_least(1), default=1, metavar="N", help="Experiments at a time. (default: 1)"
    )
    return made


def _add_demo(commands: Any) -> None:
    words = "What moew is for, on digits that ship with scikit-learn: tables here, a picture and a report "
    words += 'in a folder. "figure-1" is Figure 1 of the paper, with a report; it can be interrupted.'
    command = commands.add_parser("demo", help="What moew is for, in less than a minute.", description=words)
    command.add_argument("which", nargs="?", choices=("digits", "figure-1"), default="digits")
    words = "Of the whole demo, for margins. (default: 12; 30 for figure-1)"
    command.add_argument("--repeats", type=_at_least(2), default=None, metavar="N", help=words)
    words = "Processes at a time. (default: 2)"
    command.add_argument("--jobs", type=_at_least(1), default=2, metavar="N", dest="n_jobs", help=words)
    words = "Folder of all results. (default: out)"
    command.add_argument("--out", type=Path, default=Path("out"), help=words)


def _add_options(command: argparse.ArgumentParser, experiment: Experiment | None) -> None:
    """Add the options of an experiment; with None those of all, whose defaults are the experiments' own."""

    def option(name: str, kind: Callable[[str], Any], default: Any, words: str, **more: Any) -> None:
        shown = {"default": default if experiment else argparse.SUPPRESS, "help": words, **more}
        command.add_argument(f"--{name}", type=kind, **shown)

    usual = experiment or Experiment("")
    option("repeats", _at_least(2), usual.repeats, "Of the whole experiment, for margins.", metavar="N")
    option("seed", _at_least(0), 0, "Of all chance.", metavar="N")
    option("device", str, None, "None is what JAX would take.", choices=("cpu", "gpu"))
    option("precision", str, "float32", "Of products.", choices=("float32", "tf32", "bfloat16"))
    option("steps", _at_least(1), usual.steps, "Of training each network.", metavar="N")
    option("jobs", _at_least(1), 1, "Processes at a time.", metavar="N", dest="n_jobs")
    option("minutes", _above_zero, None, "Stop cleanly after so many.", metavar="N")
    option("out", Path, Path("out"), "Folder of all results.")
    for name, (choices, words) in usual.more.items():
        option(name, str, choices[0], words, choices=choices)
    for name, words in usual.files.items():
        option(name, _existing_file, None, words)
    if usual.by_setting:
        which = command.add_mutually_exclusive_group()
        words = "Run only the setting of this name in the raw numbers, with * for any text; may be repeated. "
        words += "Its numbers replace those in the folder, and the tables are made from all of them."
        which.add_argument("--only", action="append", metavar="NAME", help=words)
        words = "Run nothing: make the tables and figures from the raw numbers in the folder."
        which.add_argument(
            "--tables", action="store_const", const=[], default=argparse.SUPPRESS, dest="only", help=words
        )


def _existing_file(text: str) -> Path:
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(f"there is no file {text}")
    return Path(text)


def _at_least(least: int) -> Callable[[str], int]:
    def integer(text: str) -> int:
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, got {text}")
        return int(text)

    return integer


def _above_zero(text: str) -> float:
    if not float(text) > 0:
        raise argparse.ArgumentTypeError(f"must be above 0, got {text}")
    return float(text)


def run(name: str, given: dict[str, Any], show: Callable[[str], Any]) -> tuple[int, str]:
    """Run the experiment of that name; returns the exit status, and a line that says what went wrong."""
    return ended(lambda: show(_table(name, given)))


def ended(compute: Callable[[], Any]) -> tuple[int, str]:
    """How the computation ended: the exit status, and a line that says what went wrong."""
    if find_spec("matplotlib") is None:
        return FAILED, "the experiments draw figures; install matplotlib with: pip install 'moew[plot]'"
    try:
        compute()
    except OutOfTimeError as over:
        return OUT_OF_TIME, str(over)
    except KeyboardInterrupt:
        return INTERRUPTED, "interrupted; run the same command again to go on"
    except (MoewError, OSError, MemoryError) as error:  # anything else is a bug and keeps its traceback
        return FAILED, " ".join(f"{str(error) or type(error).__name__}".split())
    return 0, ""


def _table(name: str, given: dict[str, Any]) -> str:
    """What the experiment of that name has to show, with these options."""
    from experiments._experiment import Options

    if given.get("only") is not None:
        given = {**given, "only": tuple(given["only"])}
    shared = {option.name for option in fields(Options)}
    options = Options(**{key: value for key, value in given.items() if key in shared})
    more = {key: value for key, value in given.items() if key not in shared}
    table: str = importlib.import_module(f"experiments.{name}").main(options, **more)
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and run; returns the exit status."""
    given = vars(parser().parse_args(arguments))
    name = given.pop("name")
    if name == "all":
        from experiments._all import run_all

        return run_all(given)
    if name == "demo":
        from experiments import demo

        status, line = ended(lambda: demo.main(**given))
    else:
        status, line = run(name, given, print)
    if line:
        print(f"experiments: {line}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
