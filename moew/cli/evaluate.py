"""`moew evaluate`: the models of a run on labelled rows, by the run's metric."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moew._util.numbers import count, number, signed
from moew.cli import _shown
from moew.cli._ending import tell
from moew.cli._metric import metric_from, positive_label
from moew.cli._options import settings_of_run
from moew.cli._users_code import is_reference, users_code
from moew.cli.predict import TRUST, of_run_and_table, refuse_to_overwrite, unseen_categories
from moew.exceptions import InvalidInputError, MoewError

if TYPE_CHECKING:
    from moew.cli.runs import FinishedRun
    from moew.cli.runs._schema import TableRows
    from moew.data import LabelledRows
    from moew.inspection import ModelScore
    from moew.search import Evaluator


@of_run_and_table("The scores, as a table.", f"{TRUST[:-1]}; and use a metric of your own.")
def evaluate(
    run: Path, table: Path, out: Path | None, separator: str | None, trust: bool, as_json: bool
) -> None:
    """Evaluate the models of a run on labelled rows, by the metric of the run.

    \b
    moew evaluate run/ labelled.csv

    The selected model stands beside the unweighted model and the simple strategies
    that the folder holds, with 95 % intervals. Take rows that no choice was
    made on: neither the training file nor the validation file.
    """
    from moew.cli.runs import load_run
    from moew.cli.runs._tables import separator_from

    refuse_to_overwrite(table, out)
    found = load_run(run, trust)
    _say_if_it_was_used(run, table)
    rows = found.rows_to_evaluate(table, separator_from(separator))
    unseen = unseen_categories(found, rows, table)
    with users_code():
        record = _evaluated(found, rows, trust)
    record |= {"file": str(table), "unseen_categories": unseen}
    if out is not None:
        _write(record, out)
    if as_json:
        _shown.show_json(record if out is None else {**record, "out": str(out)})
    else:
        _show(record, out)


def _say_if_it_was_used(run: Path, table: Path) -> None:
    """Warn if the file is one that the run was made with."""
    from moew.cli.runs._folder import RESULT, RunFolder, file_digest
    from moew.saving import reading

    data = RunFolder(run).read_json(RESULT)
    with reading(run / RESULT):
        files = {name: str(of["sha256"]) for name, of in data["data"].items()}
    digest = file_digest(table)
    for name, purpose in (("train", "the models were trained on"), ("validation", "the choice was made on")):
        if files.get(name) == digest:
            tell(f"warning: {table} holds the rows that {purpose}, so these scores are too good.")


def _evaluated(run: FinishedRun, rows: TableRows, trust: bool) -> dict[str, Any]:
    from moew.data import count_groups
    from moew.inspection import score_models
    from moew.search import UNWEIGHTED

    evaluator, evaluated = _evaluated_rows(run, rows, trust)
    chosen = run.fitted.result.selected
    scores = score_models(run.models_by_strategy(), UNWEIGHTED, evaluator, evaluated)
    if scores[chosen].reason:
        raise MoewError(f"the metric {evaluator.metric.name!r} fails on these rows: {scores[chosen].reason}")
    return {
        "metric": evaluator.metric.name,
        "greater_is_better": evaluator.metric.greater_is_better,
        "rows": len(evaluated),
        "groups": None if evaluated.groups is None else count_groups(evaluated.groups),
        "models": [_record(strategy, strategy == chosen, score) for strategy, score in scores.items()],
    }


def _evaluated_rows(run: FinishedRun, rows: TableRows, trust: bool) -> tuple[Evaluator, LabelledRows]:
    """The run's metric, and the rows as it takes them."""
    from moew.cli._prepare import user_rows
    from moew.cli.runs._folder import SETTINGS
    from moew.data import labelled_rows
    from moew.search import Evaluator

    settings = settings_of_run(run.folder / SETTINGS)
    own = settings["metric_command"] or settings["metric"]
    if not trust and (settings["metric_command"] is not None or is_reference(own or "")):
        raise InvalidInputError(
            f"the metric of {run.folder} is code, {own!r}: it is run only with --trust. Look at the folder's "
            "settings.toml if the folder is not yours."
        )
    fitted, classes = run.fitted, run.fitted.winner.classes
    positive = None if classes is None else positive_label(settings["positive"], classes)
    metric = metric_from(settings, list(run.schema.columns), positive)
    evaluator = Evaluator(metric, None, classes)
    rules = [model.rule for model in run.models_by_strategy().values() if model.rule is not None]
    names = [*evaluator.column_names, *(name for rule in rules for name in rule.columns)]
    evaluated = labelled_rows(user_rows(rows, settings), fitted.task, "labelled", list(dict.fromkeys(names)))
    evaluator.check_columns(evaluated, "columns")
    return evaluator, evaluator.rows_by_weight(evaluated)


def _record(strategy: str, selected: bool, score: ModelScore) -> dict[str, Any]:
    return {
        "strategy": strategy,
        "selected": selected,
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

    names = ("strategy", "selected", "value", "low", "high", "gain", "gain_low", "gain_high")
    rows = [
        (*(one[name] for name in names[:3]), *one["interval"], one["gain"], *one["gain_interval"])
        for one in record["models"]
    ]
    write_table({name: list(of) for name, of in zip(names, zip(*rows, strict=True), strict=True)}, out)


def _show(record: dict[str, Any], out: Path | None) -> None:
    better = "higher" if record["greater_is_better"] else "lower"
    n, groups = count(record["rows"], "row"), record["groups"]
    whole = "" if groups is None else f", which are {count(groups, 'group')} that stay whole in the intervals"
    _shown.show(f"{record['metric']} on {n} of {record['file']}{whole} ({better} is better)\n")
    models = record["models"]
    rows = [
        [
            one["strategy"] + (" (selected)" if one["selected"] else ""),
            number(one["value"]),
            _interval(one["interval"], number),
            signed(one["gain"]),
            _interval(one["gain_interval"], signed),
        ]
        for one in models
    ]
    _shown.show_table(("strategy", "value", "95 % interval", "gain", "95 % interval"), rows)
    _shown.show(f"\n{_verdict(models)}\nGain: over the unweighted model on the same rows; above 0 is better.")
    for one in models:
        if one["reason"]:
            _shown.show(f"{one['strategy']}: {one['reason']}")
    if out is not None:
        _shown.show(f"The scores are in {out}")


def _interval(ends: list[float | None], write: Any) -> str:
    low, high = (write(end, 3) for end in ends)
    return low if low == high else f"{low} to {high}"


def _verdict(models: list[dict[str, Any]]) -> str:
    """What the rows say about the selected model, in a sentence."""
    from moew.search import UNWEIGHTED

    (selected,) = (one for one in models if one["selected"])
    low, high = selected["gain_interval"]
    if selected["strategy"] == UNWEIGHTED:
        return "The unweighted model itself was selected."
    if low is None:
        return "How sure the gain is cannot be told: there is no unweighted model, or too few rows."
    name = f"selected model ({selected['strategy']})"
    if low == high == 0:
        return f"On these rows the {name} does as well as the unweighted model."
    if low > 0 or high < 0:
        return f"The {name} is {'better' if low > 0 else 'worse'} than the unweighted model, beyond chance."
    return f"These rows cannot tell the {name} from the unweighted model: the difference may be chance."
