"""From the options of `moew fit` and `moew compare` to rows and a search, before anything is trained."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moew.cli import _parts
from moew.cli._command_metric import ROW_ID
from moew.cli._ending import tell
from moew.cli._metric import metric_from, positive_label
from moew.cli._rehearsal import rehearse
from moew.cli._users_code import users_code
from moew.cli.runs._schema import Schema, TableRows, labels_of, learn_schema, named_columns
from moew.cli.runs._tables import read_table
from moew.exceptions import InvalidInputError
from moew.types import Task


@dataclass(frozen=True)
class Prepared:
    """What a command trains on and with; `test` and `validation` are None without their files."""

    settings: dict[str, Any]
    schema: Schema
    task: Task
    training: TableRows
    validation: TableRows | None
    test: TableRows | None
    search: Any

    @property
    def rows(self) -> dict[str, Any]:
        """The arguments of `ExampleWeightSearch.fit`."""
        given = self._of(self.training, "")
        return given | (self._of(self.validation, "_val") if self.validation is not None else {})

    @property
    def all_rows(self) -> dict[str, Any]:
        """Those and the test rows, the arguments of `moew.compare` besides the search."""
        return self.rows | (self._of(self.test, "_test") if self.test is not None else {})

    def _of(self, rows: TableRows, suffix: str) -> dict[str, Any]:
        columns = dict(rows.columns)
        if self.settings["metric_command"] is not None:
            columns[ROW_ID] = rows.ids
        return {
            f"X{suffix}": rows.X,
            f"y{suffix}": rows.y,
            f"sample_weight{suffix}": rows.sample_weight,
            f"metadata{suffix}": columns or None,
        }


@users_code()
def prepare(settings: dict[str, Any]) -> Prepared:
    """Read the files and make the search; raises on anything that cannot work."""
    for name in ("train", "label"):
        if settings[name] is None:
            how = (
                "the training file: moew fit train.csv …" if name == "train" else "the labels: --label COLUMN"
            )
            raise InvalidInputError(f"name {how}.")
    validation = _parts.validation_from(settings)
    if settings["compare"] and settings["test"] is None:
        raise InvalidInputError(
            "--compare needs rows that no method has chosen on: give them with --test FILE."
        )
    path, label = settings["train"], settings["label"]
    frame = read_table(path, label=label, ids=settings["id"])
    y = labels_of(frame, label, path)
    columns = _parts.metric_columns_from(list(settings["metric_column"]))
    metric = metric_from(settings, list(columns), positive_label(settings["positive"], y))
    rule = _parts.decision_from(settings["decision"])
    columns |= _found_columns(metric, rule, columns, settings["validation"] or path)
    features = named_columns(settings["features"], frame)
    if settings["id"] in (*(features or ()), *columns.values()):
        frame = read_table(path, label=label)  # the id is something else, too: it stays what it is there
    schema = learn_schema(
        frame,
        path,
        label=label,
        features=features,
        drop=named_columns(settings["drop"], frame),
        id_column=settings["id"],
        sample_weight=settings["sample_weight"],
        columns=columns,
    )
    # Where validation rows are given, the metric does not look at the training rows.
    training = schema.rows(frame, path, columns=None if settings["validation"] is None else ())
    model, task = _parts.model_from(settings, training.X, training.y)
    search = _search(settings, model, metric, rule, validation, schema)
    prepared = Prepared(
        settings,
        schema,
        task,
        training,
        _other(schema, settings["validation"], "validation"),
        _other(schema, settings["test"], "test"),
        search,
    )
    rehearse(prepared)
    return prepared


def _other(schema: Schema, path: Path | None, what: str) -> TableRows | None:
    if path is None:
        return None
    rows = schema.read(path)
    if schema.sample_weight is not None and rows.sample_weight is None:
        tell(f"note: the {what} file has no column {schema.sample_weight!r}, so its rows count alike")
    if unknown := schema.unknown(rows.frame):
        shown = f"{unknown[:5]}{' …' if len(unknown) > 5 else ''}"
        tell(f"note: columns of the {what} file that are not used: {shown}")
    return rows


def _found_columns(metric: Any, rule: Any, given: dict[str, str], path: Path) -> dict[str, str]:
    """Columns that the metric or the decision needs and that the file has under the same name."""
    from moew.metrics import resolve_metric
    from moew.search._evaluate import column_names

    named = column_names(resolve_metric(metric), rule)
    needed = [name for name in named if name not in (ROW_ID, *given)]
    if not needed:
        return {}
    there = [str(name) for name in read_table(path).columns]
    if missing := [name for name in needed if name not in there]:
        raise InvalidInputError(
            f"the metric or the decision needs {', '.join(map(repr, missing))} for each row: say which "
            f"column it is, with --metric-column {missing[0]}=COLUMN; the file has {there[:12]}."
        )
    return {name: name for name in needed}


def _search(
    settings: dict[str, Any], model: Any, metric: Any, rule: Any, validation: Any, schema: Schema
) -> Any:
    from moew.search._estimator import ExampleWeightSearch

    return ExampleWeightSearch(
        model,
        metric=metric,
        decision=rule,
        embedding=_parts.embedding_from(settings["embedding"], schema.features, settings["folder"]),
        base_weights=settings["base_weights"],
        sampler=settings["sampler"],
        radius=settings["radius"],
        n_batches=settings["batches"],
        batch_size=settings["batch_size"],
        alpha_zero_repeats=settings["alpha_zero_repeats"],
        validation=validation,
        honest=_parts.honest_from(settings["honest"]),
        sample_weight_name=_parts.weight_name_of(model),
        n_jobs=settings["jobs"],
        random_state=settings["seed"],
    )
