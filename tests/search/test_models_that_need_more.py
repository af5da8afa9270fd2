"""Models and rows that need one step more: a sentence says which, before anything is trained."""

import sys
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from problems import shifted_classes
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from xgboost import XGBClassifier

from moew import MetricSearch
from moew.exceptions import InvalidInputError, UnsupportedEstimatorError

ROWS = shifted_classes(60)
SEARCH = {"embedding": "label", "n_candidates": 2, "batch_size": 2, "random_state": 0}
FRAME = pd.DataFrame({"a": ROWS.X[:, 0], "kind": np.where(ROWS.X[:, 1] > 0, "up", "down")})
CATEGORIES = FRAME.astype({"kind": "category"})
LIGHT = LGBMClassifier(n_estimators=3, verbosity=-1, n_jobs=1)


@pytest.fixture(autouse=True)
def trains_nothing(request, monkeypatch):
    if "_work" not in request.node.name:
        monkeypatch.setattr("moew.search._estimator.run_search", None)


def refused(words, estimator, X=ROWS.X, y=ROWS.y, error=InvalidInputError):
    with pytest.raises(error, match=words):
        MetricSearch.from_settings(estimator, **SEARCH).fit(X, y)


@pytest.mark.parametrize("dtype", ["object", "string"])
def test_texts_for_boosted_trees(dtype):
    X = FRAME.astype({"kind": dtype})
    as_category = r'\["?.kind.*\] as they are: make them categories, X = X.astype\(\{"kind": "category"\}\)'
    refused(as_category, LIGHT, X)
    refused(as_category + r", and set XGBClassifier\(enable_categorical=True\)", XGBClassifier(), X)
    refused(as_category + ", or put", XGBClassifier(enable_categorical=True), X)
    refused(as_category, HistGradientBoostingClassifier(), X)
    refused(
        r"XGBClassifier does not take .*'kind'.*: set XGBClassifier\(enable_cat", XGBClassifier(), CATEGORIES
    )


@pytest.mark.parametrize(
    "model",
    [
        LIGHT,
        XGBClassifier(n_estimators=3, n_jobs=1, enable_categorical=True),
        HistGradientBoostingClassifier(max_iter=3),
    ],
    ids=["lightgbm", "xgboost", "hist"],
)
def test_categories_for_boosted_trees_work(model):
    MetricSearch.from_settings(model, **SEARCH).fit(CATEGORIES, ROWS.y)


def test_texts_behind_a_transformer_work():
    encode = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    search = MetricSearch.from_settings(make_pipeline(encode, LIGHT), **SEARCH).fit(FRAME, ROWS.y)
    assert search.result_.n_failed == 0


def test_several_targets():
    both = np.stack([ROWS.y, 1 - ROWS.y], axis=1)
    words = rf"shape \({len(ROWS.y)}, 2\): several values for each row.*each column of y.*argmax"
    refused(words, LogisticRegression(), y=both)
    refused(words, LogisticRegression(), y=both.tolist())
    refused(words, LogisticRegression(), y=pd.DataFrame(both))


def test_a_bare_module_of_pytorch(monkeypatch):
    """A stand-in from a module of that name: neither the check nor this test needs PyTorch."""
    home = ModuleType("torch.nn.modules.module")
    monkeypatch.setitem(sys.modules, home.__name__, home)
    module = type("Module", (), {"__module__": home.__name__})
    network = type("Network", (module,), {"forward": lambda self, x: x})
    words = r"PyTorch module is none: write TorchClassifier\(make\).*moew.models.torch"
    refused(words, network())
    refused(words, network)


def test_an_estimator_that_cannot_be_cloned():
    class Changes(ClassifierMixin, BaseEstimator):
        def __init__(self, names=()):
            self.names = list(names)

        def fit(self, X, y, sample_weight=None):
            return self

    refused("Cannot clone .* Store its parameters", Changes(("a",)), error=UnsupportedEstimatorError)
