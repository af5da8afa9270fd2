"""`moew predict`: decisions and probabilities of new rows, from a run folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moew._util.numbers import count
from moew.cli import _shown
from moew.cli._ending import one_line_errors, tell
from moew.cli._objects import look_in
from moew.cli._users_code import users_code
from moew.exceptions import InvalidInputError

if TYPE_CHECKING:
    from moew.cli.runs._schema import Schema, TableRows

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_TRUST = "Load a model that is kept as code; only of runs whose maker you trust."
_SHOWN_VALUES = 3  # of unseen categories that a warning names
separator_option = click.option(
    "--separator", metavar="CHARACTER", help="Between the columns of a text file; default: found by looking."
)


def command() -> click.Command:
    @click.command()
    @click.argument("run", type=_FOLDER)
    @click.argument("table", type=_FILE)
    @click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Default: a CSV, printed.")
    @separator_option
    @click.option("--trust", is_flag=True, help=_TRUST)
    @click.option("--unweighted", is_flag=True, help="With the model without learned weights.")
    @click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
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
        with one_line_errors():
            from moew.cli.runs import load_run
            from moew.cli.runs._separators import separator_from

            refuse_to_overwrite(table, out)
            if trust:
                look_in(Path.cwd())  # where the model's own class may be
            found = load_run(run)
            rows = found.rows_to_predict(table, separator_from(separator))
            say_how_rows_are_named(found.schema, rows, table)
            unseen = unseen_categories(found.schema, rows, table)
            with users_code():
                predictions = found.predict(rows, trust=trust, unweighted=unweighted)
            deliver(predictions, out, as_json, "predictions", {"unseen_categories": unseen})

    return predict


def refuse_to_overwrite(table: Path, out: Path | None) -> None:
    """Raise if `out` is the file that is read."""
    if out is not None and out.exists() and out.samefile(table):
        raise InvalidInputError(f"--out {out} is the file that is read; name another.")


def say_how_rows_are_named(schema: Schema, rows: TableRows, table: Path) -> None:
    """Tell a note if a file has no column of ids although the run's files had one."""
    if schema.id is not None and rows.id_name != schema.id:
        tell(f"note: {table} has no column {schema.id!r}, so its rows are named by their numbers, from 0")


def unseen_categories(schema: Schema, rows: TableRows, table: Path) -> dict[str, dict[str, int]]:
    """Rows of each category that no training row had, by column; a warning tells of each column."""
    found = schema.unseen(rows)
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


def deliver(
    columns: dict[str, Any],
    out: Path | None,
    as_json: bool,
    what: str,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Write a table to a file, or print it as CSV or as JSON, which also has what is in `more`."""
    from moew.cli.runs._tables import write_table

    if out is not None:
        write_table(columns, out)
    n_rows = len(next(iter(columns.values())))
    if as_json and out is None:
        _shown.show_json({what: {name: list(of) for name, of in columns.items()}, **(more or {})})
    elif as_json:
        _shown.show_json({"rows": n_rows, "out": str(out), **(more or {})})
    elif out is None:
        _shown.show_csv(write_table(columns, None))
    else:
        _shown.show(f"{n_rows:,} {what} are in {out}")
