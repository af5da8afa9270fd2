"""The options of a search, each declared once: on the command line, in TOML, in messages, for the library.

Commands show their options under headings. `--config run.toml` sets options from a TOML file, whose relative
paths are relative to its own folder; those on the command line win.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from pathlib import Path
from string import Template
from typing import Any

import click

from moew.cli._models import MODELS
from moew.exceptions import InvalidInputError

# Each option: its name and what its value is called | its kinds, see `_declared` | the help.
# `shown` is a default that the help shows. `to` is what the option is a parameter of, as it is: the search,
# the embedding or the sampler; and after a dot what the library calls it, where that is something else.
_OPTIONS = """
[Data (CSV, TSV, Parquet or Feather, by the file's ending)]
label COLUMN | | The column of labels.
validation | file | Rows from the distribution that matters.
folds HOW | folds | Training rows that are evaluated, too, out of fold: auto, none, or in so many folds.
    [default: auto]
validation-share SHARE | share; to=.evaluate_on | Hold out so many rows instead of folds, where there is no
    --validation.
test | file | Rows that evaluate the models in the end; no choice sees them.
features A,B,… | several | Default: all columns that are for nothing else.
drop A,B,… | several | Columns that are no features.
id COLUMN | | Names rows; default: their number, from 0.
sample-weight COLUMN | | Weights that multiply the learned ones.
groups COLUMN | | Names queries, patients, …, whose rows are never cut apart.
separator CHARACTER | | Between the columns of text files: , ; | or tab; default: found by looking.
task | auto/classification/regression; default=auto | Default: as the labels look.

[Metric and decision]
metric NAME | | See `moew metrics`; or module:function.
also NAME | several; to=.metric=[…, …] | A metric that is looked at, too, for every model that is tried; as
    --metric.
constraint BOUND | several; to=.constraints | A bound to keep, as "fpr_gap <= 0.05", of --metric or one of
    --also.
metric-command WORDS | | A program: "./score {predictions}". Its last line is the number.
metric-name WORDS | | What to call it in results and the report: "money lost per day".
metric-column NAME=COLUMN | several; to=.columns | What the metric calls a column of the file.
metric-timeout SECONDS | above zero; default=60 | For the program.  [default: 60]
response | decision/score/proba | What your function or program looks at; default: decision.
--lower-is-better/--higher-is-better | unset | Of your function or program; default: higher.
positive LABEL | to=.pos_label | Default: the second of two labels.
decision RULE | | $decision_rules; with @train or @validation, fitted there.
calibrate | sigmoid/isotonic; to=search | Make the probabilities those of the evaluation rows; decisions
    stay.

[Model]
model NAME | default=hist_gradient_boosting; to=.estimator | $models; or module:object. [default:
    hist_gradient_boosting]
model-option NAME=VALUE | several | A setting, as n_estimators=50.
eval-share SHARE | share; to=search | Of the training rows, for a model that stops early, as with
    early_stopping_rounds=20.

[Search]
as-in-the-paper | paper | The settings of the paper's experiments in place of the defaults below; what you
    give yourself wins. Needs --validation.
embedding NAME | shown=directions | $embeddings, columns=A,B or module:function.
base-weights NAME | base_weights; shown=label_shift; to=search | Weights at alpha = 0: $base_weights.
sampler NAME | samplers; shown=gp_bucb | Where alphas come from: $samplers.
radius R | above zero; to=search | Of the ball that alpha lives in.
batches B | count; shown=10 | Of candidates.
batch-size K | count; shown=10; to=search | B times K candidates are trained.
candidates N | count; to=.n_candidates | So many candidates in place of --batches; the last batch may be
    smaller.
alpha-zero-repeats N | count; shown=1; to=search | Models at alpha = 0; two or more tell the metric's noise.
stop-when GAIN | above zero; to=search | Stop when more candidates promise a smaller gain, in the metric's
    units.
timeout SECONDS | above zero; to=search; not shown by compare | Begin no candidate after so many seconds;
    the best so far wins.
p PERCENT | percent; to=sampler | Of gp_bucb: how far candidates lie from those that are known. [default:
    68.3]
q PERCENT | percent; to=sampler | Of gp_bucb: how far the candidates of a batch lie apart.  [default: 68.3]
kernel-width HOW | kernel width; to=sampler.width | Of gp_bucb: how far a score tells about others: fit,
    domain (the radius) or a number.  [default: fit]
noise HOW | noise; to=sampler | Of gp_bucb: the metric's variance between trainings: fit, repeats (from
    --alpha-zero-repeats) or a number.  [default: fit]
dims D | count; to=embedding.n_dims | Of the autoencoder's embedding.  [default: as many as columns, at most
    8]
trade-off LAMBDA | up to one; to=embedding | The features' share in the autoencoder's loss; the rest is the
    label's.  [default: 0.5]
