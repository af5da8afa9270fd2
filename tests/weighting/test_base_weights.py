import json
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from moew._util.state import load_state
from moew.exceptions import InvalidInputError, MoewWarning, StateError
from moew.types import BaseWeights
from moew.weighting import (
    CovariateShift,
    FunctionBaseWeights,
    JointShift,
    LabelShift,
    UniformBaseWeights,
    resolve_base_weights,
)
from moew.weighting._density_ratio import fit_density_ratio, spline_features, spline_knots


def through_json(base_weights, objects=None):
    return load_state(json.loads(json.dumps(base_weights.state())), objects)


def test_uniform_is_one_whatever_the_rows():
    base_weights = UniformBaseWeights().fit(None, [1, 2], None, None, task="regression")
    np.testing.assert_array_equal(base_weights.weights(scipy.sparse.eye_array(3), "abc"), np.ones(3))
    assert isinstance(through_json(base_weights), UniformBaseWeights)


@given(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=50),
    st.lists(st.sampled_from("abc"), min_size=1, max_size=30),
)
def test_label_shift_is_the_ratio_of_smoothed_frequencies(training, validation):
    y = np.array([*training, "a", "b", "c"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoewWarning)
        base_weights = LabelShift().fit(None, y, None, np.array(validation), task="classification")
    pi = base_weights.weights(None, ["a", "b", "c"])
    for weight, label in zip(pi, "abc", strict=True):
        in_validation = (validation.count(label) + 0.5) / (len(validation) + 1.5)
        in_training = ((y == label).sum() + 0.5) / (len(y) + 1.5)
        assert weight == pytest.approx(in_validation / in_training, rel=1e-12)
    np.testing.assert_array_equal(through_json(base_weights).weights(None, y), base_weights.weights(None, y))


def test_label_shift_restores_the_validation_frequencies():
    rng = np.random.default_rng(0)
    y, y_val = rng.choice(3, 9000, p=[0.7, 0.2, 0.1]), rng.choice(3, 3000, p=[0.2, 0.2, 0.6])
    pi = LabelShift().fit(None, y, None, y_val, task="classification").weights(None, y)
    weighted = np.bincount(y, weights=pi) / pi.sum()
    np.testing.assert_allclose(weighted, np.bincount(y_val) / 3000, atol=0.002)


def test_label_shift_warns_of_a_class_that_validation_lacks():
    with pytest.warns(MoewWarning, match=r"\['c'\] do not occur in the validation set.*uniform"):
        base_weights = LabelShift().fit(None, list("abcc"), None, list("ab"), task="classification")
    assert base_weights.weights(None, ["c"])[0] > 0


def test_label_shift_refuses_labels_it_cannot_compare():
    with pytest.raises(InvalidInputError, match=r"\[0.25, 0.75\].*base_weights='uniform'"):
        LabelShift().fit(None, [0, 1, 1], None, [0.25, 1.0, 0.75], task="classification")
    for task in ("classification", "regression"):
        with pytest.raises(InvalidInputError, match="no y_val was given"):
            LabelShift().fit(None, [0, 1, 1], None, None, task=task)
    with pytest.raises(InvalidInputError, match="NaN or infinity"):
        LabelShift().fit(None, [0.0, np.nan], None, [1.0, 2.0], task="regression")
    base_weights = LabelShift().fit(None, [0, 1], None, [0, 1], task="classification")
    with pytest.raises(InvalidInputError, match="not in the training rows"):
        base_weights.weights(None, [2])


@pytest.mark.parametrize("n_val", [200, 2000])
def test_label_shift_for_regression_finds_a_known_density_ratio(n_val):
    rng = np.random.default_rng(1)
    y, y_val = rng.normal(0, 1, 2000), rng.normal(0.7, 0.8, n_val)
    base_weights = LabelShift().fit(None, y, None, y_val, task="regression")
    pi = base_weights.weights(None, y)
    exact = np.clip(stats.norm.pdf(y, 0.7, 0.8) / stats.norm.pdf(y), 0.1, 10)
    assert stats.spearmanr(pi, exact)[0] > 0.97
    assert np.abs(pi - exact).mean() < (0.12 if n_val == 2000 else 0.3)
    assert abs(pi.mean() - 1) < 0.1
    assert np.average(y, weights=pi) == pytest.approx(0.7, abs=0.12)
    np.testing.assert_array_equal(through_json(base_weights).weights(None, y), pi)
    ends = base_weights.weights(None, [-1e9, y.min(), y_val.max(), 1e9])
    assert (ends >= 0.1 - 1e-12).all()
    assert (ends <= 10 + 1e-12).all()


def test_label_shift_for_regression_is_clipped_at_the_limit():
    rng = np.random.default_rng(2)
    y, y_val = rng.uniform(0, 1, 1000), rng.uniform(0.9, 1, 300)
    pi = LabelShift(limit=3).fit(None, y, None, y_val, task="regression").weights(None, [0.1, 0.97])
    np.testing.assert_allclose(pi, [1 / 3, 3])


@pytest.mark.parametrize("draw", [lambda r, n: r.lognormal(0, 2, n), lambda r, n: r.poisson(1.0, n) * 1.0])
def test_label_shift_for_regression_is_near_one_without_a_shift(draw):
    rng = np.random.default_rng(3)
    y = draw(rng, 1500)
    pi = LabelShift().fit(None, y, None, draw(rng, 400), task="regression").weights(None, y)
    assert np.abs(pi - 1).mean() < 0.15


def test_label_shift_for_regression_needs_enough_rows_and_takes_constant_targets():
    with pytest.raises(InvalidInputError, match="5 folds"):
        LabelShift().fit(None, np.arange(9.0), None, [1.0, 2.0], task="regression")
    same = LabelShift().fit(None, np.ones(20), None, np.ones(10), task="regression")
    np.testing.assert_array_equal(same.weights(None, [1.0, 5.0]), [1, 1])


@pytest.fixture(scope="module")
def beta_squares():
    """Figure 1: training rows Beta(2,1)², validation rows Beta(1,2)², and the clipped exact ratio."""
    rng = np.random.default_rng(4)
    X, X_val = rng.beta(2, 1, (2000, 2)), rng.beta(1, 2, (500, 2))
    base_weights = CovariateShift(random_state=0).fit(
        X, np.zeros(2000), X_val, np.zeros(500), task="classification"
    )
    exact = np.clip(np.prod((1 - X) / X, axis=1), 0.1, 10)
    return X, X_val, base_weights, exact / exact.mean()


def test_covariate_shift_finds_a_known_density_ratio(beta_squares):
    X, X_val, base_weights, exact = beta_squares
    for pi in (base_weights.training_weights_, base_weights.weights(X, np.zeros(2000))):
        assert stats.spearmanr(pi, exact)[0] > 0.95
        assert np.corrcoef(pi, exact)[0, 1] > 0.95
        assert np.abs(pi - exact).mean() < 0.2
        assert abs(pi.mean() - 1) < 0.05
    assert base_weights.training_weights_.mean() == pytest.approx(1, rel=1e-12)
    # Weighted training rows look like validation rows.
    weighted = np.average(X, axis=0, weights=base_weights.training_weights_)
    assert (
        np.abs(weighted - X_val.mean(axis=0)).max() < 0.3 * np.abs(X.mean(axis=0) - X_val.mean(axis=0)).max()
    )


def test_covariate_shift_stays_within_its_limit(beta_squares):
    X, _, base_weights, _ = beta_squares
    raw = base_weights.weights(X, np.zeros(2000)) * base_weights.mean_
    assert raw.max() <= 10 * (1 + 1e-12)
    assert raw.min() >= 0.1 * (1 - 1e-12)


def test_covariate_shift_state_is_bit_equal(beta_squares):
    X, X_val, base_weights, _ = beta_squares
    loaded = through_json(base_weights)
    for rows in (X, X_val):
        np.testing.assert_array_equal(loaded.weights(rows, None), base_weights.weights(rows, None))


def test_a_training_rows_odds_come_from_a_classifier_that_did_not_see_it():
    rng = np.random.default_rng(5)
    training, validation = rng.normal(size=(60, 4)), rng.normal(0.8, 1, size=(40, 4))
    rows, origin = np.vstack([training, validation]), np.repeat([0, 1], [60, 40])
    ratio = fit_density_ratio(training, validation, n_folds=4, seed=7)
    folds = StratifiedKFold(4, shuffle=True, random_state=7)
    unseen = [
        cross_val_predict(
            LogisticRegression(C=strength, solver="newton-cholesky"),
            rows,
            origin,
            cv=folds,
            method="decision_function",
        )
        for strength in (0.01, 0.1, 1.0, 10.0)
    ]
    best = min(unseen, key=lambda logits: log_loss(origin, expit(logits)))
    # Calibrated by a line, which is scikit-learn's unpenalised logistic regression of those logits.
    line = LogisticRegression(C=np.inf, tol=1e-8).fit(best[:, None], origin)
    expected = line.decision_function(best[:, None]) - np.log(40 / 60)
    np.testing.assert_allclose(ratio.training_log_ratio, expected[:60], atol=1e-3)


def test_odds_from_thinned_rows_are_those_of_all_rows(monkeypatch):
    rng = np.random.default_rng(10)
    y, y_val = rng.normal(0, 1, (2000, 1)), rng.normal(0.5, 1, (300, 1))
    exact = 0.5 * y[:, 0] - 0.125
    for most_rows in (10_000, 400, 200):
        monkeypatch.setattr("moew.weighting._density_ratio._MOST_ROWS", most_rows)
        ratio = fit_density_ratio(y, y_val, n_folds=5, seed=0)
        assert np.abs(ratio.training_log_ratio - exact).mean() < 0.15
        line = ratio.intercept + y[:, 0] * ratio.coef[0]
        assert np.abs(line - exact).mean() < 0.15


@pytest.mark.parametrize("seed", range(3))
def test_covariate_shift_is_near_one_without_a_shift(seed):
    rng = np.random.default_rng(seed)
    X, X_val = rng.normal(size=(800, 3)), rng.normal(size=(300, 3))
    base_weights = CovariateShift(random_state=0).fit(X, np.zeros(800), X_val, None, task="classification")
    assert np.abs(base_weights.training_weights_ - 1).mean() < 0.15
    assert np.abs(base_weights.weights(X, None) - 1).mean() < 0.15


def test_covariate_shift_sees_interactions_categories_and_gaps():
    rng = np.random.default_rng(6)

    def rows(n, correlation, share, gaps):
        numbers = rng.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], n)
        numbers[rng.random(n) < gaps, 0] = np.nan
        return pd.DataFrame(
            {"a": numbers[:, 0], "b": numbers[:, 1], "c": rng.choice(["x", "y", "z"], n, p=share)}
        )

    X, X_val = rows(1200, 0.0, [0.6, 0.2, 0.2], 0.1), rows(600, 0.8, [0.2, 0.2, 0.6], 0.4)
    pi = CovariateShift(random_state=0).fit(X, None, X_val, None, task="regression").training_weights_
    assert pi[X["c"] == "z"].mean() > 2 * pi[X["c"] == "x"].mean()
    assert pi[X["a"].isna()].mean() > 2 * pi[X["a"].notna()].mean()
    agree = (X["a"] * X["b"] > 0.5).to_numpy()
    oppose = (X["a"] * X["b"] < -0.5).to_numpy()
    assert pi[agree].mean() > 2 * pi[oppose].mean()


