"""scikit-learn scorers as metrics: the model predicts once, then any rows are scored without it.

A scorer takes a model. It is called once with a stand-in that calls the model and records its predictions;
from then on it is called with a stand-in that returns the recorded predictions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from sklearn import config_context, get_config
from sklearn.utils import ClassifierTags, RegressorTags, Tags, TargetTags, get_tags
from sklearn.utils.metadata_routing import get_routing_for_object

from moew._util.checks import is_regression
from moew.data import LabelledRows, n_rows, read_only
from moew.exceptions import InvalidInputError
from moew.metrics._fast import FAST_FORMS, fast_value
from moew.metrics._metric import check_rows, first_line, further_arguments, one_number
from moew.metrics._own import shown_labels
from moew.metrics._predictions import METHODS, Predictions, model_name, per_row
from moew.types import Array, Features, Labels

_NO_COLUMNS: Mapping[str, Any] = {}
_SHARES = ("accuracy", "balanced_accuracy", "top_k_accuracy", "f1", "precision", "recall", "jaccard",
           "roc_auc", "average_precision")  # fmt: skip
_UNKNOWN_LABEL = ("not a valid label", "is not specified")  # in errors about the positive label


@dataclass(frozen=True)
class ScorerMetric:
    """A scorer (estimator, X, y) → number, with the same methods as `FunctionMetric`.

    Its value is the scorer's own, and higher is better (scikit-learn negates errors). Columns and sample
    weights are passed to it as arguments if it takes them: with scikit-learn's metadata routing on, those
    it requests (`set_score_request`); with it off, those that its function has arguments for.

    Models are always called through the scorer. On recorded predictions the fast form of a `known` scorer, if
    there is one, gives its value; if it cannot, the scorer is called.
    """

    scorer: Callable[..., Any]
    name: str
    known: str = ""  # the name of the scorer of scikit-learn's that it is equal to
    registry_name: str = ""  # of scikit-learn's own: these fail only if they cannot evaluate the task
    greater_is_better: ClassVar[bool] = True
    slow: ClassVar[bool] = False
    needs_two_classes: ClassVar[bool] = False  # scikit-learn raises by itself
    pos_label: ClassVar[None] = None  # the scorer knows its positive class itself
    response: ClassVar[None] = None  # the scorer calls the model itself
    uses_features: ClassVar[bool] = True
    required_columns: ClassVar[tuple[str, ...]] = ()
    takes_many: ClassVar[bool] = False

    @property
    def description(self) -> str:
        """The first line of the docstring of the scorer's function; empty if it has none."""
        return first_line(getattr(self.scorer, "_score_func", self.scorer))

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The lowest and the highest value, as far as the name tells."""
        if self.known.startswith("neg_"):
            return (-math.inf, 0.0)
        if self.known.startswith(("r2", "d2_", "explained_variance")):
            return (-math.inf, 1.0)
        if self.known == "matthews_corrcoef":
            return (-1.0, 1.0)
        return (0.0, 1.0) if self.known.startswith(_SHARES) else None

    @property
    def known_columns(self) -> tuple[str, ...]:
        """Names of the columns that are passed to the scorer where they are given."""
        return tuple(source for name, source in self._wanted().items() if name != "sample_weight")

    @property
    def requires_sample_weight(self) -> bool:
        """Whether the scorer requires sample weights."""
        return self._named.get("sample_weight") is False

    @property
    def takes_sample_weight(self) -> bool:
        """Whether sample weights are passed to the scorer."""
        return "sample_weight" in self._wanted().values()

    @cached_property
    def _named(self) -> dict[str, bool]:
        """Arguments of the scorer that a column can be passed as → whether they have a default."""
        function = getattr(self.scorer, "_score_func", None)
        n_taken = 3 if function is None else 2  # (estimator, X, y) or (y_true, y_pred)
        not_columns = {"pos_label", *(getattr(self.scorer, "_kwargs", None) or {})}
        return further_arguments(self.scorer if function is None else function, n_taken, not_columns)

    def check_columns(self, rows: LabelledRows, argument: str = "validation") -> None:
        """Raise if a column or the weights that the scorer needs are missing, or values in those it takes."""
        wanted = self._wanted()
        needed = [name for name, has_default in self._named.items() if not has_default]
        if refused := [name for name in needed if name not in wanted]:
            raise InvalidInputError(
                f"the scorer {self.name!r} cannot do without {refused!r} but does not request it; call "
                f"scorer.set_score_request({refused[0]}=True) before handing the scorer in.",
                argument="metric",
            )
        required = [wanted[name] for name in needed if name != "sample_weight"]
        taken = self._arguments(replace(rows, sample_weight=None))
        check_rows(self, required, [wanted[name] for name in taken], rows, argument)

    def respond(
        self, model: Any, rows: LabelledRows, *, pos_label: Any = None, decided: Array | None = None
    ) -> Predictions:
        """The model's predictions that the scorer asks for; `decided` (n,) replaces those of `predict`."""
        self._check_methods(model)
        recorder = _Recorder(model, rows.X, decided)
        try:
            self._call(recorder, rows)
        except Exception:
            # What it asked for is known. These may be the rows of one fold, which lack a class, and `value`
            # raises the same error if it is undefined on all of them.
            if not recorder.answers:
                raise
        if not recorder.answers:
            raise InvalidInputError(
                f"the scorer {self.name!r} asked the model for none of {', '.join(METHODS)}, so it has "
                "nothing to be evaluated on.",
                argument="metric",
            )
        return recorder.recorded

    def value(
        self,
        predictions: Predictions,
        rows: LabelledRows,
        *,
        pos_label: Any = None,
        decided: Array | None = None,
    ) -> float:
        """The scorer on rows whose predictions are recorded; `decided` (n,) replaces recorded decisions."""
        answers = dict(predictions.arrays)
        if decided is not None and "predict" in answers:
            answers["predict"] = np.asarray(decided)
        known = Predictions(answers, predictions.classes, predictions.estimator_type)
        if self.known in FAST_FORMS:
            arguments = self._arguments(rows)
            weight = arguments.pop("sample_weight", None)
            value = None if arguments else fast_value(self.known, rows.y, known, weight)
            if value is not None:
                return value
        shown = replace(rows, X=read_only(rows.X, deep=False))
        return one_number(self._call(_StandIn(known, answers), shown), self.name)

    def values(self, outputs: Array, rows: LabelledRows) -> None:
        """None: scorers cannot score many candidates in one call."""
        return

    def _check_methods(self, model: Any) -> None:
        """Raise if the model has none of the methods that a scikit-learn scorer declares it calls."""
        asked = getattr(self.scorer, "_response_method", ())
        methods = [asked] if isinstance(asked, str) else list(asked)
        if methods and not any(hasattr(model, method) for method in methods):
            raise InvalidInputError(
                f"the scorer {self.name!r} asks the model for {' or '.join(methods)}, which "
                f"{model_name(model)} does not have; use a model that has it, or a metric of what this "
                f"one can give ({', '.join(m for m in METHODS if hasattr(model, m)) or 'nothing'}).",
                argument="estimator",
            )

    def _call(self, model: Any, rows: LabelledRows) -> Any:
        arguments = {name: read_only(value) for name, value in self._arguments(rows).items()}
        # scikit-learn's scorers refuse columns while routing is off, even if their function takes them.
        routed = bool(arguments) and _is_routed(self.scorer)
        try:
            with config_context(enable_metadata_routing=True) if routed else nullcontext():
                return self.scorer(model, rows.X, read_only(rows.y), **arguments)
        except ValueError as error:
            if advice := self._label_advice(str(error), rows.y):
                raise InvalidInputError(f"{error} {advice}", argument="pos_label") from error
            raise

    def _label_advice(self, message: str, y: Labels) -> str:
        """Advice for a scorer that takes 1 as the positive label when the two labels are others; else ""."""
        about_it = "pos_label" in message and any(words in message for words in _UNKNOWN_LABEL)
        if not about_it or len(np.unique(y)) > 2:
            return ""
        function = getattr(self.scorer, "_score_func", None)
        asked = getattr(self.scorer, "_response_method", "predict")
        method = "" if asked == "predict" else f", response_method={asked!r}"
        sign = "" if getattr(self.scorer, "_sign", 1) > 0 else ", greater_is_better=False"
        return (
            f"The scorer {self.name!r} takes 1 for the positive label, unless told; name yours: metric="
            f"make_scorer({getattr(function, '__name__', '…')}{method}{sign}, pos_label=…), the label one "
            f"of {shown_labels(y)}."
        )

    def _arguments(self, rows: LabelledRows) -> dict[str, Any]:
        """The columns and weights that are passed to the scorer: argument name → (n,)."""
        there = {**rows.columns, "sample_weight": rows.sample_weight}
        if rows.sample_weight is None:
            del there["sample_weight"]
        wanted = self._wanted(there) if there else {}
        return {argument: there[source] for argument, source in wanted.items() if source in there}

    def _wanted(self, there: Mapping[str, Any] = _NO_COLUMNS) -> dict[str, str]:
        """Argument of the scorer → name of the column passed for it; `there` are the columns given."""
        wanted = {name: name for name in self._named}
        routing = get_config()["enable_metadata_routing"]
        # No requests are set on the scorers that scikit-learn knows by a name.
        if (self.known and not routing) or not _is_routed(self.scorer):
            return wanted
        requests = get_routing_for_object(self.scorer).score.requests
        if hasattr(self.scorer, "_score_func"):  # before scikit-learn 1.8 unset ones are not listed
            requests = dict.fromkeys(self._named) | requests
        for argument, request in requests.items():
            if request is None and routing and argument in there and argument in wanted:
                raise InvalidInputError(
                    f"metadata routing is on and {argument!r} was passed, but the scorer {self.name!r} "
                    f"does not say whether it wants it; call scorer.set_score_request({argument}=True), "
                    "or =False, before handing the scorer in.",
                    argument="metric",
                )
            if request is True or isinstance(request, str):
                wanted[argument] = argument if request is True else request
            elif request is False or routing:
                wanted.pop(argument, None)
        return wanted


