"""A finished search in one file, whose loading executes nothing.

The file is a zip, not compressed, of `search.json`, with the result, the decisions and the weights, and of
the files of its models. What is the user's own code (a metric, an embedding) is named in it and passed in
when the file is loaded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.base import clone

from moew._printable import shortened
from moew._util.state import State, find_object, load_state, name_object, pack_array, unpack_array
from moew.decision import ClassOffsets
from moew.exceptions import Argument, InvalidInputError, MissingObjectError, StateError
from moew.metrics import (
    METRICS,
    FunctionMetric,
    Metric,
    ScorerMetric,
    accuracy,
    make_metric,
    r_squared,
    resolve_constraints,
    resolve_metric,
)
from moew.models import Calibration, ModelEnsemble
from moew.saving import (
    import_skops,
    load_model,
    needs_trust,
    pack_model,
    read_files,
    reading,
    versions,
    warn_of_other_versions,
    write_files,
)
from moew.search._evaluate import Evaluator, FinalModel, constant_model, metric_columns
from moew.search._front import pareto_from
from moew.search._honest_score import HonestScore
from moew.search._loop import CutOff, Stopped
from moew.search._result import FittedSearch, SearchResult, StrategyResult
from moew.search._settings import SearchSettings
from moew.search._strategies import CONSTANT, TUNED
from moew.search._study import Trial, WeightStudy
from moew.storage import storage_name
from moew.types import Array, DecisionRule

if TYPE_CHECKING:
    from moew.search._estimator import MetricSearch

_SEARCH, _MODEL, _UNWEIGHTED = "search.json", "model", "unweighted"  # files in the file
_FORMAT = 2  # of search.json; raise it when its entries change
_ARRAY = "array"
_PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class NotSaved:
    """A parameter that a saved search does not keep; a fit with it is refused. `text` is what it was."""

    text: str

    def __repr__(self) -> str:
        return f"<not saved: {self.text}>"


class _Missing:
    """In place of a part that a loaded search does not have; to use it is an error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name) if name.startswith("_") else self._error

    def __call__(self, *_: Any) -> Any:
        raise self._error


def save_search(
    fitted: FittedSearch, features: Sequence[str] | int, path: Path, trusted: bool = False, table: Any = None
) -> bool:
    """Write a finished search to a file; what only code can make again needs `trusted`. `features` are their
    names, or how many there are, `table` is what the command line keeps of its tables. Returns whether
    loading the file needs `trusted`."""
    import_skops()  # before anything is written
    models = pack_model(fitted.winner.model, fitted.example_rows, _MODEL)
    if fitted.unweighted is not None:
        models |= pack_model(fitted.unweighted.model, fitted.example_rows, _UNWEIGHTED)
    is_code = needs_trust(models)
    if is_code and not trusted:
        raise InvalidInputError(
            f"the model {type(fitted.winner.model).__name__} can only be saved as code of yours, which "
            "loading would run. If everybody who loads it trusts you, add ",
            Argument("trusted", True),
            " here and when it is loaded.",
            argument="trusted",
        )
    content = json.dumps(_encoded(_content(fitted, features, table)), indent=1, ensure_ascii=False)
    write_files(path, {_SEARCH: content.encode("utf-8"), **models})
    return is_code


def load(
    path: str | Path, *, trusted: bool = False, objects: Mapping[str, Any] | None = None
) -> MetricSearch:
    """Load a search that `MetricSearch.save` wrote; it predicts as before, bit for bit.

    Nothing in the file is executed. It has no study, so that plots of its candidates and reports are made
    before saving.

    Parameters
    ----------
    path : the file
    trusted : bool, default False
        Whether a model that is kept as code may be loaded: whoever made the file can then run anything on
        your machine. Without it, such a file is refused.
    objects : dict or None
        Functions and objects of your own that the search used, by the names that the file has for them; an
        error says which are missing where they are needed. `predict` needs none.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.linear_model import LogisticRegression
    >>> from moew import MetricSearch
    >>> X, y = [[float(i)] for i in range(40)], [0, 0, 0, 1] * 5 + [1, 1, 1, 0] * 5
    >>> search = MetricSearch(LogisticRegression(), n_candidates=2, random_state=0)
    >>> search = search.fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     search.save(f"{folder}/search.moew")
    ...     again = load(f"{folder}/search.moew")
    >>> bool((again.predict_proba(X) == search.predict_proba(X)).all())
    True
    """
    from moew.search._estimator import MetricSearch

    fitted, features, _ = load_fitted(Path(path), trusted, objects)
    with reading(Path(path) / _SEARCH):
        search = MetricSearch(**fitted.settings.parameters())
        if isinstance(features, int):
            search.n_features_in_ = features
        else:
            search.n_features_in_ = len(features)
            search.feature_names_in_ = np.asarray(features, dtype=object)
        search._keep(fitted)
    return search


