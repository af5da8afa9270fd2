"""compare: every weighting at the same number of trained models."""

import numpy as np
import pytest
import searches
from problems import shifted_classes
from scipy.sparse import coo_matrix
from scipy.stats import ttest_1samp
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import moew
from moew import MetricSearch
from moew._util.margins import margin
from moew.decision import ShareSelected
from moew.exceptions import InvalidInputError
from moew.metrics import worst_class_error
from moew.search._strategies import AND_TUNED, CLASS_WEIGHTS, TUNED

ROWS = shifted_classes(150)
DATA = {"validation": (ROWS.X_val, ROWS.y_val), "test": (ROWS.X_test, ROWS.y_test)}


class Counting(LogisticRegression):
    fits = 0

    def fit(self, X, y, sample_weight=None):
        type(self).fits += 1
        return super().fit(X, y, sample_weight)


def compare(estimator, repeats=2, **settings):
    search = MetricSearch.from_settings(
        estimator, **{"embedding": "label", "n_candidates": 6, "batch_size": 3, "honest": None, **settings}
    )
    return moew.compare(search, ROWS.X, ROWS.y, **DATA, repeats=repeats)


def test_a_deterministic_model_stands_for_all_and_the_table_says_so():
    result = compare(LogisticRegression(), metric=worst_class_error())
    plain = LogisticRegression().fit(ROWS.X, ROWS.y)
    error = max(np.mean(plain.predict(ROWS.X_test)[ROWS.y_test == c] != c) for c in (0, 1))
    assert result["unweighted"].test.tolist() == [error, error]
    assert {row.method: row.n_models for row in result.rows} == {
        "unweighted": 1,
        "random weights": 7,
        "importance weights": 3,  # by label, by features, by both
        TUNED: 1,
        CLASS_WEIGHTS: 7,
        CLASS_WEIGHTS + AND_TUNED: 7,
        "moew": 10,  # besides the seven, the unweighted model, and importance weights by label and by both
    }
    assert "deterministic" in result["unweighted"].note
    assert "deterministic" in str(result)
    assert result["moew"].test.mean() < error


@pytest.mark.heavy
def test_a_random_model_is_trained_as_often_by_every_method():
    forest = RandomForestClassifier(2, max_depth=2)
    result = compare(forest, metric="balanced_accuracy", decision=ShareSelected(0.5))
    assert {row.method: row.n_models for row in result.rows} == {
        "unweighted": 7,
        "random weights": 7,
        "importance weights": 7,
        CLASS_WEIGHTS: 7,  # the rule decides, so that no decisions are tuned
        "moew": 10,
    }
    assert all(row.note == "" for row in result.rows if row.method != "importance weights")
    assert result["importance weights"].note == "the best by label, features, both."
    assert all(len(row.test) == 2 for row in result.rows)


def test_budgets_are_what_the_table_says():
    Counting.fits = 0
    result = compare(Counting(), evaluate_on="validation", final="best", strategies="example weights")
    twins = 2 * 2  # two trainings each for uniform and importance, to see that they are alike
    # Number 0 and one more stand for all; π ≠ 1, so that moew trains an unweighted model, too.
    trained = {"unweighted": 2, "random weights": 7, "importance weights": 3, CLASS_WEIGHTS: 7, "moew": 8}
    chosen = 7 + 1  # every method's best model is trained again, and moew's unweighted model
    probe = 1  # one more training shows whether the model heeds its weights
    assert Counting.fits == 2 * (twins + sum(trained.values()) + chosen) + probe
    assert result["moew"].n_models == 8
    assert result.repeats == 2


def test_without_validation_rows_importance_is_uniform_and_says_so():
    search = MetricSearch.from_settings(LogisticRegression(), embedding="label", n_candidates=2, batch_size=2)
    data = {"test": (ROWS.X_test, ROWS.y_test)}
    result = moew.compare(search, ROWS.X, ROWS.y, **data, repeats=2)
    assert "no shift" in result["importance weights"].note
    assert np.isfinite(result["moew"].honest).all()


