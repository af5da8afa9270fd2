"""How commands end: errors as one line with the right exit status, warnings as one line each.

Messages of the library have the options of the command line in them in place of Python's arguments.
"""

from __future__ import annotations

import _thread
import json
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from moew._printable import printable
from moew.cli import INTERRUPTED
from moew.cli._options import option_of
from moew.cli._parameters import parameter_called
from moew.cli._shown import wrapped
from moew.exceptions import Argument, InvalidInputError, MoewError, MoewWarning, UnsupportedEstimatorError

_FAILED, _WRONG_USAGE = 1, 2
# Messages about these arguments help only in Python.
_SENTENCES = {
    "study": "the run was begun with other data, another model or metric, or other settings of the search; "
    "take the same to go on with it, another --out, or --force to begin anew."
}
_SOON = 0.1  # seconds


@contextmanager
def one_line_errors(after_interruption: str | Callable[[], str] = "nothing was written") -> Iterator[None]:
    """End the command with a line on standard error where moew or the machine raises an error.

    Any other error is a bug, and shows its traceback. Each warning of moew's is told once.
    """
    told: set[str] = set()

    def show_warning(warning: Any, *_: Any, **__: Any) -> None:
        line = f"warning: {message_of(warning)}"
        if line not in told:
            told.add(line)
            tell(line)

    with warnings.catch_warnings():
        warnings.simplefilter("default", MoewWarning)
        warnings.showwarning = show_warning  # type: ignore[assignment]  # the filters' text is not needed
        try:
            with _ended_like_ctrl_c():
                yield
        except KeyboardInterrupt:
            what_now = after_interruption() if callable(after_interruption) else after_interruption
            _end(INTERRUPTED, f"interrupted; {what_now}")
        except (InvalidInputError, UnsupportedEstimatorError) as error:
            _end(_WRONG_USAGE, message_of(error))
        except BrokenPipeError:  # nobody reads on, as in `| head`: click ends quietly
            raise
        except (MoewError, OSError, MemoryError) as error:
            _end(_FAILED, message_of(error))


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """Let SIGTERM, by which other programs end this one, do what Ctrl-C does.

    Python ignores exceptions in functions that it calls when an object goes. An interruption there would be
    lost, and programs send SIGTERM once: so it comes again.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are for the main thread alone
        return
    before, hook = signal.signal(signal.SIGTERM, signal.default_int_handler), sys.unraisablehook
    timers: list[threading.Timer] = []

    def interrupt_later(ignored: Any) -> None:
        if ignored.exc_type is KeyboardInterrupt:
            timers.append(threading.Timer(_SOON, _interrupt_main_thread))
            timers[-1].start()
        else:
            hook(ignored)

    sys.unraisablehook = interrupt_later
    try:
        yield
    finally:
        for timer in timers:
            timer.cancel()
        sys.unraisablehook = hook
        signal.signal(signal.SIGTERM, before)


def _interrupt_main_thread() -> None:
    if hasattr(signal, "pthread_kill"):  # wakes it up, too
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
    else:
        _thread.interrupt_main(signal.SIGTERM)


class _WrongUsage(click.UsageError):
    """Wrong usage that click found, told in one line."""

    def show(self, file: Any = None) -> None:
        path = self.ctx.command_path if self.ctx is not None else "moew"
        said = self.format_message()
        tell(f"{said if said.endswith(('.', '?')) else f'{said}.'} See `{path} --help`.")


@contextmanager
def one_line_usage() -> Iterator[None]:
    """Tell wrong options and arguments in one line, where click would show four."""
    try:
        yield
    except (_WrongUsage, click.exceptions.NoArgsIsHelpError):
        raise
    except click.UsageError as error:
        raise _WrongUsage(error.format_message(), error.ctx) from error


def tell(line: str) -> None:
    """Write a line for a person to standard error; standard output is for results."""
    click.echo(wrapped(printable(f"moew: {' '.join(line.split())}"), sys.stderr, "      "), err=True)


def _end(status: int, line: str) -> None:
    tell(line)
    click.get_current_context().exit(status)


def message_of(error: Any) -> str:
    """What an error or a warning says, on one line."""
    if getattr(error, "argument", None) in _SENTENCES:
        return _SENTENCES[error.argument]
    text = error.worded(say) if hasattr(error, "worded") else str(error)
    return " ".join(text.split()) or type(error).__name__


def say(argument: Argument) -> str:
    """An argument as an option: `--decision accurate` for decision='accurate'."""
    name, value = argument.name, argument.value
    if name == "on":
        return f"@{value}" if argument.has_value else "@train, @validation or @each"
    if name == "trusted":
        return "--trust"
    if name == "greater_is_better":
        return "--higher-is-better" if value is True else "--lower-is-better"
    option = {"storage": "--out or --storage"}.get(name) or option_of(name)
    if option is None and (parameter := parameter_called(name)) is not None:
        if not argument.has_value:
            return f"--set {parameter}"
        written = (
            "none" if value is None else value if isinstance(value, str) else json.dumps(value, default=str)
        )
        return f"--set {parameter}={written}"
    option = option or f"--{name.replace('_', '-')}"
    if not argument.has_value or value is True:  # an option without a value
        return option
    return f"no {option}" if value is None else f"{option} {value}"
