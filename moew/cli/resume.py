"""`moew resume`: an interrupted run goes on, by the settings in its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from moew.cli._ending import one_line_errors
from moew.cli._sections import Jobs
from moew.cli.predict import _FOLDER
from moew.exceptions import InvalidInputError


def command() -> click.Command:
    @click.command()
    @click.argument("run", type=_FOLDER)
    @click.option("--jobs", type=Jobs(), metavar="N", help="Models trained at a time; default: the run's.")
    @click.option("--join", is_flag=True, help="Let other processes train candidates, too: `moew worker`.")
    @click.option("--json", "as_json", is_flag=True, help="One JSON object instead of tables.")
    def resume(run: Path, jobs: Any, join: bool, as_json: bool) -> None:
        """Go on with an interrupted run where it stopped.

        \b
        moew resume run/

        This is `moew fit` with --resume and the settings that the run was begun
        with, from settings.toml in its folder. The result is the one that the
        run would have had.
        """
        from moew.cli.fit import fit_with, how_to_go_on

        with one_line_errors(lambda: how_to_go_on(run)):
            settings = _settings(run) | {"out": run, "resume": True, "join": join, "json": as_json}
            if jobs is not None:
                settings["jobs"] = jobs
            try:
                fit_with(settings)
            except InvalidInputError as error:
                if error.argument != "study":
                    raise
                files = [
                    settings[name].name for name in ("train", "validation") if settings[name] is not None
                ]
                raise InvalidInputError(
                    f"{run} cannot go on: {' or '.join(files)}, or code of yours that it uses, is not what "
                    f"it was begun with. Put back what it was, or begin anew with `moew fit --config "
                    f"{run / 'settings.toml'} --out {run} --force`."
                ) from error

    return resume


def _settings(run: Path) -> dict[str, Any]:
    """The settings of an interrupted run; raise if it is none."""
    from moew.cli._run_settings import settings_of_run
    from moew.cli.runs._folder import REPORT, SETTINGS, RunFolder

    folder = RunFolder(run)
    path = folder.settings_of_what_is_written
    if not folder.is_unfinished:
        raise InvalidInputError(
            f"the run in {run} is complete, look at {run / REPORT}. For more candidates: `moew fit --config "
            f"{run / SETTINGS} --out {run} --resume --batches N`."
        )
    return settings_of_run(path)
