"""The grid: equal distances, as many points as the budget allows, spread at every length."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import shifted_classes
from scipy.spatial.distance import cdist
from sklearn.linear_model import LogisticRegression

from experiments.samplers import GridSampler
from moew import MetricSearch, WeightStudy
from moew.exceptions import InvalidInputError
from moew.samplers import Ball, BallAndBox, Box


def propose(sampler, domain, k, known=None, pending=None, seed=0):
    none = np.empty((0, domain.n_dims))
    known, pending = (none if part is None else part for part in (known, pending))
    rng = np.random.default_rng(seed)
    return sampler.propose(known, np.zeros(len(known)), pending=pending, k=k, domain=domain, rng=rng)


DOMAINS = [
    Ball(1, 0.5),
    Ball(2, 4.0),
    Ball(4, 2.0),
    Ball(6, 1.0),
    Box(1, 3.0),
    Box(3, 2.0),
    BallAndBox(Ball(2, 4.0), Box(1, 1.0)),
]


@given(domain=st.sampled_from(DOMAINS), n=st.integers(64, 400))
def test_a_grid_lies_in_the_domain_reaches_its_edge_and_has_equal_distances(domain, n):
    grid = GridSampler(n).points(domain)
    assert 0.3 * n <= len(grid) <= n or isinstance(domain, Box)
    assert 2**domain.n_dims <= len(grid) <= n
    np.testing.assert_allclose(domain.project(grid), grid, atol=1e-9)
    assert domain.edge_distance(grid).min() == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(np.sort(grid, axis=0), np.sort(-grid, axis=0), atol=1e-9)
    for axis in grid.T:
        gaps = np.diff(np.unique(axis.round(9)))
        np.testing.assert_allclose(gaps, gaps[0], atol=1e-6)


def test_grids_by_hand():
    np.testing.assert_allclose(GridSampler(5).points(Ball(1, 2.0))[:, 0], [-2, -1, 0, 1, 2])
    np.testing.assert_allclose(GridSampler(4).points(Box(1, 3.0))[:, 0], [-3, -1, 1, 3])
    np.testing.assert_allclose(len(GridSampler(100).points(Box(2, 3.0))), 100)
    corners = GridSampler(4).points(Ball(2, 1.0))
    np.testing.assert_allclose(np.abs(corners), np.sqrt(0.5))


@given(
    domain=st.sampled_from(DOMAINS), k=st.integers(1, 90), split=st.integers(0, 90), seed=st.integers(0, 99)
)
def test_proposals_do_not_depend_on_how_many_are_asked_for_or_on_their_order(domain, k, split, seed):
    sampler, rng = GridSampler(80), np.random.default_rng(seed)
    at_once = propose(sampler, domain, k)
    np.testing.assert_allclose(domain.project(at_once), at_once, atol=1e-9)
    assert len(np.unique(at_once.round(9), axis=0)) == k
    known = rng.permutation(at_once[: min(split, k - 1)])
    cut = len(known) // 2
    rest = propose(sampler, domain, k - len(known), known[:cut], known[cut:], seed) if len(known) else at_once
    np.testing.assert_array_equal(rest, at_once[len(known) :])


@pytest.mark.parametrize("domain", [Ball(2, 4.0), Ball(3, 4.0), Box(2, 1.0)], ids=str)
def test_every_beginning_is_spread(domain):
    rng = np.random.default_rng(0)
    inside = domain.sample(rng, 3000)
    zero = np.zeros((1, domain.n_dims))
    order = np.vstack([zero, propose(GridSampler(100), domain, 100, known=zero)])
    for n in (5, 10, 20, 50, 101):
        reached = cdist(inside, order[:n]).min(axis=1).max()
        drawn = [cdist(inside, domain.sample(rng, n)).min(axis=1).max() for _ in range(10)]
        assert reached < np.median(drawn)


def test_a_finished_grid_is_followed_by_a_finer_one():
    domain, sampler = Ball(2, 1.0), GridSampler(30)
    grid = sampler.points(domain)
    proposed = propose(sampler, domain, len(grid) + 10)
    np.testing.assert_allclose(np.unique(proposed[: len(grid)], axis=0), np.unique(grid, axis=0))
    assert cdist(proposed[len(grid) :], grid).min() > 0.01


def test_without_a_budget_a_study_begins_with_the_coarsest():
    study = WeightStudy(None, Ball(2, 1.0), sampler=GridSampler(), n_initial=0)
    alphas = np.array([trial.alpha for trial in study.ask(5)])
    np.testing.assert_allclose(np.abs(alphas[1:]), np.sqrt(0.5))
    for trial in study.pending():
        study.tell(trial.number, error="it failed")
    later = np.array([trial.alpha for trial in study.ask(20)])
    assert len(np.unique(np.vstack([alphas, later]).round(9), axis=0)) == 25


GRID = GridSampler()


def fit_grid(n_batches, batch_size, embedding="label", sampler=GRID, n_classes=3):
    rows = shifted_classes(150, n_classes)
    search = MetricSearch.from_settings(
        LogisticRegression(),
        embedding=embedding,
        sampler=sampler,
        n_candidates=n_batches * batch_size,
        batch_size=batch_size,
        strategies="example weights",
        radius=2.0,
        random_state=0,
    )
    return search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))


def test_the_budget_of_a_search_decides_the_grid():
    for n_batches in (3, 6):
        search = fit_grid(n_batches, 10)
        grid = GridSampler(10 * n_batches).points(Ball(3, 2.0))
        tried = np.array([trial.alpha for trial in search.result_.trials])
        assert len(tried) == 10 * n_batches + 1
        np.testing.assert_allclose(cdist(grid, tried).min(axis=1), 0, atol=1e-9)


def test_a_dimension_that_makes_a_grid_absurd_is_refused_before_training():
    with pytest.raises(InvalidInputError, match="a grid of 9 dimensions has 512 points with only two values"):
        GridSampler().check_domain(Ball(9, 1.0))
    with pytest.raises(InvalidInputError, match="6 dimensions needs 64 candidates .* there are 20 for it"):
        fit_grid(2, 10, embedding=lambda X, y: np.hstack([X, X**2, X**3]), n_classes=2)
    for wrong in (0, 1, -5):
        with pytest.raises(InvalidInputError, match="n_points must be a whole number of at least 2"):
            GridSampler(wrong)
