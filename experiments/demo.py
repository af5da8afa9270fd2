"""What moew is for, in less than a minute: `python -m experiments demo`; or Figure 1 with a report."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pandas as pd

from experiments import digits, figure_1
from moew.data import Rows
from moew.report import write_report
from moew.search import prepare, run_search


def main(which: str, repeats: int | None, n_jobs: int, out: Path) -> None:
    """Run "digits" or "figure-1" and print its tables; files go to a folder in `out`."""
    if which == "digits":
        _show_digits(repeats or digits.REPEATS, n_jobs, out / "digits")
    else:
        _show_figure_1(repeats or figure_1.REPEATS, n_jobs, out / "toy")


def _show_digits(repeats: int, n_jobs: int, folder: Path) -> None:
    """One search as a user would run it, the repeats, and where everything is; the report last."""
    folder.mkdir(parents=True, exist_ok=True)
    (X, y), (X_val, y_val), _ = digits.draw_parts(0)
    pixels = [f"row {row}, column {column}" for row in range(1, 5) for column in range(1, 5)]
    X, X_val = (pd.DataFrame(part, columns=pixels) for part in (X, X_val))
    print(
        f"Digits, scanned at 4 × 4 pixels: {len(y)} training rows with few of the digits 5 to 9, and\n"
        f"{len(y_val)} validation rows with all alike. What counts is the error on the digit read worst.\n"
    )
    search = digits.make_search(0).fit(X, y, validation=(X_val, y_val))
    print(f"{search.result_}\n", flush=True)
    report = write_report(search, X, y, folder / "report.html", validation=Rows(X_val, y_val))
    done = digits.run_repeats(repeats, n_jobs, partial(_say_how_far, repeats=repeats))
    numbers, picture = digits.write_results(done, folder)
    print(f"{digits.table(done)}\n")
    print(f"The numbers: {numbers}\nThe picture: {picture}\nThe report of the search above: {report}")


def _show_figure_1(repeats: int, n_jobs: int, folder: Path) -> None:
    """The experiment and its figure; then the first repeat's search again, for its report."""
    tick = partial(_say_how_far, repeats=repeats)
    print(figure_1.run_figure_1(folder, repeats, n_jobs=n_jobs, on_repeat=tick))
    search, (X, y), (X_val, y_val) = figure_1.first_search()
    X, X_val = (pd.DataFrame(part, columns=["x₁", "x₂"]) for part in (X, X_val))
    # Not `fit`, which would go on with what it has after Ctrl-C.
    fitted = run_search(prepare(search.settings, Rows(X, y), Rows(X_val, y_val)))
    report = write_report(fitted, X, y, folder / "report.html", validation=Rows(X_val, y_val))
    print(f"The report: {report}")


def _say_how_far(done: int, repeats: int) -> None:
    print(f"repeat {done} of {repeats}", file=sys.stderr)
