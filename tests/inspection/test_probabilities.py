"""Reliability, the metric over the threshold, and the front, as numbers."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, brier_score_loss, f1_score
from sklearn.model_selection import cross_val_predict

import moew
from moew import MetricSearch
from moew.exceptions import InvalidInputError
from moew.inspection import pareto_front, reliability, threshold_curve
from moew.metrics import worst_class_error

RNG = np.random.default_rng(0)
Y = (RNG.random(1200) < 0.3).astype(int)
X = RNG.normal(size=(1200, 3)) + Y[:, None]
SETTINGS = {"n_candidates": 3, "batch_size": 3, "random_state": 0, "honest": None}


def fitted(estimator=None, y=Y, **settings):
    model = LogisticRegression() if estimator is None else estimator
    search = MetricSearch.from_settings(model, **{**SETTINGS, **settings})
    return search.fit(X[:600], y[:600])


@pytest.fixture(scope="module")
def calibrated():
    return fitted(
        LogisticRegression(class_weight="balanced"), metric="f1", calibrate="sigmoid", evaluate_on=5
    )


def test_the_curve_is_scikit_learns(calibrated):
    found = reliability(calibrated.fitted_, X[600:], Y[600:])
    raw = calibrated.best_estimator_.predict_proba(X[600:])[:, 1]
    for curve, shares in ((found.before, raw), (found.after, calibrated.predict_proba(X[600:])[:, 1])):
        observed, predicted = calibration_curve(Y[600:], shares, n_bins=10)
        assert [one.observed for one in curve.bins] == pytest.approx(observed)
        assert [one.predicted for one in curve.bins] == pytest.approx(predicted)
        assert sum(one.n_rows for one in curve.bins) == 600
        assert curve.brier == pytest.approx(brier_score_loss(Y[600:], shares))
    assert found.after.brier < found.before.brier
    assert (found.label, found.n_rows) == (1, 600)


def test_on_evaluation_rows_it_is_of_models_that_did_not_see_them(calibrated):
    found = reliability(calibrated.fitted_)
    model = LogisticRegression(class_weight="balanced")
    shares = cross_val_predict(model, X[:600], Y[:600], method="predict_proba", cv=5)[:, 1]
    assert found.rows == "evaluation rows"
    assert found.before.brier == pytest.approx(brier_score_loss(Y[:600], shares))
    assert found.after.brier < found.before.brier


def test_of_several_classes_all_are_in_one_curve():
    y = np.array(["a", "b", "c"])[np.minimum(Y + (X[:, 0] > 1), 2)]
    search = fitted(y=y, metric="accuracy")
    found = reliability(search.fitted_, X[600:], y[600:])
    assert (found.label, found.after) == (None, None)
    assert sum(one.n_rows for one in found.before.bins) == 3 * 600
    one = reliability(search.fitted_, X[600:], y[600:], label="b").before
    wanted = brier_score_loss(y[600:] == "b", search.predict_proba(X[600:])[:, 1])
    assert one.brier == pytest.approx(wanted)
    with pytest.raises(InvalidInputError, match="one of the classes"):
        reliability(search.fitted_, X[600:], y[600:], label="d")


def test_weights_of_rows_count_in_the_curve(calibrated):
    twice = np.r_[np.arange(600), np.arange(300)]
    weight = np.r_[np.full(300, 2.0), np.ones(300)]
    many = reliability(calibrated.fitted_, X[600:][twice], Y[600:][twice])
    few = reliability(calibrated.fitted_, X[600:], Y[600:], weight)
    assert few.before.brier == pytest.approx(many.before.brier)
    assert [b.observed for b in few.after.bins] == pytest.approx([b.observed for b in many.after.bins])


def test_what_has_no_probabilities_says_so(tmp_path):
    with pytest.raises(InvalidInputError, match="give rows X and y"):
        reliability(fitted(metric="f1").fitted_)
    with pytest.raises(InvalidInputError, match="regressor"):
        reliability(fitted(Ridge(), y=X[:, 0], metric="r2").fitted_, X, X[:, 0])


@pytest.mark.parametrize("estimator", [LogisticRegression(), RandomForestClassifier(20, random_state=0)])
def test_the_metric_over_the_threshold_is_that_of_its_decisions(estimator):
    search = fitted(estimator, metric="f1", batch_size=1)
    curve = threshold_curve(search.fitted_, X[600:], Y[600:])
    model = search.best_estimator_
    if hasattr(model, "decision_function"):
        scores = model.decision_function(X[600:])
    else:
        scores = model.predict_proba(X[600:])[:, 1]
    wanted = [f1_score(Y[600:], scores > t) for t in curve.thresholds]
    assert curve.values == pytest.approx(wanted)
    assert curve.value == pytest.approx(f1_score(Y[600:], search.predict(X[600:])))
    assert curve.share == pytest.approx(search.predict(X[600:]).mean())


def test_on_evaluation_rows_the_star_is_the_score_of_what_is_selected():
    search = fitted(metric="f1")
    curve = threshold_curve(search.fitted_)
    assert curve.value == pytest.approx(search.best_score_)
    assert (np.diff(curve.thresholds) > 0).all()
    assert (np.diff(curve.selected) <= 0).all()
    assert curve.n_rows == 600


def test_a_rule_of_the_user_has_its_threshold():
    search = fitted(metric="accuracy", decision=0.3)
    curve = threshold_curve(search.fitted_, X[600:], Y[600:])
    assert (curve.chosen, curve.of) == (0.3, "probability")
    assert curve.value == pytest.approx(accuracy_score(Y[600:], search.predict(X[600:])))


@pytest.mark.parametrize(
    ("metric", "why"), [("roc_auc", "looks at scores"), (worst_class_error(), "two classes")]
)
def test_where_there_is_no_threshold_it_is_said(metric, why):
    y = Y if metric == "roc_auc" else Y + (X[:, 0] > 1)
    search = fitted(y=y, metric=metric, batch_size=1)
    with pytest.raises(InvalidInputError, match=why):
        threshold_curve(search.fitted_)


def test_a_loaded_search_needs_rows(calibrated, tmp_path):
    calibrated.save(tmp_path / "search.moew")
    again = moew.load(tmp_path / "search.moew").fitted_
    for curve in (reliability, threshold_curve):
        with pytest.raises(InvalidInputError, match="rows X and y"):
            curve(again)
    assert reliability(again, X[600:], Y[600:]) == reliability(calibrated.fitted_, X[600:], Y[600:])


def test_one_metric_has_no_front():
    search = fitted(metric="f1")
    with pytest.raises(InvalidInputError, match="one metric"):
        pareto_front(search.fitted_)
