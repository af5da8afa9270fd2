"""`moew paper NAME`: the experiments of the paper from the command line."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moew.exceptions import MoewError

if TYPE_CHECKING:
    import click

FAILED, OUT_OF_TIME, INTERRUPTED = 1, 3, 130


@dataclass(frozen=True)
class Experiment:
    """A module of `moew.paper` with `main(options, **more) -> str`: what its command says and offers.

    more: names of options of its own, their choices (the first is the default), and help.
    files: names of options that are files of the user's, and help.
    """

    summary: str
    repeats: int = 100
    steps: int = 10_000
    more: dict[str, tuple[tuple[str, ...], str]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


EXPERIMENTS = {
    "toy": Experiment(
        "Figure 1: two features, shifted, precision at 95 % recall.",
        repeats=30,
        steps=2_000,
        more={
            "model": (("logistic", "network"), "What is trained; --steps are the network's."),
            "search": (("gp_bucb", "random"), "Where alphas come from."),
        },
    ),
    "sampling": Experiment("Figure 2: where GP-BUCB samples; validation against test."),
    "mnist": Experiment("Figure 3: the worst digit's error, by size of the network."),
    "wine": Experiment(
        "Figure 4: the worst price range's error; d, B, p and q.",
        files={"csv": "Kaggle's whole file, winemag-data-130k-v2.csv."},
    ),
    "crime": Experiment("Tables 1 and 2: fairness on few rows, IID and shifted."),
    "spam": Experiment("Value saved per harm done, on credit default."),
    "pages": Experiment("Graded quality of selected pages, on blog feedback."),
    "bound": Experiment("Theorem 2 beside the search over an ε-cover (no networks)."),
}


def command() -> click.Group:
    """`moew paper` with all experiments."""
    import click

    @click.group()
    def paper() -> None:
        """Run an experiment of the paper.

        Tables are printed; raw numbers, figures and what is done so far go to a
        folder. An interrupted command goes on where it stopped when run again.
        """

    for name, experiment in EXPERIMENTS.items():
        paper.add_command(_command(name, experiment))
    return paper


def _command(name: str, experiment: Experiment) -> click.Command:
    import click

    positive = click.IntRange(min=1)
    options: list[click.Parameter] = [
        _option(
            "repeats", click.IntRange(min=2), experiment.repeats, "Of the whole experiment, for margins."
        ),
        _option("seed", click.IntRange(min=0), 0, "Of all chance."),
        _option("device", click.Choice(["cpu", "gpu"]), None, "Default: what JAX would take."),
        _option("precision", click.Choice(["float32", "tf32", "bfloat16"]), "float32", "Of matrix products."),
        _option("steps", positive, experiment.steps, "Of training each network."),
        _option("jobs", positive, 1, "Processes at a time."),
        _option("minutes", click.FloatRange(min=0, min_open=True), None, "Stop cleanly after so many."),
        _option("out", click.Path(file_okay=False, path_type=Path), Path("out"), "Folder of all results."),
    ]
    for extra, (choices, words) in experiment.more.items():
        options.append(_option(extra, click.Choice(choices), choices[0], words))
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    options += [_option(name, file, None, words) for name, words in experiment.files.items()]

    def callback(**given: Any) -> None:
        given["n_jobs"] = given.pop("jobs")
        status, line = run(name, given, click.echo)
        if line:
            click.echo(f"moew: {line}", err=True)
        click.get_current_context().exit(status)

    return click.Command(name, params=options, callback=callback, help=experiment.summary)


def _option(name: str, kind: Any, default: Any, words: str) -> click.Option:
    import click

    metavar = "N" if isinstance(kind, click.IntRange | click.FloatRange) else None
    return click.Option(
        [f"--{name}"],
        type=kind,
        default=default,
        show_default=default is not None,
        help=words,
        metavar=metavar,
    )


def run(name: str, given: dict[str, Any], show: Callable[[str], Any]) -> tuple[int, str]:
    """Run the experiment of that name; the exit status, and a line on what went wrong."""
    if find_spec("matplotlib") is None:
        return FAILED, "the experiments draw figures; install matplotlib with: pip install 'moew[plot]'"
    from moew.paper._experiment import Options
    from moew.paper._searches import OutOfTimeError

    shared = {option.name for option in fields(Options)}
    options = Options(**{key: value for key, value in given.items() if key in shared})
    more = {key: value for key, value in given.items() if key not in shared}
    try:
        show(importlib.import_module(f"moew.paper.{name}").main(options, **more))
    except OutOfTimeError as ended:
        return OUT_OF_TIME, str(ended)
    except KeyboardInterrupt:
        return INTERRUPTED, "interrupted; run the same command again to go on"
    except (MoewError, OSError, MemoryError) as error:  # anything else is a bug, and shows where
        return FAILED, " ".join(f"{str(error) or type(error).__name__}".split())
    return 0, ""
