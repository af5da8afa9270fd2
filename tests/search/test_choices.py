"""Values of candidates, ensembles and constants on any of the evaluation rows."""

import itertools
import math
import weakref

import numpy as np
import pytest
from choosers import CLASSES, N, chooser_of
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, mean_absolute_error

from moew import make_metric
from moew.data import LabelledRows
from moew.decision import MostAccurate
from moew.metrics import Predictions, accuracy, worst_class_error
from moew.search._choices import EFFORTS, Chooser, Effort
from moew.search._evaluate import Evaluator


def some(chooser, seed=1, share=0.5):
    rng = np.random.default_rng(seed)
    return chooser.part(np.flatnonzero(rng.random(len(chooser.rows)) < share))


def outside(chooser, part):
    return chooser.part(np.setdiff1d(chooser.every.numbers, part.numbers))


def plain(metric):
    """The same function without what scores many candidates at once."""
    return make_metric(
        lambda y, d: metric(y, d), greater_is_better=metric.greater_is_better, name=metric.name
    )


@pytest.mark.parametrize("metric", ["balanced_accuracy", accuracy(), worst_class_error()])
def test_values_are_those_of_the_metric_called_by_hand(metric):
    chooser = chooser_of(metric)
    function = chooser.evaluator.metric
    for part in (some(chooser), some(chooser, 2, 0.2), chooser.every):
        rows = part.numbers
        y = chooser.rows.y[rows]
        by_hand = [
            function.value(p.take(rows), LabelledRows(np.zeros((len(rows), 1)), y), pos_label=1)
            for p in chooser.predictions.values()
        ]
        np.testing.assert_allclose(chooser.values(part), chooser.sign * np.array(by_hand), rtol=1e-12)
        for k in range(3):
            assert chooser.value(chooser.single(k, part), part) == pytest.approx(chooser.sign * by_hand[k])


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), n=st.integers(3, 40))
def test_all_candidates_in_one_call_are_as_good_as_one_by_one(seed, n):
    for metric in (accuracy(), worst_class_error()):
        stacked = chooser_of(metric, seed=seed, n=n)
        assert stacked._stack is not None
        single = chooser_of(plain(stacked.evaluator.metric), seed=seed, n=n)
        assert single._stack is None
        np.testing.assert_allclose(*(one.values(some(one, seed)) for one in (stacked, single)), rtol=1e-12)


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), n=st.integers(10, 60), always_tuned=st.booleans())
def test_ensembles_and_tuned_decisions_are_the_same_in_one_call_as_one_by_one(seed, n, always_tuned):
    for metric in (accuracy(), worst_class_error()):
        stacked = chooser_of(metric, seed=seed, n=n, always_tuned=always_tuned)
        single = chooser_of(plain(metric), seed=seed, n=n, always_tuned=always_tuned)
        parts = some(stacked, seed), some(single, seed)
        if len(np.unique(parts[0].rows.y)) < 2:
            return
        np.testing.assert_allclose(stacked.values(parts[0]), single.values(parts[1]), rtol=1e-12)
        first, second = (
            one.ensemble(range(6), part) for one, part in zip((stacked, single), parts, strict=True)
        )
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

    chooser = chooser_of(counted)
    calls.clear()
    chooser.values(chooser.every)
    assert calls == []  # known from the search
    rows = some(chooser)
    chooser.values(rows)
    best = chooser.best(range(6), rows)
    chooser.value(best, rows)
    chooser.value(chooser.joint((2,), np.ones(1), rows), rows)
    assert len(calls) == 6
    chooser.constant(rows)
    chooser.value(chooser.constant(rows), rows)
    assert len(calls) == 8


def test_a_slow_metric_is_asked_for_the_first_the_best_and_the_best_of_each_family():
    chooser = chooser_of(plain(accuracy()), m=12, effort=EFFORTS[-1])
    on_all = chooser.values(chooser.every)
    chooser.families = [range(6), range(6, 12)]
    known = np.flatnonzero(np.isfinite(chooser.values(some(chooser))))
    expected = {0, int(on_all.argmax()), int(on_all[:6].argmax()), 6 + int(on_all[6:].argmax())}
    assert set(known.tolist()) == expected


def test_a_metric_that_is_undefined_on_some_rows_has_no_value_there():
    @make_metric
    def needs_both(y_true, decisions):
        if len(np.unique(y_true)) < 2:
            raise ZeroDivisionError
        return float(np.mean(y_true == decisions)) if decisions.any() else math.inf

    chooser = chooser_of(needs_both)
    positives = chooser.part(np.flatnonzero(chooser.rows.y == 1))
    assert np.isnan(chooser.values(positives)).all()
    assert math.isnan(chooser.value(chooser.single(1, chooser.every), positives))
    assert math.isnan(chooser.value(chooser.joint((0, 1), np.full(2, 0.5), chooser.every), positives))
    assert chooser.constant(positives) is None
    infinite = [k for k, p in chooser.predictions.items() if not p.arrays["decision"].any()]
    assert np.isnan(chooser.values(chooser.every)[infinite]).all()


