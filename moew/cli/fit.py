"""`moew fit`: learn example weights from a file of data, and keep everything in a run folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from moew.cli import _shown
from moew.cli._ending import one_line_errors, tell
from moew.cli._options import completed, recorded, run_parameters, training_parameters
from moew.cli._sections import with_parameters
from moew.cli._users_code import users_code
from moew.exceptions import InvalidInputError

if TYPE_CHECKING:
    from moew.cli._prepare import Prepared


def command() -> click.Command:
    @with_parameters(training_parameters(run_parameters(), offers_comparison=True))
    def fit(**given: Any) -> None:
        """Learn example weights for a metric, from a file of data.

        \b
        moew fit train.csv --validation valid.csv --label y \\
            --metric worst_class_error --model lightgbm --out run/

        The model, the weights and a report go to a folder. Interrupted, the
        same command with --resume goes on.
        """
        resume = "the same command with --resume goes on where it stopped"
        with one_line_errors(resume):
            _fit(completed(given, click.get_current_context().command))

    return fit


def _fit(settings: dict[str, Any]) -> None:
    from moew.cli._prepare import prepare
    from moew.cli.runs._folder import SETTINGS, RunFolder
    from moew.cli.runs._toml import toml_text
    from moew.report import render

    folder = RunFolder(settings["out"])
    how = {"force": settings["force"], "resume": settings["resume"]}
    folder.check(**how)  # before large files are read
    prepared = prepare(settings)
    recorded_settings = recorded(settings)
    text = toml_text(recorded_settings, f"Settings of `moew fit`, for: moew fit --config {SETTINGS}")
    folder.begin(text, **how)
    search = prepared.search.set_params(storage=folder.study, show_progress=True)
    try:
        with users_code():
            search.fit(**prepared.rows)
    except InvalidInputError:
        if not folder.study.exists():
            folder.take_back()  # wrong usage, found before anything was trained, leaves no trace
        raise
    folder.write_settings(text)
    with users_code():
        result = folder.save(search, prepared.schema, prepared.training, _result(search, prepared))
        comparison = run_comparison(prepared) if settings["compare"] else None
        report = _report_data(prepared, comparison, recorded_settings)
    result |= {name: report[name] for name in ("verdict", "tested", "comparison", "notes")}
    folder.write_result(result)
    folder.write_report(report, render(report))
    # All is written before anything is shown: who reads the output may stop reading.
    if settings["json"]:
        _shown.show_json({**result, "run": str(folder.path), "files": folder.files()})
        return
    _shown.show_result(search.result_, report)
    if comparison is not None:
        _shown.show_comparison(comparison)
    _shown.show_verdict(report)
    _shown.show_files(folder.path, folder.files())
    if result["model"]["needs_trust"]:
        click.echo("The model can only be kept as code: `moew predict` will ask for --trust.")


@users_code()
def run_comparison(prepared: Prepared) -> Any:
    """`moew.compare` with the settings of the command."""
    from sklearn.base import clone

    from moew.search._compare import compare

    settings = prepared.settings
    tell(f"comparing 4 methods, each {settings['repeats']} times")
    search = clone(prepared.search).set_params(storage=None, show_progress=None)
    rows = prepared.all_rows
    return compare(search, **rows, repeats=settings["repeats"], random_state=settings["seed"])


def _result(search: Any, prepared: Prepared) -> dict[str, Any]:
    from moew.cli.runs._folder import file_digest

    found, settings = search.result_, prepared.settings
    files = {name: settings[name] for name in ("train", "validation", "test") if settings[name] is not None}
    return {
        "metric": found.metric,
        "greater_is_better": found.greater_is_better,
        "task": prepared.task,
        "unweighted": {"best": found.unweighted.best, "honest": found.unweighted.value},
        "alpha_zero": {"best": found.alpha_zero.best, "honest": found.alpha_zero.value},
        "moew": {"best": found.honest.best, "honest": found.honest.value},
        "candidates": len(found.candidates),
        "failed": found.n_failed,
        "winner": found.best_number,
        "alpha": search.best_alpha_,
        "rows": {
            "training": len(search.sample_weight_),
            "validation": found.n_validation,
            "set aside": found.n_holdout,
        },
        "notes": list(found.notes),
        "data": {name: {"file": path.name, "sha256": file_digest(path)} for name, path in files.items()},
    }


def _report_data(prepared: Prepared, comparison: Any, settings: dict[str, Any]) -> dict[str, Any]:
    from moew.report import collect

    training = prepared.training
    more = {**prepared.all_rows}
    for name in ("X", "y", "sample_weight", "sample_weight_val"):
        more.pop(name, None)
    further = [
        name for name in training.frame.columns if name not in {*training.X.columns, prepared.schema.label}
    ]
    return collect(
        prepared.search,
        training.X,
        training.y,
        **more,
        columns={name: training.frame[name].to_numpy() for name in further if name != prepared.schema.id},
        row_ids=training.ids,
        comparison=comparison,
        settings=settings,
    )
