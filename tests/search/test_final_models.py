"""The selected model: models, weights and decisions, for every kind of final model and every strategy."""

import json
import pickle
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
from problems import shifted_classes, skewed_target
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, make_scorer
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from moew import MetricSearch, Rows, make_metric
from moew._util.state import load_state
from moew.data import labelled_rows
from moew.decision import AdjustedPredictions, ClassOffsets, GroupThresholds, Tuned, TunedThreshold
from moew.exceptions import InvalidInputError, MoewWarning, SearchFailedError
from moew.metrics import Predictions, accuracy, precision_at_recall, resolve_metric
from moew.models import ModelEnsemble
from moew.samplers import GpBucb
from moew.search._choices import effort_of
from moew.search._evaluate import Evaluator
from moew.search._honest_score import AHEAD

ROWS = shifted_classes(200)
THREE = shifted_classes(200, 3)
NUMBERS = skewed_target(200)


def search_of(estimator=None, **settings):
    settings = {
        "n_candidates": 8,
        "batch_size": 4,
        "random_state": 0,
        "metric": "balanced_accuracy",
        **settings,
    }
    return MetricSearch.from_settings(LogisticRegression() if estimator is None else estimator, **settings)


def fitted(estimator=None, rows=ROWS, given=True, **settings):
    validation = {"validation": (rows.X_val, rows.y_val)} if given else {}
    return search_of(estimator, **settings).fit(rows.X, rows.y, **validation)


def members_of(search):
    model = search.best_estimator_
    return (model.models_, model.votes_) if isinstance(model, ModelEnsemble) else ([model], np.ones(1))


def test_an_ensemble_answers_by_the_mean_of_its_models():
    # A ranking is not tuned, so that the selected model is the ensemble itself.
    search = fitted(strategies="example weights", metric="neg_log_loss", embedding=[0, 1], n_candidates=12)
    assert search.selected_ == "example weights"
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
    search = fitted(trees, strategies="example weights", metric="neg_log_loss", n_candidates=8)
    models, votes = members_of(search)
    voting = VotingClassifier([(str(k), m) for k, m in enumerate(models)], voting="soft", weights=votes)
    voting.estimators_, voting.classes_ = models, search.classes_
    voting.le_ = type("Same", (), {"inverse_transform": staticmethod(lambda y: search.classes_[y])})()
    np.testing.assert_allclose(search.predict_proba(ROWS.X_test), voting.predict_proba(ROWS.X_test))
    np.testing.assert_array_equal(search.best_estimator_.predict(ROWS.X_test), voting.predict(ROWS.X_test))


def test_the_mean_of_regressors_is_selected():
    search = fitted(
        Ridge(), NUMBERS, strategies="example weights", metric="neg_mean_absolute_error", n_candidates=12
    )
    models, votes = members_of(search)
    mean = sum(v * m.predict(NUMBERS.X_test) for m, v in zip(models, votes, strict=True))
    np.testing.assert_allclose(search.best_estimator_.predict(NUMBERS.X_test), mean)


def test_the_single_best_model_is_selected_as_in_the_paper():
    search = fitted(
        strategies="example weights", final="best", metric="neg_log_loss", evaluate_on="validation"
    )
    best = search.result_.best_trial
    assert isinstance(search.best_estimator_, LogisticRegression)
    assert search.best_score_ == pytest.approx(best.value)
    assert best.value == max(trial.value for trial in search.result_.trials)
    np.testing.assert_array_equal(search.sample_weight_, search.study_.training_weights(best))


