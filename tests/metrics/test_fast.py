"""The NumPy forms of scorers against the scorers themselves, and what is fallen back on."""

import pickle
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer
from sklearn.utils.fixes import parse_version

from moew.data import LabelledRows
from moew.exceptions import InvalidInputError
from moew.metrics import Predictions, resolve_metric
from moew.metrics._fast import FAST_FORMS

seeds = st.integers(0, 100_000)
weights = st.sampled_from(["none", "whole", "real"])
DECIDING = ("accuracy", "balanced_accuracy", "f1", "precision", "recall")
SCORING = ("roc_auc", "average_precision")
REGRESSION = tuple(name for name in FAST_FORMS if name == "r2" or name.endswith("_error"))


class Told(BaseEstimator):
    """A model that answers what it was told, whatever the rows."""

    def __init__(self, answer, classes=None):
        self.answer = answer
        self.classes_ = classes

    def predict(self, X):
        return self.answer

    def __sklearn_is_fitted__(self):
        return True


class ToldClassifier(ClassifierMixin, Told):
    pass


class ToldRegressor(RegressorMixin, Told):
    pass


class ToldScores(ClassifierMixin, Told):
    def decision_function(self, X):
        return self.answer


class ToldProba(ClassifierMixin, Told):
    def predict_proba(self, X):
        return self.answer


def _values(name, model, y, weight=None):
    """What the scorer gives (its warnings aside), and what the metric gives, which must be silent."""
    X = np.zeros((len(y), 1))
    rows = LabelledRows(X, y, weight)
    metric = resolve_metric(name)
    given_weight = {} if weight is None else {"sample_weight": weight}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = get_scorer(name)(model, X, y, **given_weight)
        outputs = metric.respond(model, rows)
    return expected, metric.value(outputs, rows)


def _agree(name, model, y, weight=None):
    expected, got = _values(name, model, y, weight)
    assert type(got) is float
    assert got == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)


def _weight(kind, rng, n):
    if kind == "none":
        return None
    weight = rng.integers(0, 3, n) if kind == "whole" else rng.random(n) + 0.01
    weight[0] = 1
    return weight


def _uses_fast_path(monkeypatch):
    """From now on scikit-learn's own scorers fail when they are called."""

    def fail(*args, **kwargs):
        raise AssertionError("the scorer was called")

    monkeypatch.setattr("sklearn.metrics._scorer._Scorer._score", fail)


@pytest.mark.parametrize("name", DECIDING)
@given(
    seeds,
    st.integers(1, 40),
    weights,
    st.sampled_from([(0, 1), (-1, 1), (1, 2), (False, True), (0.0, 1.0)]),
)
def test_decisions_of_two_classes(name, seed, n, weight, classes):
    rng = np.random.default_rng(seed)
    classes = np.array(classes)
    y, predicted = classes[rng.integers(0, 2, n)], classes[rng.integers(0, 2, n)]
    _agree(name, ToldClassifier(predicted, classes), y, _weight(weight, rng, n))


@pytest.mark.parametrize("name", ["accuracy", "balanced_accuracy"])
@given(seeds, st.integers(2, 40), weights, st.sampled_from([int, float, str, object]))
def test_decisions_of_more_classes(name, seed, n, weight, kind):
    rng = np.random.default_rng(seed)
    classes = np.array([3, 5, 8, -2]).astype(str if kind is object else kind).astype(kind)
    y, predicted = classes[rng.integers(0, 4, n)], classes[rng.integers(0, 4, n)]
    _agree(name, ToldClassifier(predicted, np.unique(classes)), y, _weight(weight, rng, n))


@pytest.mark.parametrize("name", SCORING)
@given(seeds, st.integers(2, 50), weights, st.booleans(), st.sampled_from([(0, 1), (-1, 1), (1, 2)]))
def test_scores_of_two_classes(name, seed, n, weight, with_ties, classes):
    rng = np.random.default_rng(seed)
    classes = np.array(classes)
    y = classes[rng.integers(0, 2, n)]
    y[:2] = classes
    score = rng.integers(0, 4, n) / 4 if with_ties else rng.random(n)
    weight = _weight(weight, rng, n)
    if weight is not None:
        weight[1] = 2
    _agree(name, ToldScores(score - 0.5, classes), y, weight)
    _agree(name, ToldProba(np.column_stack([1 - score, score]), classes), y, weight)


