"""`moew fit`, what goes on with it, `moew resume` and `moew worker`, and `moew compare`, with its options.

What `moew fit` finds is kept in a run folder.
"""

from __future__ import annotations

import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from moew._util.progress import stage
from moew.cli import _shown
from moew.cli._ending import one_line_errors, tell
from moew.cli._options import (
    FOLDER,
    JOBS,
    TABLE,
    SectionCommand,
    completed,
    recorded,
    search_parameters,
    settings_of_run,
    toml_text,
)
from moew.cli._users_code import users_code
from moew.exceptions import InvalidInputError

if TYPE_CHECKING:
    from moew.cli._prepare import Job
    from moew.search import Comparison, FittedSearch, ParetoFront

_run = click.argument("run", type=FOLDER)
_jobs = click.option("--jobs", type=JOBS, metavar="N", help="Models trained at a time; default: the run's.")


@click.command(cls=SectionCommand, params=search_parameters(), no_args_is_help=True)
def fit(**_: Any) -> None:
    """Find the best strategy for a metric, from a file of data.

    \b
    moew fit train.csv --validation valid.csv --label y \\
        --metric worst_class_error --model lightgbm --out run/

    Example weights are learned, and simpler strategies are tried beside them: tuned
    decisions, class weights. The model of the strategy with the best honest score,
    or of the simplest that is as good, its weights and a report go to a folder.
    Interrupted, `moew resume run/` goes on.
    """
    settings = completed(click.get_current_context())
    with one_line_errors(lambda: _how_to_go_on(settings["out"])):
        _fit_with(settings)


@click.command()
@_run
@_jobs
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
    with one_line_errors(lambda: _how_to_go_on(run)):
        settings = _settings_of_unfinished(run) | {"out": run, "resume": True, "join": join, "json": as_json}
        settings["jobs"] = settings["jobs"] if jobs is None else jobs
        try:
            _fit_with(settings)
        except InvalidInputError as error:
            if error.argument != "study":
                raise
            files = [settings[name].name for name in ("train", "validation") if settings[name] is not None]
            raise InvalidInputError(
                f"{run} cannot go on: {' or '.join(files)}, or code of yours that it uses, is not what "
                f"it was begun with. Put back what it was, or begin anew with `moew fit --config "
                f"{run / 'settings.toml'} --out {run} --force`."
            ) from error


@click.command()
@_run
@_jobs
@one_line_errors("what this worker has told is kept, and others train the rest")
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
    from moew.cli._prepare import prepare_job
    from moew.cli.runs import RunFolder
    from moew.search import train_candidates

    folder = RunFolder(run)
    settings = settings_of_run(folder.settings_of_what_is_written)
    settings["jobs"] = settings["jobs"] if jobs is None else jobs
    job = prepare_job(settings, folder.study, join=True)
    with users_code():
        _, found = train_candidates(job.search)
    outcomes = list(found.values())
    here = sum(one.n_trained_here for one in outcomes)
    everywhere = sum(len(one.trials) for one in outcomes)
    end = "all are trained." if outcomes[0].cut_off is None else str(outcomes[0].cut_off)
    _shown.show(f"{here} of {everywhere} candidates were trained here; {end}")


@click.command(cls=SectionCommand, params=search_parameters(of_fit=False), no_args_is_help=True)
@one_line_errors()
def compare(**_: Any) -> None:
    """Compare weights, class weights, tuned decisions and moew.

    \b
    moew compare train.csv --validation valid.csv \\
        --test test.csv --label y --metric worst_class_error
    moew compare --config run/settings.toml --test test.csv

    Every method trains as many models, picks the best on the validation
    rows, and is evaluated on the test rows. Nothing is written.
    """
    from moew.cli._prepare import prepare_job

    context = click.get_current_context()
    changed: dict[str, Any] = {"compare": True}
    if context.get_parameter_source("timeout") is not ParameterSource.COMMANDLINE:
        changed["timeout"] = None  # the settings of a run may have one
    settings = completed(context, **changed)
    comparison = run_comparison(prepare_job(settings))
    if settings["json"]:
        _shown.show_json(comparison.record)
    else:
        _shown.show_comparison(comparison)


def _how_to_go_on(out: Path) -> str:
    """What to do after an interruption."""
    from moew.cli.runs._folder import RunFolder

    if RunFolder(out).is_unfinished:
        return f"`moew resume {shlex.quote(str(out))}` goes on where it stopped"
    return "nothing was written"


def _settings_of_unfinished(run: Path) -> dict[str, Any]:
    """The settings of an interrupted run; raise if it is none."""
    from moew.cli.runs._folder import REPORT, SETTINGS, RunFolder

    folder = RunFolder(run)
    path = folder.settings_of_what_is_written
    if not folder.is_unfinished:
        raise InvalidInputError(
            f"the run in {run} is complete, look at {run / REPORT}. For more candidates: `moew fit --config "
            f"{run / SETTINGS} --out {run} --resume --candidates N`."
        )
    return settings_of_run(path)


