"""From the options of `moew fit` and `moew compare` to a prepared search, before anything is trained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from moew._util.progress import stage
from moew.cli._ending import tell
from moew.cli._metric import ROW_ID, metrics_from, positive_label
from moew.cli._models import MODELS, built_in_model, with_options
from moew.cli._parameters import pair, read_value, search_parameters_from
from moew.cli._users_code import find_object, is_reference, users_code
from moew.cli.runs._schema import Roles, Schema, TableRows, labels_of, learn_schema, named_columns
from moew.cli.runs._tables import ids_as_written, read_header, read_table, separator_from
from moew.exceptions import InvalidInputError, MoewError, UndefinedMetricError
from moew.types import Task

if TYPE_CHECKING:
    from moew.data import Rows
    from moew.search import Prepared, SearchSettings

_MOST_CLASSES = 20  # different whole numbers that are taken for classes unless told


@dataclass(frozen=True)
class Job:
    """What a command trains with and on; `validation` and `test` are None without their files."""

    settings: dict[str, Any]  # the options
    schema: Schema
    training: TableRows
    validation: TableRows | None
    test: TableRows | None
    search: Prepared

    def rows(self, part: TableRows | None) -> Rows:
        """One of the three parts as the library takes rows."""
        return user_rows(part, self.settings)


@users_code()
def prepare_job(settings: dict[str, Any], storage: Path | None = None, *, join: bool = False) -> Job:
    """Read the files and prepare the search, with its study in the database of the settings or in the file
    `storage`; raise on what cannot work."""
    from moew.decision import resolve_decision
    from moew.search import prepare

    _check_given(settings)
    path, label = settings["train"], settings["label"]
    separator = separator_from(settings["separator"])
    with stage(f"reading {path.name}"):
        frame = read_table(path, label=label, separator=separator)
    y = labels_of(frame, label, path)
    positive = positive_label(settings["positive"], y)
    columns = _metric_columns_from(list(settings["metric_column"]))
    metric = metrics_from(settings, list(columns), positive)
    rule = resolve_decision(settings["decision"])
    columns |= _found_columns(metric, rule, columns, settings["validation"], frame, separator)
    features, drop = (named_columns(settings[name], frame) for name in ("features", "drop"))
    if settings["id"] not in (*features, *columns.values()):
        frame = ids_as_written(frame, path, settings["id"], separator)
    weight, groups = settings["sample_weight"], settings["groups"]
    roles = Roles(label, settings["id"], weight, columns, groups, features, drop)
    schema = learn_schema(frame, path, roles, separator)
    # Where validation rows are given, training rows without the metric's columns are only trained on.
    training = schema.rows(frame, path, columns=None if settings["validation"] is None else (), groups=True)
    model = _model_from(settings, training.X, training.y)
    search = _search_settings(settings, model, metric, rule, schema, storage, join)
    validation = _other(schema, settings["validation"], "validation")
    test = _other(schema, settings["test"], "test")
    with _as_wrong_usage(settings, training):
        of_test = None if test is None else user_rows(test, settings)
        prepared = prepare(search, user_rows(training, settings), user_rows(validation, settings), of_test)
    evaluator = prepared.evaluator
    if positive is not None and evaluator.rule is not None and evaluator.pos_label != positive:
        raise InvalidInputError(
            f"with a scorer of scikit-learn, --decision decides for the second label "
            f"{str(evaluator.pos_label)!r}, not for --positive {positive!r}; take a metric of moew's, or a "
            "function of yours.",
            argument="pos_label",
        )
    return Job(settings, schema, training, validation, test, prepared)


def _check_given(settings: dict[str, Any]) -> None:
    """Raise if options are missing, or exclude each other."""
    for name, how in (("train", "training file: moew fit train.csv …"), ("label", "labels: --label COLUMN")):
        if settings[name] is None:
            raise InvalidInputError(f"name the {how}.", argument=name)
    share = settings["set"].get("evaluate_on")
    if isinstance(share, float) and settings["validation"] is not None:
        raise InvalidInputError(
            f"--set evaluate_on={share:g} holds out rows where there are no others: leave out --validation, "
            "or this."
        )
    if settings["compare"] and settings["test"] is None:
        raise InvalidInputError(
            "--compare needs rows that no method has chosen on: give them with --test FILE.", argument="test"
        )
    if settings["compare"] and settings["timeout"] is not None:
        raise InvalidInputError(
            "--compare trains equally many models with every method, however long it takes: leave out "
            "--timeout.",
            argument="timeout",
        )


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
        if isinstance(error, UndefinedMetricError):  # these rows cannot be evaluated by this metric
            raise InvalidInputError(*error.parts, argument=error.argument) from error
        raise
    except (ValueError, TypeError) as error:  # from scikit-learn, about data that it cannot use
        raise InvalidInputError(str(error)) from error


def user_rows(rows: TableRows | None, settings: dict[str, Any]) -> Rows:
    """Rows of a file as the library takes them; a program that is the metric gets their ids."""
    from moew.data import Rows

    if rows is None:
        return Rows(None, None)
    columns = dict(rows.columns)
    if settings["metric_command"] is not None:
        columns[ROW_ID] = rows.ids
    return Rows(rows.X, rows.y, rows.sample_weight, columns or None, rows.groups)


def _other(schema: Schema, path: Path | None, what: str) -> TableRows | None:
    if path is None:
        return None
    with stage(f"reading {path.name}"):
        rows = schema.read(path, groups=True)
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
    from moew.search import column_names

    metrics = list(metric.values()) if isinstance(metric, dict) else [metric]
    needed = [name for name in column_names(metrics, rule) if name not in (ROW_ID, *given)]
    if not needed:
        return {}
    there = list(training.columns) if validation is None else read_header(validation, separator)
    if missing := [name for name in needed if name not in there]:
        raise InvalidInputError(
            f"the metric or the decision needs {', '.join(map(repr, missing))} for each row: say which "
            f"column it is, with --metric-column {missing[0]}=COLUMN; the file has {there[:12]}.",
            argument="columns",
        )
    return {name: name for name in needed}


def _search_settings(
    settings: dict[str, Any],
    model: Any,
    metric: Any,
    rule: Any,
    schema: Schema,
    storage: Path | None,
    join: bool,
) -> SearchSettings:
    from moew.search import MetricSearch

    parameters = {
        "decision": rule,
        "storage": storage if storage is None else settings["storage"] or storage,
        "join": join,
        "verbose": True if storage is not None else None,
        **search_parameters_from(settings, {**schema.features, **schema.columns}),
    }
    return MetricSearch.from_settings(model, metric=metric, **parameters).settings


def _task_from(given: str, model: str, y: Any) -> Task:
    """Whether classes or numbers are predicted: by --task, by what the model can do, or by the labels."""
    if given in ("classification", "regression"):
        return given  # type: ignore[return-value]
    if model in MODELS and not (MODELS[model].classifier and MODELS[model].regressor):
        return "classification" if MODELS[model].classifier else "regression"
    labels = np.asarray(y)
    if labels.dtype.kind not in "iuf":
        return "classification"
    if labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
        return "regression"
    n_different = len(np.unique(labels))
    if n_different <= _MOST_CLASSES:
        return "classification"
    raise InvalidInputError(
        f"the labels are {n_different} different whole numbers: say --task classification or "
        "--task regression."
    )


def _model_from(settings: dict[str, Any], X: Any, y: Any) -> Any:
    """The model, not fitted."""
    from moew.search import task_of

    name = settings["model"]
    options = dict(pair(text, "--model-option") for text in settings["model_option"])
    values = {key: read_value(value) for key, value in options.items()}
    if name in MODELS:
        task = _task_from(settings["task"], name, y)
        model = built_in_model(name, X, task, values)
        _check_labels(y, task, name)
        return model
    if not is_reference(name):
        near = get_close_matches(name, MODELS, n=1, cutoff=0.5)
        hint = f"perhaps {near[0]}? They are" if near else "they are"
        raise InvalidInputError(
            f"there is no model {name!r}; {hint} {', '.join(MODELS)}, or module:object of yours."
        )
    model = find_object(name, "--model", settings["folder"])
    if isinstance(model, type) or (callable(model) and not hasattr(model, "fit")):
        try:
            model = model()
        except Exception as error:  # the user's own code
            raise InvalidInputError(
                f"--model {name}: {name.partition(':')[2]}() failed: {type(error).__name__}: {error}"
            ) from error
    if not (hasattr(model, "fit") and hasattr(model, "get_params")):
        raise InvalidInputError(f"--model {name} is no scikit-learn estimator, but {type(model).__name__}.")
    found = task_of(model)
    if settings["task"] not in ("auto", found):
        raise InvalidInputError(
            f"--model {name} is for {found}, but --task says {settings['task']}.", argument="estimator"
        )
    _check_labels(y, found, name)
    return with_options(model, values)


def _check_labels(y: Any, task: Task, model: str) -> None:
    labels = np.asarray(y)
    if task == "regression" and labels.dtype.kind not in "iufb":
        raise InvalidInputError(
            f"the labels are texts, such as {str(labels[0])!r}, and --model {model} predicts numbers here."
        )
    if task == "classification" and labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
        odd = float(labels[labels != np.floor(labels)][0])
        raise InvalidInputError(
            f"the labels are numbers, such as {odd:g}, and --model {model} predicts classes here. For "
            "numbers take a model such as ridge or hist_gradient_boosting, without --task classification."
        )


def _metric_columns_from(given: list[str]) -> dict[str, str]:
    """Names and columns of texts such as `cost=amount`; a bare name is a column of that name."""
    return dict(pair(text, "--metric-column") if "=" in text else (text, text) for text in given)
