"""The searches: what they propose, and what they refuse."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from threadpoolctl import threadpool_limits

from moew.exceptions import InvalidInputError
from moew.samplers import Ball, Box, GpBucb, RandomSampler, resolve_sampler
from moew.samplers._gp_bucb import repeat_deviation
from moew.types import Sampler

NONE = np.empty((0, 3))


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    # Small matrices on a busy machine: threads would only wait for each other.
    with threadpool_limits(1, user_api="blas"):
        yield


def observed(n: int, n_dims: int, seed: int = 0, noise: float = 0.1):
    rng = np.random.default_rng(seed)
    ball = Ball(n_dims, 1.0)
    alphas = ball.sample(rng, n)
    scores = -((alphas - ball.sample(rng, 1)) ** 2).sum(axis=1) + noise * rng.standard_normal(n)
    return alphas, scores, ball


def propose(search, alphas, scores, domain, k=5, pending=None, seed=0):
    pending = alphas[:0] if pending is None else pending
    rng = np.random.default_rng(seed)
    return search.propose(alphas, scores, pending=pending, k=k, domain=domain, rng=rng)


def retold(search, alphas, scores, domain):
    """scikit-learn's regressor with the hyper-parameters that `search` fits, and the targets it fits."""
    kernel = search.model(alphas, scores, domain).kernel
    parts = ConstantKernel(kernel.amplitude**2) * RBF(kernel.width)
    model = GaussianProcessRegressor(parts, alpha=kernel.noise, optimizer=None)
    return model, (scores - scores.mean()) / scores.std()


@pytest.mark.parametrize("n_dims", [1, 2, 4, 10])
@pytest.mark.parametrize("search", [GpBucb(), GpBucb(width=0.4), GpBucb(p=90, q=30, width="domain")])
def test_each_pick_is_above_a_hundred_thousand_random_points(search, n_dims):
    alphas, scores, ball = observed(40, n_dims)
    up, down = norm.ppf(0.5 + search.p / 200), norm.ppf(0.5 - search.q / 200)
    points = ball.sample(np.random.default_rng(1), 100_000)
    model, targets = retold(search, alphas, scores, ball)
    for alpha in propose(search, alphas, scores, ball, k=3):
        model.fit(alphas, targets)
        # No pick may be within a thousandth of the radius of a known point.
        allowed = points[cdist(points, alphas).min(axis=1) > 1e-3]
        mean, sd = model.predict(np.vstack([alpha, allowed]), return_std=True)
        assert (mean + up * sd)[0] >= (mean + up * sd)[1:].max() - 1e-5
        # The next is picked as if the lower quantile had been observed here.
        alphas = np.vstack([alphas, alpha])
        targets = np.append(targets, mean[0] + down * sd[0])


@pytest.mark.parametrize("search", [GpBucb(), GpBucb(width=0.4), GpBucb(width="domain", noise=0.01)])
def test_the_posterior_mean_is_that_of_scikit_learn(search):
    alphas, scores, ball = observed(60, 3, noise=0.5)
    model, targets = retold(search, alphas, scores, ball)
    by_hand = model.fit(alphas, targets).predict(alphas)
    np.testing.assert_allclose(search.posterior_mean(alphas, scores, ball), by_hand, rtol=1e-6, atol=1e-8)


def test_the_posterior_mean_of_failed_candidates_is_unknown():
    alphas, scores, ball = observed(20, 2)
    scores[3], filled = np.nan, scores.copy()
    filled[3] = np.nanmin(scores)
    found = GpBucb().posterior_mean(alphas, scores, ball)
    assert np.isnan(found[3])
    there = np.arange(20) != 3
    np.testing.assert_array_equal(found[there], GpBucb().posterior_mean(alphas, filled, ball)[there])
    scores[1:] = np.nan
    np.testing.assert_array_equal(GpBucb().posterior_mean(alphas, scores, ball), scores)


