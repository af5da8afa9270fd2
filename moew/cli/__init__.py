"""The command line, `moew`.

Exit status: 0 done, 1 failed (one line says why), 2 wrong usage, 130 interrupted. Only the commands
themselves load click, and only a running command what it computes with.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from collections.abc import Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from moew import __version__

if TYPE_CHECKING:
    import click

INTERRUPTED = 130  # exit status
_HELP_WIDTH = 80
_CLICKS_NARROWEST = 52  # columns of a terminal; click breaks lines for these where there are fewer
_NARROWEST = 40


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command `moew`; this always ends the process."""
    try:
        command = commands()
    except ModuleNotFoundError as missing:
        if missing.name != "click":
            raise
        sys.exit("moew: the command line needs click; install it with: pip install 'moew[cli]'")
    try:
        command.main(args=None if arguments is None else list(arguments), prog_name="moew")
    except SystemExit as end:
        if end.code == INTERRUPTED and arguments is None:  # else another program goes on
            _leave_at_once(INTERRUPTED)
        raise


def _leave_at_once(status: int) -> None:
    """End the process at once, after the functions that were registered for its end.

    JAX's compiler cannot be stopped, and crashes if Python is finalised while it runs.
    """
    try:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # nobody may read any more
                stream.flush()
    finally:
        os._exit(status)


def commands() -> click.Group:
    """The click group with all commands."""
    import click

    from moew.cli._ending import one_line_usage
    from moew.cli.evaluate import evaluate
    from moew.cli.fit import compare, fit, resume, worker
    from moew.cli.metrics import metrics
    from moew.cli.predict import predict, report, weights

    class InOrder(click.Group):
        """A group that lists its commands in the order of use and tells wrong usage in one line."""

        def list_commands(self, ctx: click.Context) -> list[str]:
            return list(self.commands)

        def make_context(self, *args: Any, **more: Any) -> click.Context:
            with one_line_usage():
                return super().make_context(*args, **more)

        def invoke(self, ctx: click.Context) -> Any:
            with one_line_usage():
                return super().invoke(ctx)

    settings: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": _HELP_WIDTH}
    columns = get_terminal_size().columns
    if columns < _CLICKS_NARROWEST:
        settings["terminal_width"] = max(columns, _NARROWEST) - 2

    @click.group(context_settings=settings, cls=InOrder)
    @click.version_option(__version__, message="%(prog)s %(version)s")
    def moew() -> None:
        """Train a model for the metric it will be judged by."""

    for command in (fit, resume, predict, evaluate, weights, report, compare, worker, metrics):
        moew.add_command(command)
    return moew
