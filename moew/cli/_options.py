"""The options that `moew fit` and `moew compare` share, in sections, on the command line and in TOML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from moew.cli._config import config_option
from moew.runs._models import MODELS

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_COUNT = click.IntRange(min=1)
_SHARE = click.FloatRange(min=0, max=1, min_open=True, max_open=True)
# How a run is started and shown is no part of what it computes.
NOT_RECORDED = ("config", "out", "force", "resume", "json")


class SectionOption(click.Option):
    """An option that stands under a heading in the help."""

    section: str = "Other"

    def get_help_extra(self, ctx: click.Context) -> Any:
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)  # what is out of range is said when it is given
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
                formatter.write_dl(records, col_max=26)


def training_parameters(
    output: Sequence[click.Parameter], *, offers_comparison: bool
) -> list[click.Parameter]:
    """The training file and all settings of a search; a settings file may hold each of them in any case."""
    models = ", ".join(MODELS)
    train = click.Argument(["train"], type=_FILE, required=False)
    return [
        train,
        *_section(
            "Data (CSV, Parquet or Feather, by the file's ending)",
            _option("label", metavar="COLUMN", help="The column of labels."),
            _option("validation", type=_FILE, help="Rows from the distribution that matters."),
            _option(
                "validation-share",
                type=_SHARE,
                metavar="SHARE",
                help="Held out without --validation.  [default: 0.2]",
            ),
            _option("folds", type=click.IntRange(min=2), metavar="N", help="Cross-validate instead."),
            _option("test", type=_FILE, help="Rows that judge the models in the end; no choice sees them."),
            _option(
                "features",
                multiple=True,
                metavar="A,B,…",
                help="Default: all columns that are for nothing else.",
            ),
            _option("drop", multiple=True, metavar="A,B,…", help="Columns that are no features."),
            _option("id", metavar="COLUMN", help="Names rows; default: their number, from 0."),
            _option("sample-weight", metavar="COLUMN", help="Weights that multiply the learned ones."),
            _option(
                "task",
                type=click.Choice(["auto", "classification", "regression"]),
                default="auto",
                help="Default: as the labels look.",
            ),
        ),
        *_section(
            "Metric and decision",
            _option("metric", metavar="NAME", help="See `moew metrics`; or module:function."),
            _option(
                "metric-command",
                metavar="WORDS",
                help='A program: "./score {predictions}". Its last line is the number.',
            ),
            _option(
                "metric-column",
                multiple=True,
                metavar="NAME=COLUMN",
                help="What the metric calls a column of the file.",
            ),
            _option(
                "metric-timeout",
                type=click.FloatRange(min=0, min_open=True),
                default=60.0,
                metavar="SECONDS",
                help="For the program.  [default: 60]",
            ),
            _option(
                "response",
                type=click.Choice(["decision", "score", "proba"]),
                help="What your function or program looks at; default: decision.",
            ),
            SectionOption(
                ["--lower-is-better/--higher-is-better"],
                default=None,
                help="Of your function or program; default: higher.",
            ),
            _option("positive", metavar="LABEL", help="Default: the second of two labels."),
            _option(
                "decision",
                metavar="RULE",
                help="threshold=0.5, accurate, select=0.05, recall=0.95 or equal_fpr=0.2.",
            ),
        ),
        *_section(
            "Model",
            _option(
                "model",
                default="hist_gradient_boosting",
                metavar="NAME",
                help=f"{models}; or module:object.  [default: hist_gradient_boosting]",
            ),
            _option(
                "model-option", multiple=True, metavar="NAME=VALUE", help="A setting, as n_estimators=50."
            ),
        ),
        *_section(
            "Search",
            _option(
                "embedding",
                default="autoencoder",
                metavar="NAME",
                show_default=True,
                help="autoencoder, label, discriminative, columns=A,B or module:function.",
            ),
            _option(
                "baseline",
                type=click.Choice(["label_shift", "covariate_shift", "uniform"]),
                default="label_shift",
                show_default=True,
                help="Weights at alpha = 0.",
            ),
            _option(
                "search",
                type=click.Choice(["gp_bucb", "random", "cover"]),
                default="gp_bucb",
                show_default=True,
                help="Where alphas come from.",
            ),
            _option(
                "radius",
                type=click.FloatRange(min=0, min_open=True),
                metavar="R",
                help="Of the ball that alpha lives in.",
            ),
            _option(
                "batches", type=_COUNT, default=10, metavar="B", show_default=True, help="Of candidates."
            ),
            _option(
                "batch-size",
                type=_COUNT,
                default=20,
                metavar="K",
                show_default=True,
                help="B times K models are trained.",
            ),
            _option(
                "baseline-repeats",
                type=_COUNT,
                default=1,
                metavar="N",
                show_default=True,
                help="Models at alpha = 0; two or more tell the metric's noise.",
            ),
            _option(
                "honest",
                metavar="HOW",
                help="halves, holdout, none or a share to hold out. [default: halves; with --metric-command "
                "holdout, which calls it less often]",
            ),
            _option(
                "jobs",
                type=_COUNT,
                default=1,
                metavar="N",
                show_default=True,
                help="Models trained at a time.",
            ),
            _option(
                "seed",
                type=click.IntRange(min=0),
                default=0,
                metavar="N",
                show_default=True,
                help="Of all chance.",
            ),
        ),
        *_section(
            "Comparison at equal budget",
            _flag(
                "--compare/--no-compare",
                "Uniform, random and importance weights, too; needs --test.",
                hidden=not offers_comparison,
            ),
            _option(
                "repeats",
                type=click.IntRange(min=2),
                default=5,
                metavar="N",
                show_default=True,
                help="Of every method, for margins.",
            ),
        ),
        *_section(
            "Output",
            *output,
            config_option(SectionOption),
            _option(
                "folder",
                type=click.Path(exists=True, file_okay=False, path_type=Path),
                metavar="FOLDER",
                help="Of your modules and programs; default: this one, or that of the --config file.",
            ),
        ),
    ]


def completed(given: dict[str, Any], command: click.Command) -> dict[str, Any]:
    """The settings in the order of the help, with the defaults that depend on something else."""
    folder = (given["folder"] or Path()).absolute()
    honest = given["honest"] or ("halves" if given["metric_command"] is None else "holdout")
    names = [str(parameter.name) for parameter in command.params if parameter.name in given]
    return {name: given[name] for name in names} | {"honest": honest, "folder": folder}


def recorded(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings as `--config` takes them; files with their whole path, for use from any folder."""

    def plain(value: Any) -> Any:
        if isinstance(value, Path):
            return str(value.absolute())
        return list(value) if isinstance(value, tuple) else value

    kept = {name: plain(value) for name, value in settings.items() if name not in NOT_RECORDED}
    return {name.replace("_", "-"): value for name, value in kept.items() if value not in (None, [])}


