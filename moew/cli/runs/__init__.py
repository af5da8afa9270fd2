"""The run folder of `moew fit`, whose loading executes no code from it.

`load_run(folder)` gives back the model, the decision rule and the weight function; `predict` and `weights`
take rows as the run's schema reads them. The names are resolved when first used, as in `moew` itself: the
command line shows its help without loading what it computes with.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moew.cli.runs._finished import FinishedRun as FinishedRun
    from moew.cli.runs._finished import load_run as load_run
    from moew.cli.runs._folder import RunFolder as RunFolder
    from moew.cli.runs._models import built_in_model as built_in_model
    from moew.cli.runs._schema import Schema as Schema
    from moew.cli.runs._tables import read_table as read_table

_HOMES = {
    "FinishedRun": "moew.cli.runs._finished",
    "RunFolder": "moew.cli.runs._folder",
    "Schema": "moew.cli.runs._schema",
    "built_in_model": "moew.cli.runs._models",
    "load_run": "moew.cli.runs._finished",
    "read_table": "moew.cli.runs._tables",
}
__all__ = ["FinishedRun", "RunFolder", "Schema", "built_in_model", "load_run", "read_table"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'moew.cli.runs' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
