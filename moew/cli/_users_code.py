"""Run the user's code: what it prints goes to standard error, and its `sys.exit` becomes an error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from traceback import extract_tb

from moew.exceptions import MoewError


@contextmanager
def users_code() -> Iterator[None]:
    """Send what is printed within to standard error; turn SystemExit and the like into a MoewError."""
    with _descriptor_aside(), redirect_stdout(sys.stderr):
        try:
            yield
        except (Exception, KeyboardInterrupt):
            raise
        except BaseException as error:
            place = extract_tb(error.__traceback__)[-1]
            raise MoewError(
                f"code of yours wanted to end the program, with {type(error).__name__}: {error} "
                f"({place.filename}, line {place.lineno}). Let it raise a ValueError, or return."
            ) from error


@contextmanager
def _descriptor_aside() -> Iterator[None]:
    """Redirect the file descriptor, too, which compiled libraries and other processes write to."""
    try:
        output, error = sys.stdout.fileno(), sys.stderr.fileno()
    except (OSError, ValueError, AttributeError):  # no real streams, as in a notebook
        yield
        return
    sys.stdout.flush()
    kept = os.dup(output)
    os.dup2(error, output)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, output)
        os.close(kept)