@given(seeds, st.integers(2, 40), st.integers(2, 4), weights, st.sampled_from([np.float64, np.float32]))
def test_log_loss(seed, n, n_classes, weight, dtype):
    rng = np.random.default_rng(seed)
    classes = np.array(["a", "b", "c", "d"])[:n_classes]
    y = np.concatenate([classes, rng.choice(classes, n)])
    proba = rng.random((len(y), n_classes)).astype(dtype)
    proba[0, 0] = 0.0
    proba /= proba.sum(axis=1, keepdims=True)
    expected, got = _values("neg_log_loss", ToldProba(proba, classes), y, _weight(weight, rng, len(y)))
    assert got == pytest.approx(expected, rel=1e-12 if dtype is np.float64 else 1e-5)


@pytest.mark.parametrize("name", REGRESSION)
@given(seeds, st.integers(1, 40), weights, st.sampled_from([np.float64, np.float32, np.int64]))
def test_numbers(name, seed, n, weight, dtype):
    rng = np.random.default_rng(seed)
    y, predicted = (rng.normal(0, 9, n).astype(dtype) for _ in range(2))
    y[-1] = 20
    expected, got = _values(name, ToldRegressor(predicted), y, _weight(weight, rng, n))
    precision = 1e-12 if dtype is not np.float32 else 1e-4  # scikit-learn computes in single precision
    assert got == pytest.approx(expected, rel=precision, abs=precision, nan_ok=True)


def test_constant_and_perfect_numbers():
    y = np.full(3, 0.1)
    _agree("r2", ToldRegressor(y.copy()), y)
    _agree("r2", ToldRegressor(y + 1), y)
    _agree("r2", ToldRegressor(np.arange(3.0)), np.arange(3.0))


@pytest.mark.parametrize("name", FAST_FORMS)
def test_the_scorer_is_not_called_for_common_answers(name, monkeypatch):
    """Otherwise the tests above would compare scikit-learn with itself."""
    rng = np.random.default_rng(0)
    X, weight = np.zeros((20, 1)), rng.random(20)
    y, classes = np.tile([0, 1], 10), np.array([0, 1])
    score = rng.random(20)
    if name in REGRESSION:
        model, y = ToldRegressor(score), score + rng.random(20)
    elif name in SCORING:
        model = ToldScores(score, classes)
    elif name in DECIDING:
        model = ToldClassifier(rng.integers(0, 2, 20), classes)
    else:
        model = ToldProba(np.column_stack([1 - score, score]), classes)
    metric = resolve_metric(name)
    rows = LabelledRows(X, y)
    outputs = metric.respond(model, rows)
    expected = [get_scorer(name)(model, X, y, **w) for w in ({}, {"sample_weight": weight})]
    _uses_fast_path(monkeypatch)
    assert metric.value(outputs, rows) == pytest.approx(expected[0], rel=1e-12)
    assert metric.value(outputs, replace(rows, columns={"unrelated": weight})) == metric.value(outputs, rows)
    assert metric.value(outputs, replace(rows, sample_weight=weight)) == pytest.approx(expected[1], rel=1e-12)
    again = pickle.loads(pickle.dumps(metric))
    assert again.value(outputs, rows) == metric.value(outputs, rows)


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_is_as_undefined_as_for_the_scorer(label):
    y, classes = np.full(6, label), np.array([0, 1])
    score = np.linspace(0, 1, 6)
    for name in SCORING:
        _agree(name, ToldScores(score, classes), y)
    for name in DECIDING:
        _agree(name, ToldClassifier(np.full(6, label), classes), y)
        _agree(name, ToldClassifier(np.full(6, 1 - label), classes), y)
    assert np.isnan(_values("roc_auc", ToldScores(score, classes), y)[1])
    metric = resolve_metric("neg_log_loss")
    both = np.array([0, 1, 0, 1, 0, 1])
    outputs = metric.respond(
        ToldProba(np.column_stack([1 - score, score]), classes), LabelledRows(y[:, None], both)
    )
    with pytest.raises(ValueError, match="only one label"):
        metric.value(outputs, LabelledRows(y[:, None], y))


