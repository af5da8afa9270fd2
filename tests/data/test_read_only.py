"""Code that writes into its rows: the candidates after it see the rows as they were."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from problems import shifted_classes
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.fixes import parse_version

from moew import MetricSearch, Rows
from moew.data._columns import read_only
from moew.decision import MostAccurate
from moew.exceptions import MoewError


class Writer(TransformerMixin, BaseEstimator):
    """Doubles a column in place and adds one, as hasty code does."""

    def __init__(self, how="column"):
        self.how = how

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        if self.how == "column":
            X["a"] = X["a"] * 2
            X["sum"] = X["a"] + X["b"]
        else:
            X.loc[:, "a"] *= 2
            X.iloc[:, 1] += 1
        return X


class Copying(Writer):
    def transform(self, X):
        return super().transform(X.copy())


def frames():
    rows = shifted_classes(150)
    return [pd.DataFrame(X[:, :2], columns=["a", "b"]) for X in (rows.X, rows.X_val)], rows.y, rows.y_val


def values(search):
    return [told.value for told in search.study_.trials()]


def scores(transformer, n_jobs=1, **more):
    (X, X_val), y, y_val = frames()
    kept = X.copy(), X_val.copy()
    search = MetricSearch.from_settings(
        make_pipeline(transformer, LogisticRegression()),
        metric="balanced_accuracy",
        n_candidates=6,
        batch_size=3,
        random_state=0,
        n_jobs=n_jobs,
        sample_weight_name="logisticregression__sample_weight",
        **{"embedding": "label", **more},
    )
    search.fit(X, y, validation=(X_val, y_val))
    pd.testing.assert_frame_equal(X, kept[0])
    pd.testing.assert_frame_equal(X_val, kept[1])
    return values(search)


@pytest.mark.parametrize(
    ("how", "n_jobs"),
    [
        ("column", 1),
        ("places", 2),
        *(pytest.param(*case, marks=pytest.mark.heavy) for case in (("column", 2), ("places", 1))),
    ],
)
def test_a_step_that_writes_into_its_frame_is_as_good_as_one_that_copies(how, n_jobs):
    np.testing.assert_array_equal(scores(Writer(how), n_jobs), scores(Copying(how)))


def test_an_embedding_and_a_baseline_that_write_change_nothing():
    def embedding(X, y):
        X["a"] = X["a"].abs()
        return X[["a"]]

    def base_weights(X, y):
        X.loc[:, "b"] = 1.0
        return X["b"]

    mine = scores(Copying(), embedding=embedding, base_weights=base_weights)
    theirs = scores(
        Copying(), embedding=lambda X, y: X[["a"]].abs(), base_weights=lambda X, y: np.ones(len(X))
    )
    np.testing.assert_array_equal(mine, theirs)


class WritesIntoArray(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        X *= 2
        return super().fit(X, y, sample_weight)


class WritesIntoWeights(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        sample_weight /= sample_weight.sum()
        return super().fit(X, y, sample_weight * len(y))


def fitted(model, n_jobs=1, metric="balanced_accuracy", **more):
    rows = shifted_classes(150)
    search = MetricSearch.from_settings(
        model,
        metric=metric,
        embedding="label",
        n_candidates=3,
        batch_size=3,
        random_state=0,
        n_jobs=n_jobs,
        **more,
    )
    return search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.heavy)])
def test_a_model_that_writes_into_an_array_fails_and_says_so(n_jobs):
    with pytest.raises(MoewError, match="read-only"):
        fitted(WritesIntoArray(), n_jobs)


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.heavy)])
def test_weights_are_a_model_s_own(n_jobs):
    kept = values(fitted(WritesIntoWeights(), n_jobs))
    np.testing.assert_array_equal(kept, values(fitted(WritesIntoWeights())))


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.heavy)])
@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, csr_array])
def test_transformers_of_scikit_learn_may_write_into_their_rows(kind, n_jobs):
    rows = shifted_classes(150)
    X, X_val = kind(rows.X), kind(rows.X_val)

    def fitted(copy, n_jobs):
        model = make_pipeline(MaxAbsScaler(copy=copy), LogisticRegression())
        search = MetricSearch.from_settings(
            model,
            embedding="label",
            n_candidates=6,
            batch_size=3,
            random_state=0,
            n_jobs=n_jobs,
            sample_weight_name="logisticregression__sample_weight",
        )
        return values(search.fit(X, rows.y, validation=(X_val, rows.y_val)))

    np.testing.assert_array_equal(fitted(False, n_jobs), fitted(True, 1))
    for left, before in ((X, rows.X), (X_val, rows.X_val)):
        np.testing.assert_array_equal(left.toarray() if hasattr(left, "toarray") else left, before)


class ManyWriters(LogisticRegression):
    """Trains many weightings, and spoils its rows."""

    def fit_many(self, X, y, weights, seeds):
        for k, weight in enumerate(weights):
            yield k, LogisticRegression().fit(X, y, sample_weight=weight)
        X.loc[:, "a"] *= 3


def test_a_model_that_trains_many_has_rows_of_its_own():
    (X, X_val), y, y_val = frames()
    kept = X.copy()
    settings = {"embedding": "label", "n_candidates": 6, "batch_size": 3, "random_state": 0}
    both = [
        values(MetricSearch.from_settings(model, **settings).fit(X, y, validation=(X_val, y_val)))
        for model in (ManyWriters(), LogisticRegression())
    ]
    np.testing.assert_array_equal(*both)
    pd.testing.assert_frame_equal(X, kept)


def test_a_scorer_that_writes_into_its_labels_fails_and_destroys_nothing():
    def spoiled(y_true, y_pred):
        y_true *= 0
        return 1.0

    with pytest.raises(MoewError, match="read-only"):
        fitted(LogisticRegression(), metric=make_scorer(spoiled))


def test_a_scorer_that_writes_into_answers_or_columns_fails_and_destroys_nothing():
    def brier(y_true, p):
        p -= y_true
        return -float(np.mean(p**2))

    def costly(y_true, decision, cost):
        cost /= cost.sum()
        return float(np.sum(cost * (y_true == decision)))

    rows, cost = shifted_classes(150), np.arange(1.0, len(shifted_classes(150).y_val) + 1)
    scorers = [
        (make_scorer(brier, response_method="predict_proba"), {}),
        (make_scorer(costly), {"cost": cost}),
    ]
    copied = parse_version(sklearn.__version__) < parse_version("1.8")  # columns, before they are passed on
    for metric, columns in scorers[:1] if copied else scorers:
        search = MetricSearch.from_settings(
            LogisticRegression(), metric=metric, embedding="label", n_candidates=2, batch_size=2
        )
        with pytest.raises(MoewError, match="read-only"):
            search.fit(rows.X, rows.y, validation=Rows(rows.X_val, rows.y_val, columns=columns))
    assert cost[0] == 1


class SortingRule(MostAccurate):
    def fit(self, score, positive, columns):
        score.sort()
        return super().fit(score, positive, columns)


def test_a_rule_that_writes_into_scores_fails():
    with pytest.raises((MoewError, ValueError), match="read-only"):
        fitted(LogisticRegression(), decision=SortingRule())


def test_a_frame_is_copied_whole_where_a_model_gets_it():
    frame = pd.DataFrame({"a": [1.0, 2.0]})
    assert not np.shares_memory(read_only(frame)["a"].to_numpy(), frame["a"].to_numpy())
    assert read_only(frame, deep=False) is not frame


def test_other_things_are_handed_on_as_they_are():
    for thing in (None, [1, 2], object()):
        assert read_only(thing) is thing


def test_a_scorer_s_rows_may_hold_missing_values_of_pandas():
    rows = shifted_classes(150)
    X, X_val = (
        pd.DataFrame({"a": part[:, 0], "c": pd.array([1, None] * (len(part) // 2), "Int64")})
        for part in (rows.X[:100], rows.X_val[:100])
    )
    search = MetricSearch.from_settings(
        HistGradientBoostingClassifier(max_iter=2),
        metric=make_scorer(lambda y, decision: float(np.mean(y == decision))),
        **{"embedding": "label", "n_candidates": 2, "batch_size": 2, "random_state": 0},
    )
    search.fit(X, rows.y[:100], validation=(X_val, rows.y_val[:100]))
    assert search.result_.n_failed == 0
