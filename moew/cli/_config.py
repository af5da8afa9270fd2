"""`--config run.toml`: options from a TOML file; those on the command line win.

Relative paths in the file are relative to the file's own folder.
"""

from __future__ import annotations

import json
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from moew.exceptions import InvalidInputError


def config_option(kind: type[click.Option]) -> click.Option:
    """The option `--config`, which is read first and sets the defaults of all others."""
    return kind(
        ["--config"],
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        is_eager=True,
        expose_value=False,
        callback=_read,
        help="Settings from a TOML file; the command line wins.",
    )


def _read(ctx: click.Context, _: click.Parameter, path: Path | None) -> None:
    if path is None:
        return
    try:
        ctx.default_map = {**(ctx.default_map or {}), **read_config(path, ctx.command)}
    except InvalidInputError as error:
        raise click.UsageError(str(error), ctx) from error


def read_config(path: Path, command: click.Command) -> dict[str, Any]:
    """The settings of a TOML file by parameter name, as click takes defaults."""
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{path} is no TOML: {error}") from error
    except RecursionError as error:
        raise InvalidInputError(
            f"{path} has lists or tables nested too deeply; a setting is one value or a list of values."
        ) from error
    folder = path.parent.resolve()
    known = {parameter.name: parameter for parameter in command.params if parameter.name != "config"}
    found: dict[str, Any] = {"folder": str(folder)} if "folder" in known else {}
    for key, value in content.items():
        parameter = known.get(key.replace("-", "_"))
        if parameter is None:
            names = [str(name).replace("_", "-") for name in known]
            near = get_close_matches(key, names, n=1, cutoff=0.0)
            raise InvalidInputError(f"{path}: there is no setting {key!r}; the nearest is {near[0]!r}.")
        read = _value(value, parameter, f"{path}: {key}")
        found[str(parameter.name)] = str(folder / read) if isinstance(parameter.type, click.Path) else read
    return found


def _value(value: Any, parameter: click.Parameter, where: str) -> Any:
    """A TOML value as the text that would stand on the command line, so that click checks it."""
    if getattr(parameter, "is_flag", False):
        if not isinstance(value, bool):
            raise InvalidInputError(f"{where} is true or false, got {value!r}.")
        return value
    if getattr(parameter, "multiple", False):
        if isinstance(value, dict):
            return [_text(f"{name}={_text(item, where)}", where) for name, item in value.items()]
        return [_text(item, where) for item in (value if isinstance(value, list) else [value])]
    if isinstance(value, list | dict):
        raise InvalidInputError(f"{where} takes one value, got {value!r}.")
    return _text(value, where)


def _text(value: Any, where: str) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    if "\0" in text:  # no file can be named so, and no command line can hold it
        raise InvalidInputError(f"{where} holds a NUL character, got {text!r}.")
    return text