def test_pending_candidates_are_pretended_observations_in_their_order():
    alphas, scores, ball = observed(30, 3)
    search = GpBucb(q=95)
    pending = ball.sample(np.random.default_rng(5), 4)
    model, targets = retold(search, alphas, scores, ball)
    known = alphas
    for alpha in pending:
        mean, sd = model.fit(known, targets).predict(alpha[None], return_std=True)
        known, targets = np.vstack([known, alpha]), np.append(targets, mean + norm.ppf(0.025) * sd)
    points = ball.sample(np.random.default_rng(1), 100_000)
    pick = propose(search, alphas, scores, ball, k=1, pending=pending)
    mean, sd = model.fit(known, targets).predict(np.vstack([pick, points]), return_std=True)
    bound = mean + norm.ppf(0.5 + 68.3 / 200) * sd
    assert bound[0] >= bound[1:].max() - 1e-5
    # The picks of a batch are its own pending ones: asked for in two parts, the second part goes elsewhere.
    assert np.linalg.norm(pick - propose(search, alphas, scores, ball, k=1)) > 1e-3


@pytest.mark.parametrize("n_dims", [pytest.param(4, marks=pytest.mark.heavy), 10])
def test_beats_random_search_on_noisy_quadratics(n_dims):
    wins = 0
    for seed in range(20):
        chosen = {}
        for search in (GpBucb(), RandomSampler()):
            rng = np.random.default_rng(seed)
            ball = Ball(n_dims, 1.0)
            top = ball.sample(rng, 1)
            alphas, scores = np.empty((0, n_dims)), np.empty(0)
            for _ in range(10):
                new = search.propose(alphas, scores, pending=alphas[:0], k=20, domain=ball, rng=rng)
                noise = 0.1 * rng.standard_normal(20)
                alphas = np.vstack([alphas, new])
                scores = np.append(scores, -((new - top) ** 2).sum(axis=1) + noise)
            chosen[type(search)] = -((alphas[scores.argmax()] - top) ** 2).sum()
        wins += chosen[GpBucb] > chosen[RandomSampler]
    assert wins >= 18


