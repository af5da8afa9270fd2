"""Metrics from functions of labels and outputs; their signature says which per-row columns they need."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial, wraps
from inspect import Parameter, cleandoc, signature
from numbers import Real
from typing import Any, ClassVar, ParamSpec, overload

import numpy as np
from sklearn.metrics import get_scorer_names

from moew.data._read_only import read_only
from moew.data._rows import LabelledRows
from moew.exceptions import Argument, InPython, InvalidInputError, UndefinedMetricError
from moew.metrics._predictions import Predictions
from moew.metrics._responses import respond
from moew.types import Array, Columns, FloatArray, Labels, Response, Rows

_NO_COLUMNS: Mapping[str, Any] = {}
_SPECIAL = ("pos_label", "sample_weight")

P = ParamSpec("P")


class ManyAtOnce(ABC):
    """A metric's function that can take the predictions of many candidates in one call."""

    @abstractmethod
    def many(self, y_true: Array, outputs: Array, *, sample_weight: FloatArray | None) -> FloatArray:
        """The values (m,) on labels (n,), outputs (m, n) and weights (n,), as m single calls give them."""


@dataclass(frozen=True)
class FunctionMetric:
    """A metric made by `make_metric`; see there. Call it with labels, outputs and per-row columns.

    `needs_two_classes` says that it is defined only for two classes, `needs_classes` that it compares labels
    and so cannot judge a regressor. `registry_name` is the name in METRICS of one of moew's own metrics: an
    error that those raise in a rehearsal they would raise for every model.
    """

    function: Callable[..., Any]
    response: Response = "decision"
    greater_is_better: bool = True
    name: str = ""
    pos_label: Any = None
    needs_two_classes: bool = False
    bounds: tuple[float, float] | None = None
    slow: bool = field(default=False, compare=False)  # does not change values
    version: str = ""
    needs_classes: bool = field(default=False, compare=False)
    registry_name: str = field(default="", compare=False)
    made_with: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    description: str = field(default="", compare=False, repr=False)  # else the docstring's first line
    direction_given: bool = field(default=True, compare=False, repr=False)  # else larger is better by default
    required_columns: tuple[str, ...] = field(init=False)
    optional_columns: tuple[str, ...] = field(init=False)
    takes_pos_label: bool = field(init=False)
    takes_sample_weight: bool = field(init=False)
    requires_sample_weight: bool = field(init=False)
    uses_features: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not callable(self.function) or isinstance(self.function, type):
            raise InvalidInputError(
                f"a metric needs a function (y_true, output, …), got {self.function!r}.", argument="function"
            )
        if self.response not in ("decision", "score", "proba"):
            raise InvalidInputError(
                f"response must be 'decision', 'score' or 'proba', got {self.response!r}.",
                argument="response",
            )
        if not isinstance(self.version, str):
            raise InvalidInputError(
                f"version must be a text such as '2', got {self.version!r}.", argument="version"
            )
        check_bounds(self.bounds)
        required, optional = extra_arguments(self.function)
        both = (*required, *optional)
        put = partial(object.__setattr__, self)  # how to set fields of a frozen record
        put("name", self.name or function_name(self.function))
        put("description", self.description or first_line(self.function))
        put("required_columns", tuple(n for n in required if n not in _SPECIAL))
        put("optional_columns", tuple(n for n in optional if n not in _SPECIAL))
        put("takes_pos_label", "pos_label" in both)
        put("takes_sample_weight", "sample_weight" in both)
        put("requires_sample_weight", "sample_weight" in required)

    def __call__(
        self,
        y_true: Labels,
        output: Any,
        columns: Columns = _NO_COLUMNS,
        *,
        pos_label: Any = None,
        sample_weight: Any = None,
    ) -> float:
        """The value on labels (n,), outputs (n,) or (n, C) and columns (name → (n,)), as one number.

        The metric's own `pos_label` overrides the one given here. NaN and infinities pass through.
        """
        arguments = {name: columns[name] for name in self.optional_columns if name in columns}
        for name in self.required_columns:
            if name not in columns:
                raise self._missing(columns)
            arguments[name] = columns[name]
        if self.takes_pos_label:
            positive = pos_label if self.pos_label is None else self.pos_label
            if positive is not None:
                arguments["pos_label"] = positive
        if self.takes_sample_weight and sample_weight is not None:
            arguments["sample_weight"] = sample_weight
        elif self.requires_sample_weight:
            raise missing_weights(self.name)
        # A function that writes into its arguments must not change the rows for later candidates.
        kept = {name: read_only(value) for name, value in arguments.items()}
        return one_number(self.function(read_only(y_true), read_only(output), **kept), self.name)

    def check_columns(
        self, columns: Columns, n_rows: int, argument: str = "metadata_val", *, weighted: bool = True
    ) -> None:
        """Raise if a column the metric needs is missing, or one it takes does not have `n_rows` rows.

        `argument` is the argument that the user passes columns as, `weighted` says whether the rows have
        sample weights.
        """
        if self.requires_sample_weight and not weighted:
            raise missing_weights(self.name)
        if any(name not in columns for name in self.required_columns):
            raise self._missing(columns, argument)
        for name in (*self.required_columns, *self.optional_columns):
            if name in columns:
                check_length(columns[name], n_rows, name, self.name)

    def respond(
        self,
        model: Any,
        X: Rows,
        y: Labels = None,
        columns: Columns = _NO_COLUMNS,
        *,
        pos_label: Any = None,
        sample_weight: Any = None,
        decided: Array | None = None,
    ) -> Predictions:
        """The predictions that the metric needs on the rows of X; `decided` (n,) replaces decisions."""
        if decided is not None and self.response == "decision":
            return Predictions({"decision": np.asarray(decided)})
        positive = pos_label if self.pos_label is None else self.pos_label
        # The columns of scores are the model's classes; models of other folds may have other classes.
        classes = None if self.response == "decision" else getattr(model, "classes_", None)
        answers: dict[str, Array] = {self.response: respond(model, X, self.response, positive)}
        return Predictions(answers, None if classes is None else np.asarray(classes))

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
        """The metric on rows whose predictions are recorded; `decided` (n,) replaces recorded decisions."""
        known = predictions.arrays[self.response]
        output = decided if decided is not None and self.response == "decision" else known
        return self(y, output, columns, pos_label=pos_label, sample_weight=sample_weight)

    @property
    def function_name(self) -> str:
        """The name of the function itself, whatever the metric is called."""
        return function_name(self.function)

    @property
    def takes_many(self) -> bool:
        """Whether `values` can score many candidates in one call."""
        return isinstance(self.function, ManyAtOnce)

    def values(self, outputs: Array, y: Labels, *, sample_weight: Any = None) -> FloatArray | None:
        """The metric (m,) of outputs (m, n), as `value` gives it for each; None if the function cannot."""
        if not isinstance(self.function, ManyAtOnce):
            return None
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return self.function.many(np.asarray(y), outputs, sample_weight=weight)

    @property
    def known_columns(self) -> tuple[str, ...]:
        """All per-row columns that the metric can take."""
        return (*self.required_columns, *self.optional_columns)

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
        """Call the metric on made-up predictions, and raise an error that every model would meet.

        `decided` (n,) are decisions of a decision rule. If a user's function fails on made-up predictions,
        that is ignored: the real ones may suit it.
        """
        if self.needs_classes and classes is None:
            raise InvalidInputError(
                Argument("metric", self.registry_name or self.name),
                " judges classes, but numbers are predicted here. Take a metric of numbers, such as ",
                Argument("metric", "r_squared"),
                ", or a classifier as ",
                Argument("estimator"),
                ".",
                argument="metric",
            )
        n = len(rows)
        tried: list[Array]
        if self.response == "decision":
            # Some metrics need decisions for a rare class, so constant decisions are tried, too.
            ends = np.unique(training_labels)[[-1, 0]]
            tried = [rng.choice(training_labels, n), *(np.full(n, label) for label in ends)]
            tried = tried if decided is None else [decided, *tried]
        else:
            shape = (n,) if classes is None or len(classes) == 2 else (n, len(classes))
            numbers = rng.random(shape)
            tried = [numbers if numbers.ndim == 1 else numbers / numbers.sum(axis=-1, keepdims=True)]
        first: Exception | None = None
        for output in tried:
            try:
                self(rows.y, output, rows.columns, pos_label=pos_label, sample_weight=rows.sample_weight)
                return
            except (InvalidInputError, UndefinedMetricError) as error:
                first = error
            except Exception as error:
                if self.registry_name:
                    raise cannot_judge(self.registry_name, training_labels, classes, error) from error
                return
        if first is not None:
            raise first

    def _missing(self, columns: Columns, argument: str = "metadata_val") -> InvalidInputError:
        missing = [name for name in self.required_columns if name not in columns]
        return missing_columns(self.name, missing, columns, argument)