def load_fitted(
    path: Path, trusted: bool = False, objects: Mapping[str, Any] | None = None
) -> tuple[FittedSearch, list[str] | int, Any]:
    """As `load`: the record of a search, its features and its table, as `save_search` got them."""
    files = read_files(path, trusted)
    if _SEARCH not in files:
        raise StateError(f"{path} holds no {_SEARCH}, so it is no search that moew saved.")
    with reading(path / _SEARCH):
        content = _decoded(json.loads(files[_SEARCH]))
        _check_format(content)
        warn_of_other_versions(path, content["versions"])
        names = [_MODEL, *([_UNWEIGHTED] if content["has_unweighted"] else [])]
    models = [load_model(files, path, name, trusted) for name in names]
    with reading(path):
        return _fitted(content, models, objects or {}), _features(content["features"]), content["table"]


def _rule(state: State | None, classes: Array | None) -> DecisionRule | None:
    """The decision rule of a state; raise if it is something else, or of other classes."""
    if state is None:
        return None
    rule = load_state(state)
    if not isinstance(rule, DecisionRule):
        raise StateError(f"its decision is a {type(rule).__name__}, no decision rule.")
    if isinstance(rule, ClassOffsets) and (classes is None or len(classes) != len(rule.offsets)):
        n = 0 if classes is None else len(classes)
        raise StateError(f"its decision is between {len(rule.offsets)} classes, and there are {n}.")
    return rule


def _calibration(state: State | None, classes: Array | None) -> Calibration | None:
    """The calibration of probabilities of a state; raise if it is something else, or of other classes."""
    if state is None:
        return None
    found = load_state(state)
    if not isinstance(found, Calibration):
        raise StateError(f"its calibration is a {type(found).__name__}, no calibration.")
    n = 0 if classes is None else len(classes)
    if len(found.curves) != (1 if n == 2 else n):
        raise StateError(f"its calibration has {len(found.curves)} curves, and there are {n} classes.")
    return found


def _features(given: Any) -> list[str] | int:
    """The names of the features, or how many there are; raise if they are something else."""
    is_number = type(given) is int and given > 0
    if is_number or (isinstance(given, list) and all(isinstance(name, str) for name in given)):
        return cast("list[str] | int", given)
    raise StateError(f"its features must be a list of texts or a number of columns, got {given!r}.")


def _content(fitted: FittedSearch, features: Sequence[str] | int, table: Any) -> State:
    """What is in search.json."""
    winner, simple = fitted.winner, fitted.simple_models
    return {
        "format": _FORMAT,
        "versions": versions(loaded_only=True),
        "task": fitted.task,
        "features": features if isinstance(features, int) else list(features),
        "table": table,
        "parameters": {name: _parameter(value) for name, value in vars(fitted.settings).items()},
        **_metrics_content(fitted),
        "tuned": fitted.evaluator.tuned.state(),
        "always_tuned": fitted.evaluator.always_tuned,
        "passed_columns": list(fitted.evaluator.passed_columns),
        "rule": _state(fitted.evaluator.rule),
        "classes": None if winner.classes is None else winner.classes.tolist(),
        "classes_dtype": None if winner.classes is None else winner.classes.dtype.str,
        "pos_label": winner.pos_label,
        "decision": _state(winner.rule),
        "calibration": _state(winner.calibration),
        "has_unweighted": fitted.unweighted is not None,
        "unweighted_decision": None if fitted.unweighted is None else _state(fitted.unweighted.rule),
        "tuned_decision": _state(simple[TUNED].rule) if TUNED in simple else None,
        "constant": simple[CONSTANT].model.constant[0] if CONSTANT in simple else None,
        "weight_function": fitted.weight_function.state(),
        "result": asdict(fitted.result),
        "weights": fitted.weights,
        "training_rows": fitted.training_rows,
    }


def _parameter(value: Any) -> State:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str) and "://" in value:
        value = storage_name(value)  # without a password
    texts = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    if isinstance(value, _PLAIN) or texts:
        return {"value": value}
    return {"not saved": shortened(repr(value), 200)}


