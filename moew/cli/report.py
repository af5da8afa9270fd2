"""`moew report`: the report of a run, made again from its data."""

from __future__ import annotations

from pathlib import Path

import click

from moew.cli import _shown
from moew.cli._ending import one_line_errors
from moew.cli.predict import _FOLDER


def command() -> click.Command:
    @click.command()
    @click.argument("run", type=_FOLDER)
    def report(run: Path) -> None:
        """Make the report of a run again, from report.json in its folder."""
        with one_line_errors():
            from moew._util.whole_files import write_whole
            from moew.cli.runs import RunFolder
            from moew.cli.runs._folder import REPORT, REPORT_DATA
            from moew.report import render
            from moew.saving import reading

            data = RunFolder(run).read_json(REPORT_DATA)
            with reading(run / REPORT_DATA):
                page = render(data)
            write_whole(run / REPORT, lambda new: new.write_text(page, encoding="utf-8"), private=True)
            _shown.show(f"The report: {run / REPORT}")

    return report
