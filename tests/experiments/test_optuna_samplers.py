"""Optuna's samplers, and the map from the cube to the domain."""

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.samplers import CmaEsSampler, GridSampler, NSGAIISampler, QMCSampler, RandomSampler, TPESampler
from problems import shifted_classes
from scipy.stats import kstest, norm
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from experiments.samplers.optuna import OptunaSampler, from_cube, to_cube
from moew import MetricSearch, WeightStudy
from moew.exceptions import InvalidInputError
from moew.samplers import Ball, BallAndBox, Box

DOMAINS = [Ball(1, 0.5), Ball(3, 4.0), Ball(12, 2.0), Box(2, 3.0), BallAndBox(Ball(2, 4.0), Box(2, 1.0))]


MAKE = {
    "tpe": lambda: TPESampler(seed=0),
    "tpe of all together": lambda: TPESampler(multivariate=True),
    "random": lambda: RandomSampler(seed=0),
    "sobol": QMCSampler,
    "halton": lambda: QMCSampler(qmc_type="halton", scramble=True, seed=4),
    "nsga": lambda: NSGAIISampler(population_size=6),
}
every_sampler = pytest.mark.parametrize("name", MAKE)
pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


@pytest.mark.parametrize("n_dims", [1, 2, 3, 10])
def test_uniform_numbers_become_uniform_points_of_the_ball(n_dims):
    ball, n = Ball(n_dims, 3.0), 5000
    points = from_cube(np.random.default_rng(n_dims).random((n, n_dims)), ball)
    radius = np.linalg.norm(points, axis=1)
    assert kstest((radius / 3.0) ** n_dims, "uniform").pvalue > 0.01
    # A uniform direction times the length of a normal vector is a normal vector: each entry must be normal,
    # and so must the projection on any fixed direction.
    lengths = np.linalg.norm(np.random.default_rng(99).standard_normal((n, n_dims)), axis=1)
    normal = points / radius[:, None] * lengths[:, None]
    for axis in [*np.eye(n_dims), np.full(n_dims, n_dims**-0.5)]:
        assert kstest(normal @ axis, norm.cdf).pvalue > 0.005
    if n_dims > 1:  # direction and radius are independent
        for half in (radius < np.median(radius), radius >= np.median(radius)):
            assert kstest(normal[half, 0], norm.cdf).pvalue > 0.005


@given(domain=st.sampled_from(DOMAINS), seed=st.integers(0, 10**6), shrink=st.sampled_from([1.0, 0.1, 1e-6]))
def test_there_and_back_is_the_same_point(domain, seed, shrink):
    rng = np.random.default_rng(seed)
    points = shrink * domain.sample(rng, 20)
    shares = to_cube(points, domain)
    assert shares.min() >= 0 and shares.max() <= 1
    np.testing.assert_allclose(from_cube(shares, domain), points, atol=1e-7 * domain.size)
    edge = domain.project(1e3 * domain.size * rng.standard_normal((20, domain.n_dims)))
    np.testing.assert_allclose(from_cube(to_cube(edge, domain), domain), edge, atol=1e-3 * domain.size)
    corners = rng.integers(0, 2, (20, domain.n_dims)).astype(float)
    inside = from_cube(corners, domain)
    np.testing.assert_allclose(domain.project(inside), inside, atol=1e-12)
    zero = np.zeros((1, domain.n_dims))
    np.testing.assert_array_equal(to_cube(zero, domain), zero + 0.5)
    np.testing.assert_array_equal(from_cube(zero + 0.5, domain), zero)


def known(domain, n=14, n_pending=3):
    rng = np.random.default_rng(0)
    alphas = domain.sample(rng, n)
    scores = -((alphas - 0.3) ** 2).sum(axis=1)
    scores[[2, 7]] = np.nan
    return alphas, scores, domain.sample(rng, n_pending)


def propose(sampler, domain, alphas, scores, pending, k=5, seed=0):
    rng = np.random.default_rng(seed)
    return sampler.propose(alphas, scores, pending=pending, k=k, domain=domain, rng=rng)


@every_sampler
@pytest.mark.parametrize("domain", DOMAINS, ids=str)
def test_proposals_lie_in_the_domain_and_depend_only_on_what_is_known(name, domain):
    sampler = OptunaSampler(MAKE[name]())
    sampler.check_domain(domain)
    first = propose(sampler, domain, *known(domain))
    assert first.shape == (5, domain.n_dims)
    np.testing.assert_allclose(domain.project(first), first, atol=1e-12)
    np.testing.assert_array_equal(first, propose(sampler, domain, *known(domain)))  # it keeps no state
    other = OptunaSampler(MAKE[name]())
    np.testing.assert_array_equal(first, propose(other, domain, *known(domain)))
    alphas, _, pending = known(domain)
    np.testing.assert_array_equal(
        propose(sampler, domain, alphas, np.full(len(alphas), np.nan), pending),
        domain.sample(np.random.default_rng(0), 5),
    )


