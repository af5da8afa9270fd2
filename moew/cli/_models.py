"""Models by name, with what each needs to take categories and missing values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from importlib import import_module
from types import MappingProxyType
from typing import Any, Literal, NamedTuple
from warnings import catch_warnings, simplefilter

from moew.exceptions import InvalidInputError
from moew.types import Task

# What XGBoost's own documentation calls its arguments, besides their names in scikit-learn's classes.
_XGBOOST_ALIASES = ["alpha", "eta", "lambda", "max_cat_to_onehot", "min_split_loss", "num_class", "seed"]
_MOST_CATEGORIES = 50  # of a text column; rarer ones share a column of their own


class _Model(NamedTuple):
    """Where the classifier and the regressor are ("" for none), what they need, and their settings."""

    home: str
    classifier: str
    regressor: str
    needs: Literal["nothing", "no texts", "scaled numbers"]
    settings: Mapping[str, Any] = MappingProxyType({})

    def name_for(self, task: Task) -> str:
        return self.classifier if task == "classification" else self.regressor


_LINEAR, _ENSEMBLE = "sklearn.linear_model", "sklearn.ensemble"
_BOOSTING = ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor")
_FOREST = ("RandomForestClassifier", "RandomForestRegressor")
_LIGHTGBM = {"verbose": -1, "n_jobs": 1}
MODELS = {
    "network": _Model("moew.models", "NetworkClassifier", "NetworkRegressor", "nothing"),
    "logistic": _Model(_LINEAR, "LogisticRegression", "", "scaled numbers", {"max_iter": 1000}),
    "ridge": _Model(_LINEAR, "", "Ridge", "scaled numbers"),
    "hist_gradient_boosting": _Model(_ENSEMBLE, *_BOOSTING, "no texts"),
    "random_forest": _Model(_ENSEMBLE, *_FOREST, "no texts"),
    "lightgbm": _Model("lightgbm", "LGBMClassifier", "LGBMRegressor", "no texts", _LIGHTGBM),
    "xgboost": _Model("xgboost", "XGBClassifier", "XGBRegressor", "no texts", {"n_jobs": 1}),
}


def built_in_model(name: str, X: Any, task: Task, options: Mapping[str, Any] | None = None) -> Any:
    """The model of that name, not fitted, for a frame X of numbers and texts; `options` are its settings."""
    model = MODELS[name]
    if not model.name_for(task):
        others = ", ".join(other for other, one in MODELS.items() if one.name_for(task))
        raise InvalidInputError(f"--model {name} is not for {task}; take one of {others}.")
    try:
        made = getattr(import_module(model.home), model.name_for(task))(**model.settings)
    except ImportError as error:
        package = "'moew[networks]'" if name == "network" else model.home.partition(".")[0]
        raise InvalidInputError(f"--model {name} needs {package}: pip install {package}.") from error
    made = with_options(made, options or {})
    if name == "xgboost" and task == "classification":
        from moew.cli._coded_labels import CodedLabels

        made = CodedLabels(made)
    return made if model.needs == "nothing" else _with_preparation(made, X, model.needs == "scaled numbers")


def with_options(model: Any, options: Mapping[str, Any]) -> Any:
    """The model with these settings; raise on an unknown one, and name the nearest."""
    known = model.get_params()
    for name in options:
        if name in known:
            continue
        step, dashes, own_name = name.rpartition("__")
        owner, prefix = (known.get(step) if step else model), f"{step}{dashes}"  # a step of a Pipeline
        of_owner = {
            key.removeprefix(prefix): value for key, value in options.items() if key.startswith(prefix)
        }
        is_taken, more = _takes(owner, own_name, of_owner)
        if not is_taken:
            near = _nearest(name, [*known, *(f"{prefix}{other}" for other in more)])
            says = "would ignore the" if _package(owner) == "xgboost" else "has no"
            raise InvalidInputError(f"{type(model).__name__} {says} setting {name!r}{near}.")
    model = model.set_params(**options)
    if options and hasattr(model, "_parameter_constraints"):  # scikit-learn's own, which would say so in fit
        try:
            model._validate_params()
        except ValueError as error:
            raise InvalidInputError(f"--model-option: {error}") from error
    return model


def _package(model: Any) -> str:
    return type(model).__module__.partition(".")[0]


def _nearest(name: str, known: Iterable[str]) -> str:
    names = sorted(set(known))
    near = get_close_matches(name, names, n=3, cutoff=0.6) or get_close_matches(name, names, n=1, cutoff=0.0)
    return f"; the nearest {'is' if len(near) == 1 else 'are'} {', '.join(map(repr, near))}" if near else ""


def _takes(model: Any, name: str, options: Mapping[str, Any]) -> tuple[bool, list[str]]:
    """Whether a model takes the setting `name` of `options`, which is no argument of its class, and names of
    such settings.

    LightGBM and XGBoost take any name there, and ignore what they do not know.
    """
    package = _package(model)
    if package == "lightgbm":
        from lightgbm.basic import _ConfigAliases

        names = [alias for of in _ConfigAliases._get_all_param_aliases().values() for alias in of]
        return name in names, names
    if package == "xgboost":
        from xgboost import DMatrix, train
        from xgboost.core import XGBoostError

        settings = {**model.get_params(), **options}
        looked_at = ("booster", "objective", "tree_method", name)
        tried = {key: settings[key] for key in looked_at if settings.get(key) is not None}
        with catch_warnings(record=True) as told:  # it has no list of settings, but says what it ignores
            simplefilter("always")
            try:
                train(tried, DMatrix([[0.0], [1.0]], label=[0, 1]), num_boost_round=1)
            except XGBoostError:  # it knows the name: of a value that it refuses the training will tell
                return True, []
        ignored = any(f'"{name}"' in str(one.message) and "not used" in str(one.message) for one in told)
        return not ignored, _XGBOOST_ALIASES
    return False, []


def _with_preparation(model: Any, X: Any, scaled: bool) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    texts = [name for name in X.columns if X[name].dtype == object]
    numbers = [name for name in X.columns if name not in texts and X[name].notna().any()]
    if not (texts or numbers):
        raise InvalidInputError(
            "the features hold nothing but missing values; there is nothing to learn from."
        )
    as_numbers: Any = "passthrough"  # trees take missing numbers as they are
    if scaled:
        fill = SimpleImputer(add_indicator=True, keep_empty_features=True)
        as_numbers = Pipeline([("fill", fill), ("scale", StandardScaler())])
    one_hot = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=_MOST_CATEGORIES, sparse_output=False
    )
    parts = [("numbers", as_numbers, numbers), ("texts", one_hot, texts)]
    prepare = ColumnTransformer([part for part in parts if part[2]])
    return Pipeline([("prepare", prepare), ("model", model)])