def _is_routed(scorer: Any) -> bool:
    return hasattr(scorer, "get_metadata_routing")


class _NotRecordedError(InvalidInputError, AttributeError):
    """Also an AttributeError, so that `hasattr` works for a scorer."""


class _StandIn:
    """A model as a scorer sees it: prediction methods, which replay, classes and tags, nothing else."""

    def __init__(self, predictions: Predictions, methods: Collection[str]) -> None:
        self._predictions, self._methods = predictions, methods
        if predictions.classes is not None:
            self.classes_ = predictions.classes

    def __getattr__(self, name: str) -> Any:
        methods = self.__dict__.get("_methods", ())
        if name not in methods:
            raise _NotRecordedError(
                f"a scorer is evaluated on recorded predictions and asked the model for {name!r}; it can "
                f"have {', '.join(methods)} here, the same on every subset of rows. Write the scorer with "
                "these, or as a function of (y_true, output) for make_metric."
            )

        def method(X: Features) -> Array:
            return read_only(self._answer(name, X))  # type: ignore[no-any-return]

        method.__name__ = name  # scikit-learn reads the name
        return method

    def _answer(self, method: str, X: Features) -> Array:
        answer = self._predictions.arrays[method]
        if len(answer) != n_rows(X):
            raise InvalidInputError(
                f"the scorer called {method} on {n_rows(X)} rows, but was given {len(answer)}; it must call "
                "the model on X itself.",
                argument="metric",
            )
        return answer

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        kind = self._predictions.estimator_type
        return Tags(
            estimator_type=kind,
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags() if kind == "classifier" else None,
            regressor_tags=RegressorTags() if kind == "regressor" else None,
        )


