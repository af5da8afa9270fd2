"""What is handed out: models, weights and decisions, for every kind of final model and every way."""

import json
import pickle
import time

import numpy as np
import pytest
from problems import shifted_classes, skewed_target
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import balanced_accuracy_score
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from moew import ExampleWeightSearch, make_metric
from moew._util.state import load_state
from moew.decision import AdjustedPredictions, ClassOffsets, GroupThresholds, Tuned, TunedThreshold
from moew.exceptions import InvalidInputError, SearchFailedError
from moew.metrics import precision_at_recall
from moew.models import ModelEnsemble

ROWS = shifted_classes(200)
THREE = shifted_classes(200, 3)
NUMBERS = skewed_target(200)
VALIDATION = {"X_val": ROWS.X_val, "y_val": ROWS.y_val}


def search_of(estimator=None, **settings):
    settings = {"n_batches": 2, "batch_size": 4, "random_state": 0, "metric": "balanced_accuracy", **settings}
    return ExampleWeightSearch(LogisticRegression() if estimator is None else estimator, **settings)


def fitted(estimator=None, rows=ROWS, given=True, **settings):
    validation = {"X_val": rows.X_val, "y_val": rows.y_val} if given else {}
    return search_of(estimator, **settings).fit(rows.X, rows.y, **validation)


def members_of(search):
    model = search.best_estimator_
    return (model.models_, model.votes_) if isinstance(model, ModelEnsemble) else ([model], np.ones(1))


def test_an_ensemble_answers_by_the_mean_of_its_models():
    # A ranking is not tuned, so that what is handed out is the ensemble itself.
    search = fitted(guard=False, metric="neg_log_loss", embedding=[0, 1], n_batches=3)
    assert search.chosen_ == "example weights"
    models, votes = members_of(search)
    assert len(models) > 1
    assert votes.sum() == pytest.approx(1)
    by_hand = sum(v * m.predict_proba(ROWS.X_test) for m, v in zip(models, votes, strict=True))
    np.testing.assert_allclose(search.predict_proba(ROWS.X_test), by_hand)
    scores = sum(v * m.decision_function(ROWS.X_test) for m, v in zip(models, votes, strict=True))
    np.testing.assert_allclose(search.decision_function(ROWS.X_test), scores)
    np.testing.assert_array_equal(search.predict(ROWS.X_test), (scores > 0).astype(int))


def test_an_ensemble_of_trees_is_that_of_a_voting_classifier():
    trees = RandomForestClassifier(n_estimators=5, max_depth=3)
    search = fitted(trees, guard=False, metric="neg_log_loss", n_batches=2)
    models, votes = members_of(search)
    voting = VotingClassifier([(str(k), m) for k, m in enumerate(models)], voting="soft", weights=votes)
    voting.estimators_, voting.classes_ = models, search.classes_
    voting.le_ = type("Same", (), {"inverse_transform": staticmethod(lambda y: search.classes_[y])})()
    np.testing.assert_allclose(search.predict_proba(ROWS.X_test), voting.predict_proba(ROWS.X_test))
    np.testing.assert_array_equal(search.best_estimator_.predict(ROWS.X_test), voting.predict(ROWS.X_test))


def test_the_mean_of_regressors_is_handed_out():
    search = fitted(Ridge(), NUMBERS, guard=False, metric="neg_mean_absolute_error", n_batches=3)
    models, votes = members_of(search)
    mean = sum(v * m.predict(NUMBERS.X_test) for m, v in zip(models, votes, strict=True))
    np.testing.assert_allclose(search.best_estimator_.predict(NUMBERS.X_test), mean)


def test_one_model_is_trained_with_the_average_of_the_weights():
    search = fitted(guard=False, final="average", metric="neg_log_loss", embedding=[0, 1], n_batches=3)
    assert isinstance(search.best_estimator_, LogisticRegression)
    again = LogisticRegression().fit(ROWS.X, ROWS.y, sample_weight=search.sample_weight_)
    np.testing.assert_allclose(search.best_estimator_.coef_, again.coef_, rtol=1e-6)
    way = next(way for way in search.result_.ways if way.name == "example weights")
    assert way.n_members > 1


