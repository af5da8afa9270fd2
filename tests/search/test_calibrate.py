"""Calibrated probabilities of the selected model, against scikit-learn's."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import cross_val_predict
from sklearn.svm import LinearSVC
from test_strategies import LabelsOnly

import moew
from moew import MetricSearch, Rows
from moew._util.state import load_state
from moew.exceptions import InvalidInputError, StateError
from moew.metrics import worst_class_error
from moew.models._calibration import fit_calibration

SETTINGS = {"n_candidates": 4, "batch_size": 4, "random_state": 0, "honest": None}


def rows_of(n_classes, n=900):
    X, y = make_classification(
        n, n_features=6, n_informative=4, n_classes=n_classes, class_sep=0.7, random_state=0
    )
    return X, np.array(["a", "b", "c"])[y]


TWO, THREE = rows_of(2), rows_of(3)


def fitted(X, y, estimator=None, n=300, **settings):
    """Trained on n rows and evaluated on the next n alone, unless `evaluate_on` says otherwise."""
    search = MetricSearch.from_settings(
        LogisticRegression() if estimator is None else estimator,
        **{"metric": "accuracy", "evaluate_on": "validation", **SETTINGS, **settings},
    )
    return search.fit(X[:n], y[:n], validation=(X[n : 2 * n], y[n : 2 * n]))


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("rows", [TWO, THREE], ids=["two classes", "three classes"])
@pytest.mark.parametrize("final", ["best", "ensemble"])
def test_on_validation_rows_alone_it_is_scikit_learns(method, rows, final):
    X, y = rows
    search = fitted(X, y, calibrate=method, strategies="example weights", final=final)
    oracle = CalibratedClassifierCV(FrozenEstimator(search.best_estimator_), method=method)
    oracle.fit(X[300:600], y[300:600])
    assert search.predict_proba(X[600:]) == pytest.approx(oracle.predict_proba(X[600:]), abs=1e-9)


def test_ensembles_have_calibrated_probabilities_by_their_mean_scores():
    X, y = TWO
    search = fitted(
        X, y, calibrate="sigmoid", strategies="example weights", batch_size=10, metric=worst_class_error()
    )
    assert len(search.best_estimator_.models_) > 1
    raw = search.best_estimator_.decision_function(X)
    order = np.argsort(raw)
    assert (np.diff(search.predict_proba(X)[order, 1]) >= 0).all()


def test_out_of_fold_it_is_fitted_on_scores_of_models_that_did_not_see_the_rows():
    X, y = TWO
    folds = MetricSearch.from_settings(
        LogisticRegression(),
        metric="accuracy",
        calibrate="sigmoid",
        evaluate_on=5,
        **{**SETTINGS, "n_candidates": 1, "batch_size": 1},
    ).fit(X, y)
    assert folds.selected_ in ("unweighted", "tuned decisions")  # the same model
    scores = cross_val_predict(LogisticRegression(), X, y, method="decision_function", cv=5)
    wanted = fit_calibration("sigmoid", scores, y, np.array(["a", "b"]))
    found = folds.fitted_.winner.calibration
    assert np.ravel(found.curves) == pytest.approx(np.ravel(wanted.curves), rel=1e-6)
    own = folds.best_estimator_.decision_function(X)
    assert folds.predict_proba(X) == pytest.approx(found.probabilities(own))


def test_forests_are_calibrated_by_their_probabilities():
    X, y = TWO
    forest = RandomForestClassifier(10, random_state=0)
    search = fitted(
        X, y, forest, calibrate="isotonic", strategies="example weights", final="best", batch_size=1
    )
    oracle = CalibratedClassifierCV(FrozenEstimator(search.best_estimator_), method="isotonic")
    oracle.fit(X[300:600], y[300:600])
    assert search.predict_proba(X[600:]) == pytest.approx(oracle.predict_proba(X[600:]), abs=1e-9)


def test_only_probabilities_change():
    X, y = TWO
    plain, calibrated = (fitted(X, y, calibrate=how, evaluate_on="auto") for how in (None, "sigmoid"))
    assert (plain.predict(X) == calibrated.predict(X)).all()
    assert (plain.decision_function(X) == calibrated.decision_function(X)).all()
    assert plain.result_.honest == calibrated.result_.honest
    own = calibrated.best_estimator_.predict_proba(X)
    assert (plain.predict_proba(X) == own).all()
    assert not np.allclose(calibrated.predict_proba(X), own, atol=1e-3)
    assert calibrated.predict_log_proba(X) == pytest.approx(np.log(calibrated.predict_proba(X)))


def test_models_with_scores_alone_get_probabilities():
    X, y = TWO
    search = fitted(X, y, LinearSVC(), calibrate="sigmoid")
    shares = search.predict_proba(X)
    assert shares.sum(axis=1) == pytest.approx(1.0)
    assert not hasattr(fitted(X, y, LinearSVC()), "predict_proba")


def test_a_weighted_model_has_better_probabilities_of_new_rows():
    """Rows of a rare class are weighted up for the worst class's error: their shares are far too high."""
    rng = np.random.default_rng(3)
    y = (rng.random(6000) < 0.1).astype(int)
    X = rng.normal(size=(6000, 2)) + 1.2 * y[:, None]
    settings = {
        "metric": worst_class_error(),
        "strategies": "example weights",
        "embedding": "label",
        "batch_size": 8,
        "n": 1000,
    }
    losses = {}
    for method in (None, "sigmoid", "isotonic"):
        search = fitted(X, y, calibrate=method, **settings)
        shares = search.predict_proba(X[2000:])[:, 1]
        losses[method] = log_loss(y[2000:], shares), brier_score_loss(y[2000:], shares)
        assert abs(shares.mean() - 0.1) < (1 if method is None else 0.02)
    assert losses["sigmoid"][0] < 0.8 * losses[None][0]
    assert losses["sigmoid"][1] < 0.8 * losses[None][1]
    assert losses["isotonic"][1] < 0.8 * losses[None][1]