def test_covariate_shift_with_many_columns_takes_them_as_they_are():
    rng = np.random.default_rng(7)
    X, X_val = rng.normal(size=(150, 70)), rng.normal(size=(80, 70))
    X_val[:, 3] += 2
    base_weights = CovariateShift(random_state=0).fit(X, np.zeros(150), X_val, None, task="classification")
    assert len(base_weights.coef_) == 70
    assert stats.spearmanr(base_weights.training_weights_, X[:, 3])[0] > 0.5


def rows_of_a_relation(n, agree, seed):
    """Neither the feature nor the label differs, but how often they agree."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return np.where(rng.random(n) < agree, y, 1 - y)[:, None].astype(float), y


def test_joint_shift_sees_that_a_relation_of_feature_and_label_differs():
    training, validation = rows_of_a_relation(2000, 0.9, 0), rows_of_a_relation(1000, 0.5, 1)
    base_weights = JointShift(random_state=0).fit(*training, *validation, task="classification")
    agrees = training[0][:, 0] == training[1]
    # p_V / p_T is 0.5 / 0.9 where they agree, and 0.5 / 0.1 where not.
    assert base_weights.training_weights_[agrees].mean() == pytest.approx(0.5 / 0.9, rel=0.1)
    assert base_weights.training_weights_[~agrees].mean() == pytest.approx(5, rel=0.2)
    assert np.ptp(CovariateShift(random_state=0).fit_weights(*training, *validation, task="regression")) < 0.2
    loaded = through_json(base_weights)
    np.testing.assert_array_equal(loaded.weights(*validation), base_weights.weights(*validation))


def test_joint_shift_corrects_a_numeric_target_and_is_one_without_a_shift():
    rng = np.random.default_rng(0)
    X, X_val = rng.standard_normal((1500, 2)), rng.standard_normal((700, 2))
    y, y_val = X[:, 0] + rng.standard_normal(1500), X_val[:, 0] + rng.normal(0.8, 1, 700)
    base_weights = JointShift(random_state=0)
    weights = base_weights.fit_weights(X, y, X_val, y_val, task="regression")
    assert np.average(y, weights=weights) == pytest.approx(y_val.mean(), abs=0.15)
    loaded = through_json(base_weights)
    np.testing.assert_array_equal(loaded.weights(X_val, y_val), base_weights.weights(X_val, y_val))
    same = [
        np.ptp(JointShift(random_state=0).fit_weights(X[a], y[a], X[b], y[b], task="regression"))
        for a, b in np.split(rng.permutation(1500)[:1400].reshape(14, 100), 7)
    ]
    assert np.median(same) == 0
    with pytest.raises(InvalidInputError, match="no y_val"):
        JointShift().fit(X, y, X_val, None, task="regression")


def test_covariate_shift_is_repeatable():
    rng = np.random.default_rng(8)
    X, X_val = rng.normal(size=(90, 2)), rng.normal(1, 1, size=(60, 2))
    one, two, other = (
        CovariateShift(random_state=seed).fit(X, None, X_val, None, task="regression") for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one.training_weights_, two.training_weights_)
    assert not np.array_equal(one.training_weights_, other.training_weights_)


def test_covariate_shift_refuses_what_it_cannot_use():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(20, 2))

    def fit(X_val, X=X, **settings_):
        return CovariateShift(**settings_).fit(X, None, X_val, None, task="regression")

    with pytest.raises(InvalidInputError, match="no X_val was given"):
        fit(None)
    with pytest.raises(InvalidInputError, match="5 folds"):
        fit(X[:3])
    with pytest.raises(InvalidInputError, match="1 folds"):
        fit(X, n_folds=1)
    with pytest.raises(InvalidInputError, match="3 columns"):
        fit(rng.normal(size=(20, 3)))
    with pytest.raises(InvalidInputError, match="sparse"):
        fit(X, X=scipy.sparse.csr_array(X))
    for limit in (1.0, 0.5, np.nan, np.inf):
        with pytest.raises(InvalidInputError, match="limit must be"):
            fit(X, limit=limit)


@pytest.mark.parametrize("base_weights", [LabelShift(), CovariateShift(), JointShift()])
def test_baselines_must_be_fitted_first(base_weights):
    with pytest.raises(NotFittedError):
        base_weights.weights(np.eye(2), [0, 1])
    with pytest.raises(NotFittedError):
        base_weights.state()


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=40))
def test_spline_features_are_shares_that_add_up_to_one(values):
    x = np.array(values)
    knots = spline_knots(x)
    features = spline_features(np.r_[x, x.max() + 5, x.min() - 5], knots)
    if len(knots) < 2:
        assert features.shape[1] == 0
        return
    assert features.shape[1] == len(knots) + 2
    assert (features >= 0).all()
    np.testing.assert_allclose(features.sum(axis=1), 1, rtol=1e-9)


def own_weights(X, y):
    return 1.0 + np.asarray(y)


def test_a_function_is_taken_as_it_is():
    base_weights = FunctionBaseWeights(own_weights).fit(None, [0, 1], None, None, task="regression")
    np.testing.assert_array_equal(base_weights.weights(None, [0, 1, 2]), [1, 2, 3])
    name = base_weights.state()["function"]
    np.testing.assert_array_equal(through_json(base_weights, {name: own_weights}).weights(None, [4]), [5])
    with pytest.raises(StateError, match="own_weights"):
        through_json(base_weights)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X, y: np.ones(len(y) + 1), "one number for each of the 3 rows"),
        (lambda X, y: np.ones((len(y), 1)), "one number for each of the 3 rows"),
        (lambda X, y: 1.0, "one number for each of the 3 rows"),
        (lambda X, y: [1.0, 0.0, 1.0], "positive, finite weights, got 0.0"),
        (lambda X, y: [1.0, -2.0, 1.0], "got -2.0"),
        (lambda X, y: [1.0, np.nan, 1.0], "got nan"),
        (lambda X, y: [1.0, np.inf, 1.0], "got inf"),
        (lambda X, y: ["a", "b", "c"], "must give numbers"),
    ],
)
def test_functions_are_checked_on_the_training_rows(function, message):
    with pytest.raises(InvalidInputError, match=message):
        FunctionBaseWeights(function).fit(None, [0, 1, 2], None, None, task="regression")


@pytest.mark.parametrize(
    ("thing", "kind"),
    [
        ("uniform", UniformBaseWeights),
        ("label_shift", LabelShift),
        ("covariate_shift", CovariateShift),
        (LabelShift(limit=5), LabelShift),
        (own_weights, FunctionBaseWeights),
    ],
)
def test_resolve_takes_names_objects_and_functions(thing, kind):
    resolved = resolve_base_weights(thing)
    assert type(resolved) is kind
    assert isinstance(resolved, BaseWeights)
    assert resolved is not thing


def test_resolve_copies_ours_and_takes_the_users_as_they_are():
    assert isinstance(resolve_base_weights("covariate_shift"), CovariateShift)
    mine = LabelShift(limit=5)
    assert resolve_base_weights(mine) is not mine
    assert resolve_base_weights(mine).limit == 5

    class Own:
        def fit_weights(self, X, y, X_val, y_val, *, task):
            return self.weights(X, y)

        def weights(self, X, y):
            return np.ones(len(y))

        def state(self):
            return {}

    own = Own()
    assert resolve_base_weights(own) is own


@pytest.mark.parametrize("thing", ["labelshift", None, 2.0, LabelShift, object()])
def test_resolve_refuses_other_things_and_lists_what_is_allowed(thing):
    with pytest.raises(InvalidInputError, match="'covariate_shift', 'label_shift', 'uniform'"):
        resolve_base_weights(thing)


def test_without_smoothing_the_label_shift_is_the_ratio_of_the_shares():
    y, y_val = np.repeat([0, 1], [30, 10]), np.repeat([0, 1], [5, 15])
    exact = LabelShift(smoothing=0.0).fit(None, y, None, y_val, task="classification")
    np.testing.assert_allclose(exact.weights(None, [0, 1]), [0.25 / 0.75, 0.75 / 0.25], rtol=1e-12)
    assert through_json(exact).get_params() == exact.get_params()