@pytest.mark.parametrize(("sampler", "is_single_best"), [(GpBucb(width="domain"), False), ("random", True)])
def test_the_best_model_by_posterior_mean_is_that_of_scikit_learns_gaussian_process(sampler, is_single_best):
    few = {"validation": (ROWS.X_val[:40], ROWS.y_val[:40])}
    settings = {
        "strategies": "example weights",
        "final": "smoothed",
        "evaluate_on": "validation",
        "n_candidates": 16,
        "sampler": sampler,
    }
    settings |= {"metric": "accuracy", "embedding": [0, 1]}
    search = search_of(**settings).fit(ROWS.X, ROWS.y, **few)
    trials = search.result_.trials
    alphas, values = np.stack([t.alpha for t in trials]), np.array([t.value for t in trials])
    process = GpBucb() if sampler == "random" else sampler
    kernel = process.model(alphas, values, search.study_.domain).kernel
    oracle = GaussianProcessRegressor(
        ConstantKernel(kernel.amplitude**2) * RBF(kernel.width), alpha=kernel.noise, optimizer=None
    ).fit(alphas, (values - values.mean()) / values.std())
    chosen = trials[int(np.argmax(oracle.predict(alphas)))]
    assert search.selected_ == "example weights"
    assert search.best_score_ == chosen.value
    assert (chosen.value == max(values)) == is_single_best
    np.testing.assert_array_equal(search.sample_weight_, search.study_.training_weights(chosen))


def test_a_choice_by_posterior_mean_is_of_what_keeps_the_bound():
    settings = {
        "strategies": "example weights",
        "final": "smoothed",
        "n_candidates": 12,
        "constraints": "recall >= 0.8",
    }
    search = fitted(metric=["precision", "recall"], decision="tuned", **settings)
    assert search.result_.pareto.selected.keeps
    assert len(members_of(search)[0]) == 1


@pytest.mark.parametrize("final", ["ensemble", "smoothed", "best"])
@pytest.mark.parametrize("selects", [True, False])
@pytest.mark.parametrize("kind", ["two", "three", "numbers"])
def test_the_weight_function_gives_the_training_rows_the_weights_of_the_model(final, selects, kind):
    rows = {"two": ROWS, "three": THREE, "numbers": NUMBERS}[kind]
    numbers = kind == "numbers"
    search = fitted(
        Ridge() if numbers else None,
        rows,
        metric="neg_mean_absolute_error" if numbers else "balanced_accuracy",
        final=final,
        strategies="auto" if selects else "example weights",
    )
    weights = search.example_weights(rows.X, rows.y)
    # Importance weights are cross-fitted on the training rows, and may be among the members.
    state = json.dumps(search.weight_function_.state())
    if not any(shift in state for shift in ("CovariateShift", "JointShift")):
        np.testing.assert_allclose(weights, search.sample_weight_, rtol=1e-9)
    state = json.loads(json.dumps(search.weight_function_.state()))
    loaded = load_state(state, {})
    np.testing.assert_allclose(
        loaded(rows.X_test, rows.y_test), search.example_weights(rows.X_test, rows.y_test)
    )
    assert search.selected_ == search.result_.selected
    assert search.selected_ in [strategy.name for strategy in search.result_.strategies]
    if not selects:
        assert search.selected_.startswith("example weights")
        assert search.result_.reason == "no other strategy was asked for"


def test_tuned_decisions_leave_the_model_unweighted():
    rows = shifted_classes(240, 3)
    settings = {
        "metric": "worst_class_error",
        "embedding": "label",
        "base_weights": "uniform",
        "n_candidates": 12,
    }
    search = fitted(LogisticRegression(C=0.1), rows, **settings, random_state=3)
    assert search.selected_ == "tuned decisions"
    assert search.result_.reason == AHEAD
    assert isinstance(search.decision_, ClassOffsets)
    assert search.unweighted_decision_ is None
    np.testing.assert_array_equal(search.sample_weight_, 1.0)
    np.testing.assert_array_equal(search.example_weights(rows.X_test, rows.y_test), 1.0)
    np.testing.assert_array_equal(search.best_estimator_.coef_, search.unweighted_estimator_.coef_)


def test_a_strategy_that_is_selected_predicts_with_its_model_and_its_rule():
    search = fitted(given=False, n_candidates=4)
    scores = search.best_estimator_.decision_function(ROWS.X_test)
    threshold = 0.0 if search.decision_ is None else search.decision_.threshold
    np.testing.assert_array_equal(search.predict(ROWS.X_test), (scores > threshold).astype(int))


def noise(n=160, share=0.5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 3)), (rng.random(n) < share).astype(int)


def share_found(y_true, decisions):
    """The share of the positives that are found: best if all are decided to be positive."""
    return float(np.mean(decisions[y_true == 1] == 1))


