"""Models train in parallel, but answer alone, so that a score is the same number whenever it is asked for."""

import pytest
from joblib import parallel_config
from joblib.parallel import get_active_backend
from problems import shifted_classes
from sklearn.linear_model import LogisticRegression

from moew import MetricSearch, compare
from moew.decision import MostAccurate

ROWS = shifted_classes(100)
asked = []


class _TellsWhereItAnswers(LogisticRegression):
    def predict_proba(self, X):
        asked.append(type(get_active_backend()[0]).__name__)
        return super().predict_proba(X)

    def decision_function(self, X):
        asked.append(type(get_active_backend()[0]).__name__)
        return super().decision_function(X)


def _search(**settings):
    settings = {"n_candidates": 3, "batch_size": 3, "random_state": 0, "embedding": "label", **settings}
    return MetricSearch.from_settings(_TellsWhereItAnswers(), **settings)


@pytest.mark.parametrize("rule", [None, MostAccurate(on="train"), MostAccurate(on="validation")], ids=repr)
@pytest.mark.parametrize(
    "settings", [{}, {"evaluate_on": 3}, {"honest": "holdout", "evaluate_on": 0.3}], ids=str
)
def test_every_answer_of_a_search_is_given_alone(rule, settings):
    asked.clear()
    with parallel_config(backend="threading", n_jobs=2):
        search = _search(decision=rule, **settings).fit(ROWS.X, ROWS.y)
        search.metric_value(ROWS.X_val, ROWS.y_val)
        if rule is not None:  # what is decided on is scored as it was when the threshold was fitted
            search.predict(ROWS.X_val)
    assert len(asked) > 5
    assert set(asked) == {"SequentialBackend"}


@pytest.mark.heavy
def test_every_answer_of_a_comparison_is_given_alone():
    asked.clear()
    given = {"validation": (ROWS.X_val, ROWS.y_val), "test": (ROWS.X_val, ROWS.y_val)}
    with parallel_config(backend="threading", n_jobs=2):
        compare(_search(), ROWS.X, ROWS.y, **given, repeats=2)
    assert set(asked) == {"SequentialBackend"}
