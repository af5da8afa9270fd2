"""`--model-option`: settings that a model does not have are refused, with the nearest that it has."""

import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier

from moew.cli._models import MODELS, with_options
from moew.cli.runs import built_in_model
from moew.exceptions import InvalidInputError

X = pd.DataFrame({"a": [0.0, 1.0]})


@pytest.mark.parametrize("name", MODELS)
def test_nonsense_is_refused_by_every_model(name):
    task = "classification" if MODELS[name].classifier else "regression"
    with pytest.raises(InvalidInputError, match=r"setting 'nonsense_of_mine'; the nearest (is|are) '"):
        built_in_model(name, X, task, {"nonsense_of_mine": 3})


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        (
            "lightgbm",
            {"num_leafs": 3},
            "has no setting 'num_leafs'; the nearest are 'num_leaf', 'num_leaves'",
        ),
        ("xgboost", {"max_depht": 3}, "would ignore the setting 'max_depht'; the nearest are 'max_depth'"),
        ("xgboost", {"rate_drop": 0.1}, "would ignore the setting 'rate_drop'"),
        ("logistic", {"CC": 1}, "the nearest is 'C'"),
    ],
)
def test_close_matches_are_named(name, options, words):
    with pytest.raises(InvalidInputError, match=words):
        built_in_model(name, X, "classification", options)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("lightgbm", {"num_leaves": 4, "feature_fraction": 0.5, "extra_trees": True}),
        ("xgboost", {"max_depth": 2, "eta": 0.1, "lambda": 2}),
        ("xgboost", {"booster": "dart", "rate_drop": 0.1}),
    ],
)
def test_documented_names_and_aliases_are_taken(name, options):
    model = built_in_model(name, X, "classification", options)
    estimator = model.named_steps["model"]
    known = estimator.get_params()
    assert {key: known.get(key, known.get(f"estimator__{key}")) for key in options} == options


def test_a_step_of_a_pipeline_of_the_users():
    model = make_pipeline(StandardScaler(), LGBMClassifier())
    assert with_options(model, {"lgbmclassifier__eta": 0.2})[-1].get_params()["eta"] == 0.2
    with pytest.raises(
        InvalidInputError, match="'lgbmclassifier__ets'; the nearest are 'lgbmclassifier__eta'"
    ):
        with_options(model, {"lgbmclassifier__ets": 0.2})
    with pytest.raises(InvalidInputError, match="has no setting 'nowhere__eta'"):
        with_options(model, {"nowhere__eta": 0.2})
    model = make_pipeline(StandardScaler(), XGBClassifier())
    dart = {"xgbclassifier__booster": "dart", "xgbclassifier__rate_drop": 0.1}
    assert with_options(model, dart)[-1].get_params()["rate_drop"] == 0.1
    with pytest.raises(InvalidInputError, match="would ignore the setting 'xgbclassifier__rate_drop'"):
        with_options(make_pipeline(XGBClassifier()), {"xgbclassifier__rate_drop": 0.1})
