"""`moew fit`: the best way to a metric, from a file of data; everything is kept in a run folder."""

from __future__ import annotations

import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moew._util.progress import stage
from moew.cli import _shown
from moew.cli._ending import one_line_errors, tell
from moew.cli._options import completed, recorded, run_parameters, training_parameters
from moew.cli._sections import with_parameters
from moew.cli._users_code import users_code
from moew.exceptions import InvalidInputError

if TYPE_CHECKING:
    from moew.cli._prepare import Job
    from moew.search import Comparison, FittedSearch
    from moew.search._pareto import ParetoFront


def command() -> click.Command:
    @with_parameters(training_parameters(run_parameters(), offers_comparison=True))
    def fit(**given: Any) -> None:
        """Find the best way to a metric, from a file of data.

        \b
        moew fit train.csv --validation valid.csv --label y \\
            --metric worst_class_error --model lightgbm --out run/

        Example weights are learned, and simpler ways are tried beside them: tuned
        decisions, class weights. The model of the simplest way that is not worse,
        its weights and a report go to a folder. Interrupted, `moew resume run/`
        goes on.
        """
        settings = completed(given, click.get_current_context().command)
        with one_line_errors(lambda: how_to_go_on(settings["out"])):
            fit_with(settings)

    return fit


def how_to_go_on(out: Path) -> str:
    """What to do after an interruption."""
    from moew.cli.runs._folder import RunFolder

    if RunFolder(out).is_unfinished:
        return f"`moew resume {shlex.quote(str(out))}` goes on where it stopped"
    return "nothing was written"


def fit_with(settings: dict[str, Any]) -> None:
    """Run `moew fit` with these options."""
    from moew.cli._prepare import prepare_job
    from moew.cli.runs._folder import SETTINGS, RunFolder
    from moew.cli.runs._toml import toml_text
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
            report = _report_data(job, fitted, comparison, _without_password(recorded_settings))
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


def _without_password(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings for the report, which others read."""
    if settings.get("storage") is None:
        return settings
    from moew.search._storage import storage_name

    return {**settings, "storage": storage_name(settings["storage"])}


@users_code()
def run_comparison(job: Job) -> Comparison:
    """Compare all methods with the settings and the rows of the command."""
    from moew.search import compare_settings

    repeats, seed = job.settings["repeats"], job.settings["seed"]
    tell(f"comparing all ways to the metric, each {repeats} times")
    settings = replace(job.search.settings, storage=None, join=False, show_progress=None)
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
        "unweighted": {"best": found.unweighted.best, "honest": found.unweighted.value},
        "alpha_zero": {"best": found.alpha_zero.best, "honest": found.alpha_zero.value},
        "moew": {"best": found.honest.best, "honest": found.honest.value},
        "chosen": found.chosen,
        "reason": found.reason,
        "ways": report["ways"],
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
    """All metrics of what is handed out, its bounds, and the models on the front."""
    chosen = found.handed_out
    return {
        "handed_out": dict(zip(found.metrics, chosen.values, strict=True)),
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
    from moew.report import collect

    training, known = job.training, {*job.training.X.columns, job.schema.label, job.schema.id}
    rows, validation, test = map(job.rows, (training, job.validation, job.test))
    return collect(
        fitted,
        rows.X,
        rows.y,
        X_val=validation.X,
        y_val=validation.y,
        X_test=test.X,
        y_test=test.y,
        sample_weight_test=test.sample_weight,
        metadata=rows.metadata,
        metadata_val=validation.metadata,
        metadata_test=test.metadata,
        groups_test=test.groups,
        columns={name: training.frame[name].to_numpy() for name in training.frame if name not in known},
        row_ids=training.ids,
        comparison=comparison,
        settings=settings,
        data_name=job.settings["train"].name,
    )