def test_the_seed_of_the_sampler_is_not_used_and_that_of_the_candidate_is():
    domain = Ball(3, 4.0)
    for make in (TPESampler, RandomSampler):
        one, two = (propose(OptunaSampler(make(seed=seed)), domain, *known(domain)) for seed in (0, 1))
        np.testing.assert_array_equal(one, two)
        assert not np.isclose(one, propose(OptunaSampler(make()), domain, *known(domain), seed=1)).any()


def test_a_sequence_goes_on_behind_what_is_known():
    domain, sampler = Box(2, 1.0), OptunaSampler(QMCSampler())
    alphas, scores, pending = known(domain)
    first = propose(sampler, domain, alphas, scores, pending)
    grown = np.vstack([alphas, first]), np.append(scores, np.zeros(5))
    second = propose(sampler, domain, *grown, pending)
    assert len(np.unique(np.vstack([first, second]), axis=0)) == 10


@every_sampler
def test_a_study_does_not_depend_on_the_order_of_arrival_and_survives_failures(name, tmp_path):
    def run(order, storage=None):
        def new_study():
            sampler = OptunaSampler(MAKE[name]())
            return WeightStudy(None, Ball(2, 4.0), sampler=sampler, n_initial=4, seed=1, storage=storage)

        study = new_study()
        for _ in range(3):
            study = study if storage is None else new_study()
            trials = study.ask(4)
            order.shuffle(trials)
            for trial in trials:
                if trial.number % 5 == 3:
                    study.tell(trial.number, error="it failed")
                else:
                    study.tell(trial.number, -float(((trial.alpha - 1) ** 2).sum()))
        return np.array([trial.alpha for trial in study.trials()])

    first = run(np.random.default_rng(0))
    np.testing.assert_array_equal(first, run(np.random.default_rng(1)))
    # A new process has another instance: the stored study is continued all the same.
    np.testing.assert_array_equal(first, run(np.random.default_rng(2), tmp_path / "study.db"))


def test_tpe_finds_what_random_numbers_do_not():
    def best(sampler, seed):
        study = WeightStudy(None, Ball(3, 4.0), sampler=sampler, n_initial=10, seed=seed)
        for _ in range(6):
            for trial in study.ask(10):
                study.tell(trial.number, -float(((trial.alpha - 0.7) ** 2).sum()))
        return study.best().value

    tpe = np.median([best(OptunaSampler(TPESampler()), seed) for seed in range(5)])
    assert tpe > 0.5 * np.median([best("random", seed) for seed in range(5)])


def test_cma_es_keeps_its_generations():
    pytest.importorskip("cmaes")
    domain = Ball(4, 4.0)

    def best(sampler, seed):
        study = WeightStudy(None, domain, sampler=sampler, n_initial=10, seed=seed)
        for _ in range(12):
            for trial in study.ask(10):
                study.tell(trial.number, -float(((trial.alpha - 0.7) ** 2).sum()))
        return study.best().value

    cma = np.median([best(OptunaSampler(CmaEsSampler()), seed) for seed in range(3)])
    assert cma > 0.3 * np.median([best("random", seed) for seed in range(3)])


@pytest.mark.parametrize("name", ["tpe", "sobol"])
def test_a_search(name):
    rows = shifted_classes(150, 3)
    search = MetricSearch.from_settings(
        LogisticRegression(),
        metric="balanced_accuracy",
        embedding="label",
        sampler=OptunaSampler(MAKE[name]()),
        n_candidates=15,
        batch_size=5,
        random_state=0,
    )
    first, second = (clone(search).fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val)) for _ in range(2))
    for one, other in zip(first.result_.trials, second.result_.trials, strict=True):
        np.testing.assert_array_equal(one.alpha, other.alpha)
    assert first.score(rows.X_test, rows.y_test) > 0.5


def test_hyper_parameters_are_searched_with_it_too():
    rows = shifted_classes(150, 2)
    search = MetricSearch.from_settings(
        LogisticRegression(),
        embedding="label",
        sampler=OptunaSampler(TPESampler()),
        search_space={"C": optuna.distributions.FloatDistribution(1e-3, 10.0, log=True)},
        n_candidates=20,
        batch_size=10,
        random_state=0,
    )
    search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    assert search.score(rows.X_test, rows.y_test) > 0.5


def test_what_cannot_work_is_refused_before_training():
    with pytest.raises(InvalidInputError, match="GridSampler cannot search 2 numbers from 0 to 1"):
        WeightStudy(None, Ball(2, 1.0), sampler=OptunaSampler(GridSampler({"x": [0.0, 1.0]})))
    with pytest.raises(InvalidInputError, match="must be an instance of one of Optuna's samplers"):
        OptunaSampler("tpe")
    with pytest.raises(InvalidInputError, match="search a Ball, a Box or a BallAndBox"):
        OptunaSampler(TPESampler()).check_domain(object())

    class NeedsMore(RandomSampler):
        def sample_independent(self, *_):
            raise ModuleNotFoundError("No module named 'more'", name="more")

    with pytest.raises(InvalidInputError, match=r"Optuna's NeedsMore needs a package .* pip install more\."):
        OptunaSampler(NeedsMore()).check_domain(Ball(2, 1.0))
