"""`moew weights`: the learned weights of any labelled rows, from a run folder."""

from __future__ import annotations

from pathlib import Path

import click

from moew.cli._ending import one_line_errors
from moew.cli._users_code import users_code
from moew.cli.predict import (
    _FILE,
    _FOLDER,
    deliver,
    refuse_to_overwrite,
    say_how_rows_are_named,
    separator_option,
)


def command() -> click.Command:
    @click.command()
    @click.argument("run", type=_FOLDER)
    @click.argument("table", type=_FILE)
    @click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Default: a CSV, printed.")
    @separator_option
    @click.option("--trust", is_flag=True, help="Import the function that --embedding named.")
    @click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
    def weights(
        run: Path, table: Path, out: Path | None, separator: str | None, trust: bool, as_json: bool
    ) -> None:
        """The learned weights of the labelled rows of a file.

        \b
        moew weights run/ more.csv --out weights.parquet

        They are on the scale of the training rows' weights, whose mean is one.
        """
        with one_line_errors():
            from moew.cli.runs import load_run
            from moew.cli.runs._separators import separator_from

            refuse_to_overwrite(table, out)
            found = load_run(run)
            rows = found.rows_to_weigh(table, separator_from(separator))
            say_how_rows_are_named(found.schema, rows, table)
            with users_code():
                found_weights = found.weights(rows, _users_function(run, found.weight_state, trust))
            deliver({rows.id_name: rows.ids, "weight": found_weights}, out, as_json, "weights")

    return weights


def _users_function(run: Path, state: dict, trust: bool) -> dict[str, object]:  # type: ignore[type-arg]
    """The user's own embedding by its name in the state; it is imported only with trust."""
    from moew.cli._objects import find_object
    from moew.cli.runs._finished import embeddings_in
    from moew.exceptions import InvalidInputError
    from moew.saving import reading
    from moew.search._saved import PARTS

    with reading(run / PARTS):
        named = {fitted["function"] for fitted in embeddings_in(state) if "function" in fitted}
    for name in named:
        if not trust:
            raise InvalidInputError(
                f"the weights of {run} use the function {name!r}: it is imported, and its code run, only "
                "with --trust."
            )
    return {name: find_object(name, "--embedding", Path.cwd()) for name in named}
