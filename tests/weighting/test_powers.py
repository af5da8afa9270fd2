"""Powers of the target as weights."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from moew import MetricSearch
from moew._util.state import load_state
from moew.weighting import AveragedWeights, PowersOfTarget

TARGETS = st.lists(st.floats(-1e3, 1e3, allow_subnormal=False), min_size=2, max_size=30).map(np.array)
EXPONENTS = st.floats(-4, 4)


@given(y=TARGETS, exponent=EXPONENTS, seed=st.integers(0, 9), weighted=st.booleans())
def test_weights_are_positive_and_of_mean_one_by_the_users_weights(y, exponent, seed, weighted):
    own = np.random.default_rng(seed).uniform(0.1, 3, len(y)) if weighted else None
    weights = PowersOfTarget(y, own).training_weights(np.array([[exponent], [0.0]]))
    assert np.isfinite(weights).all()
    assert (weights >= 0).all()
    mass = np.ones(len(y)) if own is None else own
    np.testing.assert_allclose(weights.sum(axis=1), mass.sum(), rtol=1e-9)
    np.testing.assert_allclose(weights[1], mass, rtol=1e-9)  # the power 0 is no weight


@given(y=TARGETS, exponent=EXPONENTS, seed=st.integers(0, 9), weighted=st.booleans())
def test_the_weight_function_gives_the_training_rows_their_weights(y, exponent, seed, weighted):
    own = np.random.default_rng(seed).uniform(0.1, 3, len(y)) if weighted else None
    powers = PowersOfTarget(y, own)
    function = powers.weight_function(np.array([exponent]))
    loaded = load_state(json.loads(json.dumps(function.state())), {})
    of_rows = powers.training_weights(np.array([[exponent]]))[0]
    for one in (function, loaded):
        made = one(None, y) if own is None else one(None, y) * own
        np.testing.assert_allclose(made, of_rows, rtol=1e-12)


def test_targets_far_from_all_others_have_finite_weights():
    y = np.array([1.0, 2.7e-183, 2.7e-183])
    weights = PowersOfTarget(y).training_weights(np.array([[4.0], [-4.0]]))
    assert np.isfinite(weights).all()
    np.testing.assert_allclose(weights.mean(axis=1), 1)


def test_positive_targets_get_plain_powers():
    y = np.array([0.5, 1.0, 3.0, 8.0])
    for exponent in (-2.0, 0.5, 3.0):
        weights = PowersOfTarget(y).training_weights(np.array([[exponent]]))[0]
        np.testing.assert_allclose(weights, y**exponent / np.mean(y**exponent))


@pytest.mark.parametrize("y", [[0.5, 1.0, 3.0], [-2.0, 0.0, 5.0]])
def test_targets_below_those_of_training_count_as_the_lowest(y):
    function = PowersOfTarget(np.array(y)).weight_function(np.array([-4.0]))
    lowest, below, far_below = function(None, np.array([min(y), min(y) - 0.4, min(y) - 100]))
    assert lowest == below == far_below
    assert np.isfinite(lowest)


@given(y=st.lists(st.floats(0.1, 10), min_size=3, max_size=10), exponent=st.floats(0.1, 4))
def test_higher_targets_weigh_more_with_a_positive_power_and_less_with_a_negative(y, exponent):
    y = np.sort(y)
    up, down = PowersOfTarget(y - 2).training_weights(np.array([[exponent], [-exponent]]))
    assert (np.diff(up) >= 0).all()
    assert (np.diff(down) <= 0).all()


def test_an_average_of_weight_functions_survives_its_state():
    y = np.array([1.0, 2.0, 5.0])
    powers = PowersOfTarget(y)
    functions = tuple(powers.weight_function(np.array([a])) for a in (1.0, -2.0))
    averaged = AveragedWeights(functions, (0.25, 0.75))
    expected = 0.25 * functions[0](None, y) + 0.75 * functions[1](None, y)
    loaded = load_state(json.loads(json.dumps(averaged.state())), {})
    for one in (averaged, loaded):
        np.testing.assert_allclose(one(None, y), expected, rtol=1e-15)


def test_a_regression_of_relative_errors_gets_negative_powers_of_the_target():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (500, 1))
    y = np.exp(3 * X[:, 0]) + 0.1  # a line cannot follow it, and relative errors are made where y is small

    def relative(y_true, predicted):
        return -float(np.mean(np.abs(y_true - predicted) / y_true))

    search = MetricSearch.from_settings(
        Ridge(), metric=relative, n_candidates=15, batch_size=5, random_state=0
    ).fit(X, y)
    names = [strategy.name for strategy in search.result_.strategies]
    assert "powers of the target" in names
    assert "class weights" not in names
    of_strategy = {strategy.name: strategy.honest for strategy in search.result_.strategies}
    assert of_strategy["powers of the target"] > of_strategy["unweighted"]
