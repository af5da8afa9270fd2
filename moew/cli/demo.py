"""`moew demo`: a search on real data with its report and its repeats, or Figure 1 of the paper."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from moew.cli._ending import one_line_errors
from moew.exceptions import MoewError

_REPEATS = {"digits": 12, "figure-1": 30}


def command() -> click.Command:
    @click.command()
    @click.argument("which", type=click.Choice(list(_REPEATS)), default="digits")
    @click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, metavar="N")
    @click.option(
        "--repeats",
        type=click.IntRange(min=2),
        default=None,
        metavar="N",
        help="Of the whole experiment, for margins.  [default: 12; 30 for figure-1]",
    )
    @click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("out"),
        show_default=True,
        help="Folder of all results.",
    )
    def demo(which: str, jobs: int, repeats: int | None, out: Path) -> None:
        """What moew is for, on data that ships with scikit-learn: tables here, a
        picture and a report in a folder.

        "digits" (the default): a reader of digits is judged by the digit that it
        reads worst, and the training rows have few of some. One search and its
        report, then repeats on test rows, beside what one would try first.

        "figure-1": Figure 1 of the paper, precision at 95 % recall with uniform,
        random, importance and learned weights. Run again, it goes on where it was
        interrupted.
        """
        with one_line_errors("run the same command again"):
            if find_spec("matplotlib") is None:
                raise MoewError("the demo draws a figure; install matplotlib with: pip install 'moew[plot]'")
            repeats = repeats or _REPEATS[which]
            if which == "digits":
                _read_digits(repeats, jobs, out / "digits")
            else:
                click.echo(_draw_figure_1(repeats, jobs, out / "toy"))
                click.echo(f"The report: {_write_figure_1_report(out / 'toy' / 'report.html')}")

    return demo


def _read_digits(repeats: int, jobs: int, folder: Path) -> None:
    """One search as a user would run it, the repeats, and where everything is; the report last."""
    import pandas as pd

    from moew.cli import _digits
    from moew.report import write_report

    folder.mkdir(parents=True, exist_ok=True)
    (X, y), (X_val, y_val), _ = _digits.draw_parts(0)
    pixels = [f"row {row}, column {column}" for row in range(1, 5) for column in range(1, 5)]
    X, X_val = (pd.DataFrame(part, columns=pixels) for part in (X, X_val))
    click.echo(
        f"Digits, scanned at 4 × 4 pixels: {len(y)} training rows with few of the digits 5 to 9, and\n"
        f"{len(y_val)} validation rows with all alike. What counts is the error on the digit read worst.\n"
    )
    search = _digits.make_search(0).fit(X, y, X_val=X_val, y_val=y_val)
    click.echo(f"{search.result_}\n")
    report = write_report(search, X, y, folder / "report.html", X_val=X_val, y_val=y_val)
    done = _digits.run_repeats(repeats, jobs, lambda done: _say_how_far(done, repeats))
    numbers, picture = _digits.write_results(done, folder)
    click.echo(f"{_digits.table(done)}\n")
    click.echo(f"The numbers: {numbers}\nThe picture: {picture}\nThe report of the search above: {report}")


def _draw_figure_1(repeats: int, jobs: int, folder: Path) -> str:
    """Run the experiment and draw its figure; the table and the files, as text."""
    from moew.cli._figure_1 import run_figure_1

    return run_figure_1(folder, repeats, n_jobs=jobs, on_repeat=lambda done: _say_how_far(done, repeats))


def _say_how_far(done: int, repeats: int) -> None:
    click.echo(f"repeat {done} of {repeats}", err=True)


def _write_figure_1_report(path: Path) -> Path:
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
