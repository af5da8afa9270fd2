"""What the model's fit takes besides weights: passed by the user, or rows set aside for early stopping."""

from functools import partial
from typing import ClassVar

import lightgbm
import numpy as np
import pandas as pd
import pytest
import searches
from joblib import parallel_config
from lightgbm import LGBMClassifier, LGBMRegressor
from problems import mixed_frame, shifted_classes, skewed_target
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from xgboost import XGBClassifier

from moew import MetricSearch, NetworkClassifier, TrainingOptions, compare
from moew.exceptions import InvalidInputError, UnsupportedEstimatorError
from moew.models import ModelEnsemble
from moew.training import EvalSplit

ROWS = shifted_classes(120)
TARGETS = skewed_target(120)
LIGHT = {"n_estimators": 30, "min_child_samples": 5, "n_jobs": 1, "verbosity": -1, "random_state": 0}
SEARCH = {"embedding": "label", "n_candidates": 3, "batch_size": 3, "random_state": 0}
STOP = {"callbacks": [lightgbm.early_stopping(2, verbose=False)]}

OLD_NAME = pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")


class Recorder(ClassifierMixin, BaseEstimator):
    """Notes what its `fit` was given, in a list of the class."""

    calls: ClassVar[list] = []

    def fit(
        self,
        X,
        y,
        sample_weight=None,
        tag=None,
        offset=None,
        box=None,
        eval_set=None,
        eval_sample_weight=None,
    ):
        self.calls.append(
            {
                "rows": X[:, 0],
                "y": y,
                "weight": sample_weight,
                "tag": tag,
                "offset": offset,
                "box": None if box is None else list(box),
            }
            | {"eval": eval_set, "eval_weight": eval_sample_weight}
        )
        if box is not None:
            box.append(len(X))
        self.classes_ = np.unique(y)
        self.share_ = np.average(y, weights=sample_weight)
        return self

    def predict_proba(self, X):
        p = np.clip(self.share_ + 0.1 * X[:, 1], 0.01, 0.99)
        return np.stack([1 - p, p], axis=1)

    def predict(self, X):
        return (self.predict_proba(X)[:, 1] > 0.5).astype(int)


@pytest.fixture
def numbered():
    """Rows whose first column is their number, and what models were given."""
    rng = np.random.default_rng(0)
    n = 80
    X = np.column_stack([np.arange(n, dtype=float), rng.standard_normal(n)])
    y = np.arange(n) % 4 == 0
    Recorder.calls = []
    return X, y.astype(int)


def models_of(search):
    model = search.best_estimator_
    return model.models_ if isinstance(model, ModelEnsemble) else [model]


def test_values_of_each_row_are_cut_with_the_folds_and_others_are_passed_as_they_are(numbered):
    X, y = numbered
    box, tag = [], {"a": 1}
    search = MetricSearch.from_settings(Recorder(), evaluate_on=3, **SEARCH)
    search.fit(X, y, fit_params={"offset": 10 * X[:, 0], "tag": tag, "box": box})
    lengths = {len(call["rows"]) for call in Recorder.calls}
    assert len(lengths) >= 2 and max(lengths) == len(y)  # folds, and all rows
    for call in Recorder.calls:
        assert np.array_equal(call["offset"], 10 * call["rows"])
        assert call["tag"] == tag and call["box"] == []  # none sees what another has put in
    assert box == []


def test_values_of_each_row_follow_rows_that_are_held_out(numbered):
    X, y = numbered
    MetricSearch.from_settings(Recorder(), evaluate_on=0.25, **SEARCH).fit(
        X, y, fit_params={"offset": list(X[:, 0])}
    )
    assert max(len(call["rows"]) for call in Recorder.calls) == 60
    assert all(np.array_equal(call["offset"], call["rows"]) for call in Recorder.calls)