def _metrics_content(fitted: FittedSearch) -> State:
    """How the metrics are found again; "others" and their names only where there are several."""
    evaluator, given = fitted.evaluator, fitted.settings.metric
    several = list(given.values()) if isinstance(given, Mapping) else given
    each = several if isinstance(several, list | tuple) else [several]
    metrics = zip(evaluator.metrics.items(), each, strict=True)
    told = {name: _metric_content(metric, one) for (name, metric), one in metrics}
    first = next(iter(told))
    if len(told) == 1 and not evaluator.constraints:
        return {"metric": told[first]}
    return {"metric": told.pop(first), "metric_name": first, "others": told}


def _metric_content(metric: Metric, given: Any) -> State:
    """How a metric is found again: by its name, as one of moew's, or as an object of the user's."""
    told: State = {"name": metric.name, "response": metric.response, "columns": metric_columns(metric)}
    told |= {"greater_is_better": metric.greater_is_better, "pos_label": metric.pos_label}
    if isinstance(given, ScorerMetric) and given.name == given.registry_name:
        given = given.name
    if given is None or isinstance(given, str):
        return {**told, "registered": given}
    if isinstance(metric, FunctionMetric) and metric.made_with is not None and _is_plain(metric.made_with):
        return {**told, "registered": metric.registry_name, "made_with": metric.made_with}
    return {**told, "object": name_object(given.function if isinstance(given, FunctionMetric) else given)}


def _fitted(content: State, models: Sequence[Any], objects: Mapping[str, Any]) -> FittedSearch:
    classes = _classes(content)
    pos_label = None
    if classes is not None and content["pos_label"] is not None:
        pos_label = classes[content["classes"].index(content["pos_label"])]
    others = content.get("others", {})
    if not isinstance(others, dict):
        raise StateError(f"its other metrics must be named, got {others!r}.")
    task, given = content["task"], [content["metric"], *others.values()]
    first, *further = [_metric(told, task, objects) for told in given]
    name = str(content.get("metric_name") or first.name)
    metrics = {name: first, **dict(zip(others, further, strict=True))}
    parameters: dict[str, Any] = {"constraints": None, "calibrate": None}
    for parameter, told in content["parameters"].items():
        parameters[parameter] = told["value"] if "value" in told else NotSaved(str(told["not saved"]))
    evaluator = Evaluator(
        first,
        _rule(content["rule"], classes),
        classes,
        load_state(content["tuned"]),
        content["always_tuned"] is True,
        dict(zip(others, further, strict=True)),
        name,
        resolve_constraints(parameters["constraints"], metrics),
        tuple(map(str, content.get("passed_columns", ()))),
    )
    rules = [_rule(content[name], classes) for name in ("decision", "unweighted_decision")]
    final = [FinalModel(model, rule, classes, pos_label) for model, rule in zip(models, rules, strict=False)]
    final[0] = replace(final[0], calibration=_calibration(content["calibration"], classes))
    unweighted = final[1] if len(final) > 1 else None
    single = final[-1].model  # with the estimator's class: one of an ensemble's
    parameters["estimator"] = clone(single.models_[0] if isinstance(single, ModelEnsemble) else single)
    known = ["made_with" in told or told.get("object") in objects for told in given]
    if others and all(
        found or isinstance(told.get("registered"), str) for found, told in zip(known, given, strict=True)
    ):
        parameters["metric"] = metrics
    elif not others and known[0]:
        parameters["metric"] = first
    if evaluator.rule is not None:
        parameters["decision"] = evaluator.rule
    no_study = InvalidInputError(
        "a search that was loaded from a file has no study: plots and reports of the candidates are made "
        "before it is saved.",
        argument="search",
    )
    try:
        weight_function = load_state(content["weight_function"], objects)
    except MissingObjectError as error:  # only asking for weights needs it
        weight_function = _Missing(error)
    return FittedSearch(
        SearchSettings(**parameters),
        task,
        evaluator,
        cast(WeightStudy, _Missing(no_study)),
        _result(content["result"]),
        final[0],
        np.asarray(content["weights"]),
        np.asarray(content["training_rows"]),
        unweighted,
        weight_function,
        simple_models=_simple_models(content, unweighted, classes),
    )


def _classes(content: State) -> Array | None:
    """The classes (C,), of their own type, None in regression; raise if they are no labels."""
    listed, dtype, pos_label = content["classes"], content["classes_dtype"], content["pos_label"]
    if listed is None:
        return None
    kinds = {type(name) for name in listed} if isinstance(listed, list) else set()
    if len(kinds) != 1 or not kinds <= {bool, int, float, str} or len(set(listed)) != len(listed):
        raise StateError(f"its classes must be a list of different labels of one kind, got {listed!r}.")
    if pos_label is not None and pos_label not in listed:
        raise StateError(f"its positive label {pos_label!r} is none of its classes.")
    wrong = StateError(f"its classes {listed!r} are none of {dtype!r}.")
    try:  # from the list itself: an array of it may be of floats, which do not hold all whole numbers
        classes = np.asarray(listed, dtype=np.dtype(dtype))
    except (TypeError, ValueError, OverflowError) as error:
        raise wrong from error
    if classes.tolist() != listed:
        raise wrong
    return classes


