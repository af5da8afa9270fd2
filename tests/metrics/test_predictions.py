"""Recorded predictions of several models, averaged, are those that an ensemble of the models records."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lightgbm import LGBMClassifier, LGBMRegressor
from problems import shifted_classes, skewed_target
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Perceptron, Ridge, RidgeClassifier, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from moew.data import LabelledRows
from moew.exceptions import InvalidInputError, StateError
from moew.metrics import (
    Predictions,
    decision_basis,
    make_metric,
    own_decisions,
    predicts_by_its_scores,
    resolve_metric,
)
from moew.models import ModelEnsemble, NetworkClassifier

VOTES = [3, 1, 2]
CLASSIFIERS = {
    "logistic": lambda seed: LogisticRegression(C=10.0 ** (seed - 2)),
    "lightgbm": lambda seed: LGBMClassifier(n_estimators=3, min_child_samples=3, verbose=-1, n_jobs=1),
    "network": lambda seed: NetworkClassifier((4,), steps=20, random_state=seed),
    "tree": lambda seed: DecisionTreeClassifier(max_depth=3, random_state=seed),
}
SCORERS = ["f1", "roc_auc", "accuracy", "neg_log_loss", "f1_macro", "roc_auc_ovr"]


def metric_of(response):
    return make_metric(lambda y, output: 0.0, response=response, name=response)


def fitted(make, X, y, n=3):
    rng = np.random.default_rng(1)
    rows = [np.concatenate([np.arange(9), rng.choice(len(y), len(y))]) for _ in range(n)]
    return [make(seed).fit(X[some], y[some]) for seed, some in enumerate(rows)]


def record(metric, model, X, y, pos_label=None):
    """What the metric asks the model for, and what the model decides by."""
    scores, threshold = decision_basis(model, X, pos_label)
    kept = metric.respond(model, LabelledRows(X, y), pos_label=pos_label)
    return replace(kept, scores=scores, own_threshold=threshold)


def assert_same(averaged, recorded):
    assert averaged.arrays.keys() == recorded.arrays.keys()
    assert averaged.estimator_type == recorded.estimator_type
    assert averaged.own_threshold == recorded.own_threshold
    for name, array in recorded.arrays.items():
        assert averaged.arrays[name].dtype.kind == array.dtype.kind
        if array.dtype.kind == "f":
            np.testing.assert_allclose(averaged.arrays[name], array, rtol=1e-13, atol=1e-15)
        else:
            np.testing.assert_array_equal(averaged.arrays[name], array)
    if recorded.scores is None:
        assert averaged.scores is None
    else:
        np.testing.assert_allclose(averaged.scores, recorded.scores, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("wanted", ["decision", "score", "proba", *SCORERS])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_averaged_predictions_of_classifiers(name, n_classes, wanted):
    if n_classes == 3 and wanted in ("f1", "roc_auc"):
        pytest.skip("scikit-learn's is for two classes")
    rows = shifted_classes(120, n_classes)
    models = fitted(CLASSIFIERS[name], rows.X, rows.y)
    metric = resolve_metric(wanted) if wanted in SCORERS else metric_of(wanted)
    parts = [record(metric, model, rows.X_val, rows.y_val).compact() for model in models]
    averaged = Predictions.averaged(parts, VOTES, task="classification", classes=np.arange(n_classes))
    ensemble = ModelEnsemble(models, VOTES)
    assert_same(averaged, record(metric, ensemble, rows.X_val, rows.y_val))
    evaluated = LabelledRows(rows.X_val, rows.y_val)
    assert metric.value(averaged, evaluated) == pytest.approx(
        metric.value(metric.respond(ensemble, evaluated), evaluated), rel=1e-12
    )


@pytest.mark.parametrize("wanted", ["decision", "score", "r2"])
@pytest.mark.parametrize(
    "make", [lambda seed: Ridge(10.0**seed), lambda seed: LGBMRegressor(verbose=-1, n_jobs=1)]
)
def test_averaged_predictions_of_regressors(make, wanted):
    rows = skewed_target(100)
    models = fitted(make, rows.X, rows.y)
    metric = resolve_metric(wanted) if wanted == "r2" else metric_of(wanted)
    parts = [record(metric, model, rows.X_val, rows.y_val) for model in models]
    averaged = Predictions.averaged(parts, VOTES, task="regression")
    assert averaged.scores is None
    assert_same(averaged, record(metric, ModelEnsemble(models, VOTES), rows.X_val, rows.y_val))


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_scores_of_the_first_class_decide_the_same(name):
    rows = shifted_classes(120)
    y = np.array(["bad", "good"])[rows.y]
    models = fitted(CLASSIFIERS[name], rows.X, y)
    ensemble, metric = ModelEnsemble(models, VOTES), metric_of("decision")
    for pos_label in (None, "bad", "good"):
        parts = [record(metric, model, rows.X_val, y, pos_label) for model in models]
        averaged = Predictions.averaged(
            parts, VOTES, task="classification", classes=ensemble.classes_, pos_label=pos_label
        )
        assert_same(averaged, record(metric, ensemble, rows.X_val, y, pos_label))


def test_scorers_of_log_probabilities_are_averaged_as_probabilities():
    def scorer(model, X, y):
        return float(model.predict_log_proba(X)[:, 1].mean())

    rows = shifted_classes(120)
    models = fitted(lambda seed: GaussianNB(var_smoothing=10.0**-seed), rows.X, rows.y)
    metric = resolve_metric(scorer)
    averaged = Predictions.averaged(
        [metric.respond(model, LabelledRows(rows.X_val, rows.y_val)) for model in models],
        VOTES,
        task="classification",
    )
    assert list(averaged.arrays) == ["predict_log_proba"]
    expected = ModelEnsemble(models, VOTES).predict_log_proba(rows.X_val)
    np.testing.assert_allclose(averaged.arrays["predict_log_proba"], expected, rtol=1e-9, atol=1e-14)


def test_labels_without_scores_are_decided_by_the_majority():
    labels = [["a", "b", "c", "c"], ["b", "b", "c", "a"], ["c", "a", "b", "b"]]
    parts = [Predictions({"decision": np.array(own)}) for own in labels]
    averaged = Predictions.averaged(parts, [1, 1, 1], task="classification")
    assert averaged.arrays["decision"].tolist() == ["a", "b", "c", "a"] and averaged.scores is None
    turned = np.array(["c", "b", "a"])
    averaged = Predictions.averaged(parts, [1, 1, 1], task="classification", classes=turned)
    assert averaged.arrays["decision"].tolist() == ["c", "b", "c", "c"]


def test_one_part_is_given_back():
    part = Predictions({"decision": np.array([0, 1])}, scores=np.array([-1.0, 1.0]))
    assert Predictions.averaged([part], [3], task="classification") is part


def test_a_class_that_no_model_chose_can_have_the_highest_mean():
    scores = [np.array([[0.5, 0.4, 0.1]]), np.array([[0.1, 0.4, 0.5]])]
    parts = [Predictions({"decision": np.array([k])}, scores=s) for k, s in zip((0, 2), scores, strict=True)]
    averaged = Predictions.averaged(parts, [1, 1], task="classification", classes=np.arange(3))
    assert averaged.arrays["decision"].tolist() == [1]
    with pytest.raises(InvalidInputError, match="pass classes") as refused:
        Predictions.averaged(parts, [1, 1], task="classification")
    assert refused.value.argument == "classes"


def test_parts_that_have_no_mean_are_refused():
    part = Predictions({"score": np.zeros(3)}, np.array([0, 1]), scores=np.zeros(3))
    others = [
        Predictions({"proba": np.zeros(3)}, np.array([0, 1]), scores=np.zeros(3)),
        replace(part, classes=np.array([0, 2])),
        replace(part, scores=None),
        replace(part, own_threshold=0.5),
        part.take(np.array([0, 1])),
    ]
    for other in others:
        with pytest.raises(InvalidInputError, match="do not answer alike"):
            Predictions.averaged([part, other], [1, 1], task="classification")
    with pytest.raises(InvalidInputError, match="votes must be one positive number"):
        Predictions.averaged([part, part], [1, 0], task="classification")
    with pytest.raises(InvalidInputError, match="votes must be one positive number"):
        Predictions.averaged([], [], task="classification")


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        LinearSVC(),
        RidgeClassifier(),
        SGDClassifier(random_state=0),
        Perceptron(),
        LGBMClassifier(n_estimators=5, min_child_samples=3, verbose=-1, n_jobs=1),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("positive", [None, 0])
def test_models_that_predict_by_their_scores_do_so(model, n_classes, positive):
    rows = shifted_classes(80, n_classes)
    fitted = clone(model).fit(rows.X, rows.y)
    if not predicts_by_its_scores(fitted):
        assert isinstance(model, RidgeClassifier)  # has a `predict` of its own
        return
    scores, threshold = decision_basis(fitted, rows.X, positive if n_classes == 2 else None)
    decided = own_decisions(scores, threshold, fitted.classes_, positive if n_classes == 2 else None)
    np.testing.assert_array_equal(decided, fitted.predict(rows.X))


def test_models_with_a_threshold_of_their_own_do_not_predict_by_their_scores():
    rows = shifted_classes(80)
    model = FixedThresholdClassifier(LogisticRegression(), threshold=0.9).fit(rows.X, rows.y)
    assert not predicts_by_its_scores(model)

    def loss(y_true, scores):
        shares = 1 / (1 + np.exp(-scores))
        return shares - y_true, shares * (1 - shares)

    boosted = LGBMClassifier(n_estimators=3, min_child_samples=3, verbose=-1, n_jobs=1, objective=loss)
    assert not predicts_by_its_scores(boosted.fit(rows.X, rows.y))


def test_what_models_decide_by():
    rows = shifted_classes(80)
    logistic, tree, ridge = (
        make.fit(rows.X, rows.y)
        for make in (LogisticRegression(), DecisionTreeClassifier(max_depth=2), Ridge())
    )
    scores, threshold = decision_basis(logistic, rows.X)
    assert threshold == 0.0
    np.testing.assert_array_equal(scores, logistic.decision_function(rows.X))
    np.testing.assert_array_equal(decision_basis(logistic, rows.X, 0)[0], -scores)
    shares, threshold = decision_basis(tree, rows.X, 0)
    assert threshold == 0.5
    np.testing.assert_array_equal(shares, tree.predict_proba(rows.X)[:, 0])
    np.testing.assert_array_equal(own_decisions(shares, threshold, tree.classes_, 0), tree.predict(rows.X))
    assert decision_basis(ridge, rows.X) == (None, 0.0)
    several = shifted_classes(80, 4)
    pairs = SVC(decision_function_shape="ovo").fit(several.X, several.y)
    assert decision_basis(pairs, several.X) == (None, 0.0)
    rest, threshold = decision_basis(RidgeClassifier().fit(several.X, several.y), several.X)
    assert rest.shape == (len(several.X), 4) and threshold == 0.0


def test_the_own_threshold_stays_with_the_predictions():
    predictions = Predictions(
        {"decision": np.array(["a", "b", "a"])},
        np.array(["a", "b"]),
        "classifier",
        np.array([0.1, 0.7, 0.4]),
        0.5,
    )
    rows = [np.array([0, 1]), np.array([2])]
    for same in (
        Predictions.unpacked(predictions.packed()),
        predictions.compact(),
        predictions.take(np.arange(3)),
        Predictions.pooled([predictions.take(some) for some in rows], rows),
    ):
        assert same.own_threshold == 0.5
        assert predictions.equals(same) and same.equals(predictions)
    assert not predictions.equals(replace(predictions, own_threshold=0.0))


@pytest.mark.parametrize(
    ("array", "most_bytes"),
    [
        (np.arange(8000) % 2, 1100),
        (np.where(np.arange(8000) % 3 == 0, "yes", "no"), 1100),
        (np.array(["yes", "no"] * 4000, dtype=object), 1100),
        (np.arange(8000) % 200, 8100),
        (np.arange(8000), 80_000),
        (np.arange(8000) % 2 == 0, 1100),
        (np.linspace(0, 1, 8000, dtype=np.float32), 32_100),
        (np.linspace(0, 1, 8000, dtype=np.float32).astype(float), 32_100),
        (np.linspace(0, 1, 8000), 64_100),
        (np.array([[0.1, np.nan], [np.inf, -0.0]]), 300),
        (np.array(["a", 1, None], dtype=object), 200),
        (np.empty(0), 200),
    ],
)
def test_packed_predictions_are_small_and_exact(array, most_bytes):
    content = Predictions({"decision": array}, scores=np.array([1.5])).packed()
    found = Predictions.unpacked(content)
    assert found.arrays["decision"].dtype == array.dtype
    np.testing.assert_array_equal(found.arrays["decision"], array)
    if array.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(found.arrays["decision"]), np.signbit(array))
    assert len(content) < most_bytes + 200
    for damaged in (content[:-3], b"", b"{}", content[5:]):
        with pytest.raises(StateError, match="no packed predictions"):
            Predictions.unpacked(damaged)


@given(
    scores=st.lists(st.sampled_from([-1.0, 0.0, 0.3, 0.5, 2.0, math.nan]), max_size=8),
    labels=st.sampled_from([[0, 1], [1, 0], ["no", "yes"], [False, True], [7, 7], [2**63, 1]]),
    own=st.sampled_from([0.0, 0.5]),
    others=st.integers(0, 2),
)
def test_labels_that_follow_from_the_scores_are_packed_exactly(scores, labels, own, others):
    known = np.array(scores)
    found = np.array(labels)[(known > own).astype(int)]
    found[: min(others, len(found))] = labels[0]  # these may not follow
    predictions = Predictions({"predict": found}, scores=known, own_threshold=own)
    again = Predictions.unpacked(predictions.packed())
    assert again.arrays["predict"].dtype == found.dtype
    np.testing.assert_array_equal(again.arrays["predict"], found)
    np.testing.assert_array_equal(again.scores, known)


def test_labels_that_follow_from_the_scores_take_no_room():
    scores = np.random.default_rng(0).normal(size=8000)
    decided = np.where(scores > 0, "yes", "no")
    follow, do_not = (
        len(Predictions({"predict": labels}, scores=scores).packed()) for labels in (decided, decided[::-1])
    )
    assert follow < do_not - 900


@pytest.mark.parametrize("own", [0.0, 0.5])
@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1.0, 1e20])
def test_rounded_scores_keep_order_and_decisions(own, scale):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=4000) * scale if own == 0 else rng.beta(0.3, 0.3, size=4000)
    scores[:3] = [own, np.nextafter(own, 1), np.nextafter(own, -1)]
    given = Predictions({"decision": scores > own}, scores=scores, own_threshold=own)
    found = given.with_rounded_scores()
    np.testing.assert_array_equal(found.scores > own, scores > own)
    assert (np.diff(found.scores[np.argsort(scores)]) >= 0).all()
    np.testing.assert_allclose(found.scores, scores, rtol=2.0**-12, atol=1e-38)
    distinct = np.unique(found.scores)
    for k in rng.integers(1, len(distinct), 50):
        threshold = distinct[k - 1] / 2 + distinct[k] / 2
        np.testing.assert_array_equal(found.scores > threshold, scores > threshold)
    np.testing.assert_array_equal(Predictions.unpacked(found.packed()).scores, found.scores)
    np.testing.assert_array_equal(found.with_rounded_scores().scores, found.scores)
    assert len(found.packed()) < 2.4 * len(scores)


def test_rounded_scores_of_several_classes_keep_decisions():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(5000, 3)) * [1, 1, 1e-6]
    scores[:, 1] = scores[:, 0] + rng.normal(size=5000) * 1e-5
    found = Predictions({"decision": scores.argmax(axis=1)}, scores=scores).with_rounded_scores()
    np.testing.assert_array_equal(found.scores.argmax(axis=1), scores.argmax(axis=1))
    np.testing.assert_allclose(found.scores, scores, rtol=2.0**-11)


@pytest.mark.parametrize("strange", [np.inf, np.nan, 1e300])
def test_scores_that_cannot_be_rounded_stay(strange):
    scores = np.array([0.1, strange])
    given = Predictions({}, scores=scores)
    assert given.with_rounded_scores().scores is scores


@pytest.mark.parametrize("n_columns", [None, 3])
@pytest.mark.parametrize("special", [0.0, np.nan, 1e300, 0.1])
def test_compact_predictions_are_the_same_to_the_bit(n_columns, special):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=200 if n_columns is None else (200, n_columns))
    scores.flat[0] = special
    for labels in (2, 5):
        of = {"decision": rng.integers(labels, size=200), "predict_proba": rng.random((200, 2))}
        one = Predictions(of, scores=scores).with_rounded_scores()
        small = one.compact()
        assert small.scores.dtype == np.float64 and small.scores.tobytes() == one.scores.tobytes()
        assert all(np.array_equal(small.arrays[name], one.arrays[name]) for name in of)
        some = small.take(np.arange(5))
        assert np.array_equal(some.scores, one.scores[:5], equal_nan=True)
