"""Metrics from functions of labels and outputs; their signature says which per-row columns they need."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from inspect import Parameter, cleandoc, signature
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np

from moew._util.checks import Wanted, check_parameters
from moew.data import LabelledRows, is_missing, read_only
from moew.exceptions import Argument, InPython, InvalidInputError, MoewWarning
from moew.metrics._predictions import Predictions, respond
from moew.types import Array, Columns, FloatArray, Labels, Response

if TYPE_CHECKING:
    from moew.metrics._resolve import Metric

_NO_COLUMNS: Mapping[str, Any] = {}
BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_RESPONSE = Wanted("must be 'decision', 'score' or 'proba'", ("decision", "score", "proba").__contains__)
_BOUNDS = Wanted("must be None or (lowest, highest)", lambda bounds: bounds is None or _are_bounds(bounds))
_VERSION = Wanted("must be a text such as '2'", lambda value: isinstance(value, str))
_NAME = Wanted(
    "must be a text such as 'money lost per day'",
    lambda name: name is None or (isinstance(name, str) and name.strip()),
)


def as_weights(sample_weight: Any) -> FloatArray | None:
    """The weights (n,) as float64, or None."""
    return None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)


@dataclass(frozen=True)
class FunctionMetric:
    """A metric made by `make_metric`; see there. Call it with labels, outputs and per-row columns.

    `needs_two_classes` says that it is defined only for two classes, `needs_classes` that it compares labels
    and so cannot evaluate a regressor. `registry_name` is the name in METRICS of one of moew's own metrics:
    an error that those raise in a rehearsal they would raise for every model. `settings` are arguments of
    the function that the metric fixes. With `takes_many` the function gets outputs (m, n) of many candidates
    and gives their values (m,)."""

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
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    takes_many: bool = field(default=False, compare=False)
    registry_name: str = field(default="", compare=False)
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
        check_parameters(self, response=_RESPONSE, version=_VERSION, bounds=_BOUNDS)
        _check_arguments(self.function)
        fixed = self.function.keywords if isinstance(self.function, partial) else ()  # by the user
        taken = further_arguments(self.function, 2, {*fixed, *self.settings})
        columns = [name for name in taken if name not in ("pos_label", "sample_weight")]
        put = partial(object.__setattr__, self)  # how to set fields of a frozen record
        put("name", self.name or self.function_name)
        put("description", self.description or first_line(self.function))
        put("required_columns", tuple(name for name in columns if not taken[name]))
        put("optional_columns", tuple(name for name in columns if taken[name]))
        put("takes_pos_label", "pos_label" in taken)
        put("takes_sample_weight", "sample_weight" in taken)
        put("requires_sample_weight", taken.get("sample_weight") is False)

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
        check_there(self.name, self.required_columns, columns)
        arguments = {name: columns[name] for name in self.known_columns if name in columns}
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
        if self.takes_many:
            return float(self.function(y_true, np.asarray(output)[None], **self.settings, **kept)[0])
        found = self.function(read_only(y_true), read_only(output), **self.settings, **kept)
        return one_number(found, self.name)

    def check_columns(self, rows: LabelledRows, argument: str = "validation") -> None:
        """Raise if a column or the weights that the metric needs are missing, or values in those it takes."""
        check_rows(self, self.required_columns, self.known_columns, rows, argument)

    def respond(
        self, model: Any, rows: LabelledRows, *, pos_label: Any = None, decided: Array | None = None
    ) -> Predictions:
        """The predictions that the metric needs on the rows; `decided` (n,) replaces decisions."""
        if decided is not None and self.response == "decision":
            return Predictions({"decision": np.asarray(decided)})
        positive = pos_label if self.pos_label is None else self.pos_label
        # The columns of scores are the model's classes; models of other folds may have other classes.
        classes = None if self.response == "decision" else getattr(model, "classes_", None)
        answers: dict[str, Array] = {self.response: respond(model, rows.X, self.response, positive)}
        return Predictions(answers, None if classes is None else np.asarray(classes))

    def value(
        self,
        predictions: Predictions,
        rows: LabelledRows,
        *,
        pos_label: Any = None,
        decided: Array | None = None,
    ) -> float:
        """The metric on rows whose predictions are recorded; `decided` (n,) replaces recorded decisions."""
        known = predictions.arrays[self.response]
        output = decided if decided is not None and self.response == "decision" else known
        return self(rows.y, output, rows.columns, pos_label=pos_label, sample_weight=rows.sample_weight)

    def values(self, outputs: Array, rows: LabelledRows) -> FloatArray | None:
        """The metric (m,) of outputs (m, n), as `value` gives it for each; None if the function cannot."""
        if not self.takes_many:
            return None
        return np.asarray(self.function(rows.y, outputs, **self.settings, sample_weight=rows.sample_weight))

    @property
    def function_name(self) -> str:
        """The name of the function itself, whatever the metric is called."""
        return function_name(self.function)

    @property
    def known_columns(self) -> tuple[str, ...]:
        """All per-row columns that the metric can take."""
        return (*self.required_columns, *self.optional_columns)

    @property
    def made_with(self) -> dict[str, Any] | None:
        """The arguments by which the function in METRICS makes this metric; None if it is none of moew's."""
        positive = {} if self.pos_label is None else {"pos_label": self.pos_label}
        return {**self.settings, **positive} if self.registry_name else None

    def __repr__(self) -> str:
        """As Python makes it, or with the name and the direction of a function of the user's."""
        if self.made_with is not None:
            given = (f"{name}={value!r}" for name, value in self.made_with.items() if value is not None)
            return f"{self.registry_name}({', '.join(given)})"
        return f"FunctionMetric({self.name!r}, greater_is_better={self.greater_is_better})"


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

    Further arguments are per-row columns, looked up by name in `columns`: those without a default are
    required, those with one are optional. `sample_weight` gets the weights of the rows if any were given;
    without this argument, rows are drawn in proportion to their weights. `pos_label` gets the positive class:
    the one set here, else the second of two classes.

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
    _NAME.check("name", name)
    make = partial(
        FunctionMetric,
        response=response,
        greater_is_better=True if greater_is_better is None else greater_is_better,
        name=name or "",
        pos_label=pos_label,
        bounds=bounds,
        slow=slow,
        version=version,
        direction_given=greater_is_better is not None,
    )
    return make if function is None else make(function)