def test_what_the_scorer_refuses_stays_refused():
    X, y = np.zeros((6, 1)), np.array([0, 1, 2, 0, 1, 2])
    three = np.array([0, 1, 2])
    for name, model, labels, message in [
        ("f1", ToldClassifier(y, three), y, "average='binary'"),
        ("roc_auc", ToldProba(np.full((6, 3), 1 / 3), three), y, "multi_class"),
        ("accuracy", ToldRegressor(y + 0.5), y, "mix of multiclass and continuous"),
        ("accuracy", ToldClassifier(y.astype(str), three.astype(str)), y, "[Mm]ix of label"),
        ("roc_auc", ToldScores(np.full(6, np.nan), np.array([0, 1])), y % 2, "NaN"),
        ("r2", ToldRegressor(np.array([0, 1, np.inf, 0, 0, 0])), y, "infinity"),
        ("neg_mean_squared_error", ToldRegressor(np.zeros((6, 2))), y, "different number of output"),
    ]:
        try:
            get_scorer(name)(model, X, labels)
        except (ValueError, TypeError) as error:
            assert re.search(message, str(error))
        else:  # scikit-learn 1.7 finds texts and numbers merely unequal
            assert message == "[Mm]ix of label"
            assert parse_version(sklearn.__version__) < parse_version("1.8")
            continue
        metric, rows = resolve_metric(name), LabelledRows(X, labels)
        with pytest.raises((ValueError, TypeError), match=message):
            metric.value(metric.respond(model, rows), rows)
        recorded = {ToldScores: "decision_function", ToldProba: "predict_proba"}.get(type(model), "predict")
        kind = "regressor" if isinstance(model, ToldRegressor) else "classifier"
        outputs = Predictions({recorded: model.answer}, model.classes_, kind)
        with pytest.raises((ValueError, TypeError), match=message):
            resolve_metric(name).value(outputs, rows)


def test_arguments_of_the_scorer_given_as_columns_are_heeded():
    y = np.array([0, 1, 1, 0])
    rows = LabelledRows(y[:, None], y)
    metric = resolve_metric("neg_mean_squared_error")
    outputs = metric.respond(ToldRegressor(1.0 - y), rows)
    assert metric.value(outputs, rows) == -1.0
    with pytest.raises(ValueError, match="Custom weights"):
        metric.value(outputs, replace(rows, columns={"multioutput": np.ones(4)}))
    with (
        config_context(enable_metadata_routing=True),
        pytest.raises(InvalidInputError, match=r"set_score_request\(sample_weight=True\)"),
    ):
        metric.value(outputs, replace(rows, sample_weight=np.ones(4)))


def test_decisions_of_a_rule_go_before_recorded_ones():
    y = np.array([0, 1, 1, 0])
    rows = LabelledRows(y[:, None], y)
    for name in DECIDING:
        metric = resolve_metric(name)
        outputs = metric.respond(ToldClassifier(1 - y, np.array([0, 1])), rows)
        assert metric.value(outputs, rows) == 0.0
        assert metric.value(outputs, rows, decided=y) == 1.0


def test_bounds_hold_the_values():
    rng = np.random.default_rng(3)
    y, classes = rng.integers(0, 2, 30), np.array([0, 1])
    numbers = ("roc_auc", "neg_max_error", "r2", "d2_absolute_error_score")
    for name in ("accuracy", "f1_macro", "matthews_corrcoef", *numbers):
        low, high = resolve_metric(name).bounds
        answer = rng.random(30) if name in numbers else 1 - y
        model = (ToldScores if name in SCORING else ToldClassifier)(answer, classes)
        assert low <= _values(name, model, y)[1] <= high
    assert resolve_metric("neg_mean_squared_error").bounds == (-np.inf, 0.0)
    assert resolve_metric("positive_likelihood_ratio").bounds is None
