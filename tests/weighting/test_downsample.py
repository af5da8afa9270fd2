"""Downsampling that keeps weighted sums unbiased."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from problems import shifted_classes
from scipy.optimize import brentq
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from moew import MetricSearch
from moew.exceptions import InvalidInputError
from moew.weighting._sampling import (
    downsample_rows,
    inclusion_probabilities,
)

WEIGHTS = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=40).map(np.array)
REPEATS = 4000


@given(WEIGHTS, st.floats(0.01, 1))
def test_inclusion_probabilities_are_capped_weights_with_the_mean_asked_for(weights, rate):
    p = inclusion_probabilities(weights, rate)
    assert p.mean() == pytest.approx(rate, rel=1e-9)
    assert (p > 0).all()
    assert (p <= 1).all()
    if (p < 1).any():  # the same factor as a root finder's
        factor = brentq(lambda f: np.minimum(1, f * weights).mean() - rate, 0, 1e7, xtol=1e-15, rtol=1e-13)
        np.testing.assert_allclose(p, np.minimum(1, factor * weights), rtol=1e-6)


def test_equal_weights_zero_weights_and_the_whole():
    np.testing.assert_allclose(inclusion_probabilities(np.full(7, 3.0), 0.3), 0.3)
    np.testing.assert_array_equal(inclusion_probabilities([1.0, 0.0, 2.0, 1.0], 0.75), [1, 0, 1, 1])
    np.testing.assert_array_equal(inclusion_probabilities([1.0, 0.0], 1.0), [1, 1])
    with pytest.raises(InvalidInputError, match=r"only 3 of 4 rows.*at most 3/4"):
        inclusion_probabilities([1.0, 0.0, 2.0, 1.0], 0.8)


@given(WEIGHTS, st.floats(0.01, 1), st.integers(0, 2**31))
def test_a_sample_has_the_size_and_the_weights_promised(weights, rate, seed):
    assume(rate * len(weights) >= 1)
    p = inclusion_probabilities(weights, rate)
    rows, corrected = downsample_rows(weights, rate, np.random.default_rng(seed))
    assert abs(len(rows) - rate * len(weights)) < 1 + 1e-9
    assert (np.diff(rows) > 0).all()
    assert set(np.flatnonzero(p == 1)) <= set(rows)
    np.testing.assert_allclose(corrected, weights[rows] / p[rows])
    again = downsample_rows(weights, rate, np.random.default_rng(seed))
    np.testing.assert_array_equal(rows, again[0])
    if rate == 1:
        np.testing.assert_array_equal(corrected, weights)


class FixedChance:
    """Stands in for a random generator: the order and the start that a test wants."""

    def __init__(self, order):
        self.order, self.start = np.array(order), 0.0

    def permutation(self, n):
        return self.order

    def random(self):
        return self.start


@given(st.data())
def test_sums_are_unbiased_exactly(data):
    """The expectation over the uniform start, added up piece by piece: the draw jumps at known places."""
    weights = data.draw(st.lists(st.floats(1e-3, 1e3) | st.just(0.0), min_size=2, max_size=9).map(np.array))
    n, n_positive = len(weights), int((weights > 0).sum())
    assume(n_positive > 1)
    rate = data.draw(st.floats(1 / n, n_positive / n))
    assume(rate * n >= 1)
    chance = FixedChance(data.draw(st.permutations(range(n))))
    losses = np.random.default_rng(n).normal(3, 2, n)
    p = inclusion_probabilities(weights, rate)
    ends = np.cumsum(p[chance.order])
    jumps = np.unique(np.concatenate([[0.0, 1.0], np.ceil(ends) - ends]))
    counts, total, weighted = np.zeros(n), 0.0, 0.0
    for low, high in pairwise(jumps):
        chance.start = (low + high) / 2
        rows, corrected = downsample_rows(weights, rate, chance)
        counts[rows] += high - low
        total += (high - low) * corrected.sum()
        weighted += (high - low) * (corrected @ losses[rows])
    np.testing.assert_allclose(counts, p, atol=1e-9)
    np.testing.assert_allclose(total, weights.sum(), rtol=1e-6)
    np.testing.assert_allclose(weighted, weights @ losses, rtol=1e-6, atol=1e-6 * weights.sum())


def test_rows_are_kept_as_often_as_they_should_and_sums_are_unbiased():
    rng = np.random.default_rng(0)
    weights, losses = rng.lognormal(sigma=1.5, size=30), rng.normal(3, 2, 30)
    p = inclusion_probabilities(weights, 0.3)
    assert 0 < (p == 1).sum() < 9
    counts, totals, sums = np.zeros(30), [], []
    for _ in range(REPEATS):
        rows, corrected = downsample_rows(weights, 0.3, rng)
        counts[rows] += 1
        totals.append(corrected.sum())
        sums.append(corrected @ losses[rows])
    # Four standard errors: 1 in 16,000 by chance, and the seed is fixed.
    assert (np.abs(counts / REPEATS - p) <= 4 * np.sqrt(p * (1 - p) / REPEATS)).all()
    for values, truth in ((totals, weights.sum()), (sums, weights @ losses)):
        assert abs(np.mean(values) - truth) < 4 * np.std(values) / np.sqrt(REPEATS) + 1e-9
    # Without the correction the sum is far off, so the test can tell.
    kept = p * weights
    assert abs(kept @ losses / 0.3 - weights @ losses) > 10 * np.std(sums) / np.sqrt(REPEATS)


@pytest.mark.parametrize("weights", [[1.0, np.nan], [1.0, -1.0], [0.0, 0.0], [], [[1.0]], [np.inf, 1.0]])
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(InvalidInputError, match="weights must"):
        inclusion_probabilities(weights, 0.5)


def test_rates_of_less_than_a_row_are_refused():
    with pytest.raises(InvalidInputError, match=r"fewer than one row; take at least 1/4"):
        downsample_rows(np.ones(4), 0.2, np.random.default_rng(0))
    rows, weights = downsample_rows(np.ones(4), 0.25, np.random.default_rng(0))
    assert len(rows) == 1
    np.testing.assert_allclose(weights, 4)


@pytest.mark.parametrize("rate", [0, -0.1, 1.1, np.nan])
def test_rates_that_are_no_share_are_refused(rate):
    with pytest.raises(InvalidInputError, match="rate"):
        inclusion_probabilities([1.0, 2.0], rate)


def fitted(estimator, rows, **settings):
    search = MetricSearch.from_settings(
        estimator,
        embedding="label",
        n_candidates=3,
        batch_size=3,
        honest=None,
        strategies="example weights",
        random_state=0,
        **settings,
    )
    return search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))


def test_the_search_downsamples_its_training_rows_and_others():
    rows = shifted_classes(150, n_classes=3)
    search = fitted(LogisticRegression(), rows)
    kept, weights = search.downsample(0.4, seed=5)
    p = inclusion_probabilities(search.sample_weight_, 0.4)
    np.testing.assert_allclose(weights, search.sample_weight_[kept] / p[kept])
    np.testing.assert_array_equal(kept, search.downsample(0.4, seed=5)[0])
    assert not np.array_equal(kept, search.downsample(0.4, seed=6)[0])
    others, weights = search.downsample(0.4, rows.X_test, rows.y_test)
    w = search.example_weights(rows.X_test, rows.y_test)
    np.testing.assert_allclose(weights, w[others] / inclusion_probabilities(w, 0.4)[others])
    for wrong, message in (
        ({"X": rows.X_test}, "come without labels"),
        ({"y": rows.y_test}, "belong to rows X"),
        ({"sample_weight": rows.y_test}, "belong to rows X"),
        ({"X": rows.X_test, "y": rows.y_test, "label": 0}, "not both"),
        ({"X": rows.X_test, "y": rows.y_test, "sample_weight": [1.0]}, "a number for each"),
        ({"X": rows.X_test, "y": rows.y_test, "sample_weight": -np.ones(len(w))}, "at least 0"),
        ({"X": []}, r"not all of them zero; got shape \(0,\)"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            search.downsample(0.4, **wrong)


def test_rows_that_do_not_fit_in_memory_are_downsampled_as_those_that_do(tmp_path):
    rows = shifted_classes(150)
    search = fitted(LogisticRegression(), rows)
    u = np.linspace(0, 2, len(rows.y_test))
    expected = search.downsample(0.3, rows.X_test, rows.y_test, sample_weight=u, seed=4)
    frame = pd.DataFrame(rows.X_test, columns=["a", "b"]).assign(target=rows.y_test)
    arrays = [frame[["a", "b"]].to_numpy(), frame["target"].to_numpy()]
    np.save(tmp_path / "X.npy", arrays[0])
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for source, label in (
        ((mapped, arrays[1]), None),
        (iter([(arrays[0][:11], arrays[1][:11]), (arrays[0][11:], arrays[1][11:])]), None),
        (np.column_stack(arrays), -1),
    ):
        kept, weights = search.downsample(0.3, source, label=label, sample_weight=u, seed=4, chunk_rows=64)
        np.testing.assert_array_equal(kept, expected[0])
        np.testing.assert_allclose(weights, expected[1], rtol=1e-9)
    assert 0 not in expected[0]  # its weight is 0


def test_the_users_own_weights_are_in_those_of_the_training_rows():
    rows = shifted_classes(150)
    u = np.random.default_rng(0).uniform(0.2, 3, len(rows.y))
    search = MetricSearch.from_settings(
        LogisticRegression(),
        embedding="label",
        n_candidates=3,
        batch_size=3,
        honest=None,
        strategies="example weights",
        random_state=0,
    ).fit(rows.X, rows.y, sample_weight=u, validation=(rows.X_val, rows.y_val))
    np.testing.assert_allclose(search.sample_weight_, u * search.example_weights(rows.X, rows.y))
    kept, weights = search.downsample(0.4, seed=2)
    p = inclusion_probabilities(search.sample_weight_, 0.4)
    np.testing.assert_allclose(weights, search.sample_weight_[kept] / p[kept])
    again = search.downsample(0.4, rows.X, rows.y, sample_weight=u, seed=2)
    np.testing.assert_array_equal(again[0], kept)
    np.testing.assert_allclose(again[1], weights)


def test_row_numbers_are_those_of_the_rows_that_were_fitted():
    rows = shifted_classes(100)
    search = MetricSearch.from_settings(
        LogisticRegression(),
        embedding="label",
        n_candidates=2,
        batch_size=2,
        evaluate_on=0.3,
        strategies="example weights",
        random_state=0,
    ).fit(rows.X, rows.y)
    kept, weights = search.downsample(1.0)
    np.testing.assert_array_equal(kept, search.training_rows_)
    np.testing.assert_array_equal(weights, search.sample_weight_)
    assert len(kept) < len(rows.X)


def test_nothing_is_drawn_before_the_search():
    search, rows = MetricSearch(LogisticRegression()), shifted_classes(30)
    for draw in (
        lambda: search.downsample(0.5),
        lambda: search.iter_example_weights((rows.X, rows.y)),
    ):
        with pytest.raises(NotFittedError):
            draw()


@given(st.integers(2, 200), st.data())
def test_a_share_that_is_a_whole_number_of_rows_is_one(n, data):
    k = data.draw(st.integers(1, n))
    weights = (np.arange(n) < k).astype(float)
    kept, _ = downsample_rows(weights, k / n, np.random.default_rng(0))
    np.testing.assert_array_equal(kept, np.arange(k))