def test_importance_weights_by_label_correct_a_label_shift():
    """From 25 to 5 %: p_V(y)/p_T(y) is what is needed, and the ratio of the features is not that."""
    rng = np.random.default_rng(0)

    def rows(n, share):
        y = (rng.random(n) < share).astype(int)
        return rng.standard_normal((n, 3)) + 0.7 * y[:, None], y

    (X, y), (X_val, y_val), (X_test, y_test) = rows(1500, 0.25), rows(800, 0.05), rows(20_000, 0.05)
    settings = {
        "n_candidates": 2,
        "batch_size": 2,
        "embedding": "label",
        "honest": None,
        "strategies": "example weights",
    }
    search = MetricSearch.from_settings(LogisticRegression(), metric="neg_log_loss", **settings)
    table = moew.compare(search, X, y, validation=(X_val, y_val), test=(X_test, y_test), repeats=2)
    ratio = np.array([1 - y_val.mean(), y_val.mean()]) / [1 - y.mean(), y.mean()]
    corrected = LogisticRegression().fit(X, y, ratio[y])
    wanted = log_loss(y_test, corrected.predict_proba(X_test))
    assert -table["importance weights"].test.mean() <= wanted + 0.002
    assert -table["unweighted"].test.mean() > wanted + 0.02


@pytest.mark.heavy
def test_repeats_have_evaluation_rows_of_their_own_as_fits_with_other_seeds_have():
    given = compare(LogisticRegression(), repeats=3)["unweighted"].apparent
    assert len(set(given)) == 3
    alone = compare(LogisticRegression(), repeats=3, evaluate_on="validation")["unweighted"].apparent
    assert len(set(alone)) == 1  # the same rows


def test_same_seed_same_table():
    one, two = (compare(LogisticRegression()) for _ in range(2))
    assert str(one) == str(two)


def test_margin_is_the_half_width_of_students_interval():
    values = np.random.default_rng(0).standard_normal(7)
    low, high = ttest_1samp(values, 0).confidence_interval(0.95)
    assert np.isclose(margin(values), (high - low) / 2)


def test_mistakes():
    with pytest.raises(InvalidInputError, match="at least 2 repeats"):
        compare(LogisticRegression(), repeats=1)
    with pytest.raises(InvalidInputError, match=r"repeats must be .* at most 100,000.*got 10{30}"):
        compare(LogisticRegression(), repeats=10**30)
    search = MetricSearch.from_settings(LogisticRegression(), n_candidates=2, batch_size=2, embedding="label")
    infinite = {**DATA, "test": (np.where(ROWS.X_test > 1, np.inf, ROWS.X_test), ROWS.y_test)}
    with pytest.raises(InvalidInputError, match="cannot predict the test rows: Input X contains infinity"):
        moew.compare(search, ROWS.X, ROWS.y, **infinite, repeats=2)
    with pytest.raises(InvalidInputError, match="without a storage"):
        compare(LogisticRegression(), storage="run.db", random_state=0)


def test_values_that_are_all_the_same_have_no_margin():
    assert margin(np.full(5, 0.8525)) == 0  # its mean is not 0.8525 to the last bit
    assert margin(np.array([1.0, 2.0, 3.0])) == pytest.approx(2.484, rel=1e-3)


def test_a_gain_is_positive_where_moew_is_better():
    for greater in (True, False):
        found = searches.comparison_of(0.1, 0.01, greater)
        assert found.gain.mean() == pytest.approx(0.1)
        np.testing.assert_array_equal(found.difference, found.gain if greater else -found.gain)
        assert found.record["gain"] == found.gain.tolist()


@pytest.mark.parametrize("with_validation", [False, True])
def test_sparse_rows_are_compared(with_validation):
    X = np.random.default_rng(0).normal(size=(120, 2))
    y = (X[:, 0] > 0).astype(int)
    search = MetricSearch.from_settings(
        LogisticRegression(), embedding="label", base_weights="uniform", n_candidates=2, batch_size=2
    )
    given = {"validation": (coo_matrix(X[60:90]), y[60:90])} if with_validation else {}
    test = {"test": (coo_matrix(X[90:]), y[90:])}
    table = moew.compare(search, coo_matrix(X[:60]), y[:60], **given, **test, repeats=2)
    note = "the best by label;" if with_validation else "no validation rows were given"
    assert note in table["importance weights"].note
