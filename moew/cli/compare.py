"""`moew compare`: every way to the metric at the same number of trained models, on test rows."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from moew.cli import _shown
from moew.cli._ending import one_line_errors
from moew.cli._options import completed, json_option, training_parameters
from moew.cli._sections import with_parameters


def command() -> click.Command:
    @with_parameters(training_parameters([json_option()], offers_comparison=False))
    def compare(**given: Any) -> None:
        """Compare weights, class weights, tuned decisions and moew.

        \b
        moew compare train.csv --validation valid.csv \\
            --test test.csv --label y --metric worst_class_error
        moew compare --config run/settings.toml --test test.csv

        Every method trains as many models, picks the best on the validation
        rows, and is judged on the test rows. Nothing is written.
        """
        with one_line_errors():
            from moew.cli._prepare import prepare_job
            from moew.cli.fit import run_comparison

            context = click.get_current_context()
            if context.get_parameter_source("timeout") is not ParameterSource.COMMANDLINE:
                given["timeout"] = None  # the settings of a run may have one
            settings = completed({**given, "compare": True}, context.command)
            comparison = run_comparison(prepare_job(settings))
            if settings["json"]:
                _shown.show_json(comparison.record)
            else:
                _shown.show_comparison(comparison)

    return compare
