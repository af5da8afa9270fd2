"""Theorem 2: numbers by hand, the steps of its proof, and which way it moves."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.theory import Theorem2, cover_size
from moew.exceptions import InvalidInputError

constants = st.builds(
    Theorem2,
    n_dims=st.integers(1, 30),
    n_metrics=st.integers(1, 10),
    sigma=st.floats(0.01, 5.0),
    lipschitz_metric=st.floats(0.01, 20.0),
    lipschitz_model=st.floats(0.0, 20.0),
    delta=st.floats(1e-6, 0.99),
)


def test_a_bound_computed_by_hand():
    # σ·L_Ψ·√K/√N = 0.5·1·1/100; 4·1·ln(40,000) = 42.386; 8·ln(20) = 23.966; √66.352 = 8.1457; 3·L_φ = 1.5.
    theorem = Theorem2(1, 1, 0.5, 1.0, 0.5, delta=0.1)
    assert theorem.bound(10_000) == pytest.approx(0.005 * (8.1457 + 1.5), rel=1e-4)
    assert theorem.epsilon(10_000) == pytest.approx(0.015)
    assert theorem.least_rows == 3  # 9 · 0.25 = 2.25


@given(theorem=constants, more=st.integers(0, 10**6))
def test_the_bound_is_what_the_proof_adds_up(theorem, more):
    n = theorem.least_rows + more
    epsilon = theorem.epsilon(n)
    scale = theorem.lipschitz_metric * math.sqrt(theorem.n_metrics)
    steps = 2 * theorem.deviation(n) + scale * theorem.lipschitz_model * epsilon
    assert theorem.bound(n) == pytest.approx(steps, rel=1e-9)
    # The union over the cover and the K means of Hoeffding's probabilities comes to δ.
    width = theorem.deviation(n) / scale
    log_each = math.log(2) - n * width**2 / (2 * theorem.sigma**2)
    log_all = log_each + math.log(theorem.n_metrics) + theorem.n_dims * math.log(3 / epsilon)
    assert log_all == pytest.approx(math.log(theorem.delta), abs=1e-6)


def test_hoeffding_s_step_holds_for_coins():
    theorem = Theorem2(1, 1, 0.5, 1.0, 0.0, delta=0.5)
    means = np.random.default_rng(0).binomial(100, 0.5, 100_000) / 100
    one = np.mean(np.abs(means - 0.5) > theorem.deviation(100))
    assert one * cover_size(theorem.epsilon(100), 1, simplified=True) <= 0.5


@given(theorem=constants, n=st.integers(1, 10**9), change=st.floats(1.01, 3.0))
def test_more_of_anything_moves_the_bound_the_right_way(theorem, n, change):
    fields = {name: getattr(theorem, name) for name in theorem.__dataclass_fields__}

    def bound(rows, **other):
        return Theorem2(**{**fields, **other}).bound(rows)

    n += 20 * theorem.least_rows  # enough for the larger sigma and K below too
    assert bound(n + 1) < bound(n) or n > 10**8  # beyond that one row is within rounding
    assert bound(2 * n) < bound(n)
    assert bound(n, n_dims=theorem.n_dims + 1) > bound(n)
    assert bound(n, n_metrics=theorem.n_metrics + 1) > bound(n)
    for name in ("sigma", "lipschitz_metric"):
        assert bound(n, **{name: change * fields[name]}) > bound(n)
    assert bound(n, lipschitz_model=1 + theorem.lipschitz_model) > bound(n)
    assert bound(n, delta=theorem.delta / change) > bound(n)


@settings(max_examples=50)
@given(theorem=constants, gap=st.floats(1e-3, 100.0))
def test_the_smallest_validation_set_is_the_smallest(theorem, gap):
    n = theorem.rows_for(gap)
    assert theorem.bound(n) <= gap
    assert n == theorem.least_rows or theorem.bound(n - 1) > gap


def test_the_smallest_validation_set_as_found_one_by_one():
    theorem = Theorem2(2, 1, 0.5, 1.0, 0.1)
    first = next(n for n in range(theorem.least_rows, 100_000) if theorem.bound(n) <= 0.2)
    assert theorem.rows_for(0.2) == first > 100


@given(epsilon=st.floats(1e-6, 1.0), n_dims=st.integers(1, 12))
def test_the_paper_s_cover_is_never_smaller(epsilon, n_dims):
    assert cover_size(epsilon, n_dims) <= cover_size(epsilon, n_dims, simplified=True) * (1 + 1e-12)


def test_sizes_of_covers():
    assert cover_size(0.5, 2) == 25
    assert cover_size(0.5, 2, simplified=True) == 36
    assert cover_size(1e-3, 1000) == math.inf
    with pytest.raises(InvalidInputError, match="at most 1"):
        cover_size(2.0, 1, simplified=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("n_dims", bad) for bad in (0, -1, 1.5, True, "2")),
        ("n_metrics", 0),
        *(("sigma", bad) for bad in (0.0, -1.0, math.nan, math.inf, "1")),
        ("lipschitz_metric", 0.0),
        ("lipschitz_model", -0.1),
        *(("delta", bad) for bad in (0.0, 1.0, -0.5, None)),
    ],
)
def test_wrong_constants_are_named(name, value):
    right = {"n_dims": 1, "n_metrics": 1, "sigma": 1.0, "lipschitz_metric": 1.0, "lipschitz_model": 1.0}
    with pytest.raises(InvalidInputError, match=f"{name} must be .*got"):
        Theorem2(**{**right, name: value})


def test_too_few_rows_and_impossible_gaps_are_refused():
    theorem = Theorem2(1, 2, 1.0, 1.0, 0.0)
    with pytest.raises(InvalidInputError, match=r"9·σ²·K = 18 validation rows, got n_rows=17"):
        theorem.bound(17)
    assert theorem.bound(18) > 0
    with pytest.raises(InvalidInputError, match=r"10\^18"):
        theorem.rows_for(1e-10)
    with pytest.raises(InvalidInputError, match="gap must be a number above 0"):
        theorem.rows_for(0.0)