def test_the_stacked_path_is_left_where_one_candidate_has_no_value():
    chooser = chooser_of(worst_class_error())
    positives = chooser.part(np.flatnonzero(chooser.rows.y == 1))
    single = chooser_of(plain(chooser.evaluator.metric))
    alone = single.part(positives.numbers)
    np.testing.assert_array_equal(np.isnan(chooser.values(positives)), np.isnan(single.values(alone)))


def test_an_ensemble_predicts_the_average_of_its_members():
    chooser = chooser_of("balanced_accuracy")
    votes = np.array([0.2, 0.5, 0.3])
    choice = chooser.joint((0, 2, 5), votes, chooser.every)
    averaged = Predictions.averaged(
        [chooser.predictions[k] for k in (0, 2, 5)],
        votes,
        task="classification",
        classes=CLASSES,
        pos_label=1,
    )
    assert choice.predictions.equals(averaged)
    scores = sum(v * chooser.predictions[k].scores for v, k in zip(votes, (0, 2, 5), strict=True))
    np.testing.assert_allclose(choice.predictions.scores, scores)
    by_hand = balanced_accuracy_score(chooser.rows.y, scores > 0)
    assert chooser.value(choice, chooser.every) == pytest.approx(by_hand)


def value_of_votes(chooser, votes, part):
    """The metric of the average with these whole numbers of votes, by hand."""
    scores = sum(v * chooser.predictions[k].scores[part.numbers] for k, v in votes.items())
    return balanced_accuracy_score(part.rows.y, scores / sum(votes.values()) > 0)


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_the_first_rounds_of_the_greedy_selection_are_those_of_brute_force(seed):
    one = chooser_of("balanced_accuracy", seed=seed, effort=Effort(rounds=1))
    rows = some(one, seed, 0.7)
    values = one.values(rows)
    alone = one.ensemble(range(6), rows)
    assert one.values(rows)[alone.members[0]] == values.max()
    assert alone.members == (int(values.argmax()),)
    two = chooser_of("balanced_accuracy", seed=seed, effort=Effort(rounds=2))
    rows = some(two, seed, 0.7)
    pair = two.ensemble(range(6), rows)
    first = int(values.argmax())
    possible = [value_of_votes(two, {first: 2} if k == first else {first: 1, k: 1}, rows) for k in range(6)]
    assert first in pair.members
    assert two.value(pair, rows) == pytest.approx(max(possible))


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), rounds=st.integers(1, 5))
def test_the_greedy_selection_takes_few_contenders_and_votes_sum_to_one(seed, rounds):
    chooser = chooser_of("balanced_accuracy", m=8, seed=seed, effort=Effort(rounds=rounds, contenders=3))
    choice = chooser.ensemble(range(8), chooser.every)
    best = set(np.argsort(-chooser.values(chooser.every), kind="stable")[:3].tolist())
    assert set(choice.members) <= best
    assert choice.votes.sum() == pytest.approx(1)
    np.testing.assert_allclose(choice.votes * rounds, np.round(choice.votes * rounds))
    # No ensemble of as many votes can be tried by hand and be better than all that greedy saw of two.
    if rounds == 2:
        best_pair = max(
            value_of_votes(chooser, {a: 1, b: 1} if a != b else {a: 1}, chooser.every)
            for a, b in itertools.combinations_with_replacement(best, 2)
        )
        assert chooser.value(choice, chooser.every) <= best_pair + 1e-12


def test_the_best_constant_is_that_of_brute_force():
    chooser = chooser_of(accuracy())
    rows = some(chooser)
    share = rows.rows.y.mean()
    choice = chooser.constant(rows)
    assert choice.constant == int(share > 0.5)
    assert choice.members == ()
    assert (choice.predictions.arrays["decision"] == choice.constant).all()
    assert chooser.value(choice, rows) == pytest.approx(max(share, 1 - share))
    others = outside(chooser, rows)
    assert chooser.value(choice, others) == pytest.approx(np.mean(others.rows.y == choice.constant))


def test_of_many_classes_a_slow_metric_tries_the_most_common_as_constants():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], [5, 30, 20, 10])
    metric = plain(accuracy())
    evaluator = Evaluator(metric, None, np.arange(4))
    rows = LabelledRows(np.zeros((len(y), 1)), y)
    predicted = [Predictions({"decision": rng.integers(0, 4, len(y))})]
    quick = Chooser(evaluator, rows, "classification", predicted, np.zeros(1), EFFORTS[-1])
    assert quick._constants(quick.every).tolist() == [1, 2]
    thorough = Chooser(evaluator, rows, "classification", predicted, np.zeros(1), EFFORTS[0])
    assert thorough._constants(thorough.every).tolist() == [0, 1, 2, 3]
    assert quick.constant(quick.every).constant == thorough.constant(thorough.every).constant == 1


