"""Progress of a search: what it does, and a bar, on a terminal or in a notebook; plain lines if asked for."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from html import escape
from importlib.util import find_spec
from typing import Any

from moew._printable import printable
from moew._util.numbers import number

Report = Callable[[int, int, float], None]
"""report(candidates done, batch, best value so far)."""

_SHOW_EVERY = 0.2  # seconds between two changes of what a notebook shows


def progress(
    total: int, n_batches: int, enabled: bool | None = None, already: int = 0, name: str = ""
) -> AbstractContextManager[Report]:
    """A context with the function that the search calls after each candidate.

    `enabled=None` shows a bar if standard error is a terminal, and in a notebook; True also shows lines
    elsewhere. `already` is the number of candidates done in an earlier run, which do not count for the time
    left. `name` says what it is the progress of, where there are several.
    """
    on_terminal = sys.stderr.isatty()
    in_notebook = is_notebook()
    plan = _Plan(total, n_batches, already, name)
    if enabled is False or (enabled is None and not (on_terminal or in_notebook)):
        return nullcontext(lambda *_: None)
    if in_notebook:
        return _notebook_bar(plan)
    if on_terminal and find_spec("rich") is not None:
        return _rich_bar(plan)
    return nullcontext(_plain_lines(plan))


def is_notebook() -> bool:
    """Whether this is the process of a Jupyter kernel, whose output a notebook shows."""
    ipython = sys.modules.get("IPython")  # a kernel has loaded it
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


@dataclass(frozen=True)
class _Plan:
    """What a search is going to train."""

    total: int
    n_batches: int
    already: int
    name: str
    begun: float = field(default_factory=time.monotonic)

    def line(self, done: int, batch: int, best: float) -> str:
        """How far the search is, in words, with the time left at the pace so far."""
        passed = time.monotonic() - self.begun
        left = passed / max(done - self.already, 1) * (self.total - done)
        far = (
            f"{self.name}: {done} of {self.total}"
            if self.name
            else f"batch {batch}/{self.n_batches}: {done}/{self.total} candidates"
        )
        then = f"{passed:.0f} s" if done >= self.total else f"{left:.0f} s left"
        return f"{far}, best {number(best)}, {then}"


@contextmanager
def stage(words: str, enabled: bool | None = None) -> Iterator[None]:
    """Show on a terminal what is being done, such as "reading train.csv", until it is done.

    Elsewhere, or with `enabled=False`, nothing is shown.
    """
    if enabled is False or not sys.stderr.isatty() or find_spec("rich") is None:
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(printable(f"{words} …"), no_wrap=True, overflow="ellipsis")):
        yield


@contextmanager
def _rich_bar(plan: _Plan) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = BarColumn(), TextColumn("{task.description}", markup=False)
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        begun = f"{plan.name}: " if plan.name else ""
        task = shown.add_task(
            f"{begun}{plan.already} of {plan.total}", total=plan.total, completed=plan.already
        )

        def report(done: int, batch: int, best: float) -> None:
            shown.update(task, completed=done, description=plan.line(done, batch, best))

        yield report


@contextmanager
def _notebook_bar(plan: _Plan) -> Iterator[Report]:
    """One line of output, which changes. IPython's own `display` needs no widgets, as rich and tqdm do."""
    from IPython.display import display

    handle: Any = None
    shown_at = -_SHOW_EVERY
    last: dict[str, str] = {}

    def report(done: int, batch: int, best: float) -> None:
        nonlocal handle, shown_at
        line = plan.line(done, batch, best)
        bar = f'<progress value="{done}" max="{plan.total}" style="vertical-align: middle"></progress>'
        last.update({"text/plain": line, "text/html": f"<div>{bar} {escape(line)}</div>"})
        if time.monotonic() - shown_at < _SHOW_EVERY and done < plan.total:
            return
        shown_at = time.monotonic()
        if handle is None:
            handle = display(dict(last), raw=True, display_id=True)
        else:
            handle.update(dict(last), raw=True)

    try:
        yield report
    finally:  # what was reported last, also where the search ends early
        if handle is not None:
            handle.update(dict(last), raw=True)


def _plain_lines(plan: _Plan) -> Report:
    """One line for each batch."""
    last_batch = -1

    def report(done: int, batch: int, best: float) -> None:
        nonlocal last_batch
        if batch == last_batch and done < plan.total:
            return
        last_batch = batch
        sys.stderr.write(f"{plan.line(done, batch, best)}\n")

    return report
