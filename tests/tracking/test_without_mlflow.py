"""Without MLflow, the callback says how to get it, before anything is trained."""

import sys

import pytest
from problems import shifted_classes
from sklearn.linear_model import LogisticRegression

from moew import MetricSearch
from moew.exceptions import InvalidInputError
from moew.tracking import MlflowCallback


def test_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    monkeypatch.setattr("moew.search._estimator.run_search", None)
    rows = shifted_classes(60)
    search = MetricSearch(LogisticRegression(), callbacks=[MlflowCallback()])
    with pytest.raises(InvalidInputError, match=r"pip install 'moew\[mlflow\]'"):
        search.fit(rows.X, rows.y)


def test_shows_no_address():
    callback = MlflowCallback("https://me:secret@tracking", "churn")
    assert repr(callback) == "MlflowCallback(experiment='churn')"