def run_parameters() -> list[click.Parameter]:
    """Those of `moew fit` alone."""
    return [
        _option(
            "out",
            type=click.Path(path_type=Path),
            default=Path("run"),
            show_default=True,
            metavar="FOLDER",
            help="The run folder.",
        ),
        _option("force", is_flag=True, help="Replace a run that is there."),
        _option("resume", is_flag=True, help="Go on with an interrupted run."),
        json_option(),
    ]


def json_option() -> click.Option:
    """`--json`."""
    return _option("json", is_flag=True, help="One JSON object instead of tables.")


def with_parameters(parameters: list[click.Parameter]) -> Callable[[Callable[..., Any]], SectionCommand]:
    """A decorator: the function as a command with these parameters; its docstring is the help."""

    def decorate(function: Callable[..., Any]) -> SectionCommand:
        return SectionCommand(
            function.__name__,
            callback=function,
            params=parameters,
            help=function.__doc__,
            no_args_is_help=True,
        )

    return decorate


def _option(name: str, **settings: Any) -> SectionOption:
    return SectionOption([f"--{name}"], **settings)


def _flag(names: str, words: str, hidden: bool = False) -> SectionOption:
    return SectionOption([names], default=False, help=words, hidden=hidden)


def _section(title: str, *parameters: click.Parameter) -> list[click.Parameter]:
    for parameter in parameters:
        parameter.section = title  # type: ignore[attr-defined]
    return list(parameters)