def test_rows_set_aside_are_training_rows_of_the_fold_with_the_candidates_weights(numbered):
    X, y = numbered
    groups = np.arange(len(y)) // 2
    search = MetricSearch.from_settings(
        Recorder(), evaluate_on=3, eval_share=0.2, strategies="example weights", final="best", **SEARCH
    )
    search.fit(X, y, groups=groups)
    splits = {}
    for call in Recorder.calls:
        ((X_eval, y_eval),) = call["eval"]
        aside, trained = X_eval[:, 0].astype(int), call["rows"].astype(int)
        assert np.array_equal(y_eval, y[aside]) and set(np.unique(y_eval)) == {0, 1}
        assert not set(groups[aside]) & set(groups[trained])
        assert len(aside) == pytest.approx(0.2 * (len(aside) + len(trained)), abs=3)
        (weight,) = call["eval_weight"]
        of_class = {label: call["weight"][y[trained] == label][0] for label in (0, 1)}
        assert np.array_equal(weight, [of_class[label] for label in y_eval])  # weights are by label here
        splits.setdefault(frozenset(aside) | frozenset(trained), set()).add(frozenset(aside))
    assert len(splits) == 4  # three folds and all rows
    assert all(len(asides) == 1 for asides in splits.values())  # the same rows for all candidates
    evaluated = [frozenset(range(len(y))) - rows for rows in splits if len(rows) < len(y)]
    assert sum(map(len, evaluated)) == len(y)  # evaluation rows are never set aside to stop by


@pytest.mark.parametrize(
    ("model", "n_used"),
    [
        (LGBMClassifier(early_stopping_round=2, **LIGHT), lambda m: m.best_iteration_),
        (XGBClassifier(n_estimators=30, n_jobs=1, early_stopping_rounds=2), lambda m: m.best_iteration + 1),
        (
            HistGradientBoostingClassifier(max_iter=30, early_stopping=True, n_iter_no_change=2),
            lambda m: m.n_iter_,
        ),
        (
            make_pipeline(StandardScaler(), LGBMClassifier(early_stopping_round=2, **LIGHT)),
            lambda m: m[-1].best_iteration_,
        ),
    ],
    ids=["lightgbm", "xgboost", "hist", "pipeline"],
)
def test_models_stop_early(model, n_used, capfd):
    search = MetricSearch.from_settings(
        model, eval_share=0.2, strategies="example weights", final="best", **SEARCH
    )
    search.fit(ROWS.X, ROWS.y)
    assert 1 <= n_used(search.best_estimator_) < 30
    assert capfd.readouterr().out == ""  # XGBoost would print every round


def test_processes_train_the_same_models():
    one, two = (
        MetricSearch.from_settings(
            LGBMClassifier(**LIGHT),
            eval_share=0.2,
            strategies="example weights",
            final="best",
            n_jobs=n,
            **SEARCH,
        )
        for n in (1, 2)
    )
    params = STOP | {"init_score": ROWS.X[:, 0]}
    one.fit(ROWS.X, ROWS.y, fit_params=params)
    with parallel_config(backend="loky"):
        two.fit(ROWS.X, ROWS.y, fit_params=params)
    assert one.best_estimator_.best_iteration_ < 30
    assert np.array_equal(one.predict_proba(ROWS.X), two.predict_proba(ROWS.X))


@OLD_NAME
def test_early_stopping_is_that_of_a_plain_fit():
    """The winner is the model of a plain fit on the rest, with the rows set aside and the same weights."""
    search = MetricSearch.from_settings(
        LGBMRegressor(**LIGHT), eval_share=0.2, strategies="example weights", final="best", **SEARCH
    )
    search.fit(TARGETS.X, TARGETS.y, fit_params=STOP)
    split = search.fitted_.fit_params.split
    aside, w = split(None), search.sample_weight_
    plain = LGBMRegressor(**LIGHT).fit(
        TARGETS.X[~aside],
        TARGETS.y[~aside],
        sample_weight=w[~aside],
        eval_set=[(TARGETS.X[aside], TARGETS.y[aside])],
        eval_sample_weight=[w[aside]],
        callbacks=[lightgbm.early_stopping(2, verbose=False)],
    )
    assert plain.best_iteration_ < 30
    assert np.array_equal(search.best_estimator_.predict(TARGETS.X_val), plain.predict(TARGETS.X_val))
    number = search.result_.best_number
    again = searches.trained_again(search.fitted_, number, TARGETS.X, TARGETS.y)
    assert np.array_equal(again.predict(TARGETS.X_val), plain.predict(TARGETS.X_val))