def test_the_single_best_model_is_handed_out_as_in_the_paper():
    search = fitted(guard=False, final="best", metric="neg_log_loss", validation=None)
    best = search.result_.best_trial
    assert isinstance(search.best_estimator_, LogisticRegression)
    assert search.best_score_ == pytest.approx(best.value)
    assert best.value == max(trial.value for trial in search.result_.trials)
    np.testing.assert_array_equal(search.sample_weight_, search.study_.training_weights(best))


@pytest.mark.parametrize("final", ["ensemble", "average", "best"])
@pytest.mark.parametrize("guard", [True, False])
@pytest.mark.parametrize("kind", ["two", "three", "numbers"])
def test_the_weight_function_gives_the_training_rows_the_weights_of_the_model(final, guard, kind):
    rows = {"two": ROWS, "three": THREE, "numbers": NUMBERS}[kind]
    numbers = kind == "numbers"
    search = fitted(
        Ridge() if numbers else None,
        rows,
        metric="neg_mean_absolute_error" if numbers else "balanced_accuracy",
        final=final,
        guard=guard,
    )
    weights = search.example_weights(rows.X, rows.y)
    # Importance weights are cross-fitted on the training rows, and may be among the members.
    uses_importance = search.chosen_ == "importance weights" or "CovariateShift" in json.dumps(
        search.weight_function_.state()
    )
    if not uses_importance:
        np.testing.assert_allclose(weights, search.sample_weight_, rtol=1e-9)
    state = json.loads(json.dumps(search.weight_function_.state()))
    loaded = load_state(state, {})
    np.testing.assert_allclose(
        loaded(rows.X_test, rows.y_test), search.example_weights(rows.X_test, rows.y_test)
    )
    assert search.chosen_ == search.result_.chosen
    assert search.chosen_ in [way.name for way in search.result_.ways]
    if not guard:
        assert search.chosen_.startswith("example weights")
        assert search.result_.reason == "the guard is off"


def test_tuned_decisions_leave_the_model_unweighted():
    search = fitted(LogisticRegression(C=0.05), given=False, metric="balanced_accuracy", n_batches=1)
    assert search.chosen_ == "tuned decisions"
    assert search.result_.reason == "no way is ahead of it beyond chance"
    assert isinstance(search.decision_, TunedThreshold)
    assert search.unweighted_decision_ is None
    np.testing.assert_array_equal(search.sample_weight_, 1.0)
    np.testing.assert_array_equal(search.example_weights(ROWS.X_test, ROWS.y_test), 1.0)
    np.testing.assert_array_equal(search.best_estimator_.coef_, search.unweighted_estimator_.coef_)


def test_a_way_that_is_handed_out_predicts_with_its_model_and_its_rule():
    search = fitted(given=False, n_batches=1)
    scores = search.best_estimator_.decision_function(ROWS.X_test)
    threshold = 0.0 if search.decision_ is None else search.decision_.threshold
    np.testing.assert_array_equal(search.predict(ROWS.X_test), (scores > threshold).astype(int))


def noise(n=160, share=0.5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 3)), (rng.random(n) < share).astype(int)


def share_found(y_true, decisions):
    """The share of the positives that are found: best if all are decided to be positive."""
    return float(np.mean(decisions[y_true == 1] == 1))


def test_a_constant_that_is_handed_out_predicts_it_and_can_be_pickled():
    X, y = noise()
    search = search_of(metric=share_found).fit(X, y)
    assert search.chosen_ == "constant"
    assert isinstance(search.best_estimator_, DummyClassifier)
    again = pickle.loads(pickle.dumps(search))
    for one in (search, again):
        np.testing.assert_array_equal(one.predict(X), 1)
        np.testing.assert_array_equal(one.predict_proba(X), [[0, 1]] * len(X))
        np.testing.assert_array_equal(one.example_weights(X, y), 1)
    np.testing.assert_array_equal(search.sample_weight_, 1)
    assert search.best_score_ == search.honest_score_ == 1
    assert search.metric_value(X, y) == 1
    assert not hasattr(search, "decision_function")


