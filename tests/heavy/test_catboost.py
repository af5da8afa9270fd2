"""CatBoost: weights, categories and early stopping, against plain fits."""

import numpy as np
import pandas as pd
import pytest
from problems import shifted_classes, skewed_target

pytestmark = pytest.mark.heavy
catboost = pytest.importorskip("catboost", reason="CatBoost is not installed")

from moew import MetricSearch, load  # noqa: E402
from moew.exceptions import InvalidInputError, UnsupportedEstimatorError  # noqa: E402

ROWS, TARGETS = shifted_classes(120), skewed_target(120)
QUIET = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}
SMALL = {"iterations": 20, "depth": 3, **QUIET}
SEARCH = {"embedding": "label", "n_candidates": 3, "batch_size": 3, "random_state": 0}
ALONE = {"strategies": "example weights", "final": "best"}
FRAME = pd.DataFrame({"a": ROWS.X[:, 0], "kind": np.where(ROWS.X[:, 1] > 0, "up", "down")})


@pytest.mark.parametrize("kind", ["classifier", "regressor"])
def test_the_winner_is_a_plain_fit_with_its_weights(kind):
    rows = ROWS if kind == "classifier" else TARGETS
    make = catboost.CatBoostClassifier if kind == "classifier" else catboost.CatBoostRegressor
    search = MetricSearch.from_settings(make(**SMALL), **SEARCH, **ALONE)
    search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    plain = make(**SMALL).fit(rows.X, rows.y, sample_weight=search.sample_weight_)
    assert np.array_equal(search.best_estimator_.predict(rows.X_val), plain.predict(rows.X_val))
    assert np.std(search.sample_weight_) > 0 and search.result_.n_failed == 0


@pytest.mark.parametrize("dtype", ["object", "category"])
def test_categories_and_early_stopping(dtype, capfd):
    X = FRAME.astype({"kind": dtype})
    model = catboost.CatBoostClassifier(**{**SMALL, "iterations": 200}, early_stopping_rounds=3)
    search = MetricSearch.from_settings(model, eval_share=0.2, **SEARCH, **ALONE)
    search.fit(X, ROWS.y, fit_params={"cat_features": ["kind"]})
    aside, w = search.fitted_.fit_params.split(None), search.sample_weight_
    plain = catboost.CatBoostClassifier(**{**SMALL, "iterations": 200}, early_stopping_rounds=3)
    of_eval = catboost.Pool(X[aside], ROWS.y[aside], weight=w[aside], cat_features=["kind"])
    plain.fit(X[~aside], ROWS.y[~aside], ["kind"], sample_weight=w[~aside], eval_set=of_eval)
    assert search.best_estimator_.tree_count_ == plain.tree_count_ < 200
    assert np.array_equal(search.best_estimator_.predict_proba(X), plain.predict_proba(X))
    assert capfd.readouterr().out == ""


def test_a_sentence_before_training(monkeypatch):
    monkeypatch.setattr("moew.search._estimator.run_search", None)
    model = catboost.CatBoostClassifier(**SMALL)
    with pytest.raises(InvalidInputError, match=r'fit_params=\{"cat_features": \["kind"\]\}'):
        MetricSearch.from_settings(model, **SEARCH).fit(FRAME, ROWS.y)
    named = catboost.CatBoostClassifier(cat_features=["kind"], **SMALL)
    with pytest.raises(UnsupportedEstimatorError, match="Cannot clone .*CatBoost keeps copies of lists"):
        MetricSearch.from_settings(named, **SEARCH).fit(FRAME, ROWS.y)


def test_saved_and_loaded(tmp_path):
    search = MetricSearch.from_settings(catboost.CatBoostClassifier(**SMALL), **SEARCH, **ALONE).fit(
        ROWS.X, ROWS.y
    )
    with pytest.raises(InvalidInputError, match="trusted=True"):
        search.save(tmp_path / "search.moew")
    search.save(tmp_path / "search.moew", trusted=True)
    again = load(tmp_path / "search.moew", trusted=True)
    assert np.array_equal(again.predict_proba(ROWS.X), search.predict_proba(ROWS.X))