def of_moew(factory: Callable[P, FunctionMetric]) -> Callable[P, FunctionMetric]:
    """Decorator of the functions in METRICS: the metrics they make know their name there and what they were
    made with."""

    @wraps(factory)
    def make(*args: P.args, **kwargs: P.kwargs) -> FunctionMetric:
        bound = signature(factory).bind(*args, **kwargs)
        made_with = dict(bound.arguments)
        return replace(
            factory(*args, **kwargs),
            registry_name=factory.__name__,
            made_with=made_with,
            description=first_line(factory),
        )

    return make


@overload
def make_metric(
    function: Callable[..., Any],
    *,
    response: Response = "decision",
    greater_is_better: bool | None = None,
    name: str | None = None,
    pos_label: Any = None,
    bounds: tuple[float, float] | None = None,
    slow: bool = False,
    version: str = "",
) -> FunctionMetric: ...


@overload
def make_metric(
    *,
    response: Response = "decision",
    greater_is_better: bool | None = None,
    name: str | None = None,
    pos_label: Any = None,
    bounds: tuple[float, float] | None = None,
    slow: bool = False,
    version: str = "",
) -> Callable[[Callable[..., Any]], FunctionMetric]: ...


def make_metric(
    function: Callable[..., Any] | None = None,
    *,
    response: Response = "decision",
    greater_is_better: bool | None = None,
    name: str | None = None,
    pos_label: Any = None,
    bounds: tuple[float, float] | None = None,
    slow: bool = False,
    version: str = "",
) -> FunctionMetric | Callable[[Callable[..., Any]], FunctionMetric]:
    """Make a metric from `function(y_true, output, …) → number`; without a function, return a decorator.

    `response` says what `output` is: "decision", class labels (n,) or, in regression, predictions (n,);
    "score" or "proba", those of the positive class (n,), or (n, C) for more than two classes.

    `greater_is_better` is the metric's direction. Without it larger is better, and a function whose name
    sounds otherwise (cost, error, loss) gets a warning when a search begins.

    `name` is what results and reports call the metric, such as "money lost per day"; by default the
    function's name. The report also shows the first line of the function's docstring.

    `bounds` are the lowest and the highest value the metric can have, where known (infinities allowed).
    `slow` says that a call takes long (it starts a program, calls a service): error margins are then
    estimated from fewer resamples of the rows.

    A stored study is only continued with the same metric. It sees the function's code, the functions it
    calls, and the globals and objects they read. It cannot see what comes from open files, services or other
    programs: `version` answers for that, and is to be changed with it.

    Further arguments are per-row columns, looked up by name in `metadata_val`: those without a default are
    required, those with one are optional. `sample_weight` gets the weights of the validation rows if
    any were given, `pos_label` the positive class: the one set here, else the second of two classes.

    Examples
    --------
    >>> @make_metric(greater_is_better=False)
    ... def money_lost(y_true, decision, cost):
    ...     return sum(c for label, decided, c in zip(y_true, decision, cost) if label != decided)
    >>> money_lost.name, money_lost.required_columns
    ('money_lost', ('cost',))
    >>> money_lost([0, 1, 1], [0, 0, 0], {"cost": [5.0, 2.0, 1.0]})
    3.0
    """
    if function is None:
        return partial(
            make_metric,
            response=response,
            greater_is_better=greater_is_better,
            name=name,
            pos_label=pos_label,
            bounds=bounds,
            slow=slow,
            version=version,
        )
    if name is not None and not (isinstance(name, str) and name.strip()):
        raise InvalidInputError(
            f"name must be a text such as 'money lost per day', got {name!r}.", argument="name"
        )
    return FunctionMetric(
        function,
        response,
        True if greater_is_better is None else greater_is_better,
        name or "",
        pos_label,
        bounds=bounds,
        slow=slow,
        version=version,
        direction_given=greater_is_better is not None,
    )