def test_categories_reach_rows_set_aside_through_a_pipeline():
    X, y = mixed_frame(160)
    columns = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["kind"]), remainder="drop")
    model = make_pipeline(columns, LGBMClassifier(**LIGHT))
    search = MetricSearch.from_settings(model, eval_share=0.25, strategies="example weights", **SEARCH).fit(
        X, y, fit_params=STOP
    )
    assert all(1 <= one[-1].best_iteration_ < 30 for one in models_of(search))
    assert search.result_.n_failed == 0


def test_first_predictions_of_each_row_go_to_rows_set_aside():
    """The loss of rows set aside begins where a good first prediction puts it."""
    margin = np.where(ROWS.y == 1, 5.0, -5.0)
    model = XGBClassifier(n_estimators=20, n_jobs=1, early_stopping_rounds=1, eval_metric="logloss")
    search = MetricSearch.from_settings(
        model, eval_share=0.3, strategies="example weights", final="best", **SEARCH
    )
    search.fit(ROWS.X, ROWS.y, fit_params={"base_margin": margin})
    first = search.best_estimator_.evals_result()["validation_0"]["logloss"][0]
    assert first < 0.05


def test_an_eval_set_of_the_users_is_passed_as_it_is():
    stop = {"eval_set": [(ROWS.X_test, ROWS.y_test)], "verbose": False}
    model = XGBClassifier(n_estimators=30, n_jobs=1, early_stopping_rounds=2)
    search = MetricSearch.from_settings(model, strategies="example weights", final="best", **SEARCH).fit(
        ROWS.X, ROWS.y, fit_params=stop
    )
    plain = XGBClassifier(n_estimators=30, n_jobs=1, early_stopping_rounds=2, random_state=0)
    plain.fit(ROWS.X, ROWS.y, sample_weight=search.sample_weight_, **stop)
    assert search.best_estimator_.best_iteration == plain.best_iteration < 29


def test_compare_takes_them():
    model = LGBMClassifier(**LIGHT)
    search = MetricSearch.from_settings(
        model, eval_share=0.2, **{**SEARCH, "n_candidates": 1, "batch_size": 1, "evaluate_on": 2}
    )
    table = compare(
        search,
        *ROWS[:2],
        validation=(ROWS.X_val, ROWS.y_val),
        test=(ROWS.X_test, ROWS.y_test),
        repeats=2,
        fit_params=STOP,
    )
    assert np.isfinite(table["moew"].test).all()
    with pytest.raises(InvalidInputError, match="'calbacks'"):
        compare(search, *ROWS[:2], test=(ROWS.X_test, ROWS.y_test), fit_params={"calbacks": []})


def test_metadata_routing(numbered):
    X, y = numbered
    search = MetricSearch.from_settings(Recorder(), evaluate_on=2, **SEARCH)
    with pytest.raises(InvalidInputError, match=r"fit_params=\{'tag': …\}.*enable_metadata_routing"):
        search.fit(X, y, tag="t")
    with config_context(enable_metadata_routing=True):
        search.estimator.set_fit_request(tag=True, offset=True)
        search.fit(X, y, tag="t", offset=X[:, 0])
        assert {call["tag"] for call in Recorder.calls} == {"t"}
        Recorder.calls.clear()
        cross_validate(search, X, y, cv=2, params={"offset": X[:, 0]})
        assert Recorder.calls
        assert all(np.array_equal(call["offset"], call["rows"]) for call in Recorder.calls)
        with pytest.raises(InvalidInputError, match="leave out one"):
            search.fit(X, y, tag="t", fit_params={"tag": "t"})
        with pytest.raises(TypeError, match="unexpected argument"):
            search.fit(X, y, label="t")
        assert search.get_metadata_routing().consumes("fit", ["tag", "groups", "label"]) == {"tag"}