def test_a_constant_that_is_selected_predicts_it_and_can_be_pickled():
    X, y = noise()
    search = search_of(metric=share_found).fit(X, y)
    assert search.selected_ == "constant prediction"
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
    assert search.selected_ == "constant prediction"
    assert isinstance(search.best_estimator_, DummyRegressor)
    np.testing.assert_array_equal(search.predict(X), 5.0)
    X, y = noise()
    names = np.array(["no", "yes"])[y]
    found = make_metric(lambda y_true, decisions: float(np.mean(decisions[y_true == "yes"] == "yes")))
    search = search_of(metric=found).fit(X, names)
    assert search.selected_ == "constant prediction"
    assert set(search.predict(X)) == {"yes"}


def summary(search):
    model = search.best_estimator_
    models = model.models_ if isinstance(model, ModelEnsemble) else [model]
    return (
        search.selected_,
        search.best_score_,
        search.honest_score_,
        [trial.value for trial in search.result_.trials],
        [
            (strategy.name, strategy.apparent, strategy.honest, strategy.error)
            for strategy in search.result_.strategies
        ],
        [getattr(m, "coef_", np.zeros(1)).tolist() for m in models],
        search.sample_weight_.tolist(),
    )


@pytest.mark.parametrize("selects", [True, False])
def test_two_jobs_give_the_same_bits_as_one(selects):
    one, two = (
        fitted(strategies="auto" if selects else "example weights", n_jobs=n_jobs) for n_jobs in (1, 2)
    )
    assert repr(summary(one)) == repr(summary(two))


class Interrupted(LogisticRegression):
    """Is interrupted once, after as many fits as are left."""

    left = 0

    def fit(self, X, y, sample_weight=None):
        Interrupted.left -= 1
        if Interrupted.left == 0:
            raise KeyboardInterrupt
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("at", [7, 25, *(pytest.param(at, marks=pytest.mark.heavy) for at in (1, 20, 31))])
def test_an_interrupted_search_goes_on_to_the_same_bits(tmp_path, at):
    whole = fitted(Interrupted())
    where = tmp_path / "run.db"
    Interrupted.left = at
    with pytest.raises(KeyboardInterrupt):
        fitted(Interrupted(), storage=where)
    continued = fitted(Interrupted(), storage=where)
    assert repr(summary(continued)) == repr(summary(whole))


def test_a_stored_search_with_other_decisions_is_refused(tmp_path):
    where = tmp_path / "run.db"
    fitted(storage=where, n_candidates=4)
    with pytest.raises(InvalidInputError, match="fingerprint"):
        fitted(storage=where, n_candidates=4, decision="tuned")


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


@pytest.mark.heavy
def test_every_decision_is_tuned_for_three_classes():
    search = fitted(rows=THREE, decision="tuned", n_candidates=4)
    assert isinstance(search.decision_, ClassOffsets)
    scores = search.best_estimator_.decision_function(THREE.X_test) + np.array(search.decision_.offsets)
    np.testing.assert_array_equal(search.predict(THREE.X_test), scores.argmax(axis=1))


def test_every_decision_is_tuned_in_a_regression():
    metric = make_metric(
        lambda y, p: -float(np.mean(np.where(p > y, 1, 5) * np.abs(p - y))), greater_is_better=True
    )
    search = fitted(Ridge(), NUMBERS, decision="tuned", metric=metric, n_candidates=4)
    assert isinstance(search.decision_, AdjustedPredictions)
    raw = search.best_estimator_.predict(NUMBERS.X_test)
    np.testing.assert_allclose(search.predict(NUMBERS.X_test), search.decision_.decide(raw, {}))
    plain = (
        clone(search)
        .set_params(decision=None)
        .fit(NUMBERS.X, NUMBERS.y, validation=(NUMBERS.X_val, NUMBERS.y_val))
    )
    assert search.unweighted_score_ > plain.unweighted_score_  # too low is dear, so it is tuned upwards


def test_a_model_of_decision_functions_is_tuned_on_them():
    search = fitted(LinearSVC(), decision="tuned", n_candidates=4)
    assert isinstance(search.decision_, TunedThreshold)
    scores = search.best_estimator_.decision_function(ROWS.X_test)
    decided = (scores > search.decision_.threshold).astype(int)
    np.testing.assert_array_equal(search.predict(ROWS.X_test), decided)


