"""From the options of `moew fit` and `moew compare` to a prepared search, before anything is trained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from moew._util.progress import stage
from moew.cli import _parts
from moew.cli._command_metric import ROW_ID
from moew.cli._ending import tell
from moew.cli._metric import metrics_from, positive_label
from moew.cli._users_code import users_code
from moew.cli.runs._schema import Schema, TableRows, labels_of, learn_schema, named_columns
from moew.cli.runs._separators import separator_from
from moew.cli.runs._tables import ids_as_written, read_header, read_table
from moew.exceptions import InvalidInputError, MoewError, UndefinedMetricError

if TYPE_CHECKING:
    from moew.data import UserRows
    from moew.search import Prepared, SearchSettings


@dataclass(frozen=True)
class Job:
    """What a command trains with and on; `validation` and `test` are None without their files."""

    settings: dict[str, Any]  # the options
    schema: Schema
    training: TableRows
    validation: TableRows | None
    test: TableRows | None
    search: Prepared

    def rows(self, part: TableRows | None) -> UserRows:
        """One of the three parts as the library takes rows."""
        return user_rows(part, self.settings)


@users_code()
def prepare_job(settings: dict[str, Any], storage: Path | None = None, *, join: bool = False) -> Job:
    """Read the files and prepare the search, with its study in the database of the settings or in the file
    `storage`; raise on what cannot work."""
    for name in ("train", "label"):
        if settings[name] is None:
            how = (
                "the training file: moew fit train.csv …" if name == "train" else "the labels: --label COLUMN"
            )
            raise InvalidInputError(f"name {how}.", argument=name)
    validation_by = _parts.validation_from(settings)
    if settings["compare"] and settings["test"] is None:
        raise InvalidInputError(
            "--compare needs rows that no method has chosen on: give them with --test FILE.",
            argument="X_test",
        )
    if settings["compare"] and settings["timeout"] is not None:
        raise InvalidInputError(
            "--compare trains equally many models with every method, however long it takes: leave out "
            "--timeout.",
            argument="timeout",
        )
    path, label = settings["train"], settings["label"]
    separator = separator_from(settings["separator"])
    with stage(f"reading {path.name}"):
        frame = read_table(path, label=label, separator=separator)
    y = labels_of(frame, label, path)
    positive = positive_label(settings["positive"], y)
    columns = _parts.metric_columns_from(list(settings["metric_column"]))
    metric = metrics_from(settings, list(columns), positive)
    rule = _parts.decision_from(settings["decision"])
    columns |= _found_columns(metric, rule, columns, settings["validation"], frame, separator)
    features = named_columns(settings["features"], frame)
    if settings["id"] not in (*features, *columns.values()):
        frame = ids_as_written(frame, path, settings["id"], separator)
    schema = learn_schema(
        frame,
        path,
        label=label,
        features=features,
        drop=named_columns(settings["drop"], frame),
        id_column=settings["id"],
        sample_weight=settings["sample_weight"],
        columns=columns,
        together=settings["together"],
        separator=separator,
    )
    # Where validation rows are given, training rows without the metric's columns are only trained on.
    training = schema.rows(frame, path, columns=None if settings["validation"] is None else (), together=True)
    model = _parts.model_from(settings, training.X, training.y)
    search = _search_settings(settings, model, metric, rule, validation_by, schema, storage, join)
    validation = _other(schema, settings["validation"], "validation")
    test = _other(schema, settings["test"], "test")
    return Job(
        settings,
        schema,
        training,
        validation,
        test,
        _prepared(settings, search, training, validation, test, positive),
    )


def _prepared(
    settings: dict[str, Any],
    search: SearchSettings,
    training: TableRows,
    validation: TableRows | None,
    test: TableRows | None,
    positive: Any,
) -> Prepared:
    from moew.search import prepare

    with _as_wrong_usage(settings, training):
        prepared = prepare(
            search,
            user_rows(training, settings),
            user_rows(validation, settings),
            None if test is None else user_rows(test, settings),
        )
    evaluator = prepared.evaluator
    if positive is not None and evaluator.rule is not None and evaluator.pos_label != positive:
        raise InvalidInputError(
            f"with a scorer of scikit-learn, --decision decides for the second label "
            f"{str(evaluator.pos_label)!r}, not for --positive {positive!r}; take a metric of moew's, or a "
            "function of yours.",
            argument="pos_label",
        )
    return prepared


@contextmanager
def _as_wrong_usage(settings: dict[str, Any], training: TableRows) -> Iterator[None]:
    """Turn every error of `prepare` into one of wrong usage: nothing has been trained yet."""
    try:
        yield
    except MoewError as error:
        if error.argument == "pos_label" and settings["positive"] is None:
            labels = np.unique(np.asarray(training.y)).tolist()
            raise InvalidInputError(
                f"--metric {settings['metric']} needs to know which label is the positive one: --positive "
                f"LABEL, one of {labels[:10]}.",
                argument="pos_label",
            ) from error
        if isinstance(error, UndefinedMetricError):  # these rows cannot be judged by this metric
            raise InvalidInputError(*error.parts, argument=error.argument) from error
        raise
    except (ValueError, TypeError) as error:  # from scikit-learn, about data that it cannot use
        raise InvalidInputError(str(error)) from error


def user_rows(rows: TableRows | None, settings: dict[str, Any]) -> UserRows:
    """Rows of a file as the library takes them; a program that is the metric gets their ids."""
    from moew.data import UserRows

    if rows is None:
        return UserRows(None, None)
    columns = dict(rows.columns)
    if settings["metric_command"] is not None:
        columns[ROW_ID] = rows.ids
    return UserRows(rows.X, rows.y, rows.sample_weight, columns or None, rows.groups)


def _other(schema: Schema, path: Path | None, what: str) -> TableRows | None:
    if path is None:
        return None
    with stage(f"reading {path.name}"):
        rows = schema.read(path, together=True)
    if schema.sample_weight is not None and rows.sample_weight is None:
        tell(f"note: the {what} file has no column {schema.sample_weight!r}, so its rows count alike")
    if unknown := schema.unknown(rows.frame):
        shown = f"{unknown[:5]}{' …' if len(unknown) > 5 else ''}"
        tell(f"note: columns of the {what} file that are not used: {shown}")
    return rows


def _found_columns(
    metric: Any,
    rule: Any,
    given: dict[str, str],
    validation: Path | None,
    training: Any,
    separator: str | None,
) -> dict[str, str]:
    """Columns that the metric, one or several in a dict, or the decision needs, and that the file it looks at
    has under their name."""
    from moew.search._evaluate import column_names

    metrics = list(metric.values()) if isinstance(metric, dict) else [metric]
    needed = [name for name in column_names(metrics, rule) if name not in (ROW_ID, *given)]
    if not needed:
        return {}
    there = list(training.columns) if validation is None else read_header(validation, separator)
    if missing := [name for name in needed if name not in there]:
        raise InvalidInputError(
            f"the metric or the decision needs {', '.join(map(repr, missing))} for each row: say which "
            f"column it is, with --metric-column {missing[0]}=COLUMN; the file has {there[:12]}.",
            argument="metadata",
        )
    return {name: name for name in needed}


def _search_settings(
    settings: dict[str, Any],
    model: Any,
    metric: Any,
    rule: Any,
    validation: Any,
    schema: Schema,
    storage: Path | None,
    join: bool,
) -> SearchSettings:
    from moew.search import ExampleWeightSearch

    return ExampleWeightSearch(
        model,
        metric=metric,
        constraint=list(settings["constraint"]) or None,
        decision=rule,
        embedding=_parts.embedding_from(settings, schema.features),
        base_weights=settings["base_weights"],
        sampler=_parts.sampler_from(settings),
        radius=settings["radius"],
        n_batches=settings["batches"],
        batch_size=settings["batch_size"],
        n_candidates=settings["candidates"],
        alpha_zero_repeats=settings["alpha_zero_repeats"],
        stop_when=settings["stop_when"],
        timeout=settings["timeout"],
        validation=validation,
        final=settings["final"],
        guard=settings["guard"],
        honest=_parts.honest_from(settings["honest"]),
        calibrate=settings["calibrate"],
        storage=storage if storage is None else settings["storage"] or storage,
        study_name=settings.get("study_name", "moew"),
        join=join,
        eval_share=settings["eval_share"],
        n_jobs=settings["jobs"],
        candidate_timeout=settings["candidate_timeout"],
        most_failures=settings["most_failures"],
        show_progress=True if storage is not None else None,
        random_state=settings["seed"],
    ).settings
