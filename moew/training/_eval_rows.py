"""Rows that the search sets aside for a model that stops early: which rows, and what its `fit` calls them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from moew._util.seeds import generator
from moew.data._groups import deal_groups
from moew.exceptions import Argument, InvalidInputError, UnsupportedEstimatorError
from moew.training._columns import is_of_library
from moew.training._weight_name import fit_arguments
from moew.types import BoolArray, FloatArray, IntArray, Labels, Rows

# What `fit` calls a first prediction of each row, and the same of eval rows.
MARGINS = {"init_score": "eval_init_score", "base_margin": "base_margin_eval_set", "baseline": "baseline"}


@dataclass(frozen=True)
class EvalSplit:
    """Sets aside a share of the rows of any fold, with all classes as they are in the fold, groups whole.

    The same rows of the same fold for all candidates: they depend on the seed and the fold alone.
    """

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
                argument="eval_share",
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
    """The rows set aside in one training: their numbers (m,), the candidate's weights (m,) of them, and other
    values of each row."""

    numbers: IntArray
    weight: FloatArray
    per_row: Mapping[str, Any] = field(default_factory=dict)

    def of(self, X: Rows, y: Labels) -> tuple[Rows, Labels]:
        """These rows."""
        return _safe_indexing(X, self.numbers), y[self.numbers]


def last_step(estimator: Any) -> Any:
    """The estimator, or the last step of a Pipeline."""
    return last_step(estimator.steps[-1][1]) if isinstance(estimator, Pipeline) else estimator


def fit_with_eval_rows(
    model: Any, X: Rows, y: Labels, arguments: Mapping[str, Any], aside: EvalRows, of: tuple[Rows, Labels]
) -> None:
    """`model.fit(X, y, **arguments)` with the rows (X, y) of `of` as those that it stops by.

    In a Pipeline they go through the steps before the last, as fitted on X: Pipeline.fit cannot do this.
    """
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
    model: Any, X: Rows, y: Labels, aside: EvalRows, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    names = eval_names(model)
    if names is None:
        raise UnsupportedEstimatorError(f"{type(model).__name__}.fit takes no rows to stop by.")
    of_X, of_y, of_weight = names
    known = fit_arguments(model)
    if not of_weight and is_of_library(model, "catboost"):
        catboost = sys.modules["catboost"]
        pool = catboost.Pool(
            X, y, weight=aside.weight, **aside.per_row, **_catboost_columns(model, arguments)
        )
        return {of_X: pool}
    made: dict[str, Any] = {of_X: X, of_y: y} if of_y else {of_X: [(X, y)]}
    if of_weight:
        made[of_weight] = aside.weight if of_X == "X_val" else [aside.weight]
    made |= {MARGINS[name]: [values] for name, values in aside.per_row.items() if MARGINS[name] in known}
    if of_weight == "sample_weight_eval_set" and "verbose" in known:
        made["verbose"] = False  # XGBoost prints a line for every round unless told
    return made


def _catboost_columns(model: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Which columns are categories, texts and embeddings: a Pool of CatBoost's must say so, too."""
    kinds = ("cat_features", "text_features", "embedding_features")
    own = model.get_params()
    said = {kind: arguments.get(kind) if arguments.get(kind) is not None else own.get(kind) for kind in kinds}
    return {kind: columns for kind, columns in said.items() if columns is not None}
