"""c of eq. 3: weights have mean one over the rows that a loss is averaged over."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from moew.weighting import ListedWeighting, RandomWeighting
from moew.weighting._weights import mean_over_rows, mini_batch_divisor, over_fold

POSITIVE = st.floats(1e-3, 1e3)
WEIGHTS = hnp.arrays(float, (3, 8), elements=POSITIVE)
OWN = st.none() | hnp.arrays(float, 8, elements=POSITIVE)


@given(WEIGHTS, OWN)
def test_over_all_rows_the_users_own_weights_keep_their_total(weights, own):
    counted = np.ones(8) if own is None else own
    normalised = weights / mean_over_rows(weights, own)[:, None] * counted
    np.testing.assert_allclose(normalised.sum(axis=1), counted.sum(), rtol=1e-12)


@given(WEIGHTS, OWN)
def test_over_a_fold_too(weights, own):
    counted = np.ones(8) if own is None else own
    normalised = over_fold(weights * counted, own)
    np.testing.assert_allclose(normalised.sum(axis=1), counted.sum(), rtol=1e-12)
    np.testing.assert_allclose(normalised / normalised[:, :1], weights * counted / (weights * counted)[:, :1])


@pytest.mark.parametrize("has_own", [False, True])
def test_a_candidates_weights_in_a_fold_do_not_depend_on_how_many_are_trained(has_own):
    rng = np.random.default_rng(0)
    weights, fold = rng.random((8, 200)), rng.permutation(200)[:120]
    own = rng.random(120) if has_own else None
    together = over_fold(weights[:, fold], own)
    for k in range(1, 8):
        for i in range(8 - k):
            some = weights[i : i + k]
            np.testing.assert_array_equal(over_fold(some[:, fold], own), together[i : i + k])


def test_a_mini_batch_sums_to_one_or_stays_zero_in_every_library():
    weights = np.array([[1.0, 3.0], [0.0, 0.0]])
    for array, where in ((weights, np.where), (jnp.asarray(weights), jnp.where)):
        total = array.sum(-1)[:, None]
        np.testing.assert_allclose(array / mini_batch_divisor(total, where), [[0.25, 0.75], [0.0, 0.0]])


def test_listed_weights_are_named_by_alpha_and_random_ones_are_seeded_by_it():
    own = np.array([1.0, 2.0, 3.0])
    alphas = np.array([[0.5], [-0.5], [0.5]])
    fixed = ListedWeighting(np.full((1, 3), 2.0), own)
    np.testing.assert_array_equal(fixed.training_weights(alphas), np.tile(2 * own, (3, 1)))
    random = RandomWeighting(3, own, seed=4)
    drawn = random.training_weights(alphas)
    np.testing.assert_array_equal(drawn[0], drawn[2])
    assert not np.array_equal(drawn[0], drawn[1])
    assert ((drawn / own >= 0.1) & (drawn / own <= 1.9)).all()
    np.testing.assert_array_equal(random.training_weights(alphas[1:2]), drawn[1:2])