def extra_arguments(function: Callable[..., Any]) -> tuple[list[str], list[str]]:
    """Names of a function's arguments after the first two: (those without, those with a default)."""
    try:
        parameters = list(signature(function).parameters.values())
    except (TypeError, ValueError):  # some functions written in C have no signature
        return [], []
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    takes_any = any(p.kind is Parameter.VAR_POSITIONAL for p in parameters)
    if len([p for p in parameters if p.kind in positional]) < 2 and not takes_any:
        raise InvalidInputError(
            f"a metric is a function of (y_true, output, …), but {function_name(function)!r} takes "
            f"{[p.name for p in parameters]!r}.",
            argument="function",
        )
    rest = [p for i, p in enumerate(parameters) if not (i < 2 and p.kind in positional)]
    fixed = function.keywords if isinstance(function, partial) else {}  # already set by the user
    named = [p for p in rest if p.kind in (*positional, Parameter.KEYWORD_ONLY) and p.name not in fixed]
    if unnamed := [p.name for p in named if p.kind is Parameter.POSITIONAL_ONLY]:
        raise InvalidInputError(
            f"columns are passed by name, but {function_name(function)!r} takes {unnamed!r} only by "
            "position.",
            argument="function",
        )
    required = [p.name for p in named if p.default is Parameter.empty]
    return required, [p.name for p in named if p.default is not Parameter.empty]