class _Recorder(_StandIn):
    """Calls the model and records its predictions, once for each method."""

    def __init__(self, model: Any, X: Features, decided: Array | None) -> None:
        classes = getattr(model, "classes_", None)
        if hasattr(model, "__sklearn_tags__"):
            estimator_type = get_tags(model).estimator_type
        else:
            estimator_type = "regressor" if is_regression(model) else "classifier"
        self.answers: dict[str, Array] = {} if decided is None else {"predict": np.asarray(decided)}
        self.recorded = Predictions(
            self.answers, None if classes is None else np.asarray(classes), estimator_type
        )
        super().__init__(self.recorded, [name for name in METHODS if hasattr(model, name)])
        self._model, self._X, self._config = model, X, get_config()

    def _answer(self, method: str, X: Features) -> Array:
        if not _same_rows(X, self._X):
            raise InvalidInputError(
                f"the scorer called {method} on other rows than it was given; predictions are recorded once "
                "for the validation rows as they are. Change rows in the model (a Pipeline step), or write "
                "the scorer so that it calls the model on X itself.",
                argument="metric",
            )
        if method not in self.answers:
            with config_context(**self._config):  # the model predicts under the user's own configuration
                self.answers[method] = per_row(getattr(self._model, method)(X), X, method)
        return self.answers[method]


def _same_rows(X: Features, given: Features) -> bool:
    if X is given:
        return True
    if hasattr(X, "tocsr") or hasattr(given, "tocsr"):
        return False
    first, second = np.asarray(X), np.asarray(given)
    if first.shape != second.shape:
        return False
    return bool(((first == second) | ((first != first) & (second != second))).all())  # NaN equals NaN here