def _fit_with(settings: dict[str, Any]) -> None:
    """Run `moew fit` with these options."""
    from moew.cli._prepare import prepare_job
    from moew.cli.runs._folder import SETTINGS, RunFolder
    from moew.report import render
    from moew.search import run_search

    folder = RunFolder(settings["out"])
    how = {"force": settings["force"], "resume": settings["resume"]}
    folder.check(**how)  # before large files are read
    job = prepare_job(settings, folder.study, join=settings["join"])
    recorded_settings = recorded(settings)
    text = toml_text(recorded_settings, f"Settings of `moew fit`, for: moew fit --config {SETTINGS}")
    folder.begin(text, **how)
    try:
        with users_code():
            fitted = run_search(job.search)
    except InvalidInputError:
        if not folder.study.exists():
            folder.take_back()  # wrong usage, found before anything was trained, leaves no trace
        raise
    with users_code():
        comparison = run_comparison(job) if settings["compare"] else None
        with stage("making the report"):
            report = _report_data(job, fitted, comparison, _told_settings(recorded_settings))
            page = render(report)
        result = folder.save(
            fitted, job.schema, job.training, text, _result(job, fitted, report), report, page
        )
    # Show results last: the reader of a pipe may close it.
    if settings["json"]:
        _shown.show_json({**result, "run": str(folder.path), "files": folder.files()})
        return
    _shown.show_result(fitted.result, report)
    if comparison is not None:
        _shown.show_comparison(comparison)
    _shown.show_verdict(report)
    _shown.show_files(folder.path, folder.files())
    if result["model"]["needs_trust"]:
        click.echo("The model can only be kept as code: `moew predict` will ask for --trust.")


def _told_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings for the report, which others read: flat, and without a password."""
    from moew.storage import storage_name

    flat: dict[str, Any] = {**settings, **settings.get(TABLE, {})}
    flat.pop(TABLE, None)
    return flat | ({"storage": storage_name(flat["storage"])} if "storage" in flat else {})


@users_code()
def run_comparison(job: Job) -> Comparison:
    """Compare all methods with the settings and the rows of the command."""
    from moew.search import compare_settings

    repeats, seed = job.settings["repeats"], job.settings["seed"]
    tell(f"comparing all strategies, each {repeats} times")
    settings = replace(job.search.settings, storage=None, join=False, verbose=None)
    training, validation, test = map(job.rows, (job.training, job.validation, job.test))
    return compare_settings(settings, training, validation, test, repeats, seed)


def _result(job: Job, fitted: FittedSearch, report: dict[str, Any]) -> dict[str, Any]:
    """The content of result.json, without what the folder adds."""
    from moew.cli.runs._folder import file_digest

    found, settings = fitted.result, job.settings
    files = {name: settings[name] for name in ("train", "validation", "test") if settings[name] is not None}
    return {
        "metric": found.metric,
        "greater_is_better": found.greater_is_better,
        "task": fitted.task,
        "unweighted": {"apparent": found.unweighted.apparent, "honest": found.unweighted.value},
        "alpha_zero": {"apparent": found.alpha_zero.apparent, "honest": found.alpha_zero.value},
        "moew": {"apparent": found.honest.apparent, "honest": found.honest.value},
        "selected": found.selected,
        "reason": found.reason,
        "strategies": report["strategies"],
        "candidates": found.n_models,
        "failed": found.n_failed,
        "stopped": report["search"]["stopped"],
        "cut_off": None if found.cut_off is None else asdict(found.cut_off),
        "winner": found.best_number,
        "alpha": found.best_alpha,
        "rows": {
            "training": len(fitted.weights),
            "validation": found.n_validation,
            "out of fold": found.n_out_of_fold,
            "set aside": found.n_holdout,
        },
        "data": {name: {"file": path.name, "sha256": file_digest(path)} for name, path in files.items()},
        "metrics": None if found.pareto is None else _metrics(found.pareto),
        **{name: report[name] for name in ("verdict", "tested", "comparison", "notes")},
    }


def _metrics(found: ParetoFront) -> dict[str, Any]:
    """All metrics of the selected model, its bounds, and the models on the front."""
    chosen = found.selected
    return {
        "selected": dict(zip(found.metrics, chosen.values, strict=True)),
        "constraints": [
            {"bound": text, "limit": limit, "keeps": chosen.keeps}
            for text, limit in zip(found.constraints, chosen.limits, strict=True)
        ],
        "front": [
            {"model": model.name, **dict(zip(found.metrics, model.values, strict=True))}
            for model in found.front
        ],
    }


def _report_data(
    job: Job, fitted: FittedSearch, comparison: Comparison | None, settings: dict[str, Any]
) -> dict[str, Any]:
    from moew.report import About, collect

    training, known = job.training, {*job.training.X.columns, job.schema.label, job.schema.id}
    return collect(
        fitted,
        *map(job.rows, (training, job.validation, job.test)),
        columns={name: training.frame[name].to_numpy() for name in training.frame if name not in known},
        row_ids=training.ids,
        comparison=comparison,
        about=About(job.settings["train"].name, settings=settings),
    )