def test_rows_of_the_validation_distribution_say_how_likely_a_class_is():
    """Training rows have half of each class, validation rows and new rows a tenth of the second."""
    rng = np.random.default_rng(0)

    def drawn(n, share):
        y = (rng.random(n) < share).astype(int)
        return rng.normal(size=(n, 2)) + y[:, None], y

    (X, y), (X_val, y_val), (X_new, y_new) = drawn(600, 0.5), drawn(600, 0.1), drawn(3000, 0.1)
    search = MetricSearch.from_settings(
        LogisticRegression(), metric="accuracy", calibrate="sigmoid", base_weights="uniform", **SETTINGS
    ).fit(X, y, validation=(X_val, y_val))
    assert search.predict_proba(X_new)[:, 1].mean() == pytest.approx(0.1, abs=0.03)
    before = log_loss(y_new, search.unweighted_estimator_.predict_proba(X_new))
    assert log_loss(y_new, search.predict_proba(X_new)) < 0.8 * before


def test_sample_weights_of_evaluation_rows_count():
    X, y = TWO
    weight = np.where(y[300:600] == "b", 4.0, 1.0)
    search = MetricSearch.from_settings(
        LogisticRegression(),
        metric="accuracy",
        calibrate="sigmoid",
        evaluate_on="validation",
        strategies="example weights",
        final="best",
        **SETTINGS,
    ).fit(X[:300], y[:300], validation=Rows(X[300:600], y[300:600], sample_weight=weight))
    scores = search.best_estimator_.decision_function(X[300:600])
    wanted = fit_calibration("sigmoid", scores, y[300:600], np.array(["a", "b"]), weight)
    assert np.array_equal(np.ravel(search.fitted_.winner.calibration.curves), np.ravel(wanted.curves))


@pytest.mark.parametrize("rows", [TWO, THREE], ids=["two classes", "three classes"])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_a_saved_search_keeps_it(rows, method, tmp_path):
    X, y = rows
    search = fitted(X, y, calibrate=method)
    search.save(tmp_path / "search.moew")
    again = moew.load(tmp_path / "search.moew")
    assert again.calibrate == method
    assert np.array_equal(again.predict_proba(X), search.predict_proba(X))


@pytest.mark.parametrize(
    "damage",
    [
        {"method": "guess"},
        {"curves": []},
        {"curves": [[[1.0], [0.1, 0.2]]]},
        {"curves": [[[2.0, 1.0], [0.1, 0.2]]]},
        {"curves": [[[float("nan")], [0.1]]]},
        {"curves": 3},
    ],
    ids=str,
)
def test_a_damaged_calibration_is_refused(damage):
    state = fit_calibration(
        "isotonic", np.arange(6.0), np.array([0, 0, 1, 0, 1, 1]), np.array([0, 1])
    ).state()
    with pytest.raises(StateError):
        load_state({**state, **damage})


@pytest.mark.parametrize("how", ["platt", True, 1])
def test_other_names_are_refused(how):
    with pytest.raises(InvalidInputError, match="calibrate"):
        fitted(*TWO, calibrate=how)


def test_regressors_and_models_without_scores_are_refused_before_training():
    X, y = TWO
    with pytest.raises(InvalidInputError, match="is for classifiers, but Ridge"):
        fitted(X, X[:, 0], Ridge(), calibrate="sigmoid", metric="r2")
    with pytest.raises(InvalidInputError, match="LabelsOnly gives labels only"):
        fitted(X, y, LabelsOnly(), calibrate="sigmoid")


def test_every_class_needs_evaluation_rows():
    X, y = TWO
    search = MetricSearch.from_settings(
        LogisticRegression(), metric="accuracy", calibrate="sigmoid", evaluate_on="validation", **SETTINGS
    )
    only = np.flatnonzero(y == "a")[-20:]
    with pytest.raises(InvalidInputError, match=r"fewer of \['b'\]"):
        search.fit(X[:300], y[:300], validation=(X[only], y[only]))


def test_a_constant_has_the_share_of_its_class():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), (rng.random(200) < 0.3).astype(int)

    def few(y_true, decision):
        return -float(np.mean(decision != 0)) - float(np.mean(decision > y_true))

    search = MetricSearch.from_settings(
        LogisticRegression(class_weight="balanced"), metric=few, calibrate="isotonic", **SETTINGS
    ).fit(X, y)
    assert search.selected_ == "constant prediction"
    assert search.predict_proba(X)[:, 1] == pytest.approx(y.mean())