def test_a_constant_of_a_regression_and_of_text_labels():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 2))
    y = np.where(rng.random(150) < 0.7, 5.0, 3 * rng.standard_normal(150))
    near = make_metric(lambda y_true, predicted: float(np.mean(np.abs(y_true - predicted) < 0.01)))
    search = search_of(Ridge(), metric=near).fit(X, y)
    assert search.chosen_ == "constant"
    assert isinstance(search.best_estimator_, DummyRegressor)
    np.testing.assert_array_equal(search.predict(X), 5.0)
    X, y = noise()
    names = np.array(["no", "yes"])[y]
    found = make_metric(lambda y_true, decisions: float(np.mean(decisions[y_true == "yes"] == "yes")))
    search = search_of(metric=found).fit(X, names)
    assert search.chosen_ == "constant"
    assert set(search.predict(X)) == {"yes"}


def summary(search):
    model = search.best_estimator_
    models = model.models_ if isinstance(model, ModelEnsemble) else [model]
    return (
        search.chosen_,
        search.best_score_,
        search.honest_score_,
        [trial.value for trial in search.result_.trials],
        [(way.name, way.best, way.honest, way.error) for way in search.result_.ways],
        [getattr(m, "coef_", np.zeros(1)).tolist() for m in models],
        search.sample_weight_.tolist(),
    )


