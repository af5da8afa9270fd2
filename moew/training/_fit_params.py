"""What a model's `fit` takes: its weights, the columns of X, the user's fit parameters, rows to stop by."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _is_arraylike, _num_samples

from moew._util.seeds import generator
from moew.data import deal_groups, read_only
from moew.exceptions import Argument, InPython, InvalidInputError, UnsupportedEstimatorError
from moew.types import BoolArray, Features, FloatArray, IntArray, Labels

AUTO = "auto"
# What `fit` calls a first prediction of each row, and the same of eval rows.
MARGINS = {"init_score": "eval_init_score", "base_margin": "base_margin_eval_set", "baseline": "baseline"}
_EVAL_NAMES = ("eval_set", "eval_X", "X_val")


def weight_name_of(estimator: Any, given: str = AUTO) -> str:
    """The name of the weights in the estimator's `fit`, for "auto" that of a Pipeline's last step; raises if
    it takes none. With metadata routing, a Pipeline gets "sample_weight", and its steps what they request."""
    name = "sample_weight" if given == AUTO else given
    if isinstance(estimator, Pipeline) and "__" not in name:
        if get_config()["enable_metadata_routing"]:
            return name  # the Pipeline itself checks what its steps requested
        of_step = of_last_step(estimator, name)
        _check_takes_weights(estimator, of_step)
        if given == AUTO:
            return of_step
        raise UnsupportedEstimatorError(
            "a Pipeline takes weights by step: leave out ",
            Argument("sample_weight_name"),
            ", or set ",
            Argument("sample_weight_name", of_step),
            ".",
            argument="sample_weight_name",
        )
    _check_takes_weights(estimator, name)
    return name


def of_last_step(estimator: Any, name: str) -> str:
    """The name of an argument of `fit` behind the names of a Pipeline's last step; unchanged for others."""
    if not isinstance(estimator, Pipeline):
        return name
    step, model = estimator.steps[-1]
    return f"{step}__{of_last_step(model, name)}"


def _receiver(estimator: Any, name: str) -> tuple[Any, str]:
    """The model that gets this argument of `fit`, None where there is no such step, and its name there."""
    while isinstance(estimator, Pipeline):
        step, _, name = name.partition("__")
        estimator = estimator.named_steps.get(step)
    return estimator, name


def takes(estimator: Any, name: str) -> bool:
    """Whether the estimator's `fit` takes an argument of that name, for a Pipeline that of its step."""
    model, argument = _receiver(estimator, name)
    if not hasattr(model, "fit"):
        return False
    parameters = inspect.signature(model.fit).parameters
    return argument in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def fit_arguments(estimator: Any) -> list[str]:
    """The names of what the estimator's `fit` takes besides X and y."""
    parameters = inspect.signature(estimator.fit).parameters.values()
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)][2:]


def _check_takes_weights(estimator: Any, name: str) -> None:
    model, argument = _receiver(estimator, name)
    if model is None:
        raise UnsupportedEstimatorError(
            f"the Pipeline has no step {name.rpartition('__')[0]!r} (",
            Argument("sample_weight_name", name),
            f"); its steps are {list(estimator.named_steps)}.",
            argument="sample_weight_name",
        )
    if not hasattr(model, "fit"):
        raise UnsupportedEstimatorError(
            f"the Pipeline ends with {model!r}, which cannot be trained.", argument="estimator"
        )
    if not takes(model, argument):
        raise UnsupportedEstimatorError(
            f"{type(model).__name__}.fit takes no {argument!r}, so weights would be ignored. Use an "
            "estimator whose fit takes sample weights",
            InPython(", or name its argument with sample_weight_name"),
            ".",
            argument="estimator",
        )


def is_of_library(model: Any, library: str) -> bool:
    """Whether the model's class, or one that it inherits from, is of that library."""
    return any(base.__module__.partition(".")[0] == library for base in type(model).__mro__)


