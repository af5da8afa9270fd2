"""What a model's `fit` gets besides rows and weights: the user's fit parameters, and rows to stop by."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _is_arraylike, _num_samples

from moew.data._read_only import read_only
from moew.exceptions import Argument, InvalidInputError, UnsupportedEstimatorError
from moew.training._eval_rows import MARGINS, EvalSplit, eval_names, last_step
from moew.training._weight_name import fit_arguments, of_last_step, takes
from moew.types import BoolArray, IntArray

_EVAL_NAMES = ("eval_set", "eval_X", "X_val")


@dataclass(frozen=True)
class FitParams:
    """The user's arguments of `fit`, those of each row apart from the others, and the rows to stop by."""

    as_given: Mapping[str, Any] = field(default_factory=dict)
    per_row: Mapping[str, Any] = field(default_factory=dict)  # name → n values
    split: EvalSplit | None = None

    def __bool__(self) -> bool:
        return bool(self.as_given or self.per_row or self.split is not None)

    def take(self, rows: IntArray) -> FitParams:
        """Those of the rows with these numbers; before there are rows to stop by."""
        return replace(self, per_row={name: _safe_indexing(v, rows) for name, v in self.per_row.items()})

    def fold(self, fold: IntArray | None) -> FoldParams:
        """What the models of a fold (None: all rows) get."""
        if self.split is None:
            return FoldParams(fold, self._cut(fold))
        aside = self.split(fold)
        numbers = np.arange(len(aside)) if fold is None else fold
        return FoldParams(
            numbers[~aside], self._cut(numbers[~aside]), aside, numbers[aside], self._cut(numbers[aside])
        )

    def _cut(self, rows: IntArray | None) -> Mapping[str, Any]:
        return self.per_row if rows is None else self.take(rows).per_row


@dataclass(frozen=True)
class FoldParams:
    """The rows of a fold that are trained on (None: all) with the values of each, and those set aside."""

    train: IntArray | None
    per_row: Mapping[str, Any]
    is_aside: BoolArray | None = None  # of the rows of the fold
    aside: IntArray | None = None  # numbers among all training rows
    per_row_aside: Mapping[str, Any] = field(default_factory=dict)


def resolve_fit_params(
    given: Any, estimator: Any, weight_name: str, n_rows: int, *, routed: bool = False
) -> FitParams:
    """The user's fit parameters, checked against the estimator and sorted by scikit-learn's convention: what
    has as many values as there are rows is of the rows.

    `routed` says that weights reach the models by metadata routing, which moew has set up for them alone.
    """
    if given is None:
        return FitParams()
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise _refused(f"fit_params must map names of arguments of the model's fit to values, got {given!r}.")
    if given and hasattr(estimator, "fit_many"):
        raise _refused(
            f"fit_params: {type(estimator).__name__} trains many candidates at once by fit_many, which takes "
            "rows and weights alone. Set what it needs as its parameters."
        )
    if given and routed:
        raise _refused(
            f"fit_params cannot reach the models inside of {type(last_step(estimator)).__name__}. Switch on "
            "scikit-learn's metadata routing, let the models request them by set_fit_request, and pass "
            "them by name."
        )
    as_given: dict[str, Any] = {}
    per_row: dict[str, Any] = {}
    for bare, value in given.items():
        name = bare if "__" in bare or weight_name.count("__") == 0 else of_last_step(estimator, bare)
        _check(bare, name, value, estimator, weight_name, n_rows)
        of_rows = _is_of_rows(value, n_rows)
        (per_row if of_rows else as_given)[name] = value if of_rows else _checked_copy(bare, value)
    return FitParams(as_given, per_row)


def check_takes_eval_rows(estimator: Any, params: FitParams, weight_name: str) -> None:
    """Raise unless the estimator's `fit` takes rows to stop by, and gets no others."""
    given = [name for name in params.as_given if name.rpartition("__")[2] in _EVAL_NAMES]
    if given:
        raise _refused(
            f"fit_params has {given[0]!r}, and eval_share sets rows aside for the same: leave one out."
        )
    model = last_step(estimator)
    if eval_names(model) is not None:
        _check_passes_on(estimator, weight_name)
        return
    own = " set its early_stopping" if "early_stopping" in model.get_params() else " leave it out"
    raise UnsupportedEstimatorError(
        Argument("eval_share"),
        " is for models whose fit takes rows to stop by, as LightGBM's, XGBoost's, CatBoost's and "
        f"HistGradientBoosting's do, alone or as the last step of a Pipeline, and not {type(model).__name__}:"
        f"{own}.",
        argument="eval_share",
    )


def _check_passes_on(estimator: Any, weight_name: str) -> None:
    if isinstance(estimator, Pipeline) and "__" not in weight_name:
        raise InvalidInputError(
            Argument("eval_share"),
            " is not for a Pipeline that routes metadata: switch enable_metadata_routing off, or name the "
            "weights, ",
            Argument("sample_weight_name", of_last_step(estimator, "sample_weight")),
            ".",
            argument="eval_share",
        )


def fresh(value: Any) -> Any:
    """A copy that a training may change; arrays and tables are not copied, but read-only or copied in full
    where that is not possible."""
    if hasattr(value, "shape"):
        return read_only(value)
    if type(value) in (list, tuple):
        return type(value)(map(fresh, value))
    if type(value) is dict:
        return {key: fresh(item) for key, item in value.items()}
    return deepcopy(value)


def _checked_copy(name: str, value: Any) -> Any:
    """A copy of what the user passed, so that no training changes it."""
    try:
        return fresh(value)
    except Exception as error:
        raise _refused(
            f"fit_params[{name!r}] cannot be copied, and each training needs its own: {error}."
        ) from error


def _is_of_rows(value: Any, n_rows: int) -> bool:
    if isinstance(value, str | bytes | Mapping) or not (_is_arraylike(value) or hasattr(value, "tocsr")):
        return False
    try:
        return bool(_num_samples(value) == n_rows)
    except TypeError:  # a number as an array
        return False


def _check(bare: str, name: str, value: Any, estimator: Any, weight_name: str, n_rows: int) -> None:
    if name == weight_name:
        raise _refused(
            f"fit_params has {bare!r}, which is what the learned weights are passed as. Pass weights of your "
            "own as sample_weight; they are multiplied."
        )
    # A Pipeline that routes metadata itself looks at what its steps request.
    routes = isinstance(estimator, Pipeline) and "__" not in weight_name
    if not routes and not takes(estimator, name):
        model = last_step(estimator)
        raise _refused(
            f"fit_params has {bare!r}, which {type(model).__name__}.fit does not take; it takes "
            f"{', '.join(fit_arguments(model))}."
        )
    if name.rpartition("__")[2] in MARGINS and not _is_of_rows(value, n_rows):
        raise _refused(
            f"fit_params[{bare!r}] must hold a value, or a row of values, for each of the {n_rows} training "
            f"rows, got {value!r}."
        )


def _refused(message: str) -> InvalidInputError:
    return InvalidInputError(message, argument="fit_params")
