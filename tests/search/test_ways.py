"""The ways to the metric: which exist for which problem, and what they may choose."""

import numpy as np
import pytest
from judges import judge_of
from problems import shifted_classes, skewed_target
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from moew import ExampleWeightSearch, make_metric
from moew.decision import MostAccurate
from moew.metrics import accuracy
from moew.search._judge import Effort
from moew.search._ways import (
    CLASS_WEIGHTS,
    CONSTANT,
    IMPORTANCE,
    POWERS,
    TUNED,
    UNWEIGHTED,
    WEIGHTS,
    list_ways,
)

ROWS = shifted_classes(200)
NUMBERS = skewed_target(150)
ALL_OF_CLASSES = [
    "unweighted",
    "constant",
    "tuned decisions",
    "class weights",
    "class weights, tuned",
    "example weights",
    "example weights, tuned",
]


class LabelsOnly(LogisticRegression):
    """Has `predict` and nothing else to decide by."""

    @property
    def decision_function(self):
        raise AttributeError("labels only")

    @property
    def predict_proba(self):
        raise AttributeError("labels only")

    @property
    def predict_log_proba(self):
        raise AttributeError("labels only")

    def predict(self, X):
        return self.classes_[(np.asarray(X) @ self.coef_[0] + self.intercept_[0] > 0).astype(int)]


def ways_of(estimator=None, X=ROWS.X, y=ROWS.y, given=None, **settings):
    settings = {"n_batches": 1, "batch_size": 5, "random_state": 0, **settings}
    search = ExampleWeightSearch(estimator or LogisticRegression(), **settings).fit(X, y, **(given or {}))
    return [way.name for way in search.result_.ways]


def test_all_ways_of_two_and_three_classes_from_the_simplest_on():
    assert ways_of() == ALL_OF_CLASSES
    three = shifted_classes(200, 3)
    assert ways_of(X=three.X, y=three.y) == ALL_OF_CLASSES


def test_a_regression_has_powers_of_the_target():
    expected = [name.replace(CLASS_WEIGHTS, POWERS) for name in ALL_OF_CLASSES]
    assert ways_of(Ridge(), NUMBERS.X, NUMBERS.y, metric="neg_mean_absolute_error") == expected


def test_a_ranking_has_no_constant_and_nothing_to_tune():
    assert ways_of(metric="roc_auc") == [UNWEIGHTED, CLASS_WEIGHTS, WEIGHTS]
    assert ways_of(metric="neg_log_loss") == [UNWEIGHTED, CLASS_WEIGHTS, WEIGHTS]


def test_beside_a_users_rule_nothing_is_tuned_and_there_is_no_constant():
    for rule in (MostAccurate(), 0.4, "accurate@train"):
        assert ways_of(decision=rule) == [UNWEIGHTED, CLASS_WEIGHTS, WEIGHTS]


def test_where_every_decision_is_tuned_there_are_no_ways_of_their_own_for_it():
    expected = [UNWEIGHTED, CONSTANT, CLASS_WEIGHTS, WEIGHTS]
    assert ways_of(decision="tuned", metric="balanced_accuracy") == expected


def test_a_model_with_labels_only_is_not_tuned():
    assert ways_of(LabelsOnly()) == [UNWEIGHTED, CONSTANT, CLASS_WEIGHTS, WEIGHTS]


def test_a_model_without_probabilities_is_tuned_on_its_decision_function():
    assert ways_of(LinearSVC()) == ALL_OF_CLASSES


def test_importance_weights_are_a_way_where_a_shift_is_seen():
    given = {"X_val": ROWS.X_val, "y_val": ROWS.y_val}
    names = ways_of(given=given)
    assert names == [*ALL_OF_CLASSES[:3], IMPORTANCE, *ALL_OF_CLASSES[3:]]
    same = {"X_val": ROWS.X_test, "y_val": ROWS.y_test}
    assert IMPORTANCE not in ways_of(X=ROWS.X_val, y=ROWS.y_val, given=same)


def test_few_validation_rows_of_another_kind_are_no_reason_to_fail():
    @make_metric
    def by_amount(y_true, decisions, amount):
        return float(np.average(y_true == decisions, weights=amount))

    given = {"X_val": ROWS.X_val[2:5], "y_val": ROWS.y_val[2:5], "metadata_val": {"amount": np.ones(3)}}
    assert IMPORTANCE not in ways_of(given=given, metric=by_amount)


def test_without_the_guard_no_class_weights_are_trained():
    names = ways_of(guard=False)
    assert CLASS_WEIGHTS not in names
    assert {UNWEIGHTED, WEIGHTS} <= set(names)


def test_simple_ways_may_choose_among_their_own_candidates_only():
    judge = judge_of(accuracy(), m=9, effort=Effort(rounds=4))
    candidates = {UNWEIGHTED: [0], IMPORTANCE: [1], CLASS_WEIGHTS: [2, 3, 4], WEIGHTS: [5, 6, 7, 8]}
    ways = {way.name: way for way in list_ways(judge, candidates, averages=True)}
    allowed = {
        UNWEIGHTED: {0},
        TUNED: {0},
        IMPORTANCE: {0, 1},
        CLASS_WEIGHTS: {0, 2, 3, 4},
        CLASS_WEIGHTS + ", tuned": {0, 2, 3, 4},
        WEIGHTS: set(range(9)),
        WEIGHTS + ", tuned": set(range(9)),
    }
    values = judge.values(judge.every)
    for name, numbers in allowed.items():
        choice = ways[name].choose(judge.every)
        assert set(choice.members) <= numbers
        if name in (IMPORTANCE, CLASS_WEIGHTS):
            assert values[choice.members[0]] == max(values[list(numbers)])
    assert ways[CONSTANT].choose(judge.every).members == ()
    assert [way.simple for way in ways.values()] == [True] * 6 + [False] * 2
    alone = {way.name: way for way in list_ways(judge, candidates, averages=False)}
    assert alone[WEIGHTS].choose(judge.every).members == (int(values.argmax()),)


@pytest.mark.parametrize("seed", range(5))
def test_a_tuned_way_is_never_worse_on_the_rows_that_it_was_chosen_on(seed):
    judge = judge_of("balanced_accuracy", m=6, seed=seed)
    ways = {way.name: way for way in list_ways(judge, {UNWEIGHTED: [0], WEIGHTS: [1, 2, 3]}, averages=True)}
    rows = np.random.default_rng(seed).permutation(80)[:40]
    for plain, tuned in ((UNWEIGHTED, TUNED), (WEIGHTS, WEIGHTS + ", tuned")):
        values = [judge.value(ways[name].choose(rows), rows) for name in (plain, tuned)]
        assert values[1] >= values[0] - 1e-12