@given(data=st.data())
def test_proposals_are_inside_distinct_and_finite(data):
    n_dims = data.draw(st.integers(1, 6))
    domain = data.draw(st.sampled_from([Ball, Box]))(n_dims, data.draw(st.sampled_from([1e-3, 1.0, 50.0])))
    rng = np.random.default_rng(data.draw(st.integers(1, 1000)))  # propose has 0
    n = data.draw(st.integers(0, 25))
    alphas, pending = domain.sample(rng, n), domain.sample(rng, data.draw(st.integers(0, 3)))
    if n > 4 and data.draw(st.booleans()):
        alphas[: n // 2] = alphas[0]
    value = st.one_of(
        st.just(float("nan")), st.just(0.7), st.just(float("inf")), st.floats(-1e150, 1e150, allow_nan=False)
    )
    scores = np.array(data.draw(st.lists(value, min_size=n, max_size=n)), dtype=float)
    search = data.draw(
        st.builds(
            GpBucb,
            p=st.sampled_from([0, 68.3, 100]),
            q=st.sampled_from([0, 68.3, 100]),
            width=st.sampled_from(["domain", "fit", 0.01, 10.0]),
            noise=st.sampled_from(["fit", 0.0, 0.1]),
            targets=st.sampled_from(["standardize", "raw"]),
        )
    )
    k = data.draw(st.integers(1, 30))
    picks = propose(search, alphas, scores, domain, k=k, pending=pending)
    assert picks.shape == (k, n_dims)
    assert np.isfinite(picks).all()
    assert (domain.edge_distance(picks) >= -1e-9).all()
    everything = np.vstack([np.unique(np.vstack([alphas, pending]), axis=0), picks])
    assert len(np.unique(everything, axis=0)) == len(everything)


def test_no_point_twice_even_where_nothing_speaks_against_it():
    # p = q = 0: the mean alone, which a pretended observation does not change.
    alphas, scores, ball = observed(40, 2)
    picks = propose(GpBucb(p=0, q=0), alphas, scores, ball, k=10)
    everything = np.vstack([alphas, picks])
    apart = np.linalg.norm(everything[:, None] - everything, axis=2) + np.eye(len(everything))
    assert apart[len(alphas) :].min() > 1e-3
    # … and all of them stay near the top.
    assert np.linalg.norm(picks - picks[0], axis=1).max() < 0.2


def test_a_full_domain_still_gets_new_points():
    alphas = np.linspace(-1, 1, 1050)[:, None]
    picks = propose(GpBucb(width="domain", noise=0.01), alphas, np.sin(alphas[:, 0]), Ball(1, 1.0), k=3)
    assert len(np.unique(np.vstack([alphas, picks]))) == 1053


def test_equal_scores_spread_over_the_domain():
    alphas, _, ball = observed(10, 2)
    picks = propose(GpBucb(), alphas, np.full(10, 0.3), ball, k=20)
    apart = np.linalg.norm(picks[:, None] - picks, axis=2) + 9 * np.eye(20)
    random = ball.sample(np.random.default_rng(0), 20)
    random_apart = np.linalg.norm(random[:, None] - random, axis=2) + 9 * np.eye(20)
    assert apart.min() > 2 * random_apart.min()


def test_units_and_offset_of_the_metric_do_not_matter():
    alphas, scores, ball = observed(40, 3)
    search = GpBucb()
    picks = propose(search, alphas, scores, ball)
    np.testing.assert_allclose(propose(search, alphas, 1000 * scores + 5000, ball), picks, atol=1e-3)


def test_raw_targets_have_a_prior_mean_of_zero():
    alphas, scores, ball = observed(40, 3)
    g = GpBucb(targets="raw", width="domain").model(alphas, 10 + scores, ball)
    far = np.full((1, 3), 1e3)
    assert g.predict(far)[0][0] == pytest.approx(0, abs=1e-12)
    # In units of the root mean square, the scores are near one.
    assert g.predict(alphas)[0].mean() == pytest.approx(1, abs=0.01)


def test_failed_candidates_count_as_the_worst_seen():
    alphas, scores, ball = observed(40, 3)
    failed = scores.copy()
    failed[[3, 17]] = np.nan, np.inf
    worst = scores.copy()
    worst[[3, 17]] = np.delete(scores, [3, 17]).min()
    np.testing.assert_array_equal(
        propose(GpBucb(), alphas, failed, ball), propose(GpBucb(), alphas, worst, ball)
    )


@pytest.mark.parametrize("scores", [[], [0.3], [np.nan, 0.3, np.nan]])
def test_with_fewer_than_two_scores_proposals_are_random(scores):
    alphas = Ball(3, 1.0).sample(np.random.default_rng(1), len(scores))
    picks = propose(GpBucb(), alphas, np.array(scores), Ball(3, 1.0))
    np.testing.assert_array_equal(picks, Ball(3, 1.0).sample(np.random.default_rng(0), 5))


def test_noise_from_repeats_is_the_pooled_variance():
    rng = np.random.default_rng(0)
    alphas, _, ball = observed(30, 3)
    alphas[:8], alphas[8:11] = 0, alphas[8]
    scores = 5 + rng.standard_normal(30)
    scores[9] = np.nan
    zeros, others = scores[:8], scores[[8, 10]]
    pooled = (7 * zeros.var(ddof=1) + 1 * others.var(ddof=1)) / 8
    assert repeat_deviation(alphas, scores) == pytest.approx(np.sqrt(pooled))
    kernel = GpBucb(noise="repeats").model(alphas, scores, ball).kernel
    given_kernel = GpBucb(noise=pooled).model(alphas, scores, ball).kernel
    assert kernel.noise == pytest.approx(given_kernel.noise)
    filled = np.where(np.isnan(scores), np.nanmin(scores), scores)
    assert kernel.noise == pytest.approx(pooled / filled.var())


def test_noise_is_floored():
    alphas, scores, ball = observed(30, 3)
    assert GpBucb(noise=0.0, noise_floor=0.01).model(alphas, scores, ball).kernel.noise == pytest.approx(0.01)
    with pytest.raises(InvalidInputError, match="α = 0 model"):
        propose(GpBucb(noise="repeats"), alphas, scores, ball)


def test_width_of_the_domain_is_the_papers():
    alphas, scores, _ = observed(30, 3)
    assert GpBucb(width="domain").model(alphas, scores, Ball(3, 2.5)).kernel.width == pytest.approx(2.5)
    assert GpBucb(width=0.7).model(alphas, scores, Ball(3, 2.5)).kernel.width == pytest.approx(0.7)


def test_p_and_q_explore():
    alphas, scores, ball = observed(60, 4)
    g = GpBucb().model(alphas, scores, ball)

    def sd_of_first(p):
        return g.predict(propose(GpBucb(p=p), alphas, scores, ball, k=1))[1][0]

    assert sd_of_first(0) < sd_of_first(68.3) < sd_of_first(100)

    def spread(q):
        return propose(GpBucb(p=30, q=q), alphas, scores, ball, k=10).std(axis=0).sum()

    assert spread(0) < spread(100)


@pytest.mark.parametrize("search", [GpBucb(), RandomSampler()])
def test_same_generator_same_proposals(search):
    alphas, scores, ball = observed(30, 3)
    first, again = (propose(search, alphas, scores, ball, seed=4) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, propose(search, alphas, scores, ball, seed=5))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"p": -1}, "p is in percent"),
        ({"p": 100.5}, "p is in percent"),
        ({"q": float("nan")}, "q is in percent"),
        ({"width": "wide"}, "width"),
        ({"width": 0.0}, "width"),
        ({"noise": "none"}, "noise"),
        ({"noise": -1.0}, "noise"),
        ({"noise_floor": 0.0}, "noise_floor"),
        ({"targets": "log"}, "targets"),
    ],
)
def test_bad_settings_are_refused(change, message):
    with pytest.raises(InvalidInputError, match=message):
        GpBucb(**change)