final NAME | finals; shown=ensemble; to=search | What becomes of example weights: $finals.
strategies NAME,… | several | What is tried beside example weights, such as class weights; the best by
    honest scores is selected, or the simplest that is as good.  [default: auto, all]
honest HOW | shown=halves | halves, holdout, none or a share to hold out.
jobs N | jobs; default=auto; to=search.n_jobs | Models trained at a time, -1 for all cores. [default: all
    cores, once that pays]
candidate-timeout SECONDS | above zero; to=search | A model whose training takes longer is a failed
    candidate.
most-failures SHARE | up to one; shown=0.9; to=search | Of candidates; with more, the search ends and tells
    the reasons.
seed N | from zero; shown=0; to=search.random_state | Of all chance.

[Comparison at equal budget]
--compare/--no-compare | flag; not shown by compare | All other strategies, too, each with the whole budget;
    needs --test.
repeats N | from two; shown=5 | Of every method, for margins.

[Output]
out FOLDER | path; shown=run; of fit | The run folder.
force | flag; of fit | Replace a run that is there.
resume | flag; of fit | Go on with an interrupted run.
join | flag; of fit | Let other processes train candidates, too: `moew worker FOLDER`.
json | flag; not recorded | One JSON object instead of tables.
storage URL | not shown by compare | A database for candidates and their scores, as
    postgresql://user@host/name; default: a file in the run folder.
study-name NAME | shown=moew; not shown by compare | Of this search in the database.
config | config | Settings from a TOML file; the command line wins.
folder FOLDER | folder | Of your modules and programs; default: this one, or that of the --config file.
"""
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


class Option(click.Option):
    """An option that stands under a heading in the help; `words` name registries as $names.

    `of_fit`: `moew compare` has it not; `recorded`: it is among the settings of a run; `to`: see above.
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
        self.part, _, argument = to.partition(".")
        self.argument = argument or str(self.name)  # what the library calls it

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        words = Template(self.help or "")
        named = {name: ", ".join(_REGISTRIES[name]()) for name in words.get_identifiers()}
        self.help = words.substitute(named)
        return super().get_help_record(ctx)

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


def search_command(parameters: list[click.Parameter]) -> Callable[[Callable[..., Any]], SectionCommand]:
    """A decorator that makes a command of a function; its docstring is the help."""

    def decorate(function: Callable[..., Any]) -> SectionCommand:
        name = function.__name__
        return SectionCommand(
            name, callback=function, params=parameters, help=function.__doc__, no_args_is_help=True
        )

    return decorate


def _value(convert: Callable[[str], Any], is_what: Callable[[], str]) -> Callable[[Any], Any]:
    """A type of values for click; `convert` gives None for a text that is none of them."""

    def value(given: Any) -> Any:
        found = convert(str(given))
        if found is None:
            raise click.BadParameter(f"{str(given)!r} is not {is_what()}.")
        return found

    return value


def _name_of(names: Callable[[], list[str]]) -> Callable[[Any], Any]:
    """A name of a registry, which is loaded when a name is checked."""
    return _value(
        lambda text: text if text in names() else None, lambda: f"one of {', '.join(map(repr, names()))}"
    )


def _number_or(*names: str, least: float) -> Callable[[Any], Any]:
    """A number from `least` on, or one of a few names."""

    def convert(text: str) -> Any:
        try:
            given = float(text)
        except ValueError:
            return text if text in names else None
        return given if math.isfinite(given) and given >= least else None

    return _value(convert, lambda: f"{', '.join(names)} or a number of at least {least:g}")


def _whole_number(text: str, least: int) -> int | None:
    return int(text) if text.isdecimal() and int(text) >= least else None


_folds = _value(
    lambda text: text if text in ("auto", "none") else _whole_number(text, 2),
    lambda: "auto, none or a whole number of at least 2",
)
# Models that are trained at a time; "auto": as many as there are cores, as soon as that pays.
JOBS = _value(
    lambda text: text if text == "auto" else -1 if text == "-1" else _whole_number(text, 1),
    lambda: "a whole number of at least 1, -1 for all cores, or auto",
)


def _in(room: str, registry: str) -> list[str]:
    return list(getattr(import_module(room), registry))


def _decision_rules() -> list[str]:
    from moew.decision import rule_examples

    return rule_examples()


# What gives the names of a registry, whose room is loaded only then.
_REGISTRIES: dict[str, Callable[[], list[str]]] = {
    "base_weights": partial(_in, "moew.weighting", "BASE_WEIGHTS"),
    "decision_rules": _decision_rules,
    "embeddings": partial(_in, "moew.embedding", "EMBEDDINGS"),
    "finals": partial(_in, "moew.search._settings", "FINAL"),
    "models": lambda: list(MODELS),
    "samplers": partial(_in, "moew.samplers", "SAMPLERS"),
}


