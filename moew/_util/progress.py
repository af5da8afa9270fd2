"""Progress of a search: what it does and a bar on a terminal, plain lines if asked for, nothing in pipes."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from moew._printable import printable
from moew._util.numbers import number

Report = Callable[[int, int, float], None]
"""report(candidates done, batch, best value so far)."""


@contextlib.contextmanager
def progress(total: int, n_batches: int, enabled: bool | None = None, already: int = 0) -> Iterator[Report]:
    """Yield the function that the search calls after each candidate.

    `enabled=None` shows a bar if standard error is a terminal; True also shows lines elsewhere. `already` is
    the number of candidates done in an earlier run, which do not count for the time left.
    """
    on_terminal = sys.stderr.isatty()
    if enabled is False or (enabled is None and not on_terminal):
        yield lambda *_: None
    elif on_terminal and (bar := _rich_bar(total, n_batches, already)) is not None:
        with bar as report:
            yield report
    else:
        yield _plain_lines(total, n_batches, already)


@contextlib.contextmanager
def stage(words: str, enabled: bool | None = None) -> Iterator[None]:
    """Show on a terminal what is being done, such as "reading train.csv", until it is done.

    Elsewhere, or with `enabled=False`, nothing is shown.
    """
    with contextlib.ExitStack() as shown:
        if enabled is not False and sys.stderr.isatty():
            with contextlib.suppress(ImportError):
                from rich.console import Console
                from rich.text import Text

                line = Text(printable(f"{words} …"), no_wrap=True, overflow="ellipsis")
                shown.enter_context(Console(stderr=True).status(line))
        yield


def _rich_bar(total: int, n_batches: int, already: int) -> contextlib.AbstractContextManager[Report] | None:
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        return None

    @contextlib.contextmanager
    def bar() -> Iterator[Report]:
        columns = (
            TextColumn("batch {task.fields[batch]}/{task.fields[n_batches]}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("best {task.fields[best]}"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
            task = shown.add_task("", total=total, completed=already, batch=0, n_batches=n_batches, best="–")

            def report(done: int, batch: int, best: float) -> None:
                shown.update(task, completed=done, batch=batch, best=number(best))

            yield report

    return bar()


def _plain_lines(total: int, n_batches: int, already: int) -> Report:
    """One line for each batch, with the time left at the pace so far."""
    start = time.monotonic()
    last_batch = -1

    def report(done: int, batch: int, best: float) -> None:
        nonlocal last_batch
        if batch == last_batch and done < total:
            return
        last_batch = batch
        left = (time.monotonic() - start) / max(done - already, 1) * (total - done)
        line = (
            f"batch {batch}/{n_batches}: {done}/{total} candidates, best {number(best)}, {left:.0f} s left\n"
        )
        sys.stderr.write(line)

    return report
