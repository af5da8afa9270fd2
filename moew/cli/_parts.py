"""Decision, embedding, validation, honest score and model from the texts of their options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from difflib import get_close_matches
from inspect import signature
from typing import Any

import numpy as np

from moew.cli._objects import find_object, is_reference
from moew.cli.runs._models import MODELS, built_in_model, option_value, with_options
from moew.exceptions import InvalidInputError
from moew.types import Task

_MOST_CLASSES = 20  # different whole numbers that are taken for classes unless told


def decision_from(text: str | None) -> Any:
    """The decision rule of a text such as "select=0.05@train"."""
    from moew.decision import resolve_decision

    return resolve_decision(text)


def embedding_from(settings: dict[str, Any], features: Mapping[str, str]) -> Any:
    """The embedding of a name, of `columns=a,b`, or of the user's `module:object`."""
    from moew.embedding import EMBEDDINGS
    from moew.embedding._resolve import columns_of_text

    text: str = settings["embedding"]
    changes = _given(settings, {"dims": "n_dims", "trade_off": "trade_off"})
    if changes or text in EMBEDDINGS:
        paper = {"standardize": False} if settings["as_in_the_paper"] else {}
        return _part_with(EMBEDDINGS, "embedding", text, changes, paper)
    if text.startswith("columns="):
        columns = columns_of_text(text)
        of_metric = metric_columns_from(list(settings["metric_column"]))
        if missing := [name for name in columns if name not in features and name not in of_metric]:
            others = f", and --metric-column {[*of_metric]}" if of_metric else ""
            raise InvalidInputError(
                f"--embedding {text}: no features are {missing}; they are {[*features]}{others}."
            )
        return columns
    if not is_reference(text):
        raise InvalidInputError(
            f"--embedding {text!r} is none of {', '.join(EMBEDDINGS)}, columns=A,B and module:function."
        )
    found = find_object(text, "--embedding", settings["folder"])
    if hasattr(found, "transform"):
        raise InvalidInputError(
            f"--embedding {text}: a transformer cannot be kept in a run folder; wrap it in a function of "
            "(X, y), or use ExampleWeightSearch in Python."
        )
    return found


def sampler_from(settings: dict[str, Any]) -> Any:
    """The sampler of a name, with its settings."""
    from moew.samplers import SAMPLERS

    changes = _given(settings, {"p": "p", "q": "q", "kernel_width": "width", "noise": "noise"})
    paper = {}
    if settings["as_in_the_paper"]:
        from moew.search._paper import paper_settings

        paper = asdict(paper_settings()["sampler"])
    return _part_with(SAMPLERS, "sampler", settings["sampler"], changes, paper)


def _given(settings: dict[str, Any], names: Mapping[str, str]) -> dict[str, tuple[str, Any]]:
    """Settings of a part that were given: its parameter → (the option, the value)."""
    return {
        parameter: (f"--{name.replace('_', '-')}", settings[name])
        for name, parameter in names.items()
        if settings[name] is not None
    }


def _part_with(
    registry: Mapping[str, Any],
    option: str,
    name: str,
    changes: Mapping[str, tuple[str, Any]],
    paper: Mapping[str, Any],
) -> Any:
    """The part of that name with the paper's parameters, if it has them, and changed ones; the name alone if
    there are none."""
    takes = {known: set(signature(make).parameters) for known, make in registry.items()}
    for parameter, (given, _) in changes.items():
        if parameter not in takes.get(name, ()):
            able = " or ".join(f"--{option} {known}" for known in registry if parameter in takes[known])
            raise InvalidInputError(f"{given} is for {able}, not for --{option} {name}.")
    values = {parameter: value for parameter, value in paper.items() if parameter in takes[name]}
    values |= {parameter: value for parameter, (_, value) in changes.items()}
    return registry[name](**values) if values else name


def honest_from(text: str) -> Any:
    """The estimator's `honest`."""
    if text in ("halves", "holdout"):
        return text
    if text == "none":
        return None
    share = _number(text, "--honest (halves, holdout, none or a share)")
    if not 0 < share < 1:
        raise InvalidInputError(f"--honest {text}: a share to hold out is above 0 and below 1.")
    return share


def validation_from(settings: dict[str, Any]) -> Any:
    """The estimator's `validation`: which rows candidates are judged on."""
    folds, share = settings["folds"] or "auto", settings["validation_share"]
    if share is None:
        return None if folds == "none" else folds
    others = {
        "--validation": settings["validation"] is not None,
        f"--folds {folds}": isinstance(folds, int),
    }
    for option, is_given in others.items():
        if is_given:
            raise InvalidInputError(
                f"{option} and --validation-share exclude each other: held-out rows are for where there are "
                "neither validation rows nor folds."
            )
    return share


def task_from(given: str, model: str, y: Any) -> Task:
    """Whether classes or numbers are predicted: by --task, by what the model can do, or by the labels."""
    if given in ("classification", "regression"):
        return given  # type: ignore[return-value]
    if model in MODELS and not MODELS[model].regressor:
        return "classification"
    if model in MODELS and not MODELS[model].classifier:
        return "regression"
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


def model_from(settings: dict[str, Any], X: Any, y: Any) -> Any:
    """The model, not fitted."""
    from moew.search._prepare import task_of

    name = settings["model"]
    options = dict(_pair(text, "--model-option") for text in settings["model_option"])
    values = {key: option_value(value) for key, value in options.items()}
    if name in MODELS:
        task = task_from(settings["task"], name, y)
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


def metric_columns_from(given: list[str]) -> dict[str, str]:
    """Names and columns of texts such as `cost=amount`; a bare name is a column of that name."""
    return dict(_pair(text, "--metric-column") if "=" in text else (text, text) for text in given)


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise InvalidInputError(f"{option} is NAME=VALUE, got {text!r}.")
    return name, value


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInputError(f"{option} needs a number, got {text!r}.") from None
