"""The cover: it covers, is proposed point by point, and is refused where it would be too large."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import shifted_classes
from scipy.spatial.distance import cdist, pdist
from sklearn.linear_model import LogisticRegression

from experiments.samplers import CoverSampler
from experiments.theory import cover_size
from moew import MetricSearch, WeightStudy
from moew.exceptions import InvalidInputError, MoewWarning
from moew.samplers import Ball, Box


def propose(search, domain, k, known=None, pending=None, seed=0):
    none = np.empty((0, domain.n_dims))
    known, pending = (none if part is None else part for part in (known, pending))
    rng = np.random.default_rng(seed)
    return search.propose(known, np.zeros(len(known)), pending=pending, k=k, domain=domain, rng=rng)


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


def test_each_point_comes_once_whatever_is_known_and_however_many_are_asked_for():
    domain, search = Ball(2, 1.0), CoverSampler(0.3)
    n = len(search.points(domain))
    order = propose(search, domain, n)
    np.testing.assert_array_equal(np.unique(order, axis=0), np.unique(search.points(domain), axis=0))
    np.testing.assert_array_equal(order[0], [0, 0])
    first = propose(search, domain, 4)
    second = propose(search, domain, 3, known=first[[2, 0]], pending=first[[3, 1]], seed=9)
    np.testing.assert_array_equal(np.vstack([first, second]), order[:7])
    # A baseline of α = 0 is the first point, even as -0.0.
    np.testing.assert_array_equal(propose(search, domain, 1, known=-np.zeros((1, 2))), order[1:2])


@pytest.mark.parametrize("domain", [Ball(1, 2.0), Ball(2, 1.0), Ball(3, 4.0), Box(2, 1.0)], ids=str)
def test_every_beginning_is_spread_over_the_domain(domain):
    sampler = CoverSampler(0.25)
    cover = sampler.points(domain)
    order = propose(sampler, domain, len(cover))
    rng = np.random.default_rng(0)
    for n in (2, 5, 10, 20, len(cover) // 2):
        reached = cdist(cover, order[:n]).min(axis=1).max()
        # The points of a beginning are as far from each other as the farthest point is from them: so no
        # choice of n points leaves less than half of that distance.
        if n < len(cover):
            assert pdist(order[: n + 1]).min() >= reached * (1 - 1e-6)
        drawn = [cdist(cover, cover[rng.permutation(len(cover))[:n]]).min(axis=1).max() for _ in range(20)]
        assert reached <= np.median(drawn) * (1 + 1e-9)


def fit_cover(epsilon, **more):
    rows = shifted_classes(120, 3)
    search = MetricSearch.from_settings(
        LogisticRegression(),
        embedding="label",
        base_weights="uniform",
        sampler=CoverSampler(epsilon),
        radius=2.0,
        evaluate_on="validation",
        strategies="example weights",
        honest=None,
        random_state=0,
        **more,
    )
    return search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))


def test_an_unfinished_cover_is_said_before_training():
    n_points = len(CoverSampler(0.3).points(Ball(3, 2.0)))
    with pytest.warns(
        MoewWarning, match=rf"epsilon=0.3 has {n_points} points, and the search has 12"
    ) as said:
        search = fit_cover(0.3, n_candidates=12, batch_size=4)
    (warning,) = [one.message for one in said if isinstance(one.message, MoewWarning)]
    allowed = float(re.search(r"which allow epsilon=([\d.]+):", str(warning))[1])
    assert len(CoverSampler(1.03 * allowed).points(Ball(3, 2.0))) <= 12
    assert warning.argument == "sampler"
    alphas = np.array([trial.alpha for trial in search.result_.trials])
    # All candidates but α = 0 are points of the cover: there is no random first batch.
    cover = CoverSampler(0.3).points(Ball(3, 2.0))
    np.testing.assert_allclose(cdist(alphas, cover).min(axis=1), 0, atol=1e-12)
    assert np.linalg.norm(alphas, axis=1).max() == pytest.approx(2.0)


def test_a_cover_that_is_finished_is_not_warned_of():
    cover = CoverSampler(0.9).points(Ball(3, 2.0))
    search = fit_cover(0.9, n_candidates=3 * len(cover), batch_size=len(cover))
    tried = np.array([trial.alpha for trial in search.result_.trials])
    np.testing.assert_allclose(cdist(cover, tried).min(axis=1), 0, atol=1e-12)


def test_one_point_covers_what_it_reaches():
    np.testing.assert_array_equal(CoverSampler(1.0).points(Ball(3, 2.0)), [[0, 0, 0]])
    np.testing.assert_array_equal(CoverSampler(1.5).points(Box(2, 2.0)), [[0, 0]])
    with pytest.warns(MoewWarning, match="51 points, and the search has 8 candidates .* allow epsilon=1:"):
        CoverSampler(0.5).for_budget(Ball(3, 4.0), 8)


def test_where_a_finer_cover_is_too_large_the_rest_is_random_and_said():
    domain = Ball(3, 1.0)
    n = len(CoverSampler(0.8).points(domain))
    sampler = CoverSampler(0.8, limit=n)
    with pytest.warns(MoewWarning, match="the other 5 candidates are random"):
        assert sampler.for_budget(domain, n + 5) == sampler
    proposed = propose(sampler, domain, n + 5)
    assert len(np.unique(proposed, axis=0)) == n + 5
    assert np.linalg.norm(proposed, axis=1).max() <= 1 + 1e-12


def test_a_finished_cover_is_refined():
    domain, search = Ball(2, 1.0), CoverSampler(0.5)
    coarse, fine = search.points(domain), CoverSampler(0.25).points(domain)
    proposed = propose(search, domain, len(coarse) + 5)
    np.testing.assert_array_equal(np.unique(proposed[: len(coarse)], axis=0), np.unique(coarse, axis=0))
    later = proposed[len(coarse) :]
    assert all(row in fine.tolist() and row not in coarse.tolist() for row in later.tolist())
    assert len(np.unique(later, axis=0)) == 5


def test_a_study_goes_through_the_cover_and_can_be_continued(tmp_path):
    def study():
        return WeightStudy(
            None, Ball(2, 1.0), sampler=CoverSampler(0.4), n_initial=2, storage=tmp_path / "s.log"
        )

    for k in (3, 4, 2):
        for candidate in study().ask(k):
            study().tell(candidate.number, float(candidate.number))
    alphas = np.array([told.alpha for told in study().trials()])
    at_once = propose(CoverSampler(0.4), Ball(2, 1.0), 6, known=alphas[:3])
    np.testing.assert_array_equal(alphas[3:], at_once)


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
    search = MetricSearch.from_settings(
        Watched(), embedding=lambda X, y: X, sampler=CoverSampler(), random_state=0
    )
    with pytest.raises(InvalidInputError, match="a cover of 20 dimensions"):
        search.fit(X, X[:, 0] > 0)
    assert not trained


def test_it_has_a_name_and_wrong_settings_are_refused():
    for epsilon in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InvalidInputError, match="epsilon must be a positive number"):
            CoverSampler(epsilon)
    with pytest.raises(InvalidInputError, match="limit must be a whole number of at least 1"):
        CoverSampler(limit=0)
