"""`moew demo`: Figure 1 of the paper, and the report of one of its searches."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from moew.cli._ending import one_line_errors
from moew.exceptions import MoewError

_REPEATS = 30


def command() -> click.Command:
    @click.command()
    @click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, metavar="N")
    @click.option(
        "--repeats",
        type=click.IntRange(min=2),
        default=_REPEATS,
        show_default=True,
        metavar="N",
        help="Of the whole experiment, for margins.",
    )
    @click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("out"),
        show_default=True,
        help="Folder of all results.",
    )
    def demo(jobs: int, repeats: int, out: Path) -> None:
        """Figure 1 of the paper: a table here, a picture and a report in a folder.

        Precision at 95 % recall with uniform, random, importance and learned
        weights. The report is of the first of all searches. Run again, it goes on
        where it was interrupted.
        """
        with one_line_errors("run the same command again to go on"):
            if find_spec("matplotlib") is None:
                raise MoewError("the demo draws a figure; install matplotlib with: pip install 'moew[plot]'")
            click.echo(_draw_figure_1(repeats, jobs, out / "toy"))
            click.echo(f"The report: {_write_report(out / 'toy' / 'report.html')}")

    return demo


def _draw_figure_1(repeats: int, jobs: int, folder: Path) -> str:
    """Run the experiment and draw its figure; the table and the files, as text."""
    from moew.cli._figure_1 import run_figure_1

    def say_how_far(done: int) -> None:
        click.echo(f"repeat {done} of {repeats}", err=True)

    return run_figure_1(folder, repeats, n_jobs=jobs, on_repeat=say_how_far)


def _write_report(path: Path) -> Path:
    """Fit the search of the first repeat again, with the same result, and write its report."""
    import pandas as pd

    from moew.cli._figure_1 import first_search
    from moew.data import UserRows
    from moew.report import write_report
    from moew.search import prepare, run_search

    search, (X, y), (X_val, y_val) = first_search()
    X, X_val = (pd.DataFrame(part, columns=["x₁", "x₂"]) for part in (X, X_val))
    # Not `fit`, which would go on with what it has after Ctrl-C.
    fitted = run_search(prepare(search.settings, UserRows(X, y), UserRows(X_val, y_val)))
    return write_report(fitted, X, y, path, X_val=X_val, y_val=y_val)