def check_takes_columns(model: Any, X: Features, fit_params: Mapping[str, Any]) -> None:
    """Raise if X is a pandas frame with columns that the model, one of a boosting library, does not take;
    other models, and Pipelines, say so themselves."""
    if not (hasattr(X, "dtypes") and hasattr(X, "iloc")):
        return
    kinds = {name: str(X[name].dtype) for name in X.columns}
    texts = [name for name, kind in kinds.items() if kind.startswith(("object", "str"))]
    categories = [name for name, kind in kinds.items() if kind == "category"]
    refused = list[Any]()
    as_categories = _code(f"X = X.astype({dict.fromkeys(texts, 'category')!r})")
    advice = f"make them categories, {as_categories}"
    if is_of_library(model, "lightgbm"):
        refused = texts
    elif is_of_library(model, "xgboost"):
        refused = texts
        if not model.get_params().get("enable_categorical"):
            enable = f"set {type(model).__name__}(enable_categorical=True)"
            refused, advice = (texts, f"{advice}, and {enable}") if texts else (categories, enable)
    elif is_of_library(model, "catboost"):
        known = {column for columns in _catboost_columns(model, fit_params).values() for column in columns}
        places = {name: i for i, name in enumerate(kinds)}
        refused = [name for name in (*texts, *categories) if not {name, places[name]} & known]
        cat_features = _code(f"fit_params={{'cat_features': {refused}}}")
        advice = f"name them in fit(…, {cat_features})"
    elif isinstance(model, HistGradientBoostingClassifier | HistGradientBoostingRegressor):
        present = [X[name].dropna() for name in texts]
        holds_texts = any(len(column) > 0 and isinstance(column.iloc[0], str) for column in present)
        refused = texts if holds_texts and isinstance(model.categorical_features, str) else []
    if refused:
        raise InvalidInputError(
            f"{type(model).__name__} does not take the columns {refused[:5]} as they are: {advice}, or put a "
            "transformer before the model, in a Pipeline.",
            argument="X",
        )


def _code(text: str) -> str:
    return text.replace("'", '"')


@dataclass(frozen=True)
class EvalSplit:
    """Sets aside a share of the rows of any fold, the same for all candidates, with all classes as they are
    in the fold and groups whole."""

    share: float
    seed: int
    strata: IntArray  # (n,), codes of the training rows
    groups: IntArray | None = None  # (n,)

    def __call__(self, fold: IntArray | None) -> BoolArray:
        """Which rows of the fold (None: all rows) are set aside, in its order."""
        every = np.arange(len(self.strata)) if fold is None else fold
        numbers = np.unique(every)  # a splitter may repeat rows
        strata, groups = self.strata[numbers], None if self.groups is None else self.groups[numbers]
        rng, units = generator(self.seed, "eval rows"), numbers if groups is None else groups
        free = ~_needed(strata, units)
        aside: IntArray = numbers[free]
        if groups is not None and len(np.unique(groups[free])) > 1:
            aside = aside[deal_groups(strata[free], groups[free], self.share, rng)]
        elif groups is not None:
            aside = aside[:0]
        else:
            aside = aside[_dealt(strata[free], self.share, rng)]
        if not 0 < len(aside) < len(numbers):
            unit = "rows" if groups is None else "groups of rows"
            raise InvalidInputError(
                Argument("eval_share", self.share),
                f" leaves no {unit} to stop by, or none to train on, of the {len(numbers)} rows of a fold: "
                f"set another share, or give more {unit}.",
            )
        return np.isin(every, aside)


def _needed(strata: IntArray, units: IntArray) -> BoolArray:
    """The rows (n,) of units, rows or groups, that alone have a stratum: a model is not asked about a class
    that it was not trained on."""
    _, codes = np.unique(strata, return_inverse=True)
    codes, owners = np.unique(np.stack([codes, units]), axis=1)
    return np.isin(units, owners[np.bincount(codes)[codes] == 1])


def _dealt(strata: IntArray, share: float, rng: np.random.Generator) -> IntArray:
    """The places of a random share of every stratum, rounded."""
    order = rng.permutation(len(strata))
    parts = []
    for code in np.unique(strata):
        of_code = order[strata[order] == code]
        parts.append(of_code[: min(round(share * len(of_code)), len(of_code) - 1)])
    return np.concatenate([np.empty(0, dtype=np.intp), *parts])


@dataclass(frozen=True)
class EvalRows:
    """The rows set aside in the trainings of a fold, and what one candidate gets of them."""

    places: BoolArray  # which of the rows of the fold they are
    numbers: IntArray  # (m,), among all training rows
    margins: Mapping[str, Any]  # a first prediction of each, by name in `fit`
    weight: FloatArray | None = None  # (m,), the candidate's

    def of(self, X: Features, y: Labels) -> tuple[Features, Labels]:
        """These rows."""
        return _safe_indexing(X, self.numbers), y[self.numbers]


def last_step(estimator: Any) -> Any:
    """The estimator, or the last step of a Pipeline."""
    return last_step(estimator.steps[-1][1]) if isinstance(estimator, Pipeline) else estimator


