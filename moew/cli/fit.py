"""`moew fit`: learn example weights from a file of data, and keep everything in a run folder."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from moew.cli import _shown
from moew.cli._ending import one_line_errors, tell
from moew.cli._options import completed, recorded, run_parameters, training_parameters, with_parameters
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
    from moew.runs._folder import SETTINGS, RunFolder
    from moew.runs._toml import toml_text

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
    comparison = None
    if settings["compare"]:
        comparison = run_comparison(prepared)
        result["comparison"] = comparison_record(comparison)
        folder.write_result(result)
    has_report = _report(folder, prepared, comparison, recorded_settings)
    # All is written before anything is shown: who reads the output may stop reading.
    if settings["json"]:
        _shown.show_json({**result, "run": str(folder.path), "files": folder.files()})
        return
    _shown.show_result(search.result_, unweighted=not _has_baseline(prepared))
    if comparison is not None:
        _shown.show_comparison(comparison)
    _shown.show_files(folder.path, folder.files())
    if not has_report:
        click.echo("No report was made: this moew has none.")
    if result["model"]["needs_trust"]:
        click.echo("The model can only be kept as code: `moew predict` will ask for --trust.")


@users_code()
def run_comparison(prepared: Prepared) -> Any:
    """`moew.compare` with the settings of the command."""
    from sklearn.base import clone

    from moew.comparison import compare

    settings = prepared.settings
    tell(f"comparing 4 methods, each {settings['repeats']} times")
    search = clone(prepared.search).set_params(storage=None, show_progress=None)
    rows = prepared.rows_to_compare
    return compare(search, **rows, repeats=settings["repeats"], random_state=settings["seed"])


def comparison_record(comparison: Any) -> dict[str, Any]:
    """A comparison as JSON can hold it."""
    return {
        "metric": comparison.metric,
        "greater_is_better": comparison.greater_is_better,
        "repeats": comparison.repeats,
        "n_test": comparison.n_test,
        "test_rows_margin": comparison.test_rows_margin,
        "gain": comparison.gain.tolist(),
        "methods": {
            row.method: {
                "models": row.n_models,
                "best": row.best.tolist(),
                "honest": row.honest.tolist(),
                "test": row.test.tolist(),
                "margin": row.margin,
                "note": row.note,
            }
            for row in comparison.rows
        },
    }


def _has_baseline(prepared: Prepared) -> bool:
    """Whether α = 0 has weights other than one: with validation rows to see a shift in."""
    return prepared.validation is not None and prepared.settings["baseline"] != "uniform"


def _result(search: Any, prepared: Prepared) -> dict[str, Any]:
    from moew.runs._folder import file_digest

    found, settings = search.result_, prepared.settings
    files = {name: settings[name] for name in ("train", "validation", "test") if settings[name] is not None}
    return {
        "metric": found.metric,
        "greater_is_better": found.greater_is_better,
        "task": prepared.task,
        "baseline": {"best": found.baseline.best, "honest": found.baseline.value},
        "moew": {"best": found.honest.best, "honest": found.honest.value},
        "candidates": len(found.candidates),
        "failed": found.n_failed,
        "winner": found.best_number,
        "alpha": search.best_alpha_,
        "rows": {"training": len(search.sample_weight_), "validation": found.n_validation},
        "notes": list(found.notes),
        "data": {name: {"file": path.name, "sha256": file_digest(path)} for name, path in files.items()},
    }


@users_code()
def _report(folder: Any, prepared: Prepared, comparison: Any, settings: dict[str, Any]) -> bool:
    """Write the report; False where this moew has no report to make."""
    try:
        report = import_module("moew.report")
    except ModuleNotFoundError as missing:
        if missing.name != "moew.report":
            raise
        return False
    training, validation = prepared.training, prepared.validation
    further = [
        name for name in training.frame.columns if name not in {*training.X.columns, prepared.schema.label}
    ]
    data = report.collect(
        prepared.search,
        training.X,
        training.y,
        X_val=None if validation is None else validation.X,
        y_val=None if validation is None else validation.y,
        columns={name: training.frame[name].to_numpy() for name in further if name != prepared.schema.id},
        row_ids=training.ids,
        comparison=comparison,
        settings=settings,
    )
    folder.write_report(data, report.render(data))
    return True
