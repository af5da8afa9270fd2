"""Everything that the search would find wrong, found before a folder is made and a model trained."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from moew.cli._metric import positive_label
from moew.cli._objects import is_reference
from moew.exceptions import InvalidInputError, MoewError, MoewWarning, UndefinedMetricError

if TYPE_CHECKING:
    from moew.cli._prepare import Prepared

_OF_CLASSES = ("accuracy", "worst_class_error")  # whatever equals nothing is wrong, as numbers always are


def rehearse(prepared: Prepared) -> None:
    """Raise now what the search would raise before its first model, or for all of its models alike."""
    from moew._util.seeds import generator
    from moew.search._prepare import Given, set_up, tested_part

    rows, settings = prepared.all_rows, prepared.settings
    names = ("X", "y", "sample_weight", "metadata")
    *parts, test = (
        Given(*(rows.get(f"{name}{suffix}") for name in names)) for suffix in ("", "_val", "_test")
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoewWarning)  # the search will give them
        try:
            setup = set_up(prepared.search, *parts)
            if test.X is not None:
                part = tested_part(test, setup.evaluator, setup.problem.task)
                setup.evaluator.check_test(part, setup.problem, generator(setup.seed, "rehearsal"))
        except MoewError as error:
            if "takes 1 for the positive label" in str(error):  # its advice is for Python
                raise _needs_positive(prepared) from error
            if isinstance(error, UndefinedMetricError):  # these rows cannot be judged by this metric
                raise InvalidInputError(str(error)) from error
            raise
        except (ValueError, TypeError) as error:  # scikit-learn's words for data that do not fit
            raise InvalidInputError(str(error)) from error
    if settings["metric"] is not None and not is_reference(settings["metric"]):
        _judge_a_made_up_model(prepared, setup)
    positive = positive_label(settings["positive"], prepared.training.y)
    if positive is not None and setup.evaluator.rule is not None and setup.evaluator.pos_label != positive:
        raise InvalidInputError(
            f"with a scorer of scikit-learn, --decision decides for the second label "
            f"{str(setup.evaluator.pos_label)!r}, not for --positive {positive!r}; take a metric of "
            "moew's, or a function of yours."
        )


def _judge_a_made_up_model(prepared: Prepared, setup: Any) -> None:
    """Raise unless a metric that has a name can judge a model of this kind on these labels."""
    name = prepared.settings["metric"]
    if prepared.task == "regression" and name in _OF_CLASSES:
        raise InvalidInputError(
            f"--metric {name} judges classes, but numbers are predicted here. Take a metric of numbers, such "
            "as r_squared, or say --task classification."
        )
    evaluator, rows = setup.evaluator, setup.problem.validation
    model = _made_up(prepared.search.estimator, setup.problem.training.y, evaluator.classes)
    given = {"pos_label": evaluator.pos_label, "sample_weight": rows.sample_weight}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about answers that nobody gave
        try:
            outputs = evaluator.metric.respond(model, rows.X, rows.y, rows.columns, **given)
            evaluator.metric.value(outputs, rows.X, rows.y, rows.columns, **given)
        except MoewError as error:
            raise InvalidInputError(f"--metric {name}: {error}") from error
        except Exception as error:
            if "pos_label" in str(error):
                raise _needs_positive(prepared) from error
            labels = np.unique(np.asarray(prepared.training.y))
            raise InvalidInputError(
                f"--metric {name} cannot judge a {prepared.task} with {len(labels)} different labels, such "
                f"as {labels[:3].tolist()}{_related(name) or f': {error}'}"
            ) from error


def _made_up(model: Any, y: Any, classes: Any) -> Any:
    """A model that answers what the real one can be asked for, at random."""
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.pipeline import Pipeline

    rng = np.random.default_rng(0)

    def predict(X: Any) -> Any:
        if classes is None:  # near the mean: some metrics want no number below zero
            return np.mean(y) * rng.uniform(0.99, 1.01, len(X))
        return rng.choice(y, len(X))

    def predict_proba(X: Any) -> Any:
        shares = rng.uniform(0.1, 1, (len(X), len(classes)))
        return shares / shares.sum(axis=1, keepdims=True)

    def decision_function(X: Any) -> Any:
        return rng.normal(size=len(X) if len(classes) == 2 else (len(X), len(classes)))

    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    # Messages name the model by its type.
    made: Any = type(
        type(last).__name__, (RegressorMixin if classes is None else ClassifierMixin, BaseEstimator), {}
    )()
    made.classes_ = classes
    for method in (predict, predict_proba, decision_function):
        if hasattr(model, method.__name__):
            setattr(made, method.__name__, method)
    return made


def _related(name: str) -> str:
    """Scorers of the same kind, as f1_macro is for f1."""
    from sklearn.metrics import get_scorer_names

    related = [other for other in get_scorer_names() if other.startswith(f"{name}_")]
    related = [other for other in related if not other.endswith("_samples")]
    return f"; related ones are {', '.join(related)}." if related else ""


def _needs_positive(prepared: Prepared) -> InvalidInputError:
    labels = np.unique(np.asarray(prepared.training.y)).tolist()
    return InvalidInputError(
        f"--metric {prepared.settings['metric']} needs to know which label is the positive one: "
        f"--positive LABEL, one of {labels[:10]}."
    )
