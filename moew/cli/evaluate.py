"""`moew evaluate`: the models of a run on labelled rows, by the run's metric."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moew._util.numbers import count, number, signed
from moew.cli import _shown
from moew.cli._ending import one_line_errors, tell
from moew.cli._users_code import users_code
from moew.cli.predict import (
    _FILE,
    _FOLDER,
    _TRUST,
    refuse_to_overwrite,
    separator_option,
    unseen_categories,
)
from moew.exceptions import InvalidInputError, MoewError

if TYPE_CHECKING:
    from moew.cli.runs import FinishedRun
    from moew.cli.runs._schema import TableRows
    from moew.data import LabelledRows
    from moew.inspection._tested import ModelScore
    from moew.search._evaluate import Evaluator
    from moew.types import Task


def command() -> click.Command:
    @click.command()
    @click.argument("run", type=_FOLDER)
    @click.argument("table", type=_FILE)
    @click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="The scores, as a table.")
    @separator_option
    @click.option("--trust", is_flag=True, help=f"{_TRUST[:-1]}; and use a metric of your own.")
    @click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
    def evaluate(
        run: Path, table: Path, out: Path | None, separator: str | None, trust: bool, as_json: bool
    ) -> None:
        """Judge the models of a run on labelled rows, by the metric of the run.

        \b
        moew evaluate run/ labelled.csv

        What was handed out stands beside the unweighted model and the simple ways
        that the folder holds, with 95 % intervals. Take rows that no choice was
        made on: neither the training file nor the validation file.
        """
        with one_line_errors():
            from moew.cli.runs import load_run
            from moew.cli.runs._separators import separator_from

            refuse_to_overwrite(table, out)
            found = load_run(run)
            chosen, files = _result_of(run)
            _say_if_it_was_used(files, table)
            rows = found.schema.read(table, ids=False, together=True, separator=separator_from(separator))
            unseen = unseen_categories(found.schema, rows, table)
            with users_code():
                record = _evaluated(found, chosen, rows, trust=trust)
            record |= {"file": str(table), "unseen_categories": unseen}
            if out is not None:
                _write(record, out)
            if as_json:
                _shown.show_json(record if out is None else {**record, "out": str(out)})
            else:
                _show(record, out)

    return evaluate


def _result_of(run: Path) -> tuple[str, dict[str, str]]:
    """The way that was handed out, and digests of the files that the run was made with."""
    from moew.cli.runs._folder import RESULT, RunFolder
    from moew.saving import reading

    result = RunFolder(run).read_json(RESULT)
    with reading(run / RESULT):
        return str(result["chosen"]), {name: str(of["sha256"]) for name, of in result["data"].items()}


def _say_if_it_was_used(files: dict[str, str], table: Path) -> None:
    """Warn if the file is one that the run was made with."""
    from moew.cli.runs._folder import file_digest

    digest = file_digest(table)
    for name, purpose in (("train", "the models were trained on"), ("validation", "the choice was made on")):
        if files.get(name) == digest:
            tell(f"warning: {table} holds the rows that {purpose}, so these scores are too good.")


def _evaluated(run: FinishedRun, chosen: str, rows: TableRows, *, trust: bool) -> dict[str, Any]:
    from moew.data._groups import count_groups
    from moew.inspection import score_models
    from moew.search._ways import UNWEIGHTED

    evaluator, judged = _judge(run, rows, trust)
    models = run.models_by_way(chosen, trust=trust)
    scores = score_models(models, UNWEIGHTED, evaluator, judged)
    if scores[chosen].reason:
        raise MoewError(f"the metric {evaluator.metric.name!r} fails on these rows: {scores[chosen].reason}")
    return {
        "metric": evaluator.metric.name,
        "greater_is_better": evaluator.metric.greater_is_better,
        "rows": len(judged),
        "groups": None if judged.groups is None else count_groups(judged.groups),
        "models": [_record(way, way == chosen, score) for way, score in scores.items()],
    }


def _judge(run: FinishedRun, rows: TableRows, trust: bool) -> tuple[Evaluator, LabelledRows]:
    """The run's metric, and the rows as it takes them."""
    from moew.cli._metric import metric_from, positive_label
    from moew.cli._objects import is_reference
    from moew.cli._prepare import user_rows
    from moew.cli._run_settings import settings_of_run
    from moew.cli.runs._folder import SETTINGS
    from moew.data import labelled_rows
    from moew.search._evaluate import Evaluator

    settings = settings_of_run(run.folder / SETTINGS, needs_files=False)
    own = settings["metric_command"] or settings["metric"]
    if not trust and (settings["metric_command"] is not None or is_reference(own or "")):
        raise InvalidInputError(
            f"the metric of {run.folder} is code, {own!r}: it is run only with --trust. Look at the folder's "
            "settings.toml if the folder is not yours."
        )
    task: Task = "regression" if run.classes is None else "classification"
    positive = None if run.classes is None else positive_label(settings["positive"], run.classes)
    metric = metric_from(settings, list(run.schema.columns), positive)
    evaluator = Evaluator(metric, None, run.classes)
    rules = [rule for rule in (run.decision, run.unweighted_decision, run.tuned_decision) if rule is not None]
    names = [*evaluator.column_names, *(name for rule in rules for name in rule.columns)]
    judged = labelled_rows(user_rows(rows, settings), task, "labelled", list(dict.fromkeys(names)))
    evaluator.check_columns(judged, "metadata")
    return evaluator, judged