def parameters_of(function: Any) -> list[Parameter] | None:
    """The parameters of a function; None if they cannot be seen, as of some functions written in C."""
    try:
        return list(signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def further_arguments(function: Any, n_first: int, fixed: Collection[str]) -> dict[str, bool]:
    """Names of arguments after the first ones, without `fixed` ones → whether they have a default."""
    rest = [
        p
        for i, p in enumerate(parameters_of(function) or [])
        if p.kind is Parameter.KEYWORD_ONLY or (p.kind is Parameter.POSITIONAL_OR_KEYWORD and i >= n_first)
    ]
    return {p.name: p.default is not Parameter.empty for p in rest if p.name not in fixed}


def _check_arguments(function: Callable[..., Any]) -> None:
    """Raise unless a function takes labels and outputs by position, and columns by name."""
    if (parameters := parameters_of(function)) is None:
        return
    kinds = [p.kind for p in parameters]
    if len([kind for kind in kinds if kind in BY_POSITION]) < 2 and Parameter.VAR_POSITIONAL not in kinds:
        raise InvalidInputError(
            f"a metric is a function of (y_true, output, …), but {function_name(function)!r} takes "
            f"{[p.name for p in parameters]!r}.",
            argument="function",
        )
    if unnamed := [p.name for p in parameters[2:] if p.kind is Parameter.POSITIONAL_ONLY]:
        raise InvalidInputError(
            f"columns are passed by name, but {function_name(function)!r} takes {unnamed!r} only by "
            "position.",
            argument="function",
        )


def inner_function(function: Any) -> Any:
    """The function in a partial one, or the function itself."""
    return inner_function(function.func) if isinstance(function, partial) else function


def function_name(function: Any) -> str:
    """The name of a metric's function, for messages."""
    inner = inner_function(function)
    return str(getattr(inner, "__name__", None) or type(inner).__name__)


def first_line(function: Any) -> str:
    """The first line of a function's docstring; empty if it has none, or is an object that can be called."""
    inner = inner_function(function)
    doc = inner.__doc__ if hasattr(inner, "__qualname__") else None
    return " ".join(cleandoc(doc).split("\n", 1)[0].split()) if isinstance(doc, str) else ""


def _are_bounds(bounds: Any) -> bool:
    numbers = isinstance(bounds, tuple) and all(isinstance(b, Real) for b in bounds)
    return numbers and len(bounds) == 2 and bounds[0] < bounds[1]


def one_number(result: Any, name: str) -> float:
    """The result of a metric as a float; raises if it is not one real number."""
    array = np.empty(0)
    with suppress(TypeError, ValueError):  # of lists in a list
        array = np.asarray(result)
    if array.size == 1 and (array.dtype.kind in "biuf" or isinstance(result, Real | Decimal)):
        return float(array.reshape(()))
    shape = f" of shape {array.shape}" if array.ndim else ""
    text = repr(result)
    shown = text if len(text) <= 80 else text[:77] + "…"
    raise InvalidInputError(
        f"the metric {name!r} must return one number, it returned {type(result).__name__}{shape}: {shown}.",
        argument="metric",
    )


def missing_weights(metric_name: str) -> InvalidInputError:
    """The error for missing sample weights that the metric requires."""
    return InvalidInputError(
        f"the metric {metric_name!r} cannot do without sample weights of the rows it is evaluated on; pass "
        "them (",
        Argument("sample_weight"),
        InPython("=…, and in validation=Rows(…) if there is one"),
        "), or give its argument a default.",
        argument="sample_weight",
    )


def check_there(
    metric_name: str, required: Iterable[str], columns: Columns, argument: str = "validation"
) -> None:
    """Raise if a column that the metric requires is not among those that the user passed as `argument`."""
    if not (missing := [name for name in required if name not in columns]):
        return
    there = f"only {sorted(columns)!r}" if columns else "none"
    how = ", ".join(f"{name!r}: …" for name in missing)
    of = "" if argument == "columns" else f" in {argument}=Rows(…)"
    raise InvalidInputError(
        f"the metric {metric_name!r} needs {missing!r} for each row, but the columns passed are {there}; "
        "pass ",
        Argument("columns"),
        InPython(f"={{{how}}}{of}"),
        ".",
        argument="columns",
    )


def check_rows(
    metric: Metric, required: Iterable[str], taken: Iterable[str], rows: LabelledRows, argument: str
) -> None:
    """Raise unless the rows have the weights and the columns that the metric requires, and a value for each
    row in those that it takes."""
    if getattr(metric, "requires_sample_weight", False) and rows.sample_weight is None:
        raise missing_weights(metric.name)
    check_there(metric.name, required, rows.columns, argument)
    n_rows = len(rows)
    for name in taken:
        if name not in rows.columns:
            continue
        values = np.asarray(rows.columns[name])
        if values.shape[:1] != (n_rows,):
            raise InvalidInputError(
                f"the metric {metric.name!r} needs one value of {name!r} for each of the {n_rows} rows it is "
                f"evaluated on, got {f'{len(values)} values' if values.ndim else 'a single value'}.",
                argument=name,
            )
        if n_missing := int(is_missing(values).sum()):
            raise InvalidInputError(
                f"the metric {metric.name!r} needs {name!r} for each row, but it is missing (NaN or None) "
                f"in {n_missing} of the {n_rows} rows; fill in these values, or leave these rows out.",
                argument=name,
            )


_SMALLER_IS_BETTER = re.compile(
    "costs?|errors?|err|loss(es)?|lost|regrets?|risks?|penalty|penalties|damages?|deviance|brier|mae|r?mse|rmsle"
    "|s?mape|fpr|fnr|wrong"
)
_TURNED = re.compile("neg|negative|negated|minus|inverse|saved|savings|avoided|reduction|reduced|gain")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")  # of snake_case, camelCase and sentences


def sounds_smaller(*names: str) -> bool:
    """Whether one of the names has a word such as cost, error or loss, and none that turns it round."""
    words = [word.lower() for name in names for word in _WORD.findall(name)]
    return any(map(_SMALLER_IS_BETTER.fullmatch, words)) and not any(map(_TURNED.fullmatch, words))


def hint_of_direction(metric: Any) -> str:
    """Warn if nobody said that the metric is maximised and its name sounds as if it should not be.

    Returns a note on it for the result; it is empty where there is nothing to note.
    """
    if getattr(metric, "direction_given", True):
        return ""
    name, function = metric.name, metric.function_name
    if not sounds_smaller(name, function):
        return ""
    warning = MoewWarning(
        f"{name} is maximised; if smaller is better, ",
        InPython(f"wrap it: make_metric({function}, "),
        Argument("greater_is_better", False),
        InPython(")"),
        " says so, and ",
        Argument("greater_is_better", True),
        " that larger is.",
        argument="metric",
    )
    warnings.warn(warning, stacklevel=4)
    return f"{name} is maximised: larger values count as better. Its name sounds as if smaller ones were."