@pytest.mark.parametrize(
    ("settings", "fit_params", "words"),
    [
        ({}, {"calbacks": []}, r"'calbacks', which LGBMClassifier.fit does not take; it takes .*callbacks"),
        ({}, {"sample_weight": [1]}, "learned weights"),
        ({}, ["callbacks"], "must map names"),
        ({}, {"init_score": [0.0, 1.0]}, "for each of the 123? .*rows|each of the"),
        ({}, {"callbacks": [(i for i in "ab")]}, "cannot be copied"),
        ({"eval_share": 0.2}, {"eval_set": [(ROWS.X, ROWS.y)]}, "leave one out"),
        ({"eval_share": 1.0}, None, "eval_share must be a share between 0 and 1"),
        ({"eval_share": 0.001}, None, "eval_share=0.001 leaves no rows to stop by"),
        (
            {"eval_share": 0.1, "estimator": LogisticRegression()},
            None,
            "and not LogisticRegression: leave it out",
        ),
        ({"eval_share": 0.1, "estimator": NetworkClassifier()}, None, "set its early_stopping"),
        ({"estimator": NetworkClassifier()}, {"steps": 3}, "fit_many"),
        (
            {"estimator": make_pipeline(StandardScaler(), LogisticRegression())},
            {"eval_set": 3},
            "LogisticRegression.fit",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_training(settings, fit_params, words, monkeypatch):
    monkeypatch.setattr("moew.search._estimator.run_search", None)
    search = MetricSearch.from_settings(**{"estimator": LGBMClassifier(**LIGHT), **SEARCH, **settings})
    with pytest.raises((InvalidInputError, UnsupportedEstimatorError), match=words):
        search.fit(ROWS.X, ROWS.y, fit_params=fit_params)


def test_rows_set_aside_in_a_pipeline_that_routes():
    model = make_pipeline(StandardScaler(), LGBMClassifier(early_stopping_round=2, **LIGHT))
    search = MetricSearch.from_settings(model, eval_share=0.2, **SEARCH)
    with config_context(enable_metadata_routing=True):
        with pytest.raises(InvalidInputError, match="sample_weight_name='lgbmclassifier__sample_weight'"):
            search.fit(ROWS.X, ROWS.y)
        named = TrainingOptions(sample_weight_name="lgbmclassifier__sample_weight", eval_share=0.2)
        search.set_params(training=named).fit(ROWS.X, ROWS.y)
    assert search.result_.n_failed == 0


@OLD_NAME
def test_a_stored_study_knows_its_fit_params(tmp_path):
    storage = tmp_path / "study.db"
    search = MetricSearch.from_settings(LGBMClassifier(**LIGHT), storage=storage, **SEARCH)
    stop = STOP | {"eval_set": [(ROWS.X_val, ROWS.y_val)]}
    search.fit(ROWS.X, ROWS.y, fit_params=stop).fit(ROWS.X, ROWS.y, fit_params=stop)  # goes on
    with pytest.raises(InvalidInputError, match="other"):
        search.fit(ROWS.X, ROWS.y)
    with pytest.raises(InvalidInputError, match="other"):
        search.set_params(training=TrainingOptions(eval_share=0.1)).fit(ROWS.X, ROWS.y, fit_params=STOP)


def test_rows_set_aside_depend_on_seed_and_fold_alone():
    rng = np.random.default_rng(0)
    strata = np.concatenate([rng.integers(3, size=60), [3]])  # one row of the last
    split = partial(EvalSplit, 0.25)
    fold = np.flatnonzero(rng.random(61) < 0.7)
    assert np.array_equal(split(1, strata)(fold), split(1, strata)(fold.copy()))
    assert not np.array_equal(split(1, strata)(fold), split(2, strata)(fold))
    assert not split(0, strata)(None)[60]  # its class has no other row
    shares = pd.Series(split(0, strata)(None)).groupby(strata).mean()
    assert np.allclose(shares[:3], 0.25, atol=0.05)
    repeated = np.array([0, 0, 1, 1, 2, 2, *range(10, 40)])
    aside = split(0, strata)(repeated)
    assert not set(repeated[aside]) & set(repeated[~aside])
    one_group = EvalSplit(0.25, 0, strata[:60], np.zeros(60, dtype=int))
    with pytest.raises(InvalidInputError, match="groups of rows"):
        one_group(None)
