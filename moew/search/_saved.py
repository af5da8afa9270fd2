"""A finished search in one file, whose loading executes nothing.

The file is a zip, not compressed, of the files that a run folder has for its models and its parts, and of
`search.json`, with the result. What is the user's own code (a metric, an embedding) is named in it and passed
in when the file is loaded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast
from zipfile import Path as ZipPath
from zipfile import ZipFile

import numpy as np
from sklearn.base import clone

from moew._printable import shortened
from moew._util.state import State, find_object, load_state, name_object, pack_array, unpack_array
from moew._util.whole_files import write_whole
from moew.decision import ClassOffsets
from moew.exceptions import Argument, InvalidInputError, MissingObjectError, StateError
from moew.metrics import (
    METRICS,
    FunctionMetric,
    Metric,
    accuracy,
    make_metric,
    r_squared,
    resolve_constraints,
    resolve_metric,
)
from moew.models import Calibration, ModelEnsemble
from moew.saving import MODEL as MODEL_FILE
from moew.saving import UNWEIGHTED as UNWEIGHTED_FILE
from moew.saving import (
    check_unpacked_size,
    import_skops,
    load_model,
    needs_trust,
    reading,
    save_model,
    versions,
    warn_of_other_versions,
)
from moew.search._evaluate import Evaluator, FinalModel, metric_columns
from moew.search._front import pareto_from
from moew.search._honest_score import HonestScore
from moew.search._ledger import CutOff, Stopped
from moew.search._result import FittedSearch, SearchResult, StrategyResult
from moew.search._settings import SearchSettings
from moew.search._study import Trial, WeightStudy
from moew.types import Array, DecisionRule

if TYPE_CHECKING:
    from moew.search._estimator import MetricSearch

SEARCH, PARTS = "search.json", "parts.json"
CALIBRATION = "calibration"  # an entry of the parts, where probabilities are calibrated
_FORMAT = 1  # of search.json; raise it when its entries change
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


def save_search(search: MetricSearch, path: Path, trusted: bool = False) -> None:
    """Write a fitted search to a file; what only code can make again needs `trusted`."""
    import_skops()  # before anything is written
    fitted = search.fitted_
    with TemporaryDirectory() as name:
        folder = Path(name)
        rows = fitted.example_rows
        models = {MODEL_FILE: fitted.winner.model}
        if fitted.unweighted is not None:
            models[UNWEIGHTED_FILE] = fitted.unweighted.model
        for file, model in models.items():
            save_model(model, folder, rows, file)
        if not trusted and any(needs_trust(folder, file) for file in models):
            raise InvalidInputError(
                f"the model {type(fitted.winner.model).__name__} can only be saved as code of yours, "
                "which loading would run. If everybody who loads it trusts you, add ",
                Argument("trusted", True),
                " here and when it is loaded.",
                argument="trusted",
            )
        _write_json(folder / PARTS, parts_of(fitted))
        _write_json(folder / SEARCH, _content(search))

        def pack(new: Path) -> None:
            with ZipFile(new, "w") as packed:
                for entry in sorted(folder.iterdir()):
                    packed.write(entry, entry.name)

        write_whole(path, pack, private=True)


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

    path = Path(path)
    with reading(path):
        data = path.read_bytes()
    if not trusted:
        check_unpacked_size(data, path)
    with reading(path):
        # From memory, where whatever damage makes zipfile do is no error of the disk.
        packed = ZipFile(BytesIO(data))
        packed.filename = str(path)
    with packed:
        inside = ZipPath(packed)
        content, parts = _read_json(inside / SEARCH), _read_json(inside / PARTS)
        with reading(inside / SEARCH):
            _check_format(content)
            warn_of_other_versions(path, content["versions"])
            names = [MODEL_FILE, *([UNWEIGHTED_FILE] if content["has_unweighted"] else [])]
        models = [load_model(inside, trusted, name) for name in names]
    with reading(path):
        fitted = _fitted(content, parts, models, objects or {})
        search = MetricSearch(**fitted.settings.parameters())
        search.n_features_in_, names = int(content["features"]["n"]), content["features"]["names"]
        if names is not None:
            search.feature_names_in_ = _feature_names(names, search.n_features_in_)
        search._keep(fitted)
    return search


def parts_of(fitted: FittedSearch) -> State:
    """What predicting and weighting need besides the model, without pickle."""
    winner, unweighted = fitted.winner, fitted.unweighted
    calibrated = {} if winner.calibration is None else {CALIBRATION: winner.calibration.state()}
    return {
        **calibrated,
        "weight_function": fitted.weight_function.state(),
        "decision": _state(winner.rule),
        "unweighted_decision": None if unweighted is None else _state(unweighted.rule),
        "classes": None if winner.classes is None else winner.classes.tolist(),
        "pos_label": winner.pos_label,
    }


def rule_from(state: State | None, classes: Array | None) -> DecisionRule | None:
    """The decision rule of a state in the parts; raise if it is something else, or of other classes."""
    if state is None:
        return None
    rule = load_state(state)
    if not isinstance(rule, DecisionRule):
        raise StateError(f"its decision is a {type(rule).__name__}, no decision rule.")
    if isinstance(rule, ClassOffsets) and (classes is None or len(classes) != len(rule.offsets)):
        n = 0 if classes is None else len(classes)
        raise StateError(f"its decision is between {len(rule.offsets)} classes, and there are {n}.")
    return rule


def calibration_from(parts: State, classes: Array | None) -> Calibration | None:
    """The calibration of probabilities in the parts, None without; raise if it is of other classes."""
    if CALIBRATION not in parts:
        return None
    found = load_state(parts[CALIBRATION])
    if not isinstance(found, Calibration):
        raise StateError(f"its calibration is a {type(found).__name__}, no calibration.")
    n = 0 if classes is None else len(classes)
    if len(found.curves) != (1 if n == 2 else n):
        raise StateError(f"its calibration has {len(found.curves)} curves, and there are {n} classes.")
    return found


def classes_from(classes: Any, pos_label: Any) -> Array | None:
    """The classes (C,) in the parts, None in regression; raise if they are no labels."""
    if classes is None:
        return None
    kinds = {type(name) for name in classes} if isinstance(classes, list) else set()
    if len(kinds) != 1 or not kinds <= {bool, int, float, str} or len(set(classes)) != len(classes):
        raise StateError(f"its classes must be a list of different labels of one kind, got {classes!r}.")
    if pos_label is not None and pos_label not in classes:
        raise StateError(f"its positive label {pos_label!r} is none of its classes.")
    return np.asarray(classes)


def _feature_names(names: Any, n: int) -> Array:
    """The names of the columns (n,); raise if they are something else."""
    if not (isinstance(names, list) and len(names) == n and all(isinstance(name, str) for name in names)):
        raise StateError(f"its names of columns must be a list of {n} texts, got {names!r}.")
    return np.asarray(names, dtype=object)


def _content(search: MetricSearch) -> State:
    """What is in search.json."""
    fitted, names = search.fitted_, getattr(search, "feature_names_in_", None)
    classes = fitted.winner.classes
    return {
        "format": _FORMAT,
        "versions": versions(loaded_only=True),
        "has_unweighted": fitted.unweighted is not None,
        "task": fitted.task,
        "features": {"n": search.n_features_in_, "names": None if names is None else list(names)},
        "classes_dtype": None if classes is None else classes.dtype.str,
        "parameters": {name: _parameter(value) for name, value in vars(fitted.settings).items()},
        **_metrics_content(fitted),
        "tuned": fitted.evaluator.tuned.state(),
        "always_tuned": fitted.evaluator.always_tuned,
        "passed_columns": list(fitted.evaluator.passed_columns),
        "rule": _state(fitted.evaluator.rule),
        "result": _encoded(asdict(fitted.result)),
        "weights": pack_array(fitted.weights),
        "training_rows": pack_array(fitted.training_rows),
    }


def _parameter(value: Any) -> State:
    if isinstance(value, np.generic):
        value = value.item()
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
    if given is None or isinstance(given, str):
        return {**told, "registered": given}
    if isinstance(metric, FunctionMetric) and metric.made_with is not None and _is_plain(metric.made_with):
        return {**told, "registered": metric.registry_name, "made_with": metric.made_with}
    return {**told, "object": name_object(given.function if isinstance(given, FunctionMetric) else given)}


def _fitted(content: State, parts: State, models: Sequence[Any], objects: Mapping[str, Any]) -> FittedSearch:
    classes = _typed_classes(parts, content["classes_dtype"])
    pos_label = None
    if classes is not None and parts["pos_label"] is not None:
        pos_label = classes[parts["classes"].index(parts["pos_label"])]
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
        rule_from(content["rule"], classes),
        classes,
        load_state(content["tuned"]),
        content["always_tuned"] is True,
        dict(zip(others, further, strict=True)),
        name,
        resolve_constraints(parameters["constraints"], metrics),
        tuple(map(str, content.get("passed_columns", ()))),
    )
    rules = [rule_from(parts[name], classes) for name in ("decision", "unweighted_decision")]
    final = [FinalModel(model, rule, classes, pos_label) for model, rule in zip(models, rules, strict=False)]
    final[0] = replace(final[0], calibration=calibration_from(parts, classes))
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
        weight_function = load_state(parts["weight_function"], objects)
    except MissingObjectError as error:  # only asking for weights needs it
        weight_function = _Missing(error)
    return FittedSearch(
        SearchSettings(**parameters),
        task,
        evaluator,
        cast(WeightStudy, _Missing(no_study)),
        _result(_decoded(content["result"])),
        final[0],
        unpack_array(content["weights"]),
        unpack_array(content["training_rows"]),
        final[1] if len(final) > 1 else None,
        weight_function,
    )


def _typed_classes(parts: State, dtype: Any) -> Array | None:
    """The classes (C,) in the parts, of their own type."""
    listed = parts["classes"]
    if classes_from(listed, parts["pos_label"]) is None:
        return None
    wrong = StateError(f"its classes {listed!r} are none of {dtype!r}.")
    try:  # from the list itself: an array of it may be of floats, which do not hold all whole numbers
        classes = np.asarray(listed, dtype=np.dtype(dtype))
    except (TypeError, ValueError, OverflowError) as error:
        raise wrong from error
    if classes.tolist() != listed:
        raise wrong
    return classes


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
    if found > _FORMAT:
        raise StateError(
            f"it has format {found}, and this moew reads up to {_FORMAT}: update moew to load it."
        )


def _write_json(path: Path, content: State) -> None:
    path.write_text(json.dumps(_encoded(content), indent=1, ensure_ascii=False), encoding="utf-8")


def _read_json(path: ZipPath) -> Any:
    if not path.exists():
        raise StateError(f"{path.root.filename} holds no {path.name}, so it is no search that moew saved.")
    with reading(path):
        return json.loads(path.read_text(encoding="utf-8"))
