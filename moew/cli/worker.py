"""`moew worker`: one more process, on this or another machine, for the search of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from moew.cli import _shown
from moew.cli._ending import one_line_errors
from moew.cli._sections import Jobs
from moew.cli._users_code import users_code
from moew.cli.predict import _FOLDER


def command() -> click.Command:
    @click.command()
    @click.argument("run", type=_FOLDER)
    @click.option("--jobs", type=Jobs(), metavar="N", help="Models trained at a time; default: the run's.")
    def worker(run: Path, jobs: Any) -> None:
        """Train candidates of a search that runs elsewhere with --join.

        \b
        moew fit train.csv --label y --metric f1 --join --out run/
        moew worker run/

        The first command runs in one place, the second in any others. RUN is the
        run's folder, or a copy of its settings.toml in a folder, with the same
        data files. The result is the one that a single process would have. What
        a worker that is killed held is trained by another.
        """
        with one_line_errors("what this worker has told is kept, and others train the rest"):
            n_trained, n_candidates, end = _work(run, jobs)
            _shown.show(f"{n_trained} of {n_candidates} candidates were trained here; {end}")

    return worker


def _work(run: Path, jobs: Any) -> tuple[int, int, str]:
    """How many candidates were trained here, how many everywhere, and how it ended."""
    from moew.cli._prepare import prepare_job
    from moew.cli._run_settings import settings_of_run
    from moew.cli.runs._folder import RunFolder
    from moew.search import train_candidates

    folder = RunFolder(run)
    settings = settings_of_run(folder.settings_of_what_is_written)
    if jobs is not None:
        settings["jobs"] = jobs
    job = prepare_job(settings, folder.study, join=True)
    with users_code():
        _, outcomes = train_candidates(job.search)
    here = sum(one.n_trained_here for one in outcomes.values())
    everywhere = sum(len(one.trials) for one in outcomes.values())
    cut_off = next(iter(outcomes.values())).cut_off
    return here, everywhere, "all are trained." if cut_off is None else str(cut_off)
