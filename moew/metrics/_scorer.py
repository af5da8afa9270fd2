"""scikit-learn scorers as metrics: the model predicts once, then any rows are scored without it.

A scorer takes a model. It is called once with a stand-in that calls the model and records its predictions;
from then on it is called with a stand-in that returns the recorded predictions.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from inspect import Parameter, signature
from typing import Any, ClassVar

import numpy as np
from sklearn import config_context, get_config
from sklearn.utils.metadata_routing import get_routing_for_object

from moew.data._read_only import read_only
from moew.data._rows import LabelledRows
from moew.exceptions import InvalidInputError, MoewError
from moew.metrics._fast import FastForm, fast_value
from moew.metrics._labels import shown_labels
from moew.metrics._made_up import made_up_model
from moew.metrics._metric import (
    cannot_judge,
    check_length,
    first_line,
    missing_columns,
    missing_weights,
    one_number,
)
from moew.metrics._predictions import Predictions
from moew.metrics._recorded import METHODS, Recorder, Replay
from moew.metrics._responses import model_name
from moew.types import Array, Columns, Labels, Rows

_NO_COLUMNS: Mapping[str, Any] = {}
_ABOUT_LABELS = (
    "not a valid label",
    "is not specified",
)  # in scikit-learn's errors about an unknown positive label


@dataclass(frozen=True)
class ScorerMetric:
    """A scorer (estimator, X, y) → number, with the same methods as `FunctionMetric`.

    Its value is the scorer's own, and higher is better (scikit-learn negates errors). Columns and sample
    weights are passed to it as arguments if it takes them: with scikit-learn's metadata routing on, those
    it requests (`set_score_request`); with it off, those that its function has arguments for.

    Models are always called through the scorer. On recorded predictions `fast`, if there is one, gives the
    scorer's value; if it returns None the scorer is called.
    """

    scorer: Callable[..., Any]
    name: str
    fast: FastForm | None = field(default=None, repr=False)
    bounds: tuple[float, float] | None = None
    registry_name: str = ""  # of scikit-learn's own: these fail only if they cannot judge the task
    greater_is_better: ClassVar[bool] = True
    slow: ClassVar[bool] = False
    needs_two_classes: ClassVar[bool] = False  # scikit-learn raises by itself
    pos_label: ClassVar[None] = None  # the scorer knows its positive class itself
    response: ClassVar[None] = None  # the scorer calls the model itself
    uses_features: ClassVar[bool] = True
    required_columns: ClassVar[tuple[str, ...]] = ()
    known_columns: ClassVar[None] = None  # depends on scikit-learn's metadata routing
    takes_many: ClassVar[bool] = False

    @property
    def description(self) -> str:
        """The first line of the docstring of the scorer's function; empty if it has none."""
        return first_line(getattr(self.scorer, "_score_func", self.scorer))

    @property
    def requires_sample_weight(self) -> bool:
        """Whether the scorer requires sample weights."""
        return self._named.get("sample_weight") is False

    @cached_property
    def _named(self) -> dict[str, bool]:
        return _named_arguments(self.scorer)

    def check_columns(
        self, columns: Columns, n_rows: int, argument: str = "metadata_val", *, weighted: bool = True
    ) -> None:
        """Raise if a column the scorer needs is missing, or one it takes does not have `n_rows` rows;
        `weighted` says whether the rows have sample weights."""
        wanted = self._wanted()
        needed = [name for name, has_default in self._named.items() if not has_default]
        if refused := [name for name in needed if name not in wanted]:
            raise InvalidInputError(
                f"the scorer {self.name!r} cannot do without {refused!r} but does not request it; call "
                f"scorer.set_score_request({refused[0]}=True) before handing the scorer in.",
                argument="metric",
            )
        if self.requires_sample_weight and not weighted:
            raise missing_weights(self.name)
        of_columns = [wanted[name] for name in needed if name != "sample_weight"]
        if missing := [name for name in of_columns if name not in columns]:
            raise missing_columns(self.name, missing, columns, argument)
        for name in self._arguments(columns, None):
            check_length(columns[wanted[name]], n_rows, wanted[name], self.name)

    def respond(
        self,
        model: Any,
        X: Rows,
        y: Labels,
        columns: Columns = _NO_COLUMNS,
        *,
        pos_label: Any = None,
        sample_weight: Any = None,
        decided: Array | None = None,
    ) -> Predictions:
        """The model's predictions that the scorer asks for; `decided` (n,) replaces those of `predict`.

        The scorer knows its positive class itself, so `pos_label` is ignored.
        """
        self._check_methods(model)
        recorder = Recorder(model, X, decided)
        try:
            self._call(recorder, X, y, columns, sample_weight)
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
        return Predictions(recorder.answers, recorder.classes, recorder.estimator_type)

    def value(
        self,
        predictions: Predictions,
        X: Rows,
        y: Labels,
        columns: Columns = _NO_COLUMNS,
        *,
        pos_label: Any = None,
        sample_weight: Any = None,
        decided: Array | None = None,
    ) -> float:
        """The scorer on rows whose predictions are recorded; `decided` (n,) replaces recorded decisions."""
        answers = dict(predictions.arrays)
        if decided is not None and "predict" in answers:
            answers["predict"] = np.asarray(decided)
        if self.fast is not None:
            arguments = self._arguments(columns, sample_weight)
            weight = arguments.pop("sample_weight", None)
            known = Predictions(answers, predictions.classes, predictions.estimator_type)
            value = None if arguments else fast_value(self.fast, y, known, weight)
            if value is not None:
                return value
        replay = Replay(answers, predictions.classes, predictions.estimator_type)
        return one_number(self._call(replay, read_only(X, deep=False), y, columns, sample_weight), self.name)

    def rehearse(
        self,
        estimator: Any,
        rows: LabelledRows,
        training_labels: Labels,
        *,
        classes: Array | None,
        pos_label: Any,
        decided: Array | None,
        rng: np.random.Generator,
    ) -> None:
        """Call the scorer with a made-up model, and raise an error that every model would meet.

        If a user's own scorer fails on made-up predictions, that is ignored, unless it returns something
        other than a number.
        """
        model = made_up_model(estimator, training_labels, classes, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about made-up predictions
            try:
                weight = rows.sample_weight
                made = self.respond(model, read_only(rows.X), rows.y, rows.columns, sample_weight=weight)
                self.value(made, rows.X, rows.y, rows.columns, sample_weight=weight)
            except MoewError as error:
                if self.registry_name or error.argument in ("pos_label", "metric"):
                    raise
            except Exception as error:
                if self.registry_name:
                    raise cannot_judge(self.registry_name, training_labels, classes, error) from error
                self._check_returns_number(read_only(rows.y), rng.choice(training_labels, len(rows)))

    def _check_returns_number(self, y: Labels, predicted: Array) -> None:
        """Raise if the scorer's own function does not return a number for made-up predictions (n,)."""
        function = getattr(self.scorer, "_score_func", None)
        if function is None:
            return
        try:
            result = function(y, predicted, **getattr(self.scorer, "_kwargs", {}))
        except Exception:
            return  # it needs other predictions than these, or columns
        one_number(result, self.name)

    def values(self, outputs: Array, y: Labels, *, sample_weight: Any = None) -> None:
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

    def _call(self, model: Any, X: Rows, y: Labels, columns: Columns, sample_weight: Any) -> Any:
        arguments = self._arguments(columns, sample_weight)
        # scikit-learn's scorers refuse columns while routing is off, even if their function takes them.
        routed = bool(arguments) and _is_routed(self.scorer)
        try:
            with config_context(enable_metadata_routing=True) if routed else nullcontext():
                kept = {name: read_only(value) for name, value in arguments.items()}
                return self.scorer(model, X, read_only(y), **kept)
        except ValueError as error:
            if advice := self._label_advice(str(error), y):
                raise InvalidInputError(f"{error} {advice}", argument="pos_label") from error
            raise

    def _label_advice(self, message: str, y: Labels) -> str:
        """Advice for a scorer that takes 1 as the positive label when the two labels are others; else ""."""
        if "pos_label" not in message or not any(words in message for words in _ABOUT_LABELS):
            return ""
        if len(np.unique(y)) > 2:
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

    def _arguments(self, columns: Columns, sample_weight: Any) -> dict[str, Any]:
        """The columns and weights that are passed to the scorer: argument name → (n,)."""
        there = {n: c for n, c in columns.items() if n != "sample_weight"}
        if sample_weight is not None:
            there["sample_weight"] = sample_weight
        if not there:
            return {}
        return {
            argument: there[source] for argument, source in self._wanted(there).items() if source in there
        }

    def _wanted(self, there: Mapping[str, Any] = _NO_COLUMNS) -> dict[str, str]:
        """Argument of the scorer → name of the column passed for it; `there` are the columns given."""
        wanted = {name: name for name in self._named}
        # A scorer with a fast form was made from its name, so no requests were set on it.
        unset = self.fast is not None and not get_config()["enable_metadata_routing"]
        if unset or not _is_routed(self.scorer):
            return wanted
        requests = get_routing_for_object(self.scorer).score.requests
        if hasattr(self.scorer, "_score_func"):  # before scikit-learn 1.8 unset ones are not listed
            requests = dict.fromkeys(self._named) | requests
        for argument, request in requests.items():
            if isinstance(request, str):
                wanted[argument] = request
            elif request is True:
                wanted[argument] = argument
            elif request is False:
                wanted.pop(argument, None)
            elif get_config()["enable_metadata_routing"]:
                if argument in there and argument in wanted:
                    raise InvalidInputError(
                        f"metadata routing is on and {argument!r} was passed, but the scorer {self.name!r} "
                        f"does not say whether it wants it; call scorer.set_score_request({argument}=True), "
                        "or =False, before handing the scorer in.",
                        argument="metric",
                    )
                wanted.pop(argument, None)
        return wanted


def _is_routed(scorer: Any) -> bool:
    return hasattr(scorer, "get_metadata_routing")


def _named_arguments(scorer: Any) -> dict[str, bool]:
    """Arguments that a column can be passed as → whether they have a default."""
    function = getattr(scorer, "_score_func", None)
    n_taken = 3 if function is None else 2  # (estimator, X, y) or (y_true, y_pred)
    fixed = getattr(scorer, "_kwargs", None) or {}
    try:
        parameters = list(signature(scorer if function is None else function).parameters.values())
    except (TypeError, ValueError):  # some functions written in C have no signature
        return {}
    keyword = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    return {
        p.name: p.default is not Parameter.empty
        for p in parameters[n_taken:]
        if p.kind in keyword and p.name not in fixed and p.name != "pos_label"
    }