def test_the_best_constant_of_a_regression_is_near_the_median_for_absolute_errors():
    chooser = chooser_of("neg_mean_absolute_error", task="regression", n=400)
    choice = chooser.constant(chooser.every)
    assert abs(choice.constant - np.median(chooser.rows.y)) < 0.15
    by_hand = -mean_absolute_error(chooser.rows.y, np.full(400, choice.constant))
    assert chooser.value(choice, chooser.every) == pytest.approx(by_hand)


def test_a_constant_is_not_tuned_even_where_every_decision_is():
    chooser = chooser_of("neg_mean_absolute_error", task="regression", always_tuned=True)
    choice = chooser.constant(chooser.every)
    by_hand = -mean_absolute_error(chooser.rows.y, np.full(N, choice.constant))
    assert chooser.value(choice, chooser.every) == pytest.approx(by_hand)


def test_there_is_no_constant_for_rankings_nor_beside_a_users_rule():
    @make_metric(response="score")
    def mean_gap(y_true, score):
        return float(score[y_true == 1].mean() - score[y_true == 0].mean())

    for chooser in (chooser_of(mean_gap), chooser_of(accuracy(), rule=MostAccurate())):
        assert chooser.constant(chooser.every) is None


def test_a_users_rule_is_fitted_on_the_rows_of_the_choice():
    chooser = chooser_of(accuracy(), rule=MostAccurate())
    half, other = some(chooser, 3), outside(chooser, some(chooser, 3))
    choice = chooser.single(1, half)
    scores = chooser.predictions[1].scores[other.numbers]
    rule = MostAccurate().fit(chooser.predictions[1].scores[half.numbers], half.rows.y == 1, {})
    by_hand = np.mean(rule.decide(scores, {}) == (other.rows.y == 1))
    assert chooser.value(choice, other) == pytest.approx(by_hand)
    there = MostAccurate().fit(scores, other.rows.y == 1, {})
    refitted = np.mean(there.decide(scores, {}) == (other.rows.y == 1))
    assert chooser.values(other)[1] == pytest.approx(refitted)
    assert chooser.value(chooser.single(1, other), other) == pytest.approx(refitted)


@settings(max_examples=15)
@given(seed=st.integers(0, 1000), task=st.sampled_from(["classification", "regression"]))
def test_tuned_decisions_are_never_worse_on_their_own_rows(seed, task):
    metric = "balanced_accuracy" if task == "classification" else "neg_mean_absolute_error"
    chooser = chooser_of(metric, seed=seed, task=task)
    for rows in (chooser.every, some(chooser, seed)):
        choice = chooser.single(0, rows)
        tuned = chooser.tuned(choice)
        assert chooser.value(tuned, rows) >= chooser.value(choice, rows) - 1e-12


def test_nothing_is_tuned_by_a_slow_metric_or_twice():
    slow = chooser_of("balanced_accuracy", effort=EFFORTS[-1])
    assert slow.tuned(slow.single(0, slow.every)) is None
    always = chooser_of("balanced_accuracy", always_tuned=True)
    assert always.tuned(always.single(0, always.every)) is None


def test_values_are_forgotten_with_their_rows_and_stay_right():
    chooser = chooser_of(plain(accuracy()))
    parts = [some(chooser, seed) for seed in range(12)]
    first = [chooser.values(rows) for rows in parts]
    again = [chooser.values(some(chooser, seed)) for seed in range(12)]
    np.testing.assert_array_equal(first, again)
    seen = [weakref.ref(part) for part in parts]
    del parts
    assert all(part() is None for part in seen)


def test_decisions_of_one_choice_are_tuned_once_for_all_rows_that_it_is_scored_on():
    calls = []

    @make_metric
    def counted(y_true, decisions):
        calls.append(len(y_true))
        return float(balanced_accuracy_score(y_true, decisions))

    chooser = chooser_of(counted, always_tuned=True)
    half = some(chooser, 5)
    others = [outside(chooser, half), some(chooser, 6), some(chooser, 7)]
    calls.clear()
    values = [chooser.value(chooser.single(1, half), rows) for rows in others]
    assert calls.count(len(half)) <= 40
    fitted = chooser.evaluator.tune(chooser.predictions[1].take(half.numbers), half.rows)
    for rows, value in zip(others, values, strict=True):
        decided = chooser.predictions[1].scores[rows.numbers] > fitted.threshold
        assert value == pytest.approx(balanced_accuracy_score(rows.rows.y, decided))