@pytest.mark.parametrize("search", [GpBucb(), RandomSampler()])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alphas": np.zeros((4, 2))}, r"alphas must have shape \(n, 3\)"),
        ({"alphas": np.zeros(3)}, "alphas must have shape"),
        ({"alphas": np.full((4, 3), np.nan)}, "alphas must be finite; row 0"),
        ({"scores": np.zeros(3)}, "each of the 4 alphas"),
        ({"scores": np.zeros((4, 1))}, "each of the 4 alphas"),
        ({"pending": np.full((2, 3), np.inf)}, "pending must be finite"),
        ({"pending": np.zeros((0, 2))}, "pending must have shape"),
        ({"k": 0}, "k must be a whole number of 1 or more"),
        ({"k": 2.5}, "whole number"),
    ],
)
def test_bad_input_is_refused(search, change, message):
    known = {"alphas": np.eye(4, 3), "scores": np.arange(4.0), "pending": NONE, "k": 2} | change
    with pytest.raises(InvalidInputError, match=message):
        search.propose(**known, domain=Ball(3, 1.0), rng=np.random.default_rng(0))


@pytest.mark.parametrize("scores", [[0.0, 5e-324, np.nan], [-1e308, 1e308, 0.18], [0.0, 0.0, 0.0]])
@pytest.mark.parametrize("changes", [{"noise": 1e300}, {"noise": 0.5}, {"width": 1e300}, {"width": 1e-300}])
def test_numbers_whose_squares_are_none_are_taken(scores, changes):
    search, ball, alphas = GpBucb(**changes), Ball(2, 4.0), np.array([[0.0, 0.0], [1.0, -2.0], [0.5, 3.0]])
    found = propose(search, alphas, np.array(scores), ball, k=3)
    assert (np.linalg.norm(found, axis=1) <= 4.0 * (1 + 1e-9)).all()
    outlook = search.outlook(alphas, np.array(scores), domain=ball, rng=np.random.default_rng(0))
    assert outlook is not None
    assert not np.isnan([outlook.gain, outlook.width]).any()


def test_searches_by_name():
    assert resolve_sampler("gp_bucb") == GpBucb()
    assert resolve_sampler("random") == RandomSampler()
    search = GpBucb(p=10)
    assert resolve_sampler(search) is search
    assert isinstance(search, Sampler)
    for wrong in ("bayes", 3, GpBucb):
        with pytest.raises(InvalidInputError, match="'gp_bucb', 'random'"):
            resolve_sampler(wrong)


def test_objects_of_the_users_own_are_samplers():
    @dataclass
    class Centre:
        def check_domain(self, domain):
            pass

        def propose(self, alphas, scores, *, pending, k, domain, rng):
            return np.zeros((k, domain.n_dims))

    search = Centre()
    assert resolve_sampler(search) is search
