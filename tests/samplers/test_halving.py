"""Points on a line that are spread evenly at every length."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moew.exceptions import InvalidInputError
from moew.samplers import Ball, Halving
from moew.search._study import WeightStudy

NONE = np.empty((0, 1))


def proposed(k, known=NONE, pending=NONE, radius=4.0):
    scores = np.zeros(len(known))
    rng = np.random.default_rng(0)
    return Halving().propose(known, scores, pending=pending, k=k, domain=Ball(1, radius), rng=rng)


def test_the_first_points_halve_the_gaps():
    np.testing.assert_array_equal(proposed(6)[:, 0], [-2, 2, -3, 1, -1, 3])


@given(n=st.integers(1, 200), radius=st.floats(0.1, 50))
def test_no_gap_is_wider_than_twice_the_narrowest_halving(n, radius):
    points = np.sort(np.concatenate([[-radius, 0.0, radius], proposed(n, radius=radius)[:, 0]]))
    assert len(np.unique(points)) == n + 3  # never a point twice, and never 0
    widest = 2 * radius / 2 ** np.floor(np.log2(n + 2))
    assert np.diff(points).max() <= widest * (1 + 1e-9)


@given(parts=st.lists(st.integers(1, 7), min_size=1, max_size=8), n_pending=st.integers(0, 5))
def test_points_do_not_depend_on_how_many_are_asked_for_at_a_time(parts, n_pending):
    known = np.zeros((1, 1))  # the model at 0 is not one of the sequence
    for k in parts:
        split = max(1, len(known) - n_pending)
        known = np.concatenate([known, proposed(k, known[:split], known[split:])])
    np.testing.assert_array_equal(known[1:], proposed(sum(parts)))


def test_a_study_goes_on_behind_candidates_that_failed():
    study = WeightStudy(None, Ball(1, 4.0), sampler=Halving(), n_initial=0, alpha_zero_repeats=1, seed=0)
    seen = []
    for _ in range(4):
        for trial in study.ask(2):
            seen.append(float(trial.alpha[0]))
            if trial.number % 2:
                study.tell(trial.number, error="it failed")
            else:
                study.tell(trial.number, 1.0)
    assert seen == [0.0, *proposed(7)[:, 0].tolist()]


def test_points_of_others_do_not_take_places_of_the_sequence():
    known = np.array([[0.0], [-2.0], [0.7], [2.0]])
    np.testing.assert_array_equal(proposed(3, known, np.array([[3.3]]))[:, 0], [-3, 1, -1])


def test_a_plane_is_refused():
    with pytest.raises(InvalidInputError, match="one dimension, the domain has 2"):
        Halving().check_domain(Ball(2, 1.0))
