"""The options that `moew fit` and `moew compare` share, in sections, on the command line and in TOML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from moew.cli._config import config_option
from moew.cli._sections import Folds, Jobs, NameOf, NumberOr, SectionOption, flag, option, section
from moew.cli.runs._models import MODELS

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_COUNT = click.IntRange(min=1)
_PERCENT = click.FloatRange(min=0, max=100)
_SHARE = click.FloatRange(min=0, max=1, min_open=True, max_open=True)
# Options that do not change the result are not recorded.
NOT_RECORDED = ("config", "out", "force", "resume", "join", "json")


def training_parameters(
    output: Sequence[click.Parameter], *, offers_comparison: bool
) -> list[click.Parameter]:
    """The argument TRAIN and all options of a search; `output` are those of one command."""
    models = ", ".join(MODELS)
    train = click.Argument(["train"], type=_FILE, required=False)
    return [
        train,
        *section(
            "Data (CSV, TSV, Parquet or Feather, by the file's ending)",
            option("label", metavar="COLUMN", help="The column of labels."),
            option("validation", type=_FILE, help="Rows from the distribution that matters."),
            option(
                "folds",
                type=Folds(),
                metavar="HOW",
                help="Training rows that are judged, too, out of fold: auto, none, or in so many folds.  "
                "[default: auto]",
            ),
            option(
                "validation-share",
                type=_SHARE,
                metavar="SHARE",
                help="Hold out so many rows instead of folds, where there is no --validation.",
            ),
            option("test", type=_FILE, help="Rows that judge the models in the end; no choice sees them."),
            option(
                "features",
                multiple=True,
                metavar="A,B,…",
                help="Default: all columns that are for nothing else.",
            ),
            option("drop", multiple=True, metavar="A,B,…", help="Columns that are no features."),
            option("id", metavar="COLUMN", help="Names rows; default: their number, from 0."),
            option("sample-weight", metavar="COLUMN", help="Weights that multiply the learned ones."),
            option(
                "together",
                metavar="COLUMN",
                help="Names queries, patients, …, whose rows are never cut apart.",
            ),
            option(
                "separator",
                metavar="CHARACTER",
                help="Between the columns of text files: , ; | or tab; default: found by looking.",
            ),
            option(
                "task",
                type=click.Choice(["auto", "classification", "regression"]),
                default="auto",
                help="Default: as the labels look.",
            ),
        ),
        *section(
            "Metric and decision",
            option("metric", metavar="NAME", help="See `moew metrics`; or module:function."),
            option(
                "also",
                multiple=True,
                metavar="NAME",
                help="A metric that is looked at, too, for every model that is tried; as --metric.",
            ),
            option(
                "constraint",
                multiple=True,
                metavar="BOUND",
                help='A bound to keep, as "fpr_gap <= 0.05", of --metric or one of --also.',
            ),
            option(
                "metric-command",
                metavar="WORDS",
                help='A program: "./score {predictions}". Its last line is the number.',
            ),
            option(
                "metric-name",
                metavar="WORDS",
                help='What to call it in results and the report: "money lost per day".',
            ),
            option(
                "metric-column",
                multiple=True,
                metavar="NAME=COLUMN",
                help="What the metric calls a column of the file.",
            ),
            option(
                "metric-timeout",
                type=click.FloatRange(min=0, min_open=True),
                default=60.0,
                metavar="SECONDS",
                help="For the program.  [default: 60]",
            ),
            option(
                "response",
                type=click.Choice(["decision", "score", "proba"]),
                help="What your function or program looks at; default: decision.",
            ),
            SectionOption(
                ["--lower-is-better/--higher-is-better"],
                default=None,
                help="Of your function or program; default: higher.",
            ),
            option("positive", metavar="LABEL", help="Default: the second of two labels."),
            option(
                "decision",
                metavar="RULE",
                words=lambda: f"{', '.join(_decision_rules())}; with @train or @validation, fitted there.",
            ),
            option(
                "calibrate",
                type=click.Choice(["sigmoid", "isotonic"]),
                help="Make the probabilities those of the judged rows; decisions stay.",
            ),
        ),
        *section(
            "Model",
            option(
                "model",
                default="hist_gradient_boosting",
                metavar="NAME",
                help=f"{models}; or module:object.  [default: hist_gradient_boosting]",
            ),
            option(
                "model-option", multiple=True, metavar="NAME=VALUE", help="A setting, as n_estimators=50."
            ),
            option(
                "eval-share",
                type=_SHARE,
                metavar="SHARE",
                help="Of the training rows, for a model that stops early, as with early_stopping_rounds=20.",
            ),
        ),
        *section(
            "Search",
            SectionOption(
                ["--as-in-the-paper"],
                is_flag=True,
                is_eager=True,
                callback=_paper_defaults,
                help="The settings of the paper's experiments in place of the defaults below; what you give "
                "yourself wins. Needs --validation.",
            ),
            option(
                "embedding",
                default="directions",
                metavar="NAME",
                show_default=True,
                words=lambda: f"{', '.join(_embeddings())}, columns=A,B or module:function.",
            ),
            option(
                "base-weights",
                type=NameOf(_base_weights),
                default="label_shift",
                metavar="NAME",
                show_default=True,
                words=lambda: f"Weights at alpha = 0: {', '.join(_base_weights())}.",
            ),
            option(
                "sampler",
                type=NameOf(_samplers),
                default="gp_bucb",
                metavar="NAME",
                show_default=True,
                words=lambda: f"Where alphas come from: {', '.join(_samplers())}.",
            ),
            option(
                "radius",
                type=click.FloatRange(min=0, min_open=True),
                metavar="R",
                help="Of the ball that alpha lives in.",
            ),
            option("batches", type=_COUNT, default=10, metavar="B", show_default=True, help="Of candidates."),
            option(
                "batch-size",
                type=_COUNT,
                default=10,
                metavar="K",
                show_default=True,
                help="B times K candidates are trained.",
            ),
            option(
                "candidates",
                type=_COUNT,
                metavar="N",
                help="So many candidates in place of --batches; the last batch may be smaller.",
            ),
            option(
                "alpha-zero-repeats",
                type=_COUNT,
                default=1,
                metavar="N",
                show_default=True,
                help="Models at alpha = 0; two or more tell the metric's noise.",
            ),
            option(
                "stop-when",
                type=click.FloatRange(min=0, min_open=True),
                metavar="GAIN",
                help="Stop when more candidates promise a smaller gain, in the metric's units.",
            ),
            option(
                "timeout",
                type=click.FloatRange(min=0, min_open=True),
                metavar="SECONDS",
                hidden=not offers_comparison,
                help="Begin no candidate after so many seconds; the best so far wins.",
            ),
            option(
                "p",
                type=_PERCENT,
                metavar="PERCENT",
                help="Of gp_bucb: how far candidates lie from those that are known.  [default: 68.3]",
            ),
            option(
                "q",
                type=_PERCENT,
                metavar="PERCENT",
                help="Of gp_bucb: how far the candidates of a batch lie apart.  [default: 68.3]",
            ),
            option(
                "kernel-width",
                type=NumberOr("fit", "domain", least=1e-9),
                metavar="HOW",
                help="Of gp_bucb: how far a score tells about others: fit, domain (the radius) or a number.  "
                "[default: fit]",
            ),
            option(
                "noise",
                type=NumberOr("fit", "repeats", least=0),
                metavar="HOW",
                help="Of gp_bucb: the metric's variance between trainings: fit, repeats (from "
                "--alpha-zero-repeats) or a number.  [default: fit]",
            ),
            option(
                "dims",
                type=_COUNT,
                metavar="D",
                help="Of the autoencoder's embedding.  [default: as many as columns, at most 8]",
            ),
            option(
                "trade-off",
                type=click.FloatRange(min=0, max=1),
                metavar="LAMBDA",
                help="The features' share in the autoencoder's loss; the rest is the label's.  "
                "[default: 0.5]",
            ),
            option(
                "final",
                type=NameOf(_finals),
                default="ensemble",
                metavar="NAME",
                show_default=True,
                words=lambda: f"What becomes of example weights: {', '.join(_finals())}.",
            ),
            SectionOption(
                ["--guard/--no-guard"],
                default=True,
                help="A simpler way, such as tuned decisions or class weights, unless example weights are "
                "better beyond chance; without the guard, example weights.  [default: guard]",
            ),
            option(
                "honest",
                default="halves",
                metavar="HOW",
                show_default=True,
                help="halves, holdout, none or a share to hold out.",
            ),
            option(
                "jobs",
                type=Jobs(),
                default="auto",
                metavar="N",
                help="Models trained at a time, -1 for all cores.  [default: all cores, once that pays]",
            ),
            option(
                "candidate-timeout",
                type=click.FloatRange(min=0, min_open=True),
                metavar="SECONDS",
                help="A model whose training takes longer is a failed candidate.",
            ),
            option(
                "most-failures",
                type=click.FloatRange(min=0, max=1),
                default=0.9,
                metavar="SHARE",
                show_default=True,
                help="Of candidates; with more, the search ends and tells the reasons.",
            ),
            option(
                "seed",
                type=click.IntRange(min=0),
                default=0,
                metavar="N",
                show_default=True,
                help="Of all chance.",
            ),
        ),
        *section(
            "Comparison at equal budget",
            flag(
                "--compare/--no-compare",
                "All other ways, too, each with the whole budget; needs --test.",
                hidden=not offers_comparison,
            ),
            option(
                "repeats",
                type=click.IntRange(min=2),
                default=5,
                metavar="N",
                show_default=True,
                help="Of every method, for margins.",
            ),
        ),
        *section(
            "Output",
            *output,
            option(
                "storage",
                metavar="URL",
                hidden=not offers_comparison,
                help="A database for candidates and their scores, as postgresql+psycopg://user@host/name; "
                "default: a file in the run folder.",
            ),
            option(
                "study-name",
                default="moew",
                metavar="NAME",
                show_default=True,
                hidden=not offers_comparison,
                help="Of this search in the database.",
            ),
            config_option(SectionOption),
            option(
                "folder",
                type=click.Path(exists=True, file_okay=False, path_type=Path),
                metavar="FOLDER",
                help="Of your modules and programs; default: this one, or that of the --config file.",
            ),
        ),
    ]


def _paper_defaults(ctx: click.Context, _: click.Parameter, is_given: bool) -> bool:
    """Put the paper's settings in place of the defaults; a settings file and the command line win."""
    if is_given:
        from moew.embedding import EMBEDDINGS
        from moew.search._paper import paper_settings

        paper = paper_settings()
        kind = type(paper["embedding"])
        same = ("base_weights", "radius", "batch_size", "alpha_zero_repeats", "final", "guard")
        defaults = {
            "embedding": next(name for name, one in EMBEDDINGS.items() if one is kind),
            "folds": "none",  # the validation rows alone
            "batches": paper["n_batches"],
            **{name: paper[name] for name in same},
        }
        ctx.default_map = {**defaults, **(ctx.default_map or {})}
    return is_given


