"""The run folder of `moew fit`: what a search found, kept so that loading it executes no code from it.

`load_run(folder)` gives back the model, the decision rule and the weight function; `predict` and `weights`
take rows as the run's schema reads them. The names are resolved when first used, as in `moew` itself: the
command line shows its help without loading what it computes with.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moew.runs._finished import FinishedRun as FinishedRun
    from moew.runs._finished import load_run as load_run
    from moew.runs._folder import RunFolder as RunFolder
    from moew.runs._models import built_in_model as built_in_model
    from moew.runs._schema import Schema as Schema
    from moew.runs._tables import read_table as read_table

_HOMES = {
    "FinishedRun": "moew.runs._finished",
    "RunFolder": "moew.runs._folder",
    "Schema": "moew.runs._schema",
    "built_in_model": "moew.runs._models",
    "load_run": "moew.runs._finished",
    "read_table": "moew.runs._tables",
}
__all__ = ["FinishedRun", "RunFolder", "Schema", "built_in_model", "load_run", "read_table"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'moew.runs' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