def test_tuned_decisions_need_a_metric_of_decisions_and_a_model_with_scores():
    class Never(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            raise AssertionError("nothing is trained")

    with pytest.raises(InvalidInputError, match="looks at scores, not at them"):
        fitted(Never(), decision="tuned", metric=precision_at_recall(0.8))

    class LabelsOnly(ClassifierMixin, BaseEstimator):
        def fit(self, X, y, sample_weight=None):
            self.classes_ = np.unique(y)
            self.model_ = LogisticRegression().fit(X, y, sample_weight)
            return self

        def predict(self, X):
            return self.model_.predict(X)

    with pytest.raises(SearchFailedError, match="gives labels only"):
        fitted(LabelsOnly(), decision="tuned", n_candidates=4)


def test_a_slow_metric_is_called_less_to_tune_every_decision():
    calls = {True: 0, False: 0}
    for slow in calls:

        @make_metric(slow=slow)
        def counted(y_true, decisions, slow=slow):
            calls[slow] += 1
            return float(np.mean(y_true == decisions))

        fitted(decision="tuned", metric=counted, n_candidates=4)
    assert calls[True] < calls[False] / 3


def test_thresholds_by_group_need_the_column_of_groups_to_predict():
    sides = [{"side": np.where(X[:, 0] > 0.7, "east", "west")} for X in (ROWS.X, ROWS.X_val, ROWS.X_test)]
    search = search_of(decision=Tuned(by="side"), n_candidates=4)
    search.fit(ROWS.X, ROWS.y, columns=sides[0], validation=Rows(ROWS.X_val, ROWS.y_val, columns=sides[1]))
    assert isinstance(search.decision_, GroupThresholds)
    assert {group for group, _ in search.decision_.thresholds_by_group} == {"east", "west"}
    scores = search.best_estimator_.decision_function(ROWS.X_test)
    limits = dict(search.decision_.thresholds_by_group)
    by_hand = scores > np.array([limits[side] for side in sides[2]["side"]])
    np.testing.assert_array_equal(search.predict(ROWS.X_test, columns=sides[2]), by_hand.astype(int))
    with pytest.raises(InvalidInputError, match="side"):
        search.predict(ROWS.X_test)


def test_thresholds_by_group_are_refused_where_there_are_not_two_classes():
    class Never(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            raise AssertionError("trained")

    groups = {"g": np.arange(len(THREE.y)) % 2}
    with pytest.raises(InvalidInputError, match="by='g' gives thresholds by group, which need two classes"):
        search_of(Never(), decision=Tuned(by="g")).fit(THREE.X, THREE.y, columns=groups)
    with pytest.raises(InvalidInputError, match="need two classes, got a regressor"):
        search_of(Ridge(), metric=None, decision=Tuned(by="g")).fit(
            NUMBERS.X, NUMBERS.y, columns={"g": np.arange(len(NUMBERS.y)) % 2}
        )


def test_there_is_nothing_to_tune_in_a_ranking():
    tuned, plain = (fitted(decision=d, metric="roc_auc", n_candidates=4) for d in ("tuned", None))
    assert tuned.decision_ is None
    assert tuned.best_score_ == plain.best_score_


def test_what_is_computed_does_not_depend_on_how_long_a_call_takes(monkeypatch):
    def found():
        search = search_of(metric="neg_brier_score", n_candidates=20, batch_size=10).fit(ROWS.X, ROWS.y)
        return search.result_, search.predict_proba(ROWS.X).tobytes()

    plain = found()
    hours = count(step=3600.0)  # every look at the clock is an hour later
    monkeypatch.setattr("moew.search._choices.time", SimpleNamespace(perf_counter=lambda: next(hours)))
    with pytest.warns(MoewWarning, match="a call of the metric takes 3.6e\\+03 s, .*slow=True"):
        slow = found()
    assert repr(plain[0].strategies) == repr(
        slow[0].strategies
    )  # of numbers, all digits; NaN is equal to NaN
    assert plain[0].notes == slow[0].notes
    assert plain[1] == slow[1]


@pytest.mark.parametrize(
    ("metric", "n_rows", "n_halves"),
    [
        ("f1", 99_999, 10),
        ("f1", 100_000, 6),
        ("f1", 1_000_000, 4),
        (make_scorer(f1_score), 99_999, 10),
        ("f1_macro", 9_999, 10),
        ("f1_macro", 10_000, 6),
        (accuracy(), 10_000, 10),
        (make_metric(accuracy_score), 100_000, 4),
        (make_metric(accuracy_score, slow=True), 10, 2),
    ],
)
def test_the_effort_of_choosing_follows_from_the_rows_and_the_kind_of_metric(metric, n_rows, n_halves):
    evaluator = Evaluator(resolve_metric(metric), None, np.array([0, 1]))
    rows = labelled_rows(Rows(np.zeros((n_rows, 1)), np.zeros(n_rows)), "classification", "validation", ())
    effort, notes = effort_of(evaluator, rows, Predictions({"decision": np.zeros(n_rows)}))
    assert 2 * effort.pairs == n_halves
    assert [f"honest scores are from {n_halves} halves" in note for note in notes] == [True] * (n_halves < 10)


def test_a_metric_that_says_it_is_slow_is_asked_as_rarely_and_said_to_be_slow():
    calls = []

    @make_metric(slow=True)
    def slow(y_true, decisions):
        calls.append(len(y_true))
        return float(np.mean(y_true == decisions))

    search = search_of(metric=slow, n_candidates=20, batch_size=10).fit(ROWS.X, ROWS.y)
    assert len(calls) <= 2.2 * 21
    assert search.result_.notes[0].startswith("the metric is slow, so honest scores are from 2 halves")


def test_class_weights_that_all_fail_do_not_end_the_search():
    class Uneven(LogisticRegression):
        """Fails where the mean weights of the classes are far from equal."""

        def fit(self, X, y, sample_weight=None):
            means = [sample_weight[y == k].mean() for k in (0, 1)]
            if max(means) > 1.2 * min(means):
                raise ValueError("too uneven")
            return super().fit(X, y, sample_weight)

    search = search_of(Uneven(), n_candidates=5, batch_size=5, embedding=[0, 1], radius=0.1).fit(
        ROWS.X, ROWS.y
    )
    assert "class weights" not in [strategy.name for strategy in search.result_.strategies]
    assert search.predict(ROWS.X).shape == ROWS.y.shape


def test_a_constant_is_selected_for_labels_of_every_kind():
    rng = np.random.default_rng(0)
    X, rare = rng.normal(size=(200, 2)), rng.random(200) < 0.2  # noise, which a tree learns by heart
    for labels in (rare.astype(float), rare, np.where(rare, "b", "a"), rare.astype(np.uint8)):
        search = search_of(DecisionTreeClassifier(), metric=None, n_candidates=4).fit(X, labels)
        assert search.selected_ == "constant prediction"
        assert set(search.predict(X).tolist()) == {labels.tolist()[int(np.argmin(rare))]}


def test_decisions_are_not_tuned_on_scores_of_folds_that_lack_a_class():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], 20)
    X = rng.normal(size=(80, 2)) + 2 * np.eye(4)[y][:, :2]
    without = [np.flatnonzero(y < 2), np.flatnonzero(y >= 2)]  # each fold's model knows two classes
    folds = [(without[0], without[1]), (without[1], without[0])]
    search = search_of(metric=None, evaluate_on=folds, n_candidates=4).fit(X, y)
    assert "tuned" not in search.selected_ and not any(
        "tuned" in strategy.name for strategy in search.result_.strategies
    )
    assert set(search.predict(X)) <= {0, 1, 2, 3}
    some = np.flatnonzero(y != 3)
    folds = [
        (some, np.flatnonzero(y == 3)),
        (np.arange(80), some[:30]),
    ]  # one knows all classes
    search = search_of(metric=None, evaluate_on=folds, n_candidates=4).fit(X, y)
    assert set(search.predict(X)) <= {0, 1, 2, 3}
    with pytest.raises((InvalidInputError, SearchFailedError), match="needs models of all classes"):
        search_of(metric=None, evaluate_on=folds, n_candidates=4, decision="tuned").fit(X, y)