def _simple_models(
    content: State, unweighted: FinalModel | None, classes: Array | None
) -> dict[str, FinalModel]:
    """The models of the strategies that need no training beside the unweighted model."""
    found, constant = {}, content["constant"]
    if content["tuned_decision"] is not None and unweighted is not None:
        found[TUNED] = replace(unweighted, rule=_rule(content["tuned_decision"], classes))
    if constant is not None:
        is_answer = isinstance(constant, int | float) if classes is None else constant in classes.tolist()
        if not is_answer:
            raise StateError(f"its constant {constant!r} is no answer of the model.")
        labels = [constant] if classes is None else classes
        model = constant_model(constant, np.zeros((len(labels), 1)), labels, classifies=classes is not None)
        found[CONSTANT] = FinalModel(model, None, classes, None)
    return found


def _metric(told: State, task: str, objects: Mapping[str, Any]) -> Metric:
    if "object" in told:
        if told["object"] not in objects:
            return _unknown_metric(told)
        given = objects[told["object"]]
        is_metric = isinstance(given, Metric)
        if is_metric or told["response"] is None:  # or a scorer, which calls the model itself
            return resolve_metric(given)
        how = {name: told[name] for name in ("response", "greater_is_better", "name", "pos_label")}
        return resolve_metric(make_metric(given, **how))
    name, made_with = told["registered"], told.get("made_with")
    if name is None:
        return r_squared() if task == "regression" else accuracy()
    if made_with is None:
        return resolve_metric(str(name))
    if name not in METRICS:
        raise StateError(f"its metric {name!r} is none of moew's.")
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in made_with.items()}
    return METRICS[name].make(**given)


def _unknown_metric(told: State) -> FunctionMetric:
    """A metric that is the user's and was not passed: its value is an error."""

    def unknown(y_true: Any, output: Any, **columns: Any) -> float:  # noqa: ARG001
        find_object(told["object"], {})
        return float("nan")

    how = {name: told[name] for name in ("response", "greater_is_better", "name", "pos_label")}
    if how["response"] is None:  # a scorer asks the model by itself; this asks for nothing
        how["response"] = "decision"
    metric: FunctionMetric = make_metric(unknown, **how)
    object.__setattr__(metric, "optional_columns", tuple(told["columns"]))  # it is frozen
    return metric


def _result(values: State) -> SearchResult:
    scores = {name: HonestScore(**values[name]) for name in ("honest", "alpha_zero", "unweighted")}
    stopped, cut_off, pareto = (values.get(name) for name in ("stopped", "cut_off", "pareto"))
    records = {
        "trials": tuple(Trial(**trial) for trial in values["trials"]),
        "strategies": tuple(StrategyResult(**strategy) for strategy in values["strategies"]),
        "notes": tuple(values["notes"]),
        "stopped": None if stopped is None else Stopped(**stopped),
        "cut_off": None if cut_off is None else CutOff(**cut_off),
        "pareto": None if pareto is None else pareto_from(pareto),
    }
    return SearchResult(**{**values, **scores, **records})


def _encoded(value: Any) -> Any:
    """Dicts, lists, numbers and texts, with arrays as dicts; numbers that are not finite stay."""
    if isinstance(value, Mapping):
        return {str(key): _encoded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encoded(item) for item in value]
    if isinstance(value, np.ndarray):
        return {_ARRAY: pack_array(value)}
    return value.item() if isinstance(value, np.generic) else value


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {_ARRAY}:
            return unpack_array(value[_ARRAY])
        return {key: _decoded(item) for key, item in value.items()}
    return [_decoded(item) for item in value] if isinstance(value, list) else value


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(map(_is_plain, value.values()))
    return all(map(_is_plain, value)) if isinstance(value, list | tuple) else isinstance(value, _PLAIN)


def _state(rule: Any) -> State | None:
    return None if rule is None else rule.state()


def _check_format(content: Any) -> None:
    found = content.get("format") if isinstance(content, dict) else None
    if not isinstance(found, int) or found < 1:
        raise StateError("it is no search that moew saved.")
    if found != _FORMAT:
        raise StateError(
            f"it has format {found}, and this moew reads {_FORMAT}: take the moew that saved it."
        )
