"""How commands end: errors as one line with the right exit status, warnings as one line each."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from moew.cli._wording import on_the_command_line
from moew.cli.paper import FAILED, INTERRUPTED
from moew.exceptions import InvalidInputError, MoewError, MoewWarning, UnsupportedEstimatorError

WRONG_USAGE = 2


@contextmanager
def one_line_errors(after_interruption: str = "") -> Iterator[None]:
    """Errors that moew raises on purpose, and those of the machine, end the command with a line on
    standard error; anything else is a bug, and shows where."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", MoewWarning)
        warnings.showwarning = _show_warning
        try:
            yield
        except KeyboardInterrupt:
            _end(INTERRUPTED, " ".join(["interrupted;", after_interruption or "nothing was written"]))
        except (InvalidInputError, UnsupportedEstimatorError) as error:
            _end(WRONG_USAGE, str(error))
        except BrokenPipeError:  # nobody reads on, as in `| head`: click ends quietly
            raise
        except (MoewError, OSError, MemoryError) as error:
            _end(FAILED, str(error) or type(error).__name__)


class _WrongUsage(click.UsageError):
    """What click says of wrong usage, as a line like all others."""

    def show(self, file: Any = None) -> None:
        path = self.ctx.command_path if self.ctx is not None else "moew"
        message = self.format_message()
        tell(f"{message}{'' if message.endswith(('.', '?')) else '.'} See `{path} --help`.")


@contextmanager
def one_line_usage() -> Iterator[None]:
    """Wrong options and arguments in one line, where click would show four."""
    try:
        yield
    except (_WrongUsage, click.exceptions.NoArgsIsHelpError):
        raise
    except click.UsageError as error:
        raise _WrongUsage(error.format_message(), error.ctx) from error


def tell(line: str) -> None:
    """A line for a person; standard output is for results."""
    click.echo(f"moew: {on_the_command_line(line)}", err=True)


def _end(status: int, line: str) -> None:
    tell(line)
    click.get_current_context().exit(status)


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    tell(f"warning: {message}")