def fit_with_eval_rows(
    model: Any,
    X: Features,
    y: Labels,
    arguments: Mapping[str, Any],
    aside: EvalRows,
    of: tuple[Features, Labels],
) -> None:
    """`model.fit(X, y, **arguments)` with the rows (X, y) of `of` as those that it stops by. In a Pipeline
    they go through the steps before the last, as fitted on X, which Pipeline.fit cannot do."""
    if not isinstance(model, Pipeline):
        with warnings.catch_warnings():
            # LightGBM 4.7 prefers eval_X and eval_y, but encodes the labels of `eval_set` alone.
            warnings.filterwarnings("ignore", message="The argument 'eval_set' is deprecated")
            model.fit(X, y, **{**_eval_arguments(model, *of, aside, arguments), **arguments})
        return
    name, last = model.steps[-1]
    own = {
        key.removeprefix(f"{name}__"): value
        for key, value in arguments.items()
        if key.startswith(f"{name}__")
    }
    if len(model.steps) > 1:
        head = model[:-1]
        X = head.fit_transform(X, y, **{k: v for k, v in arguments.items() if not k.startswith(f"{name}__")})
        of = head.transform(of[0]), of[1]
        model.steps[:-1] = head.steps  # a Pipeline with a cache fits copies of its steps
    fit_with_eval_rows(last, X, y, own, aside, of)


def eval_names(model: Any) -> tuple[str, str, str] | None:
    """What the model's `fit` calls X, y and the weights of eval rows; y is "" where it goes with X, and the
    weights where there are none."""
    known = fit_arguments(model)
    for names in (
        ("X_val", "y_val", "sample_weight_val"),  # scikit-learn
        ("eval_set", "", "eval_sample_weight"),  # LightGBM
        ("eval_set", "", "sample_weight_eval_set"),  # XGBoost
        ("eval_set", "", ""),
    ):
        if all(name in known for name in names if name):
            return names
    return None


def _eval_arguments(
    model: Any, X: Features, y: Labels, aside: EvalRows, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    names = eval_names(model)
    if names is None:
        raise UnsupportedEstimatorError(f"{type(model).__name__}.fit takes no rows to stop by.")
    of_X, of_y, of_weight = names
    known = fit_arguments(model)
    if not of_weight and is_of_library(model, "catboost"):
        catboost = sys.modules["catboost"]
        pool = catboost.Pool(
            X, y, weight=aside.weight, **aside.margins, **_catboost_columns(model, arguments)
        )
        return {of_X: pool}
    made: dict[str, Any] = {of_X: X, of_y: y} if of_y else {of_X: [(X, y)]}
    if of_weight:
        made[of_weight] = aside.weight if of_X == "X_val" else [aside.weight]
    made |= {MARGINS[name]: [values] for name, values in aside.margins.items() if MARGINS[name] in known}
    if of_weight == "sample_weight_eval_set" and "verbose" in known:
        made["verbose"] = False  # XGBoost prints a line for every round unless told
    return made


def _catboost_columns(model: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Which columns are categories, texts and embeddings: a Pool of CatBoost's must say so, too."""
    kinds = ("cat_features", "text_features", "embedding_features")
    own = model.get_params()
    said = {kind: arguments.get(kind) if arguments.get(kind) is not None else own.get(kind) for kind in kinds}
    return {kind: columns for kind, columns in said.items() if columns is not None}


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
        of_aside = {name.rpartition("__")[2]: values for name, values in self._cut(numbers[aside]).items()}
        margins = {name: values for name, values in of_aside.items() if name in MARGINS}
        eval_rows = EvalRows(aside, numbers[aside], margins)
        return FoldParams(numbers[~aside], self._cut(numbers[~aside]), eval_rows)

    def _cut(self, rows: IntArray | None) -> Mapping[str, Any]:
        return self.per_row if rows is None else self.take(rows).per_row


@dataclass(frozen=True)
class FoldParams:
    """The rows of a fold that are trained on (None: all) with the values of each, and those set aside."""

    train: IntArray | None
    per_row: Mapping[str, Any]
    aside: EvalRows | None = None


def resolve_fit_params(
    given: Any, estimator: Any, weight_name: str, n_rows: int, *, routed: bool = False
) -> FitParams:
    """The user's fit parameters, checked against the estimator; those with as many values as there are rows
    are of the rows. `routed` says that weights go by metadata routing, set up for them alone."""
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
        if _is_of_rows(value, n_rows):
            per_row[name] = value
            continue
        try:
            as_given[name] = fresh(value)  # so that no training changes the user's
        except Exception as error:
            raise _refused(
                f"fit_params[{bare!r}] cannot be copied, and each training needs its own: {error}."
            ) from error
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
        if isinstance(estimator, Pipeline) and "__" not in weight_name:
            raise InvalidInputError(
                Argument("eval_share"),
                " is not for a Pipeline that routes metadata: switch enable_metadata_routing off, or name "
                "the weights, ",
                Argument("sample_weight_name", of_last_step(estimator, "sample_weight")),
                ".",
            )
        return
    own = " set its early_stopping" if "early_stopping" in model.get_params() else " leave it out"
    raise UnsupportedEstimatorError(
        Argument("eval_share"),
        " is for models whose fit takes rows to stop by, as LightGBM's, XGBoost's, CatBoost's and "
        f"HistGradientBoosting's do, alone or as the last step of a Pipeline, and not {type(model).__name__}:"
        f"{own}.",
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