@pytest.mark.parametrize("guard", [True, False])
def test_two_jobs_give_the_same_bits_as_one(guard):
    one, two = (fitted(guard=guard, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert repr(summary(one)) == repr(summary(two))


class Interrupted(LogisticRegression):
    """Is interrupted once, after as many fits as are left."""

    left = 0

    def fit(self, X, y, sample_weight=None):
        Interrupted.left -= 1
        if Interrupted.left == 0:
            raise KeyboardInterrupt
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize(
    ("storage", "at"), [("journal", 1), ("journal", 20), ("journal", 31), ("sqlite", 7), ("sqlite", 25)]
)
def test_an_interrupted_search_goes_on_to_the_same_bits(tmp_path, storage, at):
    pytest.importorskip("optuna")
    whole = fitted(Interrupted())
    where = tmp_path / "run.journal" if storage == "journal" else f"sqlite:///{tmp_path / 'run.db'}"
    Interrupted.left = at
    with pytest.raises(KeyboardInterrupt):
        fitted(Interrupted(), storage=where)
    continued = fitted(Interrupted(), storage=where)
    assert repr(summary(continued)) == repr(summary(whole))


def test_a_stored_search_with_other_decisions_is_refused(tmp_path):
    pytest.importorskip("optuna")
    where = tmp_path / "run.journal"
    fitted(storage=where, n_batches=1)
    with pytest.raises(InvalidInputError, match="fingerprint"):
        fitted(storage=where, n_batches=1, decision="tuned")


def test_every_decision_is_tuned_for_two_classes():
    search = fitted(decision="tuned")
    assert isinstance(search.decision_, TunedThreshold)
    scores = search.best_estimator_.decision_function(ROWS.X_test)
    decided = search.predict(ROWS.X_test)
    np.testing.assert_array_equal(decided, (scores > search.decision_.threshold).astype(int))
    of_test = search.metric_value(ROWS.X_test, ROWS.y_test)
    assert of_test == pytest.approx(balanced_accuracy_score(ROWS.y_test, decided))
    plain = fitted(decision=None, metric="balanced_accuracy")
    assert search.unweighted_score_ >= plain.unweighted_score_


def test_every_decision_is_tuned_for_three_classes():
    search = fitted(rows=THREE, decision="tuned", n_batches=1)
    assert isinstance(search.decision_, ClassOffsets)
    scores = search.best_estimator_.decision_function(THREE.X_test) + np.array(search.decision_.offsets)
    np.testing.assert_array_equal(search.predict(THREE.X_test), scores.argmax(axis=1))


def test_every_decision_is_tuned_in_a_regression():
    metric = make_metric(
        lambda y, p: -float(np.mean(np.where(p > y, 1, 5) * np.abs(p - y))), greater_is_better=True
    )
    search = fitted(Ridge(), NUMBERS, decision="tuned", metric=metric, n_batches=1)
    assert isinstance(search.decision_, AdjustedPredictions)
    raw = search.best_estimator_.predict(NUMBERS.X_test)
    np.testing.assert_allclose(search.predict(NUMBERS.X_test), search.decision_.decide(raw, {}))
    plain = (
        clone(search)
        .set_params(decision=None)
        .fit(NUMBERS.X, NUMBERS.y, X_val=NUMBERS.X_val, y_val=NUMBERS.y_val)
    )
    assert search.unweighted_score_ > plain.unweighted_score_  # too low is dear, so it is tuned upwards


def test_a_model_of_decision_functions_is_tuned_on_them():
    search = fitted(LinearSVC(), decision="tuned", n_batches=1)
    assert isinstance(search.decision_, TunedThreshold)
    scores = search.best_estimator_.decision_function(ROWS.X_test)
    decided = (scores > search.decision_.threshold).astype(int)
    np.testing.assert_array_equal(search.predict(ROWS.X_test), decided)


def test_tuned_decisions_need_a_metric_of_decisions_and_a_model_with_scores():
    class Never(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            raise AssertionError("nothing is trained")

    with pytest.raises(InvalidInputError, match="judges scores, not decisions"):
        fitted(Never(), decision="tuned", metric=precision_at_recall(0.8))

    class LabelsOnly(ClassifierMixin, BaseEstimator):
        def fit(self, X, y, sample_weight=None):
            self.classes_ = np.unique(y)
            self.model_ = LogisticRegression().fit(X, y, sample_weight)
            return self

        def predict(self, X):
            return self.model_.predict(X)

    with pytest.raises(SearchFailedError, match="gives labels only"):
        fitted(LabelsOnly(), decision="tuned", n_batches=1)


def test_a_slow_metric_is_called_less_to_tune_every_decision():
    calls = {True: 0, False: 0}
    for slow in calls:

        @make_metric(slow=slow)
        def counted(y_true, decisions, slow=slow):
            calls[slow] += 1
            return float(np.mean(y_true == decisions))

        fitted(decision="tuned", metric=counted, n_batches=1)
    assert calls[True] < calls[False] / 3


def test_thresholds_by_group_need_the_column_of_groups_to_predict():
    sides = [{"side": np.where(X[:, 0] > 0.7, "east", "west")} for X in (ROWS.X, ROWS.X_val, ROWS.X_test)]
    search = search_of(decision=Tuned(by="side"), n_batches=1)
    search.fit(ROWS.X, ROWS.y, **VALIDATION, metadata=sides[0], metadata_val=sides[1])
    assert isinstance(search.decision_, GroupThresholds)
    assert {group for group, _ in search.decision_.thresholds_by_group} == {"east", "west"}
    scores = search.best_estimator_.decision_function(ROWS.X_test)
    limits = dict(search.decision_.thresholds_by_group)
    by_hand = scores > np.array([limits[side] for side in sides[2]["side"]])
    np.testing.assert_array_equal(search.predict(ROWS.X_test, metadata=sides[2]), by_hand.astype(int))
    with pytest.raises(InvalidInputError, match="side"):
        search.predict(ROWS.X_test)


def test_thresholds_by_group_are_refused_where_there_are_not_two_classes():
    class Never(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            raise AssertionError("trained")

    groups = {"g": np.arange(len(THREE.y)) % 2}
    with pytest.raises(InvalidInputError, match="by='g' gives thresholds by group, which need two classes"):
        search_of(Never(), decision=Tuned(by="g")).fit(THREE.X, THREE.y, metadata=groups)
    with pytest.raises(InvalidInputError, match="need two classes, got a regressor"):
        search_of(Ridge(), metric=None, decision=Tuned(by="g")).fit(
            NUMBERS.X, NUMBERS.y, metadata={"g": np.arange(len(NUMBERS.y)) % 2}
        )


def test_there_is_nothing_to_tune_in_a_ranking():
    tuned, plain = (fitted(decision=d, metric="roc_auc", n_batches=1) for d in ("tuned", None))
    assert tuned.decision_ is None
    assert tuned.best_score_ == plain.best_score_


def test_a_metric_that_takes_long_is_asked_twice_for_each_model():
    calls = []

    @make_metric
    def slow(y_true, decisions):
        calls.append(len(y_true))
        time.sleep(0.1)
        return float(np.mean(y_true == decisions))

    search = search_of(metric=slow, n_batches=2, batch_size=10).fit(ROWS.X, ROWS.y)
    assert search.result_.n_models == 21
    assert len(calls) <= 2.2 * 21
    said = [note for note in search.result_.notes if note.startswith("the metric takes 0.1 s")]
    assert said == ["the metric takes 0.1 s, so honest scores are from 2 halves, and no decisions are tuned."]


def test_a_metric_that_says_it_is_slow_is_asked_as_rarely_and_said_to_be_slow():
    calls = []

    @make_metric(slow=True)
    def slow(y_true, decisions):
        calls.append(len(y_true))
        return float(np.mean(y_true == decisions))

    search = search_of(metric=slow, n_batches=2, batch_size=10).fit(ROWS.X, ROWS.y)
    assert len(calls) <= 2.2 * 21
    assert search.result_.notes[0].startswith("the metric is slow, so honest scores are from 2 halves")


def test_class_weights_that_all_fail_do_not_end_the_search():
    class Uneven(LogisticRegression):
        """Fails where the mean weights of the classes are far from equal."""

        def fit(self, X, y, sample_weight=None):
            means = [sample_weight[y == k].mean() for k in (0, 1)]
            if max(means) > 2.5 * min(means):
                raise ValueError("too uneven")
            return super().fit(X, y, sample_weight)

    search = search_of(Uneven(), n_batches=1, batch_size=5, embedding=[0, 1], radius=0.1).fit(ROWS.X, ROWS.y)
    assert "class weights" not in [way.name for way in search.result_.ways]
    assert search.predict(ROWS.X).shape == ROWS.y.shape


def test_a_constant_is_handed_out_for_labels_of_every_kind():
    rng = np.random.default_rng(0)
    X, rare = rng.normal(size=(200, 2)), rng.random(200) < 0.2  # noise, which a tree learns by heart
    for labels in (rare.astype(float), rare, np.where(rare, "b", "a"), rare.astype(np.uint8)):
        search = search_of(DecisionTreeClassifier(), metric=None, n_batches=1).fit(X, labels)
        assert search.chosen_ == "constant"
        assert set(search.predict(X).tolist()) == {labels.tolist()[int(np.argmin(rare))]}


def test_decisions_are_not_tuned_on_scores_of_folds_that_lack_a_class():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], 20)
    X = rng.normal(size=(80, 2)) + 2 * np.eye(4)[y][:, :2]
    without = [np.flatnonzero(y < 2), np.flatnonzero(y >= 2)]  # each fold's model knows two classes
    folds = [(without[0], without[1]), (without[1], without[0])]
    search = search_of(metric=None, validation=folds, n_batches=1).fit(X, y)
    assert "tuned" not in search.chosen_ and not any("tuned" in way.name for way in search.result_.ways)
    assert set(search.predict(X)) <= {0, 1, 2, 3}
    some = np.flatnonzero(y != 3)
    folds = [
        (some, np.flatnonzero(y == 3)),
        (np.arange(80), some[:30]),
    ]  # one knows all classes
    search = search_of(metric=None, validation=folds, n_batches=1).fit(X, y)
    assert set(search.predict(X)) <= {0, 1, 2, 3}
    with pytest.raises((InvalidInputError, SearchFailedError), match="needs models of all classes"):
        search_of(metric=None, validation=folds, n_batches=1, decision="tuned").fit(X, y)
