"""The strategies: which exist for which problem, and what they may choose."""

import numpy as np
import pytest
from choosers import chooser_of
from problems import shifted_classes, skewed_target
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from moew import MetricSearch, Rows, make_metric
from moew.decision import MostAccurate
from moew.metrics import accuracy
from moew.search._choices import Effort
from moew.search._prepare import prepare
from moew.search._strategies import (
    CLASS_WEIGHTS,
    CONSTANT,
    IMPORTANCE,
    POWERS,
    TUNED,
    UNWEIGHTED,
    WEIGHTS,
    list_searches,
    list_variants,
    strategy_names,
)
from moew.search._strategies.importance_weights import BY_LABEL

ROWS = shifted_classes(200)
NUMBERS = skewed_target(150)
ALL_OF_CLASSES = [
    "unweighted",
    "constant prediction",
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


def strategies_of(estimator=None, X=ROWS.X, y=ROWS.y, given=None, **settings):
    settings = {"n_candidates": 5, "batch_size": 5, "random_state": 0, **settings}
    search = MetricSearch.from_settings(estimator or LogisticRegression(), **settings).fit(
        X, y, **(given or {})
    )
    return [strategy.name for strategy in search.result_.strategies]


def test_all_strategies_of_two_and_three_classes_from_the_simplest_on():
    assert strategies_of() == ALL_OF_CLASSES
    three = shifted_classes(200, 3)
    assert strategies_of(X=three.X, y=three.y) == ALL_OF_CLASSES


def test_a_regression_has_powers_of_the_target():
    expected = [name.replace(CLASS_WEIGHTS, POWERS) for name in ALL_OF_CLASSES]
    assert strategies_of(Ridge(), NUMBERS.X, NUMBERS.y, metric="neg_mean_absolute_error") == expected


def test_a_ranking_has_no_constant_and_nothing_to_tune():
    assert strategies_of(metric="roc_auc") == [UNWEIGHTED, CLASS_WEIGHTS, WEIGHTS]
    assert strategies_of(metric="neg_log_loss") == [UNWEIGHTED, CLASS_WEIGHTS, WEIGHTS]


def test_beside_a_users_rule_nothing_is_tuned_and_there_is_no_constant():
    for rule in (MostAccurate(), 0.4, "accurate@train"):
        assert strategies_of(decision=rule) == [UNWEIGHTED, CLASS_WEIGHTS, WEIGHTS]


def test_where_every_decision_is_tuned_there_are_no_strategies_of_their_own_for_it():
    expected = [UNWEIGHTED, CONSTANT, CLASS_WEIGHTS, WEIGHTS]
    assert strategies_of(decision="tuned", metric="balanced_accuracy") == expected


def test_a_model_with_labels_only_is_not_tuned():
    assert strategies_of(LabelsOnly()) == [UNWEIGHTED, CONSTANT, CLASS_WEIGHTS, WEIGHTS]


def test_a_model_without_probabilities_is_tuned_on_its_decision_function():
    assert strategies_of(LinearSVC()) == ALL_OF_CLASSES


def test_importance_weights_are_a_strategy_where_a_shift_is_seen():
    given = {"validation": (ROWS.X_val, ROWS.y_val)}
    names = strategies_of(given=given)
    assert names == [*ALL_OF_CLASSES[:3], IMPORTANCE, *ALL_OF_CLASSES[3:]]
    same = {"validation": (ROWS.X_test, ROWS.y_test)}
    assert IMPORTANCE not in strategies_of(X=ROWS.X_val, y=ROWS.y_val, given=same)


def test_importance_weights_are_tried_wherever_validation_rows_differ():
    """Also where no training rows are evaluated, or X cannot be looked at."""
    given = {"validation": (ROWS.X_val, ROWS.y_val)}
    assert IMPORTANCE in strategies_of(given=given, evaluate_on="validation")
    sparse = {"validation": (csr_matrix(ROWS.X_val), ROWS.y_val)}
    assert IMPORTANCE in strategies_of(X=csr_matrix(ROWS.X), given=sparse, embedding="label")


@pytest.mark.heavy
def test_shares_of_classes_that_differ_by_chance_are_no_shift():
    found = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        y, y_val = (rng.random(n) < 0.3 for n in (300, 100))
        X, X_val = rng.standard_normal((300, 1)), rng.standard_normal((100, 1))
        search = MetricSearch.from_settings(LogisticRegression(), base_weights="uniform", random_state=0)
        training, given = Rows(X, y, None, None, None), Rows(X_val, y_val, None, None, None)
        prepared = prepare(search.settings, training, given)
        found.append(BY_LABEL in list_searches(prepared))
    assert np.mean(found) <= 0.15


def test_few_validation_rows_of_another_kind_are_no_reason_to_fail():
    @make_metric
    def by_amount(y_true, decisions, amount):
        return float(np.average(y_true == decisions, weights=amount))

    given = {"validation": Rows(ROWS.X_val[2:5], ROWS.y_val[2:5], columns={"amount": np.ones(3)})}
    assert IMPORTANCE not in strategies_of(given=given, metric=by_amount)


def test_without_other_strategies_no_class_weights_are_trained():
    names = strategies_of(strategies="example weights")
    assert CLASS_WEIGHTS not in names
    assert {UNWEIGHTED, WEIGHTS} <= set(names)


def test_only_the_strategies_that_are_asked_for_are_tried_beside_the_unweighted_model():
    asked = [TUNED, WEIGHTS]
    assert strategies_of(strategies=asked) == [UNWEIGHTED, TUNED, WEIGHTS, WEIGHTS + ", tuned"]
    given = {"validation": (ROWS.X_val, ROWS.y_val)}
    assert strategies_of(strategies=[WEIGHTS, IMPORTANCE], given=given, decision=0.5) == [
        UNWEIGHTED,
        IMPORTANCE,
        WEIGHTS,
    ]
    assert strategies_of(strategies=["auto", WEIGHTS]) == ALL_OF_CLASSES


def test_simple_strategies_may_choose_among_their_own_candidates_only():
    chooser = chooser_of(accuracy(), m=9, effort=Effort(rounds=4))
    candidates = {UNWEIGHTED: [0], IMPORTANCE: [1], CLASS_WEIGHTS: [2, 3, 4], WEIGHTS: [5, 6, 7, 8]}
    strategies = {
        strategy.name: strategy
        for strategy in list_variants(chooser, candidates, strategy_names(), averages=True)
    }
    allowed = {
        UNWEIGHTED: {0},
        TUNED: {0},
        IMPORTANCE: {0, 1},
        CLASS_WEIGHTS: {0, 2, 3, 4},
        CLASS_WEIGHTS + ", tuned": {0, 2, 3, 4},
        WEIGHTS: set(range(9)),
        WEIGHTS + ", tuned": set(range(9)),
    }
    values = chooser.values(chooser.every)
    for name, numbers in allowed.items():
        choice = strategies[name].choose(chooser.every)
        assert set(choice.members) <= numbers
        if name in (IMPORTANCE, CLASS_WEIGHTS):
            assert values[choice.members[0]] == max(values[list(numbers)])
    assert strategies[CONSTANT].choose(chooser.every).members == ()
    assert [strategy.simple for strategy in strategies.values()] == [True] * 6 + [False] * 2
    alone = {
        strategy.name: strategy
        for strategy in list_variants(chooser, candidates, strategy_names(), averages=False)
    }
    assert alone[WEIGHTS].choose(chooser.every).members == (int(values.argmax()),)


@pytest.mark.parametrize("seed", range(5))
def test_a_tuned_strategy_is_never_worse_on_the_rows_that_it_was_chosen_on(seed):
    chooser = chooser_of("balanced_accuracy", m=6, seed=seed)
    candidates = {UNWEIGHTED: [0], WEIGHTS: [1, 2, 3]}
    strategies = {
        strategy.name: strategy
        for strategy in list_variants(chooser, candidates, strategy_names(), averages=True)
    }
    rows = chooser.part(np.random.default_rng(seed).permutation(80)[:40])
    for plain, tuned in ((UNWEIGHTED, TUNED), (WEIGHTS, WEIGHTS + ", tuned")):
        values = [chooser.value(strategies[name].choose(rows), rows) for name in (plain, tuned)]
        assert values[1] >= values[0] - 1e-12
