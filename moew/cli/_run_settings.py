"""The settings of a run, from the settings.toml in its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from moew.exceptions import InvalidInputError


def settings_of_run(path: Path, *, needs_files: bool = True) -> dict[str, Any]:
    """The settings as the options of `moew fit`; the data files must be there if `needs_files`."""
    from moew.cli import fit
    from moew.cli._options import completed

    command = fit.command()
    if not needs_files:
        for parameter in command.params:
            if isinstance(parameter.type, click.Path) and parameter.name != "config":
                parameter.type = click.Path(path_type=Path)
    try:
        with command.make_context("fit", ["--config", str(path)]) as context:
            return completed(context.params, context.command)
    except click.UsageError as error:
        raise InvalidInputError(f"{path} cannot be used: {error.format_message()}") from error
