"""Rows are drawn in proportion to their weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moew.data._splits import drawn_by_weight

WEIGHTS = st.lists(st.floats(0, 1e6, allow_subnormal=False), min_size=2, max_size=60).filter(any)


@given(WEIGHTS, st.integers(0, 99))
def test_some_rows_of_positive_weight_are_drawn_once_each_in_order(weights, seed):
    weights = np.array(weights)
    drawn = drawn_by_weight(weights, np.random.default_rng(seed))
    assert (np.diff(drawn) > 0).all()
    assert (weights[drawn] > 0).all()
    np.testing.assert_array_equal(drawn, drawn_by_weight(weights, np.random.default_rng(seed)))
    scaled = drawn_by_weight(weights * 2.0**10, np.random.default_rng(seed))
    np.testing.assert_array_equal(drawn, scaled)


@given(st.lists(st.sampled_from([0.0, 3.7]), min_size=2, max_size=200).filter(any))
def test_rows_of_equal_weight_are_all_drawn(weights):
    drawn = drawn_by_weight(np.array(weights), np.random.default_rng(0))
    np.testing.assert_array_equal(drawn, np.flatnonzero(weights))


@pytest.mark.parametrize("grouped", [False, True])
def test_chances_are_in_proportion(grouped):
    rng = np.random.default_rng(0)
    weights = rng.exponential(size=100)
    groups = np.repeat(np.arange(100), 3) if grouped else None
    rows = np.repeat(weights, 3) if grouped else weights
    counts = np.zeros(len(rows))
    for _ in range(3000):
        drawn = drawn_by_weight(rows, rng, groups=groups)
        if grouped:
            assert (np.bincount(drawn // 3) % 3 == 0).all()  # whole groups
        counts[drawn] += 1
    share = counts / counts.sum()
    # The largest weights are cut off: no more than 2 % of the weight is elsewhere.
    assert np.abs(share - rows / rows.sum()).sum() / 2 < 0.03
    assert counts.max() <= 3000


def test_shares_of_strata_are_kept():
    rng = np.random.default_rng(0)
    strata, weights = rng.integers(0, 3, 900), rng.uniform(0.5, 2, 900)
    wanted = np.bincount(strata, weights) / weights.sum()
    for seed in range(10):
        drawn = drawn_by_weight(weights, np.random.default_rng(seed), strata)
        np.testing.assert_allclose(np.bincount(strata[drawn]) / len(drawn), wanted, atol=0.015)
