"""`--set NAME=VALUE`: the parameters of a search that have no option of their own.

They are those of `MetricSearch`, `ExampleWeights`, `StudyStorage` and `TrainingOptions` by their names, and
after a dot those of a part: of the embedding, of the sampler, of a metric that is the user's own. The names
come from the library, so that a new parameter of the search is known here by itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from difflib import get_close_matches
from inspect import getdoc, signature
from typing import Any

from moew.cli._options import option_of
from moew.cli._users_code import find_object, is_reference
from moew.exceptions import InvalidInputError

_OBJECTS = ("callbacks", "search_space")  # which no text can say
OF_METRIC = {
    "metric.name": "what results and the report call a function, a scorer or a program",
    "metric.response": "what a function or a program looks at: decision (the default), score or proba",
    "metric.timeout": "seconds that a program may take, default 60",
}


def pair(text: str, option: str) -> tuple[str, str]:
    """The two sides of NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise InvalidInputError(f"{option} is NAME=VALUE, got {text!r}.")
    return name, value


def read_value(text: str) -> Any:
    """A value as it is written: JSON (numbers, true, lists), none, else a text."""
    if text == "none":
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def search_parameters_from(settings: Mapping[str, Any], known_columns: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters for `MetricSearch.from_settings` that options and `--set` give, but for the model, the
    metric, the decision and the storage; `known_columns` are those that an embedding may name."""
    strategies = [name.strip() for names in settings["strategies"] for name in names.split(",")]
    own = {
        "constraints": list(settings["constraint"]) or None,
        "n_candidates": settings["candidates"],
        "timeout": settings["timeout"],
        "strategies": strategies or None,
        "n_jobs": settings["jobs"],
        "random_state": settings["seed"],
    }
    found = {name: value for name, value in own.items() if value is not None}
    if settings["as_in_the_paper"]:
        from moew.search import paper_settings

        found = {**paper_settings(), **found}
    given = settings["set"]
    _check_names(given)
    found |= {name: value for name, value in given.items() if "." not in name}
    for part in ("embedding", "sampler"):
        prefix = f"{part}."
        changes = {n.removeprefix(prefix): value for n, value in given.items() if n.startswith(prefix)}
        if changes:
            found[part] = _part_with(part, found.get(part, _defaults()[part]), changes)
    if isinstance(embedding := found.get("embedding"), str):
        found["embedding"] = _embedding_from(embedding, settings, known_columns)
    return found


def of_metric(settings: Mapping[str, Any], name: str) -> Any:
    """What `--set metric.NAME=…` says; None without."""
    return settings["set"].get(f"metric.{name}")


def parameter_called(argument: str) -> str | None:
    """How `--set` names what the library calls an argument; None where it is no parameter of a search."""
    known = _known()
    if argument in known:
        return argument
    return next((name for name in known if name.partition(".")[2] == argument), None)


def show_parameters() -> None:
    """Show what `--set` can name: each parameter, and what it is."""
    from moew.cli import _shown
    from moew.decision import rule_examples

    _shown.show_table(("--set", "what it is"), list(_known().items()), texts=2)
    _shown.show(f"\n--decision is one of {', '.join(rule_examples())}; @train or @validation: fitted there.")
    _shown.show(
        "\nValues are numbers, true, false, none, lists as [1, 2], or texts. More: help(moew.MetricSearch)"
    )


def _known() -> dict[str, str]:
    """The names that `--set` takes, each with what it is."""
    from moew.search import ExampleWeights, MetricSearch, StudyStorage, TrainingOptions

    told: dict[str, str] = {}
    for kind in (MetricSearch, ExampleWeights, StudyStorage, TrainingOptions):
        told |= _told_parameters(kind)
    names = [name for name in _defaults() if option_of(name) is None and name not in _OBJECTS]
    parts = {
        f"{part}.{name}": f"of {' and '.join(kinds)}"
        for part in ("embedding", "sampler")
        for name, kinds in _parameters_of(part).items()
    }
    return {**{name: told.get(name, "") for name in names}, **parts, **OF_METRIC}


def _told_parameters(kind: Any) -> dict[str, str]:
    """What the docstring of a class says its parameters are, in a line each."""
    section = (getdoc(kind) or "").partition("Parameters\n")[2].partition("Attributes\n")[0]
    return dict(re.findall(r"^(\w+) : (.+)$", section, re.MULTILINE))


def _defaults() -> dict[str, Any]:
    """All settings of a search, with their defaults."""
    from moew.search import MetricSearch

    return vars(MetricSearch(None).settings)


def _registry(part: str) -> Mapping[str, Any]:
    if part == "sampler":
        from moew.samplers import SAMPLERS

        return SAMPLERS
    from moew.embedding import EMBEDDINGS

    return EMBEDDINGS


def _parameters_of(part: str) -> dict[str, list[str]]:
    """The parameters of the kinds of a part, each with the names of the kinds that have it."""
    found: dict[str, list[str]] = {}
    for kind, make in _registry(part).items():
        for name in signature(make).parameters:
            found.setdefault(name, []).append(kind)
    return found


def _check_names(given: Mapping[str, Any]) -> None:
    """Raise on a name that is no parameter, or has an option of its own."""
    known = _known()
    for name in given:
        if name in known:
            continue
        if name in _defaults() and (option := option_of(name)):
            raise InvalidInputError(f"--set {name}: it has an option of its own, {option}.")
        (near,) = get_close_matches(name, known, n=1, cutoff=0.0)
        raise InvalidInputError(
            f"--set {name}: the search has no such parameter; the nearest is {near!r}. `moew fit --set help` "
            "lists them."
        )


def _part_with(part: str, base: Any, changes: Mapping[str, Any]) -> Any:
    """An embedding or a sampler, by its name or as the paper has it, with changed parameters."""
    is_name = isinstance(base, str)
    make: Any = _registry(part).get(base) if is_name else type(base)
    names = () if make is None else signature(make).parameters
    for name in changes:
        if name not in names:
            able = " or ".join(f"--set {part}={kind}" for kind in _parameters_of(part)[name])
            raise InvalidInputError(
                f"--set {part}.{name} is for {able}, not for {base if is_name else make.__name__}."
            )
    kept = {} if is_name else {name: getattr(base, name) for name in names}
    return make(**{**kept, **changes})


def _embedding_from(text: str, settings: Mapping[str, Any], known_columns: Mapping[str, Any]) -> Any:
    """The embedding of a name, of `columns=a,b`, or of the user's `module:object`."""
    from moew.embedding import columns_of_text

    if text.startswith("columns="):
        columns = columns_of_text(text)
        if missing := [name for name in columns if name not in known_columns]:
            raise InvalidInputError(
                f"--set embedding={text}: no features are {missing}; they are, with the metric's columns, "
                f"{[*known_columns]}."
            )
        return columns
    if not is_reference(text):
        return text  # the library says what else it can be
    found = find_object(text, "--set embedding", settings["folder"])
    if hasattr(found, "transform"):
        raise InvalidInputError(
            f"--set embedding={text}: a transformer cannot be kept in a run folder; wrap it in a function of "
            "(X, y), or use MetricSearch in Python."
        )
    return found
