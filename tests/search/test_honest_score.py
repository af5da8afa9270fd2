"""The winner, halves, honest scores: tiny cases by hand, symmetries, undefined halves, and the bias."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from moew import MetricSearch, make_metric
from moew.data import LabelledRows
from moew.data._splits import holdout_split, stratified_halves
from moew.exceptions import InvalidInputError, SearchFailedError, UndefinedMetricError
from moew.metrics import Predictions
from moew.search._choices import Chooser, Effort
from moew.search._evaluate import Evaluator
from moew.search._honest_score import AHEAD, NO_SCORE, decide, score_strategies, select_best
from moew.search._strategies import (
    CLASS_WEIGHTS,
    CONSTANT,
    UNWEIGHTED,
    WEIGHTS,
    Variant,
    list_variants,
    strategy_names,
)

UNTUNED = Effort(tuning=0)


@make_metric
def mean(y, predicted):
    return float(np.mean(predicted))


def chooser_of(values, metric=mean, y=None, effort=UNTUNED):
    """A chooser of candidates that predict the numbers (K, n) `values`; the metric is the mean of them."""
    values = np.asarray(values, dtype=float)
    rows = LabelledRows(np.empty((values.shape[1], 0)), np.zeros(values.shape[1]) if y is None else y)
    evaluator = Evaluator(metric, None, None)
    made = [Predictions({metric.response: row}, estimator_type="regressor") for row in values]
    on_all = np.array([evaluator.value(one, rows) for one in made])
    return Chooser(evaluator, rows, "regression", made, on_all, effort)


def best_of(chooser):
    return Variant("best", True, partial(chooser.best, range(len(chooser.predictions))))


def honest(chooser, strategies=None, strata=None, seed=0):
    """The scores of the strategies, by default of the best candidate alone."""
    strategies = strategies or [best_of(chooser)]
    strata = np.zeros(len(chooser.rows), int) if strata is None else strata
    return score_strategies(strategies, chooser, lambda chosen: (chooser, chosen), strata, rng(seed))


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
    ("values", "optimism", "error"),
    [
        # Each half picks its own candidate, which has 0 on the other; the first, chosen on all, has 0.5.
        ([[1, 0], [0, 1]], 0.5, 0.5),
        # The first half picks the first, as all rows do; the second picks the second: 0.3 instead of 1.
        ([[1.0, 0.4], [0.3, 0.5]], (0 + 0.7) / 2, 0.3),
        # The same candidate wins everywhere: what one half gains the other loses.
        ([[0.9, 0.8], [0.2, 0.3]], 0.0, 0.05),
        # A single candidate: nothing to choose.
        ([[0.9, 0.1]], 0.0, 0.4),
    ],
)
def test_two_rows_by_hand(values, optimism, error):
    (score,) = honest(chooser_of(values))
    best = np.mean(values, axis=1).max()
    assert score.apparent == best
    assert score.optimism == pytest.approx(optimism)
    assert score.size_bias == pytest.approx(0, abs=1e-12)
    assert score.honest == pytest.approx(best - optimism)
    assert score.error == pytest.approx(error)


def test_a_mean_of_rows_has_no_size_bias_and_a_largest_row_has():
    (score,) = honest(chooser_of(rng().random((4, 40))))
    assert score.size_bias == pytest.approx(0, abs=1e-12)  # both halves of every pair count
    largest = make_metric(lambda y, predicted: float(np.max(predicted)), name="largest")
    (score,) = honest(chooser_of([[1.0, 0.0]], largest))  # 1 on both rows, 0.5 on average on one of them
    assert (score.optimism, score.size_bias, score.honest) == pytest.approx((0, -0.5, 1.5))


@settings(max_examples=20)
@given(st.integers(0, 10_000))
def test_smaller_is_better_mirrors_greater_is_better(seed):
    values, strata = rng(seed).random((6, 15)), rng(seed).integers(0, 3, 15)
    loss = make_metric(lambda y, predicted: float(np.mean(predicted)), greater_is_better=False, name="loss")
    (up,) = honest(chooser_of(values), strata=strata, seed=seed)
    (down,) = honest(chooser_of(-values, loss), strata=strata, seed=seed)
    assert (down.apparent, down.honest, down.error) == pytest.approx(
        (up.apparent, up.honest, up.error)
    )  # signed


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.floats(0.1, 50), st.floats(-20, 20))
def test_units_of_the_metric_do_not_matter(seed, scale, shift):
    values, strata = rng(seed).random((6, 16)), np.arange(16) % 2
    (plain,), (scaled,) = (
        honest(chooser_of(made), strata=strata, seed=seed) for made in (values, scale * values + shift)
    )
    assert scaled.honest == pytest.approx(scale * plain.honest + shift, rel=1e-6, abs=1e-6)
    assert scaled.error == pytest.approx(scale * plain.error, rel=1e-6, abs=1e-6)


def test_the_same_seed_gives_the_same_answer():
    values, strata = rng(3).random((12, 40)), np.arange(40) % 4
    one, again, other = (honest(chooser_of(values), strata=strata, seed=seed)[0].honest for seed in (1, 1, 2))
    assert one == again != other


def test_copies_change_nothing():
    good = rng(4).random((3, 40))
    (alone,), (copied,) = (
        honest(chooser_of(good)),
        honest(chooser_of(np.vstack([good, good[:1], good[:1] - 5]))),
    )
    assert copied.honest == alone.honest


def test_halves_on_which_the_metric_is_undefined_do_not_count():
    values = rng(6).random((3, 12))
    row = np.arange(12.0)

    @make_metric
    def apart(y, predicted):
        if len(y) < 12 and np.isin([0, 1], y).sum() != 1:
            raise UndefinedMetricError("rows 0 and 1 must be apart")
        return float(np.mean(predicted))

    for seed in range(20):
        (score,) = honest(chooser_of(values, apart, y=row), seed=seed)
        undefined = np.isnan(score.crossed)
        assert np.array_equal(undefined, undefined.reshape(-1, 2).any(axis=1).repeat(2))  # of a pair, both
        assert np.isnan(score.optimism) == (undefined.mean() >= 0.5)
        if undefined.any():
            assert "must be apart" in str(score.failure)


def test_a_metric_that_is_defined_on_one_half_of_every_pair_has_no_honest_score():
    y = np.array([0.0] * 10 + [1.0])  # the only row of its kind

    @make_metric
    def needs_it(y, predicted):
        if not y.any():
            raise UndefinedMetricError("the row is missing")
        return float(np.mean(predicted))

    for score in honest_strategies(chooser_of(rng().random((4, 11)), needs_it, y=y)):
        assert math.isfinite(score.apparent) and math.isnan(score.optimism) and math.isnan(score.honest)


def test_a_candidate_undefined_on_some_halves_does_not_stop_the_others():
    values = rng(7).random((4, 20))
    values[0] -= 5

    @make_metric
    def sometimes(y, predicted):
        return math.nan if len(y) < 20 and predicted.max() < 0 and 0 in y else float(np.mean(predicted))

    (score,) = honest(chooser_of(values, sometimes, y=np.arange(20.0)))
    assert math.isfinite(score.honest)


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


def honest_strategies(chooser, strata=None, seed=0, averages=False):
    """The scores of the unweighted model (number 0), of class weights (1 and 2) and of example weights."""
    others = list(range(3, len(chooser.predictions)))
    numbers = {UNWEIGHTED: [0], CLASS_WEIGHTS: [1, 2], WEIGHTS: others}
    strategies = list_variants(chooser, numbers, strategy_names(), averages)
    kept = [strategy for strategy in strategies if strategy.name in (UNWEIGHTED, CLASS_WEIGHTS, WEIGHTS)]
    return honest(chooser, kept, strata, seed)


def right_answers(draw, shares, n_rows):
    """Whether each candidate is right on each row (K, n): correlated, and right on these shares of rows."""
    shares = np.asarray(shares)
    shared, own = draw.random(n_rows), draw.random((len(shares), n_rows))
    return np.where(draw.random(own.shape) < 0.5, shared, own) < shares[:, None]


def simulated_bias(metric, n_rows, truth, repeats, sign):
    """Mean of naive and honest score − truth, and without size_bias, for 60 equally good candidates."""
    errors, strata = [], np.arange(n_rows) % 4
    for seed in range(repeats):
        right = right_answers(rng(seed), np.full(60, 0.7), n_rows)
        (score,) = honest(chooser_of(right, metric, y=strata.astype(float)), strata=strata, seed=seed)
        errors.append([score.apparent, score.honest, score.apparent - score.optimism])
    return np.mean(errors, axis=0) - sign * truth


def test_the_choice_among_equal_candidates_is_corrected():
    naive, corrected, _ = simulated_bias(mean, 100, truth=0.7, repeats=30, sign=1)
    assert naive > 0.06
    assert abs(corrected) < 0.3 * naive


def test_the_size_bias_of_the_worst_class_is_corrected():
    def worst_error(y, predicted):
        return max(np.mean(1 - predicted[y == c]) for c in range(4))

    metric = make_metric(worst_error, greater_is_better=False)
    _, corrected, without = simulated_bias(metric, 60, truth=0.3, repeats=40, sign=-1)
    assert without < -0.05  # the few rows of each class make every candidate look worse than it is
    assert abs(corrected) < 0.6 * abs(without)


@pytest.mark.parametrize("selects", [False, True])
def test_the_honest_score_of_what_is_selected_has_little_bias(selects):
    """Also of the choice among strategies; one example weighting in three problems is really better."""
    naive, corrected = [], []
    for seed in range(100):
        shares = np.full(30, 0.7)
        shares[-1] += 0.2 * (seed % 3 == 0)
        chooser = chooser_of(right_answers(rng(seed), shares, 120))
        scores = honest_strategies(chooser, seed=seed)
        verdict = decide(scores, selects)
        truth = shares[list(verdict.selected.choice.members)].mean()
        naive.append(verdict.selected.apparent - truth)
        corrected.append(verdict.honest - truth)
    assert abs(np.mean(corrected)) < 0.015  # about three standard errors
    if not selects:
        assert np.mean(naive) > 0.04


def test_what_is_really_better_is_selected_and_little_else_is_called_ahead():
    """Where all are the same, any may have the best score; but its lead is mostly within chance."""
    verdicts = {0.7: [], 0.9: []}
    for better, found in verdicts.items():
        for seed in range(20):
            shares = np.full(30, 0.7)
            shares[-1] = better
            chooser = chooser_of(right_answers(rng(seed), shares, 300))
            verdict = decide(honest_strategies(chooser, seed=seed), selects=True)
            found.append((verdict.selected.variant.name, verdict.reason))
    assert verdicts[0.9].count((WEIGHTS, AHEAD)) >= 18
    assert sum(reason == AHEAD for _, reason in verdicts[0.7]) <= 2
    assert sum(name == WEIGHTS for name, _ in verdicts[0.7]) <= 10


def test_without_halves_the_best_apparent_strategy_is_selected():
    chooser = chooser_of(rng().random((6, 10)))
    one = LabelledRows(chooser.rows.X, chooser.rows.y, groups=np.zeros(10, int))
    chooser.rows = one
    scores = honest_strategies(chooser)
    verdict = decide(scores, selects=True)
    known = [score.apparent for score in scores if score.variant.name != CONSTANT]
    assert verdict.selected.apparent == max(known) and math.isnan(verdict.honest)
    assert verdict.reason == NO_SCORE


def test_a_strategy_that_does_not_exist_here_has_no_score():
    chooser = chooser_of(rng().random((3, 10)))
    (score,) = honest(chooser, [Variant("none", True, lambda rows: None), best_of(chooser)])
    assert score.variant.name == "best"


def test_one_evaluated_row_has_no_halves():
    X, y = np.arange(4.0)[:, None], np.array([1.0, 2.0, 4.0, 3.0])
    search = MetricSearch.from_settings(
        Ridge(),
        metric="neg_mean_absolute_error",
        evaluate_on=0.3,
        n_candidates=2,
        batch_size=2,
        random_state=0,
    )
    search.fit(X[:3], y[:3])
    assert math.isfinite(search.best_score_) and math.isnan(search.honest_score_)
    assert "one row, or one group, and have no halves" in str(search.result_)
