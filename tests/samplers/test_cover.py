"""The cover: it covers, is proposed point by point, and is refused where it would be too large."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.linear_model import LogisticRegression

from moew import ExampleWeightSearch, WeightStudy
from moew.exceptions import InvalidInputError
from moew.samplers import Ball, Box, CoverSampler, resolve_sampler
from moew.theory import cover_size


def propose(search, domain, k, known=None, pending=None, seed=0):
    none = np.empty((0, domain.n_dims))
    known, pending = (none if part is None else part for part in (known, pending))
    rng = np.random.default_rng(seed)
    return search.propose(known, np.zeros(len(known)), pending=pending, k=k, domain=domain, rng=rng)


@settings(max_examples=60, deadline=None)
@given(
    domain=st.sampled_from([Ball, Box]),
    n_dims=st.integers(1, 4),
    size=st.sampled_from([0.01, 1.0, 30.0]),
    epsilon=st.floats(0.2, 2.0),
    seed=st.integers(0, 10**6),
)
def test_every_point_is_within_epsilon_of_the_cover(domain, n_dims, size, epsilon, seed):
    domain = domain(n_dims, size)
    cover = CoverSampler(epsilon).points(domain)
    rng = np.random.default_rng(seed)
    inside = domain.sample(rng, 300)
    edge = domain.project(1e3 * size * rng.standard_normal((300, n_dims)))
    assert cdist(np.vstack([inside, edge]), cover).min(axis=1).max() <= epsilon * size * (1 + 1e-6)
    np.testing.assert_allclose(domain.project(cover), cover, atol=1e-12 * size)
    assert len(np.unique(cover, axis=0)) == len(cover)


@pytest.mark.parametrize("n_dims", [1, 2, 3, 4])
@pytest.mark.parametrize("epsilon", [0.9, 0.5, 0.3, 0.2])
def test_the_cover_of_a_ball_is_not_larger_than_the_theorem_allows(n_dims, epsilon):
    size = len(CoverSampler(epsilon).points(Ball(n_dims, 1.0)))
    assert (1 / epsilon) ** n_dims <= size <= cover_size(epsilon, n_dims)


def test_the_cover_of_an_interval_by_hand():
    np.testing.assert_allclose(
        CoverSampler(0.25).points(Ball(1, 2.0)), [[0], [-1], [1], [-2], [2]], atol=1e-12
    )


def test_points_come_in_order_and_once_whatever_is_known():
    domain, search = Ball(2, 1.0), CoverSampler(0.3)
    cover = search.points(domain)
    first = propose(search, domain, 4)
    second = propose(search, domain, 3, known=first, seed=9)
    np.testing.assert_array_equal(np.vstack([first, second]), cover[:7])
    out_of_order = propose(search, domain, 2, known=cover[[0, 2]], pending=cover[[1, 4]])
    np.testing.assert_array_equal(out_of_order, cover[[3, 5]])
    # A baseline of α = 0 is the cover's first point, even as -0.0.
    np.testing.assert_array_equal(propose(search, domain, 1, known=-np.zeros((1, 2))), cover[1:2])


def test_a_finished_cover_is_refined():
    domain, search = Ball(2, 1.0), CoverSampler(0.5)
    coarse, fine = search.points(domain), CoverSampler(0.25).points(domain)
    proposed = propose(search, domain, len(coarse) + 5)
    np.testing.assert_array_equal(proposed[: len(coarse)], coarse)
    new = [row for row in fine.tolist() if row not in coarse.tolist()]
    np.testing.assert_array_equal(proposed[len(coarse) :], new[:5])


def test_a_study_goes_through_the_cover_and_can_be_continued(tmp_path):
    def study():
        return WeightStudy(
            None, Ball(2, 1.0), sampler=CoverSampler(0.4), n_initial=2, storage=tmp_path / "s.log"
        )

    for k in (3, 4, 2):
        for candidate in study().ask(k):
            study().tell(candidate.number, float(candidate.number))
    alphas = np.array([told.alpha for told in study().trials()])
    np.testing.assert_array_equal(alphas[3:], CoverSampler(0.4).points(Ball(2, 1.0))[1:7])


def test_too_large_a_cover_is_refused_before_training():
    for n_dims, epsilon in ((3, 0.01), (10, 0.5), (10**4, 0.99)):
        with pytest.raises(InvalidInputError, match=r"more than limit=\d+ points; take a larger epsilon"):
            CoverSampler(epsilon).check_domain(Ball(n_dims, 1.0))
    with pytest.raises(InvalidInputError, match="more than limit=3 points"):
        CoverSampler(0.3, limit=3).points(Ball(1, 1.0))
    trained = []

    class Watched(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            trained.append(1)
            return super().fit(X, y, sample_weight)

    X = np.random.default_rng(0).standard_normal((60, 20))
    search = ExampleWeightSearch(Watched(), embedding=lambda X, y: X, sampler="cover", random_state=0)
    with pytest.raises(InvalidInputError, match="a cover of 20 dimensions"):
        search.fit(X, X[:, 0] > 0)
    assert not trained


def test_it_has_a_name_and_wrong_settings_are_refused():
    assert resolve_sampler("cover") == CoverSampler()
    for epsilon in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InvalidInputError, match="epsilon must be a positive number"):
            CoverSampler(epsilon)
    with pytest.raises(InvalidInputError, match="limit must be at least 1"):
        CoverSampler(limit=0)
