"""The options of a search, each declared once: on the command line, in TOML, in messages.

What every day needs has an option of its own; every other parameter of a search is set by `--set NAME=VALUE`,
see `_parameters.py`. `--config run.toml` sets options from a TOML file, and parameters from its table
[search]; relative paths in it are relative to its own folder, and the command line wins.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from moew.cli._models import MODELS
from moew.exceptions import InvalidInputError

# Each option: its name and what its value is called | its kinds, see `_declared` | the help.
_OPTIONS = """
[Data (CSV, TSV, Parquet or Feather, by the file's ending)]
label COLUMN | | The column of labels.
validation FILE | path | Rows from the distribution that matters.
test FILE | path | Rows that no choice sees, for the end.
features A,B,… | several | Default: all columns that are for nothing else.
drop A,B,… | several | Columns that are no features.
id COLUMN | | Names rows; default: their number, from 0.
sample-weight COLUMN | | Weights that multiply the learned ones.
groups COLUMN | | Queries, patients, …; their rows stay together.
separator CHARACTER | | Of text files; default: found by looking.
task TASK | auto/classification/regression; default=auto | classification or regression.

[Metric and decision]
metric NAME | | See `moew metrics`; or module:function.
also NAME | several; to=metric=[…, …] | A metric that is looked at, too; as --metric.
constraint BOUND | several; to=constraints | A bound to keep, as "fpr_gap <= 0.05".
metric-command WORDS | | "./score {predictions}": prints the number last.
metric-column NAME=COL | several; to=columns | What the metric calls a column of the file.
--lower-is-better/--higher-is-better | unset | Of your function or program; default: higher.
positive LABEL | to=pos_label | Default: the second of two labels.
decision RULE | | As tuned, select=0.05@train; see `--set help`.

[Model]
model NAME | default=hist_gradient_boosting; to=estimator | {models}; or module:object.
model-option NAME=VALUE | several | A setting of it, as n_estimators=50.

[Search]
candidates N | count; to=n_candidates | How many are trained.  [default: 100]
timeout SECONDS | above zero; not shown by compare | Begin no candidate after so many seconds.
strategies NAME,… | several | Beside example weights; default: auto, all.
jobs N | jobs; default=auto; to=n_jobs | Models trained at a time; default: as that pays.
seed N | from zero; shown=0; to=random_state | Of all chance.
as-in-the-paper | flag | Other defaults: those of the paper's experiments.
set NAME=VALUE | set | Any other parameter; `--set help` lists them.
--compare/--no-compare | flag; not shown by compare | All strategies at equal budget; needs --test.
repeats N | from two; shown=5 | Of the comparison, for margins.

[Output]
out FOLDER | path; shown=run; of fit | The run folder.
force | flag; of fit | Replace a run that is there.
resume | flag; of fit | Go on with an interrupted run.
join | flag; of fit | Let others train candidates, too: `moew worker`.
json | flag; not recorded | One JSON object instead of tables.
storage URL | not shown by compare | A database for candidates, as postgresql://host/name.
config FILE | config | Settings from a TOML file; the command line wins.
folder FOLDER | path | Of your modules and programs.
"""
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
TABLE = "search"  # of a TOML file: the parameters that `--set` sets


class Option(click.Option):
    """An option that stands under a heading in the help.

    `of_fit`: `moew compare` has it not; `recorded`: it is among the settings of a run; `to`: what the library
    calls it.
    """

    def __init__(
        self,
        name: str,
        words: str,
        section: str,
        *,
        to: str = "",
        of_fit: bool = False,
        recorded: bool = True,
        **settings: Any,
    ) -> None:
        option, _, metavar = name.partition(" ")
        names = [option if option.startswith("--") else f"--{option}"]
        super().__init__(names, metavar=metavar or None, help=words, **settings)
        self.section, self.of_fit, self.recorded = section, of_fit, recorded
        self.argument = to or str(self.name)

    def get_help_extra(self, ctx: click.Context) -> Any:
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)  # ranges are told when they are violated
        return extra


class SectionCommand(click.Command):
    """A command whose help has its options under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                sections.setdefault(getattr(parameter, "section", "Output"), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records, col_max=min(26, formatter.width // 2 - 4))


def JOBS(given: Any) -> Any:  # noqa: N802  (a type of values, as click's)
    """Models that are trained at a time; "auto": as many as there are cores, as soon as that pays."""
    text = str(given)
    if text == "auto":
        return text
    if text == "-1" or (text.isdecimal() and int(text) >= 1):
        return int(text)
    raise click.BadParameter(f"{text!r} is not a whole number of at least 1, -1 for all cores, or auto.")


def search_parameters(*, of_fit: bool = True) -> list[click.Parameter]:
    """The argument TRAIN and all options of `moew fit`, or of `moew compare`, which takes some only from the
    settings of a run, and hides them."""
    train = click.Argument(["train"], type=click.Path(path_type=Path), required=False)
    return [train, *(option for option in _declared(of_fit) if of_fit or not option.of_fit)]


def _declared(of_fit: bool = True) -> Iterator[Option]:
    config = {"is_eager": True, "callback": _set_defaults, "expose_value": False, "type": FILE}
    kinds: dict[str, dict[str, Any]] = {
        "": {},
        "above zero": {"type": click.FloatRange(min=0, min_open=True)},
        "config": {"recorded": False, **config},  # first: it sets the defaults of all others
        "count": {"type": click.IntRange(min=1)},
        "flag": {"is_flag": True, "default": False},
        "from two": {"type": click.IntRange(min=2)},
        "from zero": {"type": click.IntRange(min=0)},
        "jobs": {"type": JOBS},
        "not recorded": {"recorded": False},
        "not shown by compare": {"hidden": not of_fit},
        "of fit": {"of_fit": True, "recorded": False},
        "path": {"type": click.Path(path_type=Path)},
        "set": {"multiple": True, "callback": _set_parameters},
        "several": {"multiple": True},
        "unset": {"default": None},
    }
    section = ""
    for line in _OPTIONS.strip().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line:
            name, of_kinds, words = line.split(" |", 2)
            settings: dict[str, Any] = {}
            for kind in of_kinds.strip().split("; "):
                key, equals, value = kind.partition("=")
                if key == "shown":
                    settings |= {"default": value, "show_default": True}
                elif equals:
                    settings[key] = value
                else:
                    settings |= {"type": click.Choice(kind.split("/"))} if "/" in kind else kinds[kind]
            words = words.strip().replace("{models}", ", ".join(MODELS))
            yield Option(name, words, section, **settings)


def option_of(argument: str) -> str | None:
    """The option that the library calls by this name, if it has one of its own."""
    return next((one.opts[0] for one in _declared() if one.argument == argument), None)


def _set_parameters(ctx: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, Any]:
    """Parameters of the search by name: those of a settings file, and then those of the command line."""
    from moew.cli._parameters import pair, read_value, show_parameters

    if "help" in given:
        show_parameters()
        ctx.exit()
    texts = [*(ctx.default_map or {}).get(str(option.name), ()), *given]
    try:
        return {name: read_value(text) for name, text in (pair(text, "--set") for text in texts)}
    except InvalidInputError as error:
        raise click.UsageError(str(error), ctx) from error


def completed(context: click.Context, **changed: Any) -> dict[str, Any]:
    """The settings in the order of the help, with the defaults that depend on something else."""
    given = {**context.params, **changed}
    names = [str(parameter.name) for parameter in context.command.params if parameter.name in given]
    return {name: given[name] for name in names} | {"folder": (given["folder"] or Path()).absolute()}


def recorded(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as `--config` takes them; files with their whole path, for use from any folder."""

    def plain(value: Any) -> Any:
        if isinstance(value, Path):
            return str(value.absolute())
        return list(value) if isinstance(value, tuple) else value

    left_out = {one.name for one in _declared() if not one.recorded} | {"set"}
    kept = {name: plain(value) for name, value in settings.items() if name not in left_out}
    parameters = {name: "none" if value is None else value for name, value in settings["set"].items()}
    kept = {name.replace("_", "-"): value for name, value in kept.items() if value not in (None, [])}
    return {**kept, TABLE: parameters} if parameters else kept


def settings_of_run(path: Path) -> dict[str, Any]:
    """The settings in a run's settings.toml."""
    command = click.Command("fit", params=search_parameters())
    try:
        with command.make_context("fit", ["--config", str(path)]) as context:
            return completed(context)
    except click.UsageError as error:
        raise InvalidInputError(f"{path} cannot be used: {error.format_message()}") from error


def _set_defaults(ctx: click.Context, _: click.Parameter, path: Path | None) -> None:
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
        parameter = known.get("set" if key == TABLE else key.replace("-", "_"))
        if parameter is None:
            names = [TABLE, *(str(name).replace("_", "-") for name in known)]
            near = get_close_matches(key, names, n=1, cutoff=0.0)
            raise InvalidInputError(
                f"{path}: there is no setting {key!r}; the nearest is {near[0]!r}. Parameters of the search "
                f"stand in its table [{TABLE}]."
            )
        if key == TABLE and not isinstance(value, dict):
            raise InvalidInputError(f"{path}: {key} is a table of parameters, got {value!r}.")
        read = _from_toml(_flat(value) if key == TABLE else value, parameter, f"{path}: {key}")
        found[str(parameter.name)] = str(folder / read) if isinstance(parameter.type, click.Path) else read
    return found


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """The entries of a table and its tables: `p` in the table `sampler` is `sampler.p`."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        found |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return found


def _from_toml(value: Any, parameter: click.Parameter, where: str) -> Any:
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


def toml_text(settings: Mapping[str, Any], comment: str = "") -> str:
    """Settings (texts, finite numbers, truths, lists of them, and last tables) as a TOML file; None is left
    out."""

    def written(value: Any) -> str:
        # As JSON writes them, TOML reads them, but for one character that it wants escaped, too.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

    lines = [f"# {line}" for line in comment.splitlines()]
    for name, value in settings.items():
        key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else written(name)
        if isinstance(value, Mapping):
            lines += ["", f"[{key}]", *toml_text(value).splitlines()]
        elif value is not None:
            lines.append(f"{key} = {written(value)}")
    return "\n".join([*lines, ""])
