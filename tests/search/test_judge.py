"""Values of candidates, ensembles and constants on any of the judged rows."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judges import CLASSES, N, judge_of
from sklearn.metrics import balanced_accuracy_score, mean_absolute_error

from moew import make_metric
from moew.data import LabelledRows
from moew.decision import MostAccurate
from moew.metrics import Predictions, accuracy, worst_class_error
from moew.search._evaluate import Evaluator
from moew.search._judge import EFFORTS, Effort, Judge


def some(judge, seed=1, share=0.5):
    rng = np.random.default_rng(seed)
    return np.flatnonzero(rng.random(len(judge.rows)) < share)


def plain(metric):
    """The same function without what scores many candidates at once."""
    return make_metric(
        lambda y, d: metric(y, d), greater_is_better=metric.greater_is_better, name=metric.name
    )


@pytest.mark.parametrize("metric", ["balanced_accuracy", accuracy(), worst_class_error()])
def test_values_are_those_of_the_metric_called_by_hand(metric):
    judge = judge_of(metric)
    function = judge.evaluator.metric
    for rows in (some(judge), some(judge, 2, 0.2), judge.every):
        y = judge.rows.y[rows]
        by_hand = [
            function.value(p.take(rows), np.zeros((len(rows), 1)), y, {}, pos_label=1)
            for p in judge.predictions
        ]
        np.testing.assert_allclose(judge.values(rows), judge.sign * np.array(by_hand), rtol=1e-12)
        for k in range(3):
            assert judge.value(judge.single(k, rows), rows) == pytest.approx(judge.sign * by_hand[k])


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), n=st.integers(3, 40))
def test_all_candidates_in_one_call_are_as_good_as_one_by_one(seed, n):
    for metric in (accuracy(), worst_class_error()):
        stacked = judge_of(metric, seed=seed, n=n)
        assert stacked._stack is not None
        single = judge_of(plain(stacked.evaluator.metric), seed=seed, n=n)
        assert single._stack is None
        rows = some(stacked, seed)
        np.testing.assert_allclose(stacked.values(rows), single.values(rows), rtol=1e-12)


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), n=st.integers(10, 60), always_tuned=st.booleans())
def test_ensembles_and_tuned_decisions_are_the_same_in_one_call_as_one_by_one(seed, n, always_tuned):
    for metric in (accuracy(), worst_class_error()):
        stacked = judge_of(metric, seed=seed, n=n, always_tuned=always_tuned)
        single = judge_of(plain(metric), seed=seed, n=n, always_tuned=always_tuned)
        rows = some(stacked, seed)
        if len(np.unique(stacked.rows.y[rows])) < 2:
            return
        np.testing.assert_allclose(stacked.values(rows), single.values(rows), rtol=1e-12)
        first, second = (judge.ensemble(range(6), rows) for judge in (stacked, single))
        assert first.members == second.members
        np.testing.assert_array_equal(first.votes, second.votes)
        if not always_tuned:
            assert stacked.tuned(first).tuned == single.tuned(second).tuned


def test_the_metric_is_asked_once_for_the_same_candidate_on_the_same_rows():
    calls = []

    @make_metric
    def counted(y_true, decisions):
        calls.append(len(y_true))
        return float(np.mean(y_true == decisions))

    judge = judge_of(counted)
    calls.clear()
    judge.values(judge.every)
    assert calls == []  # known from the search
    rows = some(judge)
    judge.values(rows)
    best = judge.best(range(6), rows)
    judge.value(best, rows)
    judge.value(judge.joint((2,), np.ones(1), rows), rows)
    assert len(calls) == 6
    judge.constant(rows)
    judge.value(judge.constant(rows), rows)
    assert len(calls) == 8


def test_a_slow_metric_is_asked_for_the_first_the_best_and_the_best_of_each_family():
    judge = judge_of(plain(accuracy()), m=12, effort=EFFORTS[-1])
    on_all = judge.values(judge.every)
    judge.families = [range(6), range(6, 12)]
    known = np.flatnonzero(np.isfinite(judge.values(some(judge))))
    expected = {0, int(on_all.argmax()), int(on_all[:6].argmax()), 6 + int(on_all[6:].argmax())}
    assert set(known.tolist()) == expected


def test_a_metric_that_is_undefined_on_some_rows_has_no_value_there():
    @make_metric
    def needs_both(y_true, decisions):
        if len(np.unique(y_true)) < 2:
            raise ZeroDivisionError
        return float(np.mean(y_true == decisions)) if decisions.any() else math.inf

    judge = judge_of(needs_both)
    positives = np.flatnonzero(judge.rows.y == 1)
    assert np.isnan(judge.values(positives)).all()
    assert math.isnan(judge.value(judge.single(1, judge.every), positives))
    assert math.isnan(judge.value(judge.joint((0, 1), np.full(2, 0.5), judge.every), positives))
    assert judge.constant(positives) is None
    infinite = [k for k, p in enumerate(judge.predictions) if not p.arrays["decision"].any()]
    assert np.isnan(judge.values(judge.every)[infinite]).all()


def test_the_stacked_path_is_left_where_one_candidate_has_no_value():
    judge = judge_of(worst_class_error())
    positives = np.flatnonzero(judge.rows.y == 1)
    single = judge_of(plain(judge.evaluator.metric))
    np.testing.assert_array_equal(np.isnan(judge.values(positives)), np.isnan(single.values(positives)))


def test_an_ensemble_predicts_the_average_of_its_members():
    judge = judge_of("balanced_accuracy")
    votes = np.array([0.2, 0.5, 0.3])
    choice = judge.joint((0, 2, 5), votes, judge.every)
    averaged = Predictions.averaged(
        [judge.predictions[k] for k in (0, 2, 5)], votes, task="classification", classes=CLASSES, pos_label=1
    )
    assert choice.predictions.equals(averaged)
    scores = sum(v * judge.predictions[k].scores for v, k in zip(votes, (0, 2, 5), strict=True))
    np.testing.assert_allclose(choice.predictions.scores, scores)
    by_hand = balanced_accuracy_score(judge.rows.y, scores > 0)
    assert judge.value(choice, judge.every) == pytest.approx(by_hand)


def value_of_votes(judge, votes, rows):
    """The metric of the average with these whole numbers of votes, by hand."""
    scores = sum(v * judge.predictions[k].scores[rows] for k, v in votes.items()) / sum(votes.values())
    return balanced_accuracy_score(judge.rows.y[rows], scores > 0)


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_the_first_rounds_of_the_greedy_selection_are_those_of_brute_force(seed):
    one = judge_of("balanced_accuracy", seed=seed, effort=Effort(rounds=1))
    rows = some(one, seed, 0.7)
    values = one.values(rows)
    alone = one.ensemble(range(6), rows)
    assert one.values(rows)[alone.members[0]] == values.max()
    assert alone.members == (int(values.argmax()),)
    two = judge_of("balanced_accuracy", seed=seed, effort=Effort(rounds=2))
    pair = two.ensemble(range(6), rows)
    first = int(values.argmax())
    possible = [value_of_votes(two, {first: 2} if k == first else {first: 1, k: 1}, rows) for k in range(6)]
    assert first in pair.members
    assert two.value(pair, rows) == pytest.approx(max(possible))


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), rounds=st.integers(1, 5))
def test_the_greedy_selection_takes_few_contenders_and_votes_sum_to_one(seed, rounds):
    judge = judge_of("balanced_accuracy", m=8, seed=seed, effort=Effort(rounds=rounds, contenders=3))
    choice = judge.ensemble(range(8), judge.every)
    best = set(np.argsort(-judge.values(judge.every), kind="stable")[:3].tolist())
    assert set(choice.members) <= best
    assert choice.votes.sum() == pytest.approx(1)
    np.testing.assert_allclose(choice.votes * rounds, np.round(choice.votes * rounds))
    # No ensemble of as many votes can be tried by hand and be better than all that greedy saw of two.
    if rounds == 2:
        best_pair = max(
            value_of_votes(judge, {a: 1, b: 1} if a != b else {a: 1}, judge.every)
            for a, b in itertools.combinations_with_replacement(best, 2)
        )
        assert judge.value(choice, judge.every) <= best_pair + 1e-12


def test_the_best_constant_is_that_of_brute_force():
    judge = judge_of(accuracy())
    rows = some(judge)
    share = judge.rows.y[rows].mean()
    choice = judge.constant(rows)
    assert choice.constant == int(share > 0.5)
    assert choice.members == ()
    assert (choice.predictions.arrays["decision"] == choice.constant).all()
    assert judge.value(choice, rows) == pytest.approx(max(share, 1 - share))
    others = np.setdiff1d(judge.every, rows)
    assert judge.value(choice, others) == pytest.approx(np.mean(judge.rows.y[others] == choice.constant))


def test_of_many_classes_a_slow_metric_tries_the_most_common_as_constants():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], [5, 30, 20, 10])
    metric = plain(accuracy())
    evaluator = Evaluator(metric, None, np.arange(4))
    rows = LabelledRows(np.zeros((len(y), 1)), y)
    predicted = [Predictions({"decision": rng.integers(0, 4, len(y))})]
    quick = Judge(evaluator, rows, "classification", predicted, np.zeros(1), EFFORTS[-1])
    assert quick._constants(quick.every).tolist() == [1, 2]
    thorough = Judge(evaluator, rows, "classification", predicted, np.zeros(1), EFFORTS[0])
    assert thorough._constants(thorough.every).tolist() == [0, 1, 2, 3]
    assert quick.constant(quick.every).constant == thorough.constant(thorough.every).constant == 1


def test_the_best_constant_of_a_regression_is_near_the_median_for_absolute_errors():
    judge = judge_of("neg_mean_absolute_error", task="regression", n=400)
    choice = judge.constant(judge.every)
    assert abs(choice.constant - np.median(judge.rows.y)) < 0.15
    by_hand = -mean_absolute_error(judge.rows.y, np.full(400, choice.constant))
    assert judge.value(choice, judge.every) == pytest.approx(by_hand)


def test_a_constant_is_not_tuned_even_where_every_decision_is():
    judge = judge_of("neg_mean_absolute_error", task="regression", always_tuned=True)
    choice = judge.constant(judge.every)
    by_hand = -mean_absolute_error(judge.rows.y, np.full(N, choice.constant))
    assert judge.value(choice, judge.every) == pytest.approx(by_hand)


def test_there_is_no_constant_for_rankings_nor_beside_a_users_rule():
    @make_metric(response="score")
    def mean_gap(y_true, score):
        return float(score[y_true == 1].mean() - score[y_true == 0].mean())

    assert judge_of(mean_gap).constant(np.arange(N)) is None
    assert judge_of(accuracy(), rule=MostAccurate()).constant(np.arange(N)) is None


def test_a_users_rule_is_fitted_on_the_rows_of_the_choice():
    judge = judge_of(accuracy(), rule=MostAccurate())
    half, other = some(judge, 3), np.setdiff1d(np.arange(N), some(judge, 3))
    choice = judge.single(1, half)
    rule = MostAccurate().fit(judge.predictions[1].scores[half], judge.rows.y[half] == 1, {})
    by_hand = np.mean(rule.decide(judge.predictions[1].scores[other], {}) == (judge.rows.y[other] == 1))
    assert judge.value(choice, other) == pytest.approx(by_hand)
    there = MostAccurate().fit(judge.predictions[1].scores[other], judge.rows.y[other] == 1, {})
    refitted = np.mean(there.decide(judge.predictions[1].scores[other], {}) == (judge.rows.y[other] == 1))
    assert judge.values(other)[1] == pytest.approx(refitted)
    assert judge.value(judge.single(1, other), other) == pytest.approx(refitted)


@settings(max_examples=15)
@given(seed=st.integers(0, 1000), task=st.sampled_from(["classification", "regression"]))
def test_tuned_decisions_are_never_worse_on_their_own_rows(seed, task):
    metric = "balanced_accuracy" if task == "classification" else "neg_mean_absolute_error"
    judge = judge_of(metric, seed=seed, task=task)
    for rows in (judge.every, some(judge, seed)):
        choice = judge.single(0, rows)
        tuned = judge.tuned(choice)
        assert judge.value(tuned, rows) >= judge.value(choice, rows) - 1e-12


def test_nothing_is_tuned_by_a_slow_metric_or_twice():
    slow = judge_of("balanced_accuracy", effort=EFFORTS[-1])
    assert slow.tuned(slow.single(0, slow.every)) is None
    always = judge_of("balanced_accuracy", always_tuned=True)
    assert always.tuned(always.single(0, always.every)) is None


def test_values_are_forgotten_in_time_and_stay_right():
    judge = judge_of(plain(accuracy()))
    parts = [some(judge, seed) for seed in range(12)]
    first = [judge.values(rows) for rows in parts]
    again = [judge.values(rows) for rows in reversed(parts)][::-1]
    np.testing.assert_array_equal(first, again)
    assert len(judge._known) <= 4


def test_decisions_of_one_choice_are_tuned_once_for_all_rows_that_it_is_scored_on():
    calls = []

    @make_metric
    def counted(y_true, decisions):
        calls.append(len(y_true))
        return float(balanced_accuracy_score(y_true, decisions))

    judge = judge_of(counted, always_tuned=True)
    half = some(judge, 5)
    others = [np.setdiff1d(judge.every, half), some(judge, 6), some(judge, 7)]
    calls.clear()
    values = [judge.value(judge.single(1, half), rows) for rows in others]
    assert calls.count(len(half)) <= 40
    fitted = judge.evaluator.tune(judge.predictions[1].take(half), judge.rows.take(half))
    for rows, value in zip(others, values, strict=True):
        decided = judge.predictions[1].scores[rows] > fitted.threshold
        assert value == pytest.approx(balanced_accuracy_score(judge.rows.y[rows], decided))
