"""While code of the user's runs: standard output is kept for results, and no `exit` goes unseen."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from traceback import extract_tb

from moew.exceptions import MoewError


@contextmanager
def users_code() -> Iterator[None]:
    """What is printed within goes to standard error; SystemExit and its like become an error of moew's."""
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
    """The same for compiled libraries and other processes, which write to the descriptor itself."""
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
