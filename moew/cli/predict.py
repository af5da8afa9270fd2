"""What a finished run is for: `moew predict`, `moew weights` of any rows, and `moew report`, made again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moew._util.numbers import count
from moew.cli import _shown
from moew.cli._ending import one_line_errors, tell
from moew.cli._options import FILE, FOLDER
from moew.cli._users_code import find_object, users_code
from moew.exceptions import InvalidInputError, MissingObjectError

if TYPE_CHECKING:
    from moew.cli.runs import FinishedRun, Schema
    from moew.cli.runs._schema import TableRows

_SHOWN_VALUES = 3  # of unseen categories that a warning names
TRUST = "Load a model that is kept as code; only of runs whose maker you trust."


def of_run_and_table(
    out: str, trust: str, *more: Callable[..., Any]
) -> Callable[[Callable[..., None]], click.Command]:
    """A decorator that makes a command RUN TABLE of a function; `out` and `trust` are the help of options,
    `more` are further ones. An error ends it with one line."""
    options = (
        click.argument("run", type=FOLDER),
        click.argument("table", type=FILE),
        click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help=out),
        click.option(
            "--separator",
            metavar="CHARACTER",
            help="Between the columns of a text file; default: found by looking.",
        ),
        click.option("--trust", is_flag=True, help=trust),
        *more,
        click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table."),
    )

    def decorate(function: Callable[..., None]) -> click.Command:
        decorated: Any = one_line_errors()(function)
        for option in reversed(options):
            decorated = option(decorated)
        return click.command()(decorated)

    return decorate


_unweighted = click.option("--unweighted", is_flag=True, help="With the model without learned weights.")


@of_run_and_table("Default: a CSV, printed.", TRUST, _unweighted)
def predict(
    run: Path,
    table: Path,
    out: Path | None,
    separator: str | None,
    trust: bool,
    unweighted: bool,
    as_json: bool,
) -> None:
    """Decide on the rows of a new file with the model of a run.

    \b
    moew predict run/ new.csv --out predictions.csv
    """
    from moew.cli.runs import load_run
    from moew.cli.runs._tables import separator_from

    refuse_to_overwrite(table, out)
    found = load_run(run, trust)
    rows = found.rows_to_predict(table, separator_from(separator))
    _say_how_rows_are_named(found.schema, rows, table)
    unseen = unseen_categories(found, rows, table)
    with users_code():
        predictions = found.predict(rows, unweighted=unweighted)
    _deliver(predictions, out, as_json, "predictions", {"unseen_categories": unseen})


@of_run_and_table("Default: a CSV, printed.", "Import the function that the embedding is.")
def weights(
    run: Path, table: Path, out: Path | None, separator: str | None, trust: bool, as_json: bool
) -> None:
    """The learned weights of the labelled rows of a file.

    \b
    moew weights run/ more.csv --out weights.parquet

    They are on the scale of the training rows' weights, whose mean is one.
    """
    from moew.cli.runs._tables import separator_from

    refuse_to_overwrite(table, out)
    found, rows = _read_to_weigh(run, table, separator_from(separator), trust)
    _say_how_rows_are_named(found.schema, rows, table)
    with users_code():
        found_weights = found.weights(rows)
    _deliver({rows.id_name: rows.ids, "weight": found_weights}, out, as_json, "weights", {})


def _read_to_weigh(
    run: Path, table: Path, separator: str | None, trust: bool
) -> tuple[FinishedRun, TableRows]:
    """The run and the rows of a file; functions that the embedding is are imported only with trust."""
    from moew.cli.runs import load_run

    functions: dict[str, Any] = {}
    while True:
        found = load_run(run, trust, functions)
        try:
            return found, found.rows_to_weigh(table, separator)
        except MissingObjectError as missing:
            if not trust:
                raise InvalidInputError(
                    f"the weights of {run} use the function {missing.name!r}: it is imported, and its code "
                    "run, only with --trust."
                ) from missing
            functions[missing.name] = find_object(missing.name, "--set embedding", Path.cwd())


@click.command()
@click.argument("run", type=FOLDER)
@one_line_errors()
def report(run: Path) -> None:
    """Make the report of a run again, from report.json in its folder."""
    from moew._util.whole_files import write_whole
    from moew.cli.runs import RunFolder
    from moew.cli.runs._folder import REPORT, REPORT_DATA
    from moew.report import render
    from moew.saving import reading

    data = RunFolder(run).read_json(REPORT_DATA)
    with reading(run / REPORT_DATA):
        page = render(data)
    write_whole(run / REPORT, lambda new: new.write_text(page, encoding="utf-8"), private=True)
    _shown.show(f"The report: {run / REPORT}")


def refuse_to_overwrite(table: Path, out: Path | None) -> None:
    """Raise if `out` is the file that is read."""
    if out is not None and out.exists() and out.samefile(table):
        raise InvalidInputError(f"--out {out} is the file that is read; name another.")


def _say_how_rows_are_named(schema: Schema, rows: TableRows, table: Path) -> None:
    """Tell a note if a file has no column of ids although the run's files had one."""
    if schema.id is not None and rows.id_name != schema.id:
        tell(f"note: {table} has no column {schema.id!r}, so its rows are named by their numbers, from 0")


def unseen_categories(run: FinishedRun, rows: TableRows, table: Path) -> dict[str, dict[str, int]]:
    """Rows of each category that no training row had, by column; a warning tells of each column."""
    found = run.unseen(rows)
    for column, values in found.items():
        n = sum(values.values())
        named = [f"{value!r} ({count(rows_of, 'row')})" for value, rows_of in values.items()]
        more = len(named) - _SHOWN_VALUES
        others = f" and {count(more, 'other')}" if more > 0 else ""
        tell(
            f"warning: {table}: {n:,} of {count(len(rows), 'row')} have a category in {column!r} that no "
            f"training row had: {', '.join(named[:_SHOWN_VALUES])}{others}. The model knows nothing of them."
        )
    return found


def _deliver(
    columns: dict[str, Any], out: Path | None, as_json: bool, what: str, more: Mapping[str, Any]
) -> None:
    """Write a table to a file, or print it as CSV or as JSON, which also has what is in `more`."""
    from moew.cli.runs._tables import write_table

    if out is not None:
        write_table(columns, out)
    n_rows = len(next(iter(columns.values())))
    if as_json and out is None:
        _shown.show_json({what: {name: list(of) for name, of in columns.items()}, **more})
    elif as_json:
        _shown.show_json({"rows": n_rows, "out": str(out), **more})
    elif out is None:
        _shown.show_csv(write_table(columns, None))
    else:
        _shown.show(f"{n_rows:,} {what} are in {out}")