def _decision_rules() -> list[str]:
    from moew.decision import rule_examples

    return rule_examples()


def _embeddings() -> list[str]:
    from moew.embedding import EMBEDDINGS

    return list(EMBEDDINGS)


def _base_weights() -> list[str]:
    from moew.weighting import BASE_WEIGHTS

    return list(BASE_WEIGHTS)


def _samplers() -> list[str]:
    from moew.samplers import SAMPLERS

    return list(SAMPLERS)


def _finals() -> list[str]:
    from moew.search._settings import FINAL

    return list(FINAL)


def completed(given: dict[str, Any], command: click.Command) -> dict[str, Any]:
    """The settings in the order of the help, with the defaults that depend on something else."""
    folder = (given["folder"] or Path()).absolute()
    names = [str(parameter.name) for parameter in command.params if parameter.name in given]
    return {name: given[name] for name in names} | {"folder": folder}


def recorded(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings as `--config` takes them; files with their whole path, for use from any folder."""

    def plain(value: Any) -> Any:
        if isinstance(value, Path):
            return str(value.absolute())
        return list(value) if isinstance(value, tuple) else value

    kept = {name: plain(value) for name, value in settings.items() if name not in NOT_RECORDED}
    return {name.replace("_", "-"): value for name, value in kept.items() if value not in (None, [])}


def run_parameters() -> list[click.Parameter]:
    """The options that only `moew fit` has."""
    return [
        option(
            "out",
            type=click.Path(path_type=Path),
            default=Path("run"),
            show_default=True,
            metavar="FOLDER",
            help="The run folder.",
        ),
        option("force", is_flag=True, help="Replace a run that is there."),
        option("resume", is_flag=True, help="Go on with an interrupted run."),
        option("join", is_flag=True, help="Let other processes train candidates, too: `moew worker FOLDER`."),
        json_option(),
    ]


def json_option() -> click.Option:
    """The option `--json`."""
    return option("json", is_flag=True, help="One JSON object instead of tables.")