def function_name(function: Any) -> str:
    """The name of a metric's function, for messages."""
    if isinstance(function, partial):
        return function_name(function.func)
    return str(getattr(function, "__name__", None) or type(function).__name__)


def first_line(function: Any) -> str:
    """The first line of a function's docstring; empty if it has none, or is an object that can be called."""
    while isinstance(function, partial):
        function = function.func
    doc = function.__doc__ if hasattr(function, "__qualname__") else None
    return " ".join(cleandoc(doc).split("\n", 1)[0].split()) if isinstance(doc, str) else ""


def check_bounds(bounds: Any) -> None:
    """Raise unless bounds are None or (lowest, highest)."""
    if bounds is None:
        return
    numbers = isinstance(bounds, tuple) and all(isinstance(b, Real) for b in bounds)
    if not (numbers and len(bounds) == 2 and bounds[0] < bounds[1]):
        raise InvalidInputError(
            f"bounds must be None or (lowest, highest), got {bounds!r}.", argument="bounds"
        )


def one_number(result: Any, name: str) -> float:
    """The result of a metric as a float; raises if it is not one real number."""
    if isinstance(result, float | int):
        return float(result)
    try:
        array = np.asarray(result)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.size == 1:
        if array.dtype.kind in "biuf":
            return float(array.reshape(()))
        if isinstance(result, Real | Decimal):
            return float(result)
    shape = f" of shape {array.shape}" if array.ndim else ""
    text = repr(result)
    shown = text if len(text) <= 80 else text[:77] + "…"
    raise InvalidInputError(
        f"the metric {name!r} must return one number, it returned {type(result).__name__}{shape}: {shown}.",
        argument="metric",
    )


def cannot_judge(
    metric_name: str, labels: Labels, classes: Array | None, error: Exception
) -> InvalidInputError:
    """The error for a metric that fails on these labels; it names related scorers (f1_macro for f1)."""
    different = np.unique(labels)
    task = "regression" if classes is None else "classification"
    related = [name for name in get_scorer_names() if name.startswith(f"{metric_name}_")]
    related = [name for name in related if not name.endswith("_samples")]
    no_numbers = isinstance(error, ValueError) and "convert string to float" in str(error)
    why = ": it needs labels that are numbers." if no_numbers else f": {error}"
    why = f"; related ones are {', '.join(related)}." if related else why
    return InvalidInputError(
        Argument("metric", metric_name),
        f" cannot judge a {task} with {len(different)} different labels, such as "
        f"{different[:3].tolist()}{why}",
        argument="metric",
    )


def missing_weights(metric_name: str) -> InvalidInputError:
    """The error for missing sample weights that the metric requires."""
    return InvalidInputError(
        f"the metric {metric_name!r} cannot do without sample weights of the rows it is evaluated on; pass "
        "them (",
        InPython("sample_weight_val=… with X_val, else "),
        Argument("sample_weight"),
        InPython("=…"),
        "), or give its argument a default.",
        argument="sample_weight",
    )


def check_length(column: Any, n_rows: int, column_name: str, metric_name: str) -> None:
    """Raise unless `column` has a value for each of `n_rows` rows."""
    shape = np.shape(column)
    if not shape or shape[0] != n_rows:
        raise InvalidInputError(
            f"the metric {metric_name!r} needs one value of {column_name!r} for each of the {n_rows} rows it "
            f"is evaluated on, got {f'{shape[0]} values' if shape else 'a single value'}.",
            argument=column_name,
        )


def missing_columns(
    metric_name: str, missing: list[str], columns: Columns, argument: str
) -> InvalidInputError:
    """The error for columns that the metric requires and that were not passed."""
    there = f"only {sorted(columns)!r}" if columns else "none"
    how = ", ".join(f"{name!r}: …" for name in missing)
    return InvalidInputError(
        f"the metric {metric_name!r} needs {missing!r} for each row, but the columns passed are {there}; "
        "pass ",
        Argument(argument),
        InPython(f"={{{how}}}"),
        ".",
        argument="metadata",
    )