def search_parameters(*, of_fit: bool = True, needs_files: bool = True) -> list[click.Parameter]:
    """The argument TRAIN and all options of `moew fit`, or of `moew compare`, which takes some only from the
    settings of a run, and hides them; files need not be there without `needs_files`."""
    options = list(_declared(of_fit, needs_files))
    file = FILE if needs_files else click.Path(path_type=Path)
    train = click.Argument(["train"], type=file, required=False)
    return [train, *(option for option in options if of_fit or not option.of_fit)]


def _declared(of_fit: bool, needs_files: bool) -> Iterator[Option]:
    path = click.Path(path_type=Path)
    types: dict[str, Any] = {
        "above zero": click.FloatRange(min=0, min_open=True),
        "count": click.IntRange(min=1),
        "file": FILE if needs_files else path,
        "folder": FOLDER if needs_files else path,
        "folds": _folds,
        "from two": click.IntRange(min=2),
        "from zero": click.IntRange(min=0),
        "jobs": JOBS,
        "kernel width": _number_or("fit", "domain", least=1e-9),
        "noise": _number_or("fit", "repeats", least=0),
        "path": path,
        "percent": click.FloatRange(min=0, max=100),
        "share": click.FloatRange(min=0, max=1, min_open=True, max_open=True),
        "up to one": click.FloatRange(min=0, max=1),
        **{name: _name_of(names) for name, names in _REGISTRIES.items()},
    }
    config = {"is_eager": True, "callback": _set_defaults, "expose_value": False, "type": FILE}
    kinds: dict[str, dict[str, Any]] = {
        "": {},
        "config": {"recorded": False, **config},  # first: it sets the defaults of all others
        "flag": {"is_flag": True, "default": False},
        "not recorded": {"recorded": False},
        "not shown by compare": {"hidden": not of_fit},
        "of fit": {"of_fit": True, "recorded": False},
        "paper": {"is_flag": True, "is_eager": True, "callback": _paper_defaults},
        "several": {"multiple": True},
        "unset": {"default": None},
    }
    section = ""
    for entry in re.split(r"\n+(?! )", _OPTIONS.strip()):
        if entry.startswith("["):
            section = entry.strip("[]")
            continue
        name, of_kinds, words = entry.split(" |", 2)
        settings: dict[str, Any] = {}
        for kind in of_kinds.strip().split("; "):
            key, equals, value = kind.partition("=")
            if key == "shown":
                settings |= {"default": value, "show_default": True}
            elif equals:
                settings[key] = value
            elif "/" in kind:
                settings["type"] = click.Choice(kind.split("/"))
            else:
                settings |= kinds[kind] if kind in kinds else {"type": types[kind]}
        words = " ".join(words.split()).replace(" [default", "  [default")
        yield Option(name, words, section, **settings)


def options_of(part: str = "") -> list[Option]:
    """The options of a search, or those of a part of it."""
    options = _declared(of_fit=True, needs_files=True)
    return [one for one in options if part in ("", one.part)]


def _paper_defaults(ctx: click.Context, _: click.Parameter, is_given: bool) -> bool:
    """Put the paper's settings in place of the defaults; a settings file and the command line win."""
    if is_given:
        from moew.embedding import EMBEDDINGS
        from moew.search import paper_settings

        paper = paper_settings()
        kind = type(paper["embedding"])
        same = ("base_weights", "radius", "batch_size", "alpha_zero_repeats", "final")
        defaults = {
            "embedding": next(name for name, one in EMBEDDINGS.items() if one is kind),
            "folds": "none",  # the validation rows alone
            "batches": paper["n_candidates"] // paper["batch_size"],
            "strategies": ("example weights",),
            **{name: paper[name] for name in same},
        }
        ctx.default_map = {**defaults, **(ctx.default_map or {})}
    return is_given


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

    left_out = {one.name for one in options_of() if not one.recorded}
    kept = {name: plain(value) for name, value in settings.items() if name not in left_out}
    return {name.replace("_", "-"): value for name, value in kept.items() if value not in (None, [])}


def settings_of_run(path: Path, *, needs_files: bool = True) -> dict[str, Any]:
    """The settings in a run's settings.toml; the data files must be there if `needs_files`."""
    parameters = search_parameters(needs_files=needs_files)
    try:
        with click.Command("fit", params=parameters).make_context("fit", ["--config", str(path)]) as context:
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
        parameter = known.get(key.replace("-", "_"))
        if parameter is None:
            names = [str(name).replace("_", "-") for name in known]
            near = get_close_matches(key, names, n=1, cutoff=0.0)
            raise InvalidInputError(f"{path}: there is no setting {key!r}; the nearest is {near[0]!r}.")
        read = _from_toml(value, parameter, f"{path}: {key}")
        found[str(parameter.name)] = str(folder / read) if isinstance(parameter.type, click.Path) else read
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
