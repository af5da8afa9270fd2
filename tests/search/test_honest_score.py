"""The winner and its honest score: tiny cases by hand, symmetries, undefined halves, and the bias itself."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moew.data._splits import holdout_split, stratified_halves
from moew.exceptions import InvalidInputError, SearchFailedError, UndefinedMetricError
from moew.search._honest_score import honest_score
from moew.search._select import select_best


def mean_of(values):
    """evaluate() of candidates whose metric is the mean of their row of `values` (K, n), and the scores."""
    values = np.asarray(values, dtype=float)
    return (lambda k, rows, fit_rows: values[k, rows].mean()), values.mean(axis=1)


def rng(seed=0):
    return np.random.default_rng(seed)


def test_select_best_takes_the_best_finite_score_and_the_lowest_number_among_equals():
    scores = np.array([np.nan, 0.4, 0.7, np.inf, 0.7, 0.1, -np.inf])
    assert select_best(scores, greater_is_better=True) == 2
    assert select_best(scores, greater_is_better=False) == 5


@pytest.mark.parametrize("scores", [[], [[1.0, 2.0]]])
def test_select_best_refuses_what_is_no_list_of_scores(scores):
    with pytest.raises(InvalidInputError):
        select_best(np.array(scores), greater_is_better=True)


def test_select_best_without_a_finite_score_is_an_error():
    with pytest.raises(SearchFailedError, match="none of the 2 candidates"):
        select_best(np.array([np.nan, np.inf]), greater_is_better=True)


# Two rows of one stratum have one pair of halves, so everything can be worked out by hand.
@pytest.mark.parametrize(
    ("values", "optimism", "standard_error"),
    [
        # Each half picks its own candidate and loses 1; equal scores: noise alone, so D/√2.
        ([[1, 0], [0, 1]], 1 / math.sqrt(2), 0.5),
        # Drops 0.6 and 0.2; spread on halves (0.35 + 0.05) / 2, on all rows 0.15: 0.4 / 2 · 4/3.
        ([[1.0, 0.4], [0.3, 0.5]], 0.4 / 2 * 4 / 3, math.sqrt((0.3**2 + 0.1**2) / 2)),
        # The same candidate wins everywhere: what one half gains the other loses.
        ([[0.9, 0.8], [0.2, 0.3]], 0.0, 0.05),
        # A single candidate: nothing to choose.
        ([[0.9, 0.1]], 0.0, 0.4),
    ],
)
def test_two_rows_by_hand(values, optimism, standard_error):
    evaluate, scores = mean_of(values)
    honest = honest_score(evaluate, scores, np.zeros(2, int), greater_is_better=True, n_halves=10, rng=rng())
    assert honest.best == scores.max()
    assert honest.optimism == pytest.approx(optimism)
    assert honest.size_bias == pytest.approx(0, abs=1e-12)
    assert honest.value == pytest.approx(scores.max() - optimism)
    assert honest.standard_error == pytest.approx(standard_error)
    assert (honest.n_halves, honest.n_redrawn, honest.reason) == (10, 0, None)


def test_size_bias_by_hand():
    values = np.array([1.0, 0.0])  # the largest row: 1 on both rows, 0.5 on average on one of them
    honest = honest_score(
        lambda k, rows, fit_rows: values[rows].max(),
        np.array([1.0]),
        np.zeros(2, int),
        greater_is_better=True,
        n_halves=4,
        rng=rng(),
    )
    assert (honest.optimism, honest.size_bias, honest.value) == pytest.approx((0, -0.5, 1.5))


def test_the_decision_rule_is_fitted_on_the_choosing_half_and_for_the_size_on_all_rows():
    asked = []

    def evaluate(k, rows, fit_rows):
        asked.append((k, tuple(rows), tuple(fit_rows)))
        return float(k)

    honest_score(evaluate, np.arange(2.0), np.zeros(4, int), greater_is_better=True, n_halves=2, rng=rng())
    a, b = asked[0][1], asked[2][1]
    every = (0, 1, 2, 3)
    assert set(a) | set(b) == set(every)
    assert asked[:6] == [(0, a, a), (1, a, a), (0, b, b), (1, b, b), (1, b, a), (1, a, b)]
    assert set(asked[6:]) == {(1, a, every), (1, b, every)}


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_smaller_is_better_mirrors_greater_is_better(seed):
    draw = rng(seed)
    values, strata = draw.random((6, 15)), draw.integers(0, 3, 15)
    evaluate, scores = mean_of(values)
    opposite, losses = mean_of(-values)
    up = honest_score(evaluate, scores, strata, greater_is_better=True, n_halves=30, rng=rng(seed))
    down = honest_score(opposite, losses, strata, greater_is_better=False, n_halves=30, rng=rng(seed))
    assert down.value == pytest.approx(-up.value)
    assert (down.optimism, down.size_bias, down.standard_error) == pytest.approx(
        (up.optimism, up.size_bias, up.standard_error)
    )


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.1, 50), st.floats(-20, 20))
def test_units_of_the_metric_do_not_matter(seed, scale, shift):
    values, strata = rng(seed).random((6, 16)), np.arange(16) % 2
    results = []
    for a, b in ((1.0, 0.0), (scale, shift)):
        evaluate, scores = mean_of(a * values + b)
        results.append(
            honest_score(evaluate, scores, strata, greater_is_better=True, n_halves=30, rng=rng(seed))
        )
    plain, scaled = results
    assert scaled.value == pytest.approx(scale * plain.value + shift, rel=1e-6, abs=1e-6)


def test_the_same_seed_gives_the_same_answer():
    values, strata = rng(3).random((12, 40)), np.arange(40) % 4

    def honest(values, seed):
        evaluate, scores = mean_of(values)
        return honest_score(evaluate, scores, strata, greater_is_better=True, rng=rng(seed))

    assert honest(values, 1) == honest(values, 1)
    assert honest(values, 1) != honest(values, 2)


def test_copies_and_hopeless_candidates_are_measured_on_the_pilot_halves_only():
    good = rng(4).random((3, 40))
    values = np.vstack([good, good[:1], good[:1] - 5])
    calls = np.zeros(len(values), int)
    evaluate, scores = mean_of(values)

    def counted(k, rows, fit_rows):
        calls[k] += 1
        return evaluate(k, rows, fit_rows)

    honest = honest_score(counted, scores, np.zeros(40, int), greater_is_better=True, n_halves=200, rng=rng())
    assert calls[3] == calls[4] == 20
    assert (calls[:3] >= 200).all()
    evaluate, scores = mean_of(good)
    alone = honest_score(evaluate, scores, np.zeros(40, int), greater_is_better=True, n_halves=200, rng=rng())
    # The spread of the candidates may differ, between D/2 and D/√2; the drops do not.
    assert 1 / math.sqrt(2) - 1e-9 <= honest.optimism / alone.optimism <= math.sqrt(2) + 1e-9


def test_failed_candidates_are_never_measured():
    evaluate, scores = mean_of(rng(5).random((3, 20)))
    scores[1] = np.nan

    def strict(k, rows, fit_rows):
        if k == 1:
            raise RuntimeError("a failed candidate has no outputs")
        return evaluate(k, rows, fit_rows)

    honest = honest_score(strict, scores, np.zeros(20, int), greater_is_better=True, n_halves=20, rng=rng())
    assert math.isfinite(honest.value)


@pytest.mark.parametrize("how", ["raises", "nan", "inf"])
def test_undefined_halves_are_redrawn_and_counted(how):
    evaluate, scores = mean_of(rng(6).random((3, 12)))

    def undefined_without_0_and_1(k, rows, fit_rows):
        if np.isin([0, 1], rows).all() or not np.isin([0, 1], rows).any():
            if len(rows) == 12:
                return evaluate(k, rows, fit_rows)
            if how == "raises":
                raise UndefinedMetricError("rows 0 and 1 must be apart")
            return float(how)
        return evaluate(k, rows, fit_rows)

    honest = honest_score(
        undefined_without_0_and_1, scores, np.zeros(12, int), greater_is_better=True, n_halves=100, rng=rng()
    )
    assert math.isfinite(honest.value)
    assert honest.n_halves == 100
    assert 40 < honest.n_redrawn < 100  # 5 of 11 pairs of halves have rows 0 and 1 together


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_evaluating_all_candidates_at_once_changes_nothing(seed, refuses):
    values, strata = rng(seed).integers(0, 8, (30, 24)) / 8, np.arange(24) % 3  # many ties, exact sums
    values[10:20] /= 2  # some fall out after the first halves
    values[7] = values[3]

    def evaluate(k, rows, fit_rows):
        if k == 5 and 0 in rows and len(rows) < 24:
            raise UndefinedMetricError("undefined for one candidate where row 0 is")
        return values[k, rows].mean()

    def evaluate_all(candidates, rows):
        if refuses and 1 in rows:
            return None
        means = values[np.ix_(candidates, rows)].mean(axis=1)
        return np.where((candidates == 5) & (0 in rows), np.inf, means)

    scores = np.array([evaluate(k, np.arange(24), None) for k in range(30)])
    one_by_one, at_once = (
        honest_score(
            evaluate, scores, strata, greater_is_better=True, n_halves=60, rng=rng(seed), evaluate_all=how
        )
        for how in (None, evaluate_all)
    )
    assert repr(at_once) == repr(one_by_one)  # undefined too often for some seeds, which is NaN


def test_too_many_undefined_halves_give_nan_with_a_reason():
    strata = np.array([0] * 10 + [1])  # the only row of class 1 is missing in one half of every pair

    def needs_both_classes(k, rows, fit_rows):
        if len(set(strata[rows])) < 2:
            raise UndefinedMetricError("a class is missing")
        return 0.5 + k

    scores = np.array([0.5, 1.5])
    honest = honest_score(needs_both_classes, scores, strata, greater_is_better=True, n_halves=20, rng=rng())
    assert math.isnan(honest.value) and math.isnan(honest.optimism)
    assert (honest.best, honest.n_halves, honest.n_redrawn) == (1.5, 0, 22)
    assert "undefined on 11 of 11" in honest.reason and "holdout" in honest.reason


def test_a_candidate_undefined_on_some_halves_does_not_stop_the_others():
    evaluate, scores = mean_of(rng(7).random((4, 20)))

    def sometimes(k, rows, fit_rows):
        if k == 0 and 0 in rows:
            return float("nan")
        return evaluate(k, rows, fit_rows)

    scores[0] = 0.0
    honest = honest_score(
        sometimes, scores, np.zeros(20, int), greater_is_better=True, n_halves=60, rng=rng()
    )
    assert math.isfinite(honest.value)


def test_other_errors_of_the_metric_are_not_swallowed():
    def broken(k, rows, fit_rows):
        raise ZeroDivisionError("a bug")

    with pytest.raises(ZeroDivisionError):
        honest_score(broken, np.ones(2), np.zeros(4, int), greater_is_better=True, rng=rng())


@pytest.mark.parametrize(
    ("strata", "n_halves", "message"),
    [
        (np.zeros(4), 200, "integer codes"),
        (np.zeros((4, 1), int), 200, "integer codes"),
        (np.zeros(1, int), 200, "two validation rows"),
        (np.zeros(4, int), 1, "n_halves"),
    ],
)
def test_bad_input_of_the_honest_score(strata, n_halves, message):
    evaluate, scores = mean_of(np.ones((2, 4)))
    with pytest.raises(InvalidInputError, match=message):
        honest_score(evaluate, scores, strata, greater_is_better=True, n_halves=n_halves, rng=rng())


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-2, 4), min_size=2, max_size=60), st.integers(0, 1000))
def test_halves_part_the_rows_and_keep_the_shares(codes, seed):
    strata = np.array(codes)
    a, b = stratified_halves(strata, rng(seed))
    assert sorted([*a, *b]) == list(range(len(strata)))
    assert abs(len(a) - len(b)) <= 1
    for code in set(codes):
        assert abs((strata[a] == code).sum() - (strata[b] == code).sum()) <= 1


def test_every_row_is_as_often_in_either_half():
    strata = np.array([0, 0, 0, 1, 1, 2])
    draw = rng(8)
    share = np.mean([np.isin(np.arange(6), stratified_halves(strata, draw)[0]) for _ in range(2000)], axis=0)
    np.testing.assert_allclose(share, 0.5, atol=0.05)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(2, 30), min_size=1, max_size=5), st.floats(0.05, 0.95), st.integers(0, 1000))
def test_holdout_takes_the_share_of_every_stratum(counts, share, seed):
    strata = np.repeat(np.arange(len(counts)), counts)
    search, held = holdout_split(strata, share, rng(seed))
    assert sorted([*search, *held]) == list(range(len(strata)))
    for code, count in enumerate(counts):
        n_held = (strata[held] == code).sum()
        assert 1 <= n_held <= count - 1
        assert abs(n_held - share * count) <= 1


def test_holdout_errors():
    with pytest.raises(InvalidInputError, match=r"of \[7\] there is one row"):
        holdout_split(np.array([0, 0, 0, 7]), 0.5, rng())
    for share in (0.0, 1.0, math.nan):
        with pytest.raises(InvalidInputError, match="between 0 and 1"):
            holdout_split(np.array([0, 0, 1, 1]), share, rng())


def simulated_bias(metric, n_rows, truth, repeats, sign):
    """Mean of naive and honest score − truth, and without size_bias, for 60 equally good candidates."""
    errors, strata = [], np.arange(n_rows) % 4
    for seed in range(repeats):
        draw = rng(seed)
        shared, own = draw.random(n_rows), draw.random((60, n_rows))
        wrong = np.where(draw.random((60, n_rows)) < 0.5, shared, own) < 0.3  # correlated candidates
        every = np.arange(n_rows)

        def evaluate(k, rows, fit_rows, wrong=wrong):
            return metric(wrong[k, rows], strata[rows])

        scores = np.array([evaluate(k, every, every) for k in range(60)])
        honest = honest_score(evaluate, scores, strata, greater_is_better=sign > 0, n_halves=40, rng=draw)
        naive, corrected = sign * (honest.best - truth), sign * (honest.value - truth)
        errors.append([naive, corrected, naive - honest.optimism])
    return np.mean(errors, axis=0)


def test_the_choice_among_equal_candidates_is_corrected():
    naive, honest, _ = simulated_bias(lambda wrong, _: 1 - wrong.mean(), 100, truth=0.7, repeats=30, sign=1)
    assert naive > 0.06
    assert abs(honest) < 0.3 * naive


def test_the_size_bias_of_the_worst_class_is_corrected():
    def worst(wrong, classes):
        return (np.bincount(classes, wrong, minlength=4) / np.bincount(classes, minlength=4)).max()

    _, honest, without = simulated_bias(worst, 60, truth=0.3, repeats=25, sign=-1)
    assert without < -0.05  # the few rows of each class make every candidate look worse than it is
    assert abs(honest) < 0.6 * abs(without)