def _record(way: str, handed_out: bool, score: ModelScore) -> dict[str, Any]:
    return {
        "way": way,
        "handed_out": handed_out,
        "value": _known(score.value),
        "interval": [_known(end) for end in score.interval],
        "gain": _known(score.gain),
        "gain_interval": [_known(end) for end in score.gain_interval],
        "reason": score.reason or None,
    }


def _known(value: float) -> float | None:
    """A number for JSON and tables: None for NaN, and no negative zero."""
    return None if math.isnan(value) else value + 0.0


def _write(record: dict[str, Any], out: Path) -> None:
    from moew.cli.runs._tables import write_table

    models = record["models"]
    columns: dict[str, Any] = {name: [one[name] for one in models] for name in ("way", "handed_out", "value")}
    for name in ("interval", "gain_interval"):
        if name == "gain_interval":
            columns["gain"] = [one["gain"] for one in models]
        for place, end in enumerate(("low", "high")):
            columns[f"{name.removesuffix('interval')}{end}"] = [one[name][place] for one in models]
    write_table(columns, out)


def _show(record: dict[str, Any], out: Path | None) -> None:
    better = "higher" if record["greater_is_better"] else "lower"
    n, groups = count(record["rows"], "row"), record["groups"]
    whole = "" if groups is None else f", which are {count(groups, 'group')} that stay whole in the intervals"
    _shown.show(f"{record['metric']} on {n} of {record['file']}{whole} ({better} is better)\n")
    models = record["models"]
    rows = [
        [
            one["way"] + (" (handed out)" if one["handed_out"] else ""),
            number(one["value"]),
            _interval(one["interval"], number),
            signed(one["gain"]),
            _interval(one["gain_interval"], signed),
        ]
        for one in models
    ]
    _shown.show_table(("way", "value", "95 % interval", "gain", "95 % interval"), rows)
    _shown.show(f"\n{_verdict(models)}\nGain: over the unweighted model on the same rows; above 0 is better.")
    for one in models:
        if one["reason"]:
            _shown.show(f"{one['way']}: {one['reason']}")
    if out is not None:
        _shown.show(f"The scores are in {out}")


def _interval(ends: list[float | None], write: Any) -> str:
    low, high = (write(end, 3) for end in ends)
    return low if low == high else f"{low} to {high}"


def _verdict(models: list[dict[str, Any]]) -> str:
    """What the rows say about what was handed out, in a sentence."""
    from moew.search._ways import UNWEIGHTED

    (handed,) = (one for one in models if one["handed_out"])
    low, high = handed["gain_interval"]
    if handed["way"] == UNWEIGHTED:
        return "The unweighted model itself was handed out."
    if low is None:
        return "How sure the gain is cannot be told: there is no unweighted model, or too few rows."
    if low == high == 0:
        return f"On these rows what was handed out ({handed['way']}) does as well as the unweighted model."
    if low > 0:
        return f"What was handed out ({handed['way']}) is better than the unweighted model, beyond chance."
    if high < 0:
        return f"What was handed out ({handed['way']}) is worse than the unweighted model, beyond chance."
    return (
        f"These rows cannot tell what was handed out ({handed['way']}) from the unweighted model: the "
        "difference may be chance."
    )
